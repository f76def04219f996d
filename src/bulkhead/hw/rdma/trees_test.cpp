#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bulkhead/hw/rdma/gid_table.hpp"
#include "bulkhead/hw/rdma/pci_functions.hpp"
#include "bulkhead/hw/rdma/rdma_limits.hpp"
#include "bulkhead/hw/rdma/tree_test.hpp"

namespace bulkhead::rdma {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* pf = "0000:3b:00.0";

TEST(PciTree, a_physical_function_shows_its_virtual_ones_by_number) {
    const FakeTree tree;
    tree.add_physical(pf, "igb", 3);
    tree.link("bus/pci/devices/0000:3b:10.1/driver", "../../../bus/pci/drivers/vfio-pci");
    const auto found = PciTree{tree.root()}.physical(pf);
    ASSERT_TRUE(found) << found.error().what;
    EXPECT_EQ(found->driver, "igb");
    EXPECT_EQ(found->functions_max, 7u);
    EXPECT_TRUE(found->is_emulated());
    ASSERT_EQ(found->functions.size(), 3u);
    EXPECT_EQ(found->functions[1], (VirtualFunction{1, "0000:3b:10.1", "vfio-pci", "21"}));
    EXPECT_EQ(found->functions[2], (VirtualFunction{2, "0000:3b:10.2", "", "22"}));
}

TEST(PciTree, what_is_no_nic_with_functions_is_refused_in_words) {
    const FakeTree tree;
    tree.add_physical(pf, "igb", 2);
    tree.remove(std::string{"bus/pci/devices/"} + pf + "/virtfn1");
    const PciTree pci{tree.root()};
    EXPECT_THAT(pci.physical("../../etc").error().what, HasSubstr("no PCI address"));
    EXPECT_THAT(pci.physical("0000:3b:00.1").error().what, HasSubstr("no PCI device"));
    EXPECT_THAT(pci.physical(pf).error().what, HasSubstr("virtfn1 leads nowhere"));
    tree.write(std::string{"bus/pci/devices/"} + pf + "/sriov_numvfs", "many\n");
    EXPECT_THAT(pci.physical(pf).error().what, HasSubstr("'many', which is no number"));
    tree.remove(std::string{"bus/pci/devices/"} + pf + "/sriov_totalvfs");
    EXPECT_THAT(pci.physical(pf).error().what, HasSubstr("has no virtual functions"));
}

TEST(PciTree, functions_are_not_taken_away_to_change_their_number_and_get_no_driver_by_themselves) {
    const FakeTree tree;
    tree.add_physical(pf, "igb", 2);
    const PciTree pci{tree.root()};
    EXPECT_THAT(pci.make_functions(pf, 4).error().what, HasSubstr("takes all of them away"));
    EXPECT_EQ(tree.read(std::string{"bus/pci/devices/"} + pf + "/sriov_numvfs"), "2\n");
    EXPECT_TRUE(pci.make_functions(pf, 2));
    EXPECT_EQ(tree.read(std::string{"bus/pci/devices/"} + pf + "/sriov_drivers_autoprobe").front(), '0');
    const FakeTree empty;
    empty.add_physical(pf, "igb", 0);
    EXPECT_THAT(PciTree{empty.root()}.make_functions(pf, 8).error().what, HasSubstr("can have 7"));
}

TEST(PciTree, a_driver_that_is_accepted_and_does_not_come_is_an_error) {
    const FakeTree tree;
    tree.add_physical(pf, "igb", 1);
    const PciTree pci{tree.root()};
    EXPECT_EQ(PciTree::driver_of_functions("igb"), "igbvf");
    EXPECT_EQ(PciTree::driver_of_functions("mlx5_core"), "mlx5_core");
    EXPECT_THAT(pci.bind("0000:3b:10.0", "igbvf").error().what, HasSubstr("is not loaded"));
    tree.write("bus/pci/drivers/igbvf/bind", "");
    EXPECT_THAT(pci.bind("0000:3b:10.0", "igbvf").error().what, HasSubstr("is bound to ''"));
    EXPECT_EQ(tree.read("bus/pci/drivers/igbvf/bind"), "0000:3b:10.0");
    EXPECT_EQ(tree.read("bus/pci/devices/0000:3b:10.0/driver_override").substr(0, 5), "igbvf");
    tree.link("bus/pci/devices/0000:3b:10.0/driver", "../../../bus/pci/drivers/igbvf");
    EXPECT_TRUE(pci.bind("0000:3b:10.0", "igbvf"));
    EXPECT_THAT(pci.bind("0000:3b:10.0", "vfio-pci").error().what, HasSubstr("has the driver igbvf"));
    tree.write("bus/pci/drivers/igbvf/unbind", "");
    tree.link("bus/pci/devices/0000:3b:10.0/driver", tree.root() + "/bus/pci/drivers/igbvf");
    EXPECT_THAT(pci.unbind("0000:3b:10.0").error().what, HasSubstr("still has the driver igbvf"));
    tree.remove("bus/pci/devices/0000:3b:10.0/driver");
    EXPECT_TRUE(pci.unbind("0000:3b:10.0"));
    EXPECT_EQ(tree.read("bus/pci/devices/0000:3b:10.0/driver_override").front(), '\n');
}

// The rule of NCCL 2.30 at NCCL_IB_GID_INDEX=-1, written down again to hold ours against: of the rows in the wanted
// family, inside the wanted range and of version 2, the last that is better than what was there before, which begins
// with row 0. Link-local and unset rows are nobody's.
std::uint32_t nccl_choice(const RdmaPort& port, std::uint32_t rows, const Prefix& range) {
    const auto row_at = [&](std::uint32_t index) -> const GidRow* {
        for (const GidRow& row : port.gids)
            if (row.index == index) return &row;
        return nullptr;
    };
    const auto is_valid = [](const GidRow* row) {
        return row != nullptr && !row->gid.is_zero() && !row->gid.is_link_local();
    };
    const auto is_inside = [&](const GidRow* row) {
        if (row == nullptr || !row->gid.is_ipv4()) return false;
        Prefix of{false, {}, 32};
        std::copy_n(row->gid.octets.begin() + 12, 4, of.octets.begin());
        return range.contains(of);
    };
    std::uint32_t chosen = 0;
    for (std::uint32_t candidate = 1; candidate < rows; ++candidate) {
        const GidRow *now = row_at(chosen), *next = row_at(candidate);
        const bool now_fits = now != nullptr && now->gid.is_ipv4(), next_fits = next != nullptr && next->gid.is_ipv4();
        if (!is_valid(next) || (now_fits && !next_fits)) continue;
        if (!now_fits && next_fits && is_inside(next)) {
            chosen = candidate;
            continue;
        }
        if (next_fits && is_inside(next) && next->version == RoceVersion::v2 &&
            (now == nullptr || now->version != RoceVersion::v2))
            chosen = candidate;
    }
    return chosen;
}

constexpr const char* link_local = "fe80:0000:0000:0000:0042:0aff:fe80:1005";
constexpr const char* ours = "0000:0000:0000:0000:0000:ffff:0a80:1005";
constexpr const char* others = "0000:0000:0000:0000:0000:ffff:0a80:2005";

TEST(GidTable, the_row_is_looked_up_and_is_the_one_that_nccl_takes) {
    struct Layout {
        const char* says;
        unsigned rows;
        std::vector<FakeTree::Row> filled;
        std::uint32_t expected;
    };
    const Layout layouts[] = {
        {"ConnectX: each address as v1 and v2, link-local first",
         256,
         {{0, link_local, "IB/RoCE v1", "fabric3"},
          {1, link_local, "RoCE v2", "fabric3"},
          {2, ours, "IB/RoCE v1", "fabric3"},
          {3, ours, "RoCE v2", "fabric3"}},
         3},
        {"ConnectX after an address went and another came: rows have moved",
         256,
         {{0, link_local, "IB/RoCE v1", "fabric3"},
          {1, link_local, "RoCE v2", "fabric3"},
          {4, ours, "IB/RoCE v1", "fabric3"},
          {5, ours, "RoCE v2", "fabric3"}},
         5},
        {"soft-RoCE: v2 alone, in 1,024 rows",
         1'024,
         {{0, link_local, "RoCE v2", "fabric3"}, {1, ours, "RoCE v2", "fabric3"}},
         1},
    };
    for (const Layout& layout : layouts) {
        const FakeTree tree;
        tree.add_port("mlx5_2", "Ethernet", layout.rows, layout.filled);
        const auto ports = RdmaTree{tree.root()}.ports("mlx5_2");
        ASSERT_TRUE(ports) << ports.error().what;
        ASSERT_EQ(ports->size(), 1u);
        const RdmaPort& port = ports->front();
        EXPECT_TRUE(port.is_active);
        EXPECT_EQ(port.gids.size(), layout.filled.size()) << "empty rows are none";
        EXPECT_THAT(port.pkeys, testing::ElementsAre(0xffff));
        EXPECT_EQ(row_of(port, *parse_gid(ours)), layout.expected) << layout.says;
        EXPECT_EQ(nccl_choice(port, layout.rows, *parse_prefix("10.128.16.0/20")), layout.expected) << layout.says;
        EXPECT_EQ(row_of(port, *parse_gid(others)), std::nullopt) << layout.says;
    }
}

TEST(GidTable, a_row_of_another_tenant_is_never_the_one) {
    const FakeTree tree;
    tree.add_port("rxe0", "Ethernet", 8, {{1, others, "RoCE v2", "x"}, {2, ours, "IB/RoCE v1", "x"}});
    const auto ports = RdmaTree{tree.root()}.ports("rxe0");
    ASSERT_TRUE(ports);
    EXPECT_EQ(row_of(ports->front(), *parse_gid(ours)), std::nullopt) << "its v1 row is not routable";
}

TEST(GidTable, what_is_broken_is_said) {
    const FakeTree tree;
    tree.add_port("rxe0", "Ethernet", 2, {{1, ours, "RoCE v3", "x"}});
    EXPECT_THAT(RdmaTree{tree.root()}.ports("rxe0").error().what, HasSubstr("row 1 is of type 'RoCE v3'"));
    tree.write("class/infiniband/rxe0/ports/1/gids/1", "none of your business\n");
    EXPECT_FALSE(RdmaTree{tree.root()}.ports("rxe0"));
    EXPECT_FALSE(RdmaTree{tree.root()}.ports("../rxe0"));
}

TEST(RdmaTree, the_file_of_a_device_is_its_own) {
    const FakeTree tree;
    tree.write("class/infiniband_verbs/uverbs0/ibdev", "mlx5_0\n");
    tree.write("class/infiniband_verbs/uverbs0/dev", "231:192\n");
    tree.write("class/infiniband_verbs/uverbs3/ibdev", "mlx5_2\n");
    tree.write("class/infiniband_verbs/uverbs3/dev", "231:195\n");
    const RdmaTree rdma{tree.root()};
    EXPECT_EQ(rdma.verbs("mlx5_2").value(), (VerbsNode{"/dev/infiniband/uverbs3", 231, 195}));
    EXPECT_FALSE(rdma.verbs("mlx5_20")) << "a prefix is another device";
    tree.write("class/infiniband_verbs/uverbs3/dev", "231\n");
    EXPECT_FALSE(rdma.verbs("mlx5_2"));
}

TEST(RdmaLimits, lines_are_read_and_written) {
    const auto all = parse_rdma_limits("mlx5_2 hca_handle=2 hca_object=2000\nrxe0 hca_handle=max hca_object=max\n");
    ASSERT_TRUE(all) << all.error().what;
    EXPECT_EQ(all->at("mlx5_2"), (RdmaLimit{2, 2000}));
    EXPECT_EQ(all->at("rxe0"), (RdmaLimit{}));
    EXPECT_EQ(print_rdma_limit("mlx5_2", {2, 2000}), "mlx5_2 hca_handle=2 hca_object=2000");
    EXPECT_EQ(print_rdma_limit("mlx5_2", {}), "mlx5_2 hca_handle=max hca_object=max");
    for (const char* bad : {"mlx5_2 hca_handle=2x", "hca_handle=2", "a hca_handle=1\na hca_handle=2", " hca_object=1"})
        EXPECT_FALSE(parse_rdma_limits(bad)) << bad;
}

TEST(RdmaLimits, a_limit_that_was_not_taken_is_an_error) {
    const FakeTree tree;
    EXPECT_FALSE(limit_rdma(tree.root(), "mlx5_2", {2, 2000})) << "no controller, no limit";
    tree.write("rdma.max", "");
    EXPECT_TRUE(limit_rdma(tree.root(), "mlx5_2", {2, 2000}));
    tree.write("rdma.max",
               "another hca_handle=1 hca_object=1\nmlx5_2 hca_handle=2 hca_object=2000 and more that stays\n");
    EXPECT_FALSE(limit_rdma(tree.root(), "mlx5_3", {1, 1}));
}

}  // namespace
}  // namespace bulkhead::rdma
