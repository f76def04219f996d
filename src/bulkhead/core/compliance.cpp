// The compliance switch: what would change is said first, and the switch is for leases to come. Who runs keeps what it
// was given under, either way.
#include <fmt/core.h>

#include <algorithm>

#include "bulkhead/codec/print.hpp"
#include "bulkhead/core/state.hpp"
#include "bulkhead/meter/cost.hpp"
#include "bulkhead/meter/rates.hpp"

namespace bulkhead {

namespace {

constexpr std::size_t most_works_shown = 200;

// Work that is, was or could be asked for: where there is none, one GPU as the class gives it.
std::vector<GpuWorkload> works_of(const Core::State& state, const std::string& tenant) {
    std::vector<GpuWorkload> out;
    for (const auto& [key, run] : state.workloads)
        if (run.object.spec.tenant == tenant && !run.object.status->is_over() && out.size() < most_works_shown)
            out.push_back(run.object);
    if (out.empty()) {
        GpuWorkload any;
        any.metadata.name = "any-work";
        any.spec.tenant = tenant;
        any.spec.gpu.count = 1;
        out.push_back(any);
    }
    return out;
}

struct PriceShown {
    std::string model;
    meter::Wide base = 0, surcharge = 0;  // for an hour of the whole gang
};

std::vector<PriceShown> prices_of(const Pricing& pricing, const Contract& contract, const GpuWorkload& workload,
                                  Instant now) {
    std::vector<PriceShown> out;
    const GpuRequest& asked = workload.spec.gpu;
    const std::int64_t each = asked.fraction ? asked.fraction->units : Gpus::whole(asked.count.value_or(1)).units;
    for (const Slice& slice : contract.slices) {
        Metered metered{.tenantClass = contract.tenantClass};
        metered.units = {{slice.model, asked.profile, contract.fraction, Gpus{each * workload.spec.tasks}}};
        const auto rates = meter::rates_for(pricing, metered, now, now + Duration{1});
        if (rates.empty() || rates.back().prices.empty()) continue;
        const meter::Span hour{3'600'000, metered.units[0].units, rates.back().prices[0].perHour};
        const bool on = contract.compliance != Compliance::off;
        out.push_back(
            {slice.model, meter::base_cost(hour), on ? meter::surcharge_cost(hour, rates.back().surchargePercent) : 0});
    }
    return out;
}

void write_side(JsonWriter& out, std::string_view key, const Decision& decision, const GpuWorkload& workload,
                const Pricing& pricing, Instant now) {
    out.key(key);
    out.begin_object();
    if (const Refusal* refusal = std::get_if<Refusal>(&decision)) {
        out.key("refused");
        out.begin_array();
        for (const Objected& objection : refusal->objections) out.value(objection.says);
        if (refusal->objections.empty()) out.value("no node can serve it");
        out.end_array();
        return out.end_object();
    }
    const Contract& contract = std::get<Contract>(decision);
    out.member("tier", word(contract.tier));
    out.member("mechanism", word(contract.mechanism));
    out.member("node", word(contract.sharing.node));
    out.member("gpu", word(contract.sharing.gpu));
    out.member("handover", word(contract.handover));
    out.member("nodes", static_cast<std::int64_t>(contract.nodes.size()));
    out.key("reclaim");
    out.begin_array();
    for (const ReclaimStep& step : contract.reclaim) out.value(step.name);
    out.end_array();
    out.key("evidence");
    out.begin_array();
    for (const ReliedOn& relied : contract.reliesOn)
        out.value(fmt::format("{} ({})", word(relied.capability), word(relied.grade)));
    out.end_array();
    out.member("surchargePercent", contract.surchargePercent);
    out.key("perHour");
    out.begin_array();
    for (const PriceShown& price : prices_of(pricing, contract, workload, now)) {
        out.begin_object();
        out.member("model", price.model);
        out.member("currency", pricing.currency);
        out.member("base", meter::print_amount(price.base));
        out.member("surcharge", meter::print_amount(price.surcharge));
        out.end_object();
    }
    out.end_array();
    out.end_object();
}

// What the switch does to leases that run: nothing, and that is said of each.
void write_running(JsonWriter& out, const Core::State& state, const Tenant& tenant, Compliance wanted) {
    out.key("running");
    out.begin_array();
    for (const auto& [key, lease] : state.leases) {
        const GpuLeaseStatus& status = *lease.object.status;
        if (lease.object.spec.tenant != tenant.metadata.name ||
            (status.phase != LeasePhase::active && status.phase != LeasePhase::preparing))
            continue;
        const Compliance under = status.metered ? status.metered->compliance : Compliance::off;
        out.begin_object();
        out.member("lease", lease.object.metadata.name);
        out.member("workload", lease.object.spec.workload);
        out.member("compliance", word(under));
        out.member("says", under == wanted ? "it runs so already"
                           : under == Compliance::off
                               ? "not covered: it began without; start it again to be covered"
                               : "it keeps the mode it began with, and its surcharge, to its end");
        out.end_object();
    }
    out.end_array();
}

}  // namespace

void on_compliance(Turn& turn, const command::SetCompliance& wanted, Answer& answer) {
    Core::State& state = turn.state;
    refresh_declared(turn);
    const auto found = state.tenants.find(wanted.tenant);
    if (found == state.tenants.end() || !turn.rights.may(Permission::read_tenant, wanted.tenant)) {
        answer.outcome = there_is_no("Tenant", wanted.tenant);
        return;
    }
    Tenant changed = found->second.object;
    const Compliance before = changed.spec.compliance;
    changed.spec.compliance = wanted.mode;
    // Before any of it is worked out: it is not little work.
    const bool only_asks = wanted.dry_run && turn.rights.may(Permission::read_fleet);
    if (auto allowed = permitted(turn.rights, &found->second.object, changed); !allowed && !only_asks) {
        answer.forbidden = allowed.error().code == Code::denied;
        answer.outcome = std::move(allowed);
        return;
    }

    JsonWriter out{JsonLayout::compact};
    out.begin_object();
    out.member("tenant", wanted.tenant);
    out.member("from", word(before));
    out.member("to", word(wanted.mode));
    out.member("result", before == wanted.mode ? "unchanged" : wanted.dry_run ? "would change" : "changed");
    Snapshot candidate = state.declared;
    for (Tenant& one : candidate.tenants)
        if (one.metadata.name == wanted.tenant) one.spec.compliance = wanted.mode;
    const Compiler compiler{candidate, turn.now};
    const Pricing pricing = state.policy ? state.policy->object.spec.pricing : Pricing{};
    out.key("work");
    out.begin_array();
    for (const GpuWorkload& workload : works_of(state, wanted.tenant)) {
        out.begin_object();
        out.member("workload", workload.metadata.name);
        write_side(out, "before", state.compiler->compile(workload, turn.audience()), workload, pricing, turn.now);
        write_side(out, "after", compiler.compile(workload, turn.audience()), workload, pricing, turn.now);
        out.end_object();
    }
    out.end_array();
    write_running(out, state, changed, wanted.mode);
    out.end_object();

    // The whole object goes the way every object goes, with every check on that way.
    command::Apply apply{.objects = {changed}, .mode = command::Mode::replace, .dry_run = wanted.dry_run};
    turn.why = wanted.why;
    apply_objects(turn, apply, answer);
    if (!answer.outcome) return;
    answer.body = out.take();
    answer.created = false;
    state.cycle_wanted = state.cycle_wanted || !wanted.dry_run;
}

void note_switch(Turn& turn, const Tenant& tenant, Compliance before) {
    const Compliance after = tenant.spec.compliance;
    if (before == after) return;
    const Pricing pricing = turn.state.policy ? turn.state.policy->object.spec.pricing : Pricing{};
    turn.log(
        {.kind = after == Compliance::off ? evidence::RecordKind::compliance_off : evidence::RecordKind::compliance_on,
         .tenant = tenant.metadata.name,
         .object = "Tenant/" + tenant.metadata.name,
         .detail = {{"from", std::string{word(before)}},
                    {"to", std::string{word(after)}},
                    {"why", turn.why.empty() ? "its manifest says so" : turn.why},
                    {"surcharge-percent", std::to_string(pricing.surcharge_percent(turn.now))}}});
}

}  // namespace bulkhead
