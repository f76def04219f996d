#include "bulkhead/policy/proposal.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "bulkhead/policy/catalogue.hpp"
#include "bulkhead/policy/explain.hpp"
#include "bulkhead/policy/rules.hpp"
#include "bulkhead/policy/slice.hpp"

namespace bulkhead {

namespace {

using O = Objection;

// The fields a tenant may change, in the order in which we would rather see them changed: first what costs nothing,
// then how the GPU is divided, then less sharing, then a stronger tier, then less ambition.
enum class Field : std::uint8_t {
    cpu,
    nic,
    preemptible,
    priority,
    slo_resources,
    mechanism,
    share_gpu,
    share_node,
    tier,
    rdma_encrypted,
    nvme_encrypted,
    slo,
    nvlink,
    rdma,
    nvme,
    models,
    profile,
    shape,
    tasks,
    count,
    memory,
    min_tasks,
};
constexpr auto words(Field) {
    return std::to_array<Words>({"spec.cpu",
                                 "spec.network.reserved",
                                 "spec.preemptible",
                                 "spec.priority",
                                 "spec.slo.resources",
                                 "spec.gpu.mechanism",
                                 "spec.isolation.gpu",
                                 "spec.isolation.node",
                                 "spec.isolation.tier",
                                 "spec.network.encrypted",
                                 "spec.storage.encrypted",
                                 "spec.slo.level",
                                 "spec.gpu.nvlink",
                                 "spec.network.rdma",
                                 "spec.storage.localNvme",
                                 "spec.gpu.models",
                                 "spec.gpu.profile",
                                 "spec.gpu",
                                 "spec.tasks",
                                 "spec.gpu.count",
                                 "spec.memory",
                                 "spec.minTasks"});
}
using Fields = EnumSet<Field>;

constexpr Fields of_tier{Field::tier, Field::share_node};
constexpr Fields of_gpu_sharing{Field::mechanism, Field::share_gpu, Field::shape, Field::tier};
constexpr Fields of_slo_mechanism{Field::mechanism, Field::slo, Field::shape};

// Which fields could lift an objection. Too many costs time; too few would miss a proposal, and the exhaustive test
// would say so.
Fields fields_for(Objection objection) {
    switch (objection) {
        case O::shape_mechanism:
        case O::class_mechanism:
            return {Field::mechanism, Field::shape};
        case O::class_fraction:
            return {Field::shape};
        case O::class_node_sharing:
            return {Field::share_node, Field::share_gpu};
        case O::class_gpu_sharing:
            return {Field::share_gpu, Field::mechanism, Field::shape};
        case O::class_tier:
            return {Field::tier};
        case O::threat_tier:
        case O::shared_kernel:
            return of_tier | Fields{Field::share_gpu};
        case O::operator_untrusted:
        case O::compliance_confidential:
            return {Field::tier};
        case O::compliance_dedicated:
            return {Field::share_node, Field::share_gpu};
        case O::compliance_gpu:
        case O::soft_across_domains:
        case O::mig_without_vm:
        case O::distrusting_gpu:
        case O::co_residency_not_accepted:
        case O::soft_outside_tenant:
        case O::fault_domain_not_accepted:
            return of_gpu_sharing;
        case O::pair_owns_gpu:
        case O::pair_unavailable:
            return {Field::mechanism, Field::tier, Field::shape};
        case O::slo_class:
            return {Field::slo};
        case O::slo_soft_mechanism:
            return of_slo_mechanism;
        case O::slo_resource:
            return of_slo_mechanism | Fields{Field::slo_resources};
        case O::slo_guarantee:
            return {Field::slo, Field::tasks, Field::count};
        case O::slo_preemptible:
            return {Field::preemptible, Field::slo};
        case O::slo_cpu:
            return {Field::cpu, Field::slo};
        case O::slo_nic:
            return {Field::nic, Field::slo};
        case O::nvlink_mig:
        case O::nvlink_shared:
            return {Field::nvlink, Field::mechanism, Field::shape};
        case O::confidential_rdma:
            return {Field::rdma_encrypted, Field::rdma};
        case O::confidential_nvme:
            return {Field::nvme_encrypted, Field::nvme};
        case O::preemption_always:
        case O::preemption_never:
            return {Field::preemptible};
        case O::priority_class:
        case O::priority_grant:
            return {Field::priority};
        case O::quota_limit:
            return {Field::tasks, Field::count};
        case O::fleet_capacity:
            return {Field::tasks, Field::count, Field::mechanism, Field::shape, Field::share_node};
        default:
            break;
    }
    // Another kind of node might serve it if anything about it were different. Never the place: that is the tenant's
    // law.
    Fields all;
    for (const Field field : every<Field>()) all.insert(field);
    return all -
           Fields{Field::nic, Field::preemptible, Field::priority, Field::slo_resources, Field::slo, Field::min_tasks};
}

std::string shown(const GpuWorkloadSpec& spec, const Ask& ask, Field field) {
    const auto flag = [](bool truth) { return std::string{truth ? "true" : "false"}; };
    const auto or_open = [](const auto& value) { return value ? std::string{word(*value)} : "left open"; };
    switch (field) {
        case Field::cpu:
            return spec.cpu ? fmt::format("{}", *spec.cpu) : "none";
        case Field::nic:
            return flag(spec.network.reserved);
        case Field::preemptible:
            return spec.preemptible ? flag(*spec.preemptible) : "left open";
        case Field::priority:
            return spec.priority ? fmt::format("{}", *spec.priority) : "left open";
        case Field::slo_resources: {
            std::string out;
            for (const Aspect aspect : ask.slo_resources) out += (out.empty() ? "" : ", ") + std::string{word(aspect)};
            return out;
        }
        case Field::mechanism:
            return or_open(spec.gpu.mechanism);
        case Field::share_gpu:
            return or_open(spec.isolation.gpu);
        case Field::share_node:
            return or_open(spec.isolation.node);
        case Field::tier:
            return or_open(spec.isolation.tier);
        case Field::rdma_encrypted:
            return flag(spec.network.encrypted);
        case Field::nvme_encrypted:
            return flag(spec.storage.encrypted);
        case Field::slo:
            return std::string{word(spec.slo.level)};
        case Field::nvlink:
            return flag(spec.gpu.nvlink);
        case Field::rdma:
            return flag(spec.network.rdma);
        case Field::nvme:
            return spec.storage.localNvme ? print(*spec.storage.localNvme) : "none";
        case Field::models:
            return spec.gpu.models.empty() ? "any" : fmt::format("{}", fmt::join(spec.gpu.models, ", "));
        case Field::profile:
            return spec.gpu.profile;
        case Field::shape:
            return describe_request(spec.gpu);
        case Field::count:
            return fmt::format("{}", spec.gpu.count.value_or(1));
        case Field::tasks:
            return fmt::format("{}", spec.tasks);
        case Field::memory:
            return spec.memory ? print(*spec.memory) : "none";
        case Field::min_tasks:
            return spec.minTasks ? fmt::format("{}", *spec.minTasks) : "none";
    }
    return {};
}

// Exactly the fields in which two requests differ.
Fields differing(const GpuWorkloadSpec& a, const GpuWorkloadSpec& b) {
    const GpuRequest &x = a.gpu, &y = b.gpu;
    const bool another_form = x.count.has_value() != y.count.has_value() || x.fraction != y.fraction ||
                              x.memory != y.memory || x.profile.empty() != y.profile.empty();
    Fields out;
    out.insert_if(a.cpu != b.cpu, Field::cpu);
    out.insert_if(a.network.reserved != b.network.reserved, Field::nic);
    out.insert_if(a.preemptible != b.preemptible, Field::preemptible);
    out.insert_if(a.priority != b.priority, Field::priority);
    out.insert_if(a.slo.resources != b.slo.resources, Field::slo_resources);
    out.insert_if(x.mechanism != y.mechanism, Field::mechanism);
    out.insert_if(a.isolation.gpu != b.isolation.gpu, Field::share_gpu);
    out.insert_if(a.isolation.node != b.isolation.node, Field::share_node);
    out.insert_if(a.isolation.tier != b.isolation.tier, Field::tier);
    out.insert_if(a.network.encrypted != b.network.encrypted, Field::rdma_encrypted);
    out.insert_if(a.storage.encrypted != b.storage.encrypted, Field::nvme_encrypted);
    out.insert_if(a.slo.level != b.slo.level, Field::slo);
    out.insert_if(x.nvlink != y.nvlink, Field::nvlink);
    out.insert_if(a.network.rdma != b.network.rdma, Field::rdma);
    out.insert_if(a.storage.localNvme != b.storage.localNvme, Field::nvme);
    out.insert_if(x.models != y.models, Field::models);
    out.insert_if(another_form, Field::shape);
    out.insert_if(!another_form && x.profile != y.profile, Field::profile);
    out.insert_if(!another_form && x.count != y.count, Field::count);
    out.insert_if(a.tasks != b.tasks, Field::tasks);
    out.insert_if(a.memory != b.memory, Field::memory);
    out.insert_if(a.minTasks != b.minTasks, Field::min_tasks);
    return out;
}

// The largest host there is: no task can have more.
std::int64_t most_cpu(const FleetView& fleet) {
    std::int64_t most = 0;
    for (const Pool& pool : fleet.pools) most = std::max(most, pool.cpu);
    return most;
}
ByteSize most_memory(const FleetView& fleet) {
    ByteSize most;
    for (const Pool& pool : fleet.pools) most = std::max(most, pool.memory);
    return most;
}

// Whether any node could serve the tier at all: most cannot, and need not be tried further.
bool is_served(Tier tier, const FleetView& fleet) {
    return std::ranges::any_of(fleet.pools, [&](const Pool& pool) {
        const bool confidential = pool.traits.confidential == ConfidentialMode::on;
        const EnumSet<Capability> walls{Capability::virtual_machines, Capability::iommu_groups};
        return confidential == (tier == Tier::confidential_vm) &&
               (tier < Tier::vm || pool.traits.has.contains_all(walls));
    });
}

// The numbers of GPUs a task could hold whole: one, or all of some node. Largest first.
std::vector<std::int64_t> whole_counts(const FleetView& fleet) {
    std::vector<std::int64_t> counts{1};
    for (const Pool& pool : fleet.pools) counts.push_back(pool.gpus);
    std::ranges::sort(counts, std::greater{});
    counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
    return counts;
}

// Every value a field could be changed to, best first, as whole specs; `ask` is how the spec was understood.
std::vector<GpuWorkloadSpec> alternatives(const GpuWorkloadSpec& spec, const Verdict& verdict, Field field,
                                          const Asker& asker, const FleetView& fleet) {
    std::vector<GpuWorkloadSpec> out;
    out.reserve(8);  // a spec is large to move
    const Ask& ask = verdict.ask;
    const auto with = [&](auto&& change) {
        out.push_back(spec);
        change(out.back());
    };
    const auto narrower = [&](PeerTrust now, auto&& set) {
        for (int value = static_cast<int>(now) - 1; value >= 0; --value)
            with([&](GpuWorkloadSpec& s) { set(s, static_cast<PeerTrust>(value)); });
    };
    switch (field) {
        case Field::cpu:
            if (!spec.cpu) with([](auto& s) { s.cpu = 1; });
            if (spec.cpu && *spec.cpu > most_cpu(fleet) && most_cpu(fleet) > 0)
                with([&](auto& s) { s.cpu = most_cpu(fleet); });
            break;
        case Field::memory:
            if (spec.memory && *spec.memory > most_memory(fleet) && most_memory(fleet) > ByteSize{})
                with([&](auto& s) { s.memory = most_memory(fleet); });
            break;
        case Field::nic:
            if (!spec.network.reserved) with([](auto& s) { s.network.reserved = true; });
            break;
        case Field::preemptible:
            with([&](auto& s) { s.preemptible = !ask.preemptible; });
            break;
        case Field::priority: {
            const std::int64_t most = std::min(asker.circumstances.class_priority, asker.circumstances.priority_grant);
            if (ask.priority > most) with([&](auto& s) { s.priority = most; });
            break;
        }
        case Field::slo_resources: {
            GpuWorkloadSpec kept = spec;
            kept.slo.resources.clear();
            const bool fraction = ask.is_fraction() && can_back_a_fraction(ask.mechanism);
            const MechanismEntry& entry = entry_of(ask.mechanism, fraction);
            for (const Aspect aspect : ask.slo_resources)
                if (entry.claims[static_cast<std::size_t>(aspect)].strength == Strength::hard)
                    kept.slo.resources.push_back(aspect);
            if (!kept.slo.resources.empty()) out.push_back(std::move(kept));
            break;
        }
        case Field::mechanism:
            for (const Mechanism mechanism : asker.tenant_class->spec.mechanisms)
                if (mechanism != ask.mechanism) with([&](auto& s) { s.gpu.mechanism = mechanism; });
            break;
        case Field::share_gpu:
            narrower(ask.share_gpu, [](auto& s, PeerTrust to) { s.isolation.gpu = to; });
            break;
        case Field::share_node:
            narrower(ask.share_node, [](auto& s, PeerTrust to) { s.isolation.node = to; });
            break;
        case Field::tier:
            for (const Tier tier : every<Tier>())
                if (tier > ask.tier && is_served(tier, fleet)) with([&](auto& s) { s.isolation.tier = tier; });
            break;
        case Field::rdma_encrypted:
            if (spec.network.rdma && !spec.network.encrypted) with([](auto& s) { s.network.encrypted = true; });
            break;
        case Field::nvme_encrypted:
            if (spec.storage.localNvme && !spec.storage.encrypted) with([](auto& s) { s.storage.encrypted = true; });
            break;
        case Field::slo:
            if (spec.slo.level == Slo::hard) with([](auto& s) { s.slo.level = Slo::soft; });
            break;
        case Field::nvlink:
            if (spec.gpu.nvlink) with([](auto& s) { s.gpu.nvlink = false; });
            break;
        case Field::rdma:
            if (spec.network.rdma) with([](auto& s) { s.network.rdma = false; });
            break;
        case Field::nvme:
            if (spec.storage.localNvme) with([](auto& s) { s.storage.localNvme.reset(); });
            break;
        case Field::models:
            if (!spec.gpu.models.empty()) with([](auto& s) { s.gpu.models.clear(); });
            break;
        case Field::profile:  // names differ from board to board: offer what the fleet's boards have
            if (spec.gpu.profile.empty()) break;
            for (const Pool& pool : fleet.pools)
                for (const std::string& profile : profiles_like(pool.silicon, spec.gpu.profile))
                    if (profile != spec.gpu.profile) with([&](auto& s) { s.gpu.profile = profile; });
            break;
        case Field::shape: {
            if (ask.form == Form::count) break;
            std::vector<std::int64_t> counts = whole_counts(fleet);
            std::ranges::reverse(counts);  // a whole GPU is at least what any part of one was; more only if it must be
            for (const std::int64_t count : counts)
                with([&](auto& s) {
                    s.gpu.profile.clear();
                    s.gpu.fraction.reset();
                    s.gpu.memory.reset();
                    s.gpu.count = count;
                });
            break;
        }
        case Field::count:
            for (const std::int64_t count : whole_counts(fleet))
                if (ask.form == Form::count && count != ask.gpus_per_task) with([&](auto& s) { s.gpu.count = count; });
            break;
        case Field::tasks: {
            const std::int64_t per_task = std::max<std::int64_t>(1, ask.units / spec.tasks);
            std::int64_t most = verdict.tasks_possible > 0 ? verdict.tasks_possible : spec.tasks;
            if (asker.circumstances.limit) most = std::min(most, *asker.circumstances.limit / per_task);
            if (spec.slo.level == Slo::hard) most = std::min(most, asker.circumstances.guarantee / per_task);
            if (most >= 1 && most < spec.tasks)
                with([&](auto& s) {
                    s.tasks = most;
                    if (s.minTasks) s.minTasks = std::min(*s.minTasks, most);
                });
            break;
        }
        case Field::min_tasks:
            break;  // follows tasks
    }
    return out;
}

// Depth-first for the smallest number of changes: any solution must change a field that the first standing objection
// hangs on, so only those are branched on.
class Searcher {
public:
    Searcher(const Asker& asker, const FleetView& fleet) : asker_(asker), fleet_(fleet) {}

