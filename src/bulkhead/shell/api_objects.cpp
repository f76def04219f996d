// The six kinds: list, watch, read, write, delete.
#include <fmt/core.h>

#include <charconv>

#include "bulkhead/base/hash.hpp"
#include "bulkhead/codec/decode.hpp"
#include "bulkhead/codec/print.hpp"
#include "bulkhead/shell/api.hpp"
#include "bulkhead/shell/body.hpp"
#include "bulkhead/shell/etag.hpp"
#include "bulkhead/shell/watch.hpp"

namespace bulkhead::shell {

namespace {

constexpr std::size_t most_of_a_page = 1000, most_of_a_question = 5000;

Result<std::size_t> limit_of(const Call& call, std::size_t most) {
    const std::string_view text = call.query("limit");
    if (text.empty()) return most;
    std::size_t limit = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), limit);
    if (read.ec != std::errc{} || read.ptr != text.data() + text.size() || limit < 1 || limit > most)
        return fail(Code::invalid, "limit is not a number this takes", fmt::format("1 to {}", most));
    return limit;
}

std::string list_body(const Catalog& catalog, const Catalog::Page& page, bool its_tenant) {
    std::string body = fmt::format(R"({{"apiVersion":"{}","kind":"List","metadata":{{"resourceVersion":"{}")",
                                   api_version, catalog.print_point(page.number));
    if (page.more) body += fmt::format(R"(,"continue":"{}")", to_hex(page.objects.back()->place()));
    body += R"(},"items":[)";
    std::size_t bytes = body.size();
    for (const ObjectPtr& object : page.objects) bytes += object->read_by(its_tenant).size() + 1;
    body.reserve(bytes + 2);
    bool first = true;
    for (const ObjectPtr& object : page.objects) {
        if (!std::exchange(first, false)) body += ',';
        body += object->read_by(its_tenant);
    }
    body += "]}";
    return body;
}

ObjectKind kind_of_path(const Call& call) { return kind_by_plural(call.path("kind"))->kind; }

bool has_a_tenant(ObjectKind kind) {
    return kind == ObjectKind::tenant || kind == ObjectKind::workload || kind == ObjectKind::lease;
}
// Tenants read what is theirs; the rest is for those who see the fleet.
Permission to_read(ObjectKind kind) { return has_a_tenant(kind) ? Permission::read_tenant : Permission::read_fleet; }

std::string tenant_of(const AnyObject& object) {
    const GpuWorkload* workload = std::get_if<GpuWorkload>(&object);
    return workload == nullptr ? std::string{} : workload->spec.tenant;
}

// Where a page ended: a name, and of work its tenant.
bool is_place(std::string_view text) {
    const std::size_t tenant = text.find('\x01');
    return is_valid(Format::name, text.substr(0, tenant)) &&
           (tenant == text.npos || is_valid(Format::name, text.substr(tenant + 1)));
}

}  // namespace

Result<bool> truth_of(const Call& call, std::string_view name) {
    const std::string_view text = call.query(name);
    if (text.empty() || text == "false") return false;
    if (text == "true") return true;
    return fail(Code::invalid, fmt::format("{} is neither true nor false", name), fmt::format("{}=true", name));
}

void Api::list(const Call& call, const Respond& respond) {
    const ObjectKind kind = kind_of_path(call);
    const auto watching = truth_of(call, "watch");
    if (!watching) return respond(problem(watching.error()));
    if (*watching) return watch(call, kind, {}, respond);
    if (!call.query("resourceVersion").empty())
        return respond(problem(Error{Code::invalid, "resourceVersion goes with watch=true", "leave it out"}));
    auto tenant = whose(call, to_read(kind));
    if (!tenant) return respond(problem(tenant.error()));
    Catalog::Query query{.tenant = *std::move(tenant)};
    auto selector = Selector::parse(call.query("labelSelector"));
    if (!selector) return respond(problem(selector.error()));
    query.selector = *std::move(selector);
    const auto limit = limit_of(call, most_of_a_page);
    if (!limit) return respond(problem(limit.error()));
    query.limit = *limit;
    if (const std::string_view token = call.query("continue"); !token.empty()) {
        auto after = from_hex(token);
        if (!after || !is_place(*after))
            return respond(
                problem(Error{Code::invalid, "continue is not what a page ended with", "begin anew without it"}));
        query.after = *std::move(after);
    }
    const bool content = reads_content(call, query.tenant);
    respond({.body = list_body(parts_.catalog, parts_.catalog.list(kind, query), content)});
}

