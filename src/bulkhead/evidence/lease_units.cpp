#include "bulkhead/evidence/lease_units.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

namespace bulkhead::evidence {

namespace {

constexpr std::string_view shared_mark = " shared", serial_mark = " = ", slices_mark = "/slices ";

std::optional<unsigned> slice_number(std::string_view text) {
    unsigned number = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
    if (text.empty() || read.ec != std::errc{} || read.ptr != text.data() + text.size()) return std::nullopt;
    return number;
}

}  // namespace

Record lease_units(std::string_view lease, std::span<const LeaseUnit> units) {
    Record record{.kind = RecordKind::lease_units, .actor = "core"};
    record.lease = lease;
    for (const LeaseUnit& one : units) {
        std::string& text = record.detail[one.node];
        if (!text.empty()) text += '\n';
        text += one.unit;
        if (one.shared) text += shared_mark;
        if (!one.serial.empty()) text.append(serial_mark).append(one.serial);
    }
    return record;
}

Result<std::vector<LeaseUnit>> units_of(const Record& lease_units) {
    if (lease_units.kind != RecordKind::lease_units || lease_units.lease.empty())
        return fail(Code::invalid,
                    fmt::format("a record of kind {} does not say what a lease consists of", word(lease_units.kind)),
                    "give the record of kind lease-units");
    std::vector<LeaseUnit> units;
    for (const auto& [node, text] : lease_units.detail)
        for (std::size_t at = 0; at <= text.size();) {
            const std::size_t end = std::min(text.find('\n', at), text.size());
            std::string_view line = std::string_view{text}.substr(at, end - at);
            LeaseUnit one{.node = node, .unit = {}};
            if (const std::size_t mark = line.find(serial_mark); mark != line.npos) {
                one.serial = line.substr(mark + serial_mark.size());
                line = line.substr(0, mark);
            }
            one.shared = line.ends_with(shared_mark);
            if (one.shared) line.remove_suffix(shared_mark.size());
            if (line.empty())
                return fail(Code::invalid, fmt::format("the record of lease {} has an empty line", lease_units.lease),
                            "give the record that the control plane wrote");
            one.unit = line;
            units.push_back(std::move(one));
            at = end + 1;
        }
    return units;
}

UnitRange range_of(std::string_view unit) {
    const std::size_t mark = unit.find(slices_mark);
    if (mark == unit.npos) return {.device = unit};
    const std::string_view slices = unit.substr(mark + slices_mark.size());
    const std::size_t dash = slices.find('-');
    if (dash == slices.npos) return {.device = unit};
    const auto first = slice_number(slices.substr(0, dash)), last = slice_number(slices.substr(dash + 1));
    if (!first || !last || *last < *first || *last - *first >= 1024) return {.device = unit};
    return {unit.substr(0, mark), *first, *last};
}

bool overlap(std::string_view left, std::string_view right) {
    const UnitRange a = range_of(left), b = range_of(right);
    return a.device == b.device && a.first <= b.last && b.first <= a.last;
}

bool is_wipe_of(const WipeOnRecord& wipe, const LeaseUnit& unit, const LeaseOnRecord& lease) {
    if (wipe.node != unit.node || wipe.index <= lease.index || !overlap(wipe.unit, unit.unit)) return false;
    if (!unit.serial.empty() && wipe.device != unit.serial) return false;
    return wipe.lease == lease.name || (unit.shared && !lease.tenant.empty() && wipe.tenant == lease.tenant);
}

std::vector<std::size_t> not_wiped(const LeaseOnRecord& lease, std::span<const WipeOnRecord> wipes) {
    std::map<std::string_view, std::vector<const WipeOnRecord*>> by_node;
    for (const WipeOnRecord& wipe : wipes) by_node[wipe.node].push_back(&wipe);
    std::vector<std::size_t> missing;
    for (std::size_t i = 0; i < lease.units.size(); ++i) {
        const LeaseUnit& unit = lease.units[i];
        const UnitRange wanted = range_of(unit.unit);
        std::vector<bool> wiped(wanted.last - wanted.first + 1);
        for (const WipeOnRecord* wipe : by_node[unit.node]) {
            if (!is_wipe_of(*wipe, unit, lease)) continue;
            const UnitRange range = range_of(wipe->unit);
            for (unsigned slice = std::max(range.first, wanted.first); slice <= std::min(range.last, wanted.last);
                 ++slice)
                wiped[slice - wanted.first] = true;
        }
        if (std::ranges::find(wiped, false) != wiped.end()) missing.push_back(i);
    }
    return missing;
}

}  // namespace bulkhead::evidence
