#include "bulkhead/shell/tenant_metrics.hpp"

#include <algorithm>
#include <set>

#include "bulkhead/policy/guarantee.hpp"
#include "bulkhead/shell/device_metrics.hpp"

namespace bulkhead::shell {

namespace {

using Type = Exposition::Type;

struct Standing {                                    // of one tenant, now
    std::int64_t held = 0;                           // Gpus::units, of leases that are not ending
    std::map<LeasePhase, std::int64_t> open_micros;  // GPU-seconds so far of leases that are not closed
    std::map<LeasePhase, std::uint64_t> leases;
    std::uint64_t waiting = 0, refused = 0;
    std::int64_t oldest_wait_ms = 0;
    std::map<std::string, std::uint64_t> waiting_by_cause;
};

Instant began(const GpuLeaseStatus& status, Instant now) {
    switch (status.phase) {
        case LeasePhase::preparing:
            return status.boundAt.value_or(now);
        case LeasePhase::active:
            return status.activeAt.value_or(now);
        case LeasePhase::ending:
        case LeasePhase::closed:
            break;
    }
    return status.endedAt.value_or(now);
}

void add(Standing& of, const GpuLeaseStatus& status, Instant now) {
    ++of.leases[status.phase];
    if (status.phase != LeasePhase::ending) of.held += status.gpus.units;
    of.open_micros[status.phase] +=
        std::max<std::int64_t>(0, (now - began(status, now)).ms) * status.gpus.units / (gpu_unit / 1000);
}

std::map<std::string, Standing> standings(const Census::Taken& census, Instant now) {
    std::map<std::string, Standing> out;
    for (const auto& tenant : census.tenants) out[tenant->metadata.name];
    for (const auto& lease : census.leases)
        if (lease->status) add(out[lease->spec.tenant], *lease->status, now);
    for (const auto& workload : census.workloads) {
        Standing& of = out[workload->tenant];
        if (workload->phase == WorkloadPhase::refused) ++of.refused;
        if (workload->phase != WorkloadPhase::pending) continue;
        ++of.waiting;
        if (workload->since) of.oldest_wait_ms = std::max(of.oldest_wait_ms, (now - *workload->since).ms);
        for (const std::string& cause : workload->causes) ++of.waiting_by_cause[cause];
    }
    return out;
}

void tell_standing(Exposition& out, const std::string& with, const Standing& of) {
    out.family("bulkhead_tenant_gpus_held", Type::gauge, "GPUs that its leases hold, those that end left out.")
        .add(with, decimal(Gpus{of.held}));
    auto& leases = out.family("bulkhead_tenant_leases", Type::gauge, "Its leases, by phase.");
    auto& open = out.family("bulkhead_tenant_open_gpu_seconds", Type::gauge,
                            "GPU-seconds so far, in the phase they are in, of leases that are not closed.");
    for (const LeasePhase phase : {LeasePhase::preparing, LeasePhase::active, LeasePhase::ending}) {
        const std::string of_phase = with_label(with, "phase", word(phase));
        const auto count = of.leases.find(phase);
        leases.add(of_phase, count == of.leases.end() ? 0 : count->second);
        const auto micros = of.open_micros.find(phase);
        open.add(of_phase, decimal(micros == of.open_micros.end() ? 0 : micros->second, 6));
    }
    out.family("bulkhead_tenant_waiting_workloads", Type::gauge, "Its workloads that wait for a lease.")
        .add(with, of.waiting);
    out.family("bulkhead_tenant_refused_workloads", Type::gauge, "Its workloads that policy refuses as things are.")
        .add(with, of.refused);
    out.family("bulkhead_tenant_oldest_wait_seconds", Type::gauge, "How long the first of those has waited.")
        .add(with, decimal(of.oldest_wait_ms, 3));
}

// In GPUs. Figures know nodes by their number of GPUs alone: of a guarantee in nodes the smallest node of the fleet
// counts, wherever it stands.
Gpus guarantee_in_gpus(Tenant tenant, const Census::Taken& census) {
    if (tenant.spec.quota.guaranteeUnit == "gpu") return tenant.spec.quota.guarantee;
    tenant.spec.placement = {};
    Snapshot nodes;
    for (const auto& facts : census.nodes) {
        if (facts->gpus == 0) continue;
        nodes.nodes.emplace_back().status.gpus.push_back({.model = "", .count = facts->gpus, .slices = {}});
    }
    return guaranteed_gpus(tenant, nodes);
}

void tell_quota(Exposition& out, const std::string& with, const Tenant& tenant, const Census::Taken& census) {
    const Quota& quota = tenant.spec.quota;
    out.family("bulkhead_tenant_guarantee_gpus", Type::gauge, "GPUs that are its own whenever it wants them.")
        .add(with, decimal(guarantee_in_gpus(tenant, census)));
    if (quota.limit)
        out.family("bulkhead_tenant_limit_gpus", Type::gauge, "The most it may ever hold; none: there is no limit.")
            .add(with, decimal(*quota.limit));
}

void tell_past(Exposition& out, const std::string& with, const Ledger::OfTenant& of) {
    auto& goodput = out.family("bulkhead_tenant_goodput_gpu_seconds_total", Type::counter,
                               "GPU-seconds in which work ran that was not lost later, of leases that were closed "
                               "since this server started.");
    auto& all = out.family("bulkhead_tenant_gpu_seconds_total", Type::counter,
                           "GPU-seconds of leases that were closed since this server started, by what came of them.");
    for (const Knowledge kind : {Knowledge::measurement, Knowledge::estimate}) {
        const auto kept = of.micros.find({Fate::kept, kind});
        goodput.add(with_label(with, "kind", word(kind)), decimal(kept == of.micros.end() ? 0 : kept->second, 6));
    }
    for (const auto& [what, micros] : of.micros)
        all.add(with_label(with_label(with, "outcome", word(what.first)), "kind", word(what.second)),
                decimal(micros, 6));
    out.family("bulkhead_tenant_leases_closed_total", Type::counter,
               "Its leases that were closed since this server started.")
        .add(with, of.closed);
    for (const auto& [cause, interrupted] : of.interrupted) {
        const std::string by = with_label(with, "cause", word(cause));
        out.family("bulkhead_tenant_interruptions_total", Type::counter,
                   "Leases that ended under work that is run again, by cause.")
            .add(by, interrupted.leases);
        out.family("bulkhead_tenant_lost_gpu_seconds_total", Type::counter,
                   "GPU-seconds of work that was lost with them, at most.")
            .add(with_label(by, "kind", word(Knowledge::estimate)), decimal(interrupted.lost_micros, 6));
    }
}

const Ledger::OfTenant& past_of(const Ledger::Books& books, const std::string& tenant) {
    static const Ledger::OfTenant none;
    const auto found = books.tenants.find(tenant);
    return found == books.tenants.end() ? none : found->second;
}

}  // namespace

void tell_tenants(Exposition& out, const TenantFigures& figures) {
    const auto all = standings(figures.census, figures.now);
    for (const auto& tenant : figures.census.tenants) {
        const std::string& name = tenant->metadata.name;
        const std::string with = labels({{"tenant", name}});
        const Standing& of = all.at(name);
        tell_standing(out, with, of);
        tell_quota(out, with, *tenant, figures.census);
        tell_past(out, with, past_of(figures.books, name));
        auto& waiting = out.family("bulkhead_tenant_waiting", Type::gauge,
                                   "Its workloads that wait, by what the scheduler names as a cause; one may have "
                                   "several.");
        for (const auto& [cause, count] : of.waiting_by_cause)
            waiting.add(with_label(with_label(with, "cause", cause), "kind", word(Knowledge::estimate)), count);
    }
}

void tell_contention(Exposition& out, const TenantFigures& figures) {
    struct Cause {
        std::string_view word;
        std::uint64_t bits;
    };
    static constexpr Cause causes[] = {{"power", clocks_by_power_cap},
                                       {"heat", clocks_by_sw_thermal | clocks_by_hw_thermal},
                                       {"power-brake", clocks_by_power_brake}};
    auto& held_back = out.family("bulkhead_gpu_clocks_held_back", Type::gauge,
                                 "1: the driver says that clocks are lower for this cause. Of the GPU a measurement; "
                                 "whose work is the cause it does not say.");
    std::map<std::pair<std::string, std::int64_t>, std::vector<std::string_view>> now_held;  // by node and GPU
    for (const auto& [node, sampled] : figures.samples)
        for (const GpuSample& gpu : sampled.telemetry->gpus)
            for (const Measured& reading : gpu.readings) {
                if (reading.counter != Counter::clock_reasons) continue;
                for (const Cause& cause : causes) {
                    const bool holds = (reading.value & cause.bits) != 0;
                    held_back.add(labels({{"Hostname", node},
                                          {"gpu", std::to_string(gpu.gpu)},
                                          {"cause", cause.word},
                                          {"kind", word(Knowledge::measurement)},
                                          {"grade", word(sampled.telemetry->grade)}}),
                                  holds ? 1 : 0);
                    if (holds) now_held[{node, gpu.gpu}].push_back(cause.word);
                }
            }
    std::map<std::pair<std::string, std::string_view>, std::set<std::pair<std::string, std::int64_t>>> suffering;
    for (const auto& lease : figures.census.leases) {
        if (!lease->status || lease->status->phase != LeasePhase::active) continue;
        for (const LeasedSlice& slice : lease->spec.slices)
            if (const auto held = now_held.find({slice.node, slice.gpu}); held != now_held.end())
                for (const std::string_view cause : held->second)
                    suffering[{lease->spec.tenant, cause}].insert(held->first);
    }
    auto& by_tenant = out.family("bulkhead_tenant_gpus_held_back", Type::gauge,
                                 "GPUs with work of this tenant whose clocks are held back, by cause; on a GPU that "
                                 "several share it counts for each of them, so whose fault it is stays an estimate.");
    for (const auto& [what, gpus] : suffering)
        by_tenant.add(labels({{"tenant", what.first}, {"cause", what.second}, {"kind", word(Knowledge::estimate)}}),
                      gpus.size());
}

void tell_tenant(Exposition& out, const std::string& tenant, const TenantFigures& figures) {
    Standing of;
    std::vector<std::shared_ptr<const GpuLease>> own;
    for (const auto& lease : figures.census.leases)
        if (lease->spec.tenant == tenant) own.push_back(lease);
    for (const auto& workload : figures.census.workloads) {
        if (workload->tenant != tenant) continue;
        if (workload->phase == WorkloadPhase::refused) ++of.refused;
        if (workload->phase != WorkloadPhase::pending) continue;
        ++of.waiting;
        if (workload->since) of.oldest_wait_ms = std::max(of.oldest_wait_ms, (figures.now - *workload->since).ms);
        // Whether it waits for its own limit or for room is its own business; whose the room is, is not.
        const bool own_limit = workload->causes.contains("quota") || workload->causes.contains("frozen");
        ++of.waiting_by_cause[own_limit ? "own-limit" : "room"];
    }
    const std::string with = labels({{"tenant", tenant}});
    auto& held = out.family("bulkhead_lease_gpus", Type::gauge, "GPUs of each of its leases.");
    auto& ran =
        out.family("bulkhead_lease_phase_seconds", Type::gauge, "How long each has been in the phase it is in.");
    for (const auto& lease : own) {
        if (!lease->status) continue;
        add(of, *lease->status, figures.now);
        const std::string of_lease = labels({{"lease", lease->metadata.name},
                                             {"workload", lease->spec.workload},
                                             {"phase", word(lease->status->phase)}});
        held.add(of_lease, decimal(lease->status->gpus));
        ran.add(of_lease, decimal(std::max<std::int64_t>(0, (figures.now - began(*lease->status, figures.now)).ms), 3));
    }
    tell_standing(out, with, of);
    for (const auto& one : figures.census.tenants)
        if (one->metadata.name == tenant) tell_quota(out, with, *one, figures.census);
    tell_past(out, with, past_of(figures.books, tenant));
    auto& waiting =
        out.family("bulkhead_tenant_waiting", Type::gauge, "Its workloads that wait, for its own limit or for room.");
    for (const auto& [cause, count] : of.waiting_by_cause)
        waiting.add(with_label(with_label(with, "cause", cause), "kind", word(Knowledge::estimate)), count);
    tell_own_devices(out, figures.samples, own);
}

}  // namespace bulkhead::shell
