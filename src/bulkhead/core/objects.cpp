// What callers declare and command. Everything is checked before anything is changed: a refused command leaves no
// trace.
#include <fmt/core.h>

#include <algorithm>

#include "bulkhead/codec/print.hpp"
#include "bulkhead/core/state.hpp"
#include "bulkhead/meter/rates.hpp"
#include "bulkhead/policy/capacity.hpp"

namespace bulkhead {

using lifecycle::UnitEvent;
using lifecycle::UnitState;

namespace {

// Of one object, as a row. Rows are read back with more room than that.
constexpr std::size_t object_bytes_max = 256 << 10;

evidence::Record about(std::string_view kind, const std::string& name, evidence::RecordKind what,
                       const std::string& tenant) {
    return {.kind = what, .tenant = tenant, .object = fmt::format("{}/{}", kind, name)};
}

// The stored object of that name; null: there is none. Workloads are called what their tenant calls them.
template <class T>
const T* stored(Core::State& state, const std::string& name, const std::string& tenant = {}) {
    if constexpr (std::same_as<T, FleetPolicy>) {
        return state.policy && state.policy->object.metadata.name == name ? &state.policy->object : nullptr;
    } else if constexpr (std::same_as<T, TenantClass>) {
        const auto found = state.classes.find(name);
        return found == state.classes.end() ? nullptr : &found->second.object;
    } else if constexpr (std::same_as<T, Tenant>) {
        const auto found = state.tenants.find(name);
        return found == state.tenants.end() ? nullptr : &found->second.object;
    } else if constexpr (std::same_as<T, GpuWorkload>) {
        const WorkloadRun* found = state.find_workload(tenant, name);
        return found == nullptr ? nullptr : &found->object;
    } else if constexpr (std::same_as<T, GpuNode>) {
        const NodeRun* found = state.find_node(name);
        return found == nullptr ? nullptr : &found->object;
    } else {
        const auto found = state.lease_names.find(name);
        return found == state.lease_names.end() ? nullptr : &state.leases.at(found->second).object;
    }
}

// What is stored under the identity of an object that somebody sends.
template <class T>
const T* stored_as(Core::State& state, const T& object) {
    if constexpr (std::same_as<T, GpuWorkload>)
        return stored<T>(state, object.metadata.name, object.spec.tenant);
    else
        return stored<T>(state, object.metadata.name);
}

// Whether a caller's object says anything new; what the system writes does not count.
template <class T>
bool says_the_same(const T& old, const T& wanted) {
    return old.spec == wanted.spec && old.metadata.labels == wanted.metadata.labels &&
           old.metadata.annotations == wanted.metadata.annotations;
}

class Applying {
public:
    Applying(Turn& turn, const command::Apply& apply, Answer& answer)
        : turn_{turn}, state_{turn.state}, apply_{apply}, answer_{answer} {}

    void run() {
        refresh_declared(turn_);
        if (apply_.objects.empty()) return refuse(Code::invalid, "there is no object to apply", "send at least one");
        if (!apply_.if_version.empty() && apply_.objects.size() != 1)
            return refuse(Code::invalid, "a version goes with one object, and there are several",
                          "send them one by one");
        for (const AnyObject& object : apply_.objects)
            if (!std::visit([&](const auto& one) { return admissible(one); }, object)) return;
        if (!consistent()) return;
        if (!compiles()) return;
        write_answer_first();
        if (apply_.dry_run) return;
        for (const AnyObject& object : apply_.objects) std::visit([&](const auto& one) { keep(one); }, object);
    }

private:
    void refuse(Code code, std::string what, std::string remedy) {
        answer_.outcome = fail(code, std::move(what), std::move(remedy));
    }

