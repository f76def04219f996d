// One lease at a time: what is made for it, and how that is taken apart again. Steps on different devices go on side by
// side; on one device they keep their order. After a crash everything begins again at the first step of its aim.
#include <fmt/core.h>

#include <algorithm>
#include <tuple>

#include "bulkhead/node/executor.hpp"

namespace bulkhead {

namespace {

// Largest first, as NVIDIA's own tools do: with places given no order can fail, but a driver that looks at the order
// sees the one that is known to work.
std::vector<GpuPart> instances_of(const Prepare& order) {
    std::vector<GpuPart> parts;
    for (const GpuPart& part : order.gpus)
        if (!part.profile.empty()) parts.push_back(part);
    std::ranges::sort(parts, {}, [](const GpuPart& part) { return std::tuple{part.gpu, -int{part.size}, part.start}; });
    return parts;
}

FabricPort port_of(const Prepare& order, std::uint16_t function) {
    const auto found = std::ranges::find(order.ports, function, &FabricPort::function);
    return found == order.ports.end() ? FabricPort{.function = function} : *found;
}

}  // namespace

Executor::Work Executor::work_for(const Ledger::Lease& lease) const {
    const Prepare& order = lease.order;
    Work work;
    const auto step = [&](decltype(Operation::what) what) { work.steps.push_back({.what = std::move(what)}); };
    if (lease.release) {
        // Also when it was never started: this node may have forgotten that it was.
        work.aim = Work::Aim::stop;
        const bool to_save = lease.release->save && !order.program.checkpoint.empty() && !lease.saved;
        step(StopTenant{order.lease, to_save ? order.program.checkpoint_within : Duration{}});
    } else if (lease.starting) {
        work.aim = Work::Aim::start;
        step(StartTenant{order.lease, order.tier, order.gpus, order.drives, order.functions, order.tenant,
                         order.mechanism, order.program, order.ports});
    } else {
        work.aim = Work::Aim::prepare;
        for (const std::uint16_t function : order.functions)
            step(AttachFunction{function, order.lease, order.tenant, port_of(order, function)});
        for (const std::uint16_t drive : order.drives) step(AttachDrive{drive, order.lease});
        for (const GpuPart& part : instances_of(order)) step(CreateInstance{part.gpu, part.profile, part.start});
    }
    return work;
}

bool Executor::pump_lease(Instant now, Outcome& out, Key key) {
    const auto lease = ledger_.leases.find(key);
    if (lease == ledger_.leases.end()) return false;
    const bool busy = lease->second.release || lease->second.starting || lease->second.phase == PartPhase::preparing;
    if (!busy) return false;
    if (const Flight* reboot = flight_at(host_place)) {
        if (!reboot->given_up) return false;  // the host is going down, or has just come up
        const std::string why = "the host has not answered since it was told to reboot";
        lease->second.release ? fail_release(out, key, why) : fail_lease(out, key, {why, PartFault::interrupted});
        return true;
    }
    const auto [work, fresh] = work_.try_emplace(key);
    if (fresh) work->second = work_for(lease->second);
    return begin_steps(now, out, key);
}

bool Executor::begin_steps(Instant now, Outcome& out, Key key) {
    bool moved = false;
    for (std::size_t i = 0; i < work_.at(key).steps.size(); ++i) {
        Work& work = work_.at(key);
        Step& step = work.steps[i];
        if (step.state != Step::State::waiting) continue;
        const Place place = place_of(step.what);
        if (const Flight* flight = flight_at(place)) {
            if (!flight->given_up) continue;  // its turn comes
            fail_step(out, key, i, {"an earlier operation on it has not answered"});
            moved = true;
            if (!work_.contains(key)) return true;
            continue;
        }
        const auto* destroy = std::get_if<DestroyInstance>(&step.what);
        if (destroy != nullptr && is_shared(key, *destroy)) {
            step.state = Step::State::done;
            moved = true;
            continue;
        }
        step.state = Step::State::flying;
        step.number = begin(now, out, step.what, {.lease = key});
        moved = true;
    }
    return finish(out, key) || moved;
}

// Another lease has the same instance and has not let go of it. One that is being taken apart lets go when it comes to
// this step, so that the last one destroys it, in whatever order they end.
bool Executor::is_shared(Key key, const DestroyInstance& instance) const {
    for (const auto& [other, lease] : ledger_.leases) {
        if (other == key) continue;
        const bool has_it = std::ranges::any_of(lease.order.gpus, [&](const GpuPart& part) {
            return part.gpu == instance.gpu && part.start == instance.start && !part.profile.empty();
        });
        if (!has_it) continue;
        const auto work = work_.find(other);
        const bool let_go = work != work_.end() && work->second.aim == Work::Aim::take_apart &&
                            std::ranges::any_of(work->second.steps, [&](const Step& step) {
                                const auto* its = std::get_if<DestroyInstance>(&step.what);
                                return its != nullptr && its->gpu == instance.gpu && its->start == instance.start &&
                                       step.state == Step::State::done;
                            });
        if (!let_go) return true;
    }
    return false;
}

bool Executor::finish(Outcome& out, Key key) {
    const auto found = work_.find(key);
    if (found == work_.end()) return false;
    Work& work = found->second;
    if (std::ranges::any_of(work.steps, [](const Step& step) { return step.state != Step::State::done; })) return false;
    switch (work.aim) {
        case Work::Aim::prepare:
            work_.erase(found);
            add(out, journal::LeaseMoved{key, PartPhase::prepared});
            report(out, LeaseReport{key, PartPhase::prepared, {}});
            break;
        case Work::Aim::start:
            work_.erase(found);
            add(out, journal::LeaseMoved{key, PartPhase::running, {}});
            report(out, LeaseReport{key, PartPhase::running, {}});
            break;
        case Work::Aim::stop: {
            const Prepare& order = ledger_.leases.at(key).order;
            work = {.aim = Work::Aim::take_apart};
            for (const std::uint16_t function : order.functions)
                work.steps.push_back({.what = DetachFunction{function}});
            for (const std::uint16_t drive : order.drives) work.steps.push_back({.what = DetachDrive{drive}});
            for (const GpuPart& part : instances_of(order))
                work.steps.push_back({.what = DestroyInstance{part.gpu, part.start}});
            break;
        }
        case Work::Aim::take_apart: {
            const std::map<DeviceId, std::string> stuck = std::move(work.stuck);
            work_.erase(found);
            const Release release = *ledger_.leases.at(key).release;
            std::optional<Saved> saved = std::move(ledger_.leases.at(key).saved);
            add(out, journal::LeaseMoved{key, PartPhase::stopped, {}});
            report(out, LeaseReport{.lease = key, .phase = PartPhase::stopped, .why = {}, .saved = std::move(saved)});
            for (const WipeTask& task : release.wipes) {
                const auto why = stuck.find({task.kind, task.device});
                if (why != stuck.end())
                    refuse_wipe(out, task, why->second);
                else
                    take_wipe(out, task);
            }
            break;
        }
    }
    return true;
}

void Executor::step_answered(Outcome& out, const Flight& flight, const OperationResult& result) {
    const auto work = work_.find(flight.lease);
    if (work == work_.end()) return;
    std::vector<Step>& steps = work->second.steps;
    const auto step = std::ranges::find(steps, flight.operation.number, &Step::number);
    // A step of what the lease was doing before it was released, or before it failed.
    if (step == steps.end() || step->state != Step::State::flying) return;
    if (result.saved) add(out, journal::LeaseSaved{flight.lease, *result.saved});
    if (result.ok)
        step->state = Step::State::done;
    else
        fail_step(out, flight.lease, static_cast<std::size_t>(step - steps.begin()),
                  {result.why, result.fault == PartFault::none ? PartFault::start : result.fault});
}

void Executor::fail_step(Outcome& out, Key key, std::size_t index, const Why& why) {
    Work& work = work_.at(key);
    Step& step = work.steps[index];
    const Place place = place_of(step.what);
    switch (work.aim) {
        case Work::Aim::prepare:
            return fail_lease(
                out, key, {fmt::format("{} could not be made ready: {}", print(place.device), why.words), why.fault});
        case Work::Aim::start:
            return fail_lease(out, key,
                              {fmt::format("the tenant's code could not be started: {}", why.words), why.fault});
        case Work::Aim::stop:
            return fail_release(out, key, fmt::format("the tenant's code could not be stopped: {}", why.words));
        case Work::Aim::take_apart: {
            // The tenant is gone, so the rest of the lease goes on; this device must be looked at.
            const std::string said = fmt::format("{} could not be taken apart: {}", print(place.device), why.words);
            step.state = Step::State::done;
            work.stuck[place.device] = said;
            add(out, journal::DeviceFaulty{place.device, said});
            report(out, FaultReport{place.device.kind, place.device.device, said});
            return;
        }
    }
}

void Executor::fail_lease(Outcome& out, Key key, const Why& why) {
    work_.erase(key);
    add(out, journal::LeaseMoved{key, PartPhase::failed, why.words, why.fault});
    report(out, LeaseReport{.lease = key, .phase = PartPhase::failed, .why = why.words, .fault = why.fault});
}

// While its code may still run, nothing of it is wiped: it would be dirty again at once. The lease stays, its units
// stay in use, and the release can be ordered again.
void Executor::fail_release(Outcome& out, Key key, const std::string& why) {
    const Release release = *ledger_.leases.at(key).release;
    fail_lease(out, key, {why});
    for (const WipeTask& task : release.wipes) refuse_wipe(out, task, why);
}

}  // namespace bulkhead
