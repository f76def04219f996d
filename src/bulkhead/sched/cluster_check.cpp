#include "bulkhead/sched/cluster_check.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <unordered_map>

#include "bulkhead/base/nearest.hpp"

namespace bulkhead::sched {

namespace {

constexpr std::size_t worth_naming_alike = 100;  // after so many errors nobody reads on, and guessing takes time

class Check {
public:
    explicit Check(const Cluster& cluster) : cluster_{cluster} {}

    std::vector<Misfit> all() {
        check_nodes();
        check_jobs();
        return std::move(misfits_);
    }

private:
    using Names = std::unordered_map<std::string, std::size_t>;

    void add(std::string_view list, std::size_t index, std::string_view field, std::string what, std::string remedy) {
        misfits_.push_back({list, index, field, std::move(what), std::move(remedy)});
    }

    // Under all names, or with a complaint. False: there are too many to go on.
    template <class T>
    bool name_all(std::string_view list, const std::vector<T>& items, Names& names) {
        const std::string_view one = list.substr(0, list.size() - 1);
        std::int64_t total = 0;
        for (std::size_t i = 0; i < items.size(); ++i) {
            total += items[i].count;
            if (total > most_of(list)) {
                add(list, i, "count", fmt::format("the {} are {} up to here; at most {}", list, total, most_of(list)),
                    "fewer of them");
                return false;
            }
            for (std::int64_t k = 0; k < items[i].count; ++k) {
                std::string name = numbered(items[i].name, items[i].count, k);
                const auto [known, fresh] = names.try_emplace(std::move(name), i);
                if (fresh) continue;
                add(list, i, "name", fmt::format("{} {} is there twice", one, known->first),
                    fmt::format("give each {} a name of its own", one));
                break;
            }
        }
        return true;
    }
    static std::int64_t most_of(std::string_view list) {
        return list == "nodes" ? most_cluster_nodes : most_cluster_tasks;
    }

    void check_nodes() {
        whole_ = name_all("nodes", cluster_.nodes, node_names_);
        std::set<std::string_view> models;
        for (std::size_t i = 0; i < cluster_.nodes.size(); ++i) {
            const ClusterNode& node = cluster_.nodes[i];
            if (node.model.empty()) add("nodes", i, "model", "its model has no name", "h100-80gb-sxm5");
            models.insert(node.model);
            if (models.size() == most_cluster_models + 1)
                add("nodes", i, "model", fmt::format("more than {} GPU models", most_cluster_models),
                    "fewer models; nodes that are alike under one");
            const auto check_indexes = [&](std::string_view field, const std::vector<std::int64_t>& indexes) {
                for (const std::int64_t gpu : indexes)
                    if (gpu >= node.gpus)
                        return add("nodes", i, field,
                                   fmt::format("node {}: there is no GPU {}; it has {}, counted from 0", node.name, gpu,
                                               node.gpus),
                                   node.gpus == 0 ? "leave it out" : fmt::format("at most {}", node.gpus - 1));
            };
            check_indexes("wiping", node.wiping);
            check_indexes("quarantined", node.quarantined);
        }
    }

    void check_jobs() {
        Names names;
        name_all("jobs", cluster_.jobs, names);
        std::int64_t tasks = 0;
        for (std::size_t i = 0; i < cluster_.jobs.size(); ++i) {
            const ClusterJob& job = cluster_.jobs[i];
            const std::int64_t before = tasks;
            tasks += job.count * job.tasks;
            if (before <= most_cluster_tasks && tasks > most_cluster_tasks)
                add("jobs", i, "tasks",
                    fmt::format("the jobs have {} tasks up to here; at most {}", tasks, most_cluster_tasks),
                    "fewer or smaller jobs");
            check_request(job, i);
            check_tasks(job, i);
            check_isolation(job, i);
            check_whereabouts(job, i);
            if (job.deadline && job.deadlineIn)
                add("jobs", i, "deadlineIn", fmt::format("job {} has a deadline and a deadlineIn", job.name),
                    "keep one of the two");
        }
    }

