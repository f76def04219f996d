// JSON Schemas of what leaves the house as evidence, for programs that are not ours.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bulkhead::evidence {

std::vector<std::string_view> schema_names();  // "certificate", "certificates", "record", ...
std::optional<std::string> schema_named(std::string_view name);

}  // namespace bulkhead::evidence
