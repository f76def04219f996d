#include "bulkhead/shell/metrics.hpp"

#include <algorithm>
#include <array>

#include "bulkhead/shell/device_metrics.hpp"
#include "bulkhead/shell/routes.hpp"
#include "bulkhead/shell/tenant_metrics.hpp"

namespace bulkhead::shell {

namespace {

using Type = Exposition::Type;

void tell_commits(Exposition& out, const Loop::Meter& meter) {
    auto& took =
        out.family("bulkhead_commit_seconds", Type::histogram, "How long a commit took, until it was on the disk.");
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < Loop::Meter::bounds_us.size(); ++i) {
        sum += meter.commit_us[i].load();
        took.add(labels({{"le", decimal(Loop::Meter::bounds_us[i], 6)}}), sum, "_bucket");
    }
    sum += meter.commit_us.back().load();
    took.add(labels({{"le", "+Inf"}}), sum, "_bucket");
    took.add("", decimal(static_cast<std::int64_t>(meter.commit_us_sum.load()), 6), "_sum");
    took.add("", sum, "_count");
    out.value("bulkhead_commits_failed_total", Type::counter, "Commits that the store refused.",
              meter.failed_commits.load());
    out.value("bulkhead_events_total", Type::counter, "Commands, reports and heartbeats taken in.",
              meter.events.load());
    out.value("bulkhead_events_refused_total", Type::counter,
              "Commands and reports turned away because of a full queue or a store that cannot be written.",
              meter.refused.load());
}

void tell_loop(Exposition& out, const Loop& loop, std::uint64_t published) {
    tell_commits(out, loop.meter());
    out.value("bulkhead_queue_length", Type::gauge, "Events that wait for the core.", loop.waiting());
    out.value("bulkhead_writable", Type::gauge, "1 while writes are accepted.",
              loop.state() == LoopState::running ? 1 : 0);
    out.value("bulkhead_epoch", Type::gauge, "This control plane's epoch.", loop.meter().epoch.load());
    const std::uint64_t leaves = loop.meter().log_size.load();
    out.value("bulkhead_log_leaves", Type::gauge, "Entries of the audit log that are durable.", leaves);
    out.value("bulkhead_log_published_leaves", Type::gauge, "Entries that a signed checkpoint vouches for.", published);
    out.value("bulkhead_log_lag_leaves", Type::gauge, "Entries that are durable and not yet published.",
              leaves > published ? leaves - published : 0);
}

void tell_objects(Exposition& out, const Catalog& catalog, const Census::Taken& census) {
    auto& objects = out.family("bulkhead_objects", Type::gauge, "Objects, by kind.");
    for (const KindName& kind : kind_table()) objects.add(labels({{"kind", kind.type}}), catalog.count(kind.kind));
    std::array<std::uint64_t, every<LeasePhase>().size()> phases{};
    for (const auto& lease : census.leases)
        ++phases.at(static_cast<std::size_t>((lease->status ? *lease->status : GpuLeaseStatus{}).phase));
    auto& leases = out.family("bulkhead_leases", Type::gauge, "Leases, by phase.");
    for (const LeasePhase phase : every<LeasePhase>())
        leases.add(labels({{"phase", word(phase)}}), phases.at(static_cast<std::size_t>(phase)));
    std::array<std::uint64_t, 4> units{};
    for (const auto& node : census.nodes)
        for (std::size_t i = 0; i < units.size(); ++i) units.at(i) += node->units.at(i);
    auto& by_state = out.family("bulkhead_units", Type::gauge,
                                "Runs of memory slices, drives, functions and hosts, by clean state.");
    for (const CleanState state : every<CleanState>())
        by_state.add(labels({{"state", word(state)}}), units.at(static_cast<std::size_t>(state)));
}

void tell_nodes(Exposition& out, const Census::Taken& census) {
    auto& ready = out.family("bulkhead_node_ready", Type::gauge,
                             "1: heard of, and what it holds is known. 0: silent, or not yet reconciled.");
    auto& closed =
        out.family("bulkhead_node_unschedulable", Type::gauge, "1: an operator has closed it to new leases.");
    auto& gpus = out.family("bulkhead_node_gpus", Type::gauge, "GPUs of the node.");
    auto& draining = out.family("bulkhead_node_gpus_draining", Type::gauge, "Of those, which take nobody new.");
    auto& quarantined = out.family("bulkhead_node_units_quarantined", Type::gauge,
                                   "Runs of memory slices, drives, functions and the host that nobody may have.");
    auto& fences = out.family("bulkhead_node_fence_tests", Type::gauge,
                              "What the node's own attacks on the fences of its NICs came to, by NIC and fence.");
    for (const auto& node : census.nodes) {
        const std::string with = labels({{"node", node->name}});
        for (const FabricFound found : every<FabricFound>())
            if (const std::uint64_t tests = node->fences.at(static_cast<std::size_t>(found)); tests != 0)
                fences.add(labels({{"node", node->name}, {"found", word(found)}}), tests);
        ready.add(with, node->phase == NodePhase::ready ? 1 : 0);
        closed.add(with, node->unschedulable ? 1 : 0);
        gpus.add(with, node->gpus);
        draining.add(with, node->gpus_draining);
        quarantined.add(with, node->units.at(static_cast<std::size_t>(CleanState::quarantined)));
    }
}

void tell_wipes(Exposition& out, const Ledger::Books& books) {
    auto& ended = out.family("bulkhead_wipes_total", Type::counter, "Wipes that ended since this server started.");
    for (const UnitKind kind : every<UnitKind>())
        for (const bool verified : {true, false}) {
            const auto count = books.wipes.ended.find({kind, verified});
            ended.add(labels({{"unit", word(kind)}, {"result", verified ? "verified" : "failed"}}),
                      count == books.wipes.ended.end() ? 0 : count->second);
        }
    auto& took = out.family("bulkhead_wipe_seconds", Type::histogram,
                            "How long verified wipes took, by the clocks of the nodes.");
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < Ledger::Wipes::bounds_s.size(); ++i) {
        sum += books.wipes.took.at(i);
        took.add(labels({{"le", std::to_string(Ledger::Wipes::bounds_s.at(i))}}), sum, "_bucket");
    }
    sum += books.wipes.took.back();
    took.add(labels({{"le", "+Inf"}}), sum, "_bucket");
    took.add("", decimal(books.wipes.took_ms, 3), "_sum");
    took.add("", sum, "_count");
    out.value("bulkhead_quarantines_total", Type::counter, "Units put into quarantine since this server started.",
              books.quarantined);
    out.value("bulkhead_nodes_fenced_total", Type::counter, "Nodes that fell silent since this server started.",
              books.fenced);
}

