#include "bulkhead/hw/nvme/erase.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <thread>

namespace bulkhead::nvme {

namespace {

using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

constexpr seconds poll_every{1};
constexpr seconds format_crypto_patience{600}, format_erase_patience{3600};
constexpr std::uint8_t attach_opcode = 0x15;
constexpr std::size_t zeroes_at_once = 1 << 20;

void pause(const EraseClock& clock, std::chrono::milliseconds time) {
    if (clock.sleep)
        clock.sleep(time);
    else
        std::this_thread::sleep_for(time);
}

// Twice what the drive expects, and a minute; where it does not say, what such a thing takes at most.
seconds patience_for(const SanitizeLog& log, std::uint32_t cdw10) {
    const unsigned action = cdw10 & 7U;
    const auto& estimate = action == 4 ? log.crypto_erase : action == 2 ? log.block_erase : log.overwrite;
    if (estimate) return 2 * *estimate + seconds{60};
    return action == 4 ? seconds{600} : seconds{4 * 3600};
}

std::unexpected<Error> given_up() {
    return fail(Code::unavailable, "the agent was stopped in the middle of the erase",
                "it is begun anew when the agent is back");
}

std::string print_command(const EraseCommand& command) {
    return fmt::format("admin {:02X}h nsid {:X}h cdw10 {:08X}h", command.opcode, command.nsid, command.cdw10);
}

class Eraser {
public:
    Eraser(Transport& drive, const EraseSettings& settings, const EraseSecret& secret, const EraseClock& clock)
        : drive_{drive}, settings_{settings}, secret_{secret}, clock_{clock}, began_{clock.now()} {}

    Erasure run() {
        done_.untouched = true;
        if (const auto erased = erase_by_plan(); !erased) {
            done_.why = erased.error().what;
            if (!erased.error().remedy.empty()) done_.why += "; " + erased.error().remedy;
            return std::move(done_);
        }
        done_.done = true;
        done_.untouched = false;
        return std::move(done_);
    }

private:
    Result<> erase_by_plan() {
        auto facts = look_at(drive_);
        if (!facts) return std::unexpected(facts.error());
        done_.facts = *std::move(facts);
        auto plan = plan_erase(done_.facts.claims, settings_.policy);
        if (!plan) {
            done_.skipped = plan.error().skipped;
            return fail(Code::conflict, plan.error().why, plan.error().remedy);
        }
        done_.method = plan->method;
        done_.planned = true;
        done_.skipped = plan->skipped;
        done_.covers = plan->covers;
        if (auto held = hold(*plan); !held) return held;
        bool finished = false;
        if (done_.facts.claims.sanicap != 0) {
            const auto resumed = settle(*plan);
            if (!resumed) return std::unexpected(resumed.error());
            finished = *resumed;
        }
        if (!finished) {
            done_.before = look_before();
            if (clock_.stopped()) return given_up();
            done_.untouched = false;
            if (auto sent = send(*plan); !sent) return sent;
        }
        return drive_.fresh();
    }

    Result<> hold(const ErasePlan& plan) {
        std::vector<std::uint32_t> there = plan.covers;
        for (const std::uint32_t id : plan.attach) std::erase(there, id);
        if (auto held = drive_.hold(there); !held || plan.attach.empty()) return held;
        for (const std::uint32_t id : plan.attach) {
            std::array<std::uint8_t, 4096> list{};
            list[0] = 1;
            list[2] = static_cast<std::uint8_t>(done_.facts.controller.id & 0xFFU);
            list[3] = static_cast<std::uint8_t>(done_.facts.controller.id >> 8);
            done_.untouched = false;
            const auto attached = drive_.admin({.opcode = attach_opcode, .nsid = id, .data = list});
            if (!attached) return std::unexpected(attached.error());
            if (attached->status != 0)
                return fail(Code::conflict,
                            fmt::format("namespace {} cannot be attached: {}", id, print_status(attached->status)),
                            "attach or delete it with the maker's tool");
        }
        if (auto found = drive_.rescan(); !found) return found;
        return drive_.hold(plan.attach);
    }

