#include "bulkhead/shell/catalog.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

#include "bulkhead/codec/decode.hpp"
#include "bulkhead/model/meta.hpp"

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

}  // namespace

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
    return std::make_shared<const Object>(Object{*kind, row.key, std::move(metadata->name),
                                                 std::move(metadata->resourceVersion), std::move(metadata->labels),
                                                 row.body});
}

void Catalog::note(ObjectPtr before, ObjectPtr after) {
    change_bytes_ += after ? after->body.size() : before->body.size();
    changes_.push_back({++number_, std::move(before), std::move(after)});
    while (changes_.size() > limits_.changes || (change_bytes_ > limits_.change_bytes && changes_.size() > 1)) {
        change_bytes_ -= changes_.front().object().body.size();
        changes_.pop_front();
    }
}

void Catalog::put(ObjectPtr object) {
    Shelf& shelf = shelves_[at(object->kind)];
    ObjectPtr& place = shelf[object->name];
    if (place && place->body == object->body) return;
    keys_[at(object->kind)][object->key] = object;
    ObjectPtr before = std::exchange(place, object);
    note(std::move(before), std::move(object));
}

void Catalog::erase(ObjectKind kind, std::int64_t key) {
    const auto row = keys_[at(kind)].find(key);
    if (row == keys_[at(kind)].end()) return;
    const auto found = shelves_[at(kind)].find(row->second->name);
    keys_[at(kind)].erase(row);
    // The name may have been taken by a newer row in the meantime.
    if (found == shelves_[at(kind)].end() || found->second->key != key) return;
    ObjectPtr before = std::move(found->second);
    shelves_[at(kind)].erase(found);
    note(std::move(before), nullptr);
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
        before = number_;
        for (Step& step : steps) {
            if (step.object)
                put(std::move(step.object));
            else
                erase(step.kind, step.key);
        }
        after = number_;
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

ObjectPtr Catalog::get(ObjectKind kind, std::string_view name) const {
    const std::shared_lock lock{mutex_};
    const auto found = shelves_[at(kind)].find(name);
    return found == shelves_[at(kind)].end() ? nullptr : found->second;
}

Catalog::Page Catalog::list(ObjectKind kind, const Query& query) const {
    const std::shared_lock lock{mutex_};
    Page page{.number = number_};
    const Shelf& shelf = shelves_[at(kind)];
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
    Page page{.number = number_};
    for (const Shelf& shelf : shelves_)
        for (const auto& [name, object] : shelf) page.objects.push_back(object);
    return page;
}

std::uint64_t Catalog::number() const {
    const std::shared_lock lock{mutex_};
    return number_;
}

std::size_t Catalog::count(ObjectKind kind) const {
    const std::shared_lock lock{mutex_};
    return shelves_[at(kind)].size();
}

std::optional<std::vector<Change>> Catalog::changes_after(std::uint64_t number, std::size_t limit) const {
    const std::shared_lock lock{mutex_};
    if (number > number_) return std::nullopt;
    if (number == number_) return std::vector<Change>{};
    if (changes_.empty() || number + 1 < changes_.front().number) return std::nullopt;
    const auto first = changes_.begin() + static_cast<std::ptrdiff_t>(number + 1 - changes_.front().number);
    const auto most = std::min<std::ptrdiff_t>(changes_.end() - first, static_cast<std::ptrdiff_t>(limit));
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
