// The operator's side: a domain lists its members, an exception carries its consents, a price is there once.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "bulkhead/model/findings.hpp"
#include "bulkhead/model/subnet.hpp"

namespace bulkhead {

namespace {

// The names of a list that occur again, each with the place of the repetition.
template <class T>
void check_repeated(Findings& findings, const Subject& subject, const std::vector<T>& list, std::string_view path,
                    std::string_view what, auto name_of) {
    std::set<std::string_view> seen;
    for (std::size_t i = 0; i < list.size(); ++i)
        if (!seen.insert(name_of(list[i])).second)
            findings.add(
                subject, fmt::format("{}/{}", path, i),
                fmt::format("{} \"{}\" is listed twice, the second time as number {}", what, name_of(list[i]), i + 1),
                "keep one of the two");
}

constexpr auto by_name = [](const auto& item) -> std::string_view { return item.name; };
constexpr auto itself = [](const std::string& item) -> std::string_view { return item; };

void check_domain(Findings& findings, const Subject& subject, const TrustDomain& domain, const std::string& path) {
    check_repeated(findings, subject, domain.members, path + "/members",
                   fmt::format("in trust domain {}, member", domain.name), itself);
    for (std::size_t i = 0; i < domain.members.size(); ++i) {
        const std::string& member = domain.members[i];
        const std::string place = fmt::format("{}/members/{}", path, i);
        const Tenant* tenant = findings.find<Tenant>(member);
        if (!tenant) {
            findings.add(subject, place,
                         fmt::format("trust domain {} lists \"{}\", and there is no such tenant", domain.name, member),
                         findings.remedy<Tenant>(member, "remove it from the domain"));
            continue;
        }
        const auto& named = tenant->spec.trustDomain;
        if (named && named->name == domain.name) continue;
        findings.add(
            subject, place,
            fmt::format("trust domain {} lists {}, which {}; trust takes both sides", domain.name, member,
                        named ? fmt::format("names the domain {}", named->name) : "names no domain"),
            fmt::format("set spec.trustDomain of Tenant {} to {} with its consent, or remove it from the domain",
                        member, domain.name));
    }
}

void check_consents(Findings& findings, const Subject& subject, const TierException& exception,
                    const std::string& path) {
    std::set<std::string_view> consented;
    for (std::size_t i = 0; i < exception.consents.size(); ++i) {
        const TenantConsent& consent = exception.consents[i];
        const std::string place = fmt::format("{}/consents/{}", path, i);
        if (std::ranges::find(exception.tenants, consent.tenant) == exception.tenants.end())
            findings.add(subject, place + "/tenant",
                         fmt::format("exception {} carries a consent of {}, which it does not cover", exception.name,
                                     consent.tenant),
                         "remove the consent, or list the tenant");
        if (!consented.insert(consent.tenant).second)
            findings.add(subject, place + "/tenant",
                         fmt::format("exception {} carries two consents of {}", exception.name, consent.tenant),
                         "keep one of the two");
        if (consent.by.empty())
            findings.add(
                subject, place + "/by",
                fmt::format("exception {}: nobody is named who consents for {}", exception.name, consent.tenant),
                "name a person or role that can be asked");
    }
    for (std::size_t i = 0; i < exception.tenants.size(); ++i)
        if (!consented.contains(exception.tenants[i]))
            findings.add(subject, fmt::format("{}/tenants/{}", path, i),
                         fmt::format("exception {} covers {} without its consent; {} of {} tenants consent",
                                     exception.name, exception.tenants[i], consented.size(), exception.tenants.size()),
                         "add the tenant's own consent: tenant, by, at");
}

void check_exception(Findings& findings, const Subject& subject, const TierException& exception,
                     const std::string& path) {
    check_repeated(findings, subject, exception.tenants, path + "/tenants",
                   fmt::format("in exception {}, tenant", exception.name), itself);
    if (exception.tenants.size() < 2)
        findings.add(subject, path + "/tenants",
                     fmt::format("exception {} covers {} tenants; it takes at least 2", exception.name,
                                 exception.tenants.size()),
                     "list the tenants that may share");
    for (std::size_t i = 0; i < exception.tenants.size(); ++i)
        if (!findings.find<Tenant>(exception.tenants[i]))
            findings.add(subject, fmt::format("{}/tenants/{}", path, i),
                         fmt::format("exception {} covers \"{}\", and there is no such tenant", exception.name,
                                     exception.tenants[i]),
                         findings.remedy<Tenant>(exception.tenants[i], "remove it from the exception"));
    check_consents(findings, subject, exception, path);
    if (exception.tier > Tier::container)
        findings.add(subject, path + "/tier",
                     fmt::format("exception {} sets tier {}; an exception only lowers, to process or container",
                                 exception.name, word(exception.tier)),
                     "container, or no exception at all");
    if (exception.grantedBy.empty())
        findings.add(subject, path + "/grantedBy", fmt::format("exception {} is granted by nobody", exception.name),
                     "name the security admin who grants it");
    if (exception.reason.empty())
        findings.add(subject, path + "/reason", fmt::format("exception {} has no reason", exception.name),
                     "say why, for whoever reads the contract");
}

bool is_currency(std::string_view text) {
    return text.size() == 3 && std::ranges::all_of(text, [](char c) { return c >= 'A' && c <= 'Z'; });
}

void check_prices(Findings& findings, const Subject& subject, const PriceList& list, const std::string& path) {
    std::set<std::tuple<std::string_view, std::string_view, bool, bool, std::string_view>> seen;
    for (std::size_t i = 0; i < list.prices.size(); ++i) {
        const UnitPrice& price = list.prices[i];
        const std::string place = fmt::format("{}/prices/{}", path, i);
        if (!seen.emplace(price.model, price.profile, price.shared, price.exclusive, price.tenantClass).second)
            findings.add(subject, place,
                         fmt::format("price list {} has two prices for {}{}{}{}{}{}", list.name, price.model,
                                     price.profile.empty() ? "" : " ", price.profile, price.shared ? ", shared" : "",
                                     price.exclusive ? ", exclusive" : "",
                                     price.tenantClass.empty() ? "" : " of class " + price.tenantClass),
                         "keep one of the two");
        if (price.exclusive && (price.shared || !price.profile.empty()))
            findings.add(subject, place + "/exclusive",
                         fmt::format("price list {} has an exclusive price for {} {}; capacity that is kept closed is "
                                     "counted in whole GPUs",
                                     list.name, price.model, price.profile.empty() ? "shares" : price.profile),
                         "leave out profile and shared: the price is for one whole GPU");
        const bool shipped = std::ranges::find(shipped_classes, price.tenantClass) != shipped_classes.end();
        if (!price.tenantClass.empty() && !shipped && !findings.find<TenantClass>(price.tenantClass)) {
            std::vector<std::string_view> known{shipped_classes.begin(), shipped_classes.end()};
            for (const TenantClass& one : findings.snapshot.classes) known.push_back(one.metadata.name);
            findings.add(
                subject, place + "/class",
                fmt::format("price list {} names class \"{}\", and there is none", list.name, price.tenantClass),
                findings.remedy(price.tenantClass, known, "leave the class out: the price is for all"));
        }
    }
}

void check_pricing(Findings& findings, const Subject& subject, const Pricing& pricing) {
    check_repeated(findings, subject, pricing.lists, "/spec/pricing/lists", "price list", by_name);
    if (!pricing.currency.empty() && !is_currency(pricing.currency))
        findings.add(subject, "/spec/pricing/currency",
                     fmt::format("\"{}\" is no currency: three capital letters name one", pricing.currency), "EUR");
    if (pricing.currency.empty() && !pricing.lists.empty())
        findings.add(subject, "/spec/pricing/currency", "there are price lists, and no currency", "EUR");
    for (std::size_t i = 0; i < pricing.lists.size(); ++i) {
        const PriceList& list = pricing.lists[i];
        const std::string place = fmt::format("/spec/pricing/lists/{}", i);
        check_prices(findings, subject, list, place);
        for (std::size_t j = 0; j < i; ++j)
            if (pricing.lists[j].validFrom == list.validFrom)
                findings.add(subject, place + "/validFrom",
                             fmt::format("price lists {} and {} both begin at {}; only one can be in force",
                                         pricing.lists[j].name, list.name, print(list.validFrom)),
                             "let one begin later");
    }
}

// Networks in which a tenant's address would mean something else to every host.
constexpr Subnet not_for_tenants[] = {{0x00000000, 8}, {0x7F000000, 8}, {0xA9FE0000, 16}, {0xE0000000, 3}};

void check_range(Findings& findings, const Subject& subject, const std::optional<NumberRange>& range,
                 std::string_view name, NumberRange allowed, std::string_view why) {
    if (!range) return;
    const std::string path = fmt::format("/spec/fabric/{}", name);
    if (range->last < range->first)
        findings.add(subject, path, fmt::format("{} from {} to {} are none", name, range->first, range->last),
                     "the first is the smaller");
    else if (range->first < allowed.first || range->last > allowed.last)
        findings.add(subject, path,
                     fmt::format("{} from {} to {} go beyond {} to {}: {}", name, range->first, range->last,
                                 allowed.first, allowed.last, why),
                     fmt::format("first: {}, last: {}", allowed.first, allowed.last));
}

void check_fabric_classes(Findings& findings, const Subject& subject, const FabricPolicy& fabric) {
    check_repeated(findings, subject, fabric.classes, "/spec/fabric/classes", "class",
                   [](const FabricClass& one) -> std::string_view { return one.tenantClass; });
    std::map<std::int64_t, std::int64_t> shares;
    for (std::size_t i = 0; i < fabric.classes.size(); ++i) {
        const FabricClass& one = fabric.classes[i];
        const std::string place = fmt::format("/spec/fabric/classes/{}", i);
        const bool shipped = std::ranges::find(shipped_classes, one.tenantClass) != shipped_classes.end();
        if (!one.tenantClass.empty() && !shipped && !findings.find<TenantClass>(one.tenantClass)) {
            std::vector<std::string_view> known{shipped_classes.begin(), shipped_classes.end()};
            for (const TenantClass& other : findings.snapshot.classes) known.push_back(other.metadata.name);
            findings.add(subject, place + "/class",
                         fmt::format("the fabric names class \"{}\", and there is none", one.tenantClass),
                         findings.remedy(one.tenantClass, known, "leave the class out: it is for all others"));
        }
        // What networks are run with: whoever is marked so goes before everybody.
        if (one.dscp >= 48)
            findings.add(subject, place + "/dscp",
                         fmt::format("mark {} is of those from 48 up, which control packets have", one.dscp),
                         "a mark below 48");
        if (!one.sharePercent) continue;
        const auto [at, fresh] = shares.emplace(one.dscp, *one.sharePercent);
        if (!fresh && at->second != *one.sharePercent)
            findings.add(subject, place + "/sharePercent",
                         fmt::format("packets marked {} have two shares, {} and {} percent", one.dscp, at->second,
                                     *one.sharePercent),
                         "one share for one mark");
    }
    std::int64_t sum = 0;
    for (const auto& [dscp, share] : shares) sum += share;
    if (sum > 99)
        findings.add(subject, "/spec/fabric/classes",
                     fmt::format("shares of {} percent together leave nothing for everything else", sum),
                     "99 percent at most, together");
    // Eight priorities: one is for control, one for everything unmarked.
    std::set<std::int64_t> marks;
    for (const FabricClass& one : fabric.classes)
        if (one.dscp != 0) marks.insert(one.dscp);
    // What is unmarked has no share of its own, nor has a mark without one; each gets a percent at least.
    std::int64_t without = 1, asked = 0;
    for (const std::int64_t mark : marks)
        if (const auto share = shares.find(mark); share != shares.end())
            asked += share->second;
        else
            ++without;
    if (sum <= 99 && 100 - asked < without)
        findings.add(subject, "/spec/fabric/classes",
                     fmt::format("shares of {} percent leave less than one for each of {} others", asked, without),
                     "smaller shares");
    if (marks.size() > 6)
        findings.add(subject, "/spec/fabric/classes",
                     fmt::format("{} different marks, and switches have 6 priorities for them", marks.size()),
                     "let classes share marks");
}

void check_fabric(Findings& findings, const Subject& subject, const FabricPolicy& fabric) {
    const bool ethernet = fabric.kind == FabricKind::ethernet;
    if (ethernet && !fabric.vlans)
        findings.add(subject, "/spec/fabric", "an Ethernet fabric without vlans keeps nobody apart",
                     "vlans: {first: 100, last: 3899}");
    if (!ethernet && !fabric.partitionKeys)
        findings.add(subject, "/spec/fabric", "an InfiniBand fabric without partitionKeys keeps nobody apart",
                     "partitionKeys: {first: 256, last: 32000}");
    check_range(findings, subject, fabric.vlans, "vlans", {2, 4094}, "0, 1 and 4095 have meanings of their own");
    check_range(findings, subject, fabric.partitionKeys, "partitionKeys", {1, 32766},
                "0 is none, and 32767 is the default partition");
    check_fabric_classes(findings, subject, fabric);
    if (fabric.losslessPriority == 0 || fabric.losslessPriority == 6)
        findings.add(subject, "/spec/fabric/losslessPriority",
                     fmt::format("priority {} is for {}, and cannot be the lossless one", fabric.losslessPriority,
                                 fabric.losslessPriority == 6 ? "control" : "what is unmarked"),
                     "losslessPriority: 3");
    const auto pool = parse_subnet(fabric.pool);
    if (!pool) {
        const auto address = parse_host_address(fabric.pool);
        return findings.add(
            subject, "/spec/fabric/pool",
            fmt::format("\"{}\" is no IPv4 network{}", fabric.pool, address ? ": it has bits beyond its prefix" : ""),
            address ? print(address->network()) : "10.128.0.0/9");
    }
    if (fabric.tenantPrefix < pool->prefix)
        return findings.add(
            subject, "/spec/fabric/tenantPrefix",
            fmt::format("a subnet of /{} is larger than the pool of /{}", fabric.tenantPrefix, pool->prefix),
            fmt::format("{} to 29", pool->prefix));
    for (const Subnet& other : not_for_tenants)
        if (pool->overlaps(other))
            findings.add(
                subject, "/spec/fabric/pool",
                fmt::format("{} overlaps {}, which means something else to every host", fabric.pool, print(other)),
                "a part of 10.0.0.0/8 that nothing else uses");
}

}  // namespace

void check_bindings(Findings& findings, const Subject& subject, const std::vector<RoleBinding>& bindings,
                    bool (*may_be_bound)(Role)) {
    if (bindings.size() > most_bindings)
        return findings.add(
            subject, "/spec/bindings",
            fmt::format("{} bindings are more than the {} of one object", bindings.size(), most_bindings),
            "bind a group in place of its members");
    for (std::size_t i = 0; i < bindings.size(); ++i) {
        const RoleBinding& binding = bindings[i];
        const std::string path = fmt::format("/spec/bindings/{}", i);
        if (!may_be_bound(binding.role)) {
            std::vector<std::string_view> known;
            for (const Role role : every<Role>())
                if (may_be_bound(role)) known.push_back(word(role));
            findings.add(subject, path + "/role",
                         fmt::format("{} is not bound in a {}", word(binding.role), subject.kind),
                         fmt::format("{}", fmt::join(known, ", ")));
        }
        const int claims = !binding.group.empty() + !binding.clientRole.empty() + !binding.subject.empty();
        if (claims != 1)
            findings.add(subject, path, fmt::format("binding {} is to {} of group, clientRole and subject", i, claims),
                         "exactly one of the three");
        for (std::size_t j = 0; j < i; ++j)
            if (bindings[j] == binding) {
                findings.add(subject, path, fmt::format("binding {} is binding {} again", i, j), "remove it");
                break;
            }
    }
}

void check_policy(Findings& findings) {
    findings.for_each<FleetPolicy>([&](const FleetPolicy& policy, const Subject& subject) {
        const FleetPolicySpec& spec = policy.spec;
        check_repeated(findings, subject, spec.sites, "/spec/sites", "site", by_name);
        check_repeated(findings, subject, spec.trustDomains, "/spec/trustDomains", "trust domain", by_name);
        check_repeated(findings, subject, spec.exceptions, "/spec/exceptions", "exception", by_name);
        check_repeated(findings, subject, spec.versionGate.advisories, "/spec/versionGate/advisories", "advisory",
                       [](const Advisory& advisory) -> std::string_view { return advisory.id; });
        for (std::size_t i = 0; i < spec.trustDomains.size(); ++i)
            check_domain(findings, subject, spec.trustDomains[i], fmt::format("/spec/trustDomains/{}", i));
        for (std::size_t i = 0; i < spec.exceptions.size(); ++i)
            check_exception(findings, subject, spec.exceptions[i], fmt::format("/spec/exceptions/{}", i));
        check_bindings(findings, subject, spec.bindings, may_be_bound_in_policy);
        check_pricing(findings, subject, spec.pricing);
        if (spec.fabric) check_fabric(findings, subject, *spec.fabric);
    });
}

}  // namespace bulkhead