    // One that was begun before this program was, and before the power failed perhaps. True: it was ours, and is over.
    Result<bool> settle(const ErasePlan& plan) {
        auto log = read_sanitize_log(drive_);
        if (!log) return std::unexpected(log.error());
        if (log->state() != SanitizeLog::State::in_progress) {
            unreadable_ = log->state() == SanitizeLog::State::failed;
            return false;
        }
        done_.untouched = false;
        log = wait(*log, log->scdw10);
        if (!log) return std::unexpected(log.error());
        unreadable_ = !log->succeeded();
        const bool ours = plan.commands.size() == 1 && plan.commands[0].opcode == sanitize_opcode &&
                          plan.commands[0].cdw10 == log->scdw10;
        if (!ours || !log->succeeded() || !log->nothing_written_since()) return false;
        // What was there before is gone with whoever looked: anything but a constant has to be shown to change.
        if (const BeforeImages left = look_before(); left.kept() != 0 || left.unread() != 0) return false;
        done_.command = print_command(plan.commands[0]) + ", sent earlier and waited for";
        done_.status = print(*log);
        return true;
    }

    // Until it no longer goes on. A controller that is being reset, or is away, is asked again.
    Result<SanitizeLog> wait(const SanitizeLog& first, std::uint32_t cdw10) {
        const seconds patience = std::min(patience_for(first, cdw10), time_left());
        const Clock::time_point until = clock_.now() + patience;
        Result<SanitizeLog> log = first;
        while (!log || log->state() == SanitizeLog::State::in_progress) {
            if (clock_.stopped()) return given_up();
            if (clock_.now() > until) {
                if (log) done_.status = print(*log);
                return fail(Code::timeout,
                            fmt::format("Sanitize has not ended within {} s{}", patience.count(),
                                        log ? fmt::format(", {} of 1000 done", log->thousandths())
                                            : fmt::format(": {}", log.error().what)),
                            "look at it with `nvme sanitize-log`; it goes on by itself, also over a loss of power");
            }
            pause(clock_, poll_every);
            log = read_sanitize_log(drive_);
        }
        return log;
    }

    seconds time_left() const {
        return std::max(std::chrono::duration_cast<seconds>(began_ + erase_at_most - clock_.now()), seconds{0});
    }
    Result<> go_on(std::string_view doing) const {
        if (clock_.stopped()) return given_up();
        if (time_left() > seconds{0}) return {};
        return fail(Code::timeout, fmt::format("{} has not ended within {} s", doing, erase_at_most.count()),
                    "order the wipe again, by another method (--erase) if this one is too slow");
    }

    Result<> send(const ErasePlan& plan) {
        if (plan.method == EraseMethod::host_zeroes) return write_zeroes(plan);
        for (const EraseCommand& command : plan.commands) {
            if (auto may = go_on("Format of all namespaces"); !may) return may;
            done_.command += fmt::format("{}{}", done_.command.empty() ? "" : "; ", print_command(command));
            const bool sanitizes = command.opcode == sanitize_opcode;
            const seconds patience = std::min(sanitizes                                   ? seconds{60}
                                              : plan.method == EraseMethod::format_crypto ? format_crypto_patience
                                                                                          : format_erase_patience,
                                              time_left());
            const auto answered = drive_.admin(
                {.opcode = command.opcode, .nsid = command.nsid, .cdw10 = command.cdw10, .timeout = patience});
            if (!answered) {
                done_.status += "no answer";
                return std::unexpected(answered.error());
            }
            done_.status += fmt::format("{}{}", done_.status.empty() ? "" : "; ", print_status(answered->status));
            if (answered->status != 0)
                return fail(
                    Code::unavailable,
                    fmt::format("the drive answered {} to {}", print_status(answered->status), print_command(command)),
                    "order the wipe again, or take the drive out");
            if (sanitizes)
                if (auto over = finish(command); !over) return over;
        }
        return {};
    }

    Result<> finish(const EraseCommand& sent) {
        pause(clock_, poll_every);
        const auto first = read_sanitize_log(drive_);
        const auto log = wait(first ? *first : SanitizeLog{.sstat = 2}, sent.cdw10);
        if (!log) return std::unexpected(log.error());
        done_.status = print(*log);
        if (log->scdw10 != sent.cdw10)
            return fail(Code::conflict,
                        fmt::format("the drive's log is about another command than the one that was sent ({:08X}h): {}",
                                    sent.cdw10, done_.status),
                        "look who else sends commands to it");
        if (!log->succeeded())
            return fail(Code::unavailable, fmt::format("Sanitize has failed: {}", done_.status),
                        "order the wipe again, or take the drive out");
        if (!log->nothing_written_since())
            return fail(Code::conflict, fmt::format("the drive was written to since Sanitize ended: {}", done_.status),
                        "look who else has it");
        return {};
    }

