#include "bulkhead/store/sqlite.hpp"

#include <fmt/format.h>

namespace bulkhead::store {

namespace {

struct Meaning {
    int primary;
    Code code;
    std::string_view remedy;
};

// By primary result code. What is not listed can only come from a file that is not what the schema says.
constexpr Meaning meanings[] = {
    {SQLITE_FULL, Code::exhausted,
     "free some space on this file system; nothing was changed, and work goes on by itself"},
    {SQLITE_NOMEM, Code::exhausted, "give the process more memory; nothing was changed"},
    {SQLITE_READONLY, Code::unavailable, "make the file and its directory writable, then open the store again"},
    {SQLITE_IOERR, Code::unavailable, "look for disk errors in the kernel's log, then open the store again"},
    {SQLITE_CANTOPEN, Code::unavailable, "check that the directory exists, may be written, and has files to spare"},
    {SQLITE_PERM, Code::unavailable, "check the permissions of the file and its directory"},
    {SQLITE_CORRUPT, Code::corrupt, "keep a copy of the damaged file, then restore the newest backup"},
    {SQLITE_NOTADB, Code::corrupt, "check the path; if it is right, restore the newest backup"},
    {SQLITE_BUSY, Code::conflict, "another process is writing here: stop the other control plane, or try again"},
    {SQLITE_LOCKED, Code::conflict, "another process is writing here: stop the other control plane, or try again"},
    {SQLITE_PROTOCOL, Code::conflict, "another process is writing here: stop the other control plane, or try again"},
    {SQLITE_TOOBIG, Code::invalid, "no row or payload may be larger than a gigabyte"},
};
constexpr Meaning not_as_the_schema_says{0, Code::corrupt, "keep a copy of the file, then restore the newest backup"};

// A relative name that begins like a URI would be read as one.
std::string plain_name(const std::string& path) { return path.starts_with("file:") ? "./" + path : path; }

std::string still_uri(const std::string& path) {
    std::string uri = "file:";
    for (const char c : path) {
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '/' ||
                           c == '.' || c == '-' || c == '_';
        if (plain)
            uri += c;
        else
            uri += fmt::format("%{:02x}", static_cast<unsigned char>(c));
    }
    return uri + "?immutable=1";
}

}  // namespace

Error error_of(int code, std::string_view detail, std::string_view doing, std::string_view path) {
    invariant((code & 0xFF) != SQLITE_MISUSE, "SQLite is called as its manual says");
    const Meaning* meaning = &not_as_the_schema_says;
    for (const Meaning& known : meanings)
        if (known.primary == (code & 0xFF)) meaning = &known;
    return {meaning->code, fmt::format("cannot {} {}: {} (SQLite result {})", doing, path, detail, code),
            std::string{meaning->remedy}};
}

Statement& Statement::bind(int place, std::int64_t value) {
    if (const int code = sqlite3_bind_int64(raw_.get(), place, value); code != SQLITE_OK) bind_failure_ = code;
    return *this;
}

Statement& Statement::bind(int place, std::string_view bytes) {
    // A null pointer would bind NULL: an empty body is bytes all the same.
    const char* data = bytes.empty() ? "" : bytes.data();
    const int code = sqlite3_bind_blob64(raw_.get(), place, data, bytes.size(), SQLITE_STATIC);
    if (code != SQLITE_OK) bind_failure_ = code;
    return *this;
}

Result<bool> Statement::step(std::string_view doing) {
    const int code = bind_failure_ != SQLITE_OK ? bind_failure_ : sqlite3_step(raw_.get());
    if (code == SQLITE_ROW) return true;
    if (code == SQLITE_DONE) return false;
    sqlite3* database = sqlite3_db_handle(raw_.get());
    const std::string detail = bind_failure_ != SQLITE_OK ? sqlite3_errstr(code) : sqlite3_errmsg(database);
    return std::unexpected(error_of(code, detail, doing, *path_));
}

Result<> Statement::run(std::string_view doing) {
    const Result<bool> stepped = step(doing);
    reset();
    if (!stepped) return std::unexpected(stepped.error());
    return {};
}

void Statement::reset() {
    sqlite3_reset(raw_.get());  // repeats the failure of the last step, which was reported there
    bind_failure_ = SQLITE_OK;
}

std::string_view Statement::bytes(int column) const {
    const void* data = sqlite3_column_blob(raw_.get(), column);
    const int size = sqlite3_column_bytes(raw_.get(), column);
    return data == nullptr ? std::string_view{}
                           : std::string_view{static_cast<const char*>(data), static_cast<std::size_t>(size)};
}

Result<Database> Database::open(const std::string& path, const std::string& vfs, How how) {
    Database database;
    database.path_ = std::make_unique<std::string>(path);
    sqlite3* raw = nullptr;
    const std::string name = how.still ? still_uri(path) : plain_name(path);
    const int flags = how.flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE | (how.still ? SQLITE_OPEN_URI : 0);
    const int code = sqlite3_open_v2(name.c_str(), &raw, flags, vfs.empty() ? nullptr : vfs.c_str());
    database.raw_.reset(raw);  // there even when opening failed
    if (code != SQLITE_OK)
        return std::unexpected(
            error_of(code, raw == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(raw), "open", path));
    return database;
}

Result<> Database::run(const char* sql, std::string_view doing) const {
    if (sqlite3_exec(raw_.get(), sql, nullptr, nullptr, nullptr) != SQLITE_OK)
        return std::unexpected(last_error(doing));
    return {};
}

Result<Statement> Database::prepare(std::string_view sql, std::string_view doing) const {
    sqlite3_stmt* raw = nullptr;
    const int code = sqlite3_prepare_v3(raw_.get(), sql.data(), static_cast<int>(sql.size()), SQLITE_PREPARE_PERSISTENT,
                                        &raw, nullptr);
    if (code != SQLITE_OK) return std::unexpected(last_error(doing));
    return Statement{raw, path_.get()};
}

Result<std::int64_t> Database::integer(const char* sql, std::string_view doing) const {
    Result<Statement> statement = prepare(sql, doing);
    if (!statement) return std::unexpected(statement.error());
    const Result<bool> row = statement->step(doing);
    if (!row) return std::unexpected(row.error());
    return *row ? statement->integer(0) : 0;
}

void Database::roll_back() const {
    if (in_transaction()) sqlite3_exec(raw_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
}

Error Database::last_error(std::string_view doing) const {
    return error_of(sqlite3_extended_errcode(raw_.get()), sqlite3_errmsg(raw_.get()), doing, *path_);
}

}  // namespace bulkhead::store
