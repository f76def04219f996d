// A tree of files stands for the NIC, a link of the test's own namespace for its physical function: no kernel here has
// virtual functions, so what is shown is that nothing is done by halves and that whatever is left is found. Functions
// of a real driver are attached and released in the lab.
#include "bulkhead/agent/functions.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "bulkhead/agent/function_record.hpp"
#include "bulkhead/hw/rdma/tree_test.hpp"

namespace bulkhead::agent {
namespace {

using testing::Contains;
using testing::HasSubstr;

constexpr const char* pf = "0000:3b:00.0";

FabricPort good_port() {
    return {.function = 0,
            .mac = "02:42:0a:80:10:05",
            .vlan = 100,
            .address = "10.128.16.5/20",
            .subnet = "10.128.16.0/20",
            .rate_mbps = 10'000,
            .dscp = 26};
}

TEST(TenantNic, is_an_address_and_a_number) {
    EXPECT_EQ(parse_tenant_nic("0000:3b:00.0").value(), (TenantNic{pf, 0}));
    EXPECT_EQ(parse_tenant_nic("0000:3b:00.0=8").value(), (TenantNic{pf, 8}));
    for (const char* bad :
         {"", "3b:00.0", "0000:3b:00.0=", "0000:3b:00.0=0", "0000:3b:00.0=x", "0000:3b:00.0=5000", "eth0=8", "../x"})
        EXPECT_FALSE(parse_tenant_nic(bad)) << bad;
}

TEST(FunctionRecord, is_read_back_and_planned) {
    const FunctionRecord record = record_for(7, "acme", "0000:3b:10.0", good_port());
    EXPECT_EQ(read_function_record(function_record_text(record)).value(), record);
    const auto plan = plan_of(record);
    ASSERT_TRUE(plan) << plan.error().what;
    EXPECT_EQ(plan->setting.tag, (rdma::Tag{100, 3})) << "DSCP 26 is priority 3";
    EXPECT_TRUE(plan->setting.spoof_check);
    EXPECT_FALSE(plan->setting.trust);
}

TEST(FunctionRecord, a_port_that_is_wrong_is_refused_before_anything_is_done) {
    const std::function<void(FabricPort&)> spoils[] = {
        [](FabricPort& port) { port.mac = "03:42:0a:80:10:05"; },
        [](FabricPort& port) { port.mac = "00:00:00:00:00:00"; },
        [](FabricPort& port) { port.mac = ""; },
        [](FabricPort& port) { port.vlan = 4095; },
        [](FabricPort& port) { port.address = "10.128.16.5"; },
        [](FabricPort& port) { port.address = "10.128.32.5/20"; },
        [](FabricPort& port) { port.subnet = "all"; },
        [](FabricPort& port) { port.rate_mbps = -1; },
        [](FabricPort& port) { port.dscp = 64; },
        [](FabricPort& port) { port.node_guid = "02:00:00:00:00:00:10:05"; },
        [](FabricPort& port) { port.port_guid = port.node_guid = "00:00:00:00:00:00:00:00"; },
    };
    for (const auto& spoil : spoils) {
        FabricPort port = good_port();
        spoil(port);
        EXPECT_FALSE(plan_of(record_for(7, "acme", "0000:3b:10.0", port)));
    }
    EXPECT_FALSE(plan_of(record_for(0, "acme", "0000:3b:10.0", good_port())));
}

class FakeNic : public testing::Test {
protected:
    void SetUp() override {
        if (::geteuid() != 0) GTEST_SKIP() << "network namespaces take root";
        host_ = folder.root() + "/host-net";
        auto space = rdma::Space::make_named(host_);
        if (!space) GTEST_SKIP() << space.error().what;
        host.emplace(std::move(*space));
        auto links = rdma::Links::open(*host);
        ASSERT_TRUE(links);
        const auto link = links->make_veth("pf0", {"wire0", -1});
        if (!link) GTEST_SKIP() << link.error().what;
        tree.add_physical(pf, "igb", 2);
        tree.write(std::string{"bus/pci/devices/"} + pf + "/net/pf0/ifindex", std::to_string(*link) + "\n");
        auto opened = open();
        ASSERT_TRUE(opened) << opened.error().what;
        functions = std::move(*opened);
    }
    Result<std::unique_ptr<Functions>> open() const {
        return Functions::open({.nics = {{pf, 0}},
                                .run_folder = folder.root() + "/run",
                                .sys = tree.root(),
                                .host = host_,
                                .order = folder.root() + "/order",
                                .locks = folder.root() + "/locks",
                                .follow_patience = std::chrono::milliseconds{50}});
    }
    void open_again() {
        functions.reset();
        auto opened = open();
        ASSERT_TRUE(opened) << opened.error().what;
        functions = std::move(*opened);
    }
    void TearDown() override {
        if (functions) (void)rdma::Space::hide_sysfs(functions->space_of(7) + ".sys");
        if (functions) (void)rdma::Space::remove_named(functions->space_of(7));
        if (!host_.empty()) (void)rdma::Space::remove_named(host_);
    }
    rdma::FakeTree tree, folder;
    std::string host_;
    std::optional<rdma::Space> host;
    std::unique_ptr<Functions> functions;
};

TEST_F(FakeNic, functions_are_counted_by_their_addresses) {
    const auto all = functions->inventory();
    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(all[0].address, "0000:3b:10.0");
    EXPECT_EQ(all[1].address, "0000:3b:10.1");
    EXPECT_EQ(functions->grade(0), Grade::emulated) << "QEMU's NIC";
    tree.write(std::string{"bus/pci/devices/"} + pf + "/subsystem_vendor", "0x8086\n");
    tree.write(std::string{"bus/pci/devices/"} + pf + "/subsystem_device", "0xa03c\n");
    open_again();
    EXPECT_EQ(functions->grade(0), Grade::silicon);
    EXPECT_FALSE(functions->attach(7, "acme", [] {
        FabricPort port = good_port();
        port.function = 2;
        return port;
    }()));
}

TEST_F(FakeNic, a_nic_that_sets_nothing_gets_no_driver_and_no_namespace) {
    tree.write("bus/pci/drivers/igbvf/bind", "");
    const auto attached = functions->attach(7, "acme", good_port());
    ASSERT_FALSE(attached);
    EXPECT_THAT(attached.error().what, HasSubstr("set the MAC 02:42:0a:80:10:05 of virtual function 0"));
    EXPECT_EQ(tree.read("bus/pci/drivers/igbvf/bind"), "") << "the driver waits for the fence";
    EXPECT_FALSE(rdma::Space::is_there(functions->space_of(7)));
}

TEST_F(FakeNic, whatever_could_be_left_is_found_and_named) {
    const auto found = [&] { return functions->verify(0); };
    EXPECT_THAT(found().why, HasSubstr("has 0 virtual functions")) << "what cannot be looked at is not clean";
    const auto count = found().bytes_residue;
    EXPECT_FALSE(found().ok);

    tree.link("bus/pci/devices/0000:3b:10.0/driver", "../../../bus/pci/drivers/igbvf");
    EXPECT_THAT(found().why, HasSubstr("0000:3b:10.0 still has the driver igbvf"));
    EXPECT_EQ(found().bytes_residue, count + 1);
    tree.remove("bus/pci/devices/0000:3b:10.0/driver");

    ASSERT_TRUE(rdma::Space::make_named(functions->space_of(7)));
    EXPECT_THAT(found().why, AllOf(HasSubstr("a network namespace in"), HasSubstr("belongs to no function"),
                                   Not(HasSubstr("lease-7"))));
    ASSERT_TRUE(rdma::Space::remove_named(functions->space_of(7)));

    const std::string record = folder.root() + "/run/functions/0000:3b:10.0";
    folder.write("run/functions/0000:3b:10.0",
                 function_record_text(record_for(7, "acme", "0000:3b:10.0", good_port())));
    EXPECT_THAT(found().why, HasSubstr("0000:3b:10.0 is still on record as a lease's"));
    std::filesystem::rename(record, record + ".last");
    EXPECT_EQ(found().bytes_residue, count) << "whose it was is no residue";
    tree.add_port("rxe0", "Ethernet", 4, {{1, "0000:0000:0000:0000:0000:ffff:0a80:1005", "RoCE v2", "x"}});
    EXPECT_THAT(found().why, HasSubstr("row 1 of rxe0/1 still holds the tenant's GID"));
    tree.remove("class/infiniband");

    const auto loaded = rdma::Nft{}.load(*host, {.table = "bulkhead_f0",
                                                 .device = "wire0",
                                                 .mac = *rdma::parse_mac("02:42:0a:80:10:05"),
                                                 .address = *rdma::parse_prefix("10.128.16.5/20"),
                                                 .subnet = *rdma::parse_prefix("10.128.16.0/20")});
    if (loaded) {
        EXPECT_THAT(found().why, HasSubstr("the guard bulkhead_f0 is in the host's tables"));
        ASSERT_TRUE(rdma::Nft{}.remove(*host, "bulkhead_f0"));
    }
    EXPECT_EQ(found().bytes_residue, count) << "all of it is gone again";
}

// There it is the prefix of the subnet and a GUID; the address that the port has besides makes no row.
TEST_F(FakeNic, a_GID_that_is_left_on_InfiniBand_is_found_by_its_GUIDs) {
    FabricPort port = good_port();
    port.mac.clear();
    port.vlan = 0;
    port.node_guid = "02:00:00:00:00:00:10:05";
    port.port_guid = "02:00:00:00:00:00:10:06";
    const auto found = [&] { return functions->verify(0); };
    folder.write("run/functions/0000:3b:10.0.last", function_record_text(record_for(7, "acme", "0000:3b:10.0", port)));
    const auto count = found().bytes_residue;
    const std::string other = "fe80:0000:0000:0000:0200:0000:0000:1007";
    struct Row {
        const char *says, *gid;
        std::int64_t left;
    };
    const Row rows[] = {
        {"the port's, in the subnet that there is without a manager", "fe80:0000:0000:0000:0200:0000:0000:1006", 1},
        {"the port's, in a subnet of its own", "fec0:0000:0000:0001:0200:0000:0000:1006", 1},
        {"the node's", "fe80:0000:0000:0000:0200:0000:0000:1005", 1},
        {"somebody else's", other.c_str(), 0},
    };
    for (const Row& row : rows) {
        tree.add_port("mlx5_0", "InfiniBand", 2, {{0, other, "IB/RoCE v1", ""}, {1, row.gid, "IB/RoCE v1", ""}});
        EXPECT_EQ(found().bytes_residue, count + row.left) << row.says << ": " << found().why;
        EXPECT_EQ(found().why.contains("row 1 of mlx5_0/1 still holds the tenant's GID"), row.left == 1) << row.says;
    }
}

TEST_F(FakeNic, a_function_that_is_somebodys_is_not_given_to_another) {
    folder.write("run/functions/0000:3b:10.0",
                 function_record_text(record_for(8, "zenith", "0000:3b:10.0", good_port())));
    const auto attached = functions->attach(7, "acme", good_port());
    ASSERT_FALSE(attached);
    EXPECT_EQ(attached.error().code, Code::conflict);
    EXPECT_THAT(attached.error().what, HasSubstr("attached to another lease"));
    EXPECT_THAT(attached.error().what, Not(HasSubstr("8"))) << "whose is not for whoever waits for it";
}

TEST_F(FakeNic, a_function_without_a_fabric_is_not_handed_out_and_it_is_said_why) {
    const auto attached = functions->attach(7, "acme", {.function = 0});
    ASSERT_FALSE(attached);
    EXPECT_THAT(attached.error().what, HasSubstr("would be nobody on the fabric: the fleet declares none"));
    EXPECT_THAT(attached.error().remedy, HasSubstr("spec.fabric"));
}

TEST_F(FakeNic, one_program_at_a_time_has_a_nic) {
    const auto second = open();
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, Code::conflict);
    EXPECT_THAT(second.error().what, HasSubstr("another program on this host has the NIC 0000:3b:00.0"));
    open_again();
}

TEST_F(FakeNic, a_number_stays_with_its_function_whatever_else_goes) {
    // The first function is gone: the second is still the second.
    tree.write(std::string{"bus/pci/devices/"} + pf + "/sriov_numvfs", "1\n");
    tree.link(std::string{"bus/pci/devices/"} + pf + "/virtfn0", "../0000:3b:10.1");
    tree.remove("bus/pci/devices/0000:3b:10.0");
    open_again();
    const auto all = functions->inventory();
    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(all[0].address, "0000:3b:10.0");
    EXPECT_EQ(all[0].physical, "");
    EXPECT_EQ(all[1].address, "0000:3b:10.1");
    EXPECT_EQ(all[1].physical, pf);
    EXPECT_EQ(functions->attach(7, "acme", good_port()).error().code, Code::not_found);
    EXPECT_TRUE(functions->detach(0)) << "whatever was on it went with it";
    EXPECT_FALSE(functions->wipe(0).ok);
}

TEST_F(FakeNic, a_record_under_another_number_is_a_conflict) {
    FabricPort other = good_port();
    other.function = 1;
    folder.write("run/functions/0000:3b:10.0", function_record_text(record_for(7, "acme", "0000:3b:10.0", other)));
    for (const auto& done : {functions->attach(7, "acme", good_port()), functions->detach(0)}) {
        ASSERT_FALSE(done);
        EXPECT_EQ(done.error().code, Code::conflict);
        EXPECT_THAT(done.error().what, HasSubstr("was attached as function 1 and is function 0 now"));
    }
}

TEST_F(FakeNic, a_record_that_the_nic_does_not_bear_out_makes_no_function_ours) {
    EXPECT_TRUE(functions->check_free(0));
    folder.write("run/functions/0000:3b:10.0",
                 function_record_text(record_for(7, "acme", "0000:3b:10.0", good_port())));
    EXPECT_TRUE(functions->check_free(0)) << "nobody has a function without a driver";
    tree.link("bus/pci/devices/0000:3b:10.0/driver", "../../../bus/pci/drivers/igbvf");
    const auto taken = functions->check_free(0);
    ASSERT_FALSE(taken) << "this NIC shows no such MAC";
    EXPECT_EQ(taken.error().code, Code::conflict);
}

TEST_F(FakeNic, only_functions_that_nobody_has_are_tested_with) {
    const std::vector<std::uint16_t> none, both{0, 1}, first{0};
    const auto pairs = [&](const auto& held, const auto& clean) { return functions->pairs_to_test(held, clean); };
    ASSERT_EQ(pairs(none, none).pairs.size(), 1u);
    EXPECT_EQ(pairs(none, none).pairs[0], (FunctionPair{0, 1}));
    ASSERT_THAT(pairs(first, none).why_not, testing::SizeIs(1));
    EXPECT_THAT(pairs(first, none).why_not[0], HasSubstr("and 1 of 2 are free: 0000:3b:10.0 is held"));
    const std::string record = function_record_text(record_for(7, "acme", "0000:3b:10.0", good_port()));
    folder.write("run/functions/0000:3b:10.0.last", record);
    EXPECT_THAT(pairs(none, none).pairs, testing::IsEmpty()) << "somebody's, and not wiped since";
    EXPECT_EQ(pairs(none, first).pairs.size(), 1u) << "wiped since, by the journal";
    EXPECT_TRUE(functions->hold_for_test({0, 1}));
    folder.write("run/functions/0000:3b:10.0.last", record);
    EXPECT_FALSE(functions->hold_for_test({0, 1})) << "somebody's since it was chosen, and its wipe is yet to come";
    folder.write("run/functions/0000:3b:10.0", record);
    EXPECT_THAT(pairs(none, both).pairs, testing::IsEmpty()) << "on record as a lease's";
    EXPECT_FALSE(functions->hold_for_test({0, 1}));
    std::filesystem::remove(folder.root() + "/run/functions/0000:3b:10.0");
    tree.link("bus/pci/devices/0000:3b:10.1/driver", "../../../bus/pci/drivers/igbvf");
    EXPECT_THAT(pairs(none, both).pairs, testing::IsEmpty()) << "somebody may be using it";
}

TEST_F(FakeNic, no_test_begins_again_on_a_function_that_somebody_waits_for) {
    for (int round = 0; round < 20; ++round) {
        auto hold = std::make_unique<Result<Functions::TestHold>>(functions->hold_for_test({0, 1}));
        ASSERT_TRUE(*hold) << hold->error().what;
        std::atomic<bool> is_done = false;
        std::thread other{[&] {
            (void)functions->detach(0);
            is_done = true;
        }};
        while (!functions->is_waited_for(0)) std::this_thread::yield();
        hold.reset();
        const auto again = functions->hold_for_test({0, 1});
        for (int i = 0; again && i < 500 && !is_done; ++i) std::this_thread::sleep_for(std::chrono::milliseconds{20});
        ASSERT_TRUE(!again || is_done) << "it was held again before whoever waited had its turn";
        other.join();
    }
}

// A veth is no NIC: what is asked of it fails, but not before the test has let go.
TEST_F(FakeNic, whoever_wants_a_function_that_is_tested_waits_for_the_end) {
    std::atomic<bool> is_over = false, saw_the_end = false;
    {
        const auto hold = functions->hold_for_test({0, 1});
        ASSERT_TRUE(hold) << hold.error().what;
        EXPECT_FALSE(functions->hold_for_test({0, 1})) << "one test at a time";
        (void)functions->detach(0);  // whoever tests does not wait for itself
        std::thread other{[&] {
            (void)functions->attach(7, "acme", good_port());
            saw_the_end = is_over.load();
        }};
        std::this_thread::sleep_for(std::chrono::milliseconds{200});
        is_over = true;
        other.detach();
    }
    for (int i = 0; i < 500 && !saw_the_end; ++i) std::this_thread::sleep_for(std::chrono::milliseconds{20});
    EXPECT_TRUE(saw_the_end);
}

TEST_F(FakeNic, what_a_killed_test_has_left_is_taken_back_and_nobody_elses) {
    FabricPort port = good_port();
    const auto put = [&](Key lease, const std::string& device, std::uint16_t function) {
        port.function = function;
        folder.write("run/functions/" + device, function_record_text(record_for(lease, "selftest-0", device, port)));
    };
    put(first_test_lease, "0000:3b:10.0", 0);
    put(7, "0000:3b:10.1", 1);
    // This NIC is a cable: what is left of the test cannot be undone there, and is told by its number.
    const auto stuck = functions->take_back_tests();
    ASSERT_FALSE(stuck.empty());
    EXPECT_EQ(stuck[0].first, 0);
    for (const auto& [function, why] : stuck) EXPECT_EQ(function, 0) << why;
    EXPECT_TRUE(has_function_record(folder.root() + "/run", 1)) << "a lease's";
}

TEST_F(FakeNic, a_function_is_not_let_go_while_its_rdma_device_is_there) {
    // The first function is gone from the bus, and its RDMA device is not.
    FunctionRecord record = record_for(7, "acme", "0000:3b:10.0", good_port());
    record.rdma = "rxe0";
    folder.write("run/functions/0000:3b:10.0", function_record_text(record));
    tree.write(std::string{"bus/pci/devices/"} + pf + "/sriov_numvfs", "1\n");
    tree.link(std::string{"bus/pci/devices/"} + pf + "/virtfn0", "../0000:3b:10.1");
    tree.remove("bus/pci/devices/0000:3b:10.0");
    open_again();
    tree.add_port("rxe0", "Ethernet", 4, {{1, "0000:0000:0000:0000:0000:ffff:0a80:1005", "RoCE v2", "x"}});
    const auto kept = functions->detach(0);
    ASSERT_FALSE(kept);
    EXPECT_THAT(kept.error().what, HasSubstr("its RDMA device rxe0 is still there"));
    EXPECT_TRUE(has_function_record(folder.root() + "/run", 0));
    tree.remove("class/infiniband");
    EXPECT_TRUE(functions->detach(0));
    EXPECT_FALSE(has_function_record(folder.root() + "/run", 0));
}

TEST_F(FakeNic, what_is_on_record_is_known_without_the_nic) {
    EXPECT_FALSE(has_function_record(folder.root() + "/run", 0));
    EXPECT_FALSE(has_function_record(folder.root() + "/nowhere", 0));
    folder.write("run/functions/0000:3b:10.0.last", "{}");
    EXPECT_FALSE(has_function_record(folder.root() + "/run", 0)) << "whose it was is no record";
    folder.write("run/functions/0000:3b:10.0",
                 function_record_text(record_for(7, "acme", "0000:3b:10.0", good_port())));
    EXPECT_TRUE(has_function_record(folder.root() + "/run", 0));
    EXPECT_FALSE(has_function_record(folder.root() + "/run", 1));
    folder.write("run/functions/0000:3b:10.1", "torn");
    EXPECT_TRUE(has_function_record(folder.root() + "/run", 1)) << "nobody knows whose that is";
}

TEST_F(FakeNic, a_link_is_found_however_many_there_were_before_it) {
    const std::string path = std::string{"bus/pci/devices/"} + pf + "/net/pf0/ifindex";
    tree.write(path, "70000\n");
    EXPECT_EQ((*rdma::PciTree{tree.root()}.net_device(pf))->index, 70'000);
    for (const char* bad : {"0\n", "-3\n", "99999999999\n", "x\n"}) {
        tree.write(path, bad);
        EXPECT_FALSE(rdma::PciTree{tree.root()}.net_device(pf)) << bad;
    }
}

}  // namespace
}  // namespace bulkhead::agent
