#include "bulkhead/hw/container/near.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include "bulkhead/hw/container/node_test.hpp"

namespace bulkhead::container {

namespace {

TEST(Near, lists_of_cpus_are_read_as_the_kernel_writes_them) {
    using List = std::vector<unsigned>;
    EXPECT_EQ(parse_cpus(""), List{});
    EXPECT_EQ(parse_cpus("3"), List{3});
    EXPECT_EQ(parse_cpus("0-2,64-65,7"), (List{0, 1, 2, 64, 65, 7}));
    for (const char* wrong : {"a", "3-", "-3", "5-3", "1,", ",1", "1,,2", "4096", "0-4294967295", "1 2", "0-5000"})
        EXPECT_EQ(parse_cpus(wrong), std::nullopt) << wrong;
}

class NearNode : public Node, public testing::WithParamInterface<Tier> {};

INSTANTIATE_TEST_SUITE_P(InBothTiers, NearNode, testing::Values(Tier::process, Tier::container), [](const auto& tier) {
    return std::string{words(tier.param)[static_cast<std::size_t>(tier.param)]};
});

TEST_P(NearNode, a_tenant_is_begun_on_the_cpus_it_was_given) {
    if (GetParam() == Tier::container && ::access(places.runtime.c_str(), X_OK) != 0)
        GTEST_SKIP() << places.runtime << " is not installed";
    cpu_set_t all;
    CPU_ZERO(&all);
    ASSERT_EQ(::sched_getaffinity(0, sizeof all, &all), 0);
    unsigned last = 0;
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu)
        if (CPU_ISSET(cpu, &all)) last = cpu;
    Tenants tenants = opened();
    TenantSpec spec = Node::spec(1, "grep Cpus_allowed_list /proc/self/status");
    spec.tier = GetParam();
    spec.cpus = fmt::format("{},4000-4095", last);  // some that no machine of ours has
    EXPECT_EQ(output_of(tenants, spec), fmt::format("Cpus_allowed_list:\t{}\n", last));
    spec.lease = 2;
    spec.ids = {first_id(2), 65'536};
    spec.cpus = "4000-4095";
    EXPECT_TRUE(output_of(tenants, spec).contains("Cpus_allowed_list:\t0"))
        << "where there are none, it is begun anywhere";
    spec.lease = 3;
    spec.cpus = "near";
    EXPECT_TRUE(output_of(tenants, spec).starts_with("refused: ")) << "that is no list of CPUs";
}

}  // namespace

}  // namespace bulkhead::container
