#include "bulkhead/cli/objects.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "bulkhead/base/nearest.hpp"
#include "bulkhead/codec/document.hpp"
#include "bulkhead/codec/load.hpp"
#include "bulkhead/model/guarantee_unit.hpp"

namespace bulkhead::cli {

namespace {

constexpr int page = 200;

std::string_view paint_of(CleanState state) {
    switch (state) {
        case CleanState::available:
            return green;
        case CleanState::in_use:
            return {};
        case CleanState::sanitizing:
            return yellow;
        case CleanState::quarantined:
            return red;
    }
    return {};
}

std::string when(const std::optional<Instant>& at) { return at ? print(*at) : "-"; }
std::string or_dash(const std::string& text) { return text.empty() ? "-" : text; }

std::string request_of(const GpuRequest& gpu) {
    if (gpu.count) return fmt::format("{}", *gpu.count);
    if (!gpu.profile.empty()) return gpu.profile;
    if (gpu.fraction) return print(*gpu.fraction);
    if (gpu.memory) return print(*gpu.memory);
    return "-";
}

Cell phase_cell(WorkloadPhase phase) {
    const std::string_view paint = phase == WorkloadPhase::running   ? green
                                   : phase == WorkloadPhase::refused ? red
                                   : phase == WorkloadPhase::failed  ? red
                                   : phase == WorkloadPhase::pending ? yellow
                                                                     : std::string_view{};
    return {std::string{word(phase)}, paint};
}

Row cells(const FleetPolicy& object, bool) {
    std::vector<std::string> sites, domains;
    for (const Site& site : object.spec.sites) sites.push_back(site.name);
    for (const TrustDomain& domain : object.spec.trustDomains) domains.push_back(domain.name);
    return {{object.metadata.name}, {std::string{word(object.spec.threatModel)}}, {joined(sites)}, {joined(domains)}};
}

Row cells(const TenantClass& object, bool) {
    std::vector<std::string> mechanisms;
    mechanisms.reserve(object.spec.mechanisms.size());
    for (const Mechanism mechanism : object.spec.mechanisms) mechanisms.emplace_back(word(mechanism));
    return {{object.metadata.name},
            {std::string{word(object.spec.tier)}},
            {std::string{word(object.spec.quota)}},
            {std::string{word(object.spec.slo)}},
            {joined(mechanisms)}};
}

Row cells(const Tenant& object, bool wide) {
    const TenantStatus status = object.status.value_or(TenantStatus{});
    const std::string_view paint = status.phase == TenantPhase::frozen ? red : std::string_view{};
    Row row{{object.metadata.name},
            {object.spec.tenantClass},
            {or_dash(object.spec.parent)},
            {object.spec.quota.guaranteeUnit == "gpu" ? print(object.spec.quota.guarantee)
                                                      : print_guarantee(object.spec.quota)},
            {object.spec.quota.limit ? print(*object.spec.quota.limit) : "-"},
            {std::string{word(status.phase)}, paint}};
    if (wide) {
        row.push_back({object.spec.trustDomain ? object.spec.trustDomain->name : "-"});
        row.push_back({std::string{word(object.spec.compliance)}});
        row.push_back({status.legalHold ? "held" : "-", status.legalHold ? yellow : std::string_view{}});
    }
    return row;
}

Row cells(const GpuWorkload& object, bool wide) {
    const GpuWorkloadStatus status = object.status.value_or(GpuWorkloadStatus{});
    Cell phase = phase_cell(status.phase);
    // "failed: exited 3"; of one that is tried again, "pending: exited 3".
    const bool shows =
        status.failure && (status.phase == WorkloadPhase::failed || status.phase == WorkloadPhase::pending);
    if (shows) phase.text += fmt::format(": {}", word(status.failure->reason));
    if (shows && status.failure->exitStatus) phase.text += fmt::format(" {}", *status.failure->exitStatus);
    if (status.deleting) phase.text += ", deleting";
    Row row{{object.metadata.name},
            {object.spec.tenant},
            {fmt::format("{}x{}", object.spec.tasks, request_of(object.spec.gpu))},
            std::move(phase),
            {or_dash(status.lease)},
            {when(status.since)}};
    if (wide) row.push_back({status.reasons.empty() ? "-" : status.reasons.front()});
    return row;
}

Row cells(const GpuNode& object, bool wide) {
    std::int64_t gpus = 0, draining = 0;
    std::set<std::string> models, leases;
    std::array<int, 4> states{};
    for (const NodeGpus& group : object.status.gpus) {
        gpus += group.count;
        draining += group.draining.empty() ? 0 : group.count;
        models.insert(group.model);
        for (const GpuSlice& slice : group.slices) {
            ++states[static_cast<std::size_t>(slice.state)];
            if (!slice.lease.empty()) leases.insert(slice.lease);
        }
    }
    const NodePhase phase = object.status.phase.value_or(NodePhase::enrolled);
    const CleanState worst = states[3] > 0   ? CleanState::quarantined
                             : states[2] > 0 ? CleanState::sanitizing
                                             : CleanState::available;
    std::string clean = states[3] > 0   ? fmt::format("{} quarantined", states[3])
                        : states[2] > 0 ? fmt::format("{} sanitizing", states[2])
                                        : "clean";
    if (draining > 0) clean += fmt::format(", {} draining", draining);
    const auto drives = std::ranges::count(object.status.drives, CleanState::quarantined, &NodeDrive::state);
    if (drives > 0) clean += fmt::format(", {} drive{} quarantined", drives, drives == 1 ? "" : "s");
    Row row{{object.metadata.name},
            {object.spec.site},
            {fmt::format("{}{}{}", word(phase), object.spec.unschedulable ? ", drained" : "",
                         object.status.unfit.empty() ? "" : ", unfit"),
             phase == NodePhase::ready    ? green
             : phase == NodePhase::fenced ? red
                                          : yellow},
            {fmt::format("{} {}", gpus, fmt::join(models, ","))},
            {clean, (draining > 0 || drives > 0) && worst == CleanState::available ? yellow : paint_of(worst)},
            {std::to_string(leases.size())}};
    if (wide) {
        row.push_back({or_dash(object.spec.zone)});
        row.push_back({or_dash(object.spec.rack)});
        row.push_back({when(object.status.observedAt)});
        row.push_back({or_dash(object.status.unfit), red});
    }
    return row;
}

Row cells(const GpuLease& object, bool wide) {
    const GpuLeaseStatus status = object.status.value_or(GpuLeaseStatus{});
    std::set<std::string> nodes;
    for (const LeasedSlice& slice : object.spec.slices) nodes.insert(slice.node);
    Row row{{object.metadata.name},
            {object.spec.tenant},
            {object.spec.workload},
            {std::string{word(object.spec.mechanism)}},
            {std::string{word(object.spec.tier)}},
            {print(status.gpus)},
            {std::string{word(status.phase)}, status.phase == LeasePhase::active ? green : std::string_view{}},
            {fmt::format("{}", fmt::join(nodes, ","))}};
    if (wide) {
        row.push_back({when(status.boundAt)});
        row.push_back({when(status.activeAt)});
        row.push_back({or_dash(status.why)});
    }
    return row;
}

}  // namespace

Result<const shell::KindName*> parse_kind(std::string_view word) {
    std::vector<std::string_view> known;
    for (const shell::KindName& kind : shell::kind_table()) {
        for (const std::string_view name : {kind.plural, kind.singular, kind.brief, kind.type}) {
            if (name == word) return &kind;
            known.push_back(name);
        }
    }
    const std::string_view near = nearest(word, known);
    return fail(Code::invalid, fmt::format("there is no kind \"{}\"", word),
                near.empty() ? "policies, classes, tenants, workloads, nodes or leases" : std::string{near});
}

std::string target_of(std::string_view plural, std::string_view given, std::string_view door) {
    const std::size_t slash = given.find('/');
    const std::string_view name = slash == given.npos ? given : given.substr(slash + 1);
    std::string target = fmt::format("/v1/{}/{}{}{}", plural, percent_encoded(name), door.empty() ? "" : "/", door);
    if (slash != given.npos) target += "?tenant=" + percent_encoded(given.substr(0, slash));
    return target;
}

std::string percent_encoded(std::string_view text) {
    std::string out;
    for (const char c : text) {
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                           c == '.' || c == '_' || c == '~';
        if (plain)
            out += c;
        else
            out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
    return out;
}

Result<Listed> list_all(Client& client, const ListQuery& query) {
    Listed all;
    std::string next;
    do {
        std::string target = fmt::format("/v1/{}?limit={}", shell::name_of(query.kind).plural, page);
        if (!query.selector.empty()) target += "&labelSelector=" + percent_encoded(query.selector);
        if (!next.empty()) target += "&continue=" + next;
        const auto reply = client.get(target);
        if (!reply) return std::unexpected(reply.error());
        const SourceText text{"the answer", reply->body};
        Loaded loaded = load({&text, 1}, own_text);
        if (!loaded.errors.empty())
            return fail(Code::corrupt, "the server's answer cannot be read: " + print(loaded.errors.front()),
                        "are server and command of the same version?");
        for_each_kind([&]<class T>() {
            auto& list = loaded.snapshot.list<T>();
            all.objects.list<T>().insert(all.objects.list<T>().end(), std::make_move_iterator(list.begin()),
                                         std::make_move_iterator(list.end()));
        });
        next.clear();
        const auto tree = read_answer(*reply);
        if (!tree) return std::unexpected(tree.error());
        if (const Node* about = tree->root->find("metadata")) {
            if (const Node* more = about->find("continue")) next = more->text;
            if (const Node* point = about->find("resourceVersion")) all.point = point->text;
        }
    } while (!next.empty());
    return all;
}

Result<AnyObject> read_object(std::string_view json) {
    const SourceText text{"the answer", std::string{json}};
    Loaded loaded = load({&text, 1}, own_text);
    std::optional<AnyObject> found;
    for_each_kind([&]<class T>() {
        if (!loaded.snapshot.list<T>().empty()) found = std::move(loaded.snapshot.list<T>().front());
    });
    if (!found)
        return fail(Code::corrupt,
                    loaded.errors.empty() ? "the server's answer holds no object"
                                          : "the server's answer cannot be read: " + print(loaded.errors.front()),
                    "are server and command of the same version?");
    return *std::move(found);
}

Row heading_of(ObjectKind kind, bool wide) {
    std::vector<std::string> names, more;
    switch (kind) {
        case ObjectKind::policy:
            names = {"NAME", "THREAT MODEL", "SITES", "TRUST DOMAINS"};
            break;
        case ObjectKind::tenant_class:
            names = {"NAME", "TIER", "QUOTA", "SLO", "MECHANISMS"};
            break;
        case ObjectKind::tenant:
            names = {"NAME", "CLASS", "PARENT", "GUARANTEE", "LIMIT", "PHASE"};
            more = {"DOMAIN", "COMPLIANCE", "HOLD"};
            break;
        case ObjectKind::workload:
            names = {"NAME", "TENANT", "ASKS", "PHASE", "LEASE", "SINCE"};
            more = {"WHY"};
            break;
        case ObjectKind::node:
            names = {"NAME", "SITE", "PHASE", "GPUS", "CLEAN", "LEASES"};
            more = {"ZONE", "RACK", "OBSERVED", "UNFIT"};
            break;
        case ObjectKind::lease:
            names = {"NAME", "TENANT", "WORKLOAD", "MECHANISM", "TIER", "GPUS", "PHASE", "NODES"};
            more = {"BOUND", "ACTIVE", "WHY"};
            break;
    }
    if (wide) names.insert(names.end(), more.begin(), more.end());
    Row row;
    for (std::string& name : names) row.push_back({std::move(name), dim});
    return row;
}

Row row_of(const AnyObject& object, bool wide) {
    return std::visit([&](const auto& one) { return cells(one, wide); }, object);
}

}  // namespace bulkhead::cli
