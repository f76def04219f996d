#include "bulkhead/codec/print.hpp"

#include <fmt/core.h>

#include "bulkhead/codec/plain.hpp"
#include "bulkhead/codec/unicode.hpp"
#include "bulkhead/model/meta.hpp"

namespace bulkhead {

namespace {

using Dictionary = std::map<std::string, std::string>;

bool says_nothing(const Shape& shape, const void* value) {
    switch (shape.type) {
        case Shape::Type::optional:
        case Shape::Type::list:
            return shape.size(value) == 0;
        case Shape::Type::dictionary:
            return as<Dictionary>(value).empty();
        default:
            return false;
    }
}

// Empty text stands for "not given" where a form is asked of text that need not be there.
bool is_left_out_of_json(const Field& field, const void* value) {
    if (field.rule.required) return false;
    if (field.shape->type == Shape::Type::optional) return says_nothing(*field.shape, value);
    return field.shape->type == Shape::Type::text && field.rule.format != Format::any && as<std::string>(value).empty();
}

void write_json_value(JsonWriter& out, const Shape& shape, const void* value) {
    switch (shape.type) {
        case Shape::Type::truth:
            return out.value(as<bool>(value));
        case Shape::Type::integer:
            return out.value(as<std::int64_t>(value));
        case Shape::Type::text:
            return out.value(as<std::string>(value));
        case Shape::Type::gpus:
            return out.value(as<Gpus>(value));
        case Shape::Type::optional:
            return shape.size(value) == 0 ? out.null() : write_json_value(out, *shape.inner, shape.item(value, 0));
        case Shape::Type::list:
            out.begin_array();
            for (std::size_t i = 0; i < shape.size(value); ++i)
                write_json_value(out, *shape.inner, shape.item(value, i));
            return out.end_array();
        case Shape::Type::dictionary:
            out.begin_object();
            for (const auto& [key, text] : as<Dictionary>(value)) out.member(key, text);
            return out.end_object();
        case Shape::Type::record:
            return write_json(out, shape, value, {});
        default:
            return out.value(spelled(shape, value));
    }
}

// Double quotes with escapes, where JSON's would leave something invisible to stand for itself.
std::string yaml_quoted(std::string_view text) {
    std::string out = "\"";
    while (!text.empty()) {
        const Rune rune = front_rune(text).value_or(Rune{0xfffd, 1});
        if (rune.value == '"' || rune.value == '\\') out += '\\';
        if (rune.value == '\n')
            out += "\\n";
        else if (rune.value == '\t')
            out += "\\t";
        else if (is_visible_in_yaml(rune.value))
            append_utf8(out, rune.value);
        else
            out += fmt::format("\\u{:04x}", static_cast<std::uint32_t>(rune.value));
        text.remove_prefix(rune.bytes);
    }
    return out + '"';
}

std::string yaml_text(std::string_view text) { return can_stand_plain(text) ? std::string{text} : yaml_quoted(text); }

class YamlWriter {
public:
    // Fields at the given indentation. The first may continue a line that already has its "- ".
    void record(const Shape& shape, const void* value, std::size_t indent) {
        for (const Field& field : shape.fields) {
            const void* part = field.in(value);
            if (!field.rule.required && !field.rule.shown && same(*field.shape, part, field.in(shape.fresh))) continue;
            key(field.name, indent);
            member(*field.shape, part, indent);
        }
    }

    void key(std::string_view name, std::size_t indent) {
        constexpr std::size_t longest_simple_key = 1000;  // YAML's own limit is 1024, as written
        const std::string written = yaml_text(name);
        start_line(indent);
        if (written.size() <= longest_simple_key) {
            out_ += written + ':';
        } else {
            out_ += "? " + written;
            start_line(indent);
            out_ += ':';
        }
    }

    void line(std::string_view name, std::string_view text) {
        key(name, 0);
        out_ += ' ' + yaml_text(text);
    }

