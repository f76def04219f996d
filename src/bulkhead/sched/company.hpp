// Who sits somewhere, in one word: nobody, one tenant, several of one trust domain, or strangers; and what the least
// tolerant of them bears, of two things.
//
// Enough to answer exactly whether one more may join, because trust is one of three and all that sit there bear what is
// there already.
#pragma once

#include <algorithm>
#include <cstdint>

#include "bulkhead/model/terms.hpp"

namespace bulkhead::sched {

class Company {
public:
    enum class Kind : std::uint8_t { nobody, tenant, domain, strangers };

    constexpr Company() = default;

    constexpr Kind kind() const { return static_cast<Kind>(word_ & 3u); }
    constexpr bool empty() const { return kind() == Kind::nobody; }
    constexpr PeerTrust bears() const { return static_cast<PeerTrust>(word_ >> 2 & 3u); }
    constexpr PeerTrust bears_closer() const { return static_cast<PeerTrust>(word_ >> 4 & 3u); }
    constexpr std::uint32_t id() const { return word_ >> 6; }  // of the tenant or domain
    constexpr std::uint32_t word() const { return word_; }

    // Domain 0 trusts nobody. `domain_of` says a tenant's.
    template <class DomainOf>
    constexpr Company with(std::uint32_t tenant, PeerTrust bears, PeerTrust bears_closer,
                           const DomainOf& domain_of) const {
        if (empty()) return Company{Kind::tenant, tenant, bears, bears_closer};
        const PeerTrust least = std::min(bears, this->bears());
        const PeerTrust least_closer = std::min(bears_closer, this->bears_closer());
        if (kind() == Kind::tenant && id() == tenant) return Company{Kind::tenant, tenant, least, least_closer};
        const std::uint32_t domain = domain_of(tenant), here = domain_here(domain_of);
        if (domain != 0 && domain == here) return Company{Kind::domain, domain, least, least_closer};
        return Company{Kind::strangers, 0, least, least_closer};
    }

    // The least trust between a tenant and anybody here.
    template <class DomainOf>
    constexpr PeerTrust trust(std::uint32_t tenant, const DomainOf& domain_of) const {
        if (empty() || (kind() == Kind::tenant && id() == tenant)) return PeerTrust::same_tenant;
        const std::uint32_t domain = domain_of(tenant);
        return domain != 0 && domain == domain_here(domain_of) ? PeerTrust::same_domain : PeerTrust::distrusting;
    }

    // 0: not of one domain.
    template <class DomainOf>
    constexpr std::uint32_t domain_here(const DomainOf& domain_of) const {
        if (kind() == Kind::tenant) return domain_of(id());
        return kind() == Kind::domain ? id() : 0;
    }

    friend constexpr auto operator<=>(Company, Company) = default;

private:
    constexpr Company(Kind kind, std::uint32_t id, PeerTrust bears, PeerTrust closer)
        : word_{static_cast<std::uint32_t>(kind) | static_cast<std::uint32_t>(bears) << 2 |
                static_cast<std::uint32_t>(closer) << 4 | id << 6} {}
    std::uint32_t word_ = 0;
};

}  // namespace bulkhead::sched