    template <class T>
    bool admissible(const T& object) {
        const std::string& name = object.metadata.name;
        const T* old = stored_as(state_, object);
        const auto no = [&](Code code, std::string what, std::string remedy) {
            refuse(code, std::move(what), std::move(remedy));
            return false;
        };
        // Who sees everything may ask what would be, also of what is not theirs to do.
        const bool only_asks = apply_.dry_run && turn_.rights.may(Permission::read_fleet);
        const auto allowed = permitted(turn_.rights, old, object);
        answer_.forbidden = !allowed && !only_asks && allowed.error().code == Code::denied;
        if (!allowed && !only_asks) return no(allowed.error().code, allowed.error().what, allowed.error().remedy);
        if constexpr (std::same_as<T, GpuLease>)
            return no(Code::denied, fmt::format("GpuLease {} is written by the system", name),
                      "apply a GpuWorkload; its lease follows");
        if constexpr (std::same_as<T, GpuNode>)
            if (old == nullptr)
                return no(Code::not_found,
                          fmt::format("there is no node {}; nodes appear when they are enrolled", name),
                          "enrol its agent, then change where it stands");
        if constexpr (std::same_as<T, FleetPolicy>)
            if (old == nullptr && state_.policy)
                return no(Code::conflict,
                          fmt::format("there is a FleetPolicy already: {}", state_.policy->object.metadata.name),
                          "change that one, or delete it first");
        if constexpr (std::same_as<T, FleetPolicy>)
            if (old != nullptr)
                if (const auto kept = meter::keeps_the_past(old->spec.pricing, object.spec.pricing, turn_.now); !kept)
                    return no(kept.error().code, fmt::format("FleetPolicy {}: {}", name, kept.error().what),
                              kept.error().remedy);
        if (apply_.mode == command::Mode::create && old != nullptr)
            return no(Code::conflict, fmt::format("{} {} exists", T::kind, name), "replace it, or choose another name");
        if (apply_.mode == command::Mode::replace && old == nullptr)
            return no(Code::not_found, fmt::format("there is no {} {}", T::kind, name), "create it first");
        if (const std::size_t size = to_compact_json(object).size(); size > object_bytes_max)
            return no(Code::invalid,
                      fmt::format("{} {} has {} bytes; at most {} are kept", T::kind, name.substr(0, 64), size,
                                  object_bytes_max),
                      "shorten its annotations, or split it");
        const std::string& version = apply_.if_version.empty() ? object.metadata.resourceVersion : apply_.if_version;
        if (!version.empty() && (old == nullptr || old->metadata.resourceVersion != version)) {
            if (old != nullptr) answer_.version = old->metadata.resourceVersion;
            return no(Code::conflict,
                      fmt::format("{} {} is at version {}, not {}", T::kind, name,
                                  old == nullptr ? "none" : old->metadata.resourceVersion, version.substr(0, 64)),
                      "read it again, and apply the change to what it says now");
        }
        if constexpr (std::same_as<T, GpuWorkload>) {
            const WorkloadRun* run = state_.find_workload(object.spec.tenant, name);
            if (run != nullptr && run->object.status->deleting)
                return no(Code::conflict, fmt::format("GpuWorkload {} is being deleted", name),
                          "wait until it is gone");
            if (run != nullptr && run->lease != 0 && run->object.spec != object.spec)
                return no(Code::conflict, fmt::format("GpuWorkload {} has a lease; what runs cannot be changed", name),
                          "delete it and apply it anew, or choose another name");
        }
        answer_.created = old == nullptr;
        return true;
    }

    // Findings of the whole as it would be.
    bool consistent() {
        candidate_ = &state_.declared;
        if (!state_.work_check) state_.work_check.emplace(state_.declared);
        for (const AnyObject& object : apply_.objects)
            std::visit(
                [&]<class T>(const T& one) {
                    if constexpr (!std::same_as<T, GpuWorkload> && !std::same_as<T, GpuLease>) {
                        if (candidate_ == &state_.declared) {
                            changed_ = state_.declared;
                            candidate_ = &changed_;
                        }
                        std::vector<T>& list = changed_.list<T>();
                        const auto at = std::ranges::find(list, one.metadata.name, [](const T& each) {
                            return std::string_view{each.metadata.name};
                        });
                        if (at == list.end())
                            list.push_back(one);
                        else if constexpr (std::same_as<T, GpuNode>)
                            at->spec = one.spec;
                        else
                            *at = one;
                    }
                },
                object);
        Snapshot* whole = candidate_;
        for (const AnyObject& object : apply_.objects)
            if (const GpuWorkload* workload = std::get_if<GpuWorkload>(&object)) whole->workloads.push_back(*workload);
        if (whole == &state_.declared) {
            answer_.findings = state_.work_check->inconsistencies();
            state_.declared.workloads.clear();
        } else {
            answer_.findings = inconsistencies(*whole);
            if (answer_.findings.empty()) answer_.findings = unkeepable_guarantees(*whole, turn_.now);
        }
        if (answer_.findings.empty()) return true;
        if (turn_.audience() == Audience::tenant) keep_own_findings();
        if (answer_.findings.empty()) {
            refuse(Code::conflict, "this would contradict what else is declared", "ask whoever runs the fleet");
            return false;
        }
        const Finding& first = answer_.findings.front();
        refuse(Code::invalid, fmt::format("{} {}{}: {}", first.kind, first.name, first.path, first.what), first.remedy);
        return false;
    }

    // What is wrong with somebody else's object is not for a tenant's eyes; and what is wrong with its own place among
    // others (guarantees, domains, the tree) is told in words that name them.
    void keep_own_findings() {
        std::erase_if(answer_.findings, [&](const Finding& finding) {
            if (finding.kind != GpuWorkload::kind && !finding.path.starts_with("/spec/bindings")) return true;
            return std::ranges::none_of(apply_.objects, [&](const AnyObject& object) {
                return std::visit(
                    [&]<class T>(const T& one) { return finding.kind == T::kind && finding.name == one.metadata.name; },
                    object);
            });
        });
    }

