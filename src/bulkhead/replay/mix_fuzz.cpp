// Whatever the bytes: a mix or a list of errors, never a crash; and what is read can be printed to be read again, and
// drawn from.
#include <cstddef>
#include <cstdint>

#include "bulkhead/base/result.hpp"
#include "bulkhead/codec/document.hpp"
#include "bulkhead/codec/print.hpp"
#include "bulkhead/replay/mix_fleet.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace bulkhead;
    using namespace bulkhead::replay;
    const auto mix = read_mix("fuzz", {reinterpret_cast<const char*>(data), size});
    if (!mix) {
        invariant(!mix.error().empty(), "a refusal says why");
        return 0;
    }
    const std::string again = to_yaml(*mix);
    if (again.size() <= Limits{}.bytes) {  // aliases spelled out may grow past the limit
        const auto twice = read_mix("again", again);
        invariant(twice && *twice == *mix, "what was printed is read as it was");
    }
    std::int64_t variants = 0;
    for (const MixJobs& jobs : mix->jobs) variants += jobs.variants;
    if (variants > 200 || mix->tenants.departments * mix->tenants.teams > 500) return 0;  // nothing new, slowly
    const MixFleet fleet{*mix, 40, 1};
    std::int64_t gpus = 0;
    for (std::size_t i = 0; i < fleet.nodes(); ++i) {
        const sched::Node node = fleet.node(i);
        gpus += static_cast<std::int64_t>(node.gpus.size());
        for (const sched::Gpu& gpu : node.gpus)
            invariant((gpu.available & (gpu.held | gpu.lost)) == 0, "what is free is nobody's");
    }
    invariant(gpus == fleet.gpus(), "every GPU is counted");
    Rng rng{1};
    for (int i = 0; i < 50; ++i) {
        const MixDraw draw = fleet.draw(rng);
        invariant(draw.job.tenant < fleet.tenants().size() && !fleet.variants()[draw.variant].needs[0].wants.empty(),
                  "a job is somebody's, and some node could serve it");
    }
    return 0;
}
