#include "bulkhead/codec/mig_parted.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bulkhead {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string errors_of(std::string_view text) {
    const auto read = read_mig_parted("config.yaml", text);
    std::string out;
    if (!read)
        for (const Diagnostic& error : read.error()) out += print(error);
    return out;
}

// One entry of one configuration, the way every row below writes it.
std::string entry(std::string_view fields) {
    return "version: v1\nmig-configs:\n  c:\n    - {" + std::string{fields} + "}\n";
}

TEST(MigParted, reads_a_file_as_it_is_meant) {
    const auto read = read_mig_parted("config.yaml", R"(version: v1
mig-configs:
  all-balanced:
    - device-filter: ["0x233010DE", "0x233110DE"]
      devices: all
      mig-enabled: true
      mig-devices:
        "1g.10gb": 2
        3g.40gb: 1
  half:
    - devices: [0, 1]
      mig-enabled: false
    - device-filter: "0x20B010DE"
      devices: [2]
      mig-enabled: true
      mig-devices: {}
)");
    ASSERT_TRUE(read) << errors_of("");
    ASSERT_EQ(read->configs.size(), 2u);
    const MigPartedDevices& balanced = read->configs[0].devices.at(0);
    EXPECT_EQ(read->configs[0].name, "all-balanced");
    EXPECT_EQ(read->configs[0].where, (Position{"config.yaml", 3, 3}));
    EXPECT_THAT(balanced.device_filter, ElementsAre("0x233010DE", "0x233110DE"));
    EXPECT_TRUE(balanced.all_devices);
    EXPECT_TRUE(balanced.mig_enabled);
    ASSERT_EQ(balanced.mig_devices.size(), 2u);
    EXPECT_EQ(balanced.mig_devices[1].profile, "3g.40gb");
    EXPECT_EQ(balanced.mig_devices[1].count, 1);
    EXPECT_EQ(balanced.mig_devices[1].where, (Position{"config.yaml", 9, 9}));
    EXPECT_THAT(read->configs[1].devices.at(0).devices, ElementsAre(0u, 1u));
    EXPECT_FALSE(read->configs[1].devices.at(0).mig_enabled);
    EXPECT_THAT(read->configs[1].devices.at(1).device_filter, ElementsAre("0x20B010DE"));
}

TEST(MigParted, accepts_what_mig_parted_accepts) {
    struct Row {
        std::string_view says;
        std::string text;
    };
    const Row rows[] = {
        {"a version alone is a file", "version: v1"},
        {"JSON is as good", R"({"version": "v1", "mig-configs": {"c": [{"devices": "all", "mig-enabled": false}]}})"},
        {"no list of devices is needed where MIG is off", entry("devices: all, mig-enabled: false")},
        {"an empty one is fine too", entry("devices: all, mig-enabled: false, mig-devices: {}")},
        {"MIG mode without instances is a layout", entry("devices: all, mig-enabled: true, mig-devices: {}")},
        {"an index list may be empty", entry("devices: [], mig-enabled: false")},
        {"one zero beside a count is fine",
         entry("devices: all, mig-enabled: true, mig-devices: {1g.5gb: 0, 2g.10gb: 1}")},
        {"existence is not asked here", entry("devices: all, mig-enabled: true, mig-devices: {0g.0gb: 100}")},
        {"compute instances", entry("devices: all, mig-enabled: true, mig-devices: {1c.2g.10gb: 2}")},
        {"attributes",
         entry("devices: all, mig-enabled: true, mig-devices: {1g.5gb+me: 1, 1g.24gb-me: 1, 1g.24gb+me.all: 1}")},
        {"several attributes, in quotes in a flow map",
         entry(R"(devices: all, mig-enabled: true, mig-devices: {"1g.24gb+gfx,me": 1})")},
        {"an empty filter is no filter", entry("device-filter: '', devices: all, mig-enabled: false")},
    };
    for (const Row& row : rows) EXPECT_EQ(errors_of(row.text), "") << row.says;
}

