// What nodes were told, and what their hardware was made to do.
#include <fmt/core.h>

#include <algorithm>

#include "sim/checkers.hpp"

namespace bulkhead::sim {

namespace {

bool overlap(const GpuPart& a, const GpuPart& b) {
    return a.gpu == b.gpu && a.start < b.start + b.size && b.start < a.start + a.size;
}

std::string described(const std::string& node, const Order& order) {
    const auto wipes = [](const std::vector<WipeTask>& tasks) {
        std::string all;
        for (const WipeTask& task : tasks)
            all +=
                fmt::format(" {}{}[{}+{}] ticket {}", word(task.kind), task.device, task.start, task.size, task.ticket);
        return all;
    };
    if (const auto* prepare = std::get_if<Prepare>(&order.what))
        return fmt::format("{} is told to prepare lease {}", node, prepare->lease);
    if (const auto* start = std::get_if<Start>(&order.what))
        return fmt::format("{} is told to start lease {}", node, start->lease);
    if (const auto* release = std::get_if<Release>(&order.what))
        return fmt::format("{} is told to release lease {} and wipe{}", node, release->lease, wipes(release->wipes));
    if (const auto* withdraw = std::get_if<Withdraw>(&order.what))
        return fmt::format("{} is told not to wipe{}", node, wipes(withdraw->wipes));
    if (const auto* test = std::get_if<TestFabric>(&order.what))
        return fmt::format("{} is told to test its fences, ticket {}", node, test->ticket);
    return fmt::format("{} is told to wipe{}", node, wipes(std::get<Sanitize>(order.what).wipes));
}

std::string described(const std::string& node, const Report& report) {
    if (const auto* lease = std::get_if<LeaseReport>(&report.what))
        return fmt::format("{} says lease {} is {} {}", node, lease->lease, word(lease->phase), lease->why);
    if (const auto* wipe = std::get_if<WipeReport>(&report.what))
        return fmt::format("{} says {}{}[{}+{}] ticket {} is {} {}", node, word(wipe->kind), wipe->device, wipe->start,
                           wipe->size, wipe->ticket,
                           wipe->verified ? "wiped"
                           : wipe->stale  ? "stale"
                                          : "not wiped",
                           wipe->why);
    if (const auto* test = std::get_if<FabricTestReport>(&report.what))
        return fmt::format("{} says of its fences, ticket {}: {}{}", node, test->ticket, test->why,
                           test->evidence.statement);
    const auto& fault = std::get<FaultReport>(report.what);
    return fmt::format("{} says {}{} {}: {}", node, word(fault.kind), fault.device,
                       fault.drain ? "takes nobody new" : "is broken", fault.why);
}

std::string described(const std::string& node, const Operation& operation) {
    if (const auto* start = std::get_if<StartTenant>(&operation.what)) {
        std::string text = fmt::format("{} starts lease {} tier {} on", node, start->lease, word(start->tier));
        for (const GpuPart& gpu : start->gpus)
            text += fmt::format(" gpu{}[{}+{}]x{}", gpu.gpu, gpu.start, gpu.size, gpu.share);
        return text;
    }
    if (const auto* stop = std::get_if<StopTenant>(&operation.what))
        return fmt::format("{} stops lease {}", node, stop->lease);
    if (const auto* wipe = std::get_if<Wipe>(&operation.what))
        return fmt::format("{} wipes {} {} [{}+{}]{}", node, word(wipe->kind), wipe->device, wipe->start, wipe->size,
                           wipe->burn_in ? " and burns it in" : "");
    if (const auto* reset = std::get_if<ResetGpu>(&operation.what))
        return fmt::format("{} resets gpu{}", node, reset->gpu);
    return {};
}

}  // namespace

void Checkers::ordered(const std::string& node, const Order& order) {
    if (!trace_.empty()) say(described(node, order));
    if (const Prepare* prepare = std::get_if<Prepare>(&order.what)) {
        Promised& promised = promised_[prepare->lease];
        promised.tenant = prepare->tenant;
        promised.mechanism = prepare->mechanism;
        for (const GpuPart& part : prepare->gpus) promised.shares = promised.shares || part.share < 1000;
        if (const auto lease = leases_.find(prepare->lease); lease != leases_.end())
            promised.nodes = lease->second.nodes;
        promised.nodes.insert(node);
    }
}

void Checkers::reported(const std::string& node, const Report& report) const {
    if (!trace_.empty()) say(described(node, report));
}

void Checkers::prepared(const std::string& node, Key lease) { promised_[lease].prepared.insert(node); }

void Checkers::begun(const std::string& node, const NodeModel& model, const Operation& operation) {
    if (!trace_.empty()) say(described(node, operation));
    if (const StartTenant* start = std::get_if<StartTenant>(&operation.what)) {
        just_taken_.clear();
        const bool again = running_[node].contains(start->lease);
        if (!again) check_start(node, model, *start);
        running_[node][start->lease] = {
            start->lease, promised_[start->lease].tenant, start->tier, start->gpus, start->drives, start->functions};
    }
    if (const ResetGpu* reset = std::get_if<ResetGpu>(&operation.what)) check_reset(node, *reset);
}

void Checkers::check_start(const std::string& node, const NodeModel& model, const StartTenant& start) {
    const Promised& mine = promised_[start.lease];
    const auto use = [&](std::string_view kind, UnitKind unit, std::uint16_t device, std::uint8_t slice, bool shared) {
        const std::string name = unit_name(kind, device, slice);
        const std::uint64_t contents = model.read({unit, device, slice});
        if (contents != 0 && contents != static_cast<std::uint64_t>(start.lease) && !shared)
            violate(2, fmt::format("{} {} holds bytes of {} when lease {} starts", node, name, contents, start.lease));
        if (!wiped_since_[node].contains(name) && !shared && contents != static_cast<std::uint64_t>(start.lease))
            violate(2, fmt::format("{} {} is given to lease {} without evidence since its last use", node, name,
                                   start.lease));
        if (wiped_since_[node].erase(name) != 0) just_taken_.push_back(name);
    };
    check_neighbours(node, mine, start);
    // Whoever shares memory takes it over from those it shares with: they trust each other, and it is wiped when the
    // last of them has gone.
    const auto shared = [&](const GpuPart& part) {
        if (part.share == 1000) return false;
        for (const auto& [key, other] : running_[node])
            if (key != start.lease &&
                std::ranges::any_of(other.gpus, [&](const GpuPart& theirs) { return overlap(part, theirs); }))
                return true;
        const auto before = promised_.find(static_cast<Key>(model.read({UnitKind::memory, part.gpu, part.start})));
        return before != promised_.end() && before->first != start.lease && before->second.shares &&
               !distrusting(mine.tenant, before->second.tenant);
    };
    for (const GpuPart& part : start.gpus)
        for (std::uint8_t slice = part.start; slice < part.start + part.size; ++slice)
            use("memory", UnitKind::memory, part.gpu, slice, shared(part));
    for (const std::uint16_t drive : start.drives) use("drive", UnitKind::drive, drive, 0, false);
    for (const std::uint16_t function : start.functions) use("vf", UnitKind::vf, function, 0, false);
    if (start.tier < Tier::vm) {
        for (const std::string& user : kernel_users_[node])
            if (distrusting(mine.tenant, user))
                violate(2, fmt::format("{} runs on the kernel of {} after {}, without a verified reboot between",
                                       mine.tenant, node, user));
        kernel_users_[node].insert(mine.tenant);
    }
    if (!std::ranges::includes(mine.prepared, mine.nodes))
        violate(5, fmt::format("lease {} starts on {} while {} of its {} nodes are ready", start.lease, node,
                               mine.prepared.size(), mine.nodes.size()));
    if (mine.nodes.size() > 1) probe("a gang over several nodes started");
    if (std::ranges::any_of(start.gpus, shared)) probe("a shared GPU");
}

void Checkers::check_neighbours(const std::string& node, const Promised& mine, const StartTenant& start) {
    for (const auto& [key, other] : running_[node]) {
        if (key == start.lease) continue;
        for (const GpuPart& a : start.gpus)
            for (const GpuPart& b : other.gpus) {
                if (overlap(a, b)) {
                    if (a.share == 1000 || b.share == 1000)
                        violate(1, fmt::format("{} gpu{} is used by leases {} and {}", node, a.gpu, start.lease, key));
                    else if (distrusting(mine.tenant, other.tenant))
                        violate(3, fmt::format("{} and {} share the memory of {} gpu{}", mine.tenant, other.tenant,
                                               node, a.gpu));
                } else if (a.gpu == b.gpu && distrusting(mine.tenant, other.tenant) &&
                           mine.mechanism != Mechanism::mig_vgpu) {
                    violate(3, fmt::format("{} and {} share {} gpu{}", mine.tenant, other.tenant, node, a.gpu));
                }
            }
        for (const std::uint16_t drive : start.drives)
            if (std::ranges::find(other.drives, drive) != other.drives.end())
                violate(1, fmt::format("{} drive{} is used twice", node, drive));
        for (const std::uint16_t function : start.functions)
            if (std::ranges::find(other.functions, function) != other.functions.end())
                violate(1, fmt::format("{} vf{} is used twice", node, function));
        if (distrusting(mine.tenant, other.tenant) && (start.tier < Tier::vm || other.tier < Tier::vm))
            violate(3, fmt::format("{} and {} are on {} at once, one of them on its kernel", mine.tenant, other.tenant,
                                   node));
    }
}

void Checkers::ended(const std::string& node, const NodeModel& model, const Operation& operation, bool ok) {
    follow_burn_in(node, model, operation, ok);
    if (!ok) disturbed();
    // A start that failed has touched nothing: the model says so at once.
    if (const StartTenant* start = std::get_if<StartTenant>(&operation.what); start != nullptr && !ok) {
        running_[node].erase(start->lease);
        wiped_since_[node].insert(just_taken_.begin(), just_taken_.end());
    }
    if (const AttachFunction* attach = std::get_if<AttachFunction>(&operation.what); attach != nullptr && ok)
        check_port(node, *attach);
    if (const Wipe* wipe = std::get_if<Wipe>(&operation.what); wipe != nullptr && ok && wipe->kind == UnitKind::vf)
        forget_port(node, model, wipe->device);
    if (const StopTenant* stop = std::get_if<StopTenant>(&operation.what); stop != nullptr && ok)
        running_[node].erase(stop->lease);
    if (const Wipe* wipe = std::get_if<Wipe>(&operation.what); wipe != nullptr && ok && wipe->kind == UnitKind::host)
        running_[node].clear();
}

void Checkers::hangs(const std::string& node) {
    probe("an operation hangs");
    hanging_.insert(node);
    disturbed();
}

void Checkers::host_crashed(const std::string& node) {
    say(node + " crashes");
    running_[node].clear();
}

}  // namespace bulkhead::sim
