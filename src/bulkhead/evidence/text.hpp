// Described structs as the compact text that is hashed and signed, and strictly back.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/base/result.hpp"
#include "bulkhead/codec/decode.hpp"
#include "bulkhead/codec/document.hpp"
#include "bulkhead/codec/print.hpp"

namespace bulkhead::evidence {

// Replaces by '?' what reading the record would refuse in its texts.
void make_legible(const Shape& shape, const Rule& rule, void* value);

template <Described T>
std::string compact_text(T value) {
    make_legible(shape_of<T>(), {}, &value);
    return to_compact_json(value);
}

// Larger than what codec allows people to write: a payload carries a statement, a certificate carries payloads.
inline constexpr Limits text_limits{
    .bytes = 16 << 20, .documents = 1, .depth = 16, .nodes = 20'000, .scalar_bytes = 4 << 20};

// The one JSON object in the text, or what is wrong with it. `what` names it: "certificate".
Result<Document> read_object(std::string_view what, std::string_view text);
std::unexpected<Error> refusal(const std::vector<Diagnostic>& errors);

template <Described T>
Result<T> read_text(std::string_view what, std::string_view text) {
    const Result<Document> document = read_object(what, text);
    if (!document) return std::unexpected(document.error());
    T value;
    std::vector<Diagnostic> errors;
    if (!decode(*document->root, what, value, errors)) return refusal(errors);
    return value;
}

}  // namespace bulkhead::evidence
