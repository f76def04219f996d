#include "bulkhead/shell/catalog.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

#include "bulkhead/codec/decode.hpp"
#include "bulkhead/codec/print.hpp"
#include "bulkhead/model/workload.hpp"

namespace bulkhead::shell {

namespace {

std::size_t at(ObjectKind kind) { return static_cast<std::size_t>(kind); }

// The text of the metadata map inside a stored object. Bodies are our own compact JSON, and only this part of them is
// worth reading here: the rest may be large, and is decoded by whoever wants it.
std::optional<std::string_view> metadata_in(std::string_view body) {
    constexpr std::string_view key = "\"metadata\":";
    const std::size_t found = body.find(key);
    if (found == body.npos) return std::nullopt;
    body.remove_prefix(found + key.size());
    int depth = 0;
    bool in_string = false;
    for (std::size_t i = 0; i < body.size(); ++i) {
        const char c = body[i];
        if (in_string) {
            if (c == '\\') ++i;
            if (c == '"') in_string = false;
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{') {
            ++depth;
        } else if (c == '}' && --depth == 0) {
            return body.substr(0, i + 1);
        }
    }
    return std::nullopt;
}

// The tenant of a workload or a lease: the first field of what follows the metadata, in our own compact JSON.
std::optional<std::string> tenant_in(std::string_view after_metadata) {
    constexpr std::string_view key = R"(,"spec":{"tenant":")";
    if (!after_metadata.starts_with(key)) return std::nullopt;
    after_metadata.remove_prefix(key.size());
    const std::string_view name = after_metadata.substr(0, after_metadata.find('"'));
    if (!is_valid(Format::name, name)) return std::nullopt;
    return std::string{name};
}

}  // namespace

std::string without_output(std::string_view workload) {
    if (workload.find("\"output\":\"") == workload.npos) return {};
    auto read = from_json<GpuWorkload>("a workload", std::string{workload}, own_text);
    if (!read || !read->status || read->status->output.empty()) return {};
    read->status->output.clear();
    return to_compact_json(*read);
}

std::optional<ObjectKind> kind_in(Table table) {
    switch (table) {
        case Table::policy:
            return ObjectKind::policy;
        case Table::tenant_class:
            return ObjectKind::tenant_class;
        case Table::tenant:
            return ObjectKind::tenant;
        case Table::workload:
            return ObjectKind::workload;
        case Table::node:
            return ObjectKind::node;
        case Table::lease:
            return ObjectKind::lease;
        default:
            return std::nullopt;
    }
}

Result<ObjectPtr> read_object(const Row& row) {
    const auto kind = kind_in(row.table);
    invariant(kind.has_value(), "only tables of objects are read as objects");
    const auto what = [&] {
        return fmt::format("row {} of {}", row.key, words(Table{})[static_cast<std::size_t>(row.table)]);
    };
    const auto text = metadata_in(row.body);
    if (!text) return fail(Code::corrupt, what() + " has no metadata", "restore the store from a backup");
    auto metadata = from_json<Metadata>(what, *text, own_text);
    if (!metadata) return fail(Code::corrupt, metadata.error().what, "restore the store from a backup");
    Object object{.kind = *kind,
                  .key = row.key,
                  .name = std::move(metadata->name),
                  .tenant = {},
                  .version = std::move(metadata->resourceVersion),
                  .labels = std::move(metadata->labels),
                  .body = row.body};
    if (*kind == ObjectKind::tenant) object.tenant = object.name;
    if (*kind == ObjectKind::workload || *kind == ObjectKind::lease) {
        const auto rest = static_cast<std::size_t>(text->data() + text->size() - row.body.data());
        const auto tenant = tenant_in(std::string_view{row.body}.substr(rest));
        if (!tenant) return fail(Code::corrupt, what() + " has no tenant", "restore the store from a backup");
        object.tenant = *tenant;
    }
    if (*kind == ObjectKind::workload) object.without_content = without_output(row.body);
    return std::make_shared<const Object>(std::move(object));
}

const Catalog::View& Catalog::view_of(std::string_view tenant) const {
    static const View empty;
    if (tenant.empty()) return everything_;
    const auto found = of_tenants_.find(tenant);
    return found == of_tenants_.end() ? empty : found->second;
}

void Catalog::note(View& view, ObjectPtr before, ObjectPtr after) const {
    const bool all = &view == &everything_;
    const std::size_t most = all ? limits_.changes : limits_.tenants_changes;
    const std::size_t most_bytes = all ? limits_.change_bytes : limits_.tenants_change_bytes;
    view.change_bytes += after ? after->body.size() : before->body.size();
    view.changes.push_back({++view.number, std::move(before), std::move(after)});
    while (view.changes.size() > most || (view.change_bytes > most_bytes && view.changes.size() > 1)) {
        view.change_bytes -= view.changes.front().object().body.size();
        view.changes.pop_front();
    }
}

void Catalog::put(const ObjectPtr& object) {
    const std::string place = object->place();
    const auto put_in = [&](View& view) {
        ObjectPtr& at_place = view.shelves[at(object->kind)][place];
        if (at_place && at_place->body == object->body) return false;
        note(view, std::exchange(at_place, object), object);
        return true;
    };
    if (!put_in(everything_)) return;
    keys_[at(object->kind)][object->key] = object;
    if (!object->tenant.empty()) put_in(of_tenants_[object->tenant]);
}

void Catalog::erase(ObjectKind kind, std::int64_t key) {
    const auto row = keys_[at(kind)].find(key);
    if (row == keys_[at(kind)].end()) return;
    const ObjectPtr object = row->second;
    keys_[at(kind)].erase(row);
    const auto erase_in = [&](View& view) {
        Shelf& shelf = view.shelves[at(kind)];
        const auto found = shelf.find(object->place());
        // The name may have been taken by a newer row in the meantime.
        if (found == shelf.end() || found->second->key != key) return;
        ObjectPtr before = std::move(found->second);
        shelf.erase(found);
        note(view, std::move(before), nullptr);
    };
    erase_in(everything_);
    if (!object->tenant.empty()) erase_in(of_tenants_[object->tenant]);
    // What the tenant was is not for whoever takes its name up.
    if (kind == ObjectKind::tenant) {
        View& view = of_tenants_[object->tenant];
        view.changes.clear();
        view.change_bytes = 0;
    }
}

Result<> Catalog::feed(std::span<const Row> rows) {
    struct Step {
        ObjectKind kind{};
        std::int64_t key = 0;
        ObjectPtr object;  // null: erased
    };
    std::vector<Step> steps;
    steps.reserve(rows.size());
    for (const Row& row : rows) {
        const auto kind = kind_in(row.table);
        if (!kind) continue;
        Step step{*kind, row.key, nullptr};
        if (!row.erased) {
            auto object = read_object(row);
            if (!object) return std::unexpected(object.error());
            step.object = *std::move(object);
        }
        steps.push_back(std::move(step));
    }
    if (steps.empty()) return {};
    std::uint64_t before = 0, after = 0;
    {
        const std::unique_lock lock{mutex_};
        before = everything_.number;
        for (const Step& step : steps) {
            if (step.object)
                put(step.object);
            else
                erase(step.kind, step.key);
        }
        after = everything_.number;
    }
    if (before != after) announce();
    return {};
}

Result<> Catalog::replace(std::span<const Row> rows) {
    std::array<std::unordered_map<std::int64_t, bool>, 6> present;
    for (const Row& row : rows)
        if (const auto kind = kind_in(row.table); kind && !keys_[at(*kind)].empty())
            present[at(*kind)][row.key] = !row.erased;
    std::vector<Row> gone;
    for (std::size_t kind = 0; kind < keys_.size(); ++kind)
        for (const auto& [key, object] : keys_[kind])  // only the feeding thread, which this is, changes them
            if (!present[kind].contains(key)) gone.push_back({static_cast<Table>(kind), key, {}, true});
    // Within one kind, tables and kinds have the same order, which kind_in holds to.
    if (auto erased = feed(gone); !erased) return erased;
    return feed(rows);
}

ObjectPtr Catalog::get(ObjectKind kind, std::string_view name, std::string_view tenant) const {
    const std::shared_lock lock{mutex_};
    const Shelf& shelf = view_of(tenant).shelves[at(kind)];
    const auto found = kind == ObjectKind::workload ? shelf.find(Object::place_of(name, tenant)) : shelf.find(name);
    return found == shelf.end() ? nullptr : found->second;
}

std::vector<ObjectPtr> Catalog::named(ObjectKind kind, std::string_view name) const {
    const std::shared_lock lock{mutex_};
    std::vector<ObjectPtr> out;
    const Shelf& shelf = everything_.shelves[at(kind)];
    for (auto it = shelf.lower_bound(name); it != shelf.end() && it->second->name == name; ++it)
        out.push_back(it->second);
    return out;
}

Catalog::Page Catalog::list(ObjectKind kind, const Query& query) const {
    const std::shared_lock lock{mutex_};
    const View& view = view_of(query.tenant);
    Page page{.number = view.number};
    const Shelf& shelf = view.shelves[at(kind)];
    for (auto it = query.after.empty() ? shelf.begin() : shelf.upper_bound(query.after); it != shelf.end(); ++it) {
        if (!query.selector.matches(it->second->labels)) continue;
        if (page.objects.size() == query.limit) {
            page.more = true;
            break;
        }
        page.objects.push_back(it->second);
    }
    return page;
}

Catalog::Page Catalog::everything() const {
    const std::shared_lock lock{mutex_};
    Page page{.number = everything_.number};
    for (const Shelf& shelf : everything_.shelves)
        for (const auto& [name, object] : shelf) page.objects.push_back(object);
    return page;
}

std::uint64_t Catalog::number(std::string_view tenant) const {
    const std::shared_lock lock{mutex_};
    return view_of(tenant).number;
}

std::size_t Catalog::count(ObjectKind kind) const {
    const std::shared_lock lock{mutex_};
    return everything_.shelves[at(kind)].size();
}

std::optional<std::vector<Change>> Catalog::changes_after(std::uint64_t number, std::size_t limit,
                                                          std::string_view tenant) const {
    const std::shared_lock lock{mutex_};
    const View& view = view_of(tenant);
    if (number > view.number) return std::nullopt;
    if (number == view.number) return std::vector<Change>{};
    if (view.changes.empty() || number + 1 < view.changes.front().number) return std::nullopt;
    const auto first = view.changes.begin() + static_cast<std::ptrdiff_t>(number + 1 - view.changes.front().number);
    const auto most = std::min<std::ptrdiff_t>(view.changes.end() - first, static_cast<std::ptrdiff_t>(limit));
    return std::vector<Change>{first, first + most};
}

std::string Catalog::print_point(std::uint64_t number) const { return fmt::format("{}-{}", lineage_, number); }

std::optional<std::uint64_t> Catalog::parse_point(std::string_view text) const {
    const std::string prefix = fmt::format("{}-", lineage_);
    if (!text.starts_with(prefix)) return std::nullopt;
    text.remove_prefix(prefix.size());
    std::uint64_t number = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
    if (read.ec != std::errc{} || read.ptr != text.data() + text.size()) return std::nullopt;
    return number;
}

std::uint64_t Catalog::listen(Listener listener) {
    const std::lock_guard lock{listeners_mutex_};
    listeners_.emplace(next_listener_, std::move(listener));
    return next_listener_++;
}

void Catalog::forget(std::uint64_t id) {
    const std::lock_guard lock{listeners_mutex_};
    listeners_.erase(id);
}

void Catalog::announce() {
    const std::lock_guard lock{listeners_mutex_};
    for (const auto& [id, listener] : listeners_) listener();
}

}  // namespace bulkhead::shell
