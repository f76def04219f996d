#include "bulkhead/shell/routes.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "bulkhead/base/nearest.hpp"
#include "bulkhead/codec/diagnostic.hpp"
#include "bulkhead/shell/api.hpp"

namespace bulkhead::shell {

namespace {

constexpr KindName kinds[] = {
    {ObjectKind::policy, "policies", "policy", "pol", "FleetPolicy"},
    {ObjectKind::tenant_class, "classes", "class", "cls", "TenantClass"},
    {ObjectKind::tenant, "tenants", "tenant", "tn", "Tenant"},
    {ObjectKind::workload, "workloads", "workload", "wl", "GpuWorkload"},
    {ObjectKind::node, "nodes", "node", "no", "GpuNode"},
    {ObjectKind::lease, "leases", "lease", "ls", "GpuLease"},
};
static_assert(std::ranges::all_of(kinds, [](const KindName& row) {
    return words(ObjectKind{})[static_cast<std::size_t>(row.kind)] == row.type;
}));

constexpr Parameter list_query[] = {
    {"tenant", "Only this tenant's. Default: everything that is the caller's to see."},
    {"limit", "At most so many; 1 to 1000, which is also the default."},
    {"continue", "Where the page before ended, as it said."},
    {"labelSelector", "Only objects whose labels match: team=vision,env!=prod,gpu,!spot,zone in (a,b)."},
    {"watch", "true: changes as server-sent events, for as long as the connection lasts."},
    {"resourceVersion", "With watch: from this point on, as a list or an event gave it. Without: all objects first."},
};
constexpr Parameter whose_query[] = {
    {"tenant", "Whose, where a name alone does not say it."},
};
constexpr Parameter get_query[] = {
    {"tenant", "Whose, where a name alone does not say it."},
    {"watch", "true: changes of this object as server-sent events."},
    {"resourceVersion", "With watch: from this point on."},
};
constexpr Parameter apply_query[] = {
    {"dryRun", "true: answer as if, change nothing."},
};
constexpr Parameter queue_query[] = {
    {"inTheWay", "true: for each of the first 32, also which nodes and which work are in the way, and an estimate."},
};
constexpr Parameter metrics_query[] = {
    {"nodes", "Counters of devices only of nodes whose names begin so: for fleets that are too large for one answer."},
};
constexpr Parameter certificate_query[] = {
    {"tenant", "Whose, for whoever belongs to several."},
    {"lease", "Of what this lease left, and how it was wiped."},
    {"node", "Of what was wiped on this node, the newest first."},
    {"limit", "At most so many; 1 to 100, which is also the default."},
    {"from", "Of a lease: go on from here; the answer before says it as next."},
    {"pseudonymous", "true: tenants by their pseudonyms alone, to be handed on to others."},
};
constexpr Parameter record_query[] = {
    {"tenant", "Only what is this tenant's business, counted by itself."},
    {"from", "The first index. Default: 0."},
    {"limit", "At most so many; 1 to 1000. Default: 100."},
};

constexpr Parameter proof_query[] = {
    {"index", "The entry's place, from 0 on. This or entry."},
    {"entry", "The entry itself, as the log publishes it: 64 hex digits."},
    {"size", "In the tree of so many entries. Default: that of the newest checkpoint, which then comes with it."},
    {"format", "json or tlog-proof (c2sp.org/tlog-proof@v1). Default: json."},
};
constexpr Parameter consistency_query[] = {
    {"from", "The size of the tree you know; at least 1."},
    {"to", "The size of the newer tree. Default: that of the newest checkpoint, which then comes with it."},
};

constexpr Parameter output_query[] = {
    {"from", "The first byte's number, counted from its start. Default: 0."},
    {"stream", "out or err. Default: out."},
    {"tenant", "Whose, where a name alone does not say it."},
    {"rank", "Which of its nodes, from 0 on. Default: 0."},
};

constexpr Parameter nccl_query[] = {
    {"node", "Only its part on this node."},
    {"tenant", "Whose, where a name alone does not say it."},
};

constexpr Parameter usage_query[] = {
    {"from", "The first UTC day: 2026-11-01."},
    {"to", "The day after the last."},
    {"tenant", "Of this tenant alone."},
    {"by", "lease: a line for each lease."},
    {"format", "json, csv, or focus (FOCUS 1.2, a row for each charge). Default: json."},
};

constexpr Parameter history_query[] = {
    {"tenant", "Of this tenant alone."},
    {"workload", "Of workloads of this name alone."},
    {"since", "That ended at this time or later: 2026-11-01T00:00:00Z."},
    {"until", "That ended before this time."},
    {"state", "finished, failed, interrupted or cancelled."},
    {"limit", "The newest so many; 1 to 10000. Default: 1000."},
};

using enum Method;
using enum Permission;
constexpr Access anyone{Access::Reach::anyone, {}}, any_caller{Access::Reach::caller, {}};
constexpr Access fleet(Permission permission) { return {Access::Reach::fleet, permission}; }
constexpr Access own(Permission permission) { return {Access::Reach::own, permission}; }
// In each pair of rows that both match, the more particular stands first.
constexpr Route table[] = {
    {get, "/healthz", anyone, Lane::quick, Body::none, "health", "Whether the process lives.", &Api::healthz},
    {get, "/readyz", anyone, Lane::quick, Body::none, "readiness", "Whether it can write.", &Api::readyz},
    {get, "/openapi.json", anyone, Lane::quick, Body::none, "openapi", "This description.", &Api::openapi},
    {get, "/metrics", fleet(read_metrics), Lane::read, Body::none, "metrics", "Figures for Prometheus.", &Api::metrics,
     metrics_query},

    {get, "/v1/login", anyone, Lane::quick, Body::none, "loginWith", "What to log in with: issuer, client and scopes.",
     &Api::login_with},

    {post, "/v1/apply", any_caller, Lane::write, Body::objects, "apply",
     "Create or change several objects: all of them or none.", &Api::apply, apply_query},
    {post, "/v1/whatif", any_caller, Lane::read, Body::objects, "whatIf",
     "What applying these would decide; nothing changes.", &Api::what_if},
    {get, "/v1/queue", own(read_tenant), Lane::quick, Body::none, "queue",
     "Work that waits, in order, each with its reasons.", &Api::queue, queue_query},
    {get, "/v1/snapshot", fleet(read_fleet), Lane::read, Body::none, "snapshot",
     "Everything there is, as one stream of YAML documents.", &Api::snapshot},
    {get, "/v1/certificates", own(read_tenant), Lane::read, Body::none, "certificates",
     "Proofs of sanitisation that anyone can check offline.", &Api::certificates, certificate_query},
    {get, "/v1/usage", own(read_usage), Lane::read, Body::none, "usage",
     "What was used in these days, and what it costs.", &Api::usage, usage_query},
    {get, "/v1/history", own(read_tenant), Lane::read, Body::none, "history",
     "Runs of workloads that have ended: who, when, where, how, and how much of GPUs.", &Api::history, history_query},
    {post, "/v1/usage/corrections", fleet(Permission::correct_usage), Lane::quick, Body::json, "correctUsage",
     "An amount about a lease that was billed before: a row of its own, once for each id.", &Api::correct_usage},
    {post, "/v1/backup", fleet(back_up), Lane::backup, Body::none, "backup",
     "A verified copy of the store at this moment.", &Api::backup},

    {get, "/v1/whoami", any_caller, Lane::quick, Body::none, "whoAmI", "Who is asking, and what they may do.",
     &Api::who_am_i},
    {post, "/v1/tenants/{name}/break-glass", fleet(Permission::break_glass), Lane::quick, Body::json, "breakGlass",
     "A short-lived key to a tenant that is not one's own; the tenant sees who, why, and every use.",
     &Api::break_glass},
    {get, "/v1/tokens", own(read_log), Lane::quick, Body::none, "listTokens",
     "The tokens in force, without their secrets.", &Api::list_tokens},
    {post, "/v1/tokens", own(manage_tokens), Lane::quick, Body::json, "createToken",
     "A bearer token; its text is shown once.", &Api::create_token},
    {post, "/v1/tokens/enrolment", fleet(manage_nodes), Lane::quick, Body::json, "createEnrolmentToken",
     "A token that admits one node, once.", &Api::create_enrolment_token},
    {erase, "/v1/tokens/{id}", any_caller, Lane::quick, Body::none, "deleteToken", "Takes a token back.",
     &Api::delete_token},
    {post, "/v1/enrol", anyone, Lane::enrol, Body::json, "enrol",
     "A machine becomes a node: one-time token and certificate request in, certificate out.", &Api::enrol},

    {get, "/v1/log/checkpoint", anyone, Lane::read, Body::none, "logCheckpoint", "The log's newest signed checkpoint.",
     &Api::log_checkpoint},
    {get, "/v1/log/key", anyone, Lane::quick, Body::none, "logKey", "The key that verifies checkpoints.",
     &Api::log_key},
    {get, "/v1/log/keys", anyone, Lane::quick, Body::none, "logKeys",
     "Each key the log has had, with the proof of each change.", &Api::log_keys},
    {get, "/v1/log/proof", anyone, Lane::read, Body::none, "logProof", "That an entry is in the log.", &Api::log_proof,
     proof_query},
    {get, "/v1/log/consistency", anyone, Lane::read, Body::none, "logConsistency",
     "That the log continues what it was.", &Api::log_consistency, consistency_query},
    {post, "/v1/log/rotate-key", fleet(rotate_log_keys), Lane::backup, Body::none, "rotateLogKey",
     "The server makes another key for the log, and signs with it from then on.", &Api::rotate_log_key},
    {get, "/v1/log/records", own(read_log), Lane::read, Body::none, "logRecords",
     "Records with the salts that open their entries, for those who may read all.", &Api::log_records, record_query},
    {get, "/v1/log/tile/{path}", anyone, Lane::read, Body::none, "logTile", "A tile of the log (c2sp.org/tlog-tiles).",
     &Api::log_tile},

    {get, "/v1/workloads/{name}/explain", own(read_tenant), Lane::quick, Body::none, "explain",
     "Why it waits, runs, or was refused.", &Api::explain, whose_query},
    {get, "/v1/workloads/{name}/output", own(read_output), Lane::quick, Body::none, "output",
     "What its command prints, while it runs; and the end of that, afterwards.", &Api::output, output_query},
    {get, "/v1/leases/{name}/nccl", own(read_tenant), Lane::quick, Body::none, "nccl",
     "The lease as NCCL reads it: a topology file and variables for each of its nodes.", &Api::nccl, nccl_query},
    {post, "/v1/nodes/{name}/drain", fleet(manage_nodes), Lane::quick, Body::json, "drain",
     "Closes a node and ends its leases.", &Api::drain},
    {post, "/v1/nodes/{name}/undrain", fleet(manage_nodes), Lane::quick, Body::json, "undrain", "Opens it again.",
     &Api::undrain},
    {post, "/v1/nodes/{name}/repair", fleet(lift_quarantine), Lane::quick, Body::json, "repair",
     "Lets a quarantined device be wiped again.", &Api::repair},
    {post, "/v1/nodes/{name}/test-fabric", fleet(manage_nodes), Lane::quick, Body::json, "testFabric",
     "Lets a node attack its own fences, between functions that nobody has.", &Api::test_fabric},
    {post, "/v1/nodes/{name}/revoke", fleet(revoke_nodes), Lane::quick, Body::json, "revoke",
     "Believes this node's keys no longer, and hangs up.", &Api::revoke},
    {post, "/v1/tenants/{name}/freeze", fleet(freeze), Lane::quick, Body::json, "freeze", "Stops a tenant at once.",
     &Api::freeze},
    {post, "/v1/tenants/{name}/thaw", fleet(freeze), Lane::quick, Body::json, "thaw", "Lets it run again.", &Api::thaw},
    {post, "/v1/tenants/{name}/hold", fleet(hold), Lane::quick, Body::json, "hold",
     "Legal hold: what the tenant leaves is kept instead of wiped.", &Api::hold},
    {post, "/v1/tenants/{name}/unhold", fleet(lift_hold), Lane::quick, Body::json, "unhold", "Lifts it.", &Api::unhold},

    {get, "/v1/tenants/{name}/metrics", own(read_metrics), Lane::read, Body::none, "tenantMetrics",
     "Figures for Prometheus that are the tenant's own.", &Api::tenant_metrics},
    {post, "/v1/tenants/{name}/compliance", own(read_tenant), Lane::quick, Body::json, "compliance",
     "Turns a tenant's compliance mode on or off for leases to come; says first what would change.", &Api::compliance},

    {get, "/v1/{kind}", own(read_tenant), Lane::quick, Body::none, "list", "Objects of a kind, by name.", &Api::list,
     list_query},
    {post, "/v1/{kind}", any_caller, Lane::write, Body::object, "create", "A new object.", &Api::create},
    {get, "/v1/{kind}/{name}", own(read_tenant), Lane::quick, Body::none, "get", "One object.", &Api::get, get_query},
    {put, "/v1/{kind}/{name}", any_caller, Lane::write, Body::object, "replace",
     "Another content for an object, if it is still at the version of If-Match.", &Api::replace},
    {erase, "/v1/{kind}/{name}", any_caller, Lane::quick, Body::none, "delete", "An object goes.", &Api::remove,
     whose_query},
};

std::vector<std::string_view> split_pattern(std::string_view pattern) {
    std::vector<std::string_view> out;
    while (!pattern.empty()) {
        pattern.remove_prefix(1);
        const std::size_t end = std::min(pattern.find('/'), pattern.size());
        out.push_back(pattern.substr(0, end));
        pattern.remove_prefix(end);
    }
    return out;
}

// The patterns, cut once.
const std::vector<std::vector<std::string_view>>& cut_patterns() {
    static const std::vector<std::vector<std::string_view>> all = [] {
        std::vector<std::vector<std::string_view>> out;
        for (const Route& route : table) out.push_back(split_pattern(route.pattern));
        return out;
    }();
    return all;
}

bool fits(const std::vector<std::string_view>& pattern, const std::vector<std::string>& segments) {
    const bool open_end = pattern.back() == "{path}";
    if (open_end ? segments.size() < pattern.size() : segments.size() != pattern.size()) return false;
    for (std::size_t i = 0; i < pattern.size(); ++i) {
        if (pattern[i] == "{path}") return true;
        if (pattern[i] == "{kind}") {
            if (kind_by_plural(segments[i]) == nullptr) return false;
        } else if (pattern[i] == "{name}" || pattern[i] == "{id}") {
            // What no object can be called is nowhere, and need not be looked for.
            if (!is_valid(Format::name, segments[i])) return false;
        } else if (pattern[i] != segments[i]) {
            return false;
        }
    }
    return true;
}

// Of a target that fits: what stands at the places in braces.
std::map<std::string, std::string, std::less<>> parameters_of(const std::vector<std::string_view>& pattern,
                                                              const std::vector<std::string>& segments) {
    std::map<std::string, std::string, std::less<>> out;
    for (std::size_t i = 0; i < pattern.size(); ++i) {
        if (!pattern[i].starts_with('{')) continue;
        std::string value = segments[i];
        if (pattern[i] == "{path}")
            for (std::size_t j = i + 1; j < segments.size(); ++j) value += '/' + segments[j];
        out.emplace(pattern[i].substr(1, pattern[i].size() - 2), std::move(value));
    }
    return out;
}

Response no_such_path(const Target& target) {
    std::vector<std::string_view> known;
    for (const Route& route : table)
        if (route.pattern.find('{') == std::string_view::npos) known.push_back(route.pattern);
    std::vector<std::string> lists;
    for (const KindName& kind : kinds) lists.push_back(fmt::format("/v1/{}", kind.plural));
    for (const std::string& list : lists) known.push_back(list);
    // Of a longer path, what may be misspelled is its kind.
    const bool of_object = target.segments.size() > 2 && target.segments[0] == "v1";
    const std::string typed = of_object ? fmt::format("/v1/{}", target.segments[1]) : target.path;
    const std::string_view near = nearest(typed, known);
    return problem(Error{Code::not_found, fmt::format("there is nothing at {}", shortened(target.path)),
                         near.empty() || near == typed ? "GET /openapi.json lists what there is" : std::string{near}});
}

}  // namespace

bool may(const Rights& rights, Access access) {
    switch (access.reach) {
        case Access::Reach::anyone:
        case Access::Reach::caller:
            return true;
        case Access::Reach::fleet:
            return rights.may(access.permission);
        case Access::Reach::own:
            return rights.may_somewhere(access.permission);
        case Access::Reach::nobody:
            return false;
    }
    return false;
}

std::span<const Route> routes() { return table; }
std::span<const KindName> kind_table() { return kinds; }
const KindName& name_of(ObjectKind kind) { return kinds[static_cast<std::size_t>(kind)]; }

const KindName* kind_by_plural(std::string_view plural) {
    const auto found = std::ranges::find(kinds, plural, &KindName::plural);
    return found == std::end(kinds) ? nullptr : found;
}

std::expected<Match, Response> match(Method method, const Target& target) {
    if (method == Method::head) method = Method::get;
    std::vector<std::string_view> allowed;
    for (std::size_t i = 0; i < std::size(table); ++i) {
        const auto& pattern = cut_patterns()[i];
        if (!fits(pattern, target.segments)) continue;
        if (table[i].method != method) {
            allowed.push_back(word(table[i].method));
            if (table[i].method == Method::get) allowed.push_back(word(Method::head));
            continue;
        }
        std::vector<std::string_view> known;
        for (const Parameter& parameter : table[i].query) known.push_back(parameter.name);
        for (const auto& [name, value] : target.query)
            if (std::ranges::find(known, name) == known.end())
                return std::unexpected(problem(
                    Error{Code::invalid, fmt::format("{} takes no parameter \"{}\"", table[i].pattern, shortened(name)),
                          known.empty() ? "leave it out" : fmt::format("it takes {}", fmt::join(known, ", "))}));
        return Match{.route = i, .parameters = parameters_of(pattern, target.segments)};
    }
    if (allowed.empty()) return std::unexpected(no_such_path(target));
    Response response =
        problem(Error{Code::invalid, fmt::format("{} is not done to {}", word(method), shortened(target.path)),
                      fmt::format("{}", fmt::join(allowed, " or "))},
                405);
    response.headers.emplace_back("Allow", fmt::format("{}", fmt::join(allowed, ", ")));
    return std::unexpected(std::move(response));
}

Result<std::int64_t> number_of(const Call& call, std::string_view name, std::int64_t otherwise, Range range) {
    const std::string_view text = call.query(name);
    if (text.empty()) return otherwise;
    std::int64_t number = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
    if (read.ec != std::errc{} || read.ptr != text.data() + text.size() || number < range.least || number > range.most)
        return fail(Code::invalid, fmt::format("{} is not a number this takes", name),
                    fmt::format("{} to {}", range.least, range.most));
    return number;
}

}  // namespace bulkhead::shell
