#include "bulkhead/core/goodput.hpp"

#include <algorithm>
#include <charconv>

namespace bulkhead {

namespace {

std::int64_t number_in(const evidence::Record& record, const std::string& name) {
    std::int64_t number = 0;
    if (const auto found = record.detail.find(name); found != record.detail.end())
        std::from_chars(found->second.data(), found->second.data() + found->second.size(), number);
    return number;
}

bool says(const evidence::Record& record, const std::string& name, std::string_view value) {
    const auto found = record.detail.find(name);
    return found != record.detail.end() && found->second == value;
}

}  // namespace

std::vector<GpuTime> divide_time(const GpuLeaseStatus& status, const evidence::Record& closing) {
    std::vector<GpuTime> out;
    const auto add = [&](Fate fate, Knowledge kind, std::int64_t unit_ms) {
        if (unit_ms > 0) out.push_back({fate, kind, unit_ms});
    };
    const auto between = [&](Instant from, Instant to) {
        return std::max<std::int64_t>(0, (to - from).ms) * status.gpus.units;
    };
    const Instant bound = status.boundAt.value_or(closing.at), ended = status.endedAt.value_or(closing.at),
                  active = status.activeAt.value_or(ended);
    add(Fate::preparing, Knowledge::measurement, between(bound, active));
    const std::int64_t ran = between(active, ended);
    if (closing.detail.contains("exit-status")) {
        const bool good = says(closing, "exit-status", "0");
        add(good ? Fate::kept : Fate::failed, Knowledge::measurement, ran);
    } else if (closing.detail.contains("failure")) {
        add(Fate::failed, Knowledge::measurement, ran);
    } else if (closing.detail.contains("lost-gpu-ms")) {
        const bool saved = says(closing, "lost-basis", "saved");
        const Knowledge kind = saved ? Knowledge::measurement : Knowledge::estimate;
        const std::int64_t lost = std::clamp<std::int64_t>(number_in(closing, "lost-gpu-ms") * gpu_unit, 0, ran);
        add(Fate::kept, kind, ran - lost);
        add(Fate::lost, kind, lost);
    } else {
        add(Fate::kept, Knowledge::measurement, ran);
    }
    add(Fate::ending, Knowledge::measurement, between(ended, closing.at));
    return out;
}

EndCause cause_of_end(std::string_view why) {
    struct Row {
        std::string_view words;
        EndCause cause;
    };
    static constexpr Row begins[] = {
        {"reclaimed: ", EndCause::reclaimed},
        {"preempted: ", EndCause::preempted},
        {"over its limit: ", EndCause::policy},
        {"moved: ", EndCause::moved},
        {"its workload was deleted", EndCause::owner},
        {"its command ended", EndCause::owner},
        {"its command could not be started", EndCause::owner},
        {"its activeDeadline", EndCause::owner},
        {"its node is drained", EndCause::drained},
        {"its tenant is frozen", EndCause::policy},
        {"it may no longer be where", EndCause::policy},
        {"a device failed", EndCause::device},
        {"a device was replaced", EndCause::device},
        {"the node says", EndCause::node},
        {"node ", EndCause::node},
    };
    for (const Row& row : begins)
        if (why.starts_with(row.words)) return row.cause;
    return EndCause::other;
}

}  // namespace bulkhead
