// What the server says while it runs: one logfmt line per event on standard error, the moment first. A line is for
// whoever is awake at 3 a.m. and for grep; what must be provable is in the audit log, not here.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <mutex>
#include <string>
#include <string_view>
#include <variant>

namespace bulkhead::shell {

enum class Level : std::uint8_t { info, warning, error };

struct LogField {
    std::string_view name;
    std::variant<std::string_view, std::int64_t> value;
    LogField(std::string_view name_, std::string_view value_) : name{name_}, value{value_} {}
    LogField(std::string_view name_, const std::string& value_) : name{name_}, value{std::string_view{value_}} {}
    LogField(std::string_view name_, const char* value_) : name{name_}, value{std::string_view{value_}} {}
    LogField(std::string_view name_, std::int64_t value_) : name{name_}, value{value_} {}
};

class Log {
public:
    // Below `least`, nothing is written. fd: where to; -1: nowhere.
    explicit Log(int fd = 2, Level least = Level::info) : fd_{fd}, least_{least} {}

    void info(std::string_view event, std::initializer_list<LogField> fields = {}) {
        write(Level::info, event, fields);
    }
    void warning(std::string_view event, std::initializer_list<LogField> fields = {}) {
        write(Level::warning, event, fields);
    }
    void error(std::string_view event, std::initializer_list<LogField> fields = {}) {
        write(Level::error, event, fields);
    }

    // `level=info event="commit failed" what="disk is full"`: values are quoted where they need it, so that no value
    // can pass for a field or a line of its own.
    static std::string line(Level level, std::string_view event, std::initializer_list<LogField> fields);

private:
    void write(Level level, std::string_view event, std::initializer_list<LogField> fields);

    std::mutex mutex_;
    int fd_;
    Level least_;
};

}  // namespace bulkhead::shell
