// An agent and its hands in one process, with a model of a node for hardware: what passes over the line, and what does
// not. With the programs themselves: cli/agent_hands_test.cpp.
#include "bulkhead/agent/hands.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "bulkhead/agent/model_hardware.hpp"
#include "bulkhead/agent/runner.hpp"

namespace bulkhead::agent {
namespace {

using testing::HasSubstr;

class HandsOnAModel : public testing::Test {
protected:
    void SetUp() override {
        folder_ = std::filesystem::temp_directory_path() / fmt::format("bulkhead-hands-{}", ::getpid());
        std::filesystem::remove_all(folder_);
        std::filesystem::create_directories(folder_);
        auto opened = ModelHardware::open(folder_ / "model", {.node = "node-1", .gpus = 1, .drives = 1}, 0);
        ASSERT_TRUE(opened);
        model_ = *std::move(opened);
        auto lines = make_hands_lines();
        ASSERT_TRUE(lines);
        ours_ = std::move(lines->agent);
        serving_ = std::thread{[this, line = HandsLine{std::move(lines->hands)}]() mutable {
            served_ = serve_hands(line, *model_, false);
            line.close();
        }};
    }
    void TearDown() override {
        hands_.reset();
        ours_.close();
        if (serving_.joinable()) serving_.join();
        std::filesystem::remove_all(folder_);
    }
    void meet() {
        auto met = Hands::meet(std::move(ours_), 0);
        ASSERT_TRUE(met) << met.error().what;
        hands_ = *std::move(met);
    }

