// Whatever the bytes: a cluster or a list of errors, never a crash; and what is read can be divided, ranked, printed to
// be read again, and scheduled, where it is small.
#include <cstddef>
#include <cstdint>

#include "bulkhead/base/result.hpp"
#include "bulkhead/codec/document.hpp"
#include "bulkhead/codec/print.hpp"
#include "bulkhead/sched/cluster_tree.hpp"
#include "bulkhead/sched/play.hpp"

using namespace bulkhead;
using namespace bulkhead::sched;

namespace {

// What would take long is tried elsewhere.
bool is_small(const Cluster& cluster) {
    std::int64_t nodes = 0, tasks = 0;
    for (const ClusterNode& node : cluster.nodes) nodes += node.count;
    for (const ClusterJob& job : cluster.jobs) tasks += job.count * job.tasks;
    return nodes <= 32 && tasks <= 256;
}

void schedule(const Cluster& cluster) {
    const auto scene = scene_of(cluster);
    if (!scene) {
        invariant(!scene.error().empty(), "a refusal says why");
        invariant(located("fuzz", "", scene.error()).size() == scene.error().size(), "each has a place");
        return;
    }
    const Played played = play(*scene, {.cycles = 4, .resubmit = true});
    invariant(played.running.size() + played.waiting.size() <= scene->jobs.size(), "a job is in one place");
    for (const Binding& each : played.running)
        for (const TaskSeat& task : each.tasks)
            for (const std::uint16_t gpu : task.gpus)
                invariant(gpu < scene->nodes[task.node].gpus.size(), "tasks sit on GPUs that are there");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto read = read_cluster("fuzz", {reinterpret_cast<const char*>(data), size});
    if (!read) {
        invariant(!read.error().empty(), "a refusal says why");
        return 0;
    }
    for (const Grain grain : {Grain::fine, Grain::whole}) {
        const Division division = divide(queues_of(*read), read->all_gpus(), grain);
        Gpus own = division.unallocated;
        for (const QueueShare& queue : division.queues) own = own + queue.own;
        invariant(division.unallocated >= Gpus{} && own == read->all_gpus(),
                  "every GPU is somebody's or nobody's, once");
    }
    const FairTable table = fair_table(*read);
    for (const Standing& standing : table.tree.standings)
        invariant(!standing.rank || (*standing.rank >= 1 && *standing.rank <= table.tree.users), "ranks are in range");
    if (is_small(*read)) schedule(*read);
    const std::string again = to_yaml(*read);
    if (again.size() > Limits{}.bytes) return 0;  // aliases spelled out may grow past the limit
    const auto twice = read_cluster("again", again);
    invariant(twice && *twice == *read, "what was printed is read as it was");
    return 0;
}
