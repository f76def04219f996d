// RFC 8259, nothing more: no comments, no trailing commas. Written by hand because no library at hand gives positions.
#include <fmt/core.h>

#include "bulkhead/codec/tree_builder.hpp"
#include "bulkhead/codec/unicode.hpp"

namespace bulkhead {

namespace {

class JsonReader {
public:
    JsonReader(const Chunk& chunk, TreeBuilder& builder)
        : text_{chunk.text}, line_{chunk.first_line}, column_of_start_{chunk.first_column}, builder_{builder} {}

    void read() {
        blank();
        value();
        blank();
        if (at_ < text_.size()) refuse("unexpected text after the end of the JSON value", "remove it");
    }

private:
    [[noreturn]] void refuse(std::string what, std::string remedy) const {
        throw Unreadable{here(), std::move(what), std::move(remedy)};
    }
    [[noreturn]] void refuse_here(std::string_view expected) const {
        if (at_ >= text_.size()) refuse(fmt::format("the text ends where {} should come", expected), "complete it");
        const Rune rune = front_rune(text_.substr(at_)).value_or(Rune{0, 1});
        refuse(fmt::format("\"{}\" where {} should come", shortened(text_.substr(at_, rune.bytes)), expected),
               "JSON has no comments, no trailing commas, and only double quotes");
    }

    Place here() const { return {line_, static_cast<int>(at_ - line_start_) + column_of_start_}; }
    char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

    void blank() {
        for (; at_ < text_.size(); ++at_) {
            const char c = text_[at_];
            if (c == '\n') {
                ++line_;
                line_start_ = at_ + 1;
                column_of_start_ = 1;
            } else if (c != ' ' && c != '\t' && c != '\r') {
                return;
            }
        }
    }

    // Recursion is as deep as the builder's limit, which throws first.
    void value() {
        const Place at = here();
        switch (peek()) {
            case '{':
                return members(at);
            case '[':
                return items(at);
            case '"':
                return builder_.scalar(at, string(), true);
            case 't':
                return word("true"), builder_.scalar(at, "true", false);
            case 'f':
                return word("false"), builder_.scalar(at, "false", false);
            case 'n':
                return word("null"), builder_.null(at);
            default:
                builder_.scalar(at, number(), false);
        }
    }

    void members(Place at) {
        builder_.begin_map(at);
        ++at_;
        blank();
        if (peek() != '}') {
            while (true) {
                const Place key_at = here();
                if (peek() != '"') refuse_here("a key in double quotes");
                builder_.scalar(key_at, string(), true);
                blank();
                if (peek() != ':') refuse_here("':'");
                ++at_;
                blank();
                value();
                blank();
                if (peek() != ',') break;
                ++at_;
                blank();
            }
        }
        if (peek() != '}') refuse_here("',' or '}'");
        ++at_;
        builder_.end();
    }

    void items(Place at) {
        builder_.begin_list(at);
        ++at_;
        blank();
        if (peek() != ']') {
            while (true) {
                value();
                blank();
                if (peek() != ',') break;
                ++at_;
                blank();
            }
        }
        if (peek() != ']') refuse_here("',' or ']'");
        ++at_;
        builder_.end();
    }

    void word(std::string_view expected) {
        if (!text_.substr(at_).starts_with(expected)) refuse_here("a value");
        at_ += expected.size();
    }

    bool digits() {
        const std::size_t from = at_;
        while (peek() >= '0' && peek() <= '9') ++at_;
        return at_ > from;
    }

    std::string number() {
        const std::size_t from = at_;
        if (peek() == '-') ++at_;
        if (peek() == '0')
            ++at_;
        else if (!digits())
            refuse_here(at_ > from ? "a digit" : "a value");
        if (peek() == '.') {
            ++at_;
            if (!digits()) refuse_here("a digit");
        }
        if (peek() == 'e' || peek() == 'E') {
            ++at_;
            if (peek() == '+' || peek() == '-') ++at_;
            if (!digits()) refuse_here("a digit");
        }
        return std::string{text_.substr(from, at_ - from)};
    }

    std::string string() {
        std::string out;
        ++at_;
        while (true) {
            if (at_ >= text_.size()) refuse_here("a closing quote");
            const char c = text_[at_];
            if (static_cast<unsigned char>(c) < 0x20)
                refuse("a line break or control character inside quotes", "write it as \\n or \\u00XX");
            if (c == '\\') {
                escape(out);
                continue;
            }
            ++at_;
            if (c == '"') return out;
            out += c;
        }
    }

    void escape(std::string& out) {
        static constexpr std::string_view letters = "\"\\/bfnrt", meanings = "\"\\/\b\f\n\r\t";
        const char letter = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
        if (letter == 'u') return append_utf8(out, escaped_rune());
        const std::size_t which = letters.find(letter);
        if (letter == '\0' || which == std::string_view::npos)
            refuse("an unknown escape", "JSON knows \\\" \\\\ \\/ \\b \\f \\n \\r \\t and \\uXXXX");
        out += meanings[which];
        at_ += 2;
    }

    // Beyond the first plane JSON writes two halves, each useless alone.
    char32_t escaped_rune() {
        const char32_t first = four_hex();
        const auto half = [&] { refuse("half of a surrogate pair", "write both halves, or the character itself"); };
        if (first >= 0xdc00 && first <= 0xdfff) half();
        if (first < 0xd800 || first > 0xdbff) return first;
        if (!text_.substr(at_).starts_with("\\u")) half();
        const char32_t second = four_hex();
        if (second < 0xdc00 || second > 0xdfff) half();
        return 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
    }

    char32_t four_hex() {
        const std::string_view hex = text_.substr(at_ + 2, 4);
        char32_t value = 0;
        for (const char c : hex) {
            const char low = static_cast<char>(c | 0x20);
            const bool digit = c >= '0' && c <= '9', letter = low >= 'a' && low <= 'f';
            if (!digit && !letter) refuse("\\u without four hexadecimal digits", "write it as \\u00e9");
            value = value * 16 + static_cast<char32_t>(digit ? c - '0' : low - 'a' + 10);
        }
        if (hex.size() < 4) refuse("\\u without four hexadecimal digits", "write it as \\u00e9");
        at_ += 6;
        return value;
    }

    std::string_view text_;
    std::size_t at_ = 0, line_start_ = 0;
    int line_, column_of_start_;
    TreeBuilder& builder_;
};

}  // namespace

void read_json(const Chunk& chunk, TreeBuilder& builder) { JsonReader{chunk, builder}.read(); }

}  // namespace bulkhead
