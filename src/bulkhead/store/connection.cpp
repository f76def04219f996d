#include "bulkhead/store/connection.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "bulkhead/store/files.hpp"
#include "bulkhead/store/migrations.hpp"

namespace bulkhead::store {

namespace {

// The database holds keys and tokens: it is its owner's alone. SQLite gives the files beside it the same mode.
void make_private_file(const std::string& path) {
    const int file = ::open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (file >= 0) ::close(file);  // else it exists, or SQLite is about to say why it cannot be made
}

Result<> configure(const Database& database, const Options& options, Access access) {
    sqlite3* raw = database.raw();
    sqlite3_busy_timeout(raw, static_cast<int>(options.busy.ms));
    sqlite3_db_config(raw, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    sqlite3_db_config(raw, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    sqlite3_db_config(raw, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
    sqlite3_db_config(raw, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
    return database.run(
        fmt::format("PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0; PRAGMA temp_store = MEMORY;"
                    "PRAGMA secure_delete = ON; PRAGMA synchronous = {}; PRAGMA wal_autocheckpoint = {};"
                    "PRAGMA journal_size_limit = 67108864; PRAGMA cache_size = -32768; PRAGMA query_only = {}",
                    options.sync == Sync::full ? "FULL" : "OFF", options.checkpoint_pages,
                    access == Access::write ? "OFF" : "ON")
            .c_str(),
        "configure");
}

Result<std::vector<std::string>> catalogue_of(const Database& database) {
    constexpr std::string_view doing = "read the schema of";
    Result<Statement> select = database.prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL", doing);
    if (!select) return std::unexpected(select.error());
    std::vector<std::string> statements;
    for (;;) {
        const Result<bool> row = select->step(doing);
        if (!row) return std::unexpected(row.error());
        if (!*row) break;
        statements.emplace_back(select->bytes(0));
    }
    std::ranges::sort(statements);
    return statements;
}

struct Identity {
    std::int64_t application = 0, version = 0;
    std::vector<std::string> schema;
    bool empty() const { return application == 0 && version == 0 && schema.empty(); }
};

Result<Identity> identify(const Database& database) {
    Identity identity;
    const auto application = database.integer("PRAGMA application_id", "read the header of");
    if (!application) return std::unexpected(application.error());
    const auto version = database.integer("PRAGMA user_version", "read the header of");
    if (!version) return std::unexpected(version.error());
    auto schema = catalogue_of(database);
    if (!schema) return std::unexpected(schema.error());
    return Identity{*application, *version, std::move(*schema)};
}

Result<> accept(const Identity& identity, const std::string& path) {
    const auto migrations = shipped_migrations();
    const std::int64_t newest = migrations.back().to;
    if (identity.application != application_id)
        return fail(Code::invalid,
                    fmt::format("{} is a database of another application (application_id {}, ours is {})", path,
                                identity.application, application_id),
                    "check the path; Bulkhead makes its own file and shares it with nobody");
    if (identity.version > newest)
        return fail(Code::invalid,
                    fmt::format("{} has schema version {}, and this program knows versions up to {}: a newer Bulkhead "
                                "has written it",
                                path, identity.version, newest),
                    "run the newer program, or restore a backup from before the upgrade");
    if (identity.version < 1 || identity.schema != schema_of(migrations, identity.version))
        return fail(Code::corrupt,
                    fmt::format("{} says schema version {}, but its tables are not those of that version", path,
                                identity.version),
                    std::string{restore_newest});
    return {};
}

Result<> prepare_new_file(const Database& database) {
    // Only an empty file takes them; both are in the header from then on.
    if (auto set = database.run("PRAGMA page_size = 4096; PRAGMA auto_vacuum = NONE", "configure"); !set) return set;
    return {};
}

Result<> write_ahead(const Database& database) {
    constexpr std::string_view doing = "turn on the write-ahead log of";
    Result<Statement> pragma = database.prepare("PRAGMA journal_mode = WAL", doing);
    if (!pragma) return std::unexpected(pragma.error());
    const Result<bool> row = pragma->step(doing);
    if (!row) return std::unexpected(row.error());
    if (!*row || pragma->bytes(0) != "wal")
        return fail(Code::unavailable, fmt::format("{} cannot use a write-ahead log here", database.path()),
                    "put the database on a local file system");
    return {};
}

// After a sync has failed, Linux counts the unwritten pages as clean: reading shows them, a later sync does not write
// them, and the next power cut takes them away, with everything that was built on top. So what the write-ahead log
// shows at open is written once more before anything is built on it.
Result<> write_the_log_anew(const Database& database) {
    constexpr std::string_view doing = "write anew the write-ahead log of";
    if (auto begun = database.run("BEGIN IMMEDIATE", doing); !begun) return begun;  // keeps other writers out
    sqlite3_file* log = nullptr;
    sqlite3_file_control(database.raw(), "main", SQLITE_FCNTL_JOURNAL_POINTER, static_cast<void*>(&log));
    int code = SQLITE_OK;
    if (log != nullptr && log->pMethods != nullptr) {
        std::array<char, 65536> chunk;
        sqlite3_int64 size = 0;
        code = log->pMethods->xFileSize(log, &size);
        for (sqlite3_int64 at = 0; code == SQLITE_OK && at < size;) {
            const int count = static_cast<int>(std::min<sqlite3_int64>(size - at, chunk.size()));
            code = log->pMethods->xRead(log, chunk.data(), count, at);
            if (code == SQLITE_OK) code = log->pMethods->xWrite(log, chunk.data(), count, at);
            at += count;
        }
        if (code == SQLITE_OK && size > 0) code = log->pMethods->xSync(log, SQLITE_SYNC_NORMAL);
    }
    const Result<> ended = database.run("ROLLBACK", doing);
    if (code != SQLITE_OK) return std::unexpected(error_of(code, sqlite3_errstr(code), doing, database.path()));
    return ended;
}

Result<std::string> new_secret(const Options& options) {
    if (!options.secret_if_new.empty()) {
        invariant(options.secret_if_new.size() == 32, "a secret has 32 bytes");
        return options.secret_if_new;
    }
    std::string secret(32, '\0');
    if (::getentropy(secret.data(), secret.size()) != 0)
        return fail(Code::unavailable, "the kernel gives no random bytes", "check getentropy(3)");
    return secret;
}

Result<> insert_first_rows(const Database& database, const Options& options) {
    constexpr std::string_view doing = "set up";
    const Result<std::string> secret = new_secret(options);
    if (!secret) return std::unexpected(secret.error());
    auto insert_secret = database.prepare("INSERT INTO secret(id, body, sum) VALUES(1, ?1, ?2)", doing);
    if (!insert_secret) return std::unexpected(insert_secret.error());
    if (auto done = insert_secret->bind(1, *secret).bind(2, sum_of_secret(*secret)).run(doing); !done) return done;
    auto insert_meta =
        database.prepare("INSERT INTO meta(id, epoch, clock, log_size, sum) VALUES(1, 0, 0, 0, ?1)", doing);
    if (!insert_meta) return std::unexpected(insert_meta.error());
    return insert_meta->bind(1, sum_of(Position{})).run(doing);
}

// True: the database was made just now.
Result<bool> make_and_migrate(const Database& database, const Options& options) {
    if (auto begun = database.run("BEGIN IMMEDIATE", "migrate"); !begun) return std::unexpected(begun.error());
    // Read again, now that no other process can be about to do the same.
    Result<Identity> identity = identify(database);
    Result<> done = identity ? Result<>{} : std::unexpected(identity.error());
    const bool fresh = identity && identity->empty();
    if (done) done = migrate(database, shipped_migrations());
    if (done && fresh) done = insert_first_rows(database, options);
    if (done) done = database.run("COMMIT", "migrate");
    if (!done) {
        database.roll_back();
        return std::unexpected(done.error());
    }
    return fresh;
}

Result<Database> open_file(const Options& options, Access access) {
    const bool create = access == Access::write && options.create;
    if (create && options.vfs.empty()) make_private_file(options.path);
    if (!create && !exists({options.path, options.vfs}))
        return fail(Code::not_found, fmt::format("there is no database at {}", options.path), "check the path");
    Database::How how{.flags = SQLITE_OPEN_READWRITE, .still = access == Access::still};
    if (how.still || (access == Access::read && options.read_only)) how.flags = SQLITE_OPEN_READONLY;
    if (create) how.flags |= SQLITE_OPEN_CREATE;
    return Database::open(options.path, options.vfs, how);
}

}  // namespace

Result<Connection> Connection::open(const Options& options, Access access) {
    Result<Database> opened = open_file(options, access);
    if (!opened) return std::unexpected(opened.error());
    Connection connection;
    connection.database = std::move(*opened);
    const Database& database = connection.database;
    if (auto done = configure(database, options, access); !done) return std::unexpected(done.error());

    Result<Identity> identity = identify(database);
    if (!identity) return std::unexpected(identity.error());
    const bool empty = identity->empty();
    if (empty && access != Access::write)
        return fail(Code::not_found, fmt::format("{} is an empty file, not a database", options.path),
                    "open it for writing once, or check the path");
    if (!empty)
        if (auto accepted = accept(*identity, options.path); !accepted) return std::unexpected(accepted.error());
    if (access == Access::write) {
        if (empty)
            if (auto done = prepare_new_file(database); !done) return std::unexpected(done.error());
        if (auto done = write_ahead(database); !done) return std::unexpected(done.error());
        if (auto done = write_the_log_anew(database); !done) return std::unexpected(done.error());
        if (empty || identity->version < shipped_migrations().back().to) {
            const Result<bool> fresh = make_and_migrate(database, options);
            if (!fresh) return std::unexpected(fresh.error());
            connection.fresh = *fresh;
        }
    } else if (identity->version < shipped_migrations().back().to && access == Access::read) {
        return fail(
            Code::unavailable,
            fmt::format("{} has schema version {}, which needs to be migrated", options.path, identity->version),
            "open it for writing once");
    }

    auto position = database.prepare("SELECT epoch, clock, log_size, sum FROM meta WHERE id = 1", "read");
    if (!position) return std::unexpected(position.error());
    auto leaves = database.prepare(
        "SELECT idx, salt, payload, entry, sum FROM leaf WHERE idx >= ?1 ORDER BY idx LIMIT ?2", "read");
    if (!leaves) return std::unexpected(leaves.error());
    connection.select_position = std::move(*position);
    connection.select_leaves = std::move(*leaves);
    return connection;
}

}  // namespace bulkhead::store
