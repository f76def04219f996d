// JSON as tokens, key sets and providers write it, from outside and therefore with limits: one object, every key once,
// not deep, not large. Members are asked for by their type; a member of another type is as good as a lie, and said so.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/base/result.hpp"
#include "bulkhead/codec/document.hpp"

namespace bulkhead::auth {

struct JsonLimits {
    std::size_t bytes = 16 << 10;
    std::size_t nodes = 2'000;
};
// `what` the text is, for the error: "the token's header".
Result<Document> read_json_object(std::string_view what, std::string_view text, JsonLimits limits = {});

// Nothing when the member is not there, or null; an error when it is something else than asked for.
Result<std::optional<std::string>> text_member(const Node& object, std::string_view name);
Result<std::optional<std::int64_t>> whole_number_member(const Node& object, std::string_view name);
// A list of texts; where `lone` is allowed, one text stands for a list of it.
Result<std::optional<std::vector<std::string>>> texts_member(const Node& object, std::string_view name,
                                                             bool lone = false);
// An object; null when the member is not there.
Result<const Node*> object_member(const Node& object, std::string_view name);

// Of the text that must be there and not be empty.
Result<std::string> required_text(const Node& object, std::string_view name);

}  // namespace bulkhead::auth
