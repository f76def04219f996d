// A watch: the changes of a kind as server-sent events. Each carries the point to go on from; whoever has been away for
// longer than the catalog remembers is told so, and lists anew.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "bulkhead/shell/catalog.hpp"
#include "bulkhead/shell/http.hpp"

namespace bulkhead::shell {

struct WatchQuery {
    ObjectKind kind{};
    std::string name;         // empty: all of the kind
    std::string tenant;       // whose view; empty: of everything
    bool its_tenant = false;  // who watches may see what a tenant's commands print
    Selector selector;
    std::optional<std::uint64_t> after;  // nothing: every object first, then "synced", then changes
    std::function<bool()> allowed;       // asked before anything is told; empty: for ever
};

// The catalog outlives the feed.
std::shared_ptr<Feed> watch_feed(Catalog& catalog, WatchQuery query);

}  // namespace bulkhead::shell