    bool compiles() {
        std::optional<Compiler> fresh;
        if (candidate_ == &changed_) {
            changed_.workloads.clear();
            fresh.emplace(changed_, turn_.now);
        }
        for (const AnyObject& object : apply_.objects) {
            const GpuWorkload* workload = std::get_if<GpuWorkload>(&object);
            if (workload == nullptr) continue;
            // Words are for whoever only asks what would be; placement needs the terms.
            const Compiler& compiler = fresh ? *fresh : *state_.compiler;
            Decision decision = compiler.compile(*workload, Audience::fleet_operator,
                                                 apply_.dry_run ? Written::in_full : Written::terms_alone);
            // All of them; what a tenant reads are those that are its own.
            if (turn_.audience() == Audience::tenant && (apply_.dry_run || std::holds_alternative<Refusal>(decision))) {
                decision = compiler.compile(*workload, Audience::tenant, Written::in_full);
                std::visit([&](auto& made) { made.asOf = turn_.now; }, decision);
            }
            if (const Refusal* refusal = std::get_if<Refusal>(&decision)) {
                answer_.body = to_compact_json(*refusal);
                const bool any = !refusal->objections.empty();
                refuse(Code::denied,
                       fmt::format("GpuWorkload {} is refused: {}", workload->metadata.name,
                                   any ? refusal->objections.front().says : "no node can serve it"),
                       refusal->proposal ? "the nearest request that would be accepted is in the answer"
                       : any             ? refusal->objections.front().remedy
                                         : "see why each node objects");
                return false;
            }
            Contract& contract = std::get<Contract>(decision);
            const bool only_asks = apply_.dry_run && turn_.rights.may(Permission::read_fleet);
            if (const auto allowed = permitted_to_cut(turn_.rights, *workload, contract); !allowed && !only_asks) {
                answer_.outcome = std::unexpected(allowed.error());
                return false;
            }
            contracts_.emplace(std::pair{workload->spec.tenant, workload->metadata.name},
                               std::make_unique<const Contract>(std::move(contract)));
        }
        return true;
    }

    void write_answer_first() {
        JsonWriter out{JsonLayout::compact};
        out.begin_object();
        out.key("items");
        out.begin_array();
        for (const AnyObject& object : apply_.objects)
            std::visit(
                [&]<class T>(const T& one) {
                    const T* old = stored_as(state_, one);
                    out.begin_object();
                    out.member("kind", T::kind);
                    out.member("name", one.metadata.name);
                    out.member("result", old == nullptr             ? "created"
                                         : says_the_same(*old, one) ? "unchanged"
                                                                    : "configured");
                    if constexpr (std::same_as<T, GpuWorkload>)
                        if (apply_.dry_run) {
                            out.key("contract");
                            write(out, *contracts_.at({one.spec.tenant, one.metadata.name}));
                        }
                    out.end_object();
                },
                object);
        out.end_array();
        out.end_object();
        answer_.body = out.take();
    }

    template <class T>
    void keep(const T& wanted) {
        const std::string& name = wanted.metadata.name;
        const T* old = stored_as(state_, wanted);
        if (old != nullptr && says_the_same(*old, wanted)) return;
        T object = wanted;
        object.metadata.resourceVersion = old == nullptr ? std::string{} : old->metadata.resourceVersion;
        object.metadata.generation = old == nullptr ? 1 : old->metadata.generation + (old->spec == wanted.spec ? 0 : 1);
        std::optional<Compliance> before;
        if constexpr (std::same_as<T, Tenant>) before = old == nullptr ? Compliance::off : old->spec.compliance;
        if constexpr (requires { object.status; })
            object.status = old == nullptr ? decltype(object.status){} : old->status;
        store(std::move(object));
        std::string tenant;
        if constexpr (std::same_as<T, Tenant>) tenant = name;
        if constexpr (std::same_as<T, GpuWorkload>) tenant = wanted.spec.tenant;
        evidence::Record record = about(T::kind, name, evidence::RecordKind::applied, tenant);
        record.detail["digest"] = to_hex(bytes_of(sha256(to_compact_json(wanted.spec))));
        turn_.log(std::move(record));
        if constexpr (std::same_as<T, Tenant>) note_switch(turn_, wanted, *before);
    }

