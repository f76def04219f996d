// JSON Schema (draft 2020-12) of a kind, from its description: for editors, for CI, and to read. Within spec and status
// it says only what a Kubernetes structural schema can say.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/codec/shape.hpp"

namespace bulkhead {

// Of one kind. The kind must be one of kind_names().
std::string json_schema(std::string_view kind);
// Of any of the six, by oneOf.
std::string json_schema();

std::vector<std::string_view> kind_names();

// Of anything described that is no object of the API: what is signed, logged, or given away.
struct SchemaHead {
    std::string_view id, title, about;
};
std::string json_schema(const Shape& shape, const SchemaHead& head);

}  // namespace bulkhead
