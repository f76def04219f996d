#include "bulkhead/shell/metrics.hpp"

#include <fmt/core.h>

#include "bulkhead/codec/decode.hpp"
#include "bulkhead/shell/routes.hpp"

namespace bulkhead::shell {

namespace {

class Text {
public:
    void family(std::string_view name, std::string_view type, std::string_view about) {
        out_ += fmt::format("# HELP bulkhead_{} {}\n# TYPE bulkhead_{} {}\n", name, about, name, type);
    }
    template <class Number>
    void value(std::string_view name, std::string_view labels, Number number) {
        if (labels.empty())
            out_ += fmt::format("bulkhead_{} {}\n", name, number);
        else
            out_ += fmt::format("bulkhead_{}{{{}}} {}\n", name, labels, number);
    }
    std::string take() { return std::move(out_); }

private:
    std::string out_;
};

std::string seconds(std::int64_t microseconds) {
    return fmt::format("{}.{:06}", microseconds / 1'000'000, microseconds % 1'000'000);
}

void commits(Text& text, const Loop::Meter& meter) {
    text.family("commit_seconds", "histogram", "How long a commit took, until it was on the disk.");
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < Loop::Meter::bounds_us.size(); ++i) {
        sum += meter.commit_us[i].load();
        text.value("commit_seconds_bucket", fmt::format("le=\"{}\"", seconds(Loop::Meter::bounds_us[i])), sum);
    }
    sum += meter.commit_us.back().load();
    text.value("commit_seconds_bucket", "le=\"+Inf\"", sum);
    text.value("commit_seconds_sum", "", seconds(static_cast<std::int64_t>(meter.commit_us_sum.load())));
    text.value("commit_seconds_count", "", sum);
    text.family("commits_failed_total", "counter", "Commits that the store refused.");
    text.value("commits_failed_total", "", meter.failed_commits.load());
    text.family("events_total", "counter", "Commands, reports and heartbeats taken in.");
    text.value("events_total", "", meter.events.load());
    text.family("events_refused_total", "counter",
                "Commands and reports turned away because of a full queue or a store that cannot be written.");
    text.value("events_refused_total", "", meter.refused.load());
}

// The phase as it stands in the body; absent when it is the default.
LeasePhase phase_of(const Object& lease) {
    for (const LeasePhase phase : every<LeasePhase>())
        if (lease.body.find(fmt::format("\"phase\":\"{}\"", word(phase))) != std::string::npos) return phase;
    return GpuLeaseStatus{}.phase;
}

}  // namespace

void Metrics::note_request(std::string_view route, int status, std::int64_t microseconds) {
    const std::lock_guard lock{mutex_};
    Count& count = counts_[{route, status}];
    ++count.requests;
    count.microseconds += microseconds;
}

// Memory slices in runs, drives, functions and hosts, by clean state. A node is counted anew only when it changed.
std::array<std::uint64_t, 4> Metrics::units(const Catalog& catalog) {
    const std::lock_guard lock{census_mutex_};
    std::map<std::string, Census> fresh;
    std::array<std::uint64_t, 4> sum{};
    for (const ObjectPtr& object : catalog.list(ObjectKind::node, {.limit = SIZE_MAX}).objects) {
        Census& census = fresh[object->name];
        if (const auto known = census_.find(object->name);
            known != census_.end() && known->second.version == object->version) {
            census = known->second;
        } else if (const auto node = from_json<GpuNode>("a node", object->body, own_text)) {
            census.version = object->version;
            const auto count = [&](CleanState state) { ++census.units[static_cast<std::size_t>(state)]; };
            for (const NodeGpus& gpus : node->status.gpus)
                for (const GpuSlice& slice : gpus.slices) count(slice.state);
            for (const NodeDrive& drive : node->status.drives) count(drive.state);
            for (const NodeFunction& function : node->status.functions) count(function.state);
            if (node->status.host) count(node->status.host->state);
        }
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += census.units[i];
    }
    census_ = std::move(fresh);
    return sum;
}

std::string Metrics::text(const Sources& sources) {
    Text text;
    {
        const std::lock_guard lock{mutex_};
        text.family("http_requests_total", "counter", "Answered requests, by route and status.");
        for (const auto& [key, count] : counts_)
            text.value("http_requests_total", fmt::format("route=\"{}\",status=\"{}\"", key.first, key.second),
                       count.requests);
        text.family("http_request_seconds_total", "counter",
                    "Time from the first byte to the answer, by route and status.");
        for (const auto& [key, count] : counts_)
            text.value("http_request_seconds_total", fmt::format("route=\"{}\",status=\"{}\"", key.first, key.second),
                       seconds(count.microseconds));
    }
    commits(text, sources.loop.meter());
    text.family("queue_length", "gauge", "Events that wait for the core.");
    text.value("queue_length", "", sources.loop.waiting());
    text.family("writable", "gauge", "1 while writes are accepted.");
    text.value("writable", "", sources.loop.state() == LoopState::running ? 1 : 0);
    text.family("epoch", "gauge", "This control plane's epoch.");
    text.value("epoch", "", sources.loop.meter().epoch.load());
    text.family("objects", "gauge", "Objects, by kind.");
    for (const KindName& kind : kind_table())
        text.value("objects", fmt::format("kind=\"{}\"", kind.type), sources.catalog.count(kind.kind));
    text.family("leases", "gauge", "Leases, by phase.");
    std::array<std::uint64_t, every<LeasePhase>().size()> phases{};
    for (const ObjectPtr& lease : sources.catalog.list(ObjectKind::lease, {.limit = SIZE_MAX}).objects)
        ++phases[static_cast<std::size_t>(phase_of(*lease))];
    for (const LeasePhase phase : every<LeasePhase>())
        text.value("leases", fmt::format("phase=\"{}\"", word(phase)), phases[static_cast<std::size_t>(phase)]);
    text.family("units", "gauge", "Runs of memory slices, drives, functions and hosts, by clean state.");
    const auto by_state = units(sources.catalog);
    for (const CleanState state : every<CleanState>())
        text.value("units", fmt::format("state=\"{}\"", word(state)), by_state[static_cast<std::size_t>(state)]);
    text.family("agents_connected", "gauge", "Nodes with an open session.");
    text.value("agents_connected", "", sources.agents);
    text.family("log_leaves", "gauge", "Entries of the audit log that are durable.");
    text.value("log_leaves", "", sources.loop.meter().log_size.load());
    text.family("log_published_leaves", "gauge", "Entries that a signed checkpoint vouches for.");
    text.value("log_published_leaves", "", sources.log_published);
    return text.take();
}

}  // namespace bulkhead::shell
