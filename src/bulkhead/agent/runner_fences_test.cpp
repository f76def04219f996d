// A test of the fences from the kernel to the line: a real attack between two veth ends, carried by the runner, signed,
// in the journal, and read back as the control plane would.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "bulkhead/agent/fabric_selftest.hpp"
#include "bulkhead/agent/model_hardware.hpp"
#include "bulkhead/agent/runner.hpp"
#include "bulkhead/wire/message.hpp"

namespace bulkhead::agent {
namespace {

using testing::HasSubstr;

evidence::SigningKey fences_key() { return *evidence::SigningKey::from_seed(std::string(32, 'f')); }

// A node model whose one NIC is two cables of this machine's kernel. The attack is the real one.
class VethHardware final : public Hardware {
public:
    explicit VethHardware(std::unique_ptr<ModelHardware> model, FabricFence fence)
        : model_{std::move(model)}, fence_{fence} {}
    Result<GpuNodeStatus> inventory() override { return model_->inventory(); }
    std::string boot_id() override { return model_->boot_id(); }
    Grade grade() const override { return model_->grade(); }
    Result<> begin(Instant now, const Operation& operation) override { return model_->begin(now, operation); }
    Result<News> poll(Instant now) override {
        auto news = model_->poll(now);
        if (news) std::swap(news->fabric, found_);
        return news;
    }
    Result<OutputPiece> output(const OutputPlace& place) override { return model_->output(place); }
    std::optional<Instant> next_due() const override { return model_->next_due(); }
    Result<> test_fabric(const FabricTestOrder& order) override {
        orders.push_back(order);
        if (order.held.size() >= 2) return fail(Code::exhausted, "0 of 2 functions are free", "ask again");
        auto rig = make_veth_rig(fence_, "nft");
        if (!rig) return fail(Code::denied, rig.error().what, "");
        const auto report = agent::test_fabric(**rig, fence_, "nft", Instant{5});
        if (!report) return fail(Code::denied, report.error().what, "");
        evidence::FabricStatement& found = found_.emplace_back();
        found.nic = model_->inventory()->functions.at(0).physical;
        found.between = report->between;
        found.fence = report->fence;
        found.honest_passes = report->honest_passes;
        found.attempts = report->attempts;
        found.grade = report->grade;
        found.ticket = order.ticket;
        return {};
    }
    std::vector<FabricTestOrder> orders;

private:
    std::unique_ptr<ModelHardware> model_;
    FabricFence fence_;
    std::vector<evidence::FabricStatement> found_;
};

class RunnerFences : public testing::Test {
protected:
    void SetUp() override {
        if (::geteuid() != 0) GTEST_SKIP() << "network namespaces take root";
        if (!make_veth_rig(FabricFence::on, "nft")) GTEST_SKIP() << "no namespaces, bridges or nftables here";
        std::string name = (std::filesystem::temp_directory_path() / "bulkhead-fences-XXXXXX").string();
        folder_ = ::mkdtemp(name.data());
    }
    void TearDown() override {
        if (!folder_.empty()) std::filesystem::remove_all(folder_);
    }
    void live(FabricFence fence = FabricFence::on) {
        auto model = ModelHardware::open(folder_ / "model", {.node = "node-1", .gpus = 1, .functions = 2});
        ASSERT_TRUE(model) << model.error().what;
        auto hardware = std::make_unique<VethHardware>(std::move(*model), fence);
        hardware_ = hardware.get();
        auto opened = Runner::open(
            {.identity = {.node = "node-1"}, .journal = folder_ / "journal"}, fences_key(), std::move(hardware),
            [this](const Report& report) { reports_.push_back(report); }, now_);
        ASSERT_TRUE(opened) << opened.error().what;
        runner_ = std::move(*opened);
    }
    void order(decltype(Order::what) what) {
        ASSERT_TRUE(runner_->handle(now_, {1, std::move(what)}));
        while (const auto due = runner_->next_due()) {
            now_ = std::max(now_, *due);
            ASSERT_TRUE(runner_->poll(now_));
        }
    }
    // As it arrives at the other end of the line.
    FabricTestReport last_heard() {
        for (auto it = reports_.rbegin(); it != reports_.rend(); ++it) {
            if (!std::holds_alternative<FabricTestReport>(it->what)) continue;
            const auto bytes = wire::encode(wire::AgentMessage{*it});
            EXPECT_TRUE(bytes) << bytes.error().what;
            const auto heard = wire::decode_agent_message(*bytes);
            EXPECT_TRUE(heard) << heard.error().what;
            return std::get<FabricTestReport>(std::get<Report>(*heard).what);
        }
        ADD_FAILURE() << "no test was told";
        return {};
    }

    std::filesystem::path folder_;
    Instant now_{1'000'000};
    std::vector<Report> reports_;
    VethHardware* hardware_ = nullptr;
    std::unique_ptr<Runner> runner_;
};

TEST_F(RunnerFences, are_attacked_when_the_agent_starts_and_what_was_found_is_signed) {
    live();
    ASSERT_EQ(hardware_->orders.size(), 1u) << "before anybody was offered a function";
    EXPECT_EQ(hardware_->orders[0], (FabricTestOrder{.ticket = 0, .held = {}, .clean = {}}));
    ASSERT_TRUE(runner_->poll(now_));
    const FabricTestReport report = last_heard();
    EXPECT_TRUE(evidence::verify_statement(fences_key().public_key(), report.evidence));
    const auto statement = evidence::read_fabric_statement(report.evidence.statement);
    ASSERT_TRUE(statement) << statement.error().what;
    const NodeFabricTest test = evidence::summary_of(*statement, report.evidence.statement);
    EXPECT_EQ(test.found, FabricFound::closed) << test.why;
    EXPECT_GE(test.stopped.size(), 8u);
    EXPECT_EQ(test.grade, Grade::emulated);
    EXPECT_EQ(runner_->unacknowledged().size(), 1u) << "told until it is heard";
}

TEST_F(RunnerFences, that_are_down_are_told_to_be_open) {
    live(FabricFence::off);
    ASSERT_TRUE(runner_->poll(now_));
    const auto statement = evidence::read_fabric_statement(last_heard().evidence.statement);
    ASSERT_TRUE(statement);
    EXPECT_EQ(evidence::summary_of(*statement, "").stopped.size(), 0u);
    EXPECT_GE(evidence::summary_of(*statement, "").through.size(), 8u);
}

TEST_F(RunnerFences, are_attacked_again_when_somebody_asks_by_what_the_journal_says_is_free) {
    live();
    order(Sanitize{.wipes = {{UnitKind::vf, 0, 0, 1, 21}, {UnitKind::vf, 1, 0, 1, 22}}});
    order(TestFabric{31});
    EXPECT_EQ(hardware_->orders.back(), (FabricTestOrder{.ticket = 31, .held = {}, .clean = {0, 1}}));
    ASSERT_TRUE(runner_->poll(now_));
    EXPECT_EQ(last_heard().ticket, 31);
    order(Prepare{.lease = 40, .tenant = "acme", .tier = Tier::vm, .functions = {0, 1}});
    order(TestFabric{32});
    EXPECT_EQ(hardware_->orders.back().held, (std::vector<std::uint16_t>{0, 1}));
    EXPECT_EQ(last_heard().why, "0 of 2 functions are free");
    EXPECT_EQ(last_heard().ticket, 32);
    EXPECT_TRUE(last_heard().evidence.statement.empty());
}

}  // namespace
}  // namespace bulkhead::agent