    std::string take() { return std::move(out_ += '\n'); }

private:
    void start_line(std::size_t indent) {
        if (!out_.empty() && !in_item_) out_ += '\n';
        if (!in_item_) out_.append(indent, ' ');
        in_item_ = false;
    }

    static bool prints_nothing(const Shape& shape, const void* value) {
        if (shape.type != Shape::Type::record) return says_nothing(shape, value);
        for (const Field& field : shape.fields)
            if (field.rule.required || field.rule.shown || !same(*field.shape, field.in(value), field.in(shape.fresh)))
                return false;
        return true;
    }

    // What follows a key.
    void member(const Shape& shape, const void* value, std::size_t indent) {
        switch (shape.type) {
            case Shape::Type::optional:
                if (shape.size(value) > 0) return member(*shape.inner, shape.item(value, 0), indent);
                out_ += " null";  // only where an option is required, and then reading refuses it
                return;
            case Shape::Type::list:
                if (says_nothing(shape, value)) out_ += " []";
                return items(shape, value, indent + 2);
            case Shape::Type::dictionary:
                if (says_nothing(shape, value)) out_ += " {}";
                return pairs(as<Dictionary>(value), indent + 2);
            case Shape::Type::record:
                if (prints_nothing(shape, value)) out_ += " {}";
                return record(shape, value, indent + 2);
            default:
                out_ += ' ' + scalar(shape, value);
        }
    }

    void items(const Shape& shape, const void* value, std::size_t indent) {
        for (std::size_t i = 0; i < shape.size(value); ++i) {
            const void* item = shape.item(value, i);
            start_line(indent);
            out_ += '-';
            if (shape.inner->type != Shape::Type::record || prints_nothing(*shape.inner, item)) {
                member(*shape.inner, item, indent);
                continue;
            }
            out_ += ' ';
            in_item_ = true;
            record(*shape.inner, item, indent + 2);
        }
    }

    void pairs(const Dictionary& dictionary, std::size_t indent) {
        for (const auto& [name, text] : dictionary) {
            key(name, indent);
            out_ += ' ' + yaml_text(text);
        }
    }

    static std::string scalar(const Shape& shape, const void* value) {
        const std::string text = spelled(shape, value);
        const bool is_words = shape.type == Shape::Type::text || shape.type == Shape::Type::word;
        return is_words ? yaml_text(text) : text;
    }

    std::string out_;
    bool in_item_ = false;
};

}  // namespace

void write_json(JsonWriter& out, const Shape& shape, const void* value, std::string_view kind) {
    out.begin_object();
    if (!kind.empty()) {
        out.member("apiVersion", api_version);
        out.member("kind", kind);
    }
    for (const Field& field : shape.fields) {
        const void* part = field.in(value);
        if (is_left_out_of_json(field, part)) continue;
        // Stored text says only what differs from a fresh value; reading it back fills in the rest.
        if (out.compact() && !field.rule.required && same(*field.shape, part, field.in(shape.fresh))) continue;
        out.key(field.name);
        write_json_value(out, *field.shape, part);
    }
    out.end_object();
}

std::string write_yaml(const Shape& shape, const void* value, std::string_view kind) {
    YamlWriter out;
    if (!kind.empty()) {
        out.line("apiVersion", api_version);
        out.line("kind", kind);
    }
    out.record(shape, value, 0);
    const std::string text = out.take();
    return text == "\n" ? "{}\n" : text;
}

std::string print_snapshot(const Snapshot& snapshot) {
    std::string out;
    for_each_kind([&]<class T>() {
        for (const T& object : snapshot.list<T>()) {
            if (!out.empty()) out += "---\n";
            out += to_yaml(object);
        }
    });
    return out;
}

std::string print_snapshot_json(const Snapshot& snapshot) {
    JsonWriter out;
    out.begin_object();
    out.member("apiVersion", api_version);
    out.member("kind", "List");
    out.key("items");
    out.begin_array();
    for_each_kind([&]<class T>() {
        for (const T& object : snapshot.list<T>()) write(out, object);
    });
    out.end_array();
    out.end_object();
    return out.take();
}

}  // namespace bulkhead
