// SQLite's C interface with owners, and with its failures in our words. Private to this room.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "bulkhead/base/result.hpp"

namespace bulkhead::store {

// What a result code of SQLite means to us, while `doing` something ("commit to") with the file at `path`.
Error error_of(int code, std::string_view detail, std::string_view doing, std::string_view path);

// A prepared statement. Bind, then step; it is reset by `run`, or by `reset` when rows were left unread. What is bound
// is not copied: it must live until the statement has run.
class Statement {
public:
    Statement() = default;
    Statement(sqlite3_stmt* raw, const std::string* path) : raw_(raw), path_(path) {}
    explicit operator bool() const { return raw_ != nullptr; }

    Statement& bind(int place, std::int64_t value);
    Statement& bind(int place, std::string_view bytes);
    Result<bool> step(std::string_view doing);  // true: there is a row to read
    Result<> run(std::string_view doing);       // for statements without rows
    void reset();

    std::int64_t integer(int column) const { return sqlite3_column_int64(raw_.get(), column); }
    std::string_view bytes(int column) const;  // until the next step or reset

private:
    struct Finalize {
        void operator()(sqlite3_stmt* raw) const noexcept { sqlite3_finalize(raw); }
    };
    std::unique_ptr<sqlite3_stmt, Finalize> raw_;
    const std::string* path_ = nullptr;
    int bind_failure_ = SQLITE_OK;
};

// Resets a statement that rows are read from, whichever way the reader leaves.
class Reading {
public:
    explicit Reading(Statement& statement) : statement_(statement) {}
    ~Reading() { statement_.reset(); }
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;

private:
    Statement& statement_;
};

class Database {
public:
    // Flags as of sqlite3_open_v2. `still` opens a file that nobody writes, leaving nothing beside it.
    struct How {
        int flags = SQLITE_OPEN_READWRITE;
        bool still = false;
    };
    static Result<Database> open(const std::string& path, const std::string& vfs, How how);

    Result<> run(const char* sql, std::string_view doing) const;
    Result<Statement> prepare(std::string_view sql, std::string_view doing) const;
    Result<std::int64_t> integer(const char* sql, std::string_view doing) const;  // of the first row
    void roll_back() const;  // if there is a transaction; `in_transaction` then says whether it worked
    Error last_error(std::string_view doing) const;
    bool in_transaction() const { return sqlite3_get_autocommit(raw_.get()) == 0; }
    sqlite3* raw() const { return raw_.get(); }
    const std::string& path() const { return *path_; }

private:
    struct Close {
        void operator()(sqlite3* raw) const noexcept { sqlite3_close_v2(raw); }
    };
    std::unique_ptr<std::string> path_;  // statements point to it, whatever moves
    std::unique_ptr<sqlite3, Close> raw_;
};

}  // namespace bulkhead::store
