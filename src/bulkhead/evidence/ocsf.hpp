// Records of the log as a security pipeline reads them: one event of the Open Cybersecurity Schema Framework 1.8 for
// each, in one line of JSON. The log stays what counts; every event carries the way back to its leaf.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "bulkhead/base/hash.hpp"
#include "bulkhead/evidence/pseudonym.hpp"
#include "bulkhead/evidence/record.hpp"

namespace bulkhead::evidence {

inline constexpr std::string_view ocsf_version = "1.8.0";

// Where the record is.
struct OcsfPlace {
    std::string log;         // the origin
    std::int64_t index = 0;  // of the leaf
    Hash entry{};            // what the leaf commits with: the event's own id
    std::string product_version = "0.1.0";
};

// The same record gives the same bytes, always: an export that begins again in the middle changes nothing. `tenant`:
// who is called by the pseudonym in the record, for those who may know.
std::string ocsf_event(const OcsfPlace& place, const Record& record,
                       const std::optional<TenantOpening>& tenant = std::nullopt);
// Of a leaf whose record was lost with a restore: that there was one.
std::string ocsf_lost(const OcsfPlace& place, Instant at);

// The leaf that a line of an export is about; nothing for a line that is none.
std::optional<std::int64_t> ocsf_sequence(std::string_view line);

}  // namespace bulkhead::evidence
