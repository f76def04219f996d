// Any object that can exist survives being printed and read back, as YAML and as JSON. The objects are made from the
// same description that prints and reads them, so a new field is covered the day it is described.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "bulkhead/codec/load.hpp"
#include "bulkhead/codec/print.hpp"
#include "bulkhead/codec/unicode.hpp"

namespace bulkhead {
namespace {

std::string any_name() {
    const auto letters =
        *rc::gen::nonEmpty(rc::gen::container<std::string>(rc::gen::elementOf(std::string{"abyno019"})));
    return letters.substr(0, 63);  // includes "no", "y", "0", "019", which YAML would rather have as something else
}

std::string any_text() {
    static const std::vector<std::string> nasty{
        "",
        "null",
        "~",
        "Yes",
        "off",
        "0x1F",
        "017",
        "1_000",
        "1:30",
        "-.inf",
        ".nan",
        "1e9",
        "<<",
        "=",
        "---",
        "...",
        "- a",
        "? a",
        ": a",
        "a: b",
        "a #b",
        "#a",
        "*a",
        "&a",
        "!a",
        "%a",
        "@a",
        "`a",
        "{a}",
        "[a]",
        "a,b",
        "'a'",
        "\"a\"",
        "a\\b",
        "\\",
        "a\nb",
        "\n",
        " a",
        "a ",
        "\t",
        "a\rb",
        "\x7f",
        "\x01",
        "\u0085",
        "\u2028",
        "\ufeff",
        "\U0001f600",
        "\uffff",
        "a:",
        "a\"",
        "2026-11-15T09:00:00Z",
        "a  b",
        "|",
        ">",
        "--- a",
        "{",
        "}",
        "null ",
        std::string(3, '\0'),
        std::string(1500, 'k'),
    };
    if (*rc::gen::inRange(0, 3) > 0) return *rc::gen::elementOf(nasty);
    std::string out;
    for (const std::uint32_t rune : *rc::gen::container<std::vector<std::uint32_t>>(rc::gen::inRange(0u, 0x11'0000u)))
        if (rune < 0xd800 || rune > 0xdfff) append_utf8(out, rune);
    return out;
}

std::string any_line() {
    std::string out = any_text();
    std::erase_if(out, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
    return out.empty() ? "x" : out;
}

std::int64_t any_number(const Rule& rule, std::int64_t least, std::int64_t most) {
    const std::int64_t from = std::max(rule.min, least), to = std::min(rule.max, most);
    return *rc::gen::oneOf(rc::gen::inRange(from, std::min(to, from + 1000)), rc::gen::inRange(from, to),
                           rc::gen::element(from, to));
}

void fill(const Shape& shape, const Rule& rule, void* to) {
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    switch (shape.type) {
        case Shape::Type::text:
            *static_cast<std::string*>(to) = rule.format == Format::any    ? any_text()
                                             : rule.format == Format::line ? any_line()
                                                                           : any_name();
            break;
        case Shape::Type::truth:
            *static_cast<bool*>(to) = *rc::gen::arbitrary<bool>();
            break;
        case Shape::Type::integer:
            *static_cast<std::int64_t*>(to) = any_number(rule, -most - 1, most);
            break;
        case Shape::Type::word:
            shape.set_word(to, *rc::gen::inRange<std::size_t>(0, shape.words.size()));
            break;
        case Shape::Type::gpus:
            static_cast<Gpus*>(to)->units = any_number(rule, 0, most);
            break;
        case Shape::Type::money:
            static_cast<Money*>(to)->nano = any_number(rule, -most, most);
            break;
        case Shape::Type::byte_size:
            static_cast<ByteSize*>(to)->bytes = any_number(rule, 0, most);
            break;
        case Shape::Type::duration:
            static_cast<Duration*>(to)->ms = any_number(rule, 0, most);
            break;
        case Shape::Type::instant:  // the years 0000 to 9999, which is what four digits can say
            static_cast<Instant*>(to)->ms = any_number(rule, -62'167'219'200'000, 253'402'300'799'999);
            break;
        case Shape::Type::optional:
            if (*rc::gen::arbitrary<bool>()) fill(*shape.inner, rule, shape.grow(to));
            break;
        case Shape::Type::list:
            for (int i = *rc::gen::inRange(0, 3); i > 0; --i) fill(*shape.inner, rule, shape.grow(to));
            break;
        case Shape::Type::dictionary: {
            auto& dictionary = *static_cast<std::map<std::string, std::string>*>(to);
            for (int i = *rc::gen::inRange(0, 4); i > 0; --i) dictionary[any_text()] = any_text();
            break;
        }
        case Shape::Type::record:
            for (const Field& field : shape.fields)
                if (field.rule.required || *rc::gen::arbitrary<bool>()) fill(*field.shape, field.rule, field.in(to));
            break;
    }
}

Snapshot any_snapshot() {
    Snapshot out;
    for_each_kind([&]<class T>() {
        if (*rc::gen::inRange(0, 3) == 0) fill(shape_of<T>(), {}, &out.list<T>().emplace_back());
    });
    return out;
}

void expect_to_survive(const Snapshot& snapshot, std::string (*print_all)(const Snapshot&)) {
    const std::string text = print_all(snapshot);
    const SourceText file{"printed", text};
    const Loaded loaded = load({&file, 1});
    for (const Diagnostic& error : loaded.errors) RC_FAIL(print(error) + "---\n" + text);
    RC_ASSERT(loaded.snapshot == snapshot);
    RC_ASSERT(print_all(loaded.snapshot) == text);
}

RC_GTEST_PROP(RoundTrip, yaml_keeps_every_object, ()) { expect_to_survive(any_snapshot(), print_snapshot); }
RC_GTEST_PROP(RoundTrip, json_keeps_every_object, ()) { expect_to_survive(any_snapshot(), print_snapshot_json); }

}  // namespace
}  // namespace bulkhead
