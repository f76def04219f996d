// The scenes in examples/schedule that show one law each end as their first lines say.
#include <gmock/gmock.h>

#include <fstream>
#include <sstream>

#include "bulkhead/sched/play_test.hpp"

namespace bulkhead::sched {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

Told scene(const std::string& name, const PlaySettings& settings = {}) {
    std::ifstream file{BULKHEAD_SOURCE_DIR "/examples/schedule/" + name};
    std::ostringstream text;
    text << file.rdbuf();
    EXPECT_FALSE(text.str().empty()) << name;
    return told(text.str(), settings);
}

std::vector<std::string> evicted(const Told& after, Action action) {
    std::vector<std::string> out;
    for (const auto& each : after.played.evictions)
        if (each.what.action == action) out.push_back(after.name(each.what.workload));
    return out;
}

TEST(Examples, limit_lowered) {
    const Told after = scene("limit-lowered.yaml");
    EXPECT_TRUE(after.played.settled);
    EXPECT_THAT(evicted(after, Action::limit), UnorderedElementsAre("elastic", "sweep", "train"));
    EXPECT_EQ(after.played.tenants[0].held, Gpus::whole(4));
    EXPECT_EQ(after.played.tenants[1].held, Gpus::whole(4));
}

TEST(Examples, elastic_grows_back) {
    const Told after = scene("elastic-grows-back.yaml");
    EXPECT_TRUE(after.played.settled);
    EXPECT_EQ(evicted(after, Action::reclaim).size(), 3u);
    EXPECT_EQ(after.played.tenants[0].held, Gpus::whole(5));
    EXPECT_EQ(after.played.tenants[1].held, Gpus::whole(3));
}

TEST(Examples, fixed_work_stays_together) {
    const Told after = scene("fixed-work-stays-together.yaml");
    EXPECT_THAT(after.running(), UnorderedElementsAre("ledger", "fraud", "train"));
    EXPECT_TRUE(after.played.evictions.empty());
}

TEST(Examples, whole_gpus) {
    const Told after = scene("whole-gpus.yaml");
    EXPECT_TRUE(after.played.settled);
    EXPECT_EQ(after.played.tenants[0].held, Gpus::whole(1));
    EXPECT_EQ(after.played.tenants[1].held, Gpus::whole(2));
}

TEST(Examples, guarantee_waits) {
    const Told now = scene("guarantee-waits.yaml");
    EXPECT_THAT(now.running(), ElementsAre("crawl"));
    EXPECT_TRUE(now.played.evictions.empty());
    const Told later = scene("guarantee-waits.yaml", {.cycles = 70});
    EXPECT_THAT(later.running(), ElementsAre("chat"));
}

}  // namespace
}  // namespace bulkhead::sched
