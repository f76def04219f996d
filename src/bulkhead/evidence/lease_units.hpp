// What a lease consists of, as the log's record `lease-units` says it when the lease is given: what has to be wiped
// when it ends. Who holds that record and the certificates of wipes sees without asking anybody whether one is missing.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/evidence/record.hpp"

namespace bulkhead::evidence {

struct LeaseUnit {
    std::string node, unit;  // "gpu3/slices 4-7", "drive0", "vf12"
    std::string serial{};    // of a drive, where it was known: another one in its place is not it
    bool shared = false;     // others may be on it too, and who leaves last has it wiped
    friend bool operator==(const LeaseUnit&, const LeaseUnit&) = default;
};

// In the record's detail: for each node its units, one in a line, with what is to be known of it.
Record lease_units(std::string_view lease, std::span<const LeaseUnit> units);
Result<std::vector<LeaseUnit>> units_of(const Record& lease_units);

// A device of a node and a run of its memory slices; of what is not cut, the first.
struct UnitRange {
    std::string_view device;  // "gpu3", "drive0"
    unsigned first = 0, last = 0;
};
UnitRange range_of(std::string_view unit);
bool overlap(std::string_view left, std::string_view right);

// A wipe that is on record, as far as it matters here.
struct WipeOnRecord {
    std::int64_t index = 0;
    std::string node, unit, device, lease, tenant;
};

struct LeaseOnRecord {
    std::int64_t index = 0;  // of its record
    std::string name, tenant;
    std::vector<LeaseUnit> units;
};

// Whether this wipe is of something the unit is, after the lease had it. Of what is shared the wipe is the one of
// whoever left last, and names the tenant of this one among those who were there.
bool is_wipe_of(const WipeOnRecord& wipe, const LeaseUnit& unit, const LeaseOnRecord& lease);

// The places in lease.units of which some slice was wiped by none of these.
std::vector<std::size_t> not_wiped(const LeaseOnRecord& lease, std::span<const WipeOnRecord> wipes);

}  // namespace bulkhead::evidence
