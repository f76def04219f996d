#include "bulkhead/policy/verdict.hpp"

#include <algorithm>
#include <span>

#include "bulkhead/policy/catalogue.hpp"
#include "bulkhead/policy/rules.hpp"
#include "bulkhead/policy/slice.hpp"

namespace bulkhead {

namespace {

// What a hard service level is about when the request does not say.
constexpr EnumSet<Aspect> usual_slo_resources{Aspect::sm, Aspect::l2, Aspect::memory_capacity,
                                              Aspect::memory_bandwidth};

bool preemptible_by_default(const GpuWorkloadSpec& spec, Preemption preemption) {
    switch (preemption) {
        case Preemption::never:
            return false;
        case Preemption::always:
            return true;
        case Preemption::allowed:
            return spec.slo.level == Slo::soft;
    }
    return false;
}

// Everything of the ask that does not depend on a choice.
Ask fixed_part(const GpuWorkloadSpec& spec, const Asker& asker) {
    const TenantClassSpec& sells = asker.tenant_class->spec;
    Ask ask{.form = form_of(spec.gpu),
            .slo = spec.slo.level,
            .preemptible = spec.preemptible.value_or(preemptible_by_default(spec, sells.preemption)),
            .nvlink = spec.gpu.nvlink,
            .rdma = spec.network.rdma,
            .rdma_encrypted = spec.network.encrypted,
            .nvme = spec.storage.localNvme.has_value(),
            .nvme_encrypted = spec.storage.encrypted,
            .cpu_reserved = spec.cpu.has_value(),
            .nic_reserved = spec.network.reserved,
            .priority = spec.priority.value_or(std::min(sells.priority.usual, asker.tenant->spec.priorityGrant)),
            .gpus_per_task = spec.gpu.count.value_or(1)};
    if (spec.slo.level == Slo::hard) {
        for (const Aspect aspect : spec.slo.resources) ask.slo_resources.insert(aspect);
        if (ask.slo_resources.empty()) ask.slo_resources = usual_slo_resources;
    }
    return ask;
}

bool names_any(const std::vector<std::string>& allowed, std::string_view name) {
    return allowed.empty() || std::ranges::find(allowed, name) != allowed.end();
}

Objections objections_of_place(const GpuWorkloadSpec& spec, const Asker& asker, const Pool& pool) {
    Objections out;
    const Whereabouts& tenants = asker.tenant->spec.placement;
    out.insert_if(pool.closed, Objection::node_closed);
    out.insert_if(!names_any(tenants.sites, pool.site) || !names_any(spec.placement.sites, pool.site),
                  Objection::node_site);
    out.insert_if(!names_any(tenants.jurisdictions, pool.jurisdiction) ||
                      !names_any(spec.placement.jurisdictions, pool.jurisdiction),
                  Objection::node_jurisdiction);
    out.insert_if(!names_any(spec.gpu.models, pool.model), Objection::node_model);
    out.insert_if(spec.cpu.value_or(0) > pool.cpu || spec.memory.value_or(ByteSize{}) > pool.memory,
                  Objection::node_host);
    return out;
}

struct Offer {  // what a pool makes of the request, whatever the tier
    Objections place;
    std::optional<SliceFacts> slice;
};

// By GPUs, and by the host's cores and memory where the request reserves them.
std::int64_t tasks_on_node(const GpuWorkloadSpec& spec, const Ask& ask, const SliceFacts& slice, const Pool& pool) {
    std::int64_t tasks = (pool.gpus / ask.gpus_per_task) * slice.per_gpu;
    if (spec.cpu.value_or(0) > 0) tasks = std::min(tasks, pool.cpu / *spec.cpu);
    if (spec.memory && spec.memory->bytes > 0) tasks = std::min(tasks, pool.memory.bytes / spec.memory->bytes);
    return tasks;
}

// What quota counts: the most that any pool which may serve it would take; where none may, what the request says
// itself.
std::int64_t units_of(const GpuWorkloadSpec& spec, std::int64_t tasks, const std::vector<Offer>& offers,
                      const std::vector<Objections>& on_pool) {
    std::int64_t serving = 0, anywhere = 0;
    for (std::size_t i = 0; i < offers.size(); ++i) {
        if (!offers[i].slice) continue;
        const std::int64_t here = offers[i].slice->units(tasks);
        anywhere = std::max(anywhere, here);
        if (on_pool[i].empty()) serving = std::max(serving, here);
    }
    if (serving > 0) return serving;
    if (spec.gpu.fraction) return std::max(anywhere, spec.gpu.fraction->units * tasks);
    return spec.gpu.count ? gpu_unit * *spec.gpu.count * tasks : anywhere;
}

Verdict try_ask(const Ask& ask, const GpuWorkloadSpec& spec, const Asker& asker, const FleetView& fleet,
                const std::vector<Offer>& offers) {
    Verdict verdict{.ask = ask};
    verdict.on_pool.reserve(offers.size());
    bool any_pool = false;
    for (std::size_t i = 0; i < offers.size(); ++i) {
        const Pool& pool = fleet.pools[i];
        Objections objections = offers[i].place | objections_on(ask, asker.circumstances, pool.traits);
        objections.insert_if(ask.gpus_per_task > pool.gpus, Objection::node_gpus);
        objections.insert_if(!offers[i].slice, Objection::node_profile);
        verdict.on_pool.push_back(objections);
        if (!objections.empty()) continue;
        any_pool = true;
        verdict.tasks_possible +=
            tasks_on_node(spec, ask, *offers[i].slice, pool) * static_cast<std::int64_t>(pool.nodes.size());
    }
    verdict.short_of_capacity = any_pool && verdict.tasks_possible < spec.minTasks.value_or(spec.tasks);
    verdict.ask.units = units_of(spec, spec.tasks, offers, verdict.on_pool);
    verdict.ask.least_units = units_of(spec, spec.minTasks.value_or(spec.tasks), offers, verdict.on_pool);
    verdict.to_request = objections_to(verdict.ask, asker.circumstances);
    return verdict;
}

std::vector<Mechanism> mechanisms_left_open(const GpuWorkloadSpec& spec, const TenantClassSpec& sells) {
    std::vector<Mechanism> able;  // to refuse a slice because a whole GPU is none would explain nothing
    for (const Mechanism mechanism : sells.mechanisms)
        if (form_fits(form_of(spec.gpu), mechanism)) able.push_back(mechanism);
    return able.empty() ? sells.mechanisms : able;
}

// The scopes to try, widest first: what was asked for and nothing else, or everything from the widest down.
struct Scopes {
    int widest, narrowest;
    Scopes(std::optional<PeerTrust> asked, PeerTrust up_to)
        : widest(static_cast<int>(asked.value_or(up_to))), narrowest(asked ? widest : 0) {}
};

// How far a verdict is from an acceptance: what the rules say of the request first, then what nodes lack.
std::pair<int, int> distance(const Verdict& verdict) {
    return {verdict.to_request.size(), verdict.standing_in_the_way().size()};
}

}  // namespace

Form form_of(const GpuRequest& gpu) {
    if (gpu.fraction || gpu.memory) return Form::fraction;
    return gpu.profile.empty() ? Form::count : Form::profile;
}

Objections Verdict::standing_in_the_way() const {
    Objections all = to_request;
    if (short_of_capacity) all.insert(Objection::fleet_capacity);
    if (!std::ranges::any_of(on_pool, [](Objections o) { return o.empty(); }))
        for (const Objections objections : on_pool) all = all | objections;
    if (on_pool.empty()) all.insert(Objection::fleet_capacity);
    return all;
}

Verdict judge(const GpuWorkloadSpec& spec, const Asker& asker, const FleetView& fleet) {
    const TenantClassSpec& sells = asker.tenant_class->spec;
    const Ask fixed = fixed_part(spec, asker);
    // Inside one organisation a domain is the widest sharing worth offering unasked; elsewhere whatever the class
    // sells.
    const PeerTrust widest =
        fleet.policy.threatModel == ThreatModel::internal ? PeerTrust::same_domain : PeerTrust::distrusting;
    // An exception is for those who ask for the weaker tier; nobody is put there unasked.
    Circumstances unexcepted = asker.circumstances;
    unexcepted.exception.reset();
    std::optional<Verdict> best;
    std::vector<Offer> offers(fleet.pools.size());
    for (std::size_t i = 0; i < offers.size(); ++i) offers[i].place = objections_of_place(spec, asker, fleet.pools[i]);
    std::vector<Mechanism> left_open;
    if (!spec.gpu.mechanism) left_open = mechanisms_left_open(spec, sells);
    const std::span<const Mechanism> to_try =
        spec.gpu.mechanism ? std::span{&*spec.gpu.mechanism, 1} : std::span<const Mechanism>{left_open};
    for (const Mechanism mechanism : to_try) {
        bool part_of_instance = false;
        for (std::size_t i = 0; i < offers.size(); ++i) {
            offers[i].slice = slice_on(fleet.pools[i].silicon, spec.gpu, mechanism);
            part_of_instance |= offers[i].slice && offers[i].slice->part_of_instance;
        }
        const Scopes nodes{spec.isolation.node, std::min(widest, sells.sharing.node)};
        for (int n = nodes.widest; n >= nodes.narrowest; --n) {
            const auto node = static_cast<PeerTrust>(n);
            const Scopes gpus{spec.isolation.gpu, std::min(node, sells.sharing.gpu)};
            for (int g = gpus.widest; g >= gpus.narrowest; --g) {
                const auto gpu = static_cast<PeerTrust>(g);
                for (const Tier tier : every<Tier>()) {
                    if (spec.isolation.tier ? tier != *spec.isolation.tier : tier < required_tier(node, unexcepted))
                        continue;
                    Ask ask = fixed;
                    ask.mechanism = mechanism;
                    ask.tier = tier;
                    ask.part_of_instance = part_of_instance;
                    ask.share_node = node;
                    // Who is on the GPU is on the node, so where the two contradict each other the narrower holds.
                    ask.share_gpu = mechanism == Mechanism::whole ? PeerTrust::same_tenant : std::min(gpu, node);
                    Verdict verdict = try_ask(ask, spec, asker, fleet, offers);
                    if (verdict.accepted()) return verdict;
                    if (!best || distance(verdict) < distance(*best)) best = std::move(verdict);
                }
            }
        }
    }
    return *std::move(best);
}

}  // namespace bulkhead