TEST(MigParted, refuses_what_mig_parted_refuses_and_says_where) {
    struct Row {
        std::string_view says;
        std::string text;
        std::string_view error;
    };
    const auto counts = [](std::string_view inside) {
        return entry("devices: all, mig-enabled: true, mig-devices: {" + std::string{inside} + "}");
    };
    const Row rows[] = {
        {"an empty file", "", "config.yaml: the file is empty"},
        {"not YAML", "version: [", "this is not YAML"},
        {"a list is not a file", "- version: v1", "config.yaml:1:1: the file takes"},
        {"the version is missing", "mig-configs: {c: [{devices: all, mig-enabled: false}]}", "1:1: version is missing"},
        {"another version", "version: v2", "1:10: version \"v2\" is not known"},
        {"a version that is no text", "version: [v1]", "version \"\" is not known"},
        {"a slip in a field", "version: v1\nmig-config: {}",
         "2:1: unknown field \"mig-config\" in the file\n  try: mig-configs"},
        {"no configuration", "version: v1\nmig-configs: {}", "2:1: mig-configs is empty"},
        {"nothing below the name", "version: v1\nmig-configs:", "2:1: mig-configs takes"},
        {"a configuration without entries", "version: v1\nmig-configs:\n  c: []", "3:3: c has no entry"},
        {"a configuration that is no list", "version: v1\nmig-configs:\n  c: {devices: all}", "c takes a list"},
        {"an entry that is no map", "version: v1\nmig-configs:\n  c: [all]", "3:7: an entry of c takes"},
        {"devices missing", entry("mig-enabled: false"), "4:7: devices is missing in c"},
        {"mig-enabled missing", entry("devices: all"), "mig-enabled is missing in c"},
        {"a slip in an entry", entry("device: all, mig-enabled: false"),
         "unknown field \"device\" in c\n  try: devices"},
        {"some devices", entry("devices: some, mig-enabled: false"), "devices is \"some\""},
        {"devices by name", entry("devices: [gpu0], mig-enabled: false"), "an item of devices is \"gpu0\""},
        {"a negative index", entry("devices: [-1], mig-enabled: false"), "an item of devices is \"-1\""},
        {"devices as a map", entry("devices: {}, mig-enabled: false"), "devices takes all"},
        {"yes is not true", entry("devices: all, mig-enabled: yes, mig-devices: {}"), "mig-enabled is yes"},
        {"quoted true is text", entry("devices: all, mig-enabled: \"true\", mig-devices: {}"), "without quotes"},
        {"enabled, but nothing said", entry("devices: all, mig-enabled: true"), "mig-devices is missing in c"},
        {"enabled, and null", entry("devices: all, mig-enabled: true, mig-devices: "), "mig-devices takes profiles"},
        {"listed while disabled", entry("devices: all, mig-enabled: false, mig-devices: {1g.5gb: 1}"),
         "mig-enabled is false"},
        {"an unquoted id is a number", entry("device-filter: 0x233010DE, devices: all, mig-enabled: false"),
         "try: \"0x233010DE\", in quotes"},
        {"also within a list", entry("device-filter: [0x233010DE], devices: all, mig-enabled: false"), "in quotes"},
        {"a filter that is a map", entry("device-filter: {}, devices: all, mig-enabled: false"),
         "device-filter takes text"},
        {"all counts zero", counts("1g.5gb: 0, 2g.10gb: 0"), "all counts in mig-devices are 0"},
        {"a negative count", counts("1g.5gb: -1"), "the count of 1g.5gb is \"-1\""},
        {"a count beyond int", counts("1g.5gb: 99999999999"), "it takes a number from 0"},
        {"a count in quotes", counts("1g.5gb: \"1\""), "write it without quotes"},
        {"half an instance", counts("1g.5gb: 0.5"), "the count of 1g.5gb is \"0.5\""},
        {"a word for a profile", counts("small: 1"), "\"small\" is not written like a profile"},
        {"no memory", counts("1g: 1"), "not written like a profile"},
        {"a unit missing", counts("1g.5: 1"), "not written like a profile"},
        {"units swapped", counts("1gb.5g: 1"), "not written like a profile"},
        {"too many parts", counts("1c.1c.1g.5gb: 1"), "not written like a profile"},
        {"no number", counts("g.5gb: 1"), "not written like a profile"},
        {"both kinds of attribute", counts("1g.5gb+me-gfx: 1"), "not written like a profile"},
        {"an empty attribute", counts("1g.5gb+: 1"), "not written like a profile"},
        {"an attribute twice", counts("\"1g.5gb+me,me\": 1"), "not written like a profile"},
        {"an attribute that begins with a digit", counts("1g.5gb+2me: 1"), "not written like a profile"},
        {"an attribute that ends with a dot", counts("1g.5gb+me.: 1"), "not written like a profile"},
        {"a space", counts("\"1g.5gb \": 1"), "not written like a profile"},
        {"a profile twice", counts("1g.5gb: 1, 1g.5gb: 2"), "\"1g.5gb\" is given twice"},
        {"a second document", "version: v1\n---\nversion: v1", "3:1: a second document"},
    };
    for (const Row& row : rows) EXPECT_THAT(errors_of(row.text), HasSubstr(std::string{row.error})) << row.says;
}

TEST(MigParted, reports_all_mistakes_in_the_order_of_the_file) {
    EXPECT_EQ(errors_of(R"(version: v3
mig-configs:
  c:
    - devices: none
      mig-enabled: true
      mig-device: {}
)"),
              "config.yaml:1:10: version \"v3\" is not known\n  try: version: v1\n"
              "config.yaml:4:7: mig-devices is missing in c, and mig-enabled is true\n"
              "  try: add mig-devices: {} for MIG mode without instances\n"
              "config.yaml:4:16: devices is \"none\"\n  try: all, or a list of indexes: [0, 1]\n"
              "config.yaml:6:7: unknown field \"mig-device\" in c\n  try: mig-devices\n");
}

}  // namespace
}  // namespace bulkhead
