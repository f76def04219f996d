// Classes, workloads, nodes and leases: what each must say, and what it must not say twice.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "bulkhead/model/findings.hpp"

namespace bulkhead {

namespace {

void check_request(Findings& findings, const GpuRequest& gpu, const Subject& subject) {
    std::vector<std::string_view> ways;
    if (gpu.count) ways.push_back("count");
    if (!gpu.profile.empty()) ways.push_back("profile");
    if (gpu.fraction) ways.push_back("fraction");
    if (gpu.memory) ways.push_back("memory");
    if (ways.size() == 1) return;
    findings.add(subject, "/spec/gpu",
                 ways.empty() ? "it does not say how much of a GPU it needs"
                              : fmt::format("it asks for GPUs in {} ways: {}", ways.size(), fmt::join(ways, " and ")),
                 "exactly one of count, profile, fraction, memory");
}

// Groups come out even, also where the gang is elastic.
void check_groups(Findings& findings, const GpuWorkloadSpec& spec, const Subject& subject) {
    const TopologyRequest& topology = spec.topology;
    if (topology.groupTasks.has_value() != (topology.groupWithin != TopologyLevel::none))
        return findings.add(subject, "/spec/topology",
                            topology.groupTasks ? fmt::format("it groups its tasks by {} and does not say within what",
                                                              *topology.groupTasks)
                                                : fmt::format("its groups are within {} and it does not say how many "
                                                              "tasks are a group",
                                                              word(topology.groupWithin)),
                            "groupTasks and groupWithin together, or neither");
    if (!topology.groupTasks) return;
    const auto divides = [&](std::int64_t tasks, std::string_view field) {
        if (tasks % *topology.groupTasks == 0) return;
        findings.add(subject, "/spec/topology/groupTasks",
                     fmt::format("groups of {} do not divide its {} {}", *topology.groupTasks, field, tasks),
                     fmt::format("a number that divides {}, or {} of {}", tasks, field,
                                 (tasks / *topology.groupTasks + 1) * *topology.groupTasks));
    };
    divides(spec.tasks, "tasks");
    if (spec.minTasks) divides(*spec.minTasks, "minTasks");
}

// What an order to a node takes (wire/message.hpp): more could be leased, and never be started.
constexpr std::size_t words_max = 256, word_bytes_max = 4'096;

void check_words(Findings& findings, const Subject& subject, std::string_view path,
                 const std::vector<std::string>& words, std::size_t most) {
    if (words.size() > most)
        findings.add(subject, std::string{path}, fmt::format("it has {} words; {} are allowed", words.size(), most),
                     "put the rest into a file of the work's own");
    for (std::size_t i = 0; i < words.size(); ++i)
        if (words[i].size() > word_bytes_max)
            findings.add(subject, fmt::format("{}/{}", path, i),
                         fmt::format("the word has {} bytes; {} are allowed", words[i].size(), word_bytes_max),
                         "put it into a file of the work's own");
}

void check_repeated_words(Findings& findings, const Subject& subject, std::string_view path, std::string_view field,
                          std::string_view what, const auto& list, auto word_of) {
    std::set<decltype(word_of(list.front()))> seen;
    for (std::size_t i = 0; i < list.size(); ++i)
        if (!seen.insert(word_of(list[i])).second)
            findings.add(
                subject, fmt::format("{}/{}{}", path, i, field),
                fmt::format("{} {} is listed twice, the second time as number {}", what, word(word_of(list[i])), i + 1),
                "keep one of the two");
}

}  // namespace

void check_classes(Findings& findings) {
    findings.for_each<TenantClass>([&](const TenantClass& object, const Subject& subject) {
        const TenantClassSpec& spec = object.spec;
        if (spec.mechanisms.empty())
            findings.add(subject, "/spec/mechanisms", "it allows no mechanism, so no work of this class could ever run",
                         "list at least one, the preferred first");
        check_repeated_words(findings, subject, "/spec/mechanisms", "", "mechanism", spec.mechanisms,
                             [](Mechanism each) { return each; });
        if (spec.priority.usual > spec.priority.highest)
            findings.add(subject, "/spec/priority",
                         fmt::format("its usual priority {} is above its highest {}", spec.priority.usual,
                                     spec.priority.highest),
                         "raise highest, or lower usual");
    });
}

void check_workloads(Findings& findings) {
    findings.for_each<GpuWorkload>([&](const GpuWorkload& workload, const Subject& subject) {
        const GpuWorkloadSpec& spec = workload.spec;
        if (!findings.find<Tenant>(spec.tenant))
            findings.add(subject, "/spec/tenant", fmt::format("its tenant \"{}\" does not exist", spec.tenant),
                         findings.remedy<Tenant>(spec.tenant, "declare it as a Tenant"));
        check_request(findings, spec.gpu, subject);
        if (spec.minTasks && *spec.minTasks > spec.tasks)
            findings.add(subject, "/spec/minTasks",
                         fmt::format("it needs at least {} tasks and asks for {}", *spec.minTasks, spec.tasks),
                         fmt::format("minTasks of at most {}, or more tasks", spec.tasks));
        check_words(findings, subject, "/spec/command", spec.command, words_max);
        check_words(findings, subject, "/spec/environment", spec.environment, words_max - 16);  // we add a few
        if (spec.checkpoint)
            check_words(findings, subject, "/spec/checkpoint/command", spec.checkpoint->command, words_max);
        if (spec.checkpoint && (spec.checkpoint->command.empty() || spec.command.empty()))
            findings.add(subject, "/spec/checkpoint/command",
                         spec.command.empty() ? "it has no command of its own whose work could be saved"
                                              : "its checkpoint has no command",
                         "a program by its path or name beside spec.command, or no checkpoint at all");
        if (const Duration most = findings.policy != nullptr ? findings.policy->spec.checkpointAtMost
                                                             : FleetPolicySpec{}.checkpointAtMost;
            spec.checkpoint && spec.checkpoint->within > most)
            findings.add(subject, "/spec/checkpoint/within",
                         fmt::format("it wants {} to save its work, and whoever waits for its GPUs waits {} at most",
                                     print(spec.checkpoint->within), print(most)),
                         fmt::format("{} or less; or raise checkpointAtMost in the FleetPolicy", print(most)));
        if (spec.vm && spec.isolation.tier && *spec.isolation.tier < Tier::vm)
            findings.add(subject, "/spec/vm",
                         fmt::format("it names what a machine boots, and asks for tier {}", word(*spec.isolation.tier)),
                         "isolation.tier: vm, or no vm at all");
        check_groups(findings, spec, subject);
        check_placement(findings, subject, spec.placement);
    });
}

void check_nodes(Findings& findings) {
    findings.for_each<GpuNode>([&](const GpuNode& node, const Subject& subject) {
        if (!findings.sites.empty() && !findings.sites.contains(node.spec.site)) {
            const std::vector<std::string_view> known(findings.sites.begin(), findings.sites.end());
            findings.add(subject, "/spec/site",
                         fmt::format("FleetPolicy {} declares no site \"{}\"; it declares {}",
                                     findings.policy->metadata.name, node.spec.site, fmt::join(known, ", ")),
                         findings.remedy(node.spec.site, known, "declare the site in spec.sites of the FleetPolicy"));
        }
        const GpuNodeStatus& status = node.status;
        for (std::size_t i = 0; i < status.gpus.size(); ++i)
            if (!status.gpus[i].slices.empty() && status.gpus[i].count != 1)
                findings.add(subject, fmt::format("/status/gpus/{}/slices", i),
                             fmt::format("{} slices are listed for {} GPUs at once", status.gpus[i].slices.size(),
                                         status.gpus[i].count),
                             "one entry with count 1 for each GPU that is cut");
        check_repeated_words(findings, subject, "/status/capabilities", "/name", "capability", status.capabilities,
                             [](const DetectedCapability& each) { return each.name; });
        check_repeated_words(findings, subject, "/status/versions", "/component", "component", status.versions,
                             [](const InstalledVersion& each) { return each.component; });
    });
}

// A file of leases alone is a fair question to ask, so a kind that is absent altogether is not missed.
void check_leases(Findings& findings) {
    const Snapshot& all = findings.snapshot;
    findings.for_each<GpuLease>([&](const GpuLease& lease, const Subject& subject) {
        const GpuLeaseSpec& spec = lease.spec;
        if (!all.tenants.empty() && !findings.find<Tenant>(spec.tenant))
            findings.add(subject, "/spec/tenant", fmt::format("its tenant \"{}\" does not exist", spec.tenant),
                         findings.remedy<Tenant>(spec.tenant, "remove the lease"));
        const GpuWorkload* workload = findings.find_work(spec.tenant, spec.workload);
        if (!workload) workload = findings.find<GpuWorkload>(spec.workload);
        if (!all.workloads.empty() && !workload)
            findings.add(subject, "/spec/workload", fmt::format("its workload \"{}\" does not exist", spec.workload),
                         findings.remedy<GpuWorkload>(spec.workload, "remove the lease"));
        if (workload && workload->spec.tenant != spec.tenant)
            findings.add(subject, "/spec/tenant",
                         fmt::format("it is held by {}, and its workload {} belongs to {}", spec.tenant, spec.workload,
                                     workload->spec.tenant),
                         workload->spec.tenant);
        for (std::size_t i = 0; i < spec.slices.size(); ++i)
            if (!all.nodes.empty() && !findings.find<GpuNode>(spec.slices[i].node))
                findings.add(subject, fmt::format("/spec/slices/{}/node", i),
                             fmt::format("its node \"{}\" does not exist", spec.slices[i].node),
                             findings.remedy<GpuNode>(spec.slices[i].node, "remove the lease"));
    });
}

}  // namespace bulkhead
