#include "bulkhead/policy/catalogue.hpp"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <fstream>
#include <set>
#include <sstream>

namespace bulkhead {
namespace {

constexpr std::size_t at(Aspect aspect) { return static_cast<std::size_t>(aspect); }

std::string name_of(const MechanismEntry& entry) {
    return std::string{entry.fraction ? "fraction over " : ""} + std::string{word(entry.mechanism)};
}

// A sentence: a capital or digit first, a full stop last, one line, and not so long that nobody reads it.
void expect_sentence(std::string_view text, std::string_view where) {
    ASSERT_FALSE(text.empty()) << where;
    EXPECT_TRUE((text.front() >= 'A' && text.front() <= 'Z') || text.front() == '/' ||
                (text.front() >= '0' && text.front() <= '9'))
        << where << ": " << text;
    EXPECT_EQ(text.back(), '.') << where << ": " << text;
    EXPECT_EQ(text.find('\n'), std::string_view::npos) << where;
    EXPECT_EQ(text.find("  "), std::string_view::npos) << where << ": " << text;
    EXPECT_LE(text.size(), 230U) << where << ": " << text;
}

// Nothing that was not read off hardware reads as if it had been, and what came from the lab says so.
void expect_honest(Grade grade, std::string_view source, std::string_view where) {
    ASSERT_FALSE(source.empty()) << where;
    if (grade == Grade::silicon) {
        EXPECT_TRUE(source.contains("capture") || source.contains("docs/measurements/")) << where << ": " << source;
    }
    if (grade == Grade::emulated) {
        EXPECT_NE(source.find("lab"), std::string_view::npos) << where << ": " << source;
    }
    EXPECT_NE(grade, Grade::simulated) << where;
    EXPECT_EQ(source.find("/work"), std::string_view::npos) << where;
}

TEST(Catalogue, has_every_mechanism_and_a_fraction_over_each_that_can_back_one) {
    EXPECT_EQ(mechanisms().size(), 15U);
    std::set<std::string_view> titles;
    for (const MechanismEntry& entry : mechanisms()) {
        EXPECT_TRUE(titles.insert(entry.title).second) << entry.title;
        EXPECT_EQ(&entry_of(entry.mechanism, entry.fraction), &entry);
    }
    for (const Mechanism mechanism : every<Mechanism>()) {
        EXPECT_EQ(entry_of(mechanism).mechanism, mechanism);
        EXPECT_FALSE(entry_of(mechanism).fraction);
        if (!can_back_a_fraction(mechanism)) continue;
        EXPECT_EQ(entry_of(mechanism, true).mechanism, mechanism);
        EXPECT_TRUE(entry_of(mechanism, true).fraction);
    }
}

TEST(CatalogueDeathTest, a_fraction_over_a_whole_gpu_is_a_bug) { EXPECT_DEATH(entry_of(Mechanism::whole, true), ""); }

TEST(Catalogue, every_claim_is_a_sentence_with_a_source_and_an_honest_grade) {
    for (const MechanismEntry& entry : mechanisms())
        for (const Aspect aspect : every<Aspect>()) {
            const Claim& claim = entry.claims[at(aspect)];
            const std::string where = name_of(entry) + "/" + std::string{word(aspect)};
            expect_sentence(claim.says, where);
            expect_honest(claim.grade, claim.source, where);
        }
    for (const TierEntry& tier : tiers())
        for (const Wall wall : every<Wall>()) {
            const Claim& claim = tier.claims[static_cast<std::size_t>(wall)];
            const std::string where = std::string{word(tier.tier)} + "/" + std::string{word(wall)};
            expect_sentence(claim.says, where);
            expect_honest(claim.grade, claim.source, where);
        }
    for (const Mechanism mechanism : every<Mechanism>())
        for (const Tier tier : every<Tier>()) {
            const PairEntry& pair = pair_of(mechanism, tier);
            const std::string where = std::string{word(mechanism)} + " in " + std::string{word(tier)};
            expect_sentence(pair.says, where);
            expect_honest(pair.grade, pair.source, where);
            EXPECT_NE(pair.grade, Grade::silicon) << where;
        }
    for (const MechanismEntry& entry : mechanisms())
        for (const std::string_view text :
             {entry.title, entry.fault_domain, entry.overhead, entry.reconfiguration, entry.licence, entry.best_for})
            EXPECT_FALSE(text.empty()) << name_of(entry);
}

// A slowdown in percent is a measurement; none has been made yet, so none is printed.
TEST(Catalogue, prints_no_overhead_that_was_not_measured) {
    for (const MechanismEntry& entry : mechanisms()) EXPECT_EQ(entry.overhead.find('%'), std::string_view::npos);
    for (const TierEntry& tier : tiers()) EXPECT_EQ(tier.overhead.find('%'), std::string_view::npos);
}

TEST(Catalogue, composition_is_never_stronger_than_any_layer) {
    const auto& both = entry_of(Mechanism::mps_in_mig);
    for (const Aspect aspect : every<Aspect>()) {
        const Strength layers = std::min(entry_of(Mechanism::mig).claims[at(aspect)].strength,
                                         entry_of(Mechanism::mps).claims[at(aspect)].strength);
        EXPECT_EQ(both.claims[at(aspect)].strength, layers) << word(aspect);
        EXPECT_LE(entry_of(Mechanism::mig_vgpu).claims[at(aspect)].strength,
                  entry_of(Mechanism::mig).claims[at(aspect)].strength)
            << word(aspect);
    }
    EXPECT_EQ(both.strongest_slo, Slo::soft);
}

TEST(Catalogue, a_fraction_is_as_strong_as_what_backs_it_and_no_stronger) {
    for (const Mechanism mechanism : every<Mechanism>()) {
        if (!can_back_a_fraction(mechanism)) continue;
        const MechanismEntry &backing = entry_of(mechanism), &fraction = entry_of(mechanism, true);
        for (const Aspect aspect : every<Aspect>()) {
            EXPECT_EQ(fraction.claims[at(aspect)].strength, backing.claims[at(aspect)].strength) << fraction.title;
            EXPECT_GE(fraction.claims[at(aspect)].grade, backing.claims[at(aspect)].grade) << fraction.title;
        }
        EXPECT_EQ(fraction.strongest_slo, backing.strongest_slo) << fraction.title;
    }
}

TEST(Catalogue, a_hard_service_level_needs_a_gpu_or_an_instance_of_ones_own) {
    const std::set<Mechanism> hard{Mechanism::whole, Mechanism::mig, Mechanism::mig_vgpu};
    for (const MechanismEntry& entry : mechanisms()) {
        EXPECT_EQ(entry.strongest_slo == Slo::hard, hard.contains(entry.mechanism)) << name_of(entry);
        if (entry.strongest_slo != Slo::hard) continue;
        for (const Aspect aspect : {Aspect::sm, Aspect::l2, Aspect::memory_capacity, Aspect::memory_bandwidth})
            EXPECT_EQ(entry.claims[at(aspect)].strength, Strength::hard) << name_of(entry);
    }
}

TEST(Catalogue, says_what_nobody_partitions) {
    for (const MechanismEntry& entry : mechanisms())
        for (const Aspect aspect : {Aspect::pcie, Aspect::power_and_clocks, Aspect::nvlink, Aspect::observability})
            EXPECT_LT(entry.claims[at(aspect)].strength, Strength::hard) << name_of(entry) << " " << word(aspect);
    for (const Mechanism soft :
         {Mechanism::mps, Mechanism::time_slicing, Mechanism::mps_in_mig, Mechanism::amd_partition})
        EXPECT_EQ(entry_of(soft).claims[at(Aspect::faults)].strength, Strength::none) << word(soft);
    EXPECT_EQ(entry_of(Mechanism::mig).claims[at(Aspect::faults)].strength, Strength::soft) << "a reset stops them all";
    EXPECT_EQ(entry_of(Mechanism::time_slicing).claims[at(Aspect::memory_capacity)].strength, Strength::none);
}

TEST(Catalogue, a_stronger_tier_never_lowers_a_wall) {
    ASSERT_EQ(tiers().size(), 4U);
    for (std::size_t i = 1; i < tiers().size(); ++i)
        for (const Wall wall : every<Wall>())
            EXPECT_GE(tiers()[i].claims[static_cast<std::size_t>(wall)].strength,
                      tiers()[i - 1].claims[static_cast<std::size_t>(wall)].strength)
                << word(tiers()[i].tier) << " " << word(wall);
    for (const TierEntry& tier : tiers()) {
        const auto wall = [&](Wall w) { return tier.claims[static_cast<std::size_t>(w)].strength; };
        EXPECT_EQ(wall(Wall::host_kernel) == Strength::hard, tier.tier >= Tier::vm);
        EXPECT_EQ(wall(Wall::operator_access) == Strength::hard, tier.tier == Tier::confidential_vm);
    }
}

TEST(Catalogue, pairs_are_what_ships) {
    using enum Fit;
    struct Row {
        Mechanism mechanism;
        Fit process, container, vm, confidential;
    };
    const Row rows[] = {
        {Mechanism::whole, yes, yes, yes, yes},
        {Mechanism::mig, yes, yes, own_gpu, no},
        {Mechanism::mps, yes, yes, own_gpu, own_gpu},
        {Mechanism::time_slicing, yes, yes, own_gpu, own_gpu},
        {Mechanism::vgpu, no, no, yes, no},
        {Mechanism::mig_vgpu, no, no, yes, no},
        {Mechanism::mps_in_mig, yes, yes, own_gpu, no},
        {Mechanism::amd_partition, yes, yes, own_gpu, no},
    };
    ASSERT_EQ(std::size(rows), every<Mechanism>().size());
    for (const Row& row : rows) {
        EXPECT_EQ(pair_of(row.mechanism, Tier::process).fit, row.process) << word(row.mechanism);
        EXPECT_EQ(pair_of(row.mechanism, Tier::container).fit, row.container) << word(row.mechanism);
        EXPECT_EQ(pair_of(row.mechanism, Tier::vm).fit, row.vm) << word(row.mechanism);
        EXPECT_EQ(pair_of(row.mechanism, Tier::confidential_vm).fit, row.confidential) << word(row.mechanism);
    }
}

// What two VMs can share is what has a virtual function; what a confidential VM can have is a whole GPU.
TEST(Catalogue, pairs_keep_the_rules_of_the_tiers) {
    for (const Mechanism mechanism : every<Mechanism>()) {
        const bool virtual_function = mechanism == Mechanism::vgpu || mechanism == Mechanism::mig_vgpu;
        EXPECT_EQ(pair_of(mechanism, Tier::process).fit, pair_of(mechanism, Tier::container).fit) << word(mechanism);
        EXPECT_EQ(pair_of(mechanism, Tier::vm).fit == Fit::yes, virtual_function || mechanism == Mechanism::whole);
        if (mechanism != Mechanism::whole) {
            EXPECT_NE(pair_of(mechanism, Tier::confidential_vm).fit, Fit::yes) << "no GPU is shared between them";
        }
    }
}

TEST(Corrections, contradict_with_a_source) {
    std::set<std::string_view> claims;
    EXPECT_GE(corrections().size(), 20U);
    for (const Correction& correction : corrections()) {
        EXPECT_TRUE(claims.insert(correction.claim).second) << correction.claim;
        expect_sentence(correction.claim, correction.claim);
        expect_sentence(correction.truth, correction.claim);
        expect_honest(correction.grade, correction.source, correction.claim);
    }
}

// The numbers we print about an H200 are the ones in the capture.
TEST(Corrections, about_the_h200_agree_with_the_capture) {
    std::ifstream file{BULKHEAD_SOURCE_DIR "/testdata/gpu/h200-nvml-580.159.04.json"};
    ASSERT_TRUE(file);
    std::stringstream text;
    text << file.rdbuf();
    const auto capture = boost::json::parse(text.str()).as_object();
    const auto& profiles = capture.at("profiles_by_enum").as_object();
    const auto number = [&](const char* profile, const char* field) {
        return std::to_string(profiles.at(profile).as_object().at(field).to_number<int>());
    };
    const auto says = [](const Claim& claim, const std::string& what) {
        return claim.says.find(what) != std::string_view::npos;
    };
    const auto& claims = entry_of(Mechanism::mig).claims;

    std::set<int> sms;
    for (const auto& [key, value] : profiles) {
        const auto& profile = value.as_object();
        if (profile.at("rc").to_number<int>() != 0) continue;
        sms.insert(profile.at("multiprocessorCount").to_number<int>());
        EXPECT_EQ(profile.at("isP2pSupported").to_number<int>(), 0) << key;
        EXPECT_EQ(profile.at("encoderCount").to_number<int>(), 0) << key;
    }
    EXPECT_EQ(sms, (std::set{16, 26, 32, 60, 64, 132}));
    for (const int sm : sms) EXPECT_TRUE(says(claims[at(Aspect::sm)], std::to_string(sm))) << sm;
    EXPECT_TRUE(says(claims[at(Aspect::copy_engines)], number("0", "copyEngineCount") + " in 1g, " +
                                                           number("2", "copyEngineCount") + " in 3g, " +
                                                           number("4", "copyEngineCount") + " in 7g"));
    EXPECT_TRUE(says(claims[at(Aspect::media_engines)],
                     number("0", "decoderCount") + " decoder, " + number("0", "jpegCount") + " JPEG"));
    EXPECT_EQ(number("0", "ofaCount"), "0");
    EXPECT_EQ(number("7", "ofaCount"), "1") << "optical flow only as +me";

    const auto corrected = [](std::string_view what) {
        return std::ranges::any_of(corrections(), [&](const Correction& c) {
            return c.grade == Grade::silicon && c.truth.find(what) != std::string_view::npos;
        });
    };
    EXPECT_TRUE(corrected(std::to_string(capture.at("l2_mib").to_number<int>()) + " MiB of L2"));
    EXPECT_TRUE(corrected("a 1g.35gb " + number("9", "multiprocessorCount")));
    EXPECT_TRUE(corrected("a 3g.71gb " + number("2", "multiprocessorCount")));
    EXPECT_TRUE(corrected("a 4g.71gb " + number("3", "multiprocessorCount")));
    EXPECT_TRUE(corrected("7g.141gb " + number("4", "decoderCount") + " and " + number("4", "jpegCount")));
}

}  // namespace
}  // namespace bulkhead