    std::optional<GpuWorkloadSpec> within(int changes, const GpuWorkloadSpec& spec, const Verdict& verdict,
                                          Fields changed) {
        if (verdict.accepted()) return spec;
        if (changes == 0) return std::nullopt;
        const Fields open = fields_for(verdict.standing_in_the_way().first()) - changed;
        for (const Field field : open)
            for (GpuWorkloadSpec& next : alternatives(spec, verdict, field, asker_, fleet_)) {
                if (--budget_ < 0) return std::nullopt;
                Fields now = changed;
                now.insert(field);
                if (field == Field::shape) now = now | Fields{Field::profile, Field::count};
                const Verdict judged = judge(next, asker_, fleet_);
                if (auto found = within(changes - 1, next, judged, now)) return found;
            }
        return std::nullopt;
    }

    bool budget_spent() const { return budget_ < 0; }

private:
    const Asker& asker_;
    const FleetView& fleet_;
    int budget_ = 20'000;
};

// Whether anything at all would be accepted: every way to divide, every tier not weaker, and otherwise the most modest
// request there is. Sharing less, promising less and needing less never adds an objection, so a no here is final.
bool anything_acceptable(const GpuWorkloadSpec& asked, const Verdict& verdict, const Asker& asker,
                         const FleetView& fleet) {
    GpuWorkloadSpec modest = asked;
    modest.tasks = 1;
    modest.minTasks.reset();
    // What nobody has, nobody asks for.
    if (modest.cpu) modest.cpu = std::min(*modest.cpu, most_cpu(fleet));
    if (modest.cpu == 0) modest.cpu.reset();
    if (modest.memory) modest.memory = std::min(*modest.memory, most_memory(fleet));
    if (modest.memory == ByteSize{}) modest.memory.reset();
    modest.isolation.node = modest.isolation.gpu = PeerTrust::same_tenant;
    modest.slo = {};
    modest.network = {};
    modest.storage = {};
    modest.priority = 0;
    modest.preemptible.reset();
    modest.gpu.nvlink = false;
    modest.gpu.models.clear();
    std::vector<GpuWorkloadSpec> shapes{modest};
    for (const Field field : {Field::profile, Field::shape, Field::count})
        for (GpuWorkloadSpec& other : alternatives(modest, verdict, field, asker, fleet))
            shapes.push_back(std::move(other));
    for (GpuWorkloadSpec& spec : shapes)
        for (const Mechanism mechanism : asker.tenant_class->spec.mechanisms) {
            if (!form_fits(form_of(spec.gpu), mechanism)) continue;
            for (const Tier tier : every<Tier>()) {
                if (tier < asked.isolation.tier.value_or(Tier::process) || pair_of(mechanism, tier).fit != Fit::yes ||
                    !is_served(tier, fleet))
                    continue;
                spec.gpu.mechanism = mechanism;
                spec.isolation.tier = tier;
                if (judge(spec, asker, fleet).accepted()) return true;
            }
        }
    return false;
}

}  // namespace

Search nearest_acceptable(const GpuWorkload& workload, const Asker& asker, const FleetView& fleet,
                          const Verdict& verdict) {
    constexpr int most_changes = 8;
    if (!anything_acceptable(workload.spec, verdict, asker, fleet)) return {};
    Searcher searcher{asker, fleet};
    for (int changes = 1; changes <= most_changes; ++changes) {
        const auto found = searcher.within(changes, workload.spec, verdict, {});
        if (!found) {
            if (searcher.budget_spent()) return {.budget_spent = true};
            continue;
        }
        const Verdict accepted = judge(*found, asker, fleet);
        Proposal proposal{.request = workload};
        proposal.request.spec = *found;
        for (const Field field : differing(workload.spec, *found))
            proposal.changes.push_back({.field = std::string{word(field)},
                                        .from = shown(workload.spec, verdict.ask, field),
                                        .to = shown(*found, accepted.ask, field)});
        return {.proposal = std::move(proposal)};
    }
    return {};
}

}  // namespace bulkhead
