#include "bulkhead/shell/log.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "bulkhead/base/quantity.hpp"

namespace bulkhead::shell {

namespace {

constexpr std::string_view level_words[] = {"info", "warning", "error"};

bool stands_alone(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view{"-_./:+@,"}.find(c) != std::string_view::npos;
}

void append_value(std::string& out, std::string_view value) {
    constexpr std::size_t most = 2000;  // a line stays a line
    value = value.substr(0, most);
    if (!value.empty() && std::ranges::all_of(value, stands_alone)) {
        out += value;
        return;
    }
    out += '"';
    for (const char c : value) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\')
            (out += '\\') += c;
        else if (c == '\n')
            out += "\\n";
        else if (byte < 0x20 || byte == 0x7f)
            out += fmt::format("\\x{:02x}", byte);
        else
            out += c;
    }
    out += '"';
}

}  // namespace

std::string Log::line(Level level, std::string_view event, std::initializer_list<LogField> fields) {
    std::string out = fmt::format("level={} event=", level_words[static_cast<std::size_t>(level)]);
    append_value(out, event);
    for (const LogField& field : fields) {
        out += fmt::format(" {}=", field.name);
        if (const auto* number = std::get_if<std::int64_t>(&field.value))
            out += std::to_string(*number);
        else
            append_value(out, std::get<std::string_view>(field.value));
    }
    return out;
}

void Log::write(Level level, std::string_view event, std::initializer_list<LogField> fields) {
    if (fd_ < 0 || level < least_) return;
    using namespace std::chrono;
    const Instant now{duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count()};
    const std::string text = fmt::format("at={} {}\n", print(now), line(level, event, fields));
    const std::lock_guard lock{mutex_};
    // A log that cannot be written must not stop the server, and there is nobody left to tell.
    [[maybe_unused]] const auto written = ::write(fd_, text.data(), text.size());
}

}  // namespace bulkhead::shell
