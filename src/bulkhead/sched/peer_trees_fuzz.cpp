// Whatever the bytes: a cluster that can be divided and ranked, or a list of errors; never a crash.
#include <cstddef>
#include <cstdint>

#include "bulkhead/base/result.hpp"
#include "bulkhead/sched/cluster_tree.hpp"
#include "bulkhead/sched/peer_trees.hpp"

using namespace bulkhead;
using namespace bulkhead::sched;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text{reinterpret_cast<const char*>(data), size};
    static_cast<void>(peer_tree_in(text));
    for (const auto& read :
         {read_kai_queues("fuzz", text, Gpus::whole(100)), read_slurm_dump("fuzz", text, Gpus::whole(100))}) {
        if (!read) {
            invariant(!read.error().empty(), "a refusal says why");
            continue;
        }
        const Division division = divide(queues_of(*read), read->all_gpus(), Grain::fine);
        Gpus own = division.unallocated;
        for (const QueueShare& queue : division.queues) own = own + queue.own;
        invariant(division.unallocated >= Gpus{} && own == read->all_gpus(),
                  "every GPU is somebody's or nobody's, once");
        for (const Standing& standing : fair_table(*read).tree.standings)
            invariant(!standing.rank || *standing.rank >= 1, "ranks begin with one");
    }
    return 0;
}
