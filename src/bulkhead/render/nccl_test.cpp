// What NCCL is given: well-formed, complete, and of nothing that is not leased.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include "bulkhead/node/model.hpp"
#include "bulkhead/render/nccl_environment.hpp"
#include "bulkhead/render/nccl_topology.hpp"
#include "bulkhead/render/xml_reader_test.hpp"

namespace bulkhead::render {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

GpuNodeStatus board_of_eight() {
    return NodeModel{{.node = "n0", .gpus = 8, .functions = 16, .nvlink = NvLink::fabric}}.inventory();
}

FabricPort rail(std::uint16_t function) {
    return {.function = function,
            .mac = fmt::format("02:42:0a:80:10:{:02x}", function + 2),
            .vlan = 117,
            .address = fmt::format("10.128.16.{}/20", function + 2),
            .subnet = "10.128.16.0/20",
            .rate_mbps = 200'000,
            .dscp = 26,
            .node_guid = {},
            .port_guid = {}};
}

NodePart all_of_it() {
    NodePart part;
    for (std::uint16_t i = 0; i < 8; ++i) {
        part.gpus.push_back({i, true});
        part.functions.push_back(i);
        part.ports.push_back(rail(i));
    }
    return part;
}

std::map<std::string, std::string> environment_of(const GpuNodeStatus& node, const NodePart& part,
                                                  const NcclFacts& facts = {}) {
    const auto lines = nccl_environment(node, part, facts);
    EXPECT_TRUE(lines) << lines.error().what;
    std::map<std::string, std::string> out;
    for (const std::string& line : lines.value_or(std::vector<std::string>{})) {
        const std::size_t at = line.find('=');
        out[line.substr(0, at)] = line.substr(at + 1);
    }
    return out;
}

TEST(NcclTopology, of_eight_gpus_is_what_it_was) {
    const auto text = nccl_topology(board_of_eight(), all_of_it());
    ASSERT_TRUE(text) << text.error().what;
    std::ifstream file{BULKHEAD_SOURCE_DIR "/testdata/render/nccl-8-gpus.xml"};
    const std::string golden{std::istreambuf_iterator<char>{file}, {}};
    EXPECT_EQ(*text, golden);
}

// A small one, drawn by hand: two GPUs joined by a bridge, one function beside the first, the third GPU somebody
// else's.
TEST(NcclTopology, is_drawn_as_nccl_draws_it) {
    GpuNodeStatus node;
    node.gpus = {{.model = "a100-80gb", .count = 3}};
    node.topology = {{.gpu = 0,
                      .bus = "00000000:1B:00.0",
                      .numaNode = 0,
                      .cpus = "0-3,8-11",
                      .bridges = {"0000:17:01.0", "0000:18:00.0", "0000:19:00.0"},
                      .nvlinks = 8,
                      .nvlinkPeers = {{1, 4}, {2, 4}}},
                     {.gpu = 1,
                      .bus = "0000:9c:00.0",
                      .numaNode = 1,
                      .cpus = "32-63",
                      .bridges = {"0000:9a:01.0"},
                      .nvlinks = 8,
                      .nvlinkPeers = {{0, 4}, {2, 4}}},
                     {.gpu = 2, .bus = "0000:9d:00.0", .numaNode = 1, .cpus = "32-63"}};
    node.functions = {{.address = "0000:1c:00.2",
                       .lease = {},
                       .device = "mlx5_4",
                       .netdev = "ens1v0",
                       .physical = {},
                       .guid = {},
                       .numaNode = 0,
                       .bridges = {"0000:17:01.0", "0000:18:00.0", "0000:19:08.0"},
                       .speedMbps = 100'000}};
    const NodePart part{.gpus = {{0, true}, {1, true}}, .functions = {0}, .ports = {rail(0)}};
    const auto text = nccl_topology(node, part);
    ASSERT_TRUE(text) << text.error().what;
    EXPECT_EQ(*text, R"(<system version="1">
  <cpu numaid="0" affinity="00000f0f">
    <pci busid="0000:18:00.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="16">
      <pci busid="0000:1b:00.0" class="0x030200" vendor="0x10de">
        <gpu dev="0" sm="80">
          <nvlink target="0000:9c:00.0" count="4" tclass="0x030200"/>
        </gpu>
      </pci>
      <pci busid="0000:1c:00.2" class="0x020000">
        <nic>
          <net name="mlx5_4" dev="0" port="1" speed="100000"/>
        </nic>
      </pci>
    </pci>
  </cpu>
  <cpu numaid="1" affinity="ffffffff,00000000">
    <pci busid="0000:9c:00.0" class="0x030200" vendor="0x10de">
      <gpu dev="1" sm="80">
        <nvlink target="0000:1b:00.0" count="4" tclass="0x030200"/>
      </gpu>
    </pci>
  </cpu>
</system>
)");
}

// NCCL's own rules: what may be in what, and what must be said of it.
const std::map<std::string, std::set<std::string>> allowed_in{
    {"system", {"cpu"}},
    {"cpu", {"pci", "nic"}},
    {"pci", {"pci", "gpu", "nic", "pcilink"}},
    {"gpu", {"nvlink", "c2c"}},
    {"nic", {"net"}},
    {"net", {}},
    {"nvlink", {}},
};
const std::map<std::string, std::set<std::string>> said_of{
    {"system", {"version"}},
    {"cpu", {"numaid"}},
    {"pci", {"busid", "class"}},
    {"gpu", {"dev", "sm"}},
    {"nic", {}},
    {"net", {"name", "dev", "port", "speed"}},
    {"nvlink", {"target", "count", "tclass"}},
};

void expect_readable(const std::string& text) {
    const auto root = read_xml(text);
    ASSERT_TRUE(root) << text;
    EXPECT_EQ(root->name, "system");
    EXPECT_EQ(root->at("version"), "1");
    std::size_t count = 0;
    walk(*root, [&](const Read& element) {
        ++count;
        ASSERT_TRUE(allowed_in.contains(element.name)) << element.name;
        for (const std::string& key : said_of.at(element.name)) EXPECT_NE(element.at(key), "(none)") << key;
        EXPECT_LE(element.attributes.size(), 16u);
        for (const auto& [key, value] : element.attributes) EXPECT_LE(value.size(), 255u);
        for (const Read& child : element.children) {
            EXPECT_TRUE(allowed_in.at(element.name).contains(child.name)) << child.name << " in " << element.name;
            // Of a switch NCCL learns nothing by itself.
            EXPECT_TRUE(element.name != "pci" || child.name != "pci" || element.at("link_width") != "(none)");
        }
    });
    EXPECT_LE(count, 256u);
}

TEST(NcclTopology, of_eight_gpus_is_well_formed_and_complete) {
    const auto text = nccl_topology(board_of_eight(), all_of_it());
    ASSERT_TRUE(text) << text.error().what;
    expect_readable(*text);
    std::map<std::string, int> seen;
    walk(*read_xml(*text), [&](const Read& element) { ++seen[element.name]; });
    EXPECT_EQ(seen["gpu"], 8);
    EXPECT_EQ(seen["net"], 8);
    EXPECT_EQ(seen["nvlink"], 8) << "each to the switches";
    EXPECT_EQ(seen["cpu"], 2);
    EXPECT_EQ(seen["pci"], 4 + 8 + 8) << "four switches, the GPUs, the functions";
}

RC_GTEST_PROP(NcclTopology, names_nothing_that_is_not_leased, ()) {
    const GpuNodeStatus node = board_of_eight();
    NodePart part;
    std::set<std::string> mine, names;
    for (std::uint16_t i = 0; i < 8; ++i)
        if (*rc::gen::element(true, false)) {
            part.gpus.push_back({i, *rc::gen::element(true, true, false)});
            mine.insert(node.topology[i].bus);
        }
    if (part.gpus.empty()) {
        part.gpus.push_back({0, true});
        mine.insert(node.topology[0].bus);
    }
    for (std::uint16_t i = 0; i < 16; ++i)
        if (*rc::gen::element(true, false, false)) {
            part.functions.push_back(i);
            part.ports.push_back(rail(i));
            mine.insert(node.functions[i].address);
            names.insert(node.functions[i].device);
        }
    const auto text = nccl_topology(node, part);
    RC_ASSERT(text.has_value());
    expect_readable(*text);
    std::set<std::string> bridges, drawn, drawn_names;
    for (const GpuPosition& position : node.topology) bridges.insert(position.bridges.begin(), position.bridges.end());
    walk(*read_xml(*text), [&](const Read& element) {
        if (element.name == "pci" && !bridges.contains(element.at("busid"))) drawn.insert(element.at("busid"));
        if (element.name == "net") drawn_names.insert(element.at("name"));
    });
    RC_ASSERT(drawn == mine);
    RC_ASSERT(drawn_names == names);
}

TEST(NcclTopology, a_slice_of_a_gpu_reaches_no_nvlink) {
    NodePart part = all_of_it();
    part.gpus = {{3, false}};
    const auto text = nccl_topology(board_of_eight(), part);
    ASSERT_TRUE(text) << text.error().what;
    EXPECT_THAT(*text, Not(HasSubstr("nvlink")));
}

TEST(NcclTopology, is_not_drawn_from_half_of_what_it_takes) {
    GpuNodeStatus silent = board_of_eight();
    silent.topology.clear();
    EXPECT_THAT(nccl_topology(silent, all_of_it()).error().what, HasSubstr("where gpu0 is"));
    GpuNodeStatus unnamed = board_of_eight();
    unnamed.functions[2].device.clear();
    EXPECT_THAT(nccl_topology(unnamed, all_of_it()).error().what, HasSubstr("RDMA device vf2"));
    NodePart beyond = all_of_it();
    beyond.functions.push_back(99);
    EXPECT_THAT(nccl_topology(board_of_eight(), beyond).error().what, HasSubstr("vf99"));
    EXPECT_FALSE(nccl_topology(board_of_eight(), {}));
    GpuNodeStatus crowd = NodeModel{{.node = "n0", .gpus = 8, .functions = 200}}.inventory();
    NodePart many = all_of_it();
    for (std::uint16_t i = 8; i < 200; ++i) many.functions.push_back(i);
    EXPECT_THAT(nccl_topology(crowd, many).error().what, HasSubstr("more than the 256"));
}

// How NCCL compares names: by their beginning, unless the list begins with '='.
bool nccl_takes(std::string list, const std::string& device) {
    const bool exact = list.starts_with('=');
    if (exact) list.erase(0, 1);
    for (std::size_t at = 0; at <= list.size();) {
        const std::size_t end = std::min(list.find(',', at), list.size());
        std::string name = list.substr(at, end - at);
        name = name.substr(0, name.find(':'));
        if (exact ? device == name : device.starts_with(name)) return true;
        at = end + 1;
    }
    return false;
}

TEST(NcclEnvironment, names_devices_exactly) {
    const GpuNodeStatus node = board_of_eight();
    NodePart part = all_of_it();
    part.functions = {2};
    ASSERT_EQ(node.functions[2].device, "mlx5_10");
    GpuNodeStatus renamed = node;
    renamed.functions[2].device = "mlx5_1";
    const std::string list = environment_of(renamed, part).at("NCCL_IB_HCA");
    EXPECT_EQ(list, "=mlx5_1:1");
    EXPECT_TRUE(nccl_takes(list, "mlx5_1"));
    EXPECT_FALSE(nccl_takes(list, "mlx5_10")) << "somebody else's";
    EXPECT_TRUE(nccl_takes("mlx5_1:1", "mlx5_10")) << "which is what the prefix rule would do";
}

TEST(NcclEnvironment, says_who_the_tenant_is) {
    auto set = environment_of(board_of_eight(), all_of_it(), {.topology_file = "/run/t.xml", .gid_index = 3});
    EXPECT_EQ(set["NCCL_IB_ADDR_RANGE"], "10.128.16.0/20");
    EXPECT_EQ(set["NCCL_IB_ADDR_FAMILY"], "AF_INET");
    EXPECT_EQ(set["NCCL_IB_ROCE_VERSION_NUM"], "2");
    EXPECT_EQ(set["NCCL_IB_TC"], "104") << "DSCP 26, beside two bits that are not its own";
    EXPECT_EQ(set["NCCL_IB_GID_INDEX"], "3");
    EXPECT_EQ(set["NCCL_IB_MERGE_VFS"], "0");
    EXPECT_EQ(set["NCCL_TOPO_FILE"], "/run/t.xml");
    EXPECT_THAT(set["NCCL_SOCKET_IFNAME"], HasSubstr("=rail0v0,rail1v0"));
    EXPECT_FALSE(environment_of(board_of_eight(), all_of_it()).contains("NCCL_IB_GID_INDEX"))
        << "an index that nobody has looked up is not guessed";
}

TEST(NcclEnvironment, on_infiniband_has_no_addresses) {
    NodePart part = all_of_it();
    for (FabricPort& port : part.ports) port.port_guid = "02:42:50:00:0a:80:10:05";
    const auto set = environment_of(board_of_eight(), part, {.topology_file = {}, .gid_index = 3});
    EXPECT_FALSE(set.contains("NCCL_IB_ADDR_RANGE"));
    EXPECT_FALSE(set.contains("NCCL_IB_GID_INDEX"));
    EXPECT_TRUE(set.contains("NCCL_IB_HCA"));
    const auto text = nccl_topology(board_of_eight(), part);
    EXPECT_THAT(*text, HasSubstr("0x020700"));
}

TEST(NcclEnvironment, is_empty_without_functions) {
    NodePart part = all_of_it();
    part.functions.clear();
    part.ports.clear();
    EXPECT_THAT(environment_of(board_of_eight(), part), ElementsAre());
}

}  // namespace
}  // namespace bulkhead::render
