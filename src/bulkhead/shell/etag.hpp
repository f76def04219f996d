// Versions of objects as HTTP writes them: ETag, If-Match, If-None-Match (RFC 9110, 8.8.3 and 13.1).
#pragma once

#include <string>
#include <string_view>

#include "bulkhead/base/result.hpp"

namespace bulkhead::shell {

std::string tag_of(std::string_view version);  // "\"7\""

// Of an If-Match: nothing when there is none or it is "*". A write replaces one version, so lists and weak tags, which
// name no single one, are refused.
Result<std::string> version_in(std::string_view if_match);

// Whether an If-None-Match names the version: "*", one tag or several; a weak tag is as good as a strong one.
bool names_version(std::string_view if_none_match, std::string_view version);

}  // namespace bulkhead::shell
