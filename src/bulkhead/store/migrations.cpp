#include "bulkhead/store/migrations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "bulkhead/core/rows.hpp"

namespace bulkhead::store {

namespace {

using std::string_view_literals::operator""sv;

constexpr std::array tables_1{"policy"sv, "tenant_class"sv, "tenant"sv, "workload"sv, "node"sv,    "lease"sv,
                              "gate"sv,   "signing_key"sv,  "usage"sv,  "token"sv,    "standing"sv};
constexpr std::array objects_1{
    "CREATE TABLE leaf(idx INTEGER PRIMARY KEY, salt BLOB NOT NULL, payload BLOB NOT NULL, entry BLOB NOT NULL, sum INTEGER NOT NULL) STRICT"sv,
    "CREATE TABLE meta(id INTEGER PRIMARY KEY CHECK(id = 1), epoch INTEGER NOT NULL, clock INTEGER NOT NULL, log_size INTEGER NOT NULL, sum INTEGER NOT NULL) STRICT"sv,
    "CREATE TABLE secret(id INTEGER PRIMARY KEY CHECK(id = 1), body BLOB NOT NULL, sum INTEGER NOT NULL) STRICT"sv,
};

constexpr std::array tables_2{"fabric"sv};
constexpr std::array tables_3{"history"sv};

constexpr std::array all{
    Migration{1, tables_1, objects_1, ""},
    Migration{2, tables_2, {}, ""},
    Migration{3, tables_3, {}, ""},
};

std::string table_statement(std::string_view table) {
    return fmt::format(R"(CREATE TABLE "{}"(key INTEGER PRIMARY KEY, body BLOB NOT NULL, sum INTEGER NOT NULL) STRICT)",
                       table);
}

constexpr bool every_table_is_made() {
    for (const std::string_view word : words(Table{})) {
        bool made = false;
        for (const Migration& migration : all)
            made = made || std::ranges::find(migration.tables, word) != migration.tables.end();
        if (!made) return false;
    }
    return true;
}
static_assert(every_table_is_made(),
              "core/rows.hpp names a table that no migration makes: add one at the end of `all`, and its golden file "
              "(version 1 may be edited until the first release; README.md says how its golden file is made anew)");
static_assert(std::ranges::is_sorted(all, {}, &Migration::to));

}  // namespace

std::span<const Migration> shipped_migrations() { return all; }

std::vector<std::string> schema_of(std::span<const Migration> migrations, std::int64_t version) {
    std::vector<std::string> statements;
    for (const Migration& migration : migrations) {
        if (migration.to > version) break;
        for (const std::string_view table : migration.tables) statements.push_back(table_statement(table));
        for (const std::string_view object : migration.objects) statements.emplace_back(object);
    }
    std::ranges::sort(statements);
    return statements;
}

Result<> migrate(const Database& database, std::span<const Migration> migrations) {
    invariant(database.in_transaction(), "a migration is whole or has not happened");
    const Result<std::int64_t> version = database.integer("PRAGMA user_version", "read the version of");
    if (!version) return std::unexpected(version.error());
    std::string script;
    for (const Migration& migration : migrations) {
        if (migration.to <= *version) continue;
        for (const std::string_view table : migration.tables) script += table_statement(table) + ";\n";
        for (const std::string_view object : migration.objects) script += fmt::format("{};\n", object);
        script += fmt::format("{};\nPRAGMA user_version = {};\n", migration.change, migration.to);
    }
    script += fmt::format("PRAGMA application_id = {};\n", application_id);
    return database.run(script.c_str(), "migrate");
}

}  // namespace bulkhead::store
