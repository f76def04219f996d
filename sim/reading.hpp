// How the checkers read what the control plane wrote: JSON by another library, time by hand, digests by OpenSSL
// directly, so that no reader of ours is trusted.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "bulkhead/base/hash.hpp"

namespace bulkhead::sim {

std::string text(const boost::json::object& object, std::string_view key);  // empty: not there, or no text
std::int64_t number(const boost::json::object& object, std::string_view key, std::int64_t otherwise);
// GPUs in parts of 1/21,000: 0.125, 8, "1/7".
std::int64_t gpu_units(const boost::json::object& object, std::string_view key);
std::int64_t instant(const std::string& text);  // "2026-11-15T09:00:00.250Z"; -1: not there
Hash digest(std::initializer_list<std::string_view> parts);

}  // namespace bulkhead::sim