void Api::get(const Call& call, const Respond& respond) {
    const ObjectKind kind = kind_of_path(call);
    const std::string& name = call.path("name");
    const auto watching = truth_of(call, "watch");
    if (!watching) return respond(problem(watching.error()));
    if (*watching) return watch(call, kind, name, respond);
    const auto found = readable(call, kind, name, to_read(kind));
    if (!found) return respond(problem(found.error()));
    const ObjectPtr& object = *found;
    const std::string tag = tag_of(object->version);
    if (names_version(call.request.head.if_none_match, object->version))
        return respond({.status = 304, .headers = {{"ETag", tag}}});
    respond({.headers = {{"ETag", tag}}, .shared = {object, &object->read_by(reads_content(call, object->tenant))}});
}

void Api::watch(const Call& call, ObjectKind kind, std::string name, const Respond& respond) {
    if (call.caller.breaks_glass())
        return respond(problem(Error{Code::denied, "nobody watches through broken glass: each look is on record",
                                     "ask again whenever you want to see"}));
    auto tenant = whose(call, to_read(kind));
    if (!tenant) return respond(problem(tenant.error()));
    WatchQuery query{.kind = kind, .name = std::move(name), .tenant = *std::move(tenant)};
    query.its_tenant = reads_content(call, query.tenant);
    auto selector = Selector::parse(call.query("labelSelector"));
    if (!selector) return respond(problem(selector.error()));
    query.selector = *std::move(selector);
    const std::string& resumed = call.request.head.last_event_id;
    const std::string_view point = resumed.empty() ? call.query("resourceVersion") : std::string_view{resumed};
    if (!point.empty()) {
        query.after = parts_.catalog.parse_point(point);
        if (!query.after || !parts_.catalog.changes_after(*query.after, 1, query.tenant))
            return respond(problem(
                Error{Code::not_found, "what changed since that point is forgotten", "list anew, and watch from there"},
                410));
    }
    query.allowed = [this, caller = call.caller] { return still(caller); };
    Response response{.content_type = "text/event-stream"};
    response.feed = watch_feed(parts_.catalog, std::move(query));
    respond(std::move(response));
}

// A name that was given back does not come back: what its tenant used would be billed to, and shown to, another.
Result<> Api::names_are_new(std::span<const AnyObject> objects) {
    for (const AnyObject& object : objects) {
        const Tenant* tenant = std::get_if<Tenant>(&object);
        if (tenant == nullptr || parts_.catalog.get(ObjectKind::tenant, tenant->metadata.name)) continue;
        if (parts_.usage.knows(tenant->metadata.name))
            return fail(Code::conflict,
                        fmt::format("a tenant that is gone was called {}, and its bills are", tenant->metadata.name),
                        "choose another name");
    }
    return {};
}

void Api::create(const Call& call, const Respond& respond) {
    const KindName& kind = *kind_by_plural(call.path("kind"));
    auto object = read_one_object(call.request, kind.type, {});
    if (!object) return respond(problem(object.error()));
    if (call.caller.rights.may(Permission::manage_fleet))
        if (const auto fresh = names_are_new({&*object, 1}); !fresh) return respond(problem(fresh.error()));
    std::string name = metadata_of(*object).name, tenant = tenant_of(*object);
    change(call, command::Apply{.objects = {*std::move(object)}, .mode = command::Mode::create}, kind.kind,
           std::move(name), respond, std::move(tenant));
}

