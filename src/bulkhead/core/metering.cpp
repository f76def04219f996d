// What metering is told: what a lease holds and at what price, and for what time evidence shows that compliance mode
// was in force. A lease keeps the mode it was given under; whether that can be shown is followed while it runs.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "bulkhead/codec/decode.hpp"
#include "bulkhead/codec/print.hpp"
#include "bulkhead/core/state.hpp"
#include "bulkhead/meter/rates.hpp"
#include "bulkhead/sched/exclusivity.hpp"

namespace bulkhead {

namespace {

const std::string& gpu_model(const NodeRun& node, std::int64_t gpu) {
    static const std::string unknown = "unknown";
    std::int64_t first = 0;
    for (const NodeGpus& group : node.object.status.gpus) {
        if (gpu >= first && gpu < first + group.count) return group.model;
        first += group.count;
    }
    return unknown;
}

bool is_shared(Mechanism mechanism, const LeasedSlice& slice) {
    return slice.share < 1000 || mechanism == Mechanism::mps || mechanism == Mechanism::time_slicing ||
           mechanism == Mechanism::mps_in_mig;
}

std::string top_of_tree(const Core::State& state, const std::string& tenant) {
    std::string top = tenant;
    for (int level = 0; level < 64; ++level) {
        const auto found = state.tenants.find(top);
        if (found == state.tenants.end() || found->second.object.spec.parent.empty()) break;
        top = found->second.object.spec.parent;
    }
    return top == tenant ? std::string{} : top;
}

// Whether every control of the mode is shown to be in force; if not, why and since when.
struct Shown {
    std::string why;
    Instant since;
    bool unsure = false;  // a node is just coming back: what was so, stays so for now
    bool yes() const { return why.empty(); }
};

Shown shown_on(const Core::State& state, const NodeRun& node, const LeaseRun& lease, Instant now) {
    const bool silent = node.phase == NodePhase::fenced ||
                        (node.phase != NodePhase::ready && now - node.heard > state.settings.silent_after);
    if (silent && state.settings.planted != Planted::cover_silence)
        return {"one of its nodes is not heard of", node.unheard_since.value_or(node.heard)};
    const bool unsure = node.phase != NodePhase::ready;
    const Duration max_age = (state.policy ? state.policy->object.spec : FleetPolicySpec{}).evidenceMaxAge;
    const auto fresh_until = [&](Capability wanted) {
        const auto& all = node.object.status.capabilities;
        const auto found = std::ranges::find(all, wanted, &DetectedCapability::name);
        return found == all.end() || !found->verifiedAt ? Instant{INT64_MIN} : *found->verifiedAt + max_age;
    };
    struct Needed {
        std::string_view what;
        Instant until;
    };
    std::vector<Needed> needed;
    if (lease.object.status->metered->compliance == Compliance::confidential) {
        needed.push_back({"a confidential CPU", fresh_until(Capability::confidential_cpu)});
        needed.push_back({"confidential GPUs", std::max(fresh_until(Capability::confidential_gpu),
                                                        fresh_until(Capability::confidential_board))});
    } else if (lease.object.spec.tier < Tier::vm) {
        needed.push_back({"what it booted", fresh_until(Capability::verified_reboot)});
    }
    for (const Needed& one : needed)
        if (one.until < now)
            return {fmt::format("one of its nodes has no fresh evidence of {}", one.what),
                    one.until.ms == INT64_MIN ? now : one.until};
    return {.why = {}, .since = now, .unsure = unsure};
}

Shown shown_of(const Core::State& state, const LeaseRun& lease, Instant now) {
    Shown worst;
    for (const Part& part : lease.parts) {
        const auto node = state.nodes.find(part.node);
        Shown one = part.gone || node == state.nodes.end() ? Shown{"one of its nodes is gone", now}
                                                           : shown_on(state, node->second, lease, now);
        worst.unsure = worst.unsure || one.unsure;
        if (!one.yes() && (worst.yes() || one.since < worst.since)) {
            worst.why = std::move(one.why);
            worst.since = one.since;
        }
    }
    return worst;
}

bool is_covered(const Metered& metered) { return !metered.covered.empty() && !metered.covered.back().to; }

void end_coverage(Metered& metered, Instant at) {
    CoveredTime& last = metered.covered.back();
    if (at <= last.from)
        metered.covered.pop_back();
    else
        last.to = at;
}

void note_coverage(Turn& turn, const LeaseRun& lease, evidence::RecordKind kind, const std::string& why, Instant at) {
    evidence::Record record{.kind = kind,
                            .actor = "core",
                            .tenant = lease.object.spec.tenant,
                            .object = "GpuWorkload/" + lease.object.spec.workload,
                            .lease = lease.object.metadata.name,
                            .detail = {{"at", print(at)}}};
    if (!why.empty()) record.detail["why"] = why;
    turn.log(std::move(record));
}

}  // namespace

Metered metered_of(const Core::State& state, const Contract& contract, const GpuLeaseSpec& spec) {
    Metered out{.tenantClass = contract.tenantClass,
                .account = top_of_tree(state, contract.tenant),
                .compliance = contract.compliance};
    std::map<std::tuple<std::string, std::string, bool>, std::int64_t> held;
    for (const LeasedSlice& slice : spec.slices) {
        const auto node = state.node_names.find(slice.node);
        const std::string model =
            node == state.node_names.end() ? "unknown" : gpu_model(state.nodes.at(node->second), slice.gpu);
        held[{model, slice.profile, is_shared(spec.mechanism, slice)}] += slice.share;
    }
    for (const auto& [what, shares] : held)
        out.units.push_back({std::get<0>(what), std::get<1>(what), std::get<2>(what), Gpus::of_thousandths(shares)});
    return out;
}

void begin_coverage(Turn& turn, LeaseRun& lease, const std::set<std::int64_t>& wipes, evidence::Record& record) {
    std::optional<Metered>& metered = lease.object.status->metered;
    if (!metered || metered->compliance == Compliance::off) return;
    record.detail["compliance"] = word(metered->compliance);
    if (wipes.empty() || wipes.contains(-1)) {
        metered->notCovered = "not all that it holds was wiped with evidence on record";
        record.detail["not-covered"] = metered->notCovered;
        return;
    }
    record.detail["wipes"] = fmt::format("{}", fmt::join(wipes, " "));
    metered->leaf = turn.state.log_size;  // this very record
    turn.state.watched.insert(lease.key);
    if (const Shown shown = shown_of(turn.state, lease, turn.now); shown.yes()) {
        metered->covered = {{.from = turn.now, .to = {}}};
    } else {
        metered->notCovered = shown.why;
        record.detail["not-covered"] = shown.why;
    }
}

namespace {
// A process that comes after this one believes no more than what was durable: so now and then the clock is.
constexpr Duration vouch_every{600'000};
}  // namespace

void doubt_coverage(Turn& turn, Instant known_until) {
    if ((turn.now - known_until).ms <= turn.state.settings.silent_after.ms + vouch_every.ms) return;
    for (const Key key : turn.state.watched) {
        LeaseRun& lease = turn.state.leases.at(key);
        Metered& metered = *lease.object.status->metered;
        if (!is_covered(metered)) continue;
        const std::string why = "nobody was there to hear of its nodes";
        end_coverage(metered, known_until);
        metered.notCovered = why;
        note_coverage(turn, lease, evidence::RecordKind::coverage_lost, why, known_until);
        turn.changed_leases.insert(key);
    }
}

void follow_coverage(Turn& turn) {
    if (!turn.state.watched.empty() && turn.now - turn.state.vouched_at >= vouch_every) {
        turn.state.vouched_at = turn.now;
        turn.state.standing_changed = true;
    }
    for (const Key key : turn.state.watched) {
        LeaseRun& lease = turn.state.leases.at(key);
        Metered& metered = *lease.object.status->metered;
        const Shown shown = shown_of(turn.state, lease, turn.now);
        if (shown.yes() == is_covered(metered) || (shown.yes() && shown.unsure)) continue;
        if (shown.yes()) {
            metered.covered.push_back({.from = turn.now, .to = {}});
            metered.notCovered.clear();
            note_coverage(turn, lease, evidence::RecordKind::coverage_regained, {}, turn.now);
        } else {
            const Instant at = std::min(shown.since, turn.now);
            end_coverage(metered, at);
            metered.notCovered = shown.why;
            note_coverage(turn, lease, evidence::RecordKind::coverage_lost, shown.why, at);
        }
        turn.changed_leases.insert(key);
    }
}

UsageRow close_usage(Turn& turn, LeaseRun& lease) {
    GpuLeaseStatus& status = *lease.object.status;
    if (turn.state.watched.erase(lease.key) != 0 && is_covered(*status.metered)) {
        const Shown shown = shown_of(turn.state, lease, turn.now);
        end_coverage(*status.metered, shown.yes() ? turn.now : std::min(shown.since, turn.now));
        if (!shown.yes()) status.metered->notCovered = shown.why;
    }
    UsageRow row{.lease = lease.object.metadata.name,
                 .tenant = lease.object.spec.tenant,
                 .workload = lease.object.spec.workload,
                 .gpus = status.gpus,
                 .from = *status.activeAt,
                 .to = turn.now,
                 .mechanism = lease.object.spec.mechanism,
                 .metered = status.metered};
    if (turn.state.policy && row.metered) {
        const Pricing& pricing = turn.state.policy->object.spec.pricing;
        row.rates = meter::rates_for(pricing, *row.metered, row.from, row.to);
        if (!row.rates.empty()) row.currency = pricing.currency;
    }
    return row;
}

// ---- capacity that is kept from others and not leased ----

namespace {

// Of each GPU, what is not quarantined, held or drained.
std::vector<std::int64_t> sound_units(const NodeRun& node) {
    std::vector<std::int64_t> out;
    for (const Device& gpu : node.gpus) {
        const auto all = std::ssize(gpu.units);
        const auto lost = gpu.draining.empty()
                              ? std::ranges::count_if(gpu.units,
                                                      [](const Unit& unit) {
                                                          using lifecycle::UnitState;
                                                          return unit.state == UnitState::quarantined ||
                                                                 unit.state == UnitState::held;
                                                      })
                              : all;
        out.push_back(all == 0 ? 0 : gpu_unit * (all - lost) / all);
    }
    return out;
}

// As quota counts it, split over its GPUs by the thousandths of each that it holds.
sched::NodeTenure tenure_on(const NodeRun& node, const LeaseRun& lease, const Part& part) {
    const auto thousandths = [](const NodeRun& on, const GpuPart& gpu) -> std::int64_t {
        const auto slices = gpu.gpu < on.gpus.size() ? std::ssize(on.gpus[gpu.gpu].units) : 0;
        return gpu.profile.empty() || slices == 0 ? gpu.share : std::int64_t{gpu.size} * gpu.share / slices;
    };
    sched::NodeTenure out{.leased = std::vector<std::int64_t>(node.gpus.size()),
                          .keeps_node = lease.object.spec.sharing.keepsNode,
                          .keeps_gpu = lease.object.spec.sharing.keepsGpu};
    // Parts on other nodes weigh as much as if those nodes had the same GPUs.
    std::int64_t all = 0;
    for (const Part& each : lease.parts)
        for (const GpuPart& gpu : each.prepare.gpus) all += thousandths(node, gpu);
    for (const GpuPart& gpu : part.prepare.gpus)
        if (all > 0 && gpu.gpu < out.leased.size())
            out.leased[gpu.gpu] += (lease.object.status->gpus.units * thousandths(node, gpu) + all - 1) / all;
    return out;
}

// What each active keeper keeps on the node, by GPU model. A lease that is being prepared holds its GPUs already; one
// that is ending has given them up.
void add_kept(Core::State& state, const NodeRun& node, std::map<Key, std::map<std::string, std::int64_t>>& out) {
    std::vector<sched::NodeTenure> tenures;
    std::vector<Key> keys;
    for (const Key key : node.leases) {
        LeaseRun& lease = state.leases.at(key);
        const LeasePhase phase = lease.object.status->phase;
        const Part* part = part_on(lease, node.key);
        if (part == nullptr || (phase != LeasePhase::preparing && phase != LeasePhase::active)) continue;
        keys.push_back(key);
        tenures.push_back(tenure_on(node, lease, *part));
    }
    const auto parts = sched::kept_parts(tenures, sound_units(node));
    for (std::size_t i = 0; i < keys.size(); ++i)
        for (std::size_t gpu = 0; gpu < node.gpus.size(); ++gpu)
            if (parts[i][gpu] > 0) out[keys[i]][gpu_model(node, static_cast<std::int64_t>(gpu))] += parts[i][gpu];
}

void write_kept_row(Turn& turn, const LeaseRun& lease) {
    const KeptCapacity& kept = *lease.object.status->kept;
    if (kept.units.empty() || kept.since >= turn.now) return;
    const Pricing pricing = turn.state.policy ? turn.state.policy->object.spec.pricing : Pricing{};
    turn.rows.push_back({.table = Table::usage,
                         .key = turn.state.fresh_key(),
                         .body = to_compact_json(meter::kept_row(lease.object, pricing, turn.now))});
}

}  // namespace

bool keeps_capacity(const LeaseRun& lease) {
    return lease.object.spec.sharing.keepsNode || lease.object.spec.sharing.keepsGpu;
}

void follow_keeping(Turn& turn) {
    if (turn.changed_nodes.empty() && turn.changed_leases.empty()) return;
    std::set<Key> nodes;
    for (const Key key : turn.state.keepers)
        for (const Part& part : turn.state.leases.at(key).parts)
            if (!part.gone && turn.state.nodes.contains(part.node)) nodes.insert(part.node);
    std::map<Key, std::map<std::string, std::int64_t>> kept;
    for (const Key node : nodes) add_kept(turn.state, turn.state.nodes.at(node), kept);
    for (const Key key : turn.state.keepers) {
        LeaseRun& lease = turn.state.leases.at(key);
        std::vector<MeteredUnits> units;
        for (const auto& [model, amount] : kept[key])
            units.push_back({.model = model, .profile = {}, .units = Gpus{amount}, .exclusive = true});
        std::optional<KeptCapacity>& known = lease.object.status->kept;
        if (known ? known->units == units : units.empty()) continue;
        std::int64_t rows = 0;
        if (known) {
            const bool written = !known->units.empty() && known->since < turn.now;
            write_kept_row(turn, lease);
            rows = known->rows + (written ? 1 : 0);
        }
        known = KeptCapacity{.since = turn.now, .units = std::move(units), .rows = rows};
        turn.changed_leases.insert(key);
    }
}

void end_keeping(Turn& turn, LeaseRun& lease) {
    if (turn.state.keepers.erase(lease.key) == 0 || !lease.object.status->kept) return;
    write_kept_row(turn, lease);
    lease.object.status->kept.reset();
}

void watch_again(Core::State& state) {
    for (const auto& [key, lease] : state.leases) {
        const GpuLeaseStatus& status = *lease.object.status;
        if (status.phase == LeasePhase::active && keeps_capacity(lease)) state.keepers.insert(key);
        if (status.phase == LeasePhase::active && status.metered && status.metered->compliance != Compliance::off &&
            status.metered->leaf >= 0)
            state.watched.insert(key);
    }
}

// ---- corrections: rows of their own; the same again changes nothing ----

namespace {

std::string correction_text(const UsageRow& row) {
    return fmt::format("{} {} {} {} {}", row.tenant, row.from.ms, row.to.ms, row.correction->amount.nano,
                       row.correction->why);
}

}  // namespace

Result<> load_usage(Core::State& state, const Row& row) {
    // A million leases may have ended, and nothing but corrections is asked for again.
    if (row.body.find("\"correction\":{") == std::string::npos) return {};
    const auto what = [&] { return fmt::format("row {} of table {}", row.key, word(row.table)); };
    const auto usage = from_json<UsageRow>(what, row.body, own_text);
    if (!usage) return fail(Code::corrupt, usage.error().what, usage.error().remedy);
    if (usage->correction) state.corrections[{usage->lease, usage->correction->id}] = correction_text(*usage);
    return {};
}

void on_correction(Turn& turn, const command::CorrectUsage& wanted, Answer& answer) {
    UsageRow row{
        .lease = wanted.lease,
        .tenant = wanted.tenant,
        .workload = wanted.workload,
        .from = wanted.from,
        .to = wanted.to,
        .metered = Metered{.tenantClass = wanted.tenant_class, .account = wanted.account},
        .currency = wanted.currency,
        .correction = UsageCorrection{
            .id = wanted.id, .amount = wanted.amount, .posted = turn.now, .by = turn.actor, .why = wanted.why}};
    if (wanted.amount.nano == 0 || wanted.why.empty() || wanted.currency.empty() || wanted.to < wanted.from) {
        answer.outcome = fail(Code::invalid, fmt::format("correction {} of {} says nothing", wanted.id, wanted.lease),
                              "give an amount other than 0 and a reason, for a lease that has a price");
        return;
    }
    const std::string text = correction_text(row);
    const auto [place, fresh] = turn.state.corrections.try_emplace({wanted.lease, wanted.id}, text);
    if (!fresh && place->second != text) {
        answer.outcome =
            fail(Code::conflict,
                 fmt::format("correction {} of {} was posted before, and said something else", wanted.id, wanted.lease),
                 "post another one under another id");
        return;
    }
    if (fresh) {
        turn.log({.kind = evidence::RecordKind::usage_corrected,
                  .tenant = wanted.tenant,
                  .object = "GpuWorkload/" + wanted.workload,
                  .lease = wanted.lease,
                  .detail = {{"id", wanted.id},
                             {"amount", print(wanted.amount)},
                             {"currency", wanted.currency},
                             {"from", print(wanted.from)},
                             {"to", print(wanted.to)},
                             {"why", wanted.why}}});
        turn.rows.push_back({.table = Table::usage, .key = turn.state.fresh_key(), .body = to_compact_json(row)});
    }
    answer.body = fmt::format(R"({{"id":"{}","lease":"{}","amount":"{}","currency":"{}","result":"{}"}})", wanted.id,
                              wanted.lease, print(wanted.amount), wanted.currency, fresh ? "posted" : "unchanged");
}

}  // namespace bulkhead
