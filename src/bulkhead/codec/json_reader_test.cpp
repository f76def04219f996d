// Boost.JSON as a second opinion: on any text, the two accept the same and read the same.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <boost/json.hpp>
#include <set>

#include "bulkhead/codec/document.hpp"
#include "bulkhead/codec/json_writer.hpp"
#include "bulkhead/codec/unicode.hpp"

namespace bulkhead {
namespace {

namespace json = boost::json;

std::string any_string() {
    static const std::vector<std::string> pieces{
        "a",      "\\n",        "\\\"", "\\\\", "\\/", "\\u0041", "\\ud83d\\ude00", "\\u00e9",
        "\u00e9", "\U0001f600", " ",    "\x7f", "\\t", "0",       "\\u0000"};
    std::string out;
    for (int i = *rc::gen::inRange(0, 5); i > 0; --i) out += *rc::gen::elementOf(pieces);
    return "\"" + out + "\"";
}

std::string any_blank() { return *rc::gen::elementOf(std::vector<std::string>{"", " ", "\n", "\t", "\r\n"}); }

std::string any_value(int depth) {
    const int choice = *rc::gen::inRange(0, depth > 0 ? 8 : 6);
    if (choice < 2) return any_string();
    if (choice < 6)
        return *rc::gen::elementOf(
            std::vector<std::string>{"0", "-1", "12345678901", "-0.5", "1e3", "2.25E-2", "true", "false", "null"});
    std::string out = choice == 6 ? "[" : "{";
    const int size = *rc::gen::inRange(0, 4);
    for (int i = 0; i < size; ++i) {
        out += (i > 0 ? "," : "") + any_blank();
        if (choice == 7) out += "\"k" + std::to_string(i) + any_string().substr(1) + any_blank() + ":";
        out += any_blank() + any_value(depth - 1) + any_blank();
    }
    return out + (choice == 6 ? "]" : "}");
}

void expect_same(const Node& ours, const json::value& theirs) {
    switch (theirs.kind()) {
        case json::kind::null:
            RC_ASSERT(ours.type == Node::Type::null);
            return;
        case json::kind::bool_:
            RC_ASSERT(ours.text == (theirs.get_bool() ? "true" : "false") && !ours.quoted);
            return;
        case json::kind::string:
            RC_ASSERT(ours.quoted);
            RC_ASSERT(ours.text == std::string_view{theirs.get_string()});
            return;
        case json::kind::array:
            RC_ASSERT(ours.items.size() == theirs.get_array().size());
            for (std::size_t i = 0; i < ours.items.size(); ++i) expect_same(*ours.items[i], theirs.get_array()[i]);
            return;
        case json::kind::object:
            RC_ASSERT(ours.members.size() == theirs.get_object().size());
            for (const Node::Member& member : ours.members)
                expect_same(*member.value, theirs.get_object().at(member.key));
            return;
        default:
            RC_ASSERT(ours.type == Node::Type::scalar && !ours.quoted);
            RC_ASSERT(json::parse(ours.text) == theirs);
    }
}

RC_GTEST_PROP(JsonReader, reads_what_boost_reads, ()) {
    const std::string text = any_blank() + "[" + any_value(3) + "]" + any_blank();
    const ReadText ours = read_documents("f", text);
    RC_ASSERT(ours.errors.empty());
    expect_same(*ours.documents.at(0).root, json::parse(text));
}

RC_GTEST_PROP(JsonReader, refuses_what_boost_refuses, ()) {
    std::string text = "[" + any_value(3) + "]";
    static const std::string bytes = "[]{},:\"\\ 0-.eatu/\n\x01\xc3";
    for (int i = *rc::gen::inRange(1, 4); i > 0; --i) {
        const auto at = *rc::gen::inRange<std::size_t>(1, text.size());
        switch (*rc::gen::inRange(0, 3)) {
            case 0:
                text.insert(at, 1, *rc::gen::elementOf(bytes));
                break;
            case 1:
                text[at] = *rc::gen::elementOf(bytes);
                break;
            default:
                text.erase(at, 1);
        }
        if (text.size() < 2) return;
    }
    json::error_code refused;
    const json::value theirs = json::parse(text, refused);
    const ReadText ours = read_documents("f", text);
    if (refused == json::error::exponent_overflow) return;  // we keep numbers as they are written
    // Boost keeps the last of two equal keys; we refuse them.
    for (const Diagnostic& error : ours.errors)
        if (error.what.find("given twice") != std::string::npos) return;
    RC_ASSERT(ours.errors.empty() == !refused.failed());
    if (!refused.failed()) expect_same(*ours.documents.at(0).root, theirs);
}

RC_GTEST_PROP(JsonWriter, quotes_so_that_boost_reads_it_back, ()) {
    std::string text;
    for (const std::uint32_t rune : *rc::gen::container<std::vector<std::uint32_t>>(rc::gen::inRange(0u, 0x11'0000u)))
        if (rune < 0xd800 || rune > 0xdfff) append_utf8(text, rune);
    RC_ASSERT(std::string_view{json::parse(json_quoted(text)).get_string()} == text);
}

}  // namespace
}  // namespace bulkhead
