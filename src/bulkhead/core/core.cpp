#include "bulkhead/core/core.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "bulkhead/codec/decode.hpp"
#include "bulkhead/codec/print.hpp"
#include "bulkhead/core/state.hpp"
#include "bulkhead/gpu/profile_name.hpp"
#include "bulkhead/policy/slice.hpp"

namespace bulkhead {

std::string Core::State::secret_name(std::string_view what, Key key) const {
    const std::string number = std::to_string(key);
    return to_hex(bytes_of(sha256({settings.secret, what, "/", number})).substr(0, 6));
}

NodeRun* Core::State::find_node(std::string_view name) {
    const auto found = node_names.find(name);
    return found == node_names.end() ? nullptr : &nodes.at(found->second);
}

WorkloadRun* Core::State::find_workload(const std::string& tenant, const std::string& name) {
    const auto found = workload_names.find({name, tenant});
    return found == workload_names.end() ? nullptr : &workloads.at(found->second);
}

std::int64_t Turn::log(evidence::Record record) {
    record.at = now;
    if (record.actor.empty()) record.actor = actor.empty() ? "core" : actor;
    effects.log.push_back(evidence::payload_of(std::move(record)));
    return state.log_size++;
}

namespace {

std::string gate_body(const NodeRun& node, const Device& device) {
    GateRow row{.node = node.key, .kind = device.kind, .device = device.index};
    for (const Unit& unit : device.units) {
        const GateRun run{.state = unit.state,
                          .lease = unit.lease,
                          .ticket = unit.ticket,
                          .leaf = unit.leaf,
                          .tenants = unit.tenants,
                          .burnIn = unit.burn_in,
                          .outOfUse = unit.out_of_use,
                          .unsettled = unit.unsettled};
        if (!row.runs.empty()) {
            GateRun last = row.runs.back();
            last.count = 1;
            if (last == run) {
                ++row.runs.back().count;
                continue;
            }
        }
        row.runs.push_back(run);
    }
    if (device.kind == UnitKind::host) row.usedBy = {node.host_used_by.begin(), node.host_used_by.end()};
    row.draining = device.draining;
    row.identity = device.identity;
    row.why = device.why;
    return to_compact_json(row);
}

}  // namespace

void Turn::flush() {
    for (const Key key : changed_workloads) {
        WorkloadRun& workload = state.workloads.at(key);
        touch(workload.object, key);
        rows.push_back({Table::workload, key, to_compact_json(workload.object), false});
    }
    for (const Key key : changed_leases) {
        LeaseRun& lease = state.leases.at(key);
        touch(lease.object, key);
        rows.push_back({Table::lease, key, to_compact_json(lease.object), false});
    }
    for (const Key key : changed_fabric)
        rows.push_back({Table::fabric, key, to_compact_json(state.fabric.at(key).row), false});
    changed_fabric.clear();
    for (const Key key : changed_nodes) {
        NodeRun& node = state.nodes.at(key);
        touch(node.object, key);
        rows.push_back({Table::node, key, to_compact_json(shown(state, node)), false});
        for (Device* device : node.devices()) {
            if (!device->changed || device->row == 0) continue;
            device->changed = false;
            rows.push_back({Table::gate, device->row, gate_body(node, *device), false});
        }
    }
    if (state.standing_changed) {
        state.standing_changed = false;
        rows.push_back({Table::standing, 1, to_compact_json(StandingRow{.restoring = state.restoring}), false});
    }
    std::ranges::move(rows, std::back_inserter(effects.rows));
    rows.clear();
}

Core::Core(std::int64_t epoch, std::int64_t log_size, const CoreSettings& settings)
    : state_(std::make_unique<State>()) {
    state_->epoch = epoch;
    state_->log_size = log_size;
    state_->settings = settings;
}
Core::~Core() = default;
Core::Core(Core&&) noexcept = default;
Core& Core::operator=(Core&&) noexcept = default;

namespace {

template <class T>
Result<> read_into(T& fresh, const Row& row) {
    const auto what = [&] { return fmt::format("row {} of table {}", row.key, word(row.table)); };
    Result<> read = from_json_into(fresh, what, row.body, own_text);
    if (!read) read.error().code = Code::corrupt;
    return read;
}

// Rows come in the order of their keys, and are read where they are to stay: there may be a hundred thousand of them.
template <class Run>
Run& append(std::map<Key, Run>& runs, Key key) {
    Run& run = runs.try_emplace(runs.end(), key)->second;
    run.key = key;
    return run;
}

template <class T>
Result<> load_named(std::map<std::string, Stored<T>>& all, const Row& row) {
    T object;
    if (auto read = read_into(object, row); !read) return read;
    const std::string name = object.metadata.name;
    all[name] = {row.key, std::move(object)};
    return {};
}

// What the gate knows is filled in when the node is shown, out of the gate's own rows.
void forget_what_the_gate_knows(GpuNodeStatus& status) {
    for (NodeGpus& gpus : status.gpus) gpus.slices.clear(), gpus.draining.clear();
    status.phase.reset();
    status.host.reset();
    for (NodeDrive& drive : status.drives) drive.state = CleanState{}, drive.lease.clear(), drive.why.clear();
    for (NodeFunction& function : status.functions) function.state = CleanState{}, function.lease.clear();
}

}  // namespace

Result<> Core::load(const Row& row) {
    State& state = *state_;
    switch (row.table) {
        case Table::policy: {
            Stored<FleetPolicy>& stored = state.policy.emplace();
            stored.key = row.key;
            return read_into(stored.object, row);
        }
        case Table::tenant_class:
            return load_named(state.classes, row);
        case Table::tenant:
            return load_named(state.tenants, row);
        case Table::workload: {
            WorkloadRun& run = append(state.workloads, row.key);
            if (auto read = read_into(run.object, row); !read) return read;
            if (!run.object.status) run.object.status.emplace();
            state.workload_names[{run.object.metadata.name, run.object.spec.tenant}] = row.key;
            return {};
        }
        case Table::node: {
            NodeRun& run = append(state.nodes, row.key);
            if (auto read = read_into(run.object, row); !read) return read;
            run.phase = run.object.status.phase.value_or(NodePhase::enrolled);
            run.unfit = std::exchange(run.object.status.unfit, {});
            forget_what_the_gate_knows(run.object.status);
            run.measure_closeness();
            state.node_names[run.object.metadata.name] = row.key;
            return {};
        }
        case Table::lease: {
            LeaseRun& run = append(state.leases, row.key);
            if (auto read = read_into(run.object, row); !read) return read;
            state.lease_names[run.object.metadata.name] = row.key;
            return {};
        }
        case Table::gate:
            return read_into(state.loading_gates.emplace_back(row.key, GateRow{}).second, row);
        case Table::key:
            return read_into(state.loading_keys.emplace_back(row.key, KeyRow{}).second, row);
        case Table::standing: {
            StandingRow standing;
            if (auto read = read_into(standing, row); !read) return read;
            state.restoring = standing.restoring;
            return {};
        }
        case Table::fabric: {
            FabricRow& fabric = append(state.fabric, row.key).row;
            if (auto read = read_into(fabric, row); !read) return read;
            if (!fabric.former) state.fabric_of[fabric.tenant] = row.key;
            return {};
        }
        case Table::usage:
            return load_usage(state, row);
        case Table::history:
            return load_history(state, row);
        case Table::token:
            return {};
    }
    return {};
}

namespace {

void place_gate(Core::State& state, Key row, const GateRow& gate) {
    const auto found = state.nodes.find(gate.node);
    if (found == state.nodes.end()) return;
    NodeRun& node = found->second;
    Device device{.row = row,
                  .kind = gate.kind,
                  .index = static_cast<std::uint16_t>(gate.device),
                  .units = {},
                  .draining = gate.draining,
                  .identity = gate.identity,
                  .why = gate.why};
    for (const GateRun& run : gate.runs)
        for (std::int64_t i = 0; i < run.count; ++i)
            device.units.push_back({.state = run.state,
                                    .lease = run.lease,
                                    .ticket = run.ticket,
                                    .leaf = run.leaf,
                                    .tenants = run.tenants,
                                    .burn_in = run.burnIn,
                                    .out_of_use = run.outOfUse,
                                    .unsettled = run.unsettled});
    if (gate.kind == UnitKind::host) {
        node.host = std::move(device);
        node.host_used_by = {gate.usedBy.begin(), gate.usedBy.end()};
        return;
    }
    std::vector<Device>& list = gate.kind == UnitKind::memory  ? node.gpus
                                : gate.kind == UnitKind::drive ? node.drives
                                                               : node.functions;
    if (list.size() <= device.index) list.resize(device.index + std::size_t{1});
    list[device.index] = std::move(device);
}

std::uint8_t slices_of_profile(const std::string& model, const LeasedSlice& slice, const Device& gpu) {
    const auto all = static_cast<std::uint8_t>(gpu.units.size());
    if (slice.profile.empty()) return all;
    const Silicon silicon = silicon_of(model);
    if (silicon.nvidia != nullptr) {
        for (const gpu::Profile& profile : silicon.nvidia->profiles)  // as bound leases name it, without parsing
            if (profile.name == slice.profile) return static_cast<std::uint8_t>(profile.memory_slices);
        if (const auto choice = gpu::find_profile(*silicon.nvidia, slice.profile))
            return static_cast<std::uint8_t>(silicon.nvidia->profiles[choice->index].memory_slices);
    }
    GpuRequest request{.profile = slice.profile};
    if (const auto facts = slice_on(silicon, request, Mechanism::amd_partition))
        return static_cast<std::uint8_t>(std::max<std::int64_t>(8 * facts->parts / facts->of, 1));
    return all;
}

// A lease's parts, out of what it says it holds.
void place_parts(Core::State& state, LeaseRun& lease) {
    const GpuLeaseSpec& spec = lease.object.spec;
    lease.tenant = state.relations.number(spec.tenant);
    if (const auto workload = state.workload_names.find({spec.workload, spec.tenant});
        workload != state.workload_names.end()) {
        lease.workload = workload->second;
        WorkloadRun& run = state.workloads.at(workload->second);
        if (run.object.status->lease == lease.object.metadata.name) run.lease = lease.key;
    }
    const auto part_for = [&](const std::string& name) -> Part* {
        const auto node = state.node_names.find(name);
        if (node == state.node_names.end()) return nullptr;
        if (Part* part = part_on(lease, node->second)) return part;
        state.nodes.at(node->second).leases.insert(lease.key);
        lease.parts.push_back({.node = node->second,
                               .prepare = {.lease = lease.key,
                                           .tenant = spec.tenant,
                                           .workload = spec.workload,
                                           .mechanism = spec.mechanism,
                                           .tier = spec.tier}});
        return &lease.parts.back();
    };
    for (const LeasedSlice& slice : spec.slices)
        if (Part* part = part_for(slice.node)) {
            NodeRun& node = state.nodes.at(part->node);
            Device* gpu = node.device(UnitKind::memory, static_cast<std::size_t>(slice.gpu));
            if (gpu == nullptr) continue;
            std::size_t index = 0;
            std::string model;
            for (const NodeGpus& group : node.object.status.gpus)
                for (std::int64_t i = 0; i < group.count; ++i, ++index)
                    if (std::cmp_equal(index, slice.gpu)) model = group.model;
            part->prepare.gpus.push_back({static_cast<std::uint16_t>(slice.gpu), static_cast<std::uint8_t>(slice.start),
                                          slices_of_profile(model, slice, *gpu), slice.profile, slice.share});
        }
    for (const LeasedDevice& drive : spec.drives)
        if (Part* part = part_for(drive.node)) part->prepare.drives.push_back(static_cast<std::uint16_t>(drive.index));
    for (const LeasedDevice& function : spec.functions)
        if (Part* part = part_for(function.node))
            part->prepare.functions.push_back(static_cast<std::uint16_t>(function.index));
    if (const auto workload = state.workloads.find(lease.workload); workload != state.workloads.end())
        give_program(workload->second.object, save_at_most(state), lease);
    place_ports(state, lease);
}

}  // namespace

Effects Core::start(Instant now) {
    State& state = *state_;
    Effects effects;
    Turn turn{.state = state, .now = now, .effects = effects, .actor = "core"};
    for (const auto& [row, gate] : state.loading_gates) place_gate(state, row, gate);
    for (auto& [row, key] : state.loading_keys)
        if (const auto node = state.nodes.find(key.node); node != state.nodes.end() && !key.retired) {
            node->second.key_row = row;
            node->second.signing = key;
            if (const auto parsed = evidence::parse_public_key(key.publicKey)) node->second.public_key = *parsed;
        }
    state.loading_gates.clear();
    state.loading_keys.clear();
    refresh_declared(turn);
    for (auto& [key, lease] : state.leases) place_parts(state, lease);
    retire_without_tenants(turn);
    watch_again(state);
    for (auto& [key, workload] : state.workloads) take_up_workload(state, workload);
    for (auto& [key, node] : state.nodes) {
        node.heard = now;
        if (state.settings.last_clock > Instant{}) node.unheard_since = std::min(state.settings.last_clock, now);
        if (const auto to = lifecycle::next(lifecycle::node_edges, node.phase, lifecycle::NodeEvent::restarted)) {
            node.phase = *to;
            turn.changed_nodes.insert(key);
        }
    }
    if (state.settings.last_clock > Instant{}) doubt_coverage(turn, state.settings.last_clock);
    if (state.settings.restored) forget_fabric_tests(turn);
    if (!state.settings.restored && state.restoring) ask_for_tests_again(turn);
    if (state.settings.restored && !state.restoring) {
        state.restoring = true;
        state.standing_changed = true;
    }
    turn.log({.kind = state.settings.restored ? evidence::RecordKind::restored : evidence::RecordKind::started,
              .detail = {{"epoch", std::to_string(state.epoch)}}});
    if (state.restoring && state.nodes.empty()) {
        state.restoring = false;
        state.standing_changed = true;
    }
    turn.flush();
    return effects;
}

Effects Core::apply(Instant now, const Event& event) {
    Effects effects;
    Turn turn{.state = *state_, .now = now, .effects = effects};
    std::visit(
        [&]<class T>(const T& what) {
            if constexpr (std::same_as<T, Command>) {
                turn.actor = "api:" + what.actor;
                on_command(turn, what);
            } else if constexpr (std::same_as<T, AgentHello>) {
                on_hello(turn, what);
            } else if constexpr (std::same_as<T, AgentReport>) {
                on_report(turn, what);
            } else if constexpr (std::same_as<T, AgentHeartbeat>) {
                on_heartbeat(turn, what);
            } else if constexpr (std::same_as<T, AgentGone>) {
                on_gone(turn, what);
            } else {
                watch_silence(turn);
                watch_time(turn);
                place_work(turn);
            }
        },
        event);
    if (!state_->keepers.empty()) follow_keeping(turn);
    if (!state_->watched.empty() && (std::holds_alternative<Tick>(event) || !turn.changed_nodes.empty()))
        follow_coverage(turn);
    turn.flush();
    if (const Command* command = std::get_if<Command>(&event))
        show_object(*state_, *command, effects, effects.answers.back());
    return effects;
}

bool Core::wants_tick() const { return state_->cycle_wanted && !state_->pending.empty(); }
std::int64_t Core::epoch() const { return state_->epoch; }
bool Core::restoring() const { return state_->restoring; }
std::int64_t Core::log_size() const { return state_->log_size; }

Snapshot Core::snapshot() const {
    const State& state = *state_;
    Snapshot all;
    if (state.policy) all.policies.push_back(state.policy->object);
    for (const auto& [name, stored] : state.classes) all.classes.push_back(stored.object);
    for (const auto& [name, stored] : state.tenants) all.tenants.push_back(stored.object);
    for (const auto& [key, run] : state.workloads) all.workloads.push_back(run.object);
    for (const auto& [key, run] : state.nodes) all.nodes.push_back(shown(state, run));
    for (const auto& [key, run] : state.leases) all.leases.push_back(run.object);
    return all;
}

}  // namespace bulkhead
