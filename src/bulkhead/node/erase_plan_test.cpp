#include "bulkhead/node/erase_plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "bulkhead/model/describe.hpp"

namespace bulkhead {
namespace {

using M = EraseMethod;

DriveClaims two_namespaces(std::uint8_t fna, std::uint16_t oacs, std::uint32_t sanicap) {
    return {.fna = fna,
            .oacs = oacs,
            .sanicap = sanicap,
            .allocated_known = true,
            .namespaces = {{.id = 1, .format = 2}, {.id = 7, .format = 0}}};
}

// ---- the oracle: the same rules, written from the facts once more, as a table of sentences and without the planner.
struct Foretold {
    bool refused = true;
    M method{};
    std::vector<EraseCommand> commands;
};

bool bit(std::uint64_t word, unsigned number) { return ((word >> number) & 1) != 0; }

Foretold foretell(const DriveClaims& drive, const std::vector<M>& order) {
    bool outsiders = false;  // controllers beside ours
    if (drive.several_controllers) outsiders = !drive.other_controllers.has_value() || *drive.other_controllers > 0;
    std::vector<DriveNamespace> mine;
    bool somebody_elses = outsiders && !drive.allocated_known;
    for (const DriveNamespace& one : drive.namespaces) {
        if (!one.active && outsiders) {
            somebody_elses = true;
            continue;
        }
        if (one.write_protected) return {};
        if (outsiders && one.shared) return {};
        if (!one.active && !bit(drive.oacs, 3)) return {};
        mine.push_back(one);
    }
    if (mine.empty()) return {};
    for (const M method : order) {
        Foretold answer{.refused = false, .method = method, .commands = {}};
        switch (method) {
            case M::sanitize_crypto:
                if (!bit(drive.sanicap, 0) || somebody_elses) continue;
                answer.commands = {{0x84, 0, 4}};
                return answer;
            case M::sanitize_block:
                if (!bit(drive.sanicap, 1) || somebody_elses) continue;
                answer.commands = {{0x84, 0, 2}};
                return answer;
            case M::sanitize_overwrite:
                if (!bit(drive.sanicap, 2) || somebody_elses) continue;
                answer.commands = {{0x84, 0, 0x13}};
                return answer;
            case M::host_zeroes:
                return answer;
            case M::format_crypto:
            case M::format_erase: {
                if (!bit(drive.oacs, 1)) continue;
                if (method == M::format_crypto && !bit(drive.fna, 2)) continue;
                const std::uint32_t ses = method == M::format_crypto ? 0x400 : 0x200;
                if (bit(drive.fna, 1)) {
                    if (somebody_elses) continue;
                    bool same = true;
                    for (const auto& one : mine) same = same && one.format == mine[0].format;
                    answer.commands = {
                        {0x80, !bit(drive.fna, 3) && same ? 0xFFFFFFFF : mine[0].id, ses + mine[0].format}};
                } else {
                    for (const auto& one : mine) answer.commands.push_back({0x80, one.id, ses + one.format});
                }
                return answer;
            }
        }
    }
    return {};
}

void expect_as_foretold(const DriveClaims& drive, const ErasePolicy& policy) {
    const Foretold wanted = foretell(drive, policy.order);
    const auto plan = plan_erase(drive, policy);
    ASSERT_EQ(!plan.has_value(), wanted.refused) << int{drive.fna} << " " << drive.oacs << " " << drive.sanicap;
    const auto& skipped = plan ? plan->skipped : plan.error().skipped;
    for (const SkippedMethod& one : skipped) ASSERT_FALSE(one.why.empty()) << word(one.method);
    if (!plan) {
        ASSERT_FALSE(plan.error().why.empty() || plan.error().remedy.empty());
        return;
    }
    ASSERT_EQ(plan->method, wanted.method) << int{drive.fna} << " " << drive.oacs << " " << drive.sanicap;
    ASSERT_EQ(plan->commands, wanted.commands) << int{drive.fna} << " " << drive.oacs << " " << drive.sanicap;
    // Nothing stronger is passed over in silence, and nothing that policy wanted first.
    for (const M method :
         {M::sanitize_crypto, M::format_crypto, M::sanitize_block, M::format_erase, M::sanitize_overwrite}) {
        const auto at = std::ranges::find(policy.order, method), chosen = std::ranges::find(policy.order, plan->method);
        const bool first = at < chosen && at != policy.order.end();
        const auto said = std::ranges::count(skipped, method, &SkippedMethod::method);
        ASSERT_EQ(said, method < plan->method || first ? 1 : 0) << word(method) << " beside " << word(plan->method);
    }
}

std::vector<std::vector<DriveNamespace>> shapes() {
    return {
        {},
        {{.id = 1}},
        {{.id = 1, .format = 2}, {.id = 7, .format = 2}},
        {{.id = 1, .format = 2}, {.id = 7}},
        {{.id = 1}, {.id = 2, .active = false}},
        {{.id = 1, .shared = true}, {.id = 2}},
        {{.id = 1}, {.id = 2, .write_protected = true}},
        {{.id = 1}, {.id = 2, .active = false, .write_protected = true}},
        {{.id = 3, .active = false}},
    };
}

TEST(ErasePlan, every_fna_and_oacs_and_sanicap_has_the_plan_the_facts_foretell) {
    for (unsigned fna = 0; fna < 16; ++fna)
        for (unsigned oacs = 0; oacs < 2048; ++oacs)
            for (unsigned sanicap = 0; sanicap < 8; ++sanicap)
                ASSERT_NO_FATAL_FAILURE(expect_as_foretold(
                    two_namespaces(static_cast<std::uint8_t>(fna), static_cast<std::uint16_t>(oacs), sanicap), {}));
}

TEST(ErasePlan, and_so_with_every_shape_of_namespaces_every_company_and_every_policy) {
    const std::vector<ErasePolicy> policies{
        {},
        {.order = {M::format_crypto, M::sanitize_crypto, M::sanitize_block, M::format_erase}},
        {.order = {M::format_erase}},
        {.order = {M::sanitize_overwrite, M::host_zeroes}},
        {.order = {M::sanitize_crypto, M::format_crypto, M::sanitize_block, M::format_erase, M::sanitize_overwrite,
                   M::host_zeroes}},
    };
    struct Company {
        bool several;
        std::optional<unsigned> others;
    };
    const std::vector<Company> companies{{false, {}}, {true, 0}, {true, 1}, {true, {}}};
    for (const auto& namespaces : shapes())
        for (const Company& company : companies)
            for (const bool known : {false, true})
                for (unsigned bits = 0; bits < 16 * 4 * 64; ++bits) {
                    const unsigned fna = bits % 16, oacs = bits / 16 % 4, sanicap = bits / 64;
                    const DriveClaims drive{.fna = static_cast<std::uint8_t>(fna),
                                            .oacs = static_cast<std::uint16_t>((oacs & 1 ? 2 : 0) | (oacs & 2 ? 8 : 0)),
                                            .sanicap = (sanicap & 7) | (sanicap >> 3) << 29,
                                            .several_controllers = company.several,
                                            .other_controllers = company.others,
                                            .allocated_known = known,
                                            .namespaces = namespaces};
                    const ErasePolicy& policy = policies[bits % policies.size()];
                    ASSERT_NO_FATAL_FAILURE(expect_as_foretold(drive, policy));
                }
}

TEST(ErasePlan, a_drive_that_only_formats_is_erased_namespace_by_namespace_and_the_better_ways_are_named) {
    const auto plan = plan_erase(two_namespaces(0, 0x12a, 0), {});
    ASSERT_TRUE(plan);
    EXPECT_EQ(plan->method, M::format_erase);
    EXPECT_EQ(plan->commands, (std::vector<EraseCommand>{{0x80, 1, 0x202}, {0x80, 7, 0x200}}));
    ASSERT_EQ(plan->skipped.size(), 3u);
    EXPECT_EQ(plan->skipped[0].why, "the drive does not claim Sanitize cryptographic erase (SANICAP 0x0)");
    EXPECT_EQ(plan->skipped[1].why, "the drive does not claim cryptographic erase by Format (FNA 0x0)");
}

TEST(ErasePlan, a_weaker_method_claims_less) {
    EXPECT_NE(claim_of(M::sanitize_block).find("Purge by Sanitize"), std::string_view::npos);
    for (const M method : {M::format_crypto, M::format_erase}) {
        EXPECT_NE(claim_of(method).find("via Format (Purge per SP 800-88r1, since withdrawn)"), std::string_view::npos);
        EXPECT_EQ(claim_of(method).find("2883"), std::string_view::npos)
            << "nobody has shown that it lets Format count";
    }
    for (const M method : {M::sanitize_overwrite, M::host_zeroes})
        EXPECT_EQ(claim_of(method).find("Purge"), std::string_view::npos);
}

TEST(ErasePlan, the_host_writes_zeroes_only_where_policy_says_so) {
    const DriveClaims dumb{.namespaces = {{.id = 1}}};
    const auto refused = plan_erase(dumb, {});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().skipped.size(), 6u);
    const auto allowed = plan_erase(dumb, *parse_erase_policy("sanitize-crypto,host-zeroes"));
    ASSERT_TRUE(allowed);
    EXPECT_EQ(allowed->method, M::host_zeroes);
    EXPECT_TRUE(allowed->commands.empty());
}

TEST(ErasePlan, a_detached_namespace_is_attached_first_and_erased_with_the_rest) {
    DriveClaims drive = two_namespaces(0, 0x0a, 0);
    drive.namespaces[1].active = false;
    const auto plan = plan_erase(drive, {});
    ASSERT_TRUE(plan);
    EXPECT_EQ(plan->attach, std::vector<std::uint32_t>{7});
    EXPECT_EQ(plan->covers, (std::vector<std::uint32_t>{1, 7}));
}

TEST(ErasePlan, a_policy_is_read_as_it_is_printed_and_refused_otherwise) {
    EXPECT_EQ(print(ErasePolicy{}), "sanitize-crypto,format-crypto,sanitize-block,format-erase");
    EXPECT_EQ(parse_erase_policy(print(ErasePolicy{})), ErasePolicy{});
    for (const char* wrong : {"", "format", "format-erase,", "format-erase,format-erase", "Format-erase"})
        EXPECT_FALSE(parse_erase_policy(wrong)) << wrong;
}

}  // namespace
}  // namespace bulkhead
