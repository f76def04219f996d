#include "bulkhead/node/erase_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>

#include "bulkhead/model/describe.hpp"

namespace bulkhead {

namespace {

constexpr std::uint16_t oacs_format = 1U << 1, oacs_namespaces = 1U << 3;
constexpr std::uint8_t fna_erase_is_wide = 1U << 1, fna_crypto = 1U << 2, fna_no_broadcast = 1U << 3;

constexpr auto ladder =
    std::to_array({EraseMethod::sanitize_crypto, EraseMethod::format_crypto, EraseMethod::sanitize_block,
                   EraseMethod::format_erase, EraseMethod::sanitize_overwrite, EraseMethod::host_zeroes});

struct SanitizeKind {
    EraseMethod method;
    std::uint32_t capability;  // bit of SANICAP
    std::uint32_t cdw10;       // the action; no unrestricted exit, blocks deallocated afterwards
    std::string_view name;
};
constexpr auto sanitizes = std::to_array<SanitizeKind>({
    {EraseMethod::sanitize_crypto, 1U << 0, 4, "cryptographic erase"},
    {EraseMethod::sanitize_block, 1U << 1, 2, "block erase"},
    {EraseMethod::sanitize_overwrite, 1U << 2, 3 | (1U << 4), "overwrite"},
});

bool is_format(EraseMethod method) {
    return method == EraseMethod::format_crypto || method == EraseMethod::format_erase;
}
std::uint32_t secure_erase_setting(EraseMethod method) { return (method == EraseMethod::format_crypto ? 2U : 1U) << 9; }

class Planner {
public:
    Planner(const DriveClaims& drive, const ErasePolicy& policy) : drive_{drive}, policy_{policy} {
        // Which of an unknown number of controllers has what, nobody can say: then there are others.
        others_ = drive.several_controllers && drive.other_controllers != 0U;
        for (const DriveNamespace& one : drive.namespaces) (others_ && !one.active ? foreign_ : ours_).push_back(one);
    }

    std::expected<ErasePlan, EraseRefusal> plan() const {
        if (auto refused = what_stands_in_the_way()) return std::unexpected(*std::move(refused));
        for (const EraseMethod method : policy_.order)
            if (!why_not(method)) return with(method);
        return std::unexpected(
            EraseRefusal{.why = "it offers no method that policy allows",
                         .remedy = "allow another one (--erase), knowing what it may claim, or take the drive out",
                         .skipped = reasons(std::nullopt)});
    }

private:
    EraseRefusal refusal(std::string why, std::string remedy) const {
        return {.why = std::move(why), .remedy = std::move(remedy), .skipped = {}};
    }

    // Whatever the method.
    std::optional<EraseRefusal> what_stands_in_the_way() const {
        if (ours_.empty()) return refusal("it has no namespace to erase", "make one, or take the drive out");
        for (const DriveNamespace& one : ours_) {
            if (one.write_protected)
                return refusal(fmt::format("namespace {} is write protected", one.id),
                               "lift the protection, or take the drive out");
            if (others_ && one.shared)
                return refusal(
                    fmt::format("namespace {} is shared with {}, which may write to it meanwhile", one.id, who_else()),
                    "detach the namespace from the others, or take the drive out");
            if (!one.active && (drive_.oacs & oacs_namespaces) == 0)
                return refusal(fmt::format("namespace {} is detached, and the drive cannot attach it", one.id),
                               "delete or attach it with the maker's tool");
        }
        return std::nullopt;
    }

    std::string who_else() const {
        if (!drive_.other_controllers) return "controllers of which the drive does not tell";
        return fmt::format("{} other controller{}", *drive_.other_controllers,
                           *drive_.other_controllers == 1 ? "" : "s");
    }

    // Of a method that erases everything there is, whoever has it.
    std::optional<std::string> why_not_wide() const {
        if (!foreign_.empty())
            return fmt::format("it would erase namespace {} too, which {} may have", foreign_.front().id, who_else());
        if (others_ && !drive_.allocated_known)
            return fmt::format("it would erase whatever {} may have, too", who_else());
        return std::nullopt;
    }

    std::optional<std::string> why_not(EraseMethod method) const {
        if (const auto* kind = std::ranges::find(sanitizes, method, &SanitizeKind::method); kind != sanitizes.end()) {
            if ((drive_.sanicap & kind->capability) == 0)
                return fmt::format("the drive does not claim Sanitize {} (SANICAP {:#x})", kind->name, drive_.sanicap);
            return why_not_wide();
        }
        if (!is_format(method)) return std::nullopt;
        if ((drive_.oacs & oacs_format) == 0)
            return fmt::format("the drive does not claim Format NVM (OACS {:#x})", drive_.oacs);
        if (method == EraseMethod::format_crypto && (drive_.fna & fna_crypto) == 0)
            return fmt::format("the drive does not claim cryptographic erase by Format (FNA {:#x})", drive_.fna);
        if ((drive_.fna & fna_erase_is_wide) != 0) return why_not_wide();
        return std::nullopt;
    }