    template <class T>
    void put_row(Table table, Stored<T>& stored, T object) {
        if (stored.key == 0) stored.key = state_.fresh_key();
        stored.object = std::move(object);
        turn_.touch(stored.object, stored.key);
        turn_.rows.push_back({table, stored.key, to_compact_json(stored.object), false});
        state_.declared_stale = true;
    }
    void store(FleetPolicy object) {
        if (!state_.policy) state_.policy.emplace();
        put_row(Table::policy, *state_.policy, std::move(object));
    }
    void store(TenantClass object) {
        Stored<TenantClass>& place = state_.classes[object.metadata.name];
        put_row(Table::tenant_class, place, std::move(object));
    }
    void store(Tenant object) {
        if (!object.status) object.status.emplace();
        Stored<Tenant>& place = state_.tenants[object.metadata.name];
        put_row(Table::tenant, place, std::move(object));
    }
    void store(GpuWorkload object) {
        WorkloadRun* run = state_.find_workload(object.spec.tenant, object.metadata.name);
        if (run == nullptr) {
            const Key key = state_.fresh_key();
            state_.workload_names[{object.metadata.name, object.spec.tenant}] = key;
            run = &state_.workloads[key];
            run->key = key;
            state_.pending.insert(key);
        }
        WorkHistory past = run->object.status ? std::move(run->object.status->history) : WorkHistory{};
        // What another command saved is nothing to go on from.
        if (run->object.spec.command != object.spec.command || run->object.spec.checkpoint != object.spec.checkpoint ||
            run->object.spec.tasks != object.spec.tasks)
            past.saved.clear();
        run->object = std::move(object);
        if (!run->object.status) run->object.status = GpuWorkloadStatus{.since = turn_.now};
        if (run->lease == 0) {
            run->compiled_for = candidate_ == &changed_ ? -1 : state_.generation;
            run->eligible_for = -1;
            run->contract = std::move(contracts_.at({run->object.spec.tenant, run->object.metadata.name}));
            run->waits.clear();
            run->object.status = GpuWorkloadStatus{.since = turn_.now};
        }
        run->object.status->history = std::move(past);
        turn_.changed_workloads.insert(run->key);
        state_.cycle_wanted = true;
    }
    void store(GpuNode object) {
        NodeRun& run = *state_.find_node(object.metadata.name);
        object.status = run.object.status;
        run.object = std::move(object);
        turn_.changed_nodes.insert(run.key);
        state_.fleet_stale.insert(run.key);
        state_.declared_stale = true;
    }
    void store(const GpuLease&) {}