void tell_ends(Exposition& out, const Metrics::Sources& sources) {
    auto& own = out.family("bulkhead_certificate_end_timestamp_seconds", Type::gauge,
                           "When the server's certificate and its authority's end.");
    for (const auto& [name, until] : sources.own_certificates)
        own.add(labels({{"certificate", name}}), decimal(until.ms, 3));
    auto& nodes = out.family("bulkhead_node_certificate_end_timestamp_seconds", Type::gauge,
                             "When the certificate ends that a connected node came with.");
    for (const auto& [node, until] : sources.node_certificates)
        nodes.add(labels({{"node", node}}), decimal(until.ms, 3));
    std::uint64_t in_force = 0, ending = 0;
    for (const auth::StoredToken& token : sources.tokens) {
        if (token.revokedAt || token.usedAt || (token.expiresAt && *token.expiresAt <= sources.now)) continue;
        ++in_force;
        if (token.purpose == auth::TokenPurpose::api && token.expiresAt &&
            *token.expiresAt - sources.now < Duration::days(7))
            ++ending;
    }
    out.value("bulkhead_tokens", Type::gauge, "Tokens in force.", in_force);
    out.value("bulkhead_tokens_ending", Type::gauge, "Of those, bearer tokens that end within seven days.", ending);
}

void tell_ages(Exposition& out, const Metrics::Sources& sources) {
    auto& age = out.family("bulkhead_telemetry_age_seconds", Type::gauge, "How old the newest sample of a node is.");
    for (const auto& [node, sampled] : sources.samples)
        age.add(labels({{"node", node}, {"grade", word(sampled.telemetry->grade)}}),
                decimal(std::max<std::int64_t>(0, (sources.now - sampled.taken).ms), 3));
}

}  // namespace

void Metrics::note_request(std::string_view route, int status, std::int64_t microseconds) {
    const std::lock_guard lock{mutex_};
    Count& count = counts_[{route, status}];
    ++count.requests;
    count.microseconds += microseconds;
}

void Metrics::tell_requests(Exposition& out) {
    auto& requests =
        out.family("bulkhead_http_requests_total", Type::counter, "Answered requests, by route and status.");
    auto& time = out.family("bulkhead_http_request_seconds_total", Type::counter,
                            "Time from the first byte to the answer, by route and status.");
    const std::lock_guard lock{mutex_};
    for (const auto& [key, count] : counts_) {
        const std::string with = labels({{"route", key.first}, {"status", std::to_string(key.second)}});
        requests.add(with, count.requests);
        time.add(with, decimal(count.microseconds, 6));
    }
}

Ledger::Books Metrics::books(const Catalog& catalog) {
    return ledger_.books([&](const std::string& tenant) { return catalog.get(ObjectKind::tenant, tenant) != nullptr; });
}

std::string Metrics::text(const Sources& sources) {
    Exposition out;
    const auto taken = census_.take(sources.catalog);
    const Census::Taken& census = *taken;
    const Ledger::Books past = books(sources.catalog);
    tell_requests(out);
    tell_loop(out, sources.loop, sources.log_published);
    tell_objects(out, sources.catalog, census);
    tell_nodes(out, census);
    tell_wipes(out, past);
    tell_ends(out, sources);
    out.value("bulkhead_agents_connected", Type::gauge, "Nodes with an open session.", sources.agents);
    tell_ages(out, sources);
    const TenantFigures figures{census, past, sources.samples, sources.now};
    tell_tenants(out, figures);
    tell_contention(out, figures);
    tell_devices(out, sources.samples);
    return out.text();
}

std::string Metrics::tenant_text(const std::string& tenant, const Sources& sources) {
    Exposition out;
    const auto taken = census_.take(sources.catalog);
    const Ledger::Books past = books(sources.catalog);
    tell_tenant(out, tenant, {*taken, past, sources.samples, sources.now});
    return out.text();
}

}  // namespace bulkhead::shell
