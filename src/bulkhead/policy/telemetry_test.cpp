#include "bulkhead/policy/telemetry.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "bulkhead/model/describe.hpp"

namespace bulkhead {
namespace {

using testing::HasSubstr;

std::vector<Company> everybody() { return {Company::alone, Company::own_instance, Company::among_others}; }

TEST(Telemetry, who_could_be_beside_a_lease_follows_from_what_it_holds) {
    struct Row {
        std::string_view says;
        Mechanism mechanism;
        LeasedSlice slice;
        Company company;
    };
    const Row rows[] = {
        {"a whole GPU is nobody else's", Mechanism::whole, {"n", 0, "", 0, 1000}, Company::alone},
        {"an instance has neighbours", Mechanism::mig, {"n", 0, "3g.71gb", 4, 1000}, Company::own_instance},
        {"even the largest instance does", Mechanism::mig, {"n", 0, "7g.141gb", 0, 1000}, Company::own_instance},
        {"a share of a GPU is among others", Mechanism::mps, {"n", 0, "", 0, 500}, Company::among_others},
        {"who has all of them leaves none", Mechanism::mps, {"n", 0, "", 0, 1000}, Company::alone},
        {"nor a turn", Mechanism::time_slicing, {"n", 0, "", 0, 1000}, Company::alone},
        {"some turns are among others", Mechanism::time_slicing, {"n", 0, "", 0, 999}, Company::among_others},
        {"a share of an instance", Mechanism::mps_in_mig, {"n", 0, "3g.71gb", 4, 1000}, Company::among_others},
        {"half an instance", Mechanism::mig, {"n", 0, "3g.71gb", 4, 500}, Company::among_others},
        {"a virtual GPU", Mechanism::vgpu, {"n", 0, "", 0, 1000}, Company::among_others},
        {"what nobody has defined", Mechanism::whole, {"n", 0, "3g.71gb", 4, 1000}, Company::among_others},
    };
    for (const Row& row : rows) {
        GpuLeaseSpec lease{.tenant = "acme", .workload = "w", .mechanism = row.mechanism};
        for (const PeerTrust trust : {PeerTrust::same_tenant, PeerTrust::distrusting}) {
            lease.sharing.gpu = trust;  // whoever may be beside it: a wipe of what somebody left is activity too
            EXPECT_EQ(company_of(lease, row.slice), row.company) << row.says;
        }
    }
}

TEST(Telemetry, what_is_read_of_a_device_is_seen_by_whoever_has_all_of_it_and_nobody_else) {
    for (const Counter counter : every<Counter>()) {
        const Measured reading{counter, 12'345};
        EXPECT_FALSE(shown_to_tenant(reading, ReadOf::device, Company::own_instance)) << word(counter);
        for (const ReadOf read_of : {ReadOf::device, ReadOf::instance})
            EXPECT_FALSE(shown_to_tenant(reading, read_of, Company::among_others)) << word(counter);
        EXPECT_FALSE(shown_to_tenant(reading, ReadOf::instance, Company::alone)) << "a whole GPU has no instances";
    }
}

// The list once more, by hand: a counter that is added is withheld until somebody has thought about it.
TEST(Telemetry, beside_others_only_the_four_that_an_instance_has_of_its_own_remain) {
    const std::set<Counter> own{Counter::gpu_percent, Counter::memory_percent, Counter::memory_used_bytes,
                                Counter::memory_free_bytes};
    for (const Counter counter : every<Counter>())
        EXPECT_EQ(shown_to_tenant({counter, 5}, ReadOf::instance, Company::own_instance).has_value(),
                  own.contains(counter))
            << word(counter);
}

TEST(Telemetry, what_adds_up_over_the_life_of_a_board_is_told_to_no_tenant) {
    for (const Counter counter :
         {Counter::energy_mj, Counter::pcie_replays, Counter::ecc_corrected, Counter::ecc_uncorrected,
          Counter::ecc_corrected_lifetime, Counter::ecc_uncorrected_lifetime, Counter::rows_remapped_corrected,
          Counter::rows_remapped_uncorrected, Counter::row_remap_failed, Counter::xid_last, Counter::xid_count})
        for (const Company company : everybody())
            for (const ReadOf read_of : {ReadOf::device, ReadOf::instance})
                EXPECT_FALSE(shown_to_tenant({counter, 1}, read_of, company)) << word(counter);
}

TEST(Telemetry, that_the_node_brakes_is_not_told_to_one_of_its_tenants) {
    const auto shown = shown_to_tenant({Counter::clock_reasons, clocks_by_power_cap | clocks_by_hardware |
                                                                    clocks_by_hw_thermal | clocks_by_power_brake},
                                       ReadOf::device, Company::alone);
    ASSERT_TRUE(shown);
    EXPECT_EQ(shown->value, clocks_by_power_cap | clocks_by_hw_thermal);
}

TEST(Telemetry, the_page_prints_the_table_as_it_is) {
    std::ifstream file{BULKHEAD_SOURCE_DIR "/docs/metrics.md"};
    std::ostringstream page;
    page << file.rdbuf();
    for (const CounterRule& rule : counter_rules()) {
        const std::string row = "| `" + std::string{word(rule.counter)} + "` | " + std::string{word(rule.alone)} +
                                " | " + std::string{word(rule.instance)} + " | withheld | " + std::string{rule.why} +
                                " |";
        EXPECT_THAT(page.str(), HasSubstr(row));
    }
}

}  // namespace
}  // namespace bulkhead
