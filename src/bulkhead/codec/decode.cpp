#include "bulkhead/codec/decode.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "bulkhead/base/nearest.hpp"
#include "bulkhead/codec/plain.hpp"

namespace bulkhead {

namespace {

// The name of what is being read, as people say it: spec.exceptions[0].tier.
std::string inside(const std::string& path, std::string_view field) {
    return path.empty() ? std::string{field} : fmt::format("{}.{}", path, field);
}

// Of the words that some YAML readers take for true or false: yes, Y, On, TRUE.
bool means_true(std::string_view word) {
    const auto lower = [&](std::size_t i) { return static_cast<char>(word[i] | 0x20); };
    return lower(0) == 't' || lower(0) == 'y' || (lower(0) == 'o' && lower(1) == 'n');
}

class Decoder {
public:
    Decoder(std::string_view file, std::vector<Diagnostic>& errors) : file_{file}, errors_{errors} {}

    // `at` is where the value is named: its key, its place in a list, or itself.
    void value(const Node& node, Place at, const std::string& path, const Shape& shape, const Rule& rule, void* to) {
        if (node.type == Node::Type::null)
            return complain(at, fmt::format("{} has no value", named(path)), when_null(shape));
        switch (shape.type) {
            case Shape::Type::record:
                return record(node, at, path, shape, {}, to);
            case Shape::Type::optional:
                return value(node, at, path, *shape.inner, rule, shape.grow(to));
            case Shape::Type::list:
                return list(node, path, shape, rule, to);
            case Shape::Type::dictionary:
                return dictionary(node, path, to);
            case Shape::Type::text:
                return text(node, path, rule, *static_cast<std::string*>(to));
            case Shape::Type::truth:
                return truth(node, path, *static_cast<bool*>(to));
            case Shape::Type::integer:
                return integer(node, path, shape, rule, *static_cast<std::int64_t*>(to));
            case Shape::Type::word:
                return word(node, path, shape, to);
            case Shape::Type::gpus:
                return quantity(node, path, shape, rule, parse_gpus, &Gpus::units, *static_cast<Gpus*>(to));
            case Shape::Type::money:
                return quantity(node, path, shape, rule, parse_money, &Money::nano, *static_cast<Money*>(to));
            case Shape::Type::byte_size:
                return quantity(node, path, shape, rule, parse_byte_size, &ByteSize::bytes,
                                *static_cast<ByteSize*>(to));
            case Shape::Type::duration:
                return quantity(node, path, shape, rule, parse_duration, &Duration::ms, *static_cast<Duration*>(to));
            case Shape::Type::instant:
                return quantity(node, path, shape, rule, parse_instant, &Instant::ms, *static_cast<Instant*>(to));
        }
    }

    void record(const Node& node, Place at, const std::string& path, const Shape& shape,
                std::span<const std::string_view> besides, void* to) {
        if (!is(node, Node::Type::map, path, "fields")) return;
        for (const Node::Member& member : node.members) {
            if (std::ranges::find(besides, member.key) != besides.end()) continue;
            const auto field = std::ranges::find(shape.fields, member.key, &Field::name);
            if (field == shape.fields.end()) {
                unknown_field(member, path, shape);
                continue;
            }
            value(*member.value, member.at, inside(path, member.key), *field->shape, field->rule, field->in(to));
        }
        for (const Field& field : shape.fields)
            if (field.rule.required && !node.find(field.name))
                complain(at, fmt::format("{} is missing", inside(path, field.name)),
                         fmt::format("add {}: {}", field.name, field.about));
    }

private:
    void complain(Place at, std::string what, std::string remedy) {
        errors_.push_back({{std::string{file_}, at.line, at.column}, std::move(what), std::move(remedy)});
    }

    static std::string named(const std::string& path) { return path.empty() ? "the document" : path; }

    static std::string when_null(const Shape& shape) {
        switch (shape.type) {
            case Shape::Type::list:
                return "write [] or remove the field";
            case Shape::Type::dictionary:
            case Shape::Type::record:
                return "write {} or remove the field";
            case Shape::Type::text:
                return "quote it if you mean the word, or remove the field";
            default:
                return "write a value or remove the field";
        }
    }

