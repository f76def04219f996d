// What clients read: every object as it was last committed, and the recent changes that led there. Bodies are handed
// out as they are stored, shared and never copied. Any thread may read; one thread, the commit loop's, feeds.
//
// There is one view of everything, and one of each tenant's own. A tenant's view counts its own changes and remembers
// them for itself, so that nothing it is told, not even how far a watch has come, depends on anybody else.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "bulkhead/base/result.hpp"
#include "bulkhead/core/event.hpp"
#include "bulkhead/core/rows.hpp"
#include "bulkhead/shell/selector.hpp"

namespace bulkhead::shell {

// One version of one object.
struct Object {
    ObjectKind kind{};
    std::int64_t key = 0;  // of its row
    std::string name;
    std::string tenant;   // whose it is; empty: the operator's
    std::string version;  // metadata.resourceVersion: what ETag and If-Match speak of
    Labels labels;
    std::string body;  // compact JSON, as it was committed
    // What the operator reads instead, where the body holds what only its tenant may; empty: the body itself.
    std::string without_content = {};
    const std::string& read_by(bool its_tenant) const {
        return its_tenant || without_content.empty() ? body : without_content;
    }
    // By name; names of work are their tenant's, and those of one name come by tenant.
    std::string place() const { return kind == ObjectKind::workload ? place_of(name, tenant) : name; }
    static std::string place_of(std::string_view name, std::string_view tenant) {
        return std::string{name} + '\x01' + std::string{tenant};
    }
};
using ObjectPtr = std::shared_ptr<const Object>;

// A workload as somebody reads it who may not see what its command printed; empty: it printed nothing.
std::string without_output(std::string_view workload);

// The kind whose objects a table holds; nothing for tables that are nobody's to read.
std::optional<ObjectKind> kind_in(Table table);
// What the catalog needs to know of a stored body; `corrupt` when it is not an object.
Result<ObjectPtr> read_object(const Row& row);

struct Change {
    std::uint64_t number = 0;  // counts up by one
    ObjectPtr before, after;   // null: it was not there, it is gone
    const Object& object() const { return after ? *after : *before; }
};

class Catalog {
public:
    struct Limits {
        std::size_t changes = 16'384;          // how far a watch may fall behind
        std::size_t change_bytes = 64u << 20;  // of the bodies they hold on to
        std::size_t tenants_changes = 1024;    // of one tenant's view
        std::size_t tenants_change_bytes = 1u << 20;
    };
    // The lineage tells the numbers of one server's life from those of another.
    explicit Catalog(std::int64_t lineage) : Catalog{lineage, Limits{}} {}
    Catalog(std::int64_t lineage, Limits limits) : lineage_{lineage}, limits_{limits} {}

    // The rows of one durable batch, in order; rows of other tables are passed over.
    Result<> feed(std::span<const Row> rows);
    // All rows there are: after a start, or when the store was opened anew. What differs from before is a change.
    Result<> replace(std::span<const Row> rows);

    // In the view of one tenant; without one, of everything. Null: there is none.
    ObjectPtr get(ObjectKind kind, std::string_view name, std::string_view tenant = {}) const;
    // Of everything: several only of work, which tenants name as they like.
    std::vector<ObjectPtr> named(ObjectKind kind, std::string_view name) const;

    struct Query {
        Selector selector;
        std::size_t limit = 1000;
        std::string after;   // continue behind this place
        std::string tenant;  // whose view; empty: of everything
    };
    struct Page {
        std::vector<ObjectPtr> objects;  // by name
        std::uint64_t number = 0;        // the last change they include
        bool more = false;
    };
    Page list(ObjectKind kind, const Query& query) const;
    // All kinds at one moment, in the order people read them, each by name.
    Page everything() const;

    std::uint64_t number(std::string_view tenant = {}) const;  // of the last change
    std::size_t count(ObjectKind kind) const;

    // Changes after a number, oldest first, at most `limit`. Nothing: so far behind that they are forgotten; list anew.
    std::optional<std::vector<Change>> changes_after(std::uint64_t number, std::size_t limit = 512,
                                                     std::string_view tenant = {}) const;

    // "7-1234": the point of a watch, to go on from after a lost connection.
    std::string print_point(std::uint64_t number) const;
    // Nothing: not ours, or of a server's earlier life.
    std::optional<std::uint64_t> parse_point(std::string_view text) const;

    // Called after every feed that changed something, by the feeding thread: must not wait. After forget() returns, it
    // is not called any more.
    using Listener = std::function<void()>;
    std::uint64_t listen(Listener listener);
    void forget(std::uint64_t id);
    // Calls them although no object has changed: who may see the objects has.
    void wake() { announce(); }

private:
    using Shelf = std::map<std::string, ObjectPtr, std::less<>>;
    using Keys = std::unordered_map<std::int64_t, ObjectPtr>;  // what each row was last
    struct View {
        std::array<Shelf, 6> shelves;
        std::deque<Change> changes;
        std::size_t change_bytes = 0;
        std::uint64_t number = 0;
    };

    void put(const ObjectPtr& object);
    void erase(ObjectKind kind, std::int64_t key);
    void note(View& view, ObjectPtr before, ObjectPtr after) const;
    void announce();
    const View& view_of(std::string_view tenant) const;  // an empty one for whom nothing is known

    const std::int64_t lineage_;
    const Limits limits_;

    mutable std::shared_mutex mutex_;
    View everything_;
    std::map<std::string, View, std::less<>> of_tenants_;
    std::array<Keys, 6> keys_;

    std::mutex listeners_mutex_;
    std::map<std::uint64_t, Listener> listeners_;
    std::uint64_t next_listener_ = 1;
};

}  // namespace bulkhead::shell
