// How fast a wipe's two passes are, beside what the same GPU can do at most: the driver's own memset, and kernels that
// only read. All memory, the median of ten, in one process, so that the ratios hold whatever the machine is doing.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <functional>

#include "bulkhead/hw/cuda/everything.hpp"
#include "bulkhead/hw/cuda/memory_kernels.hpp"
#include "bulkhead/hw/cuda/probe_kernels.hpp"
#include "bulkhead/probe/scene.hpp"

namespace bulkhead::probe {

namespace {

using cuda::Context, cuda::Piece;

constexpr std::size_t rounds = 10;

struct Pass {
    std::string what, how;
    std::function<Result<>(const Piece&)> over;
    std::vector<double> took = {};  // ms on the GPU, over everything

    std::int64_t median_us() const {
        std::vector<double> sorted = took;
        std::ranges::sort(sorted);
        return static_cast<std::int64_t>(sorted[sorted.size() / 2] * 1000);
    }
};

// Round after round, each pass once: what warms the card or slows it meets all of them alike.
Result<> run(Context& context, const std::vector<Piece>& pieces, std::vector<Pass>& passes) {
    for (std::size_t round = 0; round < rounds; ++round)
        for (Pass& pass : passes) {
            const auto begun = context.mark();
            if (!begun) return std::unexpected(begun.error());
            for (const Piece& piece : pieces)
                if (const auto started = pass.over(piece); !started) return started;
            const auto ended = context.mark();
            if (!ended) return std::unexpected(ended.error());
            const auto ms = context.ms_between(*begun, *ended);
            if (!ms) return std::unexpected(ms.error());
            pass.took.push_back(*ms);
        }
    return {};
}

void add(Report& report, const std::string& what, const std::string& how, std::uint64_t bytes, std::int64_t us) {
    const std::int64_t mb_per_s = us > 0 ? static_cast<std::int64_t>(bytes) / us : 0;
    report.findings.push_back(
        {.what = what,
         .setting = how,
         .figures = {{"medianUs", us}, {"mbPerS", mb_per_s}, {"bytes", static_cast<std::int64_t>(bytes)}},
         .says = fmt::format("{:.3f} TB/s, {:.2f} ms for {:.1f} GB", static_cast<double>(mb_per_s) / 1e6,
                             static_cast<double>(us) / 1e3, static_cast<double>(bytes) / 1e9),
         .not_tried = {}});
}

void add_ratio(Report& report, const std::string& what, std::int64_t best_us, std::int64_t ours_us) {
    const std::int64_t ratio = ours_us > 0 ? best_us * 1000 / ours_us : 0;
    report.findings.push_back({.what = what,
                               .setting = "in the same run",
                               .figures = {{"ratioThousandths", ratio}},
                               .says = fmt::format("{:.3f} of its rate", static_cast<double>(ratio) / 1000),
                               .not_tried = {}});
}

}  // namespace

Result<Report> rates(const Options& options) {
    auto scene = set_up(options, "rates");
    if (!scene) return std::unexpected(scene.error());
    ::setenv("CUDA_VISIBLE_DEVICES", scene->options.gpu.c_str(), 1);
    const auto driver = cuda::Driver::open(options.cuda);
    if (!driver) return std::unexpected(driver.error());
    const auto devices = driver->devices();
    if (!devices) return std::unexpected(devices.error());
    auto context = driver->context(0);
    if (!context) return std::unexpected(context.error());
    const auto memory = cuda::MemoryKernels::load(*context);
    if (!memory) return std::unexpected(memory.error());
    const auto probe = cuda::ProbeKernels::load(*context, devices->front().multiprocessors);
    if (!probe) return std::unexpected(probe.error());
    const auto scratch = context->allocate(2 << 20);
    if (!scratch) return std::unexpected(scratch.error());
    const cuda::Address tallies = (*scratch)->at;
    const auto pieces = cuda::take_everything(*context);
    if (!pieces) return std::unexpected(pieces.error());
    std::uint64_t bytes = 0;
    for (const Piece& piece : *pieces) bytes += piece.bytes;
    const auto chunks = [](const Piece& piece) { return piece.bytes / cuda::chunk_bytes; };
    const cuda::Pattern pattern = cuda::keyed({1, 2, 3, 4}, 0);

    std::vector<Pass> passes;
    passes.push_back({"memset", "the driver's own",
                      [&](const Piece& piece) { return context->set_bytes(piece.at, 0, piece.bytes); }});
    passes.push_back({"overwrite", "ours",
                      [&](const Piece& piece) { return memory->fill(*context, piece.at, chunks(piece), pattern); }});
    for (const unsigned each : {4u, 8u, 16u})
        for (const std::uint32_t threads : {128u, 256u, 512u})
            passes.push_back({"read", fmt::format("{} chunks in flight, {} threads", each, threads),
                              [&, each, threads](const Piece& piece) {
                                  return probe->read(*context, piece, each, threads, tallies);
                              }});
    passes.push_back({"verify", "ours", [&](const Piece& piece) {
                          return memory->compare(*context, piece.at, chunks(piece), pattern, tallies);
                      }});
    if (const auto ran = run(*context, *pieces, passes); !ran) return std::unexpected(ran.error());
    Report& report = scene->report;
    for (const Pass& pass : passes) add(report, pass.what, pass.how, bytes, pass.median_us());
    const std::int64_t memset = passes[0].median_us(), fill = passes[1].median_us(), verify = passes.back().median_us();
    std::int64_t best = passes[2].median_us();
    for (std::size_t i = 2; i + 1 < passes.size(); ++i) best = std::min(best, passes[i].median_us());
    add_ratio(report, "overwrite beside memset", memset, fill);
    add_ratio(report, "verify beside the best read", best, verify);
    add(report, "overwrite and verify", "ours", 2 * bytes, fill + verify);
    return std::move(scene->report);
}

}  // namespace bulkhead::probe
