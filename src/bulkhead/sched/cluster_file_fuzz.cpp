// Whatever the bytes: a cluster or a list of errors, never a crash; and what is read can be divided, ranked, and
// printed to be read again.
#include <cstddef>
#include <cstdint>

#include "bulkhead/base/result.hpp"
#include "bulkhead/codec/document.hpp"
#include "bulkhead/codec/print.hpp"
#include "bulkhead/sched/cluster_tree.hpp"

using namespace bulkhead;
using namespace bulkhead::sched;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto read = read_cluster("fuzz", {reinterpret_cast<const char*>(data), size});
    if (!read) {
        invariant(!read.error().empty(), "a refusal says why");
        return 0;
    }
    for (const Grain grain : {Grain::thousandths, Grain::whole}) {
        const Division division = divide(queues_of(*read), read->gpus, grain);
        Gpus own = division.unallocated;
        for (const QueueShare& queue : division.queues) own = own + queue.own;
        invariant(division.unallocated >= Gpus{} && own == read->gpus, "every GPU is somebody's or nobody's, once");
    }
    const FairTable table = fair_table(*read);
    for (const Standing& standing : table.tree.standings)
        invariant(!standing.rank || (*standing.rank >= 1 && *standing.rank <= table.tree.users), "ranks are in range");
    const std::string again = to_yaml(*read);
    if (again.size() > Limits{}.bytes) return 0;  // aliases spelled out may grow past the limit
    const auto twice = read_cluster("again", again);
    invariant(twice && *twice == *read, "what was printed is read as it was");
    return 0;
}
