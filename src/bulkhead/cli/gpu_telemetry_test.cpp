// What an agent measures of simulated GPUs: the same calls as of real ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bulkhead/cli/gpu_agent_test.hpp"
#include "bulkhead/wire/message.hpp"

namespace bulkhead::cli {
namespace {

using testing::HasSubstr;

std::optional<std::uint64_t> reading_of(const std::vector<Measured>& readings, Counter counter) {
    const auto found = std::ranges::find(readings, counter, &Measured::counter);
    return found == readings.end() ? std::nullopt : std::optional{found->value};
}

class GpuTelemetry : public GpuAgent {
protected:
    // The first sample for which this holds.
    std::optional<Telemetry> measured(const std::function<bool(const Telemetry&)>& holds) {
        std::optional<Telemetry> out;
        EXPECT_TRUE(eventually([&] {
            const auto newest = hardware_->telemetry();
            if (newest && *newest && holds(**newest)) out = **newest;
            return out.has_value();
        }));
        return out;
    }
};

TEST_F(GpuTelemetry, tells_every_counter_of_a_gpu_and_is_graded_as_simulated) {
    settings_.sample_every = Duration{50};
    open("2 x h200-141gb");
    if (!hardware_) return;
    const auto sample = measured([](const Telemetry& one) { return one.gpus.size() == 2; });
    ASSERT_TRUE(sample);
    EXPECT_EQ(sample->grade, Grade::simulated);
    const GpuSample& gpu = sample->gpus[1];
    EXPECT_EQ(gpu.gpu, 1);
    EXPECT_EQ(gpu.minor, 1);
    EXPECT_THAT(gpu.uuid, testing::StartsWith("GPU-"));
    EXPECT_THAT(gpu.name, HasSubstr("H200"));
    for (const Counter counter : every<Counter>())
        EXPECT_TRUE(reading_of(gpu.readings, counter)) << word(counter) << ": an H200 tells it";
    EXPECT_EQ(reading_of(gpu.readings, Counter::xid_count), 0u);
    EXPECT_GT(*reading_of(gpu.readings, Counter::power_mw), 10'000u);
    EXPECT_TRUE(gpu.instances.empty());
    EXPECT_TRUE(wire::encode(wire::AgentMessage{wire::Heartbeat{*sample}})) << "it can be sent as it is";
}

TEST_F(GpuTelemetry, counts_xids_and_follows_work) {
    settings_.sample_every = Duration{50};
    open("1 x h200-141gb");
    if (!hardware_) return;
    const auto idle = measured([](const Telemetry& one) { return one.gpus.size() == 1; });
    ASSERT_TRUE(idle);
    simulate({"xid", "--number", "13"});
    simulate({"start", "--pid", "4242", "--memory-mib", "1024", "--sm-percent", "80"});
    const auto busy = measured([](const Telemetry& one) {
        return reading_of(one.gpus.at(0).readings, Counter::xid_count).value_or(0) == 1 &&
               reading_of(one.gpus.at(0).readings, Counter::gpu_percent).value_or(0) == 80;
    });
    ASSERT_TRUE(busy);
    const auto before = [&](Counter counter) { return reading_of(idle->gpus[0].readings, counter).value_or(0); };
    const auto after = [&](Counter counter) { return reading_of(busy->gpus[0].readings, counter).value_or(0); };
    EXPECT_EQ(after(Counter::xid_last), 13u);
    EXPECT_GE(after(Counter::memory_used_bytes), before(Counter::memory_used_bytes) + (1024u << 20));
    EXPECT_GT(after(Counter::power_mw), before(Counter::power_mw));
}

TEST_F(GpuTelemetry, of_a_gpu_that_is_cut_tells_the_memory_of_each_instance_and_no_load) {
    settings_.sample_every = Duration{50};
    open("1 x h200-141gb");
    if (!hardware_) return;
    const OperationResult made = carry(CreateInstance{0, "3g.71gb", 4});
    ASSERT_TRUE(made.ok) << made.why;
    const auto sample = measured([](const Telemetry& one) { return !one.gpus.at(0).instances.empty(); });
    ASSERT_TRUE(sample);
    const InstanceSample& instance = sample->gpus[0].instances.front();
    EXPECT_EQ(instance.start, 4);
    EXPECT_EQ(instance.profile, "3g.71gb") << "as leases call it";
    EXPECT_THAT(instance.uuid, testing::StartsWith("MIG-"));
    EXPECT_TRUE(reading_of(instance.readings, Counter::memory_used_bytes));
    EXPECT_TRUE(reading_of(instance.readings, Counter::memory_free_bytes));
    EXPECT_FALSE(reading_of(instance.readings, Counter::power_mw)) << "that is the board's";
    EXPECT_FALSE(reading_of(sample->gpus[0].readings, Counter::gpu_percent)) << "the driver tells none: not 0";
}

}  // namespace
}  // namespace bulkhead::cli
