// The long look: every page, every checksum, every index of the log.
#include <fmt/format.h>

#include "bulkhead/store/connection.hpp"

namespace bulkhead::store {

namespace {

constexpr std::size_t complaints_max = 100;

class Examination {
public:
    explicit Examination(Connection& connection) : connection_(connection) {}

    Result<std::vector<std::string>> run() {
        if (auto begun = connection_.database.run("BEGIN", "check"); !begun) return std::unexpected(begun.error());
        Result<> done = structure();
        for (std::size_t i = 0; done && i < words(Table{}).size(); ++i) done = rows_of(static_cast<Table>(i));
        if (done) done = log();
        connection_.database.roll_back();
        if (done && !complaints_.empty()) done = can_be_read(connection_.database);
        if (!done) return std::unexpected(done.error());
        return std::move(complaints_);
    }

private:
    // Damage is a finding; a disk that cannot be read is an error.
    Result<> found_or_failed(const Error& error) {
        if (error.code != Code::corrupt) return std::unexpected(error);
        complain(error.what);
        return {};
    }
    void complain(std::string what) {
        if (complaints_.size() < complaints_max) complaints_.push_back(std::move(what));
    }

    template <class Visit>
    Result<> each(std::string_view sql, Visit visit) {
        Result<Statement> rows = connection_.database.prepare(sql, "check");
        if (!rows) return found_or_failed(rows.error());
        for (;;) {
            const Result<bool> row = rows->step("check");
            if (!row) return found_or_failed(row.error());
            if (!*row) return {};
            visit(*rows);
        }
    }

    Result<> structure() {
        return each("PRAGMA integrity_check", [&](const Statement& row) {
            if (row.bytes(0) != "ok") complain(std::string{row.bytes(0)});
        });
    }

    Result<> rows_of(Table table) {
        const std::string_view name = words(table)[static_cast<std::size_t>(table)];
        return each(fmt::format(R"(SELECT key, body, sum FROM "{}" ORDER BY key)", name), [&](const Statement& row) {
            const Row read{table, row.integer(0), std::string{row.bytes(1)}};
            if (row.integer(2) != sum_of(read))
                complain(fmt::format("row {} of table {} does not match its checksum", read.key, name));
        });
    }

    Result<> log() {
        const Result<Position> position = connection_.position();
        if (!position) return found_or_failed(position.error());
        std::int64_t expected = 0;
        const Result<> read =
            each("SELECT idx, salt, payload, entry, sum FROM leaf ORDER BY idx", [&](const Statement& row) {
                Leaf leaf{row.integer(0), std::string{row.bytes(1)}, std::string{row.bytes(2)}};
                const auto entry = hash_from(row.bytes(3));
                if (entry) leaf.entry = *entry;
                if (leaf.index != expected) complain(fmt::format("the log jumps from {} to {}", expected, leaf.index));
                if (!entry || row.integer(4) != sum_of(leaf))
                    complain(fmt::format("leaf {} does not match its checksum", leaf.index));
                expected = leaf.index + 1;
            });
        if (read && expected != position->log_size)
            complain(fmt::format("the log ends at {}, and should have {} leaves", expected, position->log_size));
        return read;
    }

    Connection& connection_;
    std::vector<std::string> complaints_;
};

}  // namespace

Result<std::vector<std::string>> examine(Connection& connection) { return Examination{connection}.run(); }

}  // namespace bulkhead::store