    Turn& turn_;
    Core::State& state_;
    const command::Apply& apply_;
    Answer& answer_;
    Snapshot changed_;
    Snapshot* candidate_ = nullptr;
    std::map<std::pair<std::string, std::string>, std::unique_ptr<const Contract>> contracts_;  // by tenant and name
};

void refuse(Answer& answer, Code code, std::string what, std::string remedy) {
    answer.outcome = fail(code, std::move(what), std::move(remedy));
}

bool at_version(const Metadata& metadata, const std::string& version, std::string_view kind, Answer& answer) {
    if (version.empty() || metadata.resourceVersion == version) return true;
    answer.version = metadata.resourceVersion;
    refuse(answer, Code::conflict,
           fmt::format("{} {} is at version {}, not {}", kind, metadata.name, metadata.resourceVersion,
                       version.substr(0, 64)),
           "read it again");
    return false;
}

void missing(Answer& answer, std::string_view kind, const std::string& name) {
    refuse(answer, Code::not_found, fmt::format("there is no {} {}", kind, name),
           fmt::format("list them: bulkhead get {}", kind));
}

// Would anything still refer to it?
bool still_needed(Turn& turn, const command::Delete& wanted, Answer& answer) {
    Core::State& state = turn.state;
    if (wanted.kind == ObjectKind::tenant)
        for (const auto& [key, workload] : state.workloads)
            if (workload.object.spec.tenant == wanted.name) {
                refuse(answer, Code::conflict,
                       fmt::format("Tenant {} still has work: {}", wanted.name, workload.object.metadata.name),
                       "delete its workloads first");
                return true;
            }
    if (wanted.kind == ObjectKind::tenant)
        for (const auto& [key, lease] : state.leases)
            if (lease.object.spec.tenant == wanted.name) {
                refuse(answer, Code::conflict,
                       fmt::format("Tenant {} still has a lease that is being reclaimed", wanted.name),
                       "wait until it is closed");
                return true;
            }
    if (wanted.kind == ObjectKind::tenant)
        if (const auto found = state.tenants.find(wanted.name);
            found != state.tenants.end() && found->second.object.status && found->second.object.status->legalHold) {
            refuse(answer, Code::denied, fmt::format("Tenant {} is under legal hold", wanted.name),
                   "lift the hold first");
            return true;
        }
    if (wanted.kind == ObjectKind::policy || wanted.kind == ObjectKind::tenant_class ||
        wanted.kind == ObjectKind::tenant) {
        Snapshot without = state.declared;
        if (wanted.kind == ObjectKind::policy) without.policies.clear();
        std::erase_if(without.classes, [&](const TenantClass& one) {
            return wanted.kind == ObjectKind::tenant_class && one.metadata.name == wanted.name;
        });
        std::erase_if(without.tenants, [&](const Tenant& one) {
            return wanted.kind == ObjectKind::tenant && one.metadata.name == wanted.name;
        });
        answer.findings = inconsistencies(without);
        if (!answer.findings.empty()) {
            const Finding& first = answer.findings.front();
            refuse(answer, Code::conflict,
                   fmt::format("without it: {} {}{}: {}", first.kind, first.name, first.path, first.what),
                   first.remedy);
            return true;
        }
    }
    return false;
}

template <class Map>
void erase_stored(Turn& turn, Map& map, const std::string& name, Table table) {
    turn.rows.push_back({.table = table, .key = map.at(name).key, .erased = true});
    map.erase(name);
    turn.state.declared_stale = true;
}

void delete_workload(Turn& turn, WorkloadRun& workload) {
    turn.log(about("GpuWorkload", workload.object.metadata.name, evidence::RecordKind::deleted,
                   workload.object.spec.tenant));
    if (workload.lease != 0) {
        workload.object.status->deleting = true;
        turn.changed_workloads.insert(workload.key);
        end_lease(turn, turn.state.leases.at(workload.lease), "its workload was deleted");
        return;
    }
    turn.rows.push_back({.table = Table::workload, .key = workload.key, .erased = true});
    turn.changed_workloads.erase(workload.key);
    turn.state.pending.erase(workload.key);
    turn.state.forget_name(workload.object);
    turn.state.workloads.erase(workload.key);
}

void on_delete(Turn& turn, const command::Delete& wanted, Answer& answer) {
    Core::State& state = turn.state;
    refresh_declared(turn);
    if (auto allowed = permitted_to_delete(state, turn.rights, wanted); !allowed) {
        answer.forbidden = allowed.error().code == Code::denied;
        answer.outcome = std::move(allowed);
        return;
    }
    const auto gone = [&](std::string_view kind, const std::string& tenant = {}) {
        turn.log(about(kind, wanted.name, evidence::RecordKind::deleted, tenant));
    };
    switch (wanted.kind) {
        case ObjectKind::policy:
            if (!state.policy || state.policy->object.metadata.name != wanted.name)
                return missing(answer, "FleetPolicy", wanted.name);
            if (!at_version(state.policy->object.metadata, wanted.if_version, "FleetPolicy", answer) ||
                still_needed(turn, wanted, answer))
                return;
            if (!state.policy->object.spec.pricing.lists.empty() && !state.leases.empty())
                return refuse(answer, Code::conflict,
                              fmt::format("{} leases will be billed by the prices in it", state.leases.size()),
                              "wait until they are closed, or change it instead");
            turn.rows.push_back({.table = Table::policy, .key = state.policy->key, .erased = true});
            state.policy.reset();
            state.declared_stale = true;
            return gone("FleetPolicy");
        case ObjectKind::tenant_class: {
            const TenantClass* found = stored<TenantClass>(state, wanted.name);
            if (found == nullptr) return missing(answer, "TenantClass", wanted.name);
            if (!at_version(found->metadata, wanted.if_version, "TenantClass", answer) ||
                still_needed(turn, wanted, answer))
                return;
            erase_stored(turn, state.classes, wanted.name, Table::tenant_class);
            return gone("TenantClass");
        }
        case ObjectKind::tenant: {
            const Tenant* found = stored<Tenant>(state, wanted.name);
            if (found == nullptr) return missing(answer, "Tenant", wanted.name);
            if (!at_version(found->metadata, wanted.if_version, "Tenant", answer) || still_needed(turn, wanted, answer))
                return;
            erase_stored(turn, state.tenants, wanted.name, Table::tenant);
            tenant_gone(turn, wanted.name);
            return gone("Tenant", wanted.name);
        }
        case ObjectKind::workload: {
            const auto named = meant(turn, Permission::submit, wanted.tenant, wanted.name);
            if (!named) {
                answer.outcome = std::unexpected(named.error());
                return;
            }
            WorkloadRun& found = **named;
            if (!at_version(found.object.metadata, wanted.if_version, "GpuWorkload", answer)) return;
            if (found.object.status->deleting) return;  // asked twice: the same answer
            return delete_workload(turn, found);
        }
        case ObjectKind::node: {
            NodeRun* found = state.find_node(wanted.name);
            if (found == nullptr) return missing(answer, "GpuNode", wanted.name);
            if (!at_version(found->object.metadata, wanted.if_version, "GpuNode", answer)) return;
            if (found->phase == NodePhase::ready && !found->leases.empty())
                return refuse(answer, Code::conflict,
                              fmt::format("GpuNode {} still has {} leases", wanted.name, found->leases.size()),
                              fmt::format("drain it first: bulkhead drain {}", wanted.name));
            // Whoever removes a node forgets what was wrong with its devices, and what was kept on them.
            for (const Device* device : found->devices())
                for (const Unit& unit : device->units) {
                    const bool held = unit.state == UnitState::held;
                    if (!held && unit.state != UnitState::quarantined) continue;
                    const Permission needed = held ? Permission::lift_hold : Permission::lift_quarantine;
                    if (!turn.rights.may(needed))
                        return refuse(answer, Code::denied,
                                      fmt::format("GpuNode {} has what is {}; removing it takes the permission {}",
                                                  wanted.name, word(unit.state), word(needed)),
                                      "ask a security-admin");
                }
            gone("GpuNode");
            return remove_node(turn, *found);
        }
        case ObjectKind::lease: {
            const auto found = state.lease_names.find(wanted.name);
            if (found == state.lease_names.end()) return missing(answer, "GpuLease", wanted.name);
            return refuse(answer, Code::denied, fmt::format("GpuLease {} is written by the system", wanted.name),
                          fmt::format("delete its workload: {}", state.leases.at(found->second).object.spec.workload));
        }
    }
}

void on_drain(Turn& turn, const command::Drain& wanted, Answer& answer) {
    NodeRun* node = turn.state.find_node(wanted.node);
    if (node == nullptr) return missing(answer, "GpuNode", wanted.node);
    if (node->object.spec.unschedulable != wanted.on) {
        node->object.spec.unschedulable = wanted.on;
        ++node->object.metadata.generation;
        turn.changed_nodes.insert(node->key);
        turn.state.declared_stale = true;
        turn.state.fleet_stale.insert(node->key);
        turn.log({.kind = evidence::RecordKind::node_drained,
                  .object = "GpuNode/" + wanted.node,
                  .node = wanted.node,
                  .detail = {{"drained", wanted.on ? "true" : "false"}}});
    }
    if (wanted.on)
        for (const Key lease : std::set<Key>{node->leases})
            if (const auto found = turn.state.leases.find(lease); found != turn.state.leases.end())
                end_lease(turn, found->second, "its node is drained");
    turn.state.cycle_wanted = true;
}

void on_freeze(Turn& turn, const command::Freeze& wanted, Answer& answer) {
    const auto found = turn.state.tenants.find(wanted.tenant);
    if (found == turn.state.tenants.end()) return missing(answer, "Tenant", wanted.tenant);
    Tenant& tenant = found->second.object;
    const auto to = lifecycle::next(lifecycle::tenant_edges, tenant.status->phase,
                                    wanted.on ? lifecycle::TenantEvent::freeze : lifecycle::TenantEvent::thaw);
    if (!to) return;  // it is so already
    tenant.status->phase = *to;
    tenant.status->why = wanted.on ? wanted.why : std::string{};
    turn.touch(tenant, found->second.key);
    turn.rows.push_back({Table::tenant, found->second.key, to_compact_json(tenant), false});
    turn.state.declared_stale = true;
    turn.log({.kind = wanted.on ? evidence::RecordKind::tenant_frozen : evidence::RecordKind::tenant_thawed,
              .tenant = wanted.tenant,
              .object = "Tenant/" + wanted.tenant,
              .detail = {{"why", wanted.why}}});
    if (wanted.on) {
        std::vector<Key> leases;
        for (const auto& [key, lease] : turn.state.leases)
            if (lease.object.spec.tenant == wanted.tenant) leases.push_back(key);
        for (const Key key : leases) end_lease(turn, turn.state.leases.at(key), "its tenant is frozen");
    }
    turn.state.cycle_wanted = true;
}

void on_hold(Turn& turn, const command::Hold& wanted, Answer& answer) {
    const auto found = turn.state.tenants.find(wanted.tenant);
    if (found == turn.state.tenants.end()) return missing(answer, "Tenant", wanted.tenant);
    Tenant& tenant = found->second.object;
    if (tenant.status->legalHold == wanted.on) return;
    tenant.status->legalHold = wanted.on;
    turn.touch(tenant, found->second.key);
    turn.rows.push_back({Table::tenant, found->second.key, to_compact_json(tenant), false});
    turn.state.declared_stale = true;
    turn.log({.kind = wanted.on ? evidence::RecordKind::held : evidence::RecordKind::hold_lifted,
              .tenant = wanted.tenant,
              .object = "Tenant/" + wanted.tenant,
              .detail = {{"why", wanted.why}}});
    hold_tenant(turn, tenant, wanted.on);
}

void on_repair(Turn& turn, const command::Repair& wanted, Answer& answer) {
    NodeRun* node = turn.state.find_node(wanted.node);
    if (node == nullptr) return missing(answer, "GpuNode", wanted.node);
    Device* device = wanted.device < 0 ? nullptr : node->device(wanted.kind, static_cast<std::size_t>(wanted.device));
    if (device == nullptr)
        return refuse(answer, Code::not_found, fmt::format("node {} has no such device", wanted.node),
                      "bulkhead describe node " + wanted.node);
    bool any = false;
    for (std::size_t i = 0; i < device->units.size(); ++i)
        if (device->units[i].state == UnitState::quarantined) {
            change_unit(turn, *node, *device, i, UnitEvent::repair);
            any = true;
        }
    if (!any)
        return refuse(answer, Code::conflict, fmt::format("nothing of it is quarantined on node {}", wanted.node),
                      "bulkhead fleet shows what is");
    turn.log({.kind = evidence::RecordKind::released_from_quarantine,
              .node = wanted.node,
              .unit = unit_text(device->kind, device->index, 0, static_cast<unsigned>(device->units.size())),
              .detail = {{"why", wanted.why}}});
    sort_out_dirt(turn, *node, *device, 0, device->units.size());
    send_orders(turn, *node);
}

void on_enrol(Turn& turn, const command::Enrol& wanted, Answer& answer) {
    Core::State& state = turn.state;
    refresh_declared(turn);
    const auto key = evidence::parse_public_key(wanted.evidence_key);
    if (!key) {
        answer.outcome = std::unexpected(key.error());
        return;
    }
    if (!is_valid(Format::name, wanted.node))
        return refuse(answer, Code::invalid, "the node's name is not a DNS label",
                      std::string{explanation(Format::name)});
    NodeRun* node = state.find_node(wanted.node);
    if (node == nullptr) {
        Snapshot candidate = state.declared;
        GpuNode object;
        object.metadata.name = wanted.node;
        object.metadata.generation = 1;
        object.spec = wanted.spec;
        candidate.nodes.push_back(object);
        answer.findings = inconsistencies(candidate);
        if (!answer.findings.empty()) {
            const Finding& first = answer.findings.front();
            return refuse(answer, Code::invalid,
                          fmt::format("{} {}{}: {}", first.kind, first.name, first.path, first.what), first.remedy);
        }
        const Key row = state.fresh_key();
        node = &state.nodes[row];
        node->key = row;
        node->object = std::move(object);
        node->heard = turn.now;
        state.node_names[wanted.node] = row;
        state.declared_stale = true;
        turn.log(
            {.kind = evidence::RecordKind::node_enrolled, .object = "GpuNode/" + wanted.node, .node = wanted.node});
    }
    turn.changed_nodes.insert(node->key);
    if (node->session != 0) {  // whoever speaks for it now has yet to show the new certificate
        turn.effects.closes.push_back({wanted.node, node->session, "this node was enrolled anew"});
        node->session = 0;
        state.fleet_stale.insert(node->key);
    }
    if (node->key_row != 0 && node->signing.publicKey == wanted.evidence_key && !node->signing.retired) {
        node->signing.certificate = wanted.certificate;
        node->signing.renewed.clear();
        turn.rows.push_back({Table::key, node->key_row, to_compact_json(node->signing), false});
        return;
    }
    if (node->key_row != 0 && !node->signing.retired) {
        node->signing.retired = true;
        turn.rows.push_back({Table::key, node->key_row, to_compact_json(node->signing), false});
        turn.log({.kind = evidence::RecordKind::key_retired,
                  .node = wanted.node,
                  .detail = {{"key", evidence::key_id(*node->public_key)}}});
    }
    node->key_row = state.fresh_key();
    node->signing = {.node = node->key, .publicKey = wanted.evidence_key, .certificate = wanted.certificate};
    node->signing.leaf = turn.log(evidence::key_added(turn.now, turn.actor, wanted.node, *key));
    node->public_key = *key;
    turn.rows.push_back({Table::key, node->key_row, to_compact_json(node->signing), false});
}

void on_revoke(Turn& turn, const command::Revoke& wanted, Answer& answer) {
    NodeRun* node = turn.state.find_node(wanted.node);
    if (node == nullptr) return missing(answer, "GpuNode", wanted.node);
    if (node->key_row == 0 || node->signing.retired) return;
    node->signing.retired = true;
    turn.rows.push_back({Table::key, node->key_row, to_compact_json(node->signing), false});
    turn.log({.kind = evidence::RecordKind::key_retired, .node = wanted.node, .detail = {{"why", wanted.why}}});
    if (node->session != 0) turn.effects.closes.push_back({wanted.node, node->session, "this node was revoked"});
    node->session = 0;
    turn.state.fleet_stale.insert(node->key);
}

}  // namespace

void apply_objects(Turn& turn, const command::Apply& apply, Answer& answer) { Applying{turn, apply, answer}.run(); }

// After the turn: versions are new by then, and what changed has been written as a row already.
void show_object(Core::State& state, const Command& command, const Effects& effects, Answer& answer) {
    const auto written = [&](const WorkloadRun& run) -> const Row* {
        const auto found = std::ranges::find_if(
            effects.rows, [&](const Row& row) { return row.table == Table::workload && row.key == run.key; });
        return found == effects.rows.end() ? nullptr : &*found;
    };
    const auto show = [&]<class T>(const T* object) {
        if (object == nullptr) return;
        answer.version = object->metadata.resourceVersion;
        const Row* row = nullptr;
        if constexpr (std::same_as<T, GpuWorkload>)
            row = written(*state.find_workload(object->spec.tenant, object->metadata.name));
        if (row != nullptr)
            answer.object = row->body;
        else if constexpr (std::same_as<T, GpuNode>)
            answer.object = to_compact_json(shown(state, *state.find_node(object->metadata.name)));
        else
            answer.object = to_compact_json(*object);
    };
    if (!answer.outcome) return;
    std::visit(
        [&]<class T>(const T& what) {
            if constexpr (std::same_as<T, command::Apply>) {
                if (what.objects.size() == 1 && !what.dry_run)
                    std::visit([&]<class O>(const O& one) { show(stored_as(state, one)); }, what.objects.front());
            } else if constexpr (std::same_as<T, command::Freeze> || std::same_as<T, command::Hold>) {
                show(stored<Tenant>(state, what.tenant));
            } else if constexpr (std::same_as<T, command::Drain> || std::same_as<T, command::Repair> ||
                                 std::same_as<T, command::TestFabric> || std::same_as<T, command::Enrol> ||
                                 std::same_as<T, command::Revoke>) {
                show(stored<GpuNode>(state, what.node));
            } else if constexpr (std::same_as<T, command::Delete>) {
                if (what.kind != ObjectKind::workload) return;
                // While it stops; the name is enough only where it was enough to delete it.
                for (auto it = state.workload_names.lower_bound({what.name, what.tenant});
                     it != state.workload_names.end() && it->first.first == what.name; ++it)
                    if (const GpuWorkload& one = state.workloads.at(it->second).object;
                        (what.tenant.empty() || one.spec.tenant == what.tenant) && one.status->deleting &&
                        command.rights.may(Permission::submit, one.spec.tenant))
                        return show(&one);
            }
        },
        command.what);
}

void on_command(Turn& turn, const Command& command) {
    Answer answer{.request = command.request};
    turn.rights = command.rights;
    if (auto allowed = permitted(turn.rights, command.what); !allowed) {
        answer.forbidden = true;
        answer.outcome = std::move(allowed);
        turn.effects.answers.push_back(std::move(answer));
        return;
    }
    std::visit(
        [&]<class T>(const T& what) {
            if constexpr (std::same_as<T, command::Apply>) {
                apply_objects(turn, what, answer);
            } else if constexpr (std::same_as<T, command::SetCompliance>) {
                on_compliance(turn, what, answer);
            } else if constexpr (std::same_as<T, command::CorrectUsage>) {
                on_correction(turn, what, answer);
            } else if constexpr (std::same_as<T, command::Delete>) {
                on_delete(turn, what, answer);
            } else if constexpr (std::same_as<T, command::Drain>) {
                on_drain(turn, what, answer);
            } else if constexpr (std::same_as<T, command::Freeze>) {
                on_freeze(turn, what, answer);
            } else if constexpr (std::same_as<T, command::Hold>) {
                on_hold(turn, what, answer);
            } else if constexpr (std::same_as<T, command::Repair>) {
                on_repair(turn, what, answer);
            } else if constexpr (std::same_as<T, command::TestFabric>) {
                on_test_fabric(turn, what, answer);
            } else if constexpr (std::same_as<T, command::Enrol>) {
                on_enrol(turn, what, answer);
            } else if constexpr (std::same_as<T, command::Renew>) {
                on_renew(turn, what, answer);
            } else if constexpr (std::same_as<T, command::Revoke>) {
                on_revoke(turn, what, answer);
            } else if constexpr (std::same_as<T, command::NoteToken>) {
                evidence::Record record{
                    .kind = what.minted ? evidence::RecordKind::token_minted : evidence::RecordKind::token_revoked,
                    .tenant = what.tenant,
                    .detail = {{"id", what.id}, {"role", what.role}, {"subject", what.subject}}};
                if (!what.why.empty()) record.detail["why"] = what.why;
                turn.log(std::move(record));
            } else if constexpr (std::same_as<T, command::RotateLogKey>) {
                const std::int64_t leaf = turn.log({.kind = evidence::RecordKind::log_key_rotated,
                                                    .detail = {{"before", what.before}, {"after", what.after}}});
                answer.body = fmt::format(R"({{"leaf":{}}})", leaf);
            } else if constexpr (std::same_as<T, command::Explain>) {
                if (const auto found = meant(turn, Permission::read_tenant, what.tenant, what.workload))
                    answer.body = explain(turn, **found);
                else
                    answer.outcome = std::unexpected(found.error());
            } else if constexpr (std::same_as<T, command::NoteAccess>) {
                using enum command::NoteAccess::What;
                turn.log({.kind = what.what == signed_in ? evidence::RecordKind::signed_in
                                  : what.what == denied  ? evidence::RecordKind::access_denied
                                                         : evidence::RecordKind::tenant_entered,
                          .tenant = what.tenant,
                          .detail = what.detail});
            } else {
                answer.body = queue(turn);
            }
        },
        command.what);
    turn.effects.answers.push_back(std::move(answer));
}

}  // namespace bulkhead
