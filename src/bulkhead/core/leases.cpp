// The life of a lease: promised, prepared on every node, active, ending, closed. A lease is a whole gang.
#include <fmt/core.h>

#include <algorithm>

#include "bulkhead/codec/print.hpp"
#include "bulkhead/codec/unicode.hpp"
#include "bulkhead/core/state.hpp"
#include "bulkhead/evidence/lease_units.hpp"
#include "bulkhead/evidence/pseudonym.hpp"

namespace bulkhead {

using lifecycle::LeaseEvent;
using lifecycle::UnitEvent;
using lifecycle::UnitState;

Part* part_on(LeaseRun& lease, Key node) {
    const auto found = std::ranges::find(lease.parts, node, &Part::node);
    return found == lease.parts.end() ? nullptr : &*found;
}

namespace {

void advance(LeaseRun& lease, LeaseEvent event) {
    const auto to = lifecycle::next(lifecycle::lease_edges, lease.object.status->phase, event);
    invariant(to.has_value(), "the lease's table has an edge for what the core does");
    lease.object.status->phase = *to;
}

evidence::Record about(const LeaseRun& lease, evidence::RecordKind kind) {
    return {.kind = kind,
            .actor = "core",
            .tenant = lease.object.spec.tenant,
            .object = "GpuWorkload/" + lease.object.spec.workload,
            .lease = lease.object.metadata.name};
}

// Units of a part, each with its device; a share's units may be other leases' as well.
void for_each_unit(NodeRun& node, const Prepare& prepare, auto&& visit) {
    for (const GpuPart& gpu : prepare.gpus)
        if (Device* device = node.device(UnitKind::memory, gpu.gpu)) {
            // Another board in its place may have fewer slices.
            const auto last = std::min<std::size_t>(device->units.size(), std::size_t{gpu.start} + gpu.size);
            if (gpu.start < last) visit(*device, gpu.start, static_cast<unsigned>(last) - gpu.start);
        }
    for (const std::uint16_t drive : prepare.drives)
        if (Device* device = node.device(UnitKind::drive, drive)) visit(*device, 0, 1);
    for (const std::uint16_t function : prepare.functions)
        if (Device* device = node.device(UnitKind::vf, function)) visit(*device, 0, 1);
}

// What will have to be wiped when it ends, for those who want to see that all of it was. By pseudonym, and so in an
// entry of its own: it is handed on with the certificates of its wipes.
void log_units(Turn& turn, const LeaseRun& lease) {
    std::vector<evidence::LeaseUnit> units;
    for (const Part& part : lease.parts) {
        const NodeRun& node = turn.state.nodes.at(part.node);
        const std::string& name = node.object.metadata.name;
        for (const GpuPart& gpu : part.prepare.gpus)
            units.push_back({.node = name,
                             .unit = unit_text(UnitKind::memory, gpu.gpu, gpu.start, gpu.size),
                             .shared = gpu.share < 1000});
        for (const std::uint16_t drive : part.prepare.drives) {
            const std::vector<NodeDrive>& known = node.object.status.drives;
            units.push_back({.node = name,
                             .unit = unit_text(UnitKind::drive, drive),
                             .serial = drive < known.size() ? known[drive].serial : std::string{}});
        }
        for (const std::uint16_t function : part.prepare.functions)
            units.push_back({.node = name, .unit = unit_text(UnitKind::vf, function)});
    }
    evidence::Record record = evidence::lease_units(lease.object.metadata.name, units);
    record.tenant = evidence::pseudonym(evidence::opening_of(turn.state.settings.secret, lease.object.spec.tenant));
    turn.log(std::move(record));
}

// Another lease that still sits on these slices; 0: none.
Key sharer_of(Core::State& state, const NodeRun& node, const LeaseRun& leaving, const Device& device, unsigned start) {
    if (device.kind != UnitKind::memory) return 0;
    for (const Key key : node.leases) {
        if (key == leaving.key) continue;
        LeaseRun& other = state.leases.at(key);
        const Part* part = part_on(other, node.key);
        if (part == nullptr || part->phase == PartPhase::stopped) continue;
        for (const GpuPart& gpu : part->prepare.gpus)
            if (gpu.gpu == device.index && start >= gpu.start && start < unsigned{gpu.start} + gpu.size) return key;
    }
    return 0;
}

// Lets go of what nobody else sits on. Held tenants' dirt is kept, everybody else's is wiped.
void release_units(Turn& turn, NodeRun& node, const LeaseRun& lease, const Part& part) {
    for_each_unit(node, part.prepare, [&](Device& device, unsigned start, unsigned size) {
        for (unsigned i = start; i < start + size; ++i) {
            Unit& unit = device.units[i];
            if (unit.state != UnitState::reserved && unit.state != UnitState::in_use) continue;
            if (const Key other = sharer_of(turn.state, node, lease, device, i)) {
                unit.lease = other;
                device.changed = true;
                continue;
            }
            unit.lease = lease.key;
            add_tenant(unit, lease.object.spec.tenant);
            change_unit(turn, node, device, i, UnitEvent::release);
        }
        sort_out_dirt(turn, node, device, start, size);
    });
}

// A lease that ended under work that goes on: what of its time was for nothing. Saved on every node, nothing was. Else
// everything since it became active was, or what the work says it loses at most.
void count_lost_work(Turn& turn, const LeaseRun& lease, evidence::Record& record) {
    const GpuLeaseStatus& status = *lease.object.status;
    const auto found = turn.state.workloads.find(lease.workload);
    if (found == turn.state.workloads.end() || !status.activeAt || !status.endedAt) return;
    GpuWorkload& workload = found->second.object;
    if (status.exitStatus) record.detail["exit-status"] = std::to_string(*status.exitStatus);
    if (status.reason && is_fault_of_work(*status.reason)) record.detail["failure"] = word(*status.reason);
    if (workload.status->deleting || workload.status->is_over() || status.exitStatus ||
        record.detail.contains("failure"))
        return;
    WorkHistory& history = workload.status->history;
    ++history.interruptions;
    const bool hook = workload.spec.checkpoint.has_value();
    // One that was placed elsewhere meanwhile goes on from what it had then.
    const bool saved =
        hook && found->second.lease == lease.key && std::ranges::all_of(lease.parts, [&](const Part& part) {
            const auto node = turn.state.nodes.find(part.node);
            return !part.gone && node != turn.state.nodes.end() &&
                   std::ranges::any_of(status.saved, [&](const LeaseSaved& one) {
                       return one.saved && one.node == node->second.object.metadata.name;
                   });
        });
    const std::int64_t ran_ms = (*status.endedAt - *status.activeAt).ms;
    std::int64_t lost_ms = ran_ms;
    std::string basis = "nothing was saved", basis_word = "start";
    if (saved) {
        lost_ms = 0;
        basis = "its checkpoint command saved it on every node";
        basis_word = "saved";
        history.savedAt = turn.now;
        history.saved.clear();
        for (const Part& part : lease.parts)
            for (const LeaseSaved& one : status.saved)
                if (one.node == turn.state.nodes.at(part.node).object.metadata.name) history.saved.push_back(one.words);
    } else if (workload.spec.checkpointInterval && workload.spec.checkpointInterval->ms < ran_ms) {
        lost_ms = workload.spec.checkpointInterval->ms;
        basis = "it says that it saves its work so often";
        basis_word = "interval";
    } else if (hook) {
        const auto failed = std::ranges::find(status.saved, false, &LeaseSaved::saved);
        basis = failed != status.saved.end() ? fmt::format("not saved on {}: {}", failed->node,
                                                           failed->words.substr(0, failed->words.find('\n')))
                                             : "a node ended without saving";
    }
    const std::int64_t lost_gpu_ms = gpu_time(status.gpus, {lost_ms}).ms;
    history.lost.ms += lost_gpu_ms;
    record.detail["lost-gpu-ms"] = std::to_string(lost_gpu_ms);
    record.detail["lost-why"] = basis;
    record.detail["lost-basis"] = basis_word;  // for programs: goodput.hpp
    turn.changed_workloads.insert(found->first);
}

void close(Turn& turn, LeaseRun& lease) {
    advance(lease, LeaseEvent::all_settled);
    evidence::Record record = about(lease, evidence::RecordKind::lease_closed);
    count_lost_work(turn, lease, record);
    note_attempt(turn, lease);
    if (turn.state.settings.planted != Planted::forget_log_entry) turn.log(std::move(record));
    for (const Part& part : lease.parts)
        if (const auto node = turn.state.nodes.find(part.node); node != turn.state.nodes.end()) {
            node->second.leases.erase(lease.key);
            turn.changed_nodes.insert(node->first);
            turn.state.fleet_stale.insert(node->first);
        }
    turn.state.lease_names.erase(lease.object.metadata.name);
    turn.rows.push_back({.table = Table::lease, .key = lease.key, .erased = true});
    turn.changed_leases.erase(lease.key);
    const auto workload = turn.state.workloads.find(lease.workload);
    if (workload != turn.state.workloads.end() && workload->second.lease == lease.key)
        settle_workload(turn, workload->second, lease);
    turn.state.cycle_wanted = true;
    turn.state.leases.erase(lease.key);
}

}  // namespace

void move_on(GpuWorkloadStatus& status, GpuWorkloadStatus next) {
    next.history = std::move(status.history);
    if (!next.failure) next.failure = std::move(status.failure);
    status = std::move(next);
}

Duration save_at_most(const Core::State& state) {
    return (state.policy ? state.policy->object.spec : FleetPolicySpec{}).checkpointAtMost;
}

bool comes_back(const Core::State& state, const LeaseRun& lease) {
    const auto found = state.workloads.find(lease.workload);
    if (found == state.workloads.end() || found->second.lease != lease.key) return false;
    const GpuWorkloadStatus& status = *found->second.object.status;
    // Who is frozen is stopped at once: nothing of theirs runs any longer, not to save anything either.
    const auto tenant = state.tenants.find(lease.object.spec.tenant);
    const bool frozen = tenant != state.tenants.end() && tenant->second.object.status &&
                        tenant->second.object.status->phase == TenantPhase::frozen;
    return !status.deleting && !status.is_over() && !frozen;
}

namespace {

// A gang may have had another number of nodes or tasks before: no node continues the part of one other, so each is told
// what all of them saved. Of a gang of more nodes than an order has room for, nothing is told.
void tell_all_saved(const std::vector<std::string>& saved, std::size_t told, const auto& tell) {
    constexpr std::size_t variables = 240;  // of an order's 256: ports and fabrics add some
    if (saved.empty() || told + saved.size() >= variables) return;
    tell("CHECKPOINTS", std::to_string(saved.size()));
    for (std::size_t rank = 0; rank < saved.size(); ++rank) tell("CHECKPOINT_" + std::to_string(rank), saved[rank]);
}

}  // namespace

// Every node of a gang runs the command, with an equal part of what all its tasks may have of their hosts, and is told
// which of them it is and what was saved on the one of its rank before.
void give_program(const GpuWorkload& workload, Duration hook_at_most, LeaseRun& lease) {
    const GpuWorkloadSpec& spec = workload.spec;
    if (spec.command.empty() || lease.parts.empty()) return;
    const std::int64_t tasks = lease.object.spec.tasks.value_or(spec.tasks), parts = std::ssize(lease.parts);
    const auto part_of = [&](std::int64_t each) { return (each * tasks + parts - 1) / parts; };
    const WorkHistory& history = workload.status->history;
    for (std::size_t rank = 0; rank < lease.parts.size(); ++rank) {
        Program& program = lease.parts[rank].prepare.program;
        program = {.words = spec.command,
                   .environment = spec.environment,
                   .cpu_thousandths = part_of(spec.cpu.value_or(0) * 1000),
                   .memory_bytes = part_of(spec.memory.value_or(ByteSize{}).bytes),
                   .checkpoint = spec.checkpoint ? spec.checkpoint->command : std::vector<std::string>{},
                   .checkpoint_within = spec.checkpoint ? std::min(spec.checkpoint->within, hook_at_most) : Duration{}};
        std::erase_if(program.environment, [](const std::string& own) { return own.starts_with("BULKHEAD_"); });
        const auto tell = [&](std::string_view name, std::string_view value) {
            program.environment.push_back(fmt::format("BULKHEAD_{}={}", name, value));
        };
        tell("WORKLOAD", workload.metadata.name);
        tell("NODES", std::to_string(parts));
        tell("NODE_RANK", std::to_string(rank));
        tell("TASKS", std::to_string(tasks));
        tell("START", std::to_string(history.starts));
        if (spec.vm && !spec.vm->image.empty()) tell("IMAGE", spec.vm->image);
        const bool same_nodes = history.saved.size() == lease.parts.size();
        if (same_nodes) tell("CHECKPOINT", history.saved[rank]);
        if (!same_nodes || spec.minTasks) tell_all_saved(history.saved, program.environment.size(), tell);
    }
}

void bind(Turn& turn, WorkloadRun& workload, const sched::Binding& binding) {
    Core::State& state = turn.state;
    const Contract& contract = *workload.contract;
    const Key key = state.fresh_key();
    LeaseRun lease{.key = key, .workload = workload.key, .tenant = state.relations.number(contract.tenant)};
    lease.object.metadata.name = state.lease_name(key);
    lease.object.metadata.generation = 1;
    GpuLeaseSpec& spec = lease.object.spec;
    spec = {.tenant = contract.tenant,
            .workload = contract.workload,
            .mechanism = contract.mechanism,
            .tier = contract.tier,
            .tasks = std::ssize(binding.tasks)};
    spec.sharing = {.node = contract.sharing.node,
                    .gpu = contract.sharing.gpu,
                    .instance = contract.sharing.instance,
                    .nvlink = contract.sharing.nvlink,
                    .excepted = {},
                    .keepsNode = contract.exclusivity && contract.exclusivity->node,
                    .keepsGpu = contract.exclusivity && contract.exclusivity->gpu};
    for (const ExceptionInForce& exception : contract.exceptions)
        for (const std::string& tenant : exception.tenants)
            if (tenant != contract.tenant) spec.sharing.excepted.push_back(tenant);
    std::vector<Key> keys_by_index;
    keys_by_index.reserve(state.nodes.size());
    for (const auto& [node_key, node] : state.nodes) keys_by_index.push_back(node_key);
    for (const sched::TaskSeat& task : binding.tasks) {
        NodeRun& node = state.nodes.at(keys_by_index.at(task.node));
        const std::string& name = node.object.metadata.name;
        Part* part = part_on(lease, node.key);
        if (part == nullptr) {
            lease.parts.push_back({.node = node.key,
                                   .prepare = {.lease = key,
                                               .tenant = contract.tenant,
                                               .workload = contract.workload,
                                               .mechanism = contract.mechanism,
                                               .tier = contract.tier}});
            part = &lease.parts.back();
        }
        for (std::size_t i = 0; i < task.gpus.size(); ++i) {
            const sched::Seat& seat = task.seats[i];
            // Tasks of one gang that share a GPU hold one larger share of it.
            const auto same_place = [&](const GpuPart& one) {
                return one.gpu == task.gpus[i] && one.start == seat.start;
            };
            if (const auto at = std::ranges::find_if(part->prepare.gpus, same_place); at != part->prepare.gpus.end()) {
                at->share += seat.share;
                for (LeasedSlice& slice : spec.slices)
                    if (slice.node == name && slice.gpu == at->gpu && slice.start == at->start) slice.share = at->share;
                continue;
            }
            part->prepare.gpus.push_back({task.gpus[i], seat.start, seat.size, seat.profile, seat.share});
            spec.slices.push_back({name, task.gpus[i], seat.profile, seat.start, seat.share});
        }
        for (const std::uint16_t drive : task.drives) {
            part->prepare.drives.push_back(drive);
            spec.drives.push_back({name, drive});
        }
        for (const std::uint16_t function : task.functions) {
            part->prepare.functions.push_back(function);
            spec.functions.push_back({name, function});
        }
    }
    ++workload.object.status->history.starts;
    give_program(workload.object, save_at_most(state), lease);
    // An elastic gang that did not get all of its tasks holds that much less.
    const std::int64_t asked = workload.object.spec.tasks, got = *spec.tasks;
    const Gpus gpus{(contract.gpus.units * got + asked - 1) / asked};
    lease.object.status = GpuLeaseStatus{.phase = LeasePhase::preparing, .gpus = gpus, .boundAt = turn.now};
    lease.object.status->attempt = workload.object.status->history.starts;
    lease.object.status->metered = metered_of(state, contract, spec);
    give_ports(turn, lease);
    disclose_fences(turn, lease);
    turn.touch(lease.object, key);
    for (const Part& part : lease.parts) {
        NodeRun& node = state.nodes.at(part.node);
        for_each_unit(node, part.prepare, [&](Device& device, unsigned start, unsigned size) {
            for (unsigned i = start; i < start + size; ++i) {
                Unit& unit = device.units[i];
                if (unit.state == UnitState::available) {
                    change_unit(turn, node, device, i, UnitEvent::reserve);
                    unit.lease = key;
                    unit.tenants.clear();
                }
                add_tenant(unit, contract.tenant);  // beside others, where it takes a share of what they hold
                device.changed = true;
            }
        });
        if (contract.tier < Tier::vm) {
            node.host_used_by.insert(contract.tenant);
            if (node.host.units[0].state == UnitState::available) {
                change_unit(turn, node, node.host, 0, UnitEvent::reserve);
                change_unit(turn, node, node.host, 0, UnitEvent::start);
            }
            node.host.changed = true;
        }
        node.leases.insert(key);
        turn.changed_nodes.insert(node.key);
        state.fleet_stale.insert(node.key);
    }
    evidence::Record record = about(lease, evidence::RecordKind::leased);
    record.detail = {{"mechanism", std::string{word(contract.mechanism)}},
                     {"tier", std::string{word(contract.tier)}},
                     {"gpus", print(gpus)},
                     {"tasks", std::to_string(got)},
                     {"nodes", std::to_string(lease.parts.size())}};
    turn.log(std::move(record));
    log_units(turn, lease);
    workload.lease = key;
    workload.stays = 0;
    if (got < asked) {
        state.gangs_lack = true;
        state.retry_at = std::min(state.retry_at, turn.now + Duration{60'000});
    }
    move_on(*workload.object.status,
            {.phase = WorkloadPhase::starting, .lease = lease.object.metadata.name, .since = turn.now});
    workload.waits.clear();
    state.pending.erase(workload.key);
    turn.changed_workloads.insert(workload.key);
    turn.changed_leases.insert(key);
    state.lease_names[lease.object.metadata.name] = key;
    const auto [placed, fresh] = state.leases.emplace(key, std::move(lease));
    for (const Part& part : placed->second.parts) send(turn, state.nodes.at(part.node), part.prepare);
}

void count_usage(Core::State& state, const LeaseRun& lease, Instant now) {
    const GpuLeaseStatus& status = *lease.object.status;
    if (state.usage_at == Instant{} || !status.activeAt) return;
    if (lease.tenant >= state.usage.size()) state.usage.resize(lease.tenant + 1);
    const std::int64_t ms = (now - std::max(state.usage_at, *status.activeAt)).ms;
    std::int64_t used = 0, &all = state.usage[lease.tenant];
    constexpr std::int64_t most = std::int64_t{1} << 61;  // sums of two stay exact
    if (ms <= 0) return;
    if (__builtin_mul_overflow(status.gpus.units, ms, &used)) used = most;
    all = std::min(most, all + std::min(most, used));
}

void end_lease(Turn& turn, LeaseRun& lease, const std::string& why) {
    GpuLeaseStatus& status = *lease.object.status;
    if (status.phase == LeasePhase::ending || status.phase == LeasePhase::closed) return;
    const bool was_active = status.phase == LeasePhase::active;
    if (was_active) count_usage(turn.state, lease, turn.now);
    advance(lease, LeaseEvent::end);
    status.endedAt = turn.now;
    status.why = why;
    evidence::Record record = about(lease, evidence::RecordKind::lease_ending);
    record.actor = turn.actor.empty() ? "core" : turn.actor;
    record.detail["why"] = why;
    if (was_active) {
        const UsageRow usage = close_usage(turn, lease);
        turn.rows.push_back({.table = Table::usage, .key = turn.state.fresh_key(), .body = to_compact_json(usage)});
        end_keeping(turn, lease);
        record.detail["usage-ms"] = std::to_string((turn.now - *status.activeAt).ms);
        record.detail["gpus"] = print(status.gpus);
    }
    turn.log(std::move(record));
    turn.changed_leases.insert(lease.key);
    if (const auto workload = turn.state.workloads.find(lease.workload);
        workload != turn.state.workloads.end() && workload->second.lease == lease.key) {
        // Room that is kept for it while it runs is room to grow.
        std::erase_if(turn.state.promises, [&](const sched::Promise& one) { return one.workload == lease.workload; });
        workload->second.object.status->phase = WorkloadPhase::stopping;
        workload->second.object.status->since = turn.now;
        workload->second.object.status->reasons = {why};
        turn.changed_workloads.insert(lease.workload);
    }
    for (Part& part : lease.parts) {
        const auto node = turn.state.nodes.find(part.node);
        if (node == turn.state.nodes.end()) continue;
        release_units(turn, node->second, lease, part);
        turn.changed_nodes.insert(part.node);
        turn.state.fleet_stale.insert(part.node);
        send(turn, node->second, release_of(turn.state, node->second, lease.key));
    }
}

void abandon_lease(Turn& turn, LeaseRun& lease, const std::string& why) {
    const auto workload = turn.state.workloads.find(lease.workload);
    const bool its = workload != turn.state.workloads.end() && workload->second.lease == lease.key;
    // It waits for the lease, however long that takes; or it has ended, and is not run again.
    if (!its || workload->second.object.status->deleting || workload->second.object.status->is_over())
        return end_lease(turn, lease, why);
    WorkloadRun& run = workload->second;
    run.lease = 0;  // first: nodes that still answer save nothing that would come too late
    end_lease(turn, lease, why);
    move_on(*run.object.status, {.phase = WorkloadPhase::pending, .since = turn.now, .reasons = {why}});
    turn.state.pending.insert(run.key);
    turn.changed_workloads.insert(run.key);
    turn.state.cycle_wanted = true;
}

bool has_left(NodeRun& node, LeaseRun& lease) {
    if (part_on(lease, node.key)->phase != PartPhase::stopped) return false;
    for (const Device* device : node.devices())
        for (const Unit& unit : device->units)
            if (device->kind != UnitKind::host && unit.lease == lease.key &&
                (unit.state == UnitState::dirty || unit.state == UnitState::sanitizing ||
                 unit.state == UnitState::in_use || unit.state == UnitState::reserved))
                return false;
    return true;
}

void settle_lease(Turn& turn, Key key) {
    const auto found = turn.state.leases.find(key);
    if (found == turn.state.leases.end() || found->second.object.status->phase != LeasePhase::ending) return;
    LeaseRun& lease = found->second;
    for (const Part& part : lease.parts)
        if (!part.gone && !has_left(turn.state.nodes.at(part.node), lease)) return;
    close(turn, lease);
}

namespace {

// What a tenant's program printed is anybody's bytes, and rows and answers are text: what is not printable becomes a
// question mark, whoever sent it.
std::string legible(std::string_view bytes) {
    std::string out;
    while (!bytes.empty()) {
        const auto rune = front_rune(bytes);
        const bool control = rune && (rune->value < 0x20 || (rune->value >= 0x7F && rune->value < 0xA0)) &&
                             rune->value != U'\n' && rune->value != U'\t';
        const std::size_t length = rune ? rune->bytes : 1;
        out += !rune || control ? std::string_view{"?"} : bytes.substr(0, length);
        bytes.remove_prefix(length);
    }
    return out;
}

bool all_ready(const LeaseRun& lease) {
    return std::ranges::all_of(lease.parts, [](const Part& part) {
        return part.phase == PartPhase::prepared || part.phase == PartPhase::running || part.phase == PartPhase::exited;
    });
}

// The command on one node has ended. The gang is over when one failed, or when all have ended well.
void on_exit(Turn& turn, LeaseRun& lease, const NodeRun& node, const LeaseReport& report) {
    const auto workload = turn.state.workloads.find(lease.workload);
    if (workload == turn.state.workloads.end() || workload->second.lease != lease.key) return;
    // How it ended is in its report; that it ended may be heard earlier, from a node that says what it knows.
    if (!report.exit_status) return;
    const std::int64_t status = *report.exit_status;
    const bool all =
        std::ranges::all_of(lease.parts, [](const Part& part) { return part.gone || part.phase == PartPhase::exited; });
    if (status == 0 && !all) return;
    if (lease.object.status->phase == LeasePhase::ending) return;
    GpuWorkloadStatus& of = *workload->second.object.status;
    lease.object.status->exitStatus = status;
    if (status == 0)
        of.exitStatus = status;
    else
        fail_work(turn, workload->second, &lease, failed_command(status, node.object.metadata.name));
    const auto kept =
        static_cast<std::size_t>(std::clamp<std::int64_t>(report.printed.out_kept, 0, std::ssize(report.output)));
    of.output = legible(std::string_view{report.output}.substr(0, kept));
    of.printed = {report.printed.out, report.printed.err, std::ssize(of.output)};
    of.output += legible(std::string_view{report.output}.substr(kept));
    turn.changed_workloads.insert(workload->first);
    end_lease(turn, lease, fmt::format("its command ended with status {} on {}", status, node.object.metadata.name));
}

// Every node has verified its part.
void activate(Turn& turn, LeaseRun& lease) {
    Core::State& state = turn.state;
    advance(lease, LeaseEvent::all_prepared);
    lease.object.status->activeAt = turn.now;
    std::set<std::int64_t> wipes;
    for (const Part& part : lease.parts) {
        NodeRun& node = state.nodes.at(part.node);
        for_each_unit(node, part.prepare, [&](Device& device, unsigned start, unsigned size) {
            for (unsigned i = start; i < start + size; ++i) {
                wipes.insert(device.units[i].leaf);
                if (device.units[i].state == UnitState::reserved) change_unit(turn, node, device, i, UnitEvent::start);
            }
        });
        if (lease.object.spec.tier < Tier::vm) wipes.insert(node.host.units.empty() ? -1 : node.host.units[0].leaf);
        if (part.phase != PartPhase::running) send(turn, node, Start{.lease = lease.key});
    }
    evidence::Record record = about(lease, evidence::RecordKind::lease_active);
    begin_coverage(turn, lease, wipes, record);
    if (keeps_capacity(lease)) state.keepers.insert(lease.key);
    turn.log(std::move(record));
    turn.changed_leases.insert(lease.key);
    WorkloadRun& workload = state.workloads.at(lease.workload);
    workload.object.status->phase = WorkloadPhase::running;
    workload.setbacks = 0;
    if (!workload.object.status->history.startedAt) workload.object.status->history.startedAt = turn.now;
    watch_time_of(state, workload);
    workload.object.status->since = turn.now;
    turn.changed_workloads.insert(workload.key);
}

}  // namespace

void on_lease_report(Turn& turn, NodeRun& node, const LeaseReport& report) {
    Core::State& state = turn.state;
    if (report.phase == PartPhase::stopped && node.strays.erase(report.lease) != 0) {
        state.cycle_wanted = true;
        state.fleet_stale.insert(node.key);
    }
    const auto found = state.leases.find(report.lease);
    if (found == state.leases.end()) return;
    LeaseRun& lease = found->second;
    Part* part = part_on(lease, node.key);
    if (part == nullptr) return;
    GpuLeaseStatus& status = *lease.object.status;
    const PartPhase before = part->phase;
    if (before == PartPhase::stopped) return;  // whatever else arrives late, it was before it stopped
    part->phase = report.phase;
    switch (report.phase) {
        case PartPhase::preparing:
            break;
        case PartPhase::refused:
        case PartPhase::failed:
            on_part_failed(turn, lease, node, report, before);
            break;
        case PartPhase::prepared:
        case PartPhase::running:  // before we knew that it was prepared: from before a restore
            if (status.phase == LeasePhase::preparing &&
                (state.settings.planted == Planted::start_early || all_ready(lease)))
                activate(turn, lease);
            else if (status.phase == LeasePhase::active && report.phase == PartPhase::prepared)
                send(turn, node, Start{.lease = lease.key});
            else if (status.phase == LeasePhase::ending)
                send(turn, node, release_of(state, node, lease.key));
            break;
        case PartPhase::exited:
            if (status.phase == LeasePhase::preparing && all_ready(lease))
                activate(turn, lease);  // from before a restore
            on_exit(turn, lease, node, report);
            break;
        case PartPhase::stopped:
            if (status.phase != LeasePhase::ending)
                end_lease(turn, lease, fmt::format("node {} no longer runs it", node.object.metadata.name));
            if (report.saved) {
                // Heard before, and again after a restart of ours: the same word once more.
                std::erase_if(status.saved,
                              [&](const LeaseSaved& one) { return one.node == node.object.metadata.name; });
                status.saved.push_back({.node = node.object.metadata.name,
                                        .saved = report.saved->ok,
                                        .words = legible(report.saved->words)});
                turn.changed_leases.insert(lease.key);
            }
            // The last of those who shared a GPU leaves it to be wiped.
            release_units(turn, node, lease, *part);
            if (Release release = release_of(state, node, lease.key); !release.wipes.empty())
                send(turn, node, std::move(release));
            state.fleet_stale.insert(node.key);
            settle_lease(turn, lease.key);
            break;
    }
}

}  // namespace bulkhead
