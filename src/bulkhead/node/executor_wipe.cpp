// Wipe, read back, sign. Different devices are wiped side by side, the wipes of one device in the order of their
// tickets. A reboot of the host waits until nothing else is going on, and nothing begins before it is over.
//
// A wipe that left something behind is done once more, of anything but a drive: there a second pass looks at other
// places, and might not meet again what the first has seen. Where that does not help, and where the operator allows it,
// a GPU that nobody is on is reset, and wiped again. The evidence names each rung; nothing else is ever tried again
// under the same ticket.
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "bulkhead/evidence/statement.hpp"
#include "bulkhead/node/executor.hpp"
#include "bulkhead/node/gate.hpp"
#include "bulkhead/node/wipe_answer.hpp"

namespace bulkhead {

namespace {

// In a statement, which is lines of text; what a program printed may be anything.
constexpr std::size_t words_of_a_drive_max = 500;
std::string one_line(std::string_view text, std::size_t most = 200) {
    constexpr std::string_view cut = " [cut]";
    std::string line{text.size() <= most ? text : text.substr(0, most - cut.size())};
    if (text.size() > most) line += cut;
    for (char& byte : line)
        if (byte < ' ' || byte > '~') byte = byte == '\n' || byte == '\t' ? ' ' : '?';
    return line;
}

// A ticket is given once, by one control plane. One that was restored from a backup may give it again, before it hears
// that its epoch was another's.
bool answers(const WipeReport& report, const WipeTask& task) {
    if (!same_units(report, task)) return false;
    const auto signed_for = evidence::read_statement(report.evidence.statement);
    return !signed_for || (signed_for->lease == task.lease && signed_for->tenants == task.tenants);
}

std::string how_reset_went(const OperationResult& result) {
    if (result.ok) return "after a GPU reset";
    return fmt::format("{}: {}", result.untouched ? "no GPU reset was made" : "a GPU reset failed",
                       one_line(result.why));
}

}  // namespace

void Executor::take_wipe(Outcome& out, const WipeTask& task) {
    const auto stale = [&](std::string why) {
        WipeReport answer = report_of(task, false, std::move(why));
        answer.stale = true;
        report(out, answer);
    };
    const auto another = [&] { stale(fmt::format("ticket {} was given to another wipe before", task.ticket)); };
    if (const auto done = ledger_.answered.find(task.ticket); done != ledger_.answered.end()) {
        if (!answers(done->second, task)) return another();
        // Evidence is for the wipe before the next use, and not for any later one.
        const auto used = [&](UnitId unit) { return !ledger_.clean(unit); };
        if (done->second.verified && std::ranges::any_of(units_of(task), used))
            return stale(fmt::format("it was used since it was wiped under ticket {}", task.ticket));
        return report(out, done->second);
    }
    if (const auto under_way = ledger_.wipes.find(task.ticket); under_way != ledger_.wipes.end()) {
        if (!same_units(under_way->second.task, task)) another();
        return;
    }
    if (!well_formed(task)) return report(out, report_of(task, false, "there is no such thing to wipe"));
    for (const UnitId unit : units_of(task))
        if (const auto known = ledger_.units.find(unit);
            known != ledger_.units.end() && known->second.ticket > task.ticket)
            return stale(fmt::format("it was wiped since, under ticket {}", known->second.ticket));
    add(out, journal::WipeTaken{task});
}

// Nothing was done, so nothing is signed.
void Executor::refuse_wipe(Outcome& out, const WipeTask& task, std::string why) {
    if (ledger_.answered.contains(task.ticket)) return report(out, ledger_.answered.at(task.ticket));
    const WipeReport refused = report_of(task, false, std::move(why));
    if (well_formed(task)) add(out, journal::WipeAnswered{refused, false});
    report(out, refused);
}

// Leases that keep what the wipe is about: for the host every lease, because a reboot takes VMs along too.
std::vector<Key> Executor::in_the_way_of(const WipeTask& task) const {
    std::vector<Key> found;
    for (const auto& [key, lease] : ledger_.leases) {
        const std::vector<UnitId> units = units_of(task);
        if (task.kind == UnitKind::host ||
            std::ranges::any_of(units, [&](UnitId unit) { return touches(lease.order, unit); }))
            found.push_back(key);
    }
    return found;
}

bool Executor::pump_wipes(Instant now, Outcome& out) {
    std::vector<Key> tickets;
    for (const auto& [ticket, wipe] : ledger_.wipes)
        if (!wiping_[ticket].flying) tickets.push_back(ticket);
    bool moved = false;
    for (const Key ticket : tickets) {
        if (const Flight* reboot = flight_at(host_place); reboot != nullptr && !reboot->given_up) break;
        const WipeTask task = ledger_.wipes.at(ticket).task;
        const bool is_host = task.kind == UnitKind::host;
        const std::vector<Key> leases = in_the_way_of(task);
        const auto stays = [&](Key key) { return !ledger_.leases.at(key).release; };
        const Flight* flight = flight_at({false, {task.kind, task.device}, 0});
        const bool others = std::ranges::any_of(flights_, [](const auto& f) { return !f.second.given_up; });
        if (const auto user = std::ranges::find_if(leases, stays); user != leases.end()) {
            give_up_wipe(now, out, ticket, fmt::format("{} is in use by lease {}", print_units(task), *user));
        } else if (flight != nullptr && flight->given_up) {
            give_up_wipe(now, out, ticket, "an earlier operation on it has not answered");
        } else if (!leases.empty() || flight != nullptr || (is_host && others)) {
            if (is_host) break;  // what comes after it waits, or its turn would never come
            continue;
        } else {
            begin_wipe(now, out, ticket);
        }
        moved = true;
    }
    return moved;
}

void Executor::begin_wipe(Instant now, Outcome& out, Key ticket) {
    const Ledger::Wipe wipe = ledger_.wipes.at(ticket);
    const WipeTask& task = wipe.task;
    WipeWork& work = wiping_[ticket];
    // The boot is another than that under which the reboot began: it has happened, and took the agent with it.
    if (task.kind == UnitKind::host && !work.touched && wipe.begun && !wipe.boot.empty() && !ledger_.boot.empty() &&
        wipe.boot != ledger_.boot) {
        work.wiped = true;
        work.method = "reboot";
    }
    if (!work.why_reset.empty()) {
        const std::string why = std::exchange(work.why_reset, {});
        if (!may_reset(ticket)) return answer_wipe(now, out, ticket, why, 0);  // somebody has come meanwhile
        work.flying = true;
        add(out, journal::WipeReset{ticket});
        begin(now, out, ResetGpu{task.device}, {.ticket = ticket});
        return;
    }
    work.touched = true;
    work.flying = true;
    if (work.wiped) {
        begin(now, out, Verify{task.kind, task.device, task.start, task.size, static_cast<std::uint64_t>(ticket)},
              {.ticket = ticket});
        return;
    }
    add(out, journal::WipeBegan{ticket, now, work.second_pass || wipe.second_pass});
    begin(now, out, Wipe{task.kind, task.device, task.start, task.size, task.burn_in}, {.ticket = ticket});
}

void Executor::wipe_answered(Instant now, Outcome& out, const Flight& flight, const OperationResult& result) {
    const auto found = wiping_.find(flight.ticket);
    if (found == wiping_.end() || !ledger_.wipes.contains(flight.ticket)) return;
    WipeWork& work = found->second;
    work.flying = false;
    if (std::holds_alternative<ResetGpu>(flight.operation.what)) {
        // One that was given up may still be going on.
        if (!flight.given_up) work.reset = how_reset_went(result);
        if (!result.ok)
            answer_wipe(now, out, flight.ticket, fmt::format("the GPU could not be reset: {}", result.why), 0);
        return;
    }
    if (!result.device_identity.empty()) work.device = result.device_identity;
    if (!result.model.empty()) work.model = result.model;
    if (!result.board.empty()) work.board = result.board;
    if (!result.serial.empty()) work.serial = result.serial;
    if (!result.driver.empty()) work.driver = result.driver;
    if (!result.vbios.empty()) work.vbios = result.vbios;
    if (!result.firmware.empty()) work.firmware = result.firmware;
    if (!result.command.empty()) work.command = result.command;
    if (!result.status.empty()) work.status = result.status;
    if (!result.samples.empty()) work.samples = result.samples;
    if (!result.claim.empty()) work.claim = result.claim;
    if (result.grade) work.grade = result.grade;
    const auto* wipe = std::get_if<Wipe>(&flight.operation.what);
    if (wipe != nullptr) {
        if (!result.method.empty()) work.method = result.method;
        work.bytes = result.bytes;
        work.skipped = result.skipped;
        work.bytes_unreachable = result.bytes_unreachable;
        work.unreachable = result.unreachable;
        if (!work.bytes_found) work.bytes_found = result.bytes_found;
        if (!result.ok) return not_clean(now, out, flight, fmt::format("the wipe failed: {}", result.why), 0);
        work.wiped = true;
        if (wipe->kind == UnitKind::host) forget_given_up();
        return;
    }
    const auto& verify = std::get<Verify>(flight.operation.what);
    work.digest = result.digest;
    const Ledger::Wipe& ordered = ledger_.wipes.at(flight.ticket);
    // A burn-in is passed the first time or not at all: memory that holds what is written every other time is broken.
    if (ordered.task.burn_in && (result.bytes_residue != 0 || !result.ok))
        return answer_wipe(
            now, out, flight.ticket,
            fmt::format("it has not passed its burn-in: {}",
                        result.why.empty() ? fmt::format("{} bytes differ", result.bytes_residue) : result.why),
            result.bytes);
    if (ordered.task.burn_in && work.drained)
        return answer_wipe(now, out, flight.ticket, "it was drained anew while its burn-in ran", result.bytes);
    if (result.bytes_residue != 0 && verify.kind == UnitKind::drive)
        return answer_wipe(now, out, flight.ticket,
                           result.why.empty() ? fmt::format("{} bytes were left", result.bytes_residue)
                                              : fmt::format("{} bytes were left: {}", result.bytes_residue, result.why),
                           result.bytes);
    if (result.bytes_residue != 0) {
        if (work.second_pass || ledger_.wipes.at(flight.ticket).second_pass)
            return not_clean(now, out, flight,
                             fmt::format("{} bytes were left after a second pass", result.bytes_residue), result.bytes);
        work.second_pass = true;
        work.wiped = false;
        return;
    }
    if (!result.ok)
        return not_clean(now, out, flight, fmt::format("it could not be verified: {}", result.why), result.bytes);
    const bool has_bytes = verify.kind == UnitKind::memory || verify.kind == UnitKind::drive;
    if (has_bytes && result.bytes <= 0) return answer_wipe(now, out, flight.ticket, "nothing was read back", 0);
    answer_wipe(now, out, flight.ticket, {}, result.bytes);
}

// A reset ends whatever anybody does on that GPU, so nobody may be there; and it is tried once.
bool Executor::may_reset(Key ticket) const {
    const Ledger::Wipe& wipe = ledger_.wipes.at(ticket);
    if (!identity_.gpu_reset || wipe.task.kind != UnitKind::memory || wipe.reset || wipe.task.burn_in) return false;
    // What is dirty and not to be wiped is kept for somebody: a legal hold, whose contents a reset would take.
    for (const auto& [id, unit] : ledger_.units)
        if (id.kind == UnitKind::memory && id.device == wipe.task.device && !unit.clean && ledger_.wipes_of(id).empty())
            return false;
    return std::ranges::none_of(ledger_.leases, [&](const auto& lease) {
        return std::ranges::any_of(lease.second.order.gpus,
                                   [&](const GpuPart& part) { return part.gpu == wipe.task.device; });
    });
}

// What has not answered is still at work on the GPU: that is no state to reset it in.
void Executor::not_clean(Instant now, Outcome& out, const Flight& flight, const std::string& why, std::int64_t bytes) {
    if (flight.given_up || !may_reset(flight.ticket)) return answer_wipe(now, out, flight.ticket, why, bytes);
    WipeWork& work = wiping_[flight.ticket];
    work.wiped = false;
    work.why_reset = why;
}

// A reboot ends whatever had not answered.
void Executor::forget_given_up() {
    std::erase_if(flights_, [this](const auto& entry) {
        if (entry.second.given_up) busy_.erase(entry.second.place);
        return entry.second.given_up;
    });
}

void Executor::give_up_wipe(Instant now, Outcome& out, Key ticket, const std::string& why) {
    if (wiping_[ticket].touched) return answer_wipe(now, out, ticket, why, 0);
    const WipeTask task = ledger_.wipes.at(ticket).task;
    wiping_.erase(ticket);
    refuse_wipe(out, task, why);
}

// Without a reason why not, it is verified.
void Executor::answer_wipe(Instant now, Outcome& out, Key ticket, const std::string& why_not,
                           std::int64_t bytes_verified) {
    const Ledger::Wipe wipe = ledger_.wipes.at(ticket);
    const WipeWork work = wiping_[ticket];
    wiping_.erase(ticket);
    const bool verified = why_not.empty();
    const DeviceId device{wipe.task.kind, wipe.task.device};
    std::string method = work.method.empty() ? "none" : work.method;
    if (work.second_pass || wipe.second_pass) method += ", second pass";
    if (wipe.reset) method += ", " + (work.reset.empty() ? "after a GPU reset of which nothing is known" : work.reset);
    std::vector<std::string> skipped;
    skipped.reserve(work.skipped.size());
    for (const std::string& one : work.skipped) skipped.push_back(one_line(one, words_of_a_drive_max));
    const evidence::WipeStatement statement{
        .node = identity_.node,
        .device = work.device.empty() ? print(device) : work.device,
        .model = work.model,
        .unit = print_units(wipe.task),
        .lease = wipe.task.lease,
        .tenants = wipe.task.tenants,
        .method = std::move(method),
        .began = wipe.began,
        .ended = now,
        .bytes = work.bytes,
        .bytes_verified = bytes_verified,
        .bytes_found = work.bytes_found,
        .bytes_unreachable = work.bytes_unreachable,
        .unreachable = work.unreachable,
        .digest = work.digest,
        .ticket = ticket,
        .result = verified ? evidence::WipeResult::verified : evidence::WipeResult::failed,
        .grade = work.grade.value_or(identity_.grade),
        .agent_version = identity_.agent_version,
        .board = work.board,
        .serial = work.serial,
        .driver = work.driver,
        .vbios = work.vbios,
        .firmware = one_line(work.firmware, words_of_a_drive_max),
        .command = one_line(work.command, words_of_a_drive_max),
        .status = one_line(work.status, words_of_a_drive_max),
        .skipped = std::move(skipped),
        .samples = one_line(work.samples, words_of_a_drive_max),
        .claim = verified ? one_line(work.claim, words_of_a_drive_max) : ""};  // of what failed, nothing is claimed
    WipeReport answer = report_of(wipe.task, verified, why_not);
    answer.evidence = evidence::sign_statement(key_, evidence::statement_text(statement));
    add(out, journal::WipeAnswered{answer, true});
    report(out, answer);
    // Clean, and still not to be used: said anew, for a control plane that has forgotten it and takes it for available.
    // Not of what was burnt in: that part is done with, and waits for the rest.
    if (const auto drains = ledger_.draining.find(device);
        verified && !wipe.task.burn_in && drains != ledger_.draining.end())
        report(out, FaultReport{.kind = device.kind, .device = device.device, .why = drains->second, .drain = true});
}

}  // namespace bulkhead
