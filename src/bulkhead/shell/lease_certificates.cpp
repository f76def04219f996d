// All of what a lease left: every wipe that is on record, in pages, and by the lease's own record what none is of.
#include <fmt/format.h>

#include <algorithm>

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

// The last that the log tells of it since the lease had it. A hold is told to whom it is on, and nobody else.
const Certificates::Setback* Certificates::setback_of(const evidence::LeaseUnit& unit,
                                                      const evidence::LeaseOnRecord& lease, std::int64_t size) const {
    const auto there = setbacks_.find(unit.node);
    if (there == setbacks_.end()) return nullptr;
    const auto is_of_it = [&](const Setback& one) {
        if (one.index <= lease.index || one.index >= size || !evidence::overlap(one.unit, unit.unit)) return false;
        if (one.kind == RecordKind::wipe_failed)
            return one.tenant == lease.tenant && (unit.shared || one.lease == lease.name);
        return one.kind != RecordKind::held || one.tenant == lease.tenant;
    };
    const auto last = std::find_if(there->second.rbegin(), there->second.rend(), is_of_it);
    return last == there->second.rend() ? nullptr : &*last;
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
