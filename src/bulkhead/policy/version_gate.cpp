#include "bulkhead/policy/version_gate.hpp"

#include <algorithm>
#include <charconv>
#include <tuple>

#include "bulkhead/base/result.hpp"

namespace bulkhead {
namespace {

// The numbers of "v580.159.04"; nothing when it holds anything else. A suffix such as "-rc.1" may mean before or after,
// so it is not guessed at.
std::optional<std::vector<std::uint64_t>> numbers_of(std::string_view text) {
    if (text.starts_with('v')) text.remove_prefix(1);
    std::vector<std::uint64_t> numbers;
    while (true) {
        const std::string_view part = text.substr(0, text.find('.'));
        std::uint64_t number{};
        const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
        if (part.empty() || error != std::errc{} || end != part.data() + part.size()) return std::nullopt;
        numbers.push_back(number);
        if (part.size() == text.size()) return numbers;
        text.remove_prefix(part.size() + 1);
    }
}

int compare(std::vector<std::uint64_t> a, std::vector<std::uint64_t> b) {
    const std::size_t longest = std::max(a.size(), b.size());
    a.resize(longest);  // 1.17 is 1.17.0
    b.resize(longest);
    const auto order = a <=> b;
    return order < 0 ? -1 : order > 0 ? 1 : 0;
}

// What the fixed versions say of an installed one.
struct Standing {
    bool vulnerable = true;
    std::string wanted;  // empty: no fix on that branch
};

std::string any_of(const std::vector<FixedVersion>& fixed) {
    std::string text;
    for (const FixedVersion& fix : fixed) text += (text.empty() ? "" : " or ") + fix.version;
    return text;
}

// A branch is the beginning of a version: 580 of 580.159.04, 1.17 of 1.17.8; the longest that fits decides. A branch
// newer than all that are listed was cut after the fix. An older one that is not listed never got it.
Standing standing_of(std::string_view installed, const std::vector<FixedVersion>& fixed) {
    const auto version = numbers_of(installed);
    if (!version) return {true, any_of(fixed)};

    const FixedVersion* match = nullptr;
    std::size_t match_length = 0;
    bool newer_than_all = true;
    for (const FixedVersion& fix : fixed) {
        const auto branch = fix.branch.empty() ? std::vector<std::uint64_t>{} : numbers_of(fix.branch);
        if (!branch) {  // a branch we cannot read fits nothing, and vouches for nothing
            newer_than_all = false;
            continue;
        }
        std::vector<std::uint64_t> begins = *version;
        begins.resize(std::min(begins.size(), branch->size()));
        const int order = compare(begins, *branch);
        newer_than_all = newer_than_all && order > 0;
        if (order == 0 && (!match || branch->size() > match_length)) {
            match = &fix;
            match_length = branch->size();
        }
    }
    if (!match) return {fixed.empty() || !newer_than_all, {}};
    const auto first_fixed = numbers_of(match->version);
    if (!first_fixed) return {true, match->version};
    return {compare(*version, *first_fixed) < 0, match->version};
}

bool replaces(const Advisory& own, const Advisory& shipped) {
    return own.id == shipped.id && own.component == shipped.component;
}

Instant due_of(const Advisory& advisory, const DueDays& days) {
    if (advisory.due) return *advisory.due;
    switch (advisory.severity) {
        case Severity::critical:
            return advisory.published + Duration::days(days.critical);
        case Severity::high:
            return advisory.published + Duration::days(days.high);
        case Severity::medium:
            return advisory.published + Duration::days(days.medium);
        case Severity::low:
            return advisory.published + Duration::days(days.low);
    }
    stop_for_bug("every severity has its days", std::source_location::current());
}

bool has(const GpuNode& node, Capability capability) {
    return std::ranges::any_of(node.status.capabilities,
                               [&](const DetectedCapability& found) { return found.name == capability; });
}

// A node that can do what only this software does has it, whether or not it names a version. On a host of vGPUs the
// manager is the driver.
bool must_have(const GpuNode& node, Component component) {
    const bool vgpu_host = has(node, Capability::vgpu) || has(node, Capability::mig_vgpu);
    const bool nvidia_driver = !vgpu_host && (has(node, Capability::mig) || has(node, Capability::mps));
    switch (component) {
        case Component::driver:
            return nvidia_driver;
        case Component::container_toolkit:  // what the container tier stands on
            return nvidia_driver;
        case Component::vgpu_manager:
            return vgpu_host;
        default:
            return false;
    }
}

void judge(const Advisory& advisory, const GpuNode& node, const DueDays& days, Instant now,
           std::vector<OpenAdvisory>& open) {
    const auto add = [&](std::string installed, std::string wanted) {
        const Instant due = due_of(advisory, days);
        open.push_back({advisory, std::move(installed), std::move(wanted), due, now > due});
    };
    bool named = false;
    for (const InstalledVersion& found : node.status.versions) {
        if (found.component != advisory.component) continue;
        named = true;
        if (found.version == not_installed) continue;
        Standing standing = standing_of(found.version, advisory.fixed);
        if (!standing.vulnerable) continue;
        add(found.version, std::move(standing.wanted));
        return;  // two installed versions of one component are one flaw
    }
    if (!named && must_have(node, advisory.component)) add("", any_of(advisory.fixed));
}

}  // namespace

std::optional<int> compare_versions(std::string_view a, std::string_view b) {
    auto left = numbers_of(a), right = numbers_of(b);
    if (!left || !right) return std::nullopt;
    return compare(std::move(*left), std::move(*right));
}

std::vector<OpenAdvisory> open_advisories(const GpuNode& node, const FleetPolicySpec& policy, Instant now) {
    const VersionGate& gate = policy.versionGate;
    std::vector<OpenAdvisory> open;
    for (const Advisory& own : gate.advisories) judge(own, node, gate.dueDays, now, open);
    if (gate.shippedAdvisories)
        for (const Advisory& shipped : shipped_advisories())
            if (std::ranges::none_of(gate.advisories, [&](const Advisory& own) { return replaces(own, shipped); }))
                judge(shipped, node, gate.dueDays, now, open);
    std::ranges::sort(open, {}, [](const OpenAdvisory& o) {
        return std::tuple{std::string_view{o.advisory.id}, o.advisory.component, o.due};
    });
    return open;
}

bool closes(const OpenAdvisory& open, Tier tier, Mechanism mechanism) {
    const auto concerns = [](const auto& listed, auto value) {
        return listed.empty() || std::ranges::find(listed, value) != listed.end();
    };
    return open.overdue && concerns(open.advisory.closesTiers, tier) &&
           concerns(open.advisory.closesMechanisms, mechanism);
}

}  // namespace bulkhead