    std::filesystem::path folder_;
    std::unique_ptr<ModelHardware> model_;
    container::Fd ours_;
    std::unique_ptr<Hands> hands_;
    std::thread serving_;
    Result<> served_;
};

TEST_F(HandsOnAModel, are_hardware_like_the_one_they_work_on) {
    meet();
    EXPECT_EQ(hands_->grade(), Grade::simulated);
    EXPECT_EQ(hands_->boot_id(), model_->boot_id());
    EXPECT_FALSE(hands_->have_network());
    const auto there = hands_->inventory();
    ASSERT_TRUE(there);
    EXPECT_EQ(*there, *model_->inventory());
}

TEST_F(HandsOnAModel, a_runner_works_through_them) {
    meet();
    std::vector<Report> reports;
    auto runner = Runner::open({.identity = {.node = "node-1"}, .journal = folder_ / "journal"},
                               *evidence::SigningKey::from_seed(std::string(32, 'k')), std::move(hands_),
                               [&](const Report& report) { reports.push_back(report); }, {1'000});
    ASSERT_TRUE(runner) << runner.error().what;
    ASSERT_TRUE((*runner)->handle({1'000}, {1, Sanitize{{{UnitKind::memory, 0, 0, 8, 1}}}}));
    for (std::int64_t now = 1'000; reports.empty() && now < 1'100; ++now) ASSERT_TRUE((*runner)->poll({now}));
    ASSERT_EQ(reports.size(), 1u);
    EXPECT_TRUE(std::get<WipeReport>(reports[0].what).verified);
}

TEST_F(HandsOnAModel, one_number_is_one_operation) {
    meet();
    ASSERT_TRUE(hands_->begin({1}, {7, StopTenant{1}}));
    const auto again = hands_->begin({1}, {7, StopTenant{2}});
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().code, Code::conflict);
    ASSERT_EQ(hands_->poll({2})->results.size(), 1u);
    EXPECT_TRUE(hands_->begin({3}, {7, StopTenant{2}})) << "it is over, and the number free";
}

TEST_F(HandsOnAModel, take_only_so_much_at_once) {
    meet();
    Result<> begun;
    std::int64_t number = 0;
    while (begun && number < 10'000) begun = hands_->begin({1}, {++number, StopTenant{number}});
    ASSERT_FALSE(begun);
    EXPECT_EQ(begun.error().code, Code::exhausted);
}

TEST_F(HandsOnAModel, refuse_an_odd_operation_and_go_on) {
    meet();
    const auto begun = hands_->begin({1}, {1, StartTenant{.lease = 1, .tenant = "../etc", .program = {}}});
    ASSERT_FALSE(begun);
    EXPECT_EQ(begun.error().code, Code::invalid);
    ASSERT_TRUE(hands_->begin({1}, {2, StopTenant{1}}));
    const auto news = hands_->poll({2});
    ASSERT_TRUE(news) << news.error().what;
    ASSERT_EQ(news->results.size(), 1u);
    EXPECT_EQ(news->results[0].number, 2) << "the odd one was never begun";
}

// A name that no tenant can have reached the node's own gate, which does not know tenants.
TEST_F(HandsOnAModel, an_order_they_find_odd_fails_its_lease_and_nothing_else) {
    meet();
    std::vector<Report> reports;
    auto runner = Runner::open({.identity = {.node = "node-1"}, .journal = folder_ / "journal"},
                               *evidence::SigningKey::from_seed(std::string(32, 'k')), std::move(hands_),
                               [&](const Report& report) { reports.push_back(report); }, {1'000});
    ASSERT_TRUE(runner) << runner.error().what;
    std::int64_t now = 1'000;
    const auto order = [&](decltype(Order::what) what) {
        ASSERT_TRUE((*runner)->handle({now}, {1, std::move(what)}));
        for (int i = 0; i < 10; ++i) ASSERT_TRUE((*runner)->poll({++now}));
    };
    const auto phase = [&] { return std::get<LeaseReport>(reports.back().what).phase; };
    order(Sanitize{{{UnitKind::memory, 0, 0, 8, 1}}});
    const auto prepare = [](Key lease, std::uint8_t start, std::string tenant) {
        return Prepare{.lease = lease,
                       .tenant = std::move(tenant),
                       .workload = {},
                       .mechanism = Mechanism::mig,
                       .tier = Tier::container,
                       .gpus = {{0, start, 4, "3g.40gb"}},
                       .drives = {},
                       .functions = {},
                       .program = {}};
    };
    order(prepare(10, 0, "../etc"));
    order(Start{10});
    ASSERT_EQ(phase(), PartPhase::failed);
    EXPECT_THAT(std::get<LeaseReport>(reports.back().what).why, HasSubstr("a tenant's name is"));
    EXPECT_FALSE((*runner)->take_notes().empty());
    order(prepare(11, 4, "acme"));
    order(Start{11});
    EXPECT_EQ(phase(), PartPhase::running) << "the agent lives, and so does everybody else's work";
}

TEST_F(HandsOnAModel, end_when_they_hear_what_is_no_request) {
    HandsLine line{std::move(ours_)};
    ASSERT_TRUE(line.send("rm -rf /"));
    const auto heard = line.receive(hands::answer_bytes_max);
    EXPECT_TRUE(heard && !*heard) << "nothing is answered";
    serving_.join();
    ASSERT_FALSE(served_);
    EXPECT_EQ(served_.error().code, Code::invalid);
}

TEST_F(HandsOnAModel, do_not_wait_for_more_than_may_come) {
    ASSERT_EQ(::write(*ours_, "\xff\xff\xff\xff", 4), 4);
    serving_.join();
    ASSERT_FALSE(served_);
    EXPECT_THAT(served_.error().what, HasSubstr("4294967295 bytes"));
}

TEST_F(HandsOnAModel, end_in_peace_when_the_line_is_closed) {
    meet();
    hands_.reset();
    serving_.join();
    EXPECT_TRUE(served_);
}

TEST(Hands, that_have_died_are_named_with_how_and_what_to_do) {
    const auto started = Hands::start({"/bin/sh", "-c", "kill -9 $$"});
    ASSERT_FALSE(started);
    EXPECT_EQ(started.error().code, Code::unavailable);
    EXPECT_THAT(started.error().what, HasSubstr("killed by signal 9"));
    EXPECT_THAT(started.error().remedy, HasSubstr("start the agent again"));
    EXPECT_THAT(Hands::start({"/nonexistent/hands"}).error().what, HasSubstr("with status 127"));
}

// Those of an earlier agent may keep the new ones waiting for minutes.
TEST(Hands, that_do_not_answer_yet_can_be_given_up) {
    auto lines = make_hands_lines();
    ASSERT_TRUE(lines);
    int asked = 0;
    const auto met = Hands::meet(std::move(lines->agent), 0, [&] { return ++asked == 2; });
    ASSERT_TRUE(met) << met.error().what;
    EXPECT_EQ(*met, nullptr);
    EXPECT_EQ(asked, 2);
}

TEST(Hands, without_hardware_say_why) {
    auto lines = make_hands_lines();
    ASSERT_TRUE(lines);
    std::thread other{[line = HandsLine{std::move(lines->hands)}]() mutable {
        explain_no_hands(line, {Code::not_found, "NVML shows no GPU", "see dmesg"});
    }};
    const auto met = Hands::meet(std::move(lines->agent), 0);
    other.join();
    ASSERT_FALSE(met);
    EXPECT_EQ(met.error(), (Error{Code::not_found, "NVML shows no GPU", "see dmesg"}));
}

}  // namespace
}  // namespace bulkhead::agent
