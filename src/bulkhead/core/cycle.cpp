// Placing work: what is declared goes to the compiler, what is clean goes to the scheduler, and what both allow is
// bound.
#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "bulkhead/core/state.hpp"
#include "bulkhead/gpu/amd.hpp"
#include "bulkhead/gpu/board.hpp"
#include "bulkhead/policy/guarantee.hpp"
#include "bulkhead/policy/shipped_classes.hpp"
#include "bulkhead/sched/decay.hpp"
#include "bulkhead/sched/guarantee_facts.hpp"
#include "bulkhead/sched/nearness.hpp"
#include "bulkhead/sched/need.hpp"
#include "bulkhead/sched/neighbours.hpp"

namespace bulkhead {

using lifecycle::UnitState;

namespace {

const TenantClass* class_of(const Core::State& state, const Tenant& tenant) {
    if (const auto declared = state.classes.find(tenant.spec.tenantClass); declared != state.classes.end())
        return &declared->second.object;
    for (const TenantClass& shipped : shipped_tenant_classes())
        if (shipped.metadata.name == tenant.spec.tenantClass) return &shipped;
    return nullptr;
}

std::int64_t tasks_of(const LeaseRun& lease, const GpuWorkloadSpec& spec) {
    return lease.object.spec.tasks.value_or(spec.tasks);
}

// By shares, because tasks that share a GPU hold one larger share of it.
std::int64_t tasks_here(const LeaseRun& lease, const Part& part, const GpuWorkloadSpec& spec) {
    const std::int64_t tasks = tasks_of(lease, spec);
    std::int64_t all = 0, here = 0;
    for (const LeasedSlice& slice : lease.object.spec.slices) all += slice.share;
    for (const GpuPart& gpu : part.prepare.gpus) here += gpu.share;
    return all == 0 ? tasks : tasks * here / all;
}

sched::Gpu picture_of_gpu(const Device& device, const std::string& model, Planted planted) {
    sched::Gpu gpu{.model = model, .slices = static_cast<std::uint8_t>(device.units.size())};
    if (const auto board = gpu::find_board(model); board && (*board)->id == model) gpu.board = *board;
    for (std::size_t i = 0; i < device.units.size(); ++i) {
        const UnitState state = device.units[i].state;
        const auto bit = static_cast<std::uint8_t>(1u << i);
        if (state == UnitState::available || (planted == Planted::lease_twice && state == UnitState::in_use))
            gpu.available |= bit;
        if (state == UnitState::reserved || state == UnitState::in_use) gpu.held |= bit;
        if (state == UnitState::quarantined || state == UnitState::held) gpu.lost |= bit;
    }
    // Nobody shares it, nobody gets a free part of it, and whoever is made to leave it leaves no room.
    if (!device.draining.empty()) {
        gpu.available = 0;
        gpu.lost = gpu.all();
    }
    return gpu;
}

sched::Node picture_of(Core::State& state, NodeRun& run) {
    const GpuNode& object = run.object;
    sched::Node node{.name = object.metadata.name,
                     .site = object.spec.site,
                     .zone = object.spec.zone,
                     .rack = object.spec.rack,
                     .leaf = object.spec.leaf,
                     .nvlink_domain = object.spec.nvlinkDomain,
                     .open = run.phase == NodePhase::ready && run.session != 0 && !object.spec.unschedulable &&
                             run.unfit.empty() && !state.restoring && run.strays.empty(),
                     .cpu_free = object.status.cpu,
                     .memory_free = object.status.memory.bytes};
    bool partitioned = false;
    for (const DetectedCapability& capability : object.status.capabilities)
        if (capability.name == Capability::nvlink_partition && capability.verifiedAt) partitioned = true;
    // A reboot would take along what a legal hold keeps.
    const bool reboots =
        has_verified_reboot(run) && !under_hold(state, {run.host_used_by.begin(), run.host_used_by.end()});
    node.can_reboot = reboots && !keeps_for_hold(state, run);
    if (state.settings.planted == Planted::keep_host_history && !run.leases.empty()) node.can_reboot = false;
    node.board_is_one = object.status.nvlink != NvLink::none && !partitioned;
    const UnitState host = run.host.units.empty() ? UnitState::dirty : run.host.units[0].state;
    node.host_busy = host == UnitState::sanitizing || host == UnitState::quarantined || host == UnitState::held ||
                     (host == UnitState::dirty && reboots);
    // An agent that reconnects, a host that is being rebooted. `keep_promises` says for how long that is waited for.
    node.returns = !object.spec.unschedulable && run.unfit.empty() && run.strays.empty() &&
                   host != UnitState::quarantined && host != UnitState::held;
    if (state.settings.planted != Planted::ignore_neighbours)
        for (const std::string& tenant : run.host_used_by) node.host_used_by.push_back(state.relations.number(tenant));
    std::size_t index = 0;
    for (const NodeGpus& group : object.status.gpus)
        for (std::int64_t i = 0; i < group.count && index < run.gpus.size(); ++i, ++index)
            node.gpus.push_back(picture_of_gpu(run.gpus[index], group.model, state.settings.planted));
    for (const Device& drive : run.drives)
        if (drive.units[0].state == UnitState::available && drive.index < object.status.drives.size()) {
            node.drives.push_back(drive.index);
            node.drive_bytes.push_back(object.status.drives[drive.index].size.bytes);
        }
    // An agent of an older protocol does not know how to set them.
    const bool can_set = run.protocol >= agent_protocol_fabric || !state.policy || !state.policy->object.spec.fabric;
    for (const Device& function : run.functions)
        if (can_set && function.units[0].state == UnitState::available) node.functions.push_back(function.index);
    if (!node.functions.empty()) node.closeness = run.closeness;
    for (const Key key : run.leases) {
        LeaseRun& lease = state.leases.at(key);
        const Part& part = *part_on(lease, run.key);
        if (part.phase == PartPhase::stopped) continue;
        const GpuLeaseSpec& spec = lease.object.spec;
        sched::Resident resident{.lease = key,
                                 .tenant = lease.tenant,
                                 .node = spec.sharing.node,
                                 .gpu = spec.sharing.gpu,
                                 .instance = spec.sharing.instance,
                                 .nvlink = spec.sharing.nvlink,
                                 .on_host_kernel = spec.tier < Tier::vm};
        for (const std::string& tenant : spec.sharing.excepted)
            resident.excepted.push_back(state.relations.number(tenant));
        resident.ending = lease.object.status->phase == LeasePhase::ending;
        const auto workload = state.workloads.find(lease.workload);
        if (workload != state.workloads.end())
            resident.tasks = static_cast<std::uint16_t>(tasks_here(lease, part, workload->second.object.spec));
        if (state.settings.planted == Planted::count_mps_workloads) resident.tasks = 1;
        if (state.settings.planted != Planted::ignore_neighbours) node.residents.push_back(std::move(resident));
        if (state.settings.planted != Planted::lease_twice)
            for (const GpuPart& gpu : part.prepare.gpus)
                if (gpu.gpu < node.gpus.size())
                    node.gpus[gpu.gpu].seats.push_back(
                        {key, gpu.start, gpu.size, gpu.profile, gpu.share, spec.mechanism});
        if (workload != state.workloads.end()) {
            const GpuWorkloadSpec& work = workload->second.object.spec;
            const std::int64_t tasks = tasks_here(lease, part, work);
            node.cpu_free -= tasks * work.cpu.value_or(0);
            if (work.memory) node.memory_free -= tasks * work.memory->bytes;
        }
    }
    return node;
}

std::vector<sched::TenantFacts> tenant_facts(Core::State& state) {
    std::vector<sched::TenantFacts> all(state.relations.size());
    for (sched::TenantNo number = 0; number < all.size(); ++number) {
        sched::TenantFacts& facts = all[number];
        facts.name = state.relations.name(number);
        facts.domain = state.relations.domain(number);
        facts.weight = 0;
        facts.usage = state.usage[number] / (gpu_unit * 1000);
        facts.usage_ms = state.usage[number] % (gpu_unit * 1000);
        const auto tenant = state.tenants.find(facts.name);
        if (tenant == state.tenants.end()) continue;
        const TenantSpec& spec = tenant->second.object.spec;
        facts.weight = spec.quota.weight;
        facts.shares = spec.quota.weight;
        facts.over_quota_priority = spec.quota.overQuotaPriority;
        sched::tell_guarantee(tenant->second.object, state.declared, facts);
        facts.grant = spec.priorityGrant;
        facts.reclaim_after = spec.quota.reclaimMinRuntime;
        facts.preempt_after = spec.quota.preemptMinRuntime;
        if (!spec.parent.empty()) facts.parent = state.relations.number(spec.parent);
        if (state.settings.planted == Planted::ignore_quota) {
            facts.guarantee = Gpus::whole(1'000'000);
            continue;
        }
        facts.limit = spec.quota.limit;
        const TenantClass* sold = class_of(state, tenant->second.object);
        facts.hard = sold != nullptr && sold->spec.quota == QuotaModel::hard;
        if (state.settings.planted == Planted::serve_by_due_alone) {
            if (facts.hard) facts.limit = facts.guarantee;
            facts.guarantee = {};
            facts.hard = false;
        }
    }
    return all;
}

// Brings usage up to date, to the millisecond: a turn that comes seconds after a job counts those seconds. Usage decays
// in steps of whole minutes, so that how often it is asked for does not matter.
void age_usage(Core::State& state, Instant now, Duration half_life) {
    constexpr std::int64_t step_ms = 60'000;
    state.usage.resize(state.relations.size());
    if (state.usage_at == Instant{}) state.usage_at = state.usage_decayed_at = now;
    for (const auto& [key, lease] : state.leases)
        if (lease.object.status->phase == LeasePhase::active) count_usage(state, lease, now);
    state.usage_at = std::max(state.usage_at, now);
    const Duration due{(now - state.usage_decayed_at).ms / step_ms * step_ms};
    if (due.ms <= 0) return;
    for (std::int64_t& usage : state.usage) usage = sched::decayed(usage, due, half_life);
    state.usage_decayed_at = state.usage_decayed_at + due;
}

void compile(Turn& turn, WorkloadRun& workload) {
    Core::State& state = turn.state;
    if (workload.compiled_for == state.generation) return;
    workload.compiled_for = state.generation;
    Decision decision = state.compiler->compile(workload.object, Audience::fleet_operator, Written::terms_alone);
    GpuWorkloadStatus& status = *workload.object.status;
    if (Contract* contract = std::get_if<Contract>(&decision)) {
        workload.contract = std::make_unique<const Contract>(std::move(*contract));
        if (status.phase == WorkloadPhase::refused) {
            move_on(status, {.phase = WorkloadPhase::pending, .since = turn.now});
            turn.changed_workloads.insert(workload.key);
        }
        return;
    }
    // Accepted once, and the fleet or the policy has changed since.
    workload.contract.reset();
    std::vector<std::string> reasons;
    for (const Objected& objection : std::get<Refusal>(decision).objections) reasons.push_back(objection.says);
    if (status.phase == WorkloadPhase::refused && status.reasons == reasons) return;
    move_on(status, {.phase = WorkloadPhase::refused, .since = turn.now, .reasons = std::move(reasons)});
    turn.changed_workloads.insert(workload.key);
}

std::vector<std::string> waiting_words(const std::vector<Reason>& reasons) {
    std::vector<std::string> words;
    words.reserve(reasons.size());
    for (const Reason& reason : reasons) {
        // What a tenant is due follows from what others want: not its business, and no obstacle by itself.
        if (reason.code == "wait.due") continue;
        words.push_back(fill(sched::words_of(reason.code, Audience::tenant), reason.arguments, Audience::tenant));
    }
    if (words.empty() && !reasons.empty()) words.emplace_back(sched::words_of("wait.order"));
    return words;
}

// One for each task, as the scheduler gives them.
std::int64_t functions_of(const WorkloadRun& workload, std::int64_t tasks) {
    return workload.object.spec.network.rdma ? tasks : 0;
}

// Of an elastic gang, no more than there are addresses for.
std::int64_t tasks_within_reach(Core::State& state, const GpuWorkloadSpec& spec) {
    if (!spec.network.rdma || !spec.minTasks) return spec.tasks;
    const std::int64_t group = spec.topology.groupTasks.value_or(1);
    const std::int64_t room = std::min(fabric_room(state, spec.tenant), spec.tasks);
    return std::max(room / group * group, *spec.minTasks);
}

void wait(Turn& turn, WorkloadRun& workload, std::vector<Reason> reasons) {
    if (workload.waits == reasons && workload.object.status->phase == WorkloadPhase::pending) return;
    workload.waits = std::move(reasons);
    std::vector<std::string> words = waiting_words(workload.waits);
    if (words == workload.object.status->reasons) return;
    workload.object.status->reasons = std::move(words);
    turn.changed_workloads.insert(workload.key);
}

}  // namespace

void read_terms(const Core::State& state, WorkloadRun& workload) {
    if (workload.contract || workload.terms_for == state.generation) return;
    workload.terms_for = state.generation;
    Decision decision = state.compiler->compile(workload.object, Audience::fleet_operator, Written::terms_alone);
    if (Contract* contract = std::get_if<Contract>(&decision))
        workload.contract = std::make_unique<const Contract>(std::move(*contract));
}

void refresh_declared(Turn& turn) {
    Core::State& state = turn.state;
    // Evidence ages: what was fresh an hour ago may not be now.
    if (turn.now - state.compiled_at > Duration::hours(1)) state.declared_stale = true;
    if (!state.declared_stale) return;
    state.declared_stale = false;
    state.compiled_at = turn.now;
    state.work_check.reset();
    state.declared = {};
    if (state.policy) state.declared.policies.push_back(state.policy->object);
    for (const auto& [name, stored] : state.classes) state.declared.classes.push_back(stored.object);
    for (const auto& [name, stored] : state.tenants) state.declared.tenants.push_back(stored.object);
    for (auto& [key, node] : state.nodes) {
        // A simulated node's word is as good an hour later.
        for (DetectedCapability& capability : node.object.status.capabilities)
            if (capability.verifiedAt && state.settings.simulated_fleet) capability.verifiedAt = turn.now;
        state.declared.nodes.push_back(node.object);
    }
    state.compiler.emplace(state.declared, turn.now);
    state.relations.update(state.declared);
    ++state.generation;
    state.eligible_sets.clear();
    state.kinds_stale = true;
    for (const auto& [key, node] : state.nodes) state.fleet_stale.insert(key);
    state.cycle_wanted = true;
}

namespace {

// Promises name nodes by their place in the list; what was promised on a node that is gone is gone.
void renumber_promises(Core::State& state, const std::map<Key, std::uint32_t>& before) {
    std::map<std::uint32_t, std::uint32_t> now;
    for (const auto& [key, index] : before)
        if (const auto found = state.fleet_index.find(key); found != state.fleet_index.end())
            now[index] = found->second;
    std::erase_if(state.promises, [&](sched::Promise& promise) {
        return std::ranges::any_of(promise.tasks, [&](sched::TaskSeat& task) {
            const auto found = now.find(task.node);
            if (found == now.end()) return true;
            task.node = found->second;
            return false;
        });
    });
}

}  // namespace

void NodeRun::measure_closeness() {
    std::size_t count = 0;
    for (const NodeGpus& group : object.status.gpus) count += static_cast<std::size_t>(group.count);
    closeness = sched::closeness_of(object.status, count);
}

void refresh_fleet(Core::State& state) {
    const bool somebody_new = std::ranges::any_of(
        state.fleet_stale, [&](Key key) { return state.nodes.contains(key) && !state.fleet_index.contains(key); });
    if (somebody_new || state.fleet_index.size() != state.nodes.size()) {
        state.fleet.assign(state.nodes.size(), {});
        state.asked.reset();  // it counts nodes by their places in the list before
        const std::map<Key, std::uint32_t> before = std::exchange(state.fleet_index, {});
        state.kinds_stale = true;
        std::uint32_t index = 0;
        for (const auto& [key, node] : state.nodes) {
            state.fleet_index[key] = index++;
            state.fleet_stale.insert(key);
        }
        renumber_promises(state, before);
    }
    for (const Key key : state.fleet_stale)
        if (const auto node = state.nodes.find(key); node != state.nodes.end())
            state.fleet[state.fleet_index.at(key)] = picture_of(state, node->second);
    state.fleet_stale.clear();
}

namespace {

// Trust that is withdrawn reaches those who sit together already: the younger of two goes, and is placed elsewhere.
void part_whom_trust_left(Turn& turn) {
    Core::State& state = turn.state;
    if (state.parted_for == state.generation) return;
    state.parted_for = state.generation;
    refresh_fleet(state);
    std::set<Key> leaving;
    for (const sched::Node& node : state.fleet)
        for (const Key lease : sched::intruders(state.relations, node)) leaving.insert(lease);
    for (const Key lease : leaving)
        end_lease(turn, state.leases.at(lease),
                  "it may no longer be where somebody else's work is: trust was withdrawn");
}

}  // namespace

namespace {

constexpr sched::EngineSettings engine_settings{.stale_grace = Duration::days(365),  // the core ends what lost a part
                                                .grow = false,
                                                .grow_by_restart = true,
                                                .wipes = true};

bool is_model(const NodeRun& node) { return node.object.status.runsCommands == false; }

// The nodes that its contract names, and those that it would name if they were not closed: the scheduler reports these
// as closed. A model of a node takes work and runs nothing, so a command goes to models only in a fleet that has no
// other nodes.
std::vector<std::string> nodes_for(const Core::State& state, WorkloadRun& workload, bool commands_run) {
    std::vector<std::string> names = workload.contract->nodes;
    const std::vector<std::string>& closed = workload.contract->closed_nodes;
    names.insert(names.end(), closed.begin(), closed.end());
    workload.models_left_out = 0;
    workload.runs_nowhere = false;
    if (workload.object.spec.command.empty() || !commands_run) return names;
    workload.models_left_out = static_cast<std::int64_t>(std::erase_if(names, [&](const std::string& name) {
        const auto node = state.node_names.find(name);
        return node != state.node_names.end() && is_model(state.nodes.at(node->second));
    }));
    workload.runs_nowhere = names.empty();
    return names;
}

// Models that were left out count as models, not as nodes that the contract excludes.
std::vector<Reason> with_models(const WorkloadRun& workload, std::vector<Reason> reasons) {
    if (workload.models_left_out == 0) return reasons;
    const auto excluded = std::ranges::find(reasons, "wait.kind", &Reason::code);
    if (excluded != reasons.end()) {
        Argument& count = excluded->arguments.front();
        const std::int64_t others = std::get<std::int64_t>(count.value) - workload.models_left_out;
        if (others > 0)
            count.value = others;
        else
            reasons.erase(excluded);
    }
    reasons.insert(reasons.begin(),
                   {workload.runs_nowhere ? "wait.no-commands" : "wait.models", {{"count", workload.models_left_out}}});
    return reasons;
}

// Nodes that are in the same sets are of one kind; a contract's set is the kinds in it. Most contracts name the same
// nodes as many others.
void refresh_kinds(Core::State& state, const std::vector<Key>& waiting) {
    const bool commands_run =
        std::ranges::any_of(state.nodes, [](const auto& entry) { return !is_model(entry.second); });
    for (const Key key : waiting) {
        WorkloadRun& workload = state.workloads.at(key);
        if (workload.eligible_for == state.generation) continue;
        workload.eligible_for = state.generation;
        const auto [set, fresh] = state.eligible_sets.try_emplace(
            nodes_for(state, workload, commands_run), static_cast<std::uint32_t>(state.eligible_sets.size()));
        workload.eligible = set->second;
        state.kinds_stale = state.kinds_stale || fresh;
    }
    if (!state.kinds_stale) return;
    state.kinds_stale = false;
    std::vector<std::vector<std::uint32_t>> sets_of(state.fleet.size());
    for (const auto& [names, number] : state.eligible_sets)
        for (const std::string& name : names)
            if (const auto node = state.node_names.find(name); node != state.node_names.end())
                sets_of[state.fleet_index.at(node->second)].push_back(number);
    state.node_kinds.assign(state.fleet.size(), 0);
    state.kinds_of_set.assign(state.eligible_sets.size(), {0});  // no node is of kind 0
    std::map<std::vector<std::uint32_t>, std::uint32_t> kinds;
    for (std::size_t i = 0; i < sets_of.size(); ++i) {
        const auto [kind, fresh] = kinds.try_emplace(sets_of[i], static_cast<std::uint32_t>(kinds.size() + 1));
        state.node_kinds[i] = kind->second;
        if (fresh)
            for (const std::uint32_t set : sets_of[i]) state.kinds_of_set[set].push_back(kind->second);
    }
}

// A node that says nothing for longer than its leases would be kept, and is not being rebooted either, is not waited
// for: the room on it is looked for elsewhere.
bool is_waited_for(const Core::State& state, const NodeRun& node, Instant now) {
    if (node.session != 0 || node.phase != NodePhase::fenced) return true;
    const bool reboots = !node.host.units.empty() && (node.host.units[0].state == UnitState::sanitizing ||
                                                      node.host.units[0].state == UnitState::dirty);
    return now - node.heard <= (reboots ? state.settings.reboot_within : state.settings.lost_after);
}

// `jobs`: of workloads that wait, and of gangs that run and may grow.
void keep_promises(Turn& turn, sched::Engine& engine, const std::map<Key, sched::JobNo>& jobs) {
    std::vector<const NodeRun*> nodes;
    nodes.reserve(turn.state.nodes.size());
    for (const auto& [key, node] : turn.state.nodes) nodes.push_back(&node);
    for (const sched::Promise& promise : turn.state.promises) {
        const auto job = jobs.find(promise.workload);
        if (job == jobs.end()) continue;
        const bool waited_for = std::ranges::all_of(promise.tasks, [&](const sched::TaskSeat& task) {
            return is_waited_for(turn.state, *nodes.at(task.node), turn.now);
        });
        if (waited_for) engine.keep(job->second, promise);
    }
}

// Running work that could be moved: its terms are known, and it may be stopped. In very large fleets what each may be
// moved to is not looked up.
std::vector<Key> movable_work(Core::State& state) {
    constexpr std::size_t names_at_most = 4'000'000;
    std::vector<Key> out;
    if (state.leases.size() * state.nodes.size() > names_at_most) return out;
    for (const auto& [key, lease] : state.leases) {
        const auto workload = state.workloads.find(lease.workload);
        if (lease.object.status->phase != LeasePhase::active || workload == state.workloads.end()) continue;
        read_terms(state, workload->second);
        if (workload->second.contract && workload->second.contract->preemptible) out.push_back(lease.workload);
    }
    return out;
}

// How often it saves its work: one with a checkpoint command saves it whenever it is stopped.
std::optional<Duration> saves_every(const GpuWorkloadSpec& spec) {
    return spec.checkpoint ? std::optional{Duration{1}} : spec.checkpointInterval;
}

struct Decided {
    sched::Statement statement;
    // Of running workloads that give up spare tasks, or grow: the tasks that they have then.
    std::map<Key, std::vector<sched::TaskSeat>> stays;
    std::optional<Instant> grow_at;  // when running gangs are to be looked at again, for more tasks
};

// A gang that was made smaller and has lost the place that was kept for it starts with as many tasks as it can.
void forget_lost_places(Core::State& state, const std::vector<Key>& waiting) {
    for (const Key key : waiting) {
        WorkloadRun& workload = state.workloads.at(key);
        if (workload.stays > 0 &&
            std::ranges::find(state.promises, key, &sched::Promise::workload) == state.promises.end())
            workload.stays = 0;
    }
}

// The engine is drawn anew from what the core knows: one truth, and nothing to keep in step.
Decided decide(Turn& turn, const std::vector<Key>& waiting) {
    Core::State& state = turn.state;
    std::vector<Key> unplaced = stopping_with_a_place(state);
    const auto stopping = unplaced.size();
    forget_lost_places(state, waiting);
    unplaced.insert(unplaced.end(), waiting.begin(), waiting.end());
    const std::vector<Key> movable = movable_work(state);
    std::vector<Key> looked_up = unplaced;
    looked_up.insert(looked_up.end(), movable.begin(), movable.end());
    refresh_kinds(state, looked_up);
    const std::set<Key> may_move{movable.begin(), movable.end()};
    age_usage(state, turn.now, engine_settings.half_life);
    state.asked.reset();
    sched::Engine engine{engine_settings};
    engine.set_tenants(tenant_facts(state));
    std::map<Key, sched::JobNo> by_lease, by_workload, growing;
    Decided decided;
    state.gangs_lack = false;
    const auto submit = [&](const WorkloadRun& workload, sched::TenantNo tenant, const sched::TaskNeed& need,
                            std::int64_t tasks, std::int64_t least, Gpus gpus, bool held_back = false,
                            std::int64_t grow_by = 0) {
        const GpuWorkloadSpec& spec = workload.object.spec;
        if (state.settings.planted == Planted::count_in_thousandths && tasks > 0)
            gpus = Gpus{(gpus.units / tasks * 1000 + gpu_unit - 1) / gpu_unit * (gpu_unit / 1000) * tasks};
        sched::Job job{.key = workload.key,
                       .tenant = tenant,
                       .shape = engine.shape(need),
                       .tasks = static_cast<std::int32_t>(tasks),
                       .least = static_cast<std::int32_t>(least),
                       .grow_by = static_cast<std::int32_t>(grow_by),
                       .all = gpus,
                       .within = spec.topology.within,
                       .prefer = spec.topology.prefer,
                       .group = static_cast<std::int32_t>(spec.topology.groupTasks.value_or(0)),
                       .group_within = spec.topology.groupWithin,
                       .priority = workload.contract ? workload.contract->priority : spec.priority.value_or(0),
                       .preemptible = workload.contract && workload.contract->preemptible,
                       .held_back = held_back,
                       .submitted = workload.object.status->since.value_or(turn.now),
                       .deadline = spec.deadline,
                       .duration = spec.duration,
                       .checkpoint = saves_every(spec)};
        return engine.submit(job);
    };
    for (auto& [key, lease] : state.leases) {
        const GpuLeaseStatus& status = *lease.object.status;
        const auto workload = state.workloads.find(lease.workload);
        if (status.phase == LeasePhase::ending || workload == state.workloads.end()) continue;
        read_terms(state, workload->second);
        const GpuLeaseSpec& spec = lease.object.spec;
        sched::TaskNeed need{
            .mechanism = spec.mechanism,
            .cpu = workload->second.object.spec.cpu.value_or(0),
            .memory = workload->second.object.spec.memory.value_or(ByteSize{}).bytes,
            .sharing = {spec.sharing.node, spec.sharing.gpu, spec.sharing.instance, spec.sharing.nvlink},
            .on_host_kernel = spec.tier < Tier::vm,
            .keeps_node = spec.sharing.keepsNode,
            .keeps_gpu = spec.sharing.keepsGpu};
        for (const std::string& tenant : spec.sharing.excepted) need.excepted.push_back(state.relations.number(tenant));
        if (may_move.contains(lease.workload)) {
            const sched::TaskNeed asked = sched::need_of(workload->second.object.spec, *workload->second.contract);
            need.wants = asked.wants;
            need.any_model = asked.any_model;
            need.nvme = asked.nvme;
            need.rdma = asked.rdma;
            need.kinds = state.kinds_of_set[workload->second.eligible];
        }
        const GpuWorkloadSpec& asked_for = workload->second.object.spec;
        const std::int64_t tasks = tasks_of(lease, asked_for);
        const std::int64_t least = may_shrink(asked_for) ? std::min(*asked_for.minTasks, tasks) : 0;
        const bool known = status.phase != LeasePhase::active || may_move.contains(lease.workload);
        const std::optional<Lack> lack = known ? lack_of(state, lease, turn.now) : std::nullopt;
        if (lack) {
            state.gangs_lack = true;
            decided.grow_at = std::min(decided.grow_at.value_or(lack->next), lack->next);
        }
        const bool may_grow = lack && may_move.contains(lease.workload);
        const std::int64_t asks = may_grow ? lack->asks : tasks;
        const sched::JobNo job = submit(workload->second, lease.tenant, need, asks, least,
                                        Gpus{status.gpus.units / tasks * asks + status.gpus.units % tasks}, false,
                                        may_grow ? lack->grow_by : 0);
        engine.run(job, status.activeAt.value_or(*status.boundAt), static_cast<std::int32_t>(tasks));
        by_lease[key] = job;
        if (asks > tasks) {
            growing[lease.workload] = job;
            if (state.searched.contains(lease.workload)) engine.searched(job);
        }
    }
    for (std::size_t i = 0; i < state.fleet.size(); ++i) {
        sched::Node& node = state.fleet[i];
        node.kind = state.node_kinds[i];
        for (sched::Resident& resident : node.residents) {
            const auto job = by_lease.find(resident.lease);
            resident.job = job == by_lease.end() ? ~0u : job->second;
        }
        engine.add_node(node);
    }
    for (std::size_t i = 0; i < unplaced.size(); ++i) {
        const Key key = unplaced[i];
        const WorkloadRun& workload = state.workloads.at(key);
        const sched::TenantNo tenant = state.relations.number(workload.object.spec.tenant);
        sched::TaskNeed need = sched::need_of(workload.object.spec, *workload.contract);
        need.kinds = state.kinds_of_set[workload.eligible];
        for (const ExceptionInForce& exception : workload.contract->exceptions)
            for (const std::string& other : exception.tenants)
                if (other != workload.contract->tenant) need.excepted.push_back(state.relations.number(other));
        const GpuWorkloadSpec& spec = workload.object.spec;
        const std::int64_t tasks = workload.stays > 0 ? workload.stays : tasks_within_reach(state, spec);
        const Gpus gpus{(workload.contract->gpus.units * tasks + spec.tasks - 1) / spec.tasks};
        by_workload[key] = submit(workload, tenant, need, tasks, workload.stays > 0 ? 0 : spec.minTasks.value_or(0),
                                  gpus, i < stopping);
        if (state.searched.contains(key)) engine.searched(by_workload[key]);
    }
    std::map<Key, sched::JobNo> asking = by_workload;
    asking.insert(growing.begin(), growing.end());
    if (state.settings.planted != Planted::forget_promises) keep_promises(turn, engine, asking);
    decided.statement = engine.cycle(turn.now);
    for (const sched::Binding& binding : decided.statement.bind)
        if (const auto job = growing.find(binding.workload); job != growing.end())
            decided.stays[binding.workload] = engine.seats(job->second);
    for (const sched::Eviction& eviction : decided.statement.evict)
        if (!eviction.whole)
            if (const auto job = by_lease.find(state.workloads.at(eviction.workload).lease); job != by_lease.end())
                decided.stays[eviction.workload] = engine.seats(job->second);
    state.promises = engine.promises();
    state.searched.clear();
    if (decided.statement.unfinished)
        for (const auto& [key, job] : asking)
            if (engine.was_searched(job)) state.searched.insert(key);
    state.asked.emplace(std::move(engine), std::move(by_workload));
    return decided;
}

// `stays`: the tasks that it keeps; none of a job that goes whole.
void evict(Turn& turn, const sched::Eviction& eviction, std::vector<sched::TaskSeat> stays) {
    const WorkloadRun& workload = turn.state.workloads.at(eviction.workload);
    const auto lease = turn.state.leases.find(workload.lease);
    if (lease == turn.state.leases.end()) return;
    std::string why{eviction.action == sched::Action::preempt ? "preempted: "
                    : eviction.action == sched::Action::limit ? "over its limit: "
                                                              : "reclaimed: "};
    for (const Reason& reason : eviction.reasons)
        why += fill(sched::words_of(reason.code, Audience::tenant), reason.arguments, Audience::tenant);
    if (stays.empty()) return end_lease(turn, lease->second, why);
    why += fmt::format("; it starts again with {} of its {} tasks", stays.size(),
                       lease->second.object.spec.tasks.value_or(workload.object.spec.tasks));
    start_again(turn, lease->second, std::move(stays), why);
}

// Only where a bug is planted.
bool is_forgotten(const Core::State& state, const sched::Statement& statement, const sched::Eviction& eviction) {
    if (state.settings.planted == Planted::exceed_lowered_limits) return eviction.action == sched::Action::limit;
    return state.settings.planted == Planted::end_one_job_at_most && eviction.claimant != 0 &&
           std::ranges::count(statement.evict, eviction.claimant, &sched::Eviction::claimant) > 1;
}

}  // namespace

void place_work(Turn& turn) {
    Core::State& state = turn.state;
    refresh_declared(turn);
    if (state.settings.planted != Planted::ignore_neighbours) part_whom_trust_left(turn);
    if (state.settings.planted == Planted::evict_for_nothing)
        for (auto& [key, lease] : state.leases)
            if (lease.object.status->phase == LeasePhase::active &&
                turn.now - *lease.object.status->activeAt > Duration{60'000}) {
                end_lease(turn, lease, "planted");
                break;
            }
    if (turn.now >= state.retry_at) state.cycle_wanted = true;
    if (!state.cycle_wanted) return;
    state.cycle_wanted = false;
    state.retry_at = Instant{std::numeric_limits<std::int64_t>::max()};
    // A change of what is declared may have lowered a limit, whether or not work waits.
    const bool declared_anew = std::exchange(state.limits_kept_for, state.generation) != state.generation;
    if (state.pending.empty() && !declared_anew && !state.over_limit && !state.gangs_lack) return;
    refresh_fleet(state);

    std::vector<Key> waiting;
    FabricLook fabric;
    for (const Key key : std::set<Key>{state.pending}) {
        WorkloadRun& workload = state.workloads.at(key);
        compile(turn, workload);
        if (!workload.contract) continue;
        const auto tenant = state.tenants.find(workload.object.spec.tenant);
        if (tenant == state.tenants.end()) continue;
        if (tenant->second.object.status && tenant->second.object.status->phase != TenantPhase::active) {
            wait(turn, workload, {{"wait.frozen", {}}});
            continue;
        }
        if (turn.now < workload.not_before) {
            state.retry_at = std::min(state.retry_at, workload.not_before);
            continue;
        }
        if (state.restoring) {
            wait(turn, workload, {{"wait.restoring", {}}});
            continue;
        }
        const GpuWorkloadSpec& spec = workload.object.spec;
        if (auto reason =
                await_fabric(turn, fabric, spec.tenant, functions_of(workload, spec.minTasks.value_or(spec.tasks)))) {
            wait(turn, workload, {std::move(*reason)});
            continue;
        }
        waiting.push_back(key);
    }
    const auto [statement, stays, grow_at] = decide(turn, waiting);
    for (const sched::Binding& binding : statement.bind) {
        WorkloadRun& workload = state.workloads.at(binding.workload);
        if (!state.pending.contains(binding.workload)) {  // a gang that runs, with the tasks that it grows by
            if (!waits_for_a_move(turn, statement, binding))
                carry_out_growth(turn, binding, stays.at(binding.workload));
            continue;
        }
        if (waits_for_a_move(turn, statement, binding)) {
            wait(turn, workload, {{"wait.freeing", {{"tasks", std::ssize(binding.tasks)}}}});
            continue;
        }
        // Another of the same tenant's may have taken the last addresses in this very cycle.
        if (auto reason = await_fabric(turn, fabric, workload.object.spec.tenant,
                                       functions_of(workload, std::ssize(binding.tasks)))) {
            wait(turn, workload, {std::move(*reason)});
            state.retry_at = std::min(state.retry_at, turn.now + Duration{60'000});
            continue;
        }
        workload.freeing.reset();
        bind(turn, workload, binding);
    }
    // Whole jobs first: a gang that gave up spare tasks for one claimant may go whole for the next.
    for (const bool whole : {true, false})
        for (const sched::Eviction& eviction : statement.evict) {
            if (eviction.whole != whole || is_forgotten(state, statement, eviction)) continue;
            const auto kept = stays.find(eviction.workload);
            evict(turn, eviction, whole || kept == stays.end() ? std::vector<sched::TaskSeat>{} : kept->second);
            if (state.settings.planted == Planted::forget_promises && eviction.claimant != 0)
                state.workloads.at(eviction.claimant).not_before = turn.now + Duration{30'000};
        }
    for (const sched::Move& moved : statement.move) carry_out_move(turn, moved);
    follow_freeing(turn);
    for (const sched::Waiting& each : statement.waiting) {
        WorkloadRun& workload = state.workloads.at(each.workload);
        std::vector<Reason> reasons = with_models(workload, each.reasons);
        if (auto bound = bound_of(workload)) reasons.insert(reasons.begin(), std::move(*bound));
        wait(turn, workload, std::move(reasons));
    }
    // There were more to make room for than one cycle looks for; the next goes on with the others.
    if (statement.unfinished) state.retry_at = turn.now;
    // Minimum run times pass, deadlines near, patience ends.
    state.over_limit = !statement.over_limit.empty();
    if (!statement.waiting.empty() || state.over_limit)
        state.retry_at = std::min(state.retry_at, turn.now + Duration{60'000});
    if (grow_at) state.retry_at = std::min(state.retry_at, *grow_at);
    // A claim is served as soon as the minimum run times in its way are over.
    for (const sched::Promise& promise : state.promises)
        if (promise.expected && *promise.expected > turn.now)
            state.retry_at = std::min(state.retry_at, *promise.expected);
    std::vector<Key> keys;
    keys.reserve(state.nodes.size());
    for (const auto& [key, node] : state.nodes) keys.push_back(key);
    for (const std::uint32_t index : statement.reboot) {
        NodeRun& node = state.nodes.at(keys.at(index));
        state.fleet_stale.insert(node.key);
        if (node.host.units[0].state != UnitState::in_use) continue;
        // A gang that has left this node may take long to end on others.
        if (!std::ranges::all_of(node.leases, [&](Key key) { return has_left(node, state.leases.at(key)); })) continue;
        if (keeps_for_hold(state, node)) continue;  // memory does not outlive a reboot
        node.host.units[0].lease = 0;
        node.host.units[0].tenants.clear();
        for (const std::string& user : node.host_used_by) add_tenant(node.host.units[0], user);
        change_unit(turn, node, node.host, 0, lifecycle::UnitEvent::release);
        sort_out_dirt(turn, node, node.host, 0, 1);
        send_orders(turn, node);
    }
}

}  // namespace bulkhead