void Api::replace(const Call& call, const Respond& respond) {
    const KindName& kind = *kind_by_plural(call.path("kind"));
    const std::string& name = call.path("name");
    auto object = read_one_object(call.request, kind.type, name);
    if (!object) return respond(problem(object.error()));
    const auto version = version_in(call.request.head.if_match);
    if (!version) return respond(problem(version.error()));
    if (call.request.head.if_match.empty() && metadata_of(*object).resourceVersion.empty())
        return respond(problem(Error{Code::conflict, "replacing needs the version that is replaced",
                                     "send If-Match with the ETag, or If-Match: * for whichever it is"},
                               428));
    std::string tenant = tenant_of(*object);
    change(call,
           command::Apply{.objects = {*std::move(object)}, .mode = command::Mode::replace, .if_version = *version},
           kind.kind, name, respond, std::move(tenant));
}

void Api::remove(const Call& call, const Respond& respond) {
    const ObjectKind kind = kind_of_path(call);
    const auto version = version_in(call.request.head.if_match);
    if (!version) return respond(problem(version.error()));
    if (kind == ObjectKind::tenant && call.caller.rights.may(Permission::manage_fleet)) {
        // They would open the doors of whoever takes the name up.
        const auto tokens = parts_.tokens.list();
        const auto good = std::ranges::find_if(tokens, [&](const auth::StoredToken& token) {
            return token.tenant == call.path("name") && parts_.tokens.in_force(token.id, now());
        });
        if (good != tokens.end())
            return respond(problem(
                Error{Code::conflict,
                      fmt::format("Tenant {} still has tokens in force, {} the first", call.path("name"), good->id),
                      fmt::format("take them back: bulkhead token revoke {}", good->id)}));
    }
    std::string tenant;
    if (kind == ObjectKind::workload) {
        auto named = whose(call, Permission::submit);
        if (!named) return respond(problem(named.error()));
        tenant = *std::move(named);
    }
    change(call, command::Delete{.kind = kind, .name = call.path("name"), .if_version = *version, .tenant = tenant},
           kind, call.path("name"), respond, tenant);
}

void Api::apply_all(const Call& call, bool dry_run, const Respond& respond) {
    auto objects = read_objects(call.request);
    if (!objects) return respond(problem(objects.error()));
    // Nobody is kept by a question from asking the next; what it costs has to end somewhere.
    if (dry_run && objects->size() > most_of_a_question)
        return respond(problem(Error{Code::invalid, fmt::format("a question about {} objects", objects->size()),
                                     fmt::format("ask about at most {} at once", most_of_a_question)}));
    if (call.caller.rights.may(Permission::manage_fleet))
        if (const auto fresh = names_are_new(*objects); !fresh) return respond(problem(fresh.error()));
    ask(call, command::Apply{.objects = *std::move(objects), .dry_run = dry_run}, respond);
}

void Api::apply(const Call& call, const Respond& respond) {
    const auto dry_run = truth_of(call, "dryRun");
    if (!dry_run) return respond(problem(dry_run.error()));
    apply_all(call, *dry_run, respond);
}

void Api::what_if(const Call& call, const Respond& respond) { apply_all(call, true, respond); }

void Api::snapshot(const Call& call, const Respond& respond) {
    Snapshot all;
    for (const ObjectPtr& object : parts_.catalog.everything().objects) {
        Result<> read;
        for_each_kind([&]<class T>() {
            if (name_of(object->kind).type != T::kind) return;
            auto value = from_json<T>(fmt::format("{} {}", T::kind, object->name), object->read_by(false), own_text);
            if (value)
                all.list<T>().push_back(*std::move(value));
            else
                read = std::unexpected(value.error());
        });
        if (!read) return respond(problem(Error{Code::corrupt, read.error().what, "restore the store from a backup"}));
    }
    const bool as_json = call.request.head.accept.starts_with("application/json");
    respond({.content_type = as_json ? "application/json" : "application/yaml",
             .body = as_json ? print_snapshot_json(all) : print_snapshot(all)});
}

}  // namespace bulkhead::shell
