#include "bulkhead/store/store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "bulkhead/store/backup.hpp"
#include "bulkhead/store/connection.hpp"

namespace bulkhead::store {

namespace {

constexpr auto table_words = words(Table{});
constexpr std::string_view committing = "commit to";

}  // namespace

struct Store::State {
    Options options;
    mutable Connection connection;
    std::string secret;
    bool checked_whole = false;
    bool must_be_reopened = false;
    Statement begin, commit, update_meta, insert_leaf;
    std::array<Statement, table_words.size()> put, erase, select;

    Result<> prepare();
    Result<> read_secret();
    Result<> check_at_open();
    Result<> check_log_size();
    Result<> usable() const;
    template <class Work>
    Result<> transaction(Work work);
    Result<> apply(const Batch& batch, Position& position);
    Result<> apply(const Row& row);
    Result<> append(const Leaf& leaf, Position& position);
    Result<> write(const Position& position);
    Result<> read_table(Table table, const std::function<Result<>(Row&&)>& visit);
};

Result<> Store::State::prepare() {
    Result<> outcome;
    const auto make = [&](std::string_view sql) {
        Result<Statement> statement = connection.database.prepare(sql, "open");
        if (statement) return std::move(*statement);
        outcome = std::unexpected(statement.error());
        return Statement{};
    };
    begin = make("BEGIN IMMEDIATE");
    commit = make("COMMIT");
    update_meta = make("UPDATE meta SET epoch = ?1, clock = ?2, log_size = ?3, sum = ?4 WHERE id = 1");
    insert_leaf = make("INSERT INTO leaf(idx, salt, payload, entry, sum) VALUES(?1, ?2, ?3, ?4, ?5)");
    for (std::size_t i = 0; i < table_words.size(); ++i) {
        put[i] = make(fmt::format(R"(REPLACE INTO "{}"(key, body, sum) VALUES(?1, ?2, ?3))", table_words[i]));
        erase[i] = make(fmt::format(R"(DELETE FROM "{}" WHERE key = ?1)", table_words[i]));
        select[i] = make(fmt::format(R"(SELECT key, body, sum FROM "{}" ORDER BY key)", table_words[i]));
    }
    return outcome;
}

Result<> Store::State::read_secret() {
    Result<Statement> found = connection.database.prepare("SELECT body, sum FROM secret WHERE id = 1", "read");
    if (!found) return std::unexpected(found.error());
    const Result<bool> row = found->step("read");
    if (!row) return std::unexpected(row.error());
    if (!*row || found->integer(1) != sum_of_secret(found->bytes(0)))
        return fail(Code::corrupt, fmt::format("the secret in {} is damaged or missing", options.path),
                    std::string{restore_newest});
    secret = found->bytes(0);
    return {};
}

// The size of the log is kept beside it; the two must agree before anything is appended.
Result<> Store::State::check_log_size() {
    const Result<Position> position = connection.position();
    if (!position) return std::unexpected(position.error());
    const auto last = connection.database.integer("SELECT ifnull(max(idx), -1) FROM leaf", "read");
    if (!last) return std::unexpected(last.error());
    if (*last + 1 == position->log_size) return {};
    return fail(Code::corrupt,
                fmt::format("the log in {} ends at leaf {}, and should have {} leaves", options.path, *last,
                            position->log_size),
                std::string{restore_newest});
}

// The log grows without end and is proven by its own hashes; rows are few, and decided on.
Result<> Store::State::check_at_open() {
    const Database& database = connection.database;
    const auto pages = database.integer("PRAGMA page_count", "measure");
    if (!pages) return std::unexpected(pages.error());
    const auto page_size = database.integer("PRAGMA page_size", "measure");
    if (!page_size) return std::unexpected(page_size.error());
    checked_whole = *pages * *page_size <= options.check_whole_up_to.bytes;
    if (checked_whole) return quick_check(database);
    for (const std::string_view table : table_words)
        if (auto sound = quick_check(database, table); !sound) return sound;
    return quick_check(database, "meta");
}

Result<> Store::State::usable() const {
    if (!must_be_reopened) return {};
    return fail(Code::unavailable,
                fmt::format("{} failed in the middle of a commit, and may or may not hold it", options.path),
                "open the store again; what it then shows is what was kept");
}

// Work inside one transaction that is committed if it succeeds. What cannot be undone with certainty closes the door.
template <class Work>
Result<> Store::State::transaction(Work work) {
    if (auto ready = usable(); !ready) return ready;
    if (options.read_only)
        return fail(Code::unavailable, fmt::format("{} was opened to be read only", options.path),
                    "open it for writing");
    Result<> done = begin.run(committing);
    if (done) done = work();
    if (done) done = commit.run(committing);
    if (done) return done;
    connection.database.roll_back();  // SQLite has done so by itself after some failures
    const Code code = done.error().code;
    if (connection.database.in_transaction() || code == Code::unavailable || code == Code::corrupt)
        must_be_reopened = true;
    return done;
}

Result<> Store::State::apply(const Row& row) {
    const auto table = static_cast<std::size_t>(row.table);
    invariant(table < table_words.size(), "a row belongs to a table");
    if (row.erased) return erase[table].bind(1, row.key).run(committing);
    return put[table].bind(1, row.key).bind(2, row.body).bind(3, sum_of(row)).run(committing);
}

Result<> Store::State::append(const Leaf& leaf, Position& position) {
    if (leaf.index != position.log_size)
        return fail(Code::conflict,
                    fmt::format("leaf {} does not continue the log in {}, which has {} leaves", leaf.index,
                                options.path, position.log_size),
                    "load the state anew: another control plane may have written here");
    ++position.log_size;
    return insert_leaf.bind(1, leaf.index)
        .bind(2, leaf.salt)
        .bind(3, leaf.payload)
        .bind(4, bytes_of(leaf.entry))
        .bind(5, sum_of(leaf))
        .run(committing);
}

Result<> Store::State::apply(const Batch& batch, Position& position) {
    if (batch.epoch != position.epoch)
        return fail(Code::conflict,
                    fmt::format("epoch {} may not commit to {}: epoch {} has taken over", batch.epoch, options.path,
                                position.epoch),
                    "stop this control plane: another one has been started on the same database");
    if (batch.clock < position.clock)
        return fail(Code::conflict,
                    fmt::format("the clock would run back from {} to {} in {}", print(position.clock),
                                print(batch.clock), options.path),
                    "give the core a time that is not before the last commit");
    position.clock = batch.clock;
    for (const Row& row : batch.rows)
        if (auto done = apply(row); !done) return done;
    for (const Leaf& leaf : batch.leaves)
        if (auto done = append(leaf, position); !done) return done;
    return {};
}

Result<> Store::State::write(const Position& position) {
    return update_meta.bind(1, position.epoch)
        .bind(2, position.clock.ms)
        .bind(3, position.log_size)
        .bind(4, sum_of(position))
        .run(committing);
}

Result<> Store::State::read_table(Table table, const std::function<Result<>(Row&&)>& visit) {
    Statement& rows = select[static_cast<std::size_t>(table)];
    const Reading reading{rows};
    for (;;) {
        const Result<bool> there = rows.step("load");
        if (!there) return std::unexpected(there.error());
        if (!*there) return {};
        Row row{table, rows.integer(0), std::string{rows.bytes(1)}};
        if (rows.integer(2) != sum_of(row))
            return fail(Code::corrupt,
                        fmt::format("row {} of table {} in {} does not match its checksum", row.key,
                                    table_words[static_cast<std::size_t>(table)], options.path),
                        std::string{restore_newest});
        if (auto done = visit(std::move(row)); !done) return done;
    }
}

Result<Store> Store::open(Options options) {
    auto state = std::make_unique<State>();
    state->options = std::move(options);
    auto connection = Connection::open(state->options, state->options.read_only ? Access::read : Access::write);
    if (!connection) return std::unexpected(connection.error());
    state->connection = std::move(*connection);
    if (state->connection.fresh)
        state->checked_whole = true;
    else if (auto sound = state->check_at_open(); !sound)
        return std::unexpected(sound.error());
    if (auto ready = state->prepare(); !ready) return std::unexpected(ready.error());
    if (auto ready = state->read_secret(); !ready) return std::unexpected(ready.error());
    if (auto agreed = state->check_log_size(); !agreed) return std::unexpected(agreed.error());
    return Store{std::move(state)};
}

Store::Store(std::unique_ptr<State> state) : state_(std::move(state)) {}
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;
Store::~Store() = default;

Result<std::int64_t> Store::raise_epoch(std::int64_t at_least) {
    std::int64_t raised = 0;
    const Result<> done = state_->transaction([&]() -> Result<> {
        Result<Position> position = state_->connection.position();
        if (!position) return std::unexpected(position.error());
        position->epoch = std::max(position->epoch, at_least);
        if (position->epoch >= std::numeric_limits<std::int32_t>::max())  // keys carry it in their upper half
            return fail(Code::invalid, fmt::format("there is no epoch above {}", position->epoch),
                        "find out who reported such an epoch");
        raised = ++position->epoch;
        return state_->write(*position);
    });
    if (!done) return std::unexpected(done.error());
    return raised;
}

Result<Position> Store::position() const {
    if (auto ready = state_->usable(); !ready) return std::unexpected(ready.error());
    return state_->connection.position();
}

Result<> Store::still_newest(std::int64_t epoch) const {
    const Result<Position> found = position();
    if (!found) return std::unexpected(found.error());
    if (found->epoch <= epoch) return {};
    return fail(Code::conflict, fmt::format("epoch {} has taken over from epoch {}", found->epoch, epoch),
                "stop: another control plane leads");
}

const std::string& Store::secret() const { return state_->secret; }

Result<Position> Store::load(const std::function<Result<>(Row&&)>& visit) const {
    if (auto ready = state_->usable(); !ready) return std::unexpected(ready.error());
    const Database& database = state_->connection.database;
    // One read transaction: rows and position are of the same moment.
    if (auto begun = database.run("BEGIN", "load"); !begun) return std::unexpected(begun.error());
    Result<Position> position = state_->connection.position();
    for (std::size_t i = 0; position && i < table_words.size(); ++i)
        if (auto done = state_->read_table(static_cast<Table>(i), visit); !done)
            position = std::unexpected(done.error());
    const Result<> ended = database.run("ROLLBACK", "load");
    if (position && !ended) return std::unexpected(ended.error());
    return position;
}

Result<> Store::commit(std::span<const Batch> batches) {
    return state_->transaction([&]() -> Result<> {
        Result<Position> position = state_->connection.position();
        if (!position) return std::unexpected(position.error());
        for (const Batch& batch : batches)
            if (auto done = state_->apply(batch, *position); !done) return done;
        return state_->write(*position);
    });
}

Result<> Store::import_lost_leaves(std::int64_t first, std::span<const Hash> entries) {
    return state_->transaction([&]() -> Result<> {
        Result<Position> position = state_->connection.position();
        if (!position) return std::unexpected(position.error());
        Leaf leaf{.index = first};
        for (const Hash& entry : entries) {
            leaf.entry = entry;
            if (auto done = state_->append(leaf, *position); !done) return done;
            ++leaf.index;
        }
        return state_->write(*position);
    });
}

Result<std::vector<Leaf>> Store::leaves(std::int64_t first, std::int64_t count) const {
    if (auto ready = state_->usable(); !ready) return std::unexpected(ready.error());
    return state_->connection.leaves(first, count);
}

Result<Leaf> Store::leaf(std::int64_t index) const {
    if (auto ready = state_->usable(); !ready) return std::unexpected(ready.error());
    return state_->connection.leaf(index);
}

Result<std::vector<std::string>> Store::check() const {
    if (auto ready = state_->usable(); !ready) return std::unexpected(ready.error());
    return examine(state_->connection);
}

Result<Position> Store::backup(const std::string& path) const {
    if (auto ready = state_->usable(); !ready) return std::unexpected(ready.error());
    Result<Backup> backup = Backup::start(state_->options, path);
    if (!backup) return std::unexpected(backup.error());
    return backup->finish();
}

bool Store::checked_whole() const { return state_->checked_whole; }
const Options& Store::options() const { return state_->options; }
bool Store::must_be_reopened() const { return state_->must_be_reopened; }

Result<> Store::checkpoint() {
    if (auto ready = state_->usable(); !ready) return ready;
    sqlite3* raw = state_->connection.database.raw();
    const int code = sqlite3_wal_checkpoint_v2(raw, "main", SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
    // A reader in the way only means that some of it is left for the next time.
    if (code != SQLITE_OK && code != SQLITE_BUSY)
        return std::unexpected(state_->connection.database.last_error("checkpoint"));
    return {};
}

}  // namespace bulkhead::store