    Result<> write_zeroes(const ErasePlan& plan) {
        const std::vector<std::uint8_t> zeroes(zeroes_at_once, 0);
        done_.command = "zeroes written by the host";
        for (const std::uint32_t id : plan.covers) {
            const std::uint64_t size = done_.facts.pages.at(id).bytes();
            for (std::uint64_t at = 0; at < size; at += zeroes.size()) {
                if (auto may = go_on("overwriting by the host"); !may) return may;
                const auto piece = std::span{zeroes}.first(std::min<std::uint64_t>(zeroes.size(), size - at));
                if (auto written = drive_.write(id, at, piece); !written) return written;
            }
            // What the drive has in a cache that forgets is not overwritten yet.
            if (auto kept = drive_.flush(id); !kept) return kept;
        }
        done_.status = "written";
        return {};
    }

    BeforeImages look_before() {
        BeforeImages before{secret_.key};
        if (unreadable_) return before;  // after a Sanitize that failed, a drive answers no read
        for (const std::uint32_t id : done_.covers) {
            const NamespacePage& page = done_.facts.pages.at(id);
            const SampleSpace space{page.bytes(), page.block_bytes};
            std::vector<std::uint64_t> places = boundary_places(space);
            std::ranges::copy(random_places(space, settings_.samples, secret_.seed ^ id), std::back_inserter(places));
            std::ranges::sort(places);
            const auto twice = std::ranges::unique(places);
            places.erase(twice.begin(), twice.end());
            std::vector<std::uint8_t> bytes(space.piece());
            for (const std::uint64_t at : places) {
                if (clock_.stopped()) return before;
                if (drive_.read(id, at, bytes))
                    before.saw({id, at}, bytes_of(bytes));
                else
                    before.could_not_read({id, at});
            }
        }
        return before;
    }

    Transport& drive_;
    const EraseSettings& settings_;
    const EraseSecret& secret_;
    const EraseClock& clock_;
    Clock::time_point began_;
    Erasure done_;
    bool unreadable_ = false;
};

}  // namespace

Erasure erase(Transport& drive, const EraseSettings& settings, const EraseSecret& secret, const EraseClock& clock) {
    return Eraser{drive, settings, secret, clock}.run();
}

EraseVerdict verify(Transport& drive, const Erasure& erasure, std::size_t samples, std::uint64_t seed,
                    const EraseClock& clock) {
    EraseVerdict verdict{erasure.before, erasure.method};
    std::vector<std::uint8_t> bytes;
    std::set<DrivePlace> seen;
    const auto look = [&](DrivePlace place) {
        if (!seen.insert(place).second) return;
        if (clock.stopped()) return verdict.unreadable(place, given_up().error().what);
        const NamespacePage& page = erasure.facts.pages.at(place.nsid);
        bytes.assign(SampleSpace{page.bytes(), page.block_bytes}.piece(), 0);
        if (const auto got = drive.read(place.nsid, place.offset, bytes))
            verdict.read(place, bytes_of(bytes), page.deallocated);
        else
            verdict.unreadable(place, got.error().what);
    };
    for (const DrivePlace place : erasure.before.places()) look(place);
    for (const std::uint32_t id : erasure.covers) {
        const NamespacePage& page = erasure.facts.pages.at(id);
        const SampleSpace space{page.bytes(), page.block_bytes};
        for (const std::uint64_t at : boundary_places(space)) look({id, at});
        for (const std::uint64_t at : random_places(space, samples, seed ^ id)) look({id, at});
    }
    return verdict;
}

std::string print_samples(const Erasure& erasure, const EraseVerdict& verdict) {
    const BeforeImages& before = erasure.before;
    constexpr double fraction = 0.01;
    std::size_t samples = erasure.covers.empty() ? 0 : verdict.looks();
    for (const std::uint32_t id : erasure.covers) {
        const NamespacePage& page = erasure.facts.pages.at(id);
        // Those at known places are not at random.
        const std::size_t known = boundary_places({page.bytes(), page.block_bytes}).size(), told = verdict.told(id);
        samples = std::min(samples, told > known ? told - known : 0);
    }
    return fmt::format(
        "{} places looked at before, {} of them not empty, {} unreadable; {} looked at after: {} zeros, {} ones, {} "
        "noise; had {}% of a namespace kept its contents, the {} places at random that could have told would all have "
        "missed it with probability {:.1e}; spare cells are beyond reading",
        before.places().size(), before.kept(), before.unread(), verdict.looks(), verdict.zeros(), verdict.ones(),
        verdict.noise(), fraction * 100, samples, miss_chance(fraction, samples));
}

}  // namespace bulkhead::nvme
