// Wipes that the control plane wants back, because a legal hold came over them (decision 0040).
#include <algorithm>
#include <map>

#include "bulkhead/node/executor.hpp"
#include "bulkhead/node/gate.hpp"
#include "bulkhead/node/wipe_answer.hpp"

namespace bulkhead {

// Of what was done, what came of it is said once more; of what was begun, when it is over. All else is never done under
// this ticket: nor when the order comes late, nor when a release comes to it that carries it already. Nor under any
// other: whoever withdraws a wipe wants to keep what is there, and may have forgotten what else was ordered before.
void Executor::withdraw_wipe(Outcome& out, const WipeTask& task) {
    if (!well_formed(task)) return report(out, report_of(task, false, "there is no such thing to wipe"));
    const std::vector<UnitId> units = units_of(task);
    const auto is_another = [&](const WipeTask& wipe) {
        return wipe.ticket != task.ticket &&
               std::ranges::any_of(units, [&](UnitId unit) { return touches(wipe, unit); });
    };
    bool begun = false;
    std::map<Key, WipeTask> others;
    for (const auto& [ticket, wipe] : ledger_.wipes) {
        if (!is_another(wipe.task)) continue;
        begun = begun || wipe.begun;
        if (!wipe.begun) others.emplace(ticket, wipe.task);
    }
    // A later one's answer stands for those before it.
    const auto is_over = [&](const WipeTask& wipe) {
        return std::ranges::any_of(units_of(wipe), [&](UnitId unit) {
            const auto known = ledger_.units.find(unit);
            return known != ledger_.units.end() && known->second.ticket >= wipe.ticket;
        });
    };
    for (const auto& [key, lease] : ledger_.leases) {
        if (!lease.release) continue;
        for (const WipeTask& wipe : lease.release->wipes)
            if (is_another(wipe) && !is_over(wipe) && !ledger_.wipes.contains(wipe.ticket))
                others.emplace(wipe.ticket, wipe);
    }
    for (const auto& [ticket, wipe] : others) {
        WipeReport answer = report_of(wipe, false, "it was withdrawn with a later one before it was begun");
        answer.stale = true;
        wiping_.erase(ticket);
        add(out, journal::WipeAnswered{answer, false});
        report(out, answer);
    }
    const auto taken = ledger_.wipes.find(task.ticket);
    if (taken != ledger_.wipes.end() && taken->second.begun && same_units(taken->second.task, task)) return;
    if (taken == ledger_.wipes.end() && ledger_.answered.contains(task.ticket)) return take_wipe(out, task);
    // What another ticket's wipe has begun on is not kept any more: what comes of that is to be known first. And what
    // one has left clean is wiped, which is not to be said of as kept: it is shown under this ticket too.
    if (begun) return;
    if (taken == ledger_.wipes.end() && units.size() == task.size &&
        std::ranges::all_of(units, [&](UnitId unit) { return ledger_.clean(unit); }))
        return take_wipe(out, task);
    WipeReport withdrawn = report_of(task, false, "it was withdrawn before it was begun");
    withdrawn.stale = true;
    // Somebody else's under this ticket, of another life of the control plane, stays as it is.
    if (taken == ledger_.wipes.end() || same_units(taken->second.task, task)) {
        wiping_.erase(task.ticket);
        add(out, journal::WipeAnswered{withdrawn, false});
    }
    report(out, withdrawn);
}

}  // namespace bulkhead
