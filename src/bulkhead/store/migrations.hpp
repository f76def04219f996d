// The schema as data: numbered steps, forward only. A step that has been shipped is never edited; its golden file in
// testdata/store/ holds us to that.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/store/sqlite.hpp"

namespace bulkhead::store {

// Written into the header of the file, so that another application's database is never taken for ours: "BHsd".
inline constexpr std::int64_t application_id = 0x42487364;

struct Migration {
    std::int64_t to;                            // the version of the schema it leads to
    std::span<const std::string_view> tables;   // of rows, all of one shape
    std::span<const std::string_view> objects;  // other tables, as CREATE statements
    std::string_view change;                    // what is to be done with the data that is there; empty: nothing
};
std::span<const Migration> shipped_migrations();

// What SQLite's own catalogue says of a database of this version: every statement, sorted.
std::vector<std::string> schema_of(std::span<const Migration> migrations, std::int64_t version);
// Brings a database from the version it has to the last of these. To be called inside a transaction.
Result<> migrate(const Database& database, std::span<const Migration> migrations);

}  // namespace bulkhead::store
