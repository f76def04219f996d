// The operator's side: a domain lists its members, an exception carries its consents, a price is there once.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "bulkhead/model/findings.hpp"

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
    std::set<std::tuple<std::string_view, std::string_view, bool, std::string_view>> seen;
    for (std::size_t i = 0; i < list.prices.size(); ++i) {
        const UnitPrice& price = list.prices[i];
        const std::string place = fmt::format("{}/prices/{}", path, i);
        if (!seen.emplace(price.model, price.profile, price.shared, price.tenantClass).second)
            findings.add(subject, place,
                         fmt::format("price list {} has two prices for {}{}{}{}{}", list.name, price.model,
                                     price.profile.empty() ? "" : " ", price.profile, price.shared ? ", shared" : "",
                                     price.tenantClass.empty() ? "" : " of class " + price.tenantClass),
                         "keep one of the two");
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
    });
}

}  // namespace bulkhead
