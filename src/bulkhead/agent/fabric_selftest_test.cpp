#include "bulkhead/agent/fabric_selftest.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <thread>

namespace bulkhead::agent {
namespace {

using testing::HasSubstr;

FabricReport report_with(FabricFence fence, bool honest, std::vector<AttemptEnd> ends) {
    FabricReport report{.between = "two ends", .fence = fence, .honest_passes = honest};
    for (const AttemptEnd end : ends) report.attempts.push_back({"forged-mac", "a frame", end, "the guard"});
    return report;
}

TEST(FabricVerdict, a_test_that_could_not_have_failed_proves_nothing) {
    using enum AttemptEnd;
    using Is = FabricFound;
    struct Row {
        const char* says;
        FabricReport report;
        Is is;
    };
    const Row rows[] = {
        {"all stopped", report_with(FabricFence::on, true, {stopped, stopped, not_tried}), Is::closed},
        {"one got through", report_with(FabricFence::on, true, {stopped, got_through}), Is::open},
        {"one got through the NIC", report_with(FabricFence::nic, true, {got_through}), Is::open},
        {"honest traffic is lost, too", report_with(FabricFence::on, false, {stopped}), Is::unproven},
        {"one is unclear", report_with(FabricFence::on, true, {stopped, unclear}), Is::unproven},
        {"one is unclear, and one got through", report_with(FabricFence::on, true, {got_through, unclear}), Is::open},
        {"one is unclear without a fence", report_with(FabricFence::off, true, {got_through, unclear}), Is::unproven},
        {"nothing was tried", report_with(FabricFence::on, true, {not_tried}), Is::unproven},
        {"the control: all got through", report_with(FabricFence::off, true, {got_through, not_tried}), Is::closed},
        {"the control stops something", report_with(FabricFence::off, true, {got_through, stopped}), Is::unproven},
        {"the control's honest traffic is lost", report_with(FabricFence::off, false, {}), Is::unproven},
    };
    for (const Row& row : rows) EXPECT_EQ(verdict_of(row.report).found, row.is) << row.says;
}

TEST(FabricReport, is_read_back_as_it_was_written) {
    FabricReport report = report_with(FabricFence::nic, true, {AttemptEnd::stopped, AttemptEnd::got_through});
    report.at = Instant{1'700'000'000'000};
    report.grade = Grade::emulated;
    const auto read = read_fabric_report(fabric_report_text(report));
    ASSERT_TRUE(read) << read.error().what;
    EXPECT_EQ(*read, report);
    EXPECT_FALSE(read_fabric_report("{}"));
}

// Against this machine's kernel, in namespaces of the test's own.
class VethFabric : public testing::Test {
protected:
    static std::map<std::string, FabricAttempt> attempts_with(FabricFence fence, FabricReport& report) {
        auto rig = make_veth_rig(fence, "nft");
        if (!rig) {
            ADD_FAILURE() << rig.error().what;
            return {};
        }
        auto found = test_fabric(**rig, fence, "nft", Instant{1});
        if (!found) {
            ADD_FAILURE() << found.error().what;
            return {};
        }
        report = *found;
        std::map<std::string, FabricAttempt> all;
        for (const FabricAttempt& attempt : report.attempts) all[attempt.name] = attempt;
        return all;
    }
    void SetUp() override {
        if (::geteuid() != 0) GTEST_SKIP() << "network namespaces take root";
        if (const auto rig = make_veth_rig(FabricFence::off, "nft"); !rig)
            GTEST_SKIP() << "this kernel has no veth in a bridge: " << rig.error().what;
        if (const auto rig = make_veth_rig(FabricFence::on, "nft"); !rig)
            GTEST_SKIP() << "no guard: " << rig.error().what;
    }
};

TEST_F(VethFabric, with_the_fence_up_every_attempt_is_stopped_by_something_that_is_named) {
    FabricReport report;
    const auto all = attempts_with(FabricFence::on, report);
    EXPECT_EQ(verdict_of(report).found, FabricFound::closed) << verdict_of(report).why;
    const std::map<std::string, std::string> by{
        {"forged-mac", "1: forged_mac"},     {"forged-gid", "1: forged_address"},
        {"forged-arp", "1: forged_address"}, {"vlan-hop", "1: unknown"},
        {"foreign-tenant", "1: foreign"},    {"raw-packet-socket", "not permitted"},
        {"raw-ip-socket", "not permitted"},  {"change-mac", "not permitted"},
        {"add-address", "not permitted"},    {"foreign-namespace", "not permitted"}};
    for (const auto& [name, fence] : by) {
        ASSERT_TRUE(all.contains(name)) << name;
        EXPECT_EQ(all.at(name).end, AttemptEnd::stopped) << name;
        EXPECT_THAT(all.at(name).by, HasSubstr(fence)) << name;
    }
    EXPECT_EQ(all.at("foreign-uverbs").end, AttemptEnd::not_tried);
}

TEST_F(VethFabric, without_it_the_same_attempts_get_through) {
    FabricReport report;
    const auto all = attempts_with(FabricFence::off, report);
    EXPECT_EQ(verdict_of(report).found, FabricFound::closed) << verdict_of(report).why;
    for (const char* name : {"forged-mac", "forged-gid", "forged-arp", "vlan-hop", "foreign-tenant",
                             "raw-packet-socket", "raw-ip-socket", "change-mac", "add-address", "foreign-namespace"})
        EXPECT_EQ(all.at(name).end, AttemptEnd::got_through) << name;
}

TEST_F(VethFabric, a_guard_with_a_hole_is_found) {
    auto rig = make_veth_rig(FabricFence::on, "nft");
    ASSERT_TRUE(rig);
    // Somebody else's table cannot open a guard; somebody who takes it down can.
    const RigGuard guard = (*rig)->guards().front();
    ASSERT_TRUE(rdma::Nft{}.remove(*guard.space, guard.table));
    const auto found = test_fabric(**rig, FabricFence::on, "nft", Instant{1});
    ASSERT_TRUE(found) << found.error().what;
    EXPECT_EQ(verdict_of(*found).found, FabricFound::open);
    EXPECT_THAT(verdict_of(*found).why, HasSubstr("forged-mac"));
}

// A rig whose cable is cut after the honest frame has passed: asked for its guards, it takes the right end down.
class CutRig final : public FabricRig {
public:
    explicit CutRig(std::unique_ptr<FabricRig> whole) : whole_{std::move(whole)} {
        ends_.push_back(std::move(whole_->left()));
        ends_.push_back(std::move(whole_->right()));
    }
    Result<> put(std::size_t, unsigned) override { return {}; }
    std::string what() const override { return "a cable that is cut"; }
    Grade grade() const override { return Grade::emulated; }
    std::vector<RigGuard> guards() const override {
        auto links = rdma::Links::open(ends_[1].space);
        if (links) (void)links->raise(links->link(ends_[1].link)->index, false);
        return whole_->guards();
    }
    bool has_nic() const override { return false; }

private:
    std::unique_ptr<FabricRig> whole_;
};

TEST_F(VethFabric, a_dead_link_is_no_fence) {
    auto rig = make_veth_rig(FabricFence::on, "nft");
    ASSERT_TRUE(rig);
    CutRig cut{std::move(*rig)};
    const auto found = test_fabric(cut, FabricFence::on, "nft", Instant{1});
    ASSERT_TRUE(found) << found.error().what;
    EXPECT_TRUE(found->honest_passes);
    EXPECT_EQ(found->attempts.front().end, AttemptEnd::unclear) << found->attempts.front().by;
    EXPECT_EQ(verdict_of(*found).found, FabricFound::unproven) << verdict_of(*found).why;
    for (const char* name : {"forged-arp", "vlan-hop", "foreign-tenant"}) {
        const auto rest = std::ranges::find(found->attempts, name, &FabricAttempt::name);
        ASSERT_NE(rest, found->attempts.end()) << name << " was not tried, and that is said";
        EXPECT_EQ(rest->end, AttemptEnd::not_tried) << name;
    }
}

TEST_F(VethFabric, what_got_through_before_a_test_broke_off_got_through) {
    auto rig = make_veth_rig(FabricFence::off, "nft");
    ASSERT_TRUE(rig);
    int asked = 0;
    FabricReport report;
    const auto made = test_fabric(**rig, FabricFence::off, "nft", Instant{1}, [&] { return ++asked > 2; }, report);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, Code::timeout);
    std::map<std::string, AttemptEnd> ends;
    for (const FabricAttempt& attempt : report.attempts) ends[attempt.name] = attempt.end;
    EXPECT_EQ(ends.at("forged-mac"), AttemptEnd::got_through);
    EXPECT_EQ(ends.at("forged-gid"), AttemptEnd::got_through);
    for (const char* name : {"forged-arp", "vlan-hop", "raw-ip-socket", "foreign-tenant"})
        EXPECT_EQ(ends.at(name), AttemptEnd::not_tried) << name;
}

// Whatever of this process could hold a namespace or a link: its descriptors, its mounts, its own namespace's links.
std::vector<std::string> what_is_held() {
    std::vector<std::string> all;
    for (const auto& entry : std::filesystem::directory_iterator{"/proc/self/fd"}) {
        std::error_code gone;
        const auto target = std::filesystem::read_symlink(entry.path(), gone).string();
        if (!gone && !target.starts_with("/proc/")) all.push_back("descriptor " + target);
    }
    std::ifstream mounts{"/proc/self/mountinfo"};
    for (std::string line; std::getline(mounts, line);)
        if (line.contains(" - nsfs ") || line.contains(" - sysfs ")) all.push_back("mount " + line);
    for (const auto& entry : std::filesystem::directory_iterator{"/sys/class/net"})
        all.push_back("link " + entry.path().filename().string());
    std::set<std::string> spaces;
    for (const auto& entry : std::filesystem::directory_iterator{"/proc/self/task"}) {
        std::error_code gone;
        spaces.insert(std::filesystem::read_symlink(entry.path() / "ns/net", gone).string());
    }
    for (const std::string& space : spaces) all.push_back("in " + space);
    std::ranges::sort(all);
    return all;
}

TEST_F(VethFabric, nothing_of_it_outlives_it) {
    const auto before = what_is_held();
    {
        auto rig = make_veth_rig(FabricFence::on, "nft");
        ASSERT_TRUE(rig);
        EXPECT_NE(what_is_held(), before) << "its namespaces are held by descriptors, which this would see";
    }
    // Other tests that run at the same time make links too, and take them away again.
    std::vector<std::string> left;
    for (int look = 0; look < 250; ++look) {
        left.clear();
        std::ranges::set_difference(what_is_held(), before, std::back_inserter(left));
        if (left.empty()) break;
        std::this_thread::sleep_for(std::chrono::milliseconds{20});
    }
    EXPECT_EQ(left, std::vector<std::string>{});
}

}  // namespace
}  // namespace bulkhead::agent
