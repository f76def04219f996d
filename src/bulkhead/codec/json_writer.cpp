#include "bulkhead/codec/json_writer.hpp"

#include <fmt/core.h>

namespace bulkhead {

std::string json_quoted(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        switch (c) {
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
                if (static_cast<unsigned char>(c) < 0x20)
                    out += fmt::format("\\u{:04x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
                else
                    out += c;
        }
    }
    return out + "\"";
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
    text_ += json_quoted(name);
    text_ += compact_ ? ":" : ": ";
    after_key_ = true;
}

void JsonWriter::value(std::string_view text) { scalar(json_quoted(text)); }

void JsonWriter::scalar(std::string_view text) {
    separate();
    text_ += text;
}

std::string JsonWriter::take() {
    if (!compact_) text_ += '\n';
    return std::move(text_);
}

}  // namespace bulkhead
