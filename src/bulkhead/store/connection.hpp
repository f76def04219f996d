// One open connection to a database that is ours: configured, of a known version, and what every kind of reader asks of
// it. Store, Reader and Backup each stand on one. Private to this room.
#pragma once

#include <vector>

#include "bulkhead/store/sqlite.hpp"
#include "bulkhead/store/store.hpp"

namespace bulkhead::store {

// What helps when the file is damaged.
constexpr std::string_view restore_newest = "keep a copy of the damaged file, then restore the newest backup";

enum class Access : std::uint8_t {
    write,  // makes and migrates what is missing
    read,   // of a database that others may be writing
    still,  // of a finished file that nobody writes; leaves nothing beside it
};

struct Connection {
    Database database;
    Statement select_position, select_leaves;
    bool fresh = false;  // made just now

    static Result<Connection> open(const Options& options, Access access);

    Result<Position> position();
    Result<std::vector<Leaf>> leaves(std::int64_t first, std::int64_t count);
    Result<Leaf> leaf(std::int64_t index);
};

std::int64_t sum_of(const Position& position);
std::int64_t sum_of(const Row& row);
std::int64_t sum_of(const Leaf& leaf);
std::int64_t sum_of_secret(std::string_view secret);

// Structure only: nothing, or the first thing that is wrong. One table, or (empty) the whole file.
Result<> quick_check(const Database& database, std::string_view table = {});
Result<> can_be_read(const Database& database);
// Everything, with every checksum: what is wrong, in words.
Result<std::vector<std::string>> examine(Connection& connection);

}  // namespace bulkhead::store
