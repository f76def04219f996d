// People at the doors: tenants who submit and forget, operators who drain, freeze, hold and repair.
#include <fmt/core.h>

#include <algorithm>

#include "sim/tenants.hpp"
#include "sim/world_state.hpp"

namespace bulkhead::sim {

void World::command(Asking what, Asked asked) {
    Server* server = leader();
    if (server == nullptr) return;
    asked.server = index_of(*server);
    const std::uint64_t request = ++requests_;
    asked_[request] = std::move(asked);
    server->inbox.emplace_back(Command{request, "sim", std::move(what)});
    wake(index_of(*server));
}

void World::enrol_everything(std::uint32_t index) {
    enrolled_ = true;
    for (AnyObject& object : declared_objects())
        command(command::Apply{.objects = {std::move(object)}}, {Asked::What::other, {}});
    for (std::uint32_t i = 0; i < agents_.size(); ++i)
        command(
            command::Enrol{
                .node = agents_[i].name, .spec = node_spec(i), .evidence_key = print(agents_[i].key.public_key())},
            {Asked::What::other, {}});
    for (AnyObject& object : declared_tenants(spec_.nodes, spec_.gpus)) late_tenants_.push_back(std::move(object));
    wake(index);
}

void World::submit() {
    if (is_calm()) return;
    at(about(spec_.between_submits), Happening::submit);
    if (!late_tenants_.empty()) {  // guarantees need nodes that have reported
        if (now_ < 120'000) return;
        command(command::Apply{.objects = late_tenants_}, {Asked::What::other, {}});
        if (++tenant_tries_ > 3) late_tenants_.clear();
        return;
    }
    if (spec_.claims && rng_.chance(200)) return claim();
    GpuWorkload workload = random_workload(rng_, ++workload_count_, spec_.gpus, spec_.claims);
    const std::string name = workload.metadata.name;
    command(command::Apply{.objects = {std::move(workload)}, .mode = command::Mode::create},
            {Asked::What::create, name, about(spec_.run_for)});
}

// A tenant asks for all that it is guaranteed, unless its last claim is still there. It waits for longer than the
// bound.
void World::claim() {
    GpuWorkload workload = random_claim(rng_, ++workload_count_, spec_.nodes, spec_.gpus);
    const std::string name = workload.metadata.name;
    Claim& last = claims_[workload.spec.tenant];
    if (!last.name.empty() && !gone_.contains(last.name) && now_ - last.at < 6 * spec_.bound.ms) return;
    last = {name, now_};
    command(command::Apply{.objects = {std::move(workload)}, .mode = command::Mode::create},
            {Asked::What::create, name, rng_.between(spec_.bound.ms, 2 * spec_.bound.ms)});
}

// Before the fleet is left alone: guarantees are claimed from a full fleet; or a limit is lowered, and gangs that start
// with any number of tasks ask for more than there is.
void World::last_input() {
    if (rng_.chance(500)) {
        for (int i = 0; i < 8; ++i) claim();
        return;
    }
    if (const Server* server = leader()) {
        std::map<std::string, Gpus> held{{"crowd", {}}, {"nightly", {}}, {"solo", {}}, {"ant", {}}, {"bee", {}}};
        for (const GpuLease& lease : server->core->snapshot().leases)
            if (const auto its = held.find(lease.spec.tenant); its != held.end() && lease.status)
                its->second.units += lease.status->gpus.units;
        const auto most = std::ranges::max_element(held, {}, [](const auto& each) { return each.second.units; });
        command(command::Apply{.objects = {limited_tenant(most->first, Gpus{most->second.units / 21 / 2 * 21})}},
                {Asked::What::other, {}});
    }
    for (const char* tenant : {"nightly", "crowd"}) {
        GpuWorkload gang = elastic_gang(tenant, ++workload_count_, spec_.nodes * spec_.gpus);
        const std::string name = gang.metadata.name;
        command(command::Apply{.objects = {std::move(gang)}, .mode = command::Mode::create},
                {Asked::What::create, name, spec_.length.ms});
    }
}

void World::forget(const std::string& name) {
    if (gone_.contains(name) || (is_calm() && !wanted_gone_.contains(name))) return;
    wanted_gone_.insert(name);
    at(20'000 + rng_.between(0, 10'000), Happening::forget, 0, names_.put(name));  // until the answer comes
    command(command::Delete{.kind = ObjectKind::workload, .name = name}, {Asked::What::remove, name});
}

void World::answered(const Answer& answer) {
    const auto found = asked_.find(answer.request);
    if (found == asked_.end()) return;
    const Asked asked = std::move(found->second);
    asked_.erase(found);
    switch (asked.what) {
        case Asked::What::create:
            if (answer.outcome) {
                checkers_.acknowledged_create(asked.name);
                at(asked.run_for, Happening::forget, 0, names_.put(asked.name));
            } else {
                checkers_.refused(asked.name);
                gone_.insert(asked.name);
                checkers_.probe(fmt::format("a request was refused: {}", code_name(answer.outcome.error().code)));
            }
            break;
        case Asked::What::remove:
            if (answer.outcome || answer.outcome.error().code == Code::not_found) {
                checkers_.acknowledged_delete(asked.name);
                gone_.insert(asked.name);
            }
            break;
        case Asked::What::other:
            if (!answer.outcome)
                checkers_.probe(fmt::format("an operator was refused: {}", answer.outcome.error().what.substr(0, 60)));
            break;
    }
}

void World::operate() {
    if (is_calm()) return;
    at(about(spec_.between_operators), Happening::operate);
    checkers_.disturbed();
    const std::int64_t later = rng_.between(60'000, 900'000);
    const auto undo_later = [&](Asking what) { at(later, Happening::undo, 0, undo_.put(std::move(what))); };
    const std::string& tenant = tenant_name(rng_);
    const std::string& node = agents_[rng_.below(agents_.size())].name;
    switch (rng_.below(5)) {
        case 0:
            fault("node drained");
            command(command::Drain{.node = node, .on = true}, {Asked::What::other, {}});
            return undo_later(command::Drain{.node = node, .on = false});
        case 1:
            fault("tenant frozen");
            command(command::Freeze{.tenant = tenant, .on = true, .why = "drill"}, {Asked::What::other, {}});
            return undo_later(command::Freeze{.tenant = tenant, .on = false, .why = "drill over"});
        case 2:
            fault("compliance turned on");
            command(command::SetCompliance{.tenant = tenant, .mode = Compliance::dedicated, .why = "audit"},
                    {Asked::What::other, {}});
            return undo_later(
                command::SetCompliance{.tenant = tenant, .mode = Compliance::off, .why = "the audit is over"});
        case 3:
            fault("limit lowered");
            command(command::Apply{.objects = {limited_tenant("ant", Gpus::of_thousandths(300))}},
                    {Asked::What::other, {}});
            // For longer than other things, so that the bound can pass.
            return at(rng_.between(600'000, 1'500'000), Happening::undo, 0,
                      undo_.put(command::Apply{.objects = {limited_tenant("ant", std::nullopt)}}));
        default:
            fault("tenant held");
            command(command::Hold{.tenant = tenant, .on = true, .why = "court"}, {Asked::What::other, {}});
            return undo_later(command::Hold{.tenant = tenant, .on = false, .why = "court is done"});
    }
}

// The operator walks through the fleet and lets broken things be tried again.
void World::repair() {
    if (!is_calm()) at(1'200'000, Happening::repair);
    checkers_.disturbed();
    for (Agent& agent : agents_)
        for (std::uint32_t gpu = 0; gpu < spec_.gpus; ++gpu)
            agent.model.set_lost(static_cast<std::uint16_t>(gpu), false);
    Server* server = leader();
    if (server == nullptr) return;
    const Snapshot all = server->core->snapshot();
    for (const GpuNode& node : all.nodes) {
        const auto try_again = [&](UnitKind kind, std::size_t device) {
            command(command::Repair{.node = node.metadata.name,
                                    .kind = kind,
                                    .device = static_cast<std::int64_t>(device),
                                    .why = "seen"},
                    {Asked::What::other, {}});
        };
        const auto broken = [](const auto& unit) { return unit.state == CleanState::quarantined; };
        for (std::size_t i = 0; i < node.status.gpus.size(); ++i)
            if (std::ranges::any_of(node.status.gpus[i].slices, broken)) try_again(UnitKind::memory, i);
        for (std::size_t i = 0; i < node.status.drives.size(); ++i)
            if (broken(node.status.drives[i])) try_again(UnitKind::drive, i);
        for (std::size_t i = 0; i < node.status.functions.size(); ++i)
            if (broken(node.status.functions[i])) try_again(UnitKind::vf, i);
        if (node.status.host && broken(*node.status.host)) try_again(UnitKind::host, 0);
    }
}

}  // namespace bulkhead::sim