    // Of all that policy wanted first, and of all that would have allowed a stronger claim.
    std::vector<SkippedMethod> reasons(std::optional<EraseMethod> chosen) const {
        std::vector<SkippedMethod> skipped;
        const auto at = chosen ? std::ranges::find(policy_.order, *chosen) : policy_.order.end();
        for (const EraseMethod method : std::ranges::subrange(policy_.order.begin(), at))
            skipped.push_back({method, why_not(method).value_or("")});
        for (const EraseMethod method : ladder) {
            if (chosen && method >= *chosen) break;
            const auto allowed = std::ranges::find(policy_.order, method);
            if (allowed != policy_.order.end() && allowed < at) continue;
            if (auto impossible = why_not(method))
                skipped.push_back({method, *std::move(impossible)});
            else if (allowed == policy_.order.end())
                skipped.push_back({method, "policy does not allow it"});
            else
                skipped.push_back({method, fmt::format("policy prefers {}", word(*chosen))});
        }
        return skipped;
    }

    ErasePlan with(EraseMethod method) const {
        ErasePlan plan{.method = method, .attach = {}, .commands = {}, .covers = {}, .skipped = reasons(method)};
        for (const DriveNamespace& one : ours_) {
            plan.covers.push_back(one.id);
            if (!one.active) plan.attach.push_back(one.id);
        }
        if (const auto* kind = std::ranges::find(sanitizes, method, &SanitizeKind::method); kind != sanitizes.end())
            plan.commands = {{sanitize_opcode, 0, kind->cdw10}};
        else if (is_format(method))
            plan.commands = formats(method);
        return plan;
    }

    std::vector<EraseCommand> formats(EraseMethod method) const {
        const auto of = [&](const DriveNamespace& one, std::uint32_t nsid) {
            return EraseCommand{format_opcode, nsid, one.format | secure_erase_setting(method)};
        };
        std::vector<EraseCommand> commands;
        if ((drive_.fna & fna_erase_is_wide) != 0) {  // one is for all
            const bool alike = std::ranges::all_of(
                ours_, [&](const DriveNamespace& one) { return one.format == ours_.front().format; });
            const bool broadcast = alike && (drive_.fna & fna_no_broadcast) == 0;
            return {of(ours_.front(), broadcast ? every_namespace : ours_.front().id)};
        }
        commands.reserve(ours_.size());
        for (const DriveNamespace& one : ours_) commands.push_back(of(one, one.id));
        return commands;
    }

    const DriveClaims& drive_;
    const ErasePolicy& policy_;
    bool others_ = false;
    std::vector<DriveNamespace> ours_, foreign_;
};

}  // namespace

std::string method_name(EraseMethod method) {
    return method == EraseMethod::host_zeroes ? std::string{word(method)} : fmt::format("nvme-{}", word(method));
}

std::string_view claim_of(EraseMethod method) {
    switch (method) {
        case EraseMethod::sanitize_crypto:
            return "Purge by Sanitize cryptographic erase (IEEE 2883-2022), as far as the maker is trusted that all "
                   "data "
                   "was ever stored under a key made in the drive";
        case EraseMethod::format_crypto:
            return "cryptographic erase via Format (Purge per SP 800-88r1, since withdrawn), as far as the maker is "
                   "trusted that all data was ever stored under a key made in the drive";
        case EraseMethod::sanitize_block:
            return "Purge by Sanitize block erase (IEEE 2883-2022)";
        case EraseMethod::format_erase:
            return "user data erase via Format (Purge per SP 800-88r1, since withdrawn)";
        case EraseMethod::sanitize_overwrite:
            return "Clear by overwrite, one pass, done by the drive";
        case EraseMethod::host_zeroes:
            return "Clear by overwrite, one pass, done by the host: what the drive keeps spare is not reached";
    }
    return "";
}

std::expected<ErasePlan, EraseRefusal> plan_erase(const DriveClaims& drive, const ErasePolicy& policy) {
    return Planner{drive, policy}.plan();
}

std::optional<ErasePolicy> parse_erase_policy(std::string_view text) {
    ErasePolicy policy{.order = {}};
    for (const auto part : std::views::split(text, ',')) {
        const std::string_view name{part.begin(), part.end()};
        const auto* const found =
            std::ranges::find(ladder, name, [](EraseMethod method) { return std::string_view{word(method)}; });
        if (found == ladder.end() || std::ranges::find(policy.order, *found) != policy.order.end()) return std::nullopt;
        policy.order.push_back(*found);
    }
    if (policy.order.empty()) return std::nullopt;
    return policy;
}

std::string print(const ErasePolicy& policy) {
    std::string text;
    for (const EraseMethod method : policy.order) text += fmt::format("{}{}", text.empty() ? "" : ",", word(method));
    return text;
}

}  // namespace bulkhead
