#include "bulkhead/codec/json_writer.hpp"

#include <fmt/core.h>

#include <array>

namespace bulkhead {

namespace {

// Whole stretches at once: most text has nothing to escape.
void append_quoted(std::string& out, std::string_view text) {
    static constexpr auto plain_bytes = [] {
        std::array<bool, 256> plain{};
        for (std::size_t c = 0; c < plain.size(); ++c) plain[c] = c >= 0x20 && c != '"' && c != '\\';
        return plain;
    }();
    const auto is_plain = [](char c) { return plain_bytes[static_cast<unsigned char>(c)]; };
    out += '"';
    while (!text.empty()) {
        std::size_t plain = 0;
        while (plain < text.size() && is_plain(text[plain])) ++plain;
        out += text.substr(0, plain);
        if (plain == text.size()) break;
        switch (const char c = text[plain]) {
            case '"':
                out += "\\\"";
                break;
            case '\\':
                out += "\\\\";
                break;
            case '\n':
                out += "\\n";
                break;
            case '\r':
                out += "\\r";
                break;
            case '\t':
                out += "\\t";
                break;
            default:
                out += fmt::format("\\u{:04x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
        }
        text.remove_prefix(plain + 1);
    }
    out += '"';
}

}  // namespace

std::string json_quoted(std::string_view text) {
    std::string out;
    append_quoted(out, text);
    return out;
}

void JsonWriter::separate() {
    if (after_key_) {
        after_key_ = false;
        return;
    }
    if (depth_ == 0) return;
    if (!first_) text_ += ',';
    new_line();
    first_ = false;
}

void JsonWriter::new_line() {
    if (compact_) return;
    text_ += '\n';
    text_.append(static_cast<std::size_t>(depth_) * 2, ' ');
}

void JsonWriter::open(char bracket) {
    separate();
    text_ += bracket;
    ++depth_;
    first_ = true;
}

void JsonWriter::close(char bracket) {
    --depth_;
    if (!first_) new_line();
    text_ += bracket;
    first_ = false;
}

void JsonWriter::key(std::string_view name) {
    separate();
    append_quoted(text_, name);
    text_ += compact_ ? ":" : ": ";
    after_key_ = true;
}

void JsonWriter::value(std::string_view text) {
    separate();
    append_quoted(text_, text);
}

void JsonWriter::value(Gpus gpus) {
    if (gpus.is_decimal())
        scalar(print(gpus));
    else
        value(print(gpus));
}

void JsonWriter::scalar(std::string_view text) {
    separate();
    text_ += text;
}

std::string JsonWriter::take() {
    if (!compact_) text_ += '\n';
    return std::move(text_);
}

}  // namespace bulkhead
