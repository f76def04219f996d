// Writes JSON text, keys in the order they are given: indented for people, or compact for what is stored and sent. The
// caller keeps begin and end in pairs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "bulkhead/base/quantity.hpp"

namespace bulkhead {

enum class JsonLayout : std::uint8_t { indented, compact };

class JsonWriter {
public:
    explicit JsonWriter(JsonLayout layout = JsonLayout::indented) : compact_(layout == JsonLayout::compact) {
        text_.reserve(512);  // most objects, without growing five times on the way
    }
    bool compact() const { return compact_; }

    void begin_object() { open('{'); }
    void end_object() { close('}'); }
    void begin_array() { open('['); }
    void end_array() { close(']'); }
    void key(std::string_view name);
    void value(std::string_view text);
    void value(const char* text) { value(std::string_view{text}); }
    void value(const std::string& text) { value(std::string_view{text}); }
    void value(bool truth) { scalar(truth ? "true" : "false"); }
    void value(std::int64_t number) { scalar(std::to_string(number)); }
    void value(int number) { value(std::int64_t{number}); }
    void value(unsigned number) { value(std::int64_t{number}); }
    void value(Gpus gpus);  // a number; where it takes a fraction, text: 0.5, "1/7"
    void null() { scalar("null"); }
    // A number already in JSON's own spelling, such as "0.5".
    void number(std::string_view spelled) { scalar(spelled); }

    template <class T>
    void member(std::string_view name, const T& content) {
        key(name);
        value(content);
    }

    std::string take();  // the text; with a final newline when indented

private:
    void open(char bracket);
    void close(char bracket);
    void scalar(std::string_view text);
    void separate();
    void new_line();

    bool compact_;
    std::string text_;
    int depth_ = 0;
    bool first_ = true;       // nothing yet in the innermost container
    bool after_key_ = false;  // the next value belongs to a key just written
};

// "text" with quotes and escapes, as JSON has it.
std::string json_quoted(std::string_view text);

}  // namespace bulkhead