    void check_request(const ClusterJob& job, std::size_t i) {
        std::vector<std::string_view> ways;
        if (job.gpus) ways.push_back("gpus");
        if (!job.profile.empty()) ways.push_back("profile");
        if (job.gpuMemory) ways.push_back("gpuMemory");
        if (ways.size() > 1)
            add("jobs", i, ways.back(),
                fmt::format("job {} asks for GPUs in {} ways: {}", job.name, ways.size(), fmt::join(ways, " and ")),
                "one of gpus, profile, gpuMemory");
        if (job.gpus && job.gpus->units > gpu_unit && job.gpus->units % gpu_unit != 0)
            add("jobs", i, "gpus",
                fmt::format("job {}: {} GPUs for a task; it takes a whole number, or a fraction below 1", job.name,
                            print(*job.gpus)),
                fmt::format("{}", job.gpus->units / gpu_unit + 1));
        if (std::ranges::find(job.models, "") != job.models.end())
            add("jobs", i, "models", fmt::format("job {}: a model has no name", job.name), "h100-80gb-sxm5");
    }

    void check_tasks(const ClusterJob& job, std::size_t i) {
        if (job.minTasks && *job.minTasks > job.tasks)
            add("jobs", i, "minTasks",
                fmt::format("job {} needs at least {} tasks and asks for {}", job.name, *job.minTasks, job.tasks),
                fmt::format("minTasks of at most {}, or more tasks", job.tasks));
        if (job.groupTasks.has_value() != (job.groupWithin != TopologyLevel::none))
            add("jobs", i, job.groupTasks ? "groupTasks" : "groupWithin",
                fmt::format("job {} says {} and not {}", job.name, job.groupTasks ? "groupTasks" : "groupWithin",
                            job.groupTasks ? "groupWithin" : "groupTasks"),
                "both, or neither");
        const auto divides = [&](std::int64_t tasks, std::string_view field) {
            if (tasks % *job.groupTasks == 0) return;
            add("jobs", i, "groupTasks",
                fmt::format("job {}: groups of {} do not divide its {} {}", job.name, *job.groupTasks, field, tasks),
                fmt::format("a number that divides {}", tasks));
        };
        if (job.groupTasks) divides(job.tasks, "tasks");
        if (job.groupTasks && job.minTasks) divides(*job.minTasks, "minTasks");
    }

    void check_isolation(const ClusterJob& job, std::size_t i) {
        const bool with_strangers =
            job.isolation.node == PeerTrust::distrusting || job.isolation.gpu == PeerTrust::distrusting;
        if (with_strangers && job.isolation.tier < Tier::vm)
            add("jobs", i, "isolation",
                fmt::format("job {} would share a {} with distrusting tenants in tier {}; tenants that distrust each "
                            "other need a kernel each",
                            job.name, job.isolation.gpu == PeerTrust::distrusting ? "GPU" : "node",
                            word(job.isolation.tier)),
                "tier: vm, or node: same-domain and gpu: same-domain");
    }

    void check_whereabouts(const ClusterJob& job, std::size_t i) {
        if (job.on.empty()) {
            if (job.ran > Duration{})
                add("jobs", i, "ran",
                    fmt::format("job {} has run for {}, and nothing says where", job.name, print(job.ran)),
                    "add on: the nodes its tasks run on");
            return;
        }
        const auto there = static_cast<std::int64_t>(job.on.size());
        if (there != 1 && (there < job.minTasks.value_or(job.tasks) || there > job.tasks))
            add("jobs", i, "on", fmt::format("job {} names {} nodes for {} tasks", job.name, there, job.tasks),
                "the node of each task, or one node for all of them");
        if (!whole_) return;
        for (const std::string& name : job.on)
            if (!node_names_.contains(name)) return unknown_node(job, i, name);
    }

    void unknown_node(const ClusterJob& job, std::size_t i, const std::string& name) {
        std::vector<std::string_view> known;
        if (misfits_.size() < worth_naming_alike && node_names_.size() <= 1000)
            for (const auto& [each, index] : node_names_) known.push_back(each);
        std::ranges::sort(known);
        const std::string_view near = nearest(name, known);
        add("jobs", i, "on", fmt::format("job {} runs on node \"{}\", which does not exist", job.name, shortened(name)),
            near.empty() ? "list that node" : std::string{near});
    }

    const Cluster& cluster_;
    Names node_names_;
    bool whole_ = true;  // all nodes have their names
    std::vector<Misfit> misfits_;
};

}  // namespace

std::vector<Misfit> misfits_of(const Cluster& cluster) { return Check{cluster}.all(); }

}  // namespace bulkhead::sched
