// A start that fails: whether it is the program's fault, the node's, or neither, and how a node finds out.
#include <gmock/gmock.h>

#include <fstream>

#include "bulkhead/cli/gpu_agent_test.hpp"

namespace bulkhead::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

class GpuStart : public GpuAgent {
protected:
    static StartTenant start_of(Key lease, Tier tier, std::vector<std::string> words) {
        StartTenant start{.lease = lease, .tier = tier, .gpus = {{.gpu = 0, .start = 0, .size = 8}}, .tenant = "acme"};
        start.program.words = std::move(words);
        start.program.memory_bytes = std::int64_t{256} << 20;
        return start;
    }
};

TEST_F(GpuStart, a_program_that_is_missing_or_no_program_is_told_apart_in_a_container) {
    open("1 x h200-141gb");
    if (!hardware_) return;
    struct Case {
        const char* word;
        PartFault fault;
    };
    Key lease = 20;
    // In tier process the program is started by its keeper, and a missing one ends with status 127.
    for (const Case& each :
         {Case{"no-such-program", PartFault::not_found}, Case{"/usr/bin/no-such-program", PartFault::not_found},
          Case{"/usr/lib/os-release", PartFault::not_executable}}) {
        const OperationResult result = carry(start_of(++lease, Tier::container, {each.word}));
        EXPECT_FALSE(result.ok);
        EXPECT_EQ(result.fault, each.fault) << each.word << ": " << result.why;
        EXPECT_TRUE(carry(StopTenant{lease}).ok);
    }
}

TEST_F(GpuStart, what_breaks_a_rule_of_the_tier_is_invalid) {
    open("1 x h200-141gb");
    if (!hardware_) return;
    StartTenant start = start_of(31, Tier::process, {"/bin/true"});
    start.program.environment = {"no variable"};
    EXPECT_EQ(carry(start).fault, PartFault::invalid);
    EXPECT_EQ(carry(start_of(32, Tier::process, {"/usr/../bin/true"})).fault, PartFault::invalid);
}

TEST_F(GpuStart, a_runtime_that_is_missing_is_the_nodes_fault_by_a_start_of_its_own) {
    settings_.runtime = "/usr/bin/there-is-no-such-runtime";
    open("1 x h200-141gb");
    if (!hardware_) return;
    const OperationResult result = carry(start_of(41, Tier::container, {"/bin/true"}));
    EXPECT_FALSE(result.ok);
    EXPECT_EQ(result.fault, PartFault::node);
    EXPECT_THAT(result.why, HasSubstr("a start of this node's own fails as well"));
    const OperationResult process = carry(start_of(42, Tier::process, {"/bin/true"}));
    EXPECT_TRUE(process.ok) << "the other tier needs no runtime: " << process.why;
    EXPECT_TRUE(carry(StopTenant{41}).ok);
    EXPECT_TRUE(carry(StopTenant{42}).ok);
}

// A runtime that fails for this tenant alone: what a workload could bring about, if it found a way.
TEST_F(GpuStart, a_start_that_fails_for_one_tenant_alone_is_not_the_nodes_fault) {
    const std::string runtime = folder_ / "crun";
    settings_.runtime = runtime;
    open("1 x h200-141gb");
    if (!hardware_) return;
    std::ofstream{runtime} << "#!/bin/sh\n"
                              "for word in \"$@\"; do [ \"$word\" = lease-51 ] && exit 1; done\n"
                              "exec /usr/bin/crun \"$@\"\n";
    std::filesystem::permissions(runtime, std::filesystem::perms::owner_all);
    const OperationResult result = carry(start_of(51, Tier::container, {"/bin/true"}));
    EXPECT_FALSE(result.ok);
    EXPECT_EQ(result.fault, PartFault::start) << result.why;
    EXPECT_THAT(result.why, Not(HasSubstr("own fails as well")));
    EXPECT_TRUE(carry(StopTenant{51}).ok);
    EXPECT_TRUE(exits_.empty()) << "a start of the node's own is not reported as a tenant's exit";
}

TEST_F(GpuStart, a_tenant_of_a_simulated_driver_lists_its_gpus_and_is_told_that_they_are_simulated) {
    open("2 x h200-141gb");
    if (!hardware_) return;
    ASSERT_TRUE(carry(start_of(61, Tier::process, {"bulkhead-gpus"})).ok);
    ASSERT_TRUE(eventually([&] { return !exits_.empty(); }));
    EXPECT_EQ(exits_.front().status, 0) << exits_.front().output;
    EXPECT_THAT(exits_.front().output, HasSubstr("simulated: these GPUs are a model"));
    EXPECT_THAT(exits_.front().output, HasSubstr("GPU 0: NVIDIA H200"));
    EXPECT_THAT(exits_.front().output, Not(HasSubstr("GPU 1:"))) << "the other is not its own";
    EXPECT_TRUE(carry(StopTenant{61}).ok);
}

}  // namespace
}  // namespace bulkhead::cli
