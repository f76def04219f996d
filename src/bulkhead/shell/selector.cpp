#include "bulkhead/shell/selector.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "bulkhead/codec/diagnostic.hpp"

namespace bulkhead::shell {

namespace {

constexpr std::size_t most_terms = 32, most_values = 64, most_bytes = 4096;

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
    return text;
}

// Letters, digits and "-_./": what can stand in a label without quotes.
bool is_plain(std::string_view text) {
    return std::ranges::all_of(text, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
               c == '.' || c == '/';
    });
}

// Split at commas, but not at those between brackets.
std::vector<std::string_view> split(std::string_view text) {
    std::vector<std::string_view> parts;
    std::size_t begin = 0;
    int depth = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '(') ++depth;
        if (text[i] == ')') --depth;
        if (text[i] != ',' || depth > 0) continue;
        parts.push_back(trimmed(text.substr(begin, i - begin)));
        begin = i + 1;
    }
    parts.push_back(trimmed(text.substr(begin)));
    return parts;
}

}  // namespace

Result<Selector::Term> Selector::parse_term(std::string_view text) {
    const auto wrong = [&] {
        return fail(Code::invalid, fmt::format("\"{}\" is not a label selector", shortened(text)),
                    "key=value, key!=value, key, !key, or key in (a,b), joined by commas");
    };
    Term term;
    std::string_view values;
    bool several = false;
    if (const auto at = text.find("!="); at != text.npos) {
        term.test = Test::none_of;
        term.key = trimmed(text.substr(0, at));
        values = text.substr(at + 2);
    } else if (const auto equals = text.find('='); equals != text.npos) {
        term.test = Test::any_of;
        term.key = trimmed(text.substr(0, equals));
        values = text.substr(equals + (text.substr(equals).starts_with("==") ? 2 : 1));
    } else if (const auto open = text.find('('); open != text.npos) {
        if (text.back() != ')') return wrong();
        std::string_view head = trimmed(text.substr(0, open));
        several = true;
        values = text.substr(open + 1, text.size() - open - 2);
        const auto blank = head.rfind(' ');
        if (blank == head.npos) return wrong();
        const std::string_view verb = head.substr(blank + 1);
        if (verb != "in" && verb != "notin") return wrong();
        term.test = verb == "in" ? Test::any_of : Test::none_of;
        term.key = trimmed(head.substr(0, blank));
    } else {
        term.test = text.starts_with('!') ? Test::absent : Test::present;
        term.key = trimmed(text.substr(text.starts_with('!') ? 1 : 0));
    }
    if (term.key.empty() || !is_plain(term.key)) return wrong();
    if (term.test == Test::any_of || term.test == Test::none_of) {
        for (const std::string_view value : several ? split(values) : std::vector{trimmed(values)}) {
            if (!is_plain(value) || term.values.size() == most_values) return wrong();
            term.values.emplace_back(value);
        }
    }
    return term;
}

Result<Selector> Selector::parse(std::string_view text) {
    Selector selector;
    if (trimmed(text).empty()) return selector;
    if (text.size() > most_bytes)
        return fail(Code::invalid, "the label selector is too long", fmt::format("at most {} bytes", most_bytes));
    for (const std::string_view part : split(text)) {
        auto term = parse_term(part);
        if (!term) return std::unexpected(term.error());
        if (selector.terms_.size() == most_terms)
            return fail(Code::invalid, "the label selector has too many terms", fmt::format("at most {}", most_terms));
        selector.terms_.push_back(*std::move(term));
    }
    return selector;
}

bool Selector::matches(const Labels& labels) const {
    return std::ranges::all_of(terms_, [&](const Term& term) {
        const auto found = labels.find(term.key);
        const bool present = found != labels.end();
        const auto among = [&] { return std::ranges::find(term.values, found->second) != term.values.end(); };
        switch (term.test) {
            case Test::any_of:
                return present && among();
            case Test::none_of:
                return !present || !among();
            case Test::present:
                return present;
            case Test::absent:
                return !present;
        }
        return false;
    });
}

}  // namespace bulkhead::shell