    static std::string_view found(const Node& node) {
        switch (node.type) {
            case Node::Type::null:
                return "nothing";
            case Node::Type::list:
                return "a list";
            case Node::Type::map:
                return "a map";
            case Node::Type::scalar:
                break;
        }
        return "a single value";
    }

    bool is(const Node& node, Node::Type type, const std::string& path, std::string_view wanted) {
        if (node.type == type) return true;
        const std::string_view remedy = type == Node::Type::list  ? "write its items below it, each after a \"- \""
                                        : type == Node::Type::map ? "write its fields below it, indented"
                                                                  : "write one value";
        complain(node.at, fmt::format("{} takes {}, and this is {}", named(path), wanted, found(node)),
                 std::string{remedy});
        return false;
    }

    void unknown_field(const Node::Member& member, const std::string& path, const Shape& shape) {
        std::vector<std::string_view> known;
        known.reserve(shape.fields.size());
        for (const Field& field : shape.fields) known.push_back(field.name);
        const std::string_view near = nearest(member.key, known);
        complain(member.at,
                 path.empty() ? fmt::format("unknown field \"{}\"", shortened(member.key))
                              : fmt::format("unknown field \"{}\" in {}", shortened(member.key), path),
                 near.empty() ? fmt::format("one of {}", fmt::join(known, ", ")) : std::string{near});
    }

    void list(const Node& node, const std::string& path, const Shape& shape, const Rule& rule, void* to) {
        if (!is(node, Node::Type::list, path, "a list")) return;
        Rule of_item = rule;
        of_item.required = true;  // a list may be left out, but what is in it is there
        std::size_t index = 0;
        for (const Node* item : node.items)
            value(*item, item->at, fmt::format("{}[{}]", path, index++), *shape.inner, of_item, shape.grow(to));
    }

    void dictionary(const Node& node, const std::string& path, void* to) {
        if (!is(node, Node::Type::map, path, "keys and values")) return;
        auto& out = *static_cast<std::map<std::string, std::string>*>(to);
        for (const Node::Member& member : node.members) {
            const std::string name = inside(path, shortened(member.key));
            if (member.value->type == Node::Type::null)
                complain(member.at, fmt::format("{} has no value", name), "write \"\" if it is meant to be empty");
            else
                text(*member.value, name, {}, out[member.key]);
        }
    }

    void text(const Node& node, const std::string& path, const Rule& rule, std::string& to) {
        if (!is(node, Node::Type::scalar, path, "text")) return;
        if (const PlainType type = plain_type(node.text); !node.quoted && type != PlainType::text)
            return complain(node.at,
                            fmt::format("{} takes text, and {} is {} to YAML", path, shortened(node.text),
                                        type == PlainType::truth ? "true or false" : "a number"),
                            fmt::format("\"{}\", in quotes", shortened(node.text)));
        if (!is_valid(rule.format, node.text) && (rule.required || !node.text.empty()))
            return complain(node.at, fmt::format("{} is \"{}\"", path, shortened(node.text)),
                            std::string{explanation(rule.format)});
        to = node.text;
    }

    void truth(const Node& node, const std::string& path, bool& to) {
        if (!is(node, Node::Type::scalar, path, "true or false")) return;
        to = node.text == "true";
        if (!node.quoted && (to || node.text == "false")) return;
        std::string remedy = "write true or false";
        if (node.quoted && (to || node.text == "false"))
            remedy = fmt::format("{}, without quotes", node.text);
        else if (!node.quoted && plain_type(node.text) == PlainType::truth)
            remedy = means_true(node.text) ? "true" : "false";
        complain(node.at, fmt::format("{} is {}; it takes true or false", path, shortened(node.text)), remedy);
    }

