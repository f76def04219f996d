// What tenants are to each other, by number: asked thousands of times for one placement.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/model/snapshot.hpp"

namespace bulkhead::sched {

using TenantNo = std::uint32_t;

class Relations {
public:
    // Numbers stay what they are for as long as the object lives; a tenant that is gone keeps its number.
    TenantNo number(std::string_view tenant);
    const std::string& name(TenantNo tenant) const { return names_[tenant]; }
    std::size_t size() const { return names_.size(); }

    // Reads domains and parents anew. The snapshot must be consistent.
    void update(const Snapshot& snapshot);

    PeerTrust trust(TenantNo a, TenantNo b) const {
        if (a == b) return PeerTrust::same_tenant;
        return domain_[a] != 0 && domain_[a] == domain_[b] ? PeerTrust::same_domain : PeerTrust::distrusting;
    }
    std::uint32_t domain(TenantNo tenant) const { return domain_[tenant]; }  // 0: trusts nobody
    // The tenant and everyone above it, itself first.
    const std::vector<TenantNo>& line(TenantNo tenant) const { return lines_[tenant]; }

private:
    std::map<std::string, TenantNo, std::less<>> numbers_;
    std::vector<std::string> names_;
    std::vector<std::uint32_t> domain_;  // 0: trusts nobody
    std::vector<std::vector<TenantNo>> lines_;
};

}  // namespace bulkhead::sched
