// What is read through a connection, each piece held to its checksum.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "bulkhead/store/checksum.hpp"
#include "bulkhead/store/connection.hpp"

namespace bulkhead::store {

namespace {}  // namespace

Result<Position> Connection::position() {
    const Reading reading{select_position};
    const Result<bool> row = select_position.step("read the position of");
    if (!row) return std::unexpected(row.error());
    if (!*row)
        return fail(Code::corrupt, fmt::format("{} has lost its position", database.path()),
                    std::string{restore_newest});
    const Position position{select_position.integer(0), {select_position.integer(1)}, select_position.integer(2)};
    if (select_position.integer(3) != sum_of(position))
        return fail(Code::corrupt, fmt::format("the position in {} does not match its checksum", database.path()),
                    std::string{restore_newest});
    return position;
}

Result<std::vector<Leaf>> Connection::leaves(std::int64_t first, std::int64_t count) {
    const Reading reading{select_leaves};
    select_leaves.bind(1, first).bind(2, std::max<std::int64_t>(count, 0));
    std::vector<Leaf> found;
    for (std::int64_t expected = std::max<std::int64_t>(first, 0);; ++expected) {
        const Result<bool> row = select_leaves.step("read the log of");
        if (!row) return std::unexpected(row.error());
        if (!*row) return found;
        Leaf leaf{select_leaves.integer(0), std::string{select_leaves.bytes(1)}, std::string{select_leaves.bytes(2)}};
        const auto entry = hash_from(select_leaves.bytes(3));
        if (entry) leaf.entry = *entry;
        if (leaf.index != expected || !entry || select_leaves.integer(4) != sum_of(leaf))
            return fail(Code::corrupt,
                        fmt::format("leaf {} of the log in {} is damaged or missing", expected, database.path()),
                        std::string{restore_newest});
        found.push_back(std::move(leaf));
    }
}

Result<Leaf> Connection::leaf(std::int64_t index) {
    Result<std::vector<Leaf>> found = leaves(index, 1);
    if (!found) return std::unexpected(found.error());
    if (index < 0 || found->empty())
        return fail(Code::not_found, fmt::format("the log in {} has no leaf {}", database.path(), index),
                    "ask for an index below the size of the log");
    return std::move(found->front());
}

std::int64_t sum_of(const Position& position) {
    return Checksum{}.add(position.epoch).add(position.clock.ms).add(position.log_size).value();
}

std::int64_t sum_of(const Row& row) {
    const std::string_view table = words(row.table)[static_cast<std::size_t>(row.table)];
    return Checksum{}.add(table).add(row.key).add(row.body).value();
}

std::int64_t sum_of(const Leaf& leaf) {
    return Checksum{}.add(leaf.index).add(leaf.salt).add(leaf.payload).add(bytes_of(leaf.entry)).value();
}

std::int64_t sum_of_secret(std::string_view secret) { return Checksum{}.add(secret).value(); }

// SQLite words a page it could not read as damage. Only reading everything tells a failing disk from a damaged file.
Result<> can_be_read(const Database& database) {
    for (const int which : {SQLITE_FCNTL_FILE_POINTER, SQLITE_FCNTL_JOURNAL_POINTER}) {
        sqlite3_file* file = nullptr;
        sqlite3_file_control(database.raw(), "main", which, static_cast<void*>(&file));
        if (file == nullptr || file->pMethods == nullptr) continue;
        std::array<char, 65536> chunk;
        sqlite3_int64 size = 0;
        int code = file->pMethods->xFileSize(file, &size);
        for (sqlite3_int64 at = 0; code == SQLITE_OK && at < size; at += std::ssize(chunk))
            code = file->pMethods->xRead(file, chunk.data(),
                                         static_cast<int>(std::min<sqlite3_int64>(size - at, std::ssize(chunk))), at);
        if (code != SQLITE_OK && code != SQLITE_IOERR_SHORT_READ)
            return std::unexpected(error_of(code, sqlite3_errstr(code), "read", database.path()));
    }
    return {};
}

Result<> quick_check(const Database& database, std::string_view table) {
    const std::string sql =
        table.empty() ? std::string{"PRAGMA quick_check(1)"} : fmt::format("PRAGMA quick_check(\"{}\")", table);
    Result<Statement> pragma = database.prepare(sql, "check");
    if (!pragma) return std::unexpected(pragma.error());
    const Result<bool> row = pragma->step("check");
    if (!row) return std::unexpected(row.error());
    if (*row && pragma->bytes(0) == "ok") return {};
    if (auto readable = can_be_read(database); !readable) return readable;
    return fail(Code::corrupt, fmt::format("{} is damaged: {}", database.path(), *row ? pragma->bytes(0) : "no answer"),
                std::string{restore_newest});
}

}  // namespace bulkhead::store
