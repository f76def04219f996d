// What callers declare. Everything is checked before anything is changed: objects that are refused leave no trace.
#include <fmt/core.h>

#include <algorithm>

#include "bulkhead/codec/print.hpp"
#include "bulkhead/core/commands.hpp"
#include "bulkhead/core/state.hpp"
#include "bulkhead/meter/rates.hpp"
#include "bulkhead/policy/capacity.hpp"
#include "bulkhead/policy/guarantee.hpp"

namespace bulkhead {

namespace {

// Of one object, as a row. Rows are read back with more room than that.
constexpr std::size_t object_bytes_max = 256 << 10;

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
            std::vector<std::string> tenants;
            for (const AnyObject& object : apply_.objects)
                if (const Tenant* tenant = std::get_if<Tenant>(&object)) tenants.push_back(tenant->metadata.name);
            if (answer_.findings.empty()) answer_.findings = guarantees_refused(*whole, tenants);
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

    // The nodes also say which tenants used their hosts: a host that cannot show a verified reboot serves only those.
    Snapshot with_users_of_hosts(Snapshot all) const {
        for (GpuNode& node : all.nodes)
            if (const NodeRun* run = state_.find_node(node.metadata.name); run != nullptr && !run->host_used_by.empty())
                node.status.host = NodeHost{.usedBy = {run->host_used_by.begin(), run->host_used_by.end()}};
        return all;
    }

    // Where guarantees cannot all be kept already, as after the loss of a node, objects that make it no worse are
    // accepted.
    std::vector<Finding> guarantees_refused(const Snapshot& whole, const std::vector<std::string>& tenants) const {
        std::vector<Finding> found = unkeepable_guarantees(with_users_of_hosts(whole), turn_.now, tenants);
        if (found.empty() || asks_for_more_guarantee()) return found;
        const std::size_t before = unkeepable_guarantees(with_users_of_hosts(state_.declared), turn_.now).size();
        if (found.size() <= before) found.clear();
        return found;
    }

    bool asks_for_more_guarantee() const {
        return std::ranges::any_of(apply_.objects, [&](const AnyObject& object) {
            const Tenant* tenant = std::get_if<Tenant>(&object);
            if (tenant == nullptr || tenant->spec.quota.guarantee <= Gpus{}) return false;
            const Tenant* old = state_.declared.find<Tenant>(tenant->metadata.name);
            return old == nullptr || tenant->spec.quota.guarantee > old->spec.quota.guarantee ||
                   tenant->spec.quota.guaranteeUnit != old->spec.quota.guaranteeUnit ||
                   tenant->spec.tenantClass != old->spec.tenantClass || tenant->spec.placement != old->spec.placement ||
                   trust_group(*tenant) != trust_group(*old);
        });
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
        const bool is_new = run == nullptr;
        if (run != nullptr && run->lease == 0 && run->object.status->is_over()) {
            // Other labels, or another time to be kept, are no reason to run again what has ended.
            GpuWorkloadSpec before = run->object.spec;
            before.ttlAfterFinished = object.spec.ttlAfterFinished;
            if (before == object.spec) {
                object.status = std::move(run->object.status);
                run->object = std::move(object);
                watch_time_of(state_, *run);
                turn_.changed_workloads.insert(run->key);
                return;
            }
        }
        if (is_new) {
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
            // Failures of the earlier request do not count against the new one.
            past.failures = 0;
            past.startedAt.reset();
            past.retryAt.reset();
            run->not_before = {};
            state_.pending.insert(run->key);
        }
        if (is_new) {
            past.submittedAt = turn_.now;
            past.submittedBy = turn_.actor.starts_with("api:") ? turn_.actor.substr(4) : turn_.actor;
        }
        run->object.status->history = std::move(past);
        watch_time_of(state_, *run);
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

}  // namespace

void apply_objects(Turn& turn, const command::Apply& apply, Answer& answer) { Applying{turn, apply, answer}.run(); }

}  // namespace bulkhead
