// All of what a lease left: every wipe that is on record, in pages, and by the lease's own record what none is of.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "bulkhead/shell/certificates.hpp"

namespace bulkhead::shell {

using evidence::RecordKind;

// The newest first. Of what is shared, also the wipe of whoever left last, as far as it was this tenant's dirt.
std::vector<Certificates::Wipe> Certificates::wipes_of(const std::string& name, const evidence::LeaseOnRecord* lease,
                                                       std::int64_t size) const {
    std::map<std::int64_t, Wipe, std::greater<>> found;
    if (const auto own = by_lease_.find(name); own != by_lease_.end())
        for (const Wipe& wipe : own->second)
            if (wipe.index < size) found.emplace(wipe.index, wipe);
    if (lease != nullptr)
        for (const evidence::LeaseUnit& unit : lease->units) {
            const auto there = by_node_.find(unit.node);
            if (!unit.shared || there == by_node_.end()) continue;
            const auto first = std::ranges::upper_bound(there->second, lease->index, {}, &Wipe::index);
            const auto last = std::ranges::find_if(first, there->second.end(), [&](const Wipe& wipe) {
                return wipe.tenant == lease->tenant && evidence::overlap(wipe.unit, unit.unit);
            });
            if (last != there->second.end() && last->index < size) found.emplace(last->index, *last);
        }
    std::vector<Wipe> out;
    out.reserve(found.size());
    for (auto& [index, wipe] : found) out.push_back(std::move(wipe));
    return out;
}

// For each slice of the unit the entry from which on it is not this lease's any more, whatever was wiped of it: it was
// wiped for whomever, somebody else was given it, or its node was removed, and another may have its name. Leases on
// what is shared come and go beside each other.
std::vector<std::int64_t> Certificates::ends_of(const evidence::LeaseUnit& unit,
                                                const evidence::LeaseOnRecord& lease) const {
    const evidence::UnitRange own = evidence::range_of(unit.unit);
    std::vector<std::int64_t> ends(own.last - own.first + 1, std::numeric_limits<std::int64_t>::max());
    const auto end = [&](std::int64_t index, const evidence::UnitRange& what) {
        if (what.device != own.device) return;
        for (unsigned slice = std::max(what.first, own.first); slice <= std::min(what.last, own.last); ++slice)
            ends[slice - own.first] = std::min(ends[slice - own.first], index);
    };
    if (const auto there = by_node_.find(unit.node); there != by_node_.end())
        for (auto it = std::ranges::upper_bound(there->second, lease.index, {}, &Wipe::index);
             it != there->second.end(); ++it)
            end(it->index, evidence::range_of(it->unit));
    const auto given = handed_on_.find(unit.node);
    if (given == handed_on_.end()) return ends;
    for (auto it = std::ranges::upper_bound(given->second, lease.index, {}, &HandedOn::index);
         it != given->second.end(); ++it) {
        const bool beside_it = it->lease == lease.name || (unit.shared && it->shared);
        if (it->unit.empty() || !beside_it) end(it->index, it->unit.empty() ? own : evidence::range_of(it->unit));
    }
    return ends;
}

// The last that the log tells of it while it was the lease's to be wiped; what is gone is gone for good, whatever
// becomes of the one in its place. What names a tenant is told to that one, and nobody else.
const Certificates::Setback* Certificates::setback_of(const evidence::LeaseUnit& unit,
                                                      const evidence::LeaseOnRecord& lease, std::int64_t size) const {
    const auto there = setbacks_.find(unit.node);
    if (there == setbacks_.end()) return nullptr;
    const evidence::UnitRange own = evidence::range_of(unit.unit);
    const std::vector<std::int64_t> ends = ends_of(unit, lease);
    const auto is_of_it = [&](const Setback& one) {
        if (one.index >= size || !evidence::overlap(one.unit, unit.unit)) return false;
        const evidence::UnitRange range = evidence::range_of(one.unit);
        const auto first = ends.begin() + (std::max(range.first, own.first) - own.first);
        const auto last = ends.begin() + (std::min(range.last, own.last) - own.first);
        if (*std::max_element(first, last + 1) < one.index) return false;
        const bool of_tenant = one.tenant == lease.tenant, of_lease = unit.shared || one.lease == lease.name;
        switch (one.kind) {
            case RecordKind::wipe_failed:
                return of_tenant && of_lease;
            case RecordKind::quarantined:
                return (one.tenant.empty() || of_tenant) && (one.lease.empty() || of_lease);
            case RecordKind::held:
                return of_tenant;
            default:
                return true;
        }
    };
    const auto is_gone = [&](const Setback& one) {
        return one.gone && (unit.serial.empty() || *one.gone == unit.serial.substr(0, 64));
    };
    const Setback* found = nullptr;
    for (auto it = std::ranges::upper_bound(there->second, lease.index, {}, &Setback::index); it != there->second.end();
         ++it) {
        if (!is_of_it(*it)) continue;
        found = &*it;
        if (is_gone(*it)) break;
    }
    return found;
}

Result<> Certificates::add_account(evidence::CertificateList& list, const evidence::LeaseOnRecord& lease,
                                   const std::vector<Wipe>& wipes, const Tree& tree) {
    auto consists = certified(lease.index, tree);
    if (!consists) return std::unexpected(consists.error());
    list.consists = *std::move(consists);
    const auto from = reader();
    if (!from) return std::unexpected(from.error());
    std::vector<evidence::WipeOnRecord> on_record;
    on_record.reserve(wipes.size());
    for (const Wipe& wipe : wipes) {
        const auto leaf = (*from)->leaf(wipe.index);
        if (!leaf) return std::unexpected(leaf.error());
        const auto record = evidence::read_record(leaf->payload);
        if (!record) continue;
        evidence::WipeOnRecord one{.index = wipe.index,
                                   .node = record->node,
                                   .unit = record->unit,
                                   .device = {},
                                   .lease = record->lease,
                                   .tenant = wipe.tenant};
        if (record->evidence)
            if (const auto statement = evidence::read_statement(record->evidence->statement))
                one.device = statement->device;
        on_record.push_back(std::move(one));
    }
    for (const std::size_t at : evidence::not_wiped(lease, on_record)) {
        const evidence::LeaseUnit& unit = lease.units[at];
        const Setback* const back = setback_of(unit, lease, tree.size);
        const auto lifted = lifted_.find(lease.tenant);
        const bool over = back == nullptr || back->kind == RecordKind::released_from_quarantine ||
                          (back->kind == RecordKind::held && lifted != lifted_.end() && lifted->second > back->index);
        list.unwiped.push_back({.node = unit.node,
                                .unit = unit.unit,
                                .state = over ? "awaited" : std::string{word(back->kind)},
                                .why = over ? std::string{} : back->why});
        if (over || back->kind != RecordKind::wipe_failed) continue;
        auto failed = certified(back->index, tree);
        if (!failed) return std::unexpected(failed.error());
        list.failed.push_back(*std::move(failed));
    }
    return {};
}

Result<evidence::CertificateList> Certificates::of_lease(const std::string& name, const Page& page,
                                                         const std::string& tenant) {
    wait_for_what_is_committed();
    const std::lock_guard lock{mutex_};
    const auto none = [&](const std::string& why = {}) {
        return fail(Code::not_found, fmt::format("no wipe of lease {} is on record{}", name, why),
                    "a lease is wiped when it ends; ask again when it is closed");
    };
    const auto tree = newest_tree();
    if (!tree && tree.error().code == Code::not_found) return none();  // nothing was published yet
    if (!tree) return std::unexpected(tree.error());
    const std::string whose = tenant.empty() ? std::string{} : pseudonym_of(tenant);

    std::optional<evidence::LeaseOnRecord> lease;
    if (const auto entry = leases_.find(name);
        entry != leases_.end() && (whose.empty() || entry->second.tenant == whose)) {
        const auto from = reader();
        if (!from) return std::unexpected(from.error());
        const auto leaf = (*from)->leaf(entry->second.index);
        if (!leaf) return std::unexpected(leaf.error());
        const auto record = evidence::read_record(leaf->payload);
        auto units = record ? evidence::units_of(*record) : std::unexpected(record.error());
        if (!units) return std::unexpected(units.error());
        lease = {
            .index = entry->second.index, .name = name, .tenant = entry->second.tenant, .units = *std::move(units)};
    }
    std::vector<Wipe> wipes = wipes_of(name, lease ? &*lease : nullptr, tree->size);
    if (!whose.empty()) std::erase_if(wipes, [&](const Wipe& wipe) { return wipe.tenant != whose; });

    evidence::CertificateList list{.version = std::string{evidence::lease_certificates_version}, .lease = name};
    list.total = std::ssize(wipes);
    if (lease && !page.from)
        if (auto added = add_account(list, *lease, wipes, *tree); !added) return std::unexpected(added.error());
    if (wipes.empty()) {  // also where there are some, and they are somebody else's
        std::string why;
        for (const evidence::Unwiped& one : list.unwiped)
            if (why.size() < 1000 && one.state != "awaited")
                why += fmt::format("{}{} {} is {}{}{}", why.empty() ? ": " : "; ", one.node, one.unit, one.state,
                                   one.why.empty() ? "" : ": ", one.why);
        return none(why);
    }
    for (const Wipe& wipe : wipes) {
        if (page.from && wipe.index > *page.from) continue;
        if (list.certificates.size() == page.limit) {
            list.next = wipe.index;
            break;
        }
        auto certificate = certified(wipe.index, *tree);
        if (!certificate) return std::unexpected(certificate.error());
        list.certificates.push_back(*std::move(certificate));
    }
    return list;
}

}  // namespace bulkhead::shell
