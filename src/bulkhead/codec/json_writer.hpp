// Writes JSON text, indented, keys in the order they are given. The caller keeps begin and end in pairs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace bulkhead {

class JsonWriter {
public:
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
    void null() { scalar("null"); }
    // A number already in JSON's own spelling, such as "0.5".
    void number(std::string_view spelled) { scalar(spelled); }

    template <class T>
    void member(std::string_view name, const T& content) {
        key(name);
        value(content);
    }

    std::string take();  // the text, with a final newline

private:
    void open(char bracket);
    void close(char bracket);
    void scalar(std::string_view text);
    void separate();

    std::string text_;
    int depth_ = 0;
    bool first_ = true;       // nothing yet in the innermost container
    bool after_key_ = false;  // the next value belongs to a key just written
};

// "text" with quotes and escapes, as JSON has it.
std::string json_quoted(std::string_view text);

}  // namespace bulkhead
