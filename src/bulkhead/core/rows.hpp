// What the core keeps, as the store sees it: rows under integer keys in a few tables, and the leaves of the log. The
// store never looks inside a body; the core never knows how a row reaches the disk.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/base/hash.hpp"
#include "bulkhead/base/quantity.hpp"

namespace bulkhead {

// Written to disk as tables of these names: append, never rename or reorder.
enum class Table : std::uint8_t {
    policy,
    tenant_class,
    tenant,
    workload,
    node,
    lease,
    gate,
    key,
    usage,
    token,
    standing,
    fabric,
    history
};
constexpr auto words(Table) {
    return std::to_array<std::string_view>({"policy", "tenant_class", "tenant", "workload", "node", "lease", "gate",
                                            "signing_key", "usage", "token", "standing", "fabric", "history"});
}

struct Row {
    Table table{};
    std::int64_t key = 0;
    std::string body;
    bool erased = false;  // the row is gone; its body is empty
    friend bool operator==(const Row&, const Row&) = default;
};

// One entry of the log as the control plane holds it. Published is only the entry: SHA-256(salt, payload).
struct Leaf {
    std::int64_t index = 0;
    std::string salt;     // 16 random bytes
    std::string payload;  // the bytes that were committed to, never written anew; empty: lost with a restore
    Hash entry{};         // what the tree hashes as a leaf
    friend bool operator==(const Leaf&, const Leaf&) = default;
};

// One transaction: all of it, or none. Rows of the same table and key apply in order.
struct Batch {
    std::int64_t epoch = 0;  // of whoever commits; the store refuses any but the newest it has given out
    Instant clock;           // core time, which never decreases
    std::vector<Row> rows;
    std::vector<Leaf> leaves;  // continue the log: the first index is its size
};

}  // namespace bulkhead
