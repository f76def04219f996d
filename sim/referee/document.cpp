#include <fmt/core.h>

#include <string>

#include "sim/referee/scene.hpp"

namespace bulkhead::referee {

namespace {

std::string gpus(int parts) {
    std::string text = std::to_string(parts / parts_of_gpu);
    if (parts % parts_of_gpu != 0) {
        text += fmt::format(".{:03}", parts % parts_of_gpu * 1000 / parts_of_gpu);
        while (text.back() == '0') text.pop_back();
    }
    return text;
}

std::string word(PeerTrust bears) {
    constexpr const char* all[] = {"same-tenant", "same-domain", "distrusting"};
    return all[static_cast<std::size_t>(bears)];
}

std::string line(const Work& work, std::size_t number) {
    std::string out = fmt::format("  - {{name: j{}, tenant: t{}", number, work.tenant);
    out += fmt::format(", gpus: {}", work.is_share() ? gpus(work.share) : std::to_string(work.gpus));
    if (work.is_share()) out += work.time_sliced ? ", mechanism: time-slicing" : ", mechanism: mps";
    if (work.tasks > 1) out += fmt::format(", tasks: {}", work.tasks);
    if (work.least > 0) out += fmt::format(", minTasks: {}", work.least);
    if (work.cores > 0) out += fmt::format(", cpu: {}", work.cores);
    if (work.within != Within::anywhere) out += work.within == Within::leaf ? ", within: leaf" : ", within: node";
    if (work.priority > 0) out += fmt::format(", priority: {}", work.priority);
    if (!work.preemptible) out += ", preemptible: false";
    if (!work.host_kernel || work.node != PeerTrust::same_domain || work.gpu != PeerTrust::same_domain)
        out += fmt::format(", isolation: {{tier: {}, node: {}, gpu: {}}}", work.host_kernel ? "container" : "vm",
                           word(work.node), word(work.gpu));
    if (work.checkpoint != none) out += fmt::format(", checkpoint: {}m", work.checkpoint);
    if (!work.runs.empty()) {
        out += fmt::format(", ran: {}m, on: [", work.ran);
        for (std::size_t i = 0; i < work.runs.size(); ++i)
            out += fmt::format("{}n{}", i > 0 ? ", " : "", work.runs[i].node);
        out += "]";
    }
    out += "}";
    if (!work.runs.empty() && work.is_share()) {
        out += "  # GPUs, one bit each:";
        for (const Place& place : work.runs) out += fmt::format(" {:b}", place.gpus);
    }
    return out + "\n";
}

}  // namespace

std::string document(const Scene& scene) {
    std::string out = "kind: Cluster\nnodes:\n";
    for (std::size_t i = 0; i < scene.machines.size(); ++i) {
        const Machine& machine = scene.machines[i];
        out +=
            fmt::format("  - {{name: n{}, gpus: {}, cpu: {}, leaf: l{}", i, machine.gpus, machine.cores, machine.leaf);
        if (machine.can_reboot) out += ", canReboot: true";
        if (!machine.used_by.empty()) {
            out += ", usedBy: [";
            for (std::size_t u = 0; u < machine.used_by.size(); ++u)
                out += fmt::format("{}t{}", u > 0 ? ", " : "", machine.used_by[u]);
            out += "]";
        }
        out += "}\n";
    }
    out += "tenants:\n";
    for (std::size_t i = 0; i < scene.owners.size(); ++i) {
        const Owner& owner = scene.owners[i];
        out += fmt::format("  - {{name: t{}", i);
        if (owner.parent != none) out += fmt::format(", parent: t{}", owner.parent);
        // A tenant of no domain trusts no other; in a document it is alone in a domain.
        out += owner.domain != 0 ? fmt::format(", domain: d{}", owner.domain) : fmt::format(", domain: alone{}", i);
        out += fmt::format(", guarantee: {}, weight: {}", gpus(owner.guarantee), owner.weight);
        if (owner.limit != none) out += fmt::format(", limit: {}", gpus(owner.limit));
        if (owner.surplus_priority != 0) out += fmt::format(", overQuotaPriority: {}", owner.surplus_priority);
        if (owner.hard) out += ", hard: true";
        if (owner.reclaim_after != none) out += fmt::format(", reclaimMinRuntime: {}m", owner.reclaim_after);
        if (owner.preempt_after != none) out += fmt::format(", preemptMinRuntime: {}m", owner.preempt_after);
        out += "}\n";
    }
    out += "jobs:\n";
    for (std::size_t i = 0; i < scene.running.size(); ++i) out += line(scene.running[i], i + 1);
    for (std::size_t i = 0; i < scene.waiting.size(); ++i) out += line(scene.waiting[i], scene.running.size() + i + 1);
    return out;
}

}  // namespace bulkhead::referee
