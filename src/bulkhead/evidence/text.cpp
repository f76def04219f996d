#include "bulkhead/evidence/text.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "bulkhead/codec/unicode.hpp"

namespace bulkhead::evidence {

namespace {

void make_text_legible(std::string& text, const Rule& rule) {
    for (std::size_t bad; (bad = first_invalid_utf8(text)) != std::string::npos;) text[bad] = '?';
    if (rule.format == Format::any) return;
    for (char& c : text)
        if (!is_valid(Format::line, {&c, 1})) c = '?';
    if (text.empty() && rule.required) text = "?";
}

void make_dictionary_legible(std::map<std::string, std::string>& texts) {
    const auto is_legible = [](const std::string& text) { return first_invalid_utf8(text) == std::string::npos; };
    if (std::ranges::all_of(texts, [&](const auto& pair) { return is_legible(pair.first) && is_legible(pair.second); }))
        return;
    std::map<std::string, std::string> legible;
    for (auto& [key, text] : texts) {
        std::string name = key;
        make_text_legible(name, {});
        while (legible.contains(name)) name += '?';  // two keys that read the same are still two
        make_text_legible(legible[name] = std::move(text), {});
    }
    texts = std::move(legible);
}

}  // namespace

void make_legible(const Shape& shape, const Rule& rule, void* value) {
    switch (shape.type) {
        case Shape::Type::text:
            return make_text_legible(*static_cast<std::string*>(value), rule);
        case Shape::Type::dictionary:
            return make_dictionary_legible(*static_cast<std::map<std::string, std::string>*>(value));
        case Shape::Type::optional:
        case Shape::Type::list:
            // The table hands out its items to read; the value they are part of is ours to change.
            for (std::size_t i = 0; i < shape.size(value); ++i)
                make_legible(*shape.inner, rule, const_cast<void*>(shape.item(value, i)));
            return;
        case Shape::Type::record:
            for (const Field& field : shape.fields) make_legible(*field.shape, field.rule, field.in(value));
            return;
        default:
            return;
    }
}

Result<Document> read_object(std::string_view what, std::string_view text) {
    if (!text.starts_with('{'))
        return fail(Code::invalid, fmt::format("{} is not a JSON object", what), "it begins with {");
    ReadText read = read_documents(what, text, text_limits);
    if (!read.errors.empty()) return refusal(read.errors);
    if (read.documents.size() != 1)
        return fail(Code::invalid, fmt::format("{} is not one JSON object", what), "give exactly one");
    return std::move(read.documents.front());
}

std::unexpected<Error> refusal(const std::vector<Diagnostic>& errors) {
    const Diagnostic& first = errors.front();
    std::string what = fmt::format("{}:{}:{}: {}", first.where.file, first.where.line, first.where.column, first.what);
    if (errors.size() > 1) what += fmt::format(" (and {} more)", errors.size() - 1);
    return fail(Code::invalid, std::move(what), first.remedy);
}

}  // namespace bulkhead::evidence
