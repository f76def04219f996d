// An agent that could not have its NIC when it started: another program had it, or it was not there yet. A tree of
// files stands for the NIC and a link of a namespace for its physical function, as in agent/functions_test.cpp.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <unistd.h>

#include <fstream>

#include "bulkhead/agent/function_record.hpp"
#include "bulkhead/agent/runner.hpp"
#include "bulkhead/cli/gpu_agent_test.hpp"
#include "bulkhead/hw/container/durable.hpp"
#include "bulkhead/hw/rdma/links.hpp"
#include "bulkhead/hw/rdma/rdma_system.hpp"
#include "bulkhead/hw/rdma/space.hpp"
#include "bulkhead/hw/rdma/tree_test.hpp"

namespace bulkhead::cli {
namespace {

using testing::Contains;
using testing::HasSubstr;

class GpuNic : public GpuAgent {
protected:
    static constexpr const char* pf = "0000:3b:00.0";

    void SetUp() override {
        GpuAgent::SetUp();
        if (::geteuid() != 0) GTEST_SKIP() << "network namespaces take root";
        host_ = scratch.root() + "/host-net";
        auto space = rdma::Space::make_named(host_);
        if (!space) GTEST_SKIP() << space.error().what;
        auto links = rdma::Links::open(*space);
        ASSERT_TRUE(links);
        const auto link = links->make_veth("pf0", {"wire0", -1});
        if (!link) GTEST_SKIP() << link.error().what;
        link_ = *link;
        settings_.nics = {pf};
        settings_.functions = {.nics = {}, .run_folder = {}, .sys = tree.root(), .host = host_, .order = {}};
        settings_.functions.locks = scratch.root() + "/locks";
    }
    void TearDown() override {
        GpuAgent::TearDown();
        if (!host_.empty()) (void)rdma::Space::remove_named(host_);
    }
    void plug_in() const {
        tree.add_physical(pf, "igb", 2);
        tree.write(std::string{"bus/pci/devices/"} + pf + "/net/pf0/ifindex", std::to_string(link_) + "\n");
    }
    // As another agent, or a selftest.
    container::Fd have_the_nic() const {
        std::filesystem::create_directories(settings_.functions.locks);
        const std::string path = settings_.functions.locks + "/nic-" + pf + ".lock";
        container::Fd lock{::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)};
        EXPECT_EQ(::flock(*lock, LOCK_EX | LOCK_NB), 0);
        return lock;
    }
    bool offers_rdma() const {
        return std::ranges::any_of(hardware_->inventory()->capabilities,
                                   [](const auto& one) { return one.name == Capability::rdma; });
    }
    std::string why() const {
        const auto error = hardware_->why_no_functions();
        return error ? error->what : "";
    }
    rdma::FakeTree tree, scratch;
    std::string host_;
    int link_ = 0;
};

TEST_F(GpuNic, is_offered_when_whoever_had_it_lets_it_go) {
    plug_in();
    std::optional<container::Fd> lock{have_the_nic()};
    open("1 x h200-141gb");
    if (!hardware_) return;
    EXPECT_THAT(why(), HasSubstr("another program on this host has the NIC 0000:3b:00.0"));
    EXPECT_TRUE(hardware_->inventory()->functions.empty());
    lock.reset();
    ASSERT_TRUE(eventually([&] { return stock_changed_; })) << why();
    EXPECT_EQ(why(), "");
    EXPECT_EQ(hardware_->inventory()->functions.size(), 2u);
    EXPECT_THAT(notes_, Contains(HasSubstr("can be had now: 2 of 0000:3b:00.0")));
}

TEST_F(GpuNic, that_comes_later_is_offered_and_a_new_reason_is_told_once) {
    std::optional<container::Fd> lock{have_the_nic()};
    open("1 x h200-141gb");
    if (!hardware_) return;
    lock.reset();
    ASSERT_TRUE(eventually([&] { return !notes_.empty(); })) << "no such NIC is another reason than somebody else's";
    EXPECT_THAT(notes_.front(), HasSubstr("still no virtual functions for tenants: "));
    const std::string reason = why();
    EXPECT_FALSE(stock_changed_);
    plug_in();
    ASSERT_TRUE(eventually([&] { return stock_changed_; })) << why();
    EXPECT_EQ(std::ranges::count_if(notes_, [&](const auto& note) { return note.find(reason) != note.npos; }), 1);
    EXPECT_EQ(hardware_->inventory()->functions.size(), 2u);
}

TEST_F(GpuNic, that_comes_later_is_rid_of_what_a_killed_test_has_left_before_anybody_is_served) {
    plug_in();
    std::optional<container::Fd> lock{have_the_nic()};
    const std::string records = places().run_folder + "/functions";
    std::filesystem::create_directories(records);
    FabricPort port;
    port.mac = "02:00:00:00:00:01";
    port.vlan = 3'900;
    std::ofstream{records + "/0000:3b:10.0"}
        << function_record_text(agent::record_for(agent::first_test_lease, "selftest-0", "0000:3b:10.0", port));
    open("1 x h200-141gb");
    if (!hardware_) return;
    lock.reset();
    ASSERT_TRUE(eventually([&] { return stock_changed_; })) << why();
    // This NIC is a cable: what is left cannot be undone there, and that is told.
    ASSERT_FALSE(faults_.empty());
    EXPECT_EQ(faults_[0].kind, UnitKind::vf);
    EXPECT_EQ(faults_[0].device, 0);
    EXPECT_THAT(faults_[0].why, HasSubstr("was cut short"));
}

TEST_F(GpuNic, gives_nobody_a_function_in_the_VLANs_of_its_tests) {
    plug_in();
    open("1 x h200-141gb");
    if (!hardware_) return;
    const auto attached_in = [&](std::uint16_t vlan) {
        FabricPort port;
        port.vlan = vlan;
        return carry(AttachFunction{.function = 0, .lease = key_of(1, 7), .tenant = "acme", .port = port}).why;
    };
    EXPECT_THAT(attached_in(3'900), HasSubstr("attacks its own fences"));
    EXPECT_THAT(attached_in(3'901), HasSubstr("attacks its own fences"));
    EXPECT_THAT(attached_in(3'899), testing::Not(HasSubstr("attacks its own fences")));
}

// Numbers are leases': an agent that cannot look does not say that its functions are lost.
TEST_F(GpuNic, is_remembered_by_its_functions_numbers_and_nobody_new_is_sent_to_them) {
    plug_in();
    open("1 x h200-141gb");
    if (!hardware_) return;
    const auto before = hardware_->inventory()->functions;
    ASSERT_EQ(before.size(), 2u) << why();
    hardware_.reset();
    const container::Fd lock = have_the_nic();
    auto next = agent::GpuHardware::open(settings_);
    ASSERT_TRUE(next) << next.error().what;
    hardware_ = *std::move(next);
    const auto now = hardware_->inventory()->functions;
    ASSERT_EQ(now.size(), 2u);
    EXPECT_EQ(now[1].address, before[1].address);
    EXPECT_TRUE(now[1].physical.empty());
    EXPECT_FALSE(offers_rdma());
    EXPECT_NE(why(), "");
}

// Whatever is plugged in meanwhile: what was seen to be open is closed by being seen closed, and by nothing else.
TEST_F(GpuNic, of_a_host_that_shared_its_rdma_devices_is_offered_only_where_it_does_not_any_more) {
    plug_in();
    settings_.no_functions = Error{Code::conflict, "RDMA devices are everybody's, as this test says", ""};
    open("1 x h200-141gb");
    if (!hardware_) return;
    const auto own = rdma::Space::own();
    ASSERT_TRUE(own);
    auto system = rdma::RdmaSystem::open(*own);
    const auto mode = system ? system->mode() : std::unexpected(system.error());
    ASSERT_TRUE(eventually([&] { return !notes_.empty(); }));
    EXPECT_EQ(stock_changed_, mode && *mode == rdma::NamespaceMode::exclusive) << notes_.front();
}

TEST_F(GpuNic, has_its_agent_test_its_fences_and_say_hello_again) {
    std::optional<container::Fd> lock{have_the_nic()};
    plug_in();
    open("1 x h200-141gb");
    if (!hardware_) return;
    auto runner = agent::Runner::open({.identity = {.node = "n"}, .journal = folder_ / "journal"},
                                      *evidence::SigningKey::from_seed(std::string(32, 'n')), std::move(hardware_),
                                      [](const Report&) {}, {});
    ASSERT_TRUE(runner) << runner.error().what;
    const auto told = [&] {
        return std::ranges::any_of((*runner)->unacknowledged(), [](const Report& report) {
            return std::holds_alternative<FabricTestReport>(report.what);
        });
    };
    EXPECT_TRUE((*runner)->hello()->inventory.functions.empty());
    EXPECT_FALSE((*runner)->has_other_stock());
    lock.reset();
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{60};
    while (!((*runner)->has_other_stock() && told()) && std::chrono::steady_clock::now() < until) {
        ASSERT_TRUE((*runner)->poll({}));
        std::this_thread::sleep_for(std::chrono::milliseconds{10});
    }
    ASSERT_TRUE((*runner)->has_other_stock());
    EXPECT_TRUE(told()) << "of a cable there is nothing to prove, and that is stated";
    EXPECT_THAT((*runner)->take_notes(), Contains(HasSubstr("can be had now")));
    EXPECT_EQ((*runner)->hello()->inventory.functions.size(), 2u);
    EXPECT_FALSE((*runner)->has_other_stock()) << "it was said";
}

}  // namespace
}  // namespace bulkhead::cli