    void integer(const Node& node, const std::string& path, const Shape& shape, const Rule& rule, std::int64_t& to) {
        if (!is(node, Node::Type::scalar, path, "a whole number")) return;
        const std::string_view digits = node.text.starts_with('-') ? std::string_view{node.text}.substr(1) : node.text;
        const bool decimal = !digits.empty() &&
                             std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; }) &&
                             (digits.size() == 1 || digits[0] != '0');
        std::int64_t parsed = 0;
        const char* end = node.text.data() + node.text.size();
        const auto result = std::from_chars(node.text.data(), end, parsed);
        if (decimal && result.ec == std::errc::result_out_of_range)
            return complain(node.at, fmt::format("{} is {}, more than 64 bits hold", path, shortened(node.text)),
                            allowed(shape, rule));
        if (!decimal || result.ec != std::errc{} || result.ptr != end)
            return complain(node.at, fmt::format("{} is \"{}\"; it takes a whole number", path, shortened(node.text)),
                            "write decimal digits: 8");
        if (node.quoted)
            return complain(node.at, fmt::format("{} takes a number, and \"{}\" in quotes is text", path, node.text),
                            fmt::format("{}, without quotes", node.text));
        if (in_range(node, path, shape, rule, parsed)) to = parsed;
    }

    // The rule counts in the base unit; people read it in theirs.
    static std::string allowed(const Shape& shape, const Rule& rule) {
        const bool least = rule.min != Rule{}.min, most = rule.max != Rule{}.max;
        if (least && most)
            return fmt::format("a value from {} to {}", spelled_number(shape, rule.min),
                               spelled_number(shape, rule.max));
        if (most) return fmt::format("at most {}", spelled_number(shape, rule.max));
        return least ? fmt::format("at least {}", spelled_number(shape, rule.min)) : "a smaller number";
    }

    bool in_range(const Node& node, const std::string& path, const Shape& shape, const Rule& rule, std::int64_t base) {
        if (base >= rule.min && base <= rule.max) return true;
        complain(node.at, fmt::format("{} is {}, which is out of range", path, spelled_number(shape, base)),
                 allowed(shape, rule));
        return false;
    }

    template <class Q>
    void quantity(const Node& node, const std::string& path, const Shape& shape, const Rule& rule,
                  Result<Q> (*parse)(std::string_view), std::int64_t Q::* base, Q& to) {
        if (!is(node, Node::Type::scalar, path, "one value")) return;
        const Result<Q> parsed = node.text.size() > 64 ? parse("...") : parse(node.text);
        if (!parsed) return complain(node.at, fmt::format("{}: {}", path, parsed.error().what), parsed.error().remedy);
        if (in_range(node, path, shape, rule, (*parsed).*base)) to = *parsed;
    }

    void word(const Node& node, const std::string& path, const Shape& shape, void* to) {
        if (!is(node, Node::Type::scalar, path, "one word")) return;
        const auto found_word = std::ranges::find(shape.words, node.text);
        if (found_word != shape.words.end())
            return shape.set_word(to, static_cast<std::size_t>(found_word - shape.words.begin()));
        const std::string_view near = nearest(node.text, shape.words);
        complain(
            node.at,
            fmt::format("{} is \"{}\"; it takes one of {}", path, shortened(node.text), fmt::join(shape.words, ", ")),
            near.empty() ? "choose one of these words" : std::string{near});
    }

    std::string_view file_;
    std::vector<Diagnostic>& errors_;
};

}  // namespace

bool decode_into(const Node& node, std::string_view file, const Shape& shape, void* target,
                 std::span<const std::string_view> besides, std::vector<Diagnostic>& errors) {
    invariant(shape.type == Shape::Type::record, "a document is read into a described struct");
    const std::size_t before = errors.size();
    Decoder{file, errors}.record(node, node.at, {}, shape, besides, target);
    return errors.size() == before;
}

Result<> read_strictly_into(std::string_view what, std::string_view text, const Shape& shape, void* target,
                            std::span<const std::string_view> besides, const Limits& limits) {
    ReadText read = read_documents(what, text, limits);
    if (read.errors.empty() && read.documents.size() == 1)
        decode_into(*read.documents.front().root, what, shape, target, besides, read.errors);
    else if (read.errors.empty())
        return fail(Code::invalid, std::string{what} + ": one JSON object is expected here", "send one object");
    if (read.errors.empty()) return {};
    std::string all;
    for (const Diagnostic& error : read.errors) all += print(error);
    return fail(Code::invalid, all, read.errors.front().remedy);
}

}  // namespace bulkhead
