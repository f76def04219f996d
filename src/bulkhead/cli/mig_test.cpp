#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "bulkhead/cli/said_test.hpp"

namespace bulkhead::cli {
namespace {

// "mig sets --gpu a30": words as a shell would split them.
Said bulkhead(const std::string& line) {
    std::vector<std::string> words{"bulkhead"};
    std::istringstream split{line};
    for (std::string word; split >> word;) words.push_back(word);
    std::vector<const char*> argv;
    for (const std::string& word : words) argv.push_back(word.c_str());
    std::ostringstream out, err;
    const int status = run(static_cast<int>(argv.size()), argv.data(), out, err, false);
    return {status, out.str(), err.str()};
}

bool holds(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// JSON without its white space, so that a claim fits a line.
std::string compact(const std::string& json) {
    std::string text;
    bool quoted = false;
    for (const char c : json) {
        if (c == '"') quoted = !quoted;
        if (quoted || (c != ' ' && c != '\n')) text += c;
    }
    return text;
}

constexpr std::string_view h100_note =
    "note: placements of h100-80gb-sxm5 are not proven: carried over from H100 PCIe and NVL (same profile ids, slices "
    "and maxima); not listed for this board\n";

TEST(MigProfiles, print_the_very_listing_nvidia_smi_printed_on_an_h200) {
    const std::string captured = slurp(BULKHEAD_SOURCE_DIR "/testdata/gpu/h200-mig-listings-580.159.04.txt");
    const std::size_t begin = captured.find("+--"), end = captured.find("# nvidia-smi mig -lgipp");
    ASSERT_NE(begin, std::string::npos);
    ASSERT_NE(end, std::string::npos);
    const Said said = bulkhead("mig profiles --gpu h200-141gb");
    EXPECT_EQ(said.status, done);
    EXPECT_TRUE(holds(said.out, captured.substr(begin, end - begin))) << said.out;
    for (const char* placement : {"{0,1,2,3,4,5,6}:1", "{0,2,4,6}:2", "{0,2,4}:2", "{0,4}:4", "{0}:4", "{0}:8"})
        EXPECT_TRUE(holds(said.out, placement));
    EXPECT_TRUE(holds(said.out, "grade: silicon"));
}

TEST(MigProfiles, say_what_is_free_and_what_nobody_knows) {
    EXPECT_TRUE(
        holds(bulkhead("mig profiles --gpu h200-141gb --have 3g.71gb@4").out, "MIG 1g.18gb         19     4/7 "));
    EXPECT_TRUE(holds(bulkhead("mig profiles --gpu h100-80gb-sxm5").out, "carried over from H100 PCIe and NVL"));
    EXPECT_TRUE(holds(bulkhead("mig profiles --gpu h100-80gb-sxm5").out, "not listed for this board (grade: assumed)"));
    const Said b300 = bulkhead("mig profiles --gpu b300");
    EXPECT_TRUE(holds(b300.out, "MIG 1g.34gb          -     7/7        -          -      -      -     -   |"));
    EXPECT_TRUE(holds(b300.out, "grade: assumed"));
    EXPECT_TRUE(holds(compact(bulkhead("mig profiles --gpu b300 -o json").out),
                      R"("name":"1g.34gb","nvmlEnum":"NVML_GPU_INSTANCE_PROFILE_1_SLICE","nvmlValue":0,"id":null,)"));
    EXPECT_TRUE(holds(bulkhead("mig profiles --gpu h100-80gb-sxm5 --ci").out, "1c.3g.40gb"));
    EXPECT_TRUE(holds(bulkhead("mig profiles --gpu b200 --ci").out, "no source lists"));
}

TEST(MigProfiles, list_every_model_and_the_modes_of_amd) {
    const Said models = bulkhead("mig profiles");
    for (const char* id : {"a100-40gb", "rtx-pro-6000-blackwell-96gb", "mi300x", "mi300a"})
        EXPECT_TRUE(holds(models.out, id));
    EXPECT_TRUE(holds(bulkhead("mig profiles --gpu mi300x").out, "NPS4 works only with CPX"));
    EXPECT_TRUE(holds(compact(bulkhead("mig profiles --gpu mi300x -o json").out),
                      R"("compute":"CPX","memory":"NPS4","standing":"validated","partitions":8,)"));
    EXPECT_TRUE(holds(compact(bulkhead("mig profiles --gpu mi300x -o json").out),
                      R"("compute":"CPX","memory":"NPS1","standing":"listed","partitions":8,)"));
    EXPECT_FALSE(holds(bulkhead("mig profiles --gpu mi300x").out, "amd.com/spx_nps4")) << "it cannot be asked for";
    EXPECT_EQ(bulkhead("mig profiles --gpu mi32").status, done) << "an unambiguous beginning";
}

TEST(MigFit, answers_yes_with_places_or_no_with_reasons) {
    const Said yes = bulkhead("mig fit 3g.40gb --gpu h100-80gb-sxm5");
    EXPECT_EQ(yes.status, done);
    EXPECT_EQ(yes.out, "yes: 3g.40gb fits on h100-80gb-sxm5 at 0,4 (4 memory slices wide)\n" + std::string{h100_note});
    const Said no = bulkhead("mig fit id:9 --gpu h100-80gb-sxm5 --have 1g.10gb@3,1g.10gb@4");
    EXPECT_EQ(no.status, refused);
    EXPECT_TRUE(holds(no.out, "no: 3g.40gb fits nowhere"));
    EXPECT_TRUE(holds(no.out, "could start at 4, but in use there: 1g.10gb@4"));
    EXPECT_TRUE(holds(compact(bulkhead("mig fit 3g.40gb --gpu h100-80gb-sxm5 -o json").out),
                      R"("fits":true,"starts":[0,4],"size":4)"));
}

TEST(MigFit, says_that_an_instance_in_use_is_not_divided) {
    const Said said = bulkhead("mig fit 1c.3g.40gb --gpu h100-80gb-sxm5 --have 1c.3g.40gb@0,1c.3g.40gb@4");
    EXPECT_EQ(said.status, refused);
    EXPECT_TRUE(holds(said.out, "3g.40gb at 4 is in use and is never touched, so no 1c.3g.40gb is created inside it"))
        << said.out;
}

TEST(MigPlace, puts_a_3g_at_4_and_shows_what_0_would_have_left) {
    const Said said = bulkhead("mig place 3g.40gb --gpu h100-80gb-sxm5");
    EXPECT_EQ(said.status, done);
    EXPECT_TRUE(holds(said.out, "3g.40gb goes to 4:4"));
    EXPECT_TRUE(holds(said.out, "4 x 1g.10gb"));
    EXPECT_TRUE(holds(said.out, "3 x 1g.10gb"));
    EXPECT_TRUE(
        holds(compact(bulkhead("mig place 1g.10gb --gpu h100-80gb-sxm5 --expect 1g.10gb=5,3g.40gb=1 -o json").out),
              R"("start":0,)"));
    EXPECT_EQ(bulkhead("mig place 1g.10gb --gpu a30 --have 4g.24gb@0").status, bad_input) << "not a profile of the A30";
    EXPECT_EQ(bulkhead("mig place 1g.6gb --gpu a30 --have 4g.24gb@0").status, refused);
}

TEST(MigPlan, names_the_one_instance_that_would_have_to_move) {
    const std::string question = "mig plan --gpu h100-80gb-sxm5 --have 1g.10gb@0,1g.10gb@1,1g.10gb@5 --want 3g.40gb";
    const Said said = bulkhead(question);
    EXPECT_EQ(said.status, refused);
    EXPECT_TRUE(holds(said.out, "move 1g.10gb@5 to 2: it can start there before it stops at 5"));
    const std::string json = compact(bulkhead(question + " -o json").out);
    EXPECT_TRUE(holds(json, R"("move":{"profile":"1g.10gb","from":5,"to":2,"stopFirst":false})"));
    EXPECT_TRUE(holds(json, R"("steps":[{"action":"move","profile":"1g.10gb","from":5,"to":2,)")) << json;
}

TEST(MigPlan, lists_destroys_before_the_creates_they_make_room_for) {
    const Said said =
        bulkhead("mig plan --gpu h100-80gb-sxm5 --have 1g.10gb@0 --idle 1g.10gb@4 --want 3g.40gb,1g.10gb");
    EXPECT_EQ(said.status, done);
    EXPECT_EQ(said.out,
              "h100-80gb-sxm5: destroy 1 (1 memory slice), create 2\n"
              "  1. destroy the compute instances of 1g.10gb@4\n"
              "  2. destroy 1g.10gb@4\n"
              "  3. create 1g.10gb at 1:1 (profile id 19)\n"
              "  4. create compute instance 1c at 0:1 in 1g.10gb@1 (compute profile 0)\n"
              "  5. create 3g.40gb at 4:4 (profile id 9)\n"
              "  6. create compute instance 3c at 0:3 in 3g.40gb@4 (compute profile 2)\n"
              "gives 3g.40gb@4, 1g.10gb@1\n" +
                  std::string{h100_note});
    EXPECT_EQ(bulkhead("mig plan --gpu a30 --idle 2g.12gb@0 --want 2g.12gb").out,
              "a30-24gb: nothing to destroy or create\ngives 2g.12gb@0 (idle until now)\n");
}

TEST(MigSets, of_an_a30_are_four_in_json) {
    EXPECT_EQ(
        compact(bulkhead("mig sets --gpu a30-24gb -o json").out),
        R"({"gpu":"a30-24gb","attributes":false,"doubleMemory":false,"sets":[{"4g.24gb":1},{"2g.12gb":2},{"2g.12gb":1,"1g.6gb":2},{"1g.6gb":4}]})");
    EXPECT_TRUE(holds(bulkhead("mig sets --gpu h100-80gb-sxm5 --no-double-memory").out, "12 sets"));
    EXPECT_TRUE(holds(bulkhead("mig sets --gpu h100-80gb-sxm5").out, "double-memory 1g.20gb: included"));
    EXPECT_TRUE(holds(bulkhead("mig sets --gpu a30 --all").out, "2g.12gb+me"));
}

class MigCheck : public ::testing::Test {
protected:
    std::string path =
        ::testing::TempDir() + "mig_check_" + ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".yaml";
    Said check(const std::string& configs, const std::string& more = "") {
        std::ofstream{path} << "version: v1\nmig-configs:\n" << configs;
        return bulkhead("mig check -f " + path + " " + more);
    }
    void TearDown() override { std::remove(path.c_str()); }
};

constexpr const char* balanced =
    "  all-balanced:\n"
    "  - device-filter: [\"0x233010DE\"]\n"
    "    devices: all\n"
    "    mig-enabled: true\n"
    "    mig-devices: {\"1g.10gb\": 2, \"2g.20gb\": 1, \"3g.40gb\": 1}\n";
constexpr const char* impossible =
    "  too-much:\n"
    "  - device-filter: \"0x233010DE\"\n"
    "    devices: [0]\n"
    "    mig-enabled: true\n"
    "    mig-devices:\n"
    "      4g.40gb: 1\n"
    "      2g.20gb: 2\n";
constexpr const char* open_to_all =
    "  anywhere:\n"
    "  - devices: all\n"
    "    mig-enabled: true\n"
    "    mig-devices:\n"
    "      1g.10gb: 7\n";

TEST_F(MigCheck, says_where_the_places_would_be) {
    const Said said = check(balanced);
    EXPECT_EQ(said.status, done) << said.out << said.err;
    EXPECT_TRUE(holds(said.out, "valid on h100-80gb-sxm5: 2g.20gb@0 1g.10gb@2 1g.10gb@3 3g.40gb@4"));
}

TEST_F(MigCheck, says_where_and_why_a_layout_is_impossible) {
    const Said said = check(std::string{balanced} + impossible);
    EXPECT_EQ(said.status, refused);
    EXPECT_TRUE(holds(
        said.out, path + ":9:5: h100-80gb-sxm5: 4g.40gb + 2 x 2g.20gb need 8 of 8 memory slices but have no places"))
        << said.out;
    EXPECT_TRUE(holds(said.out, "2 entries: 1 valid, 1 invalid, 0 not checked"));
    EXPECT_TRUE(holds(compact(check(impossible, "-o json").out), R"("code":"mig.starts")"));
}

TEST_F(MigCheck, without_a_filter_lists_the_boards_that_can) {
    EXPECT_TRUE(holds(check(open_to_all).out, "valid on a100-80gb, h100-80gb-sxm5, h100-80gb-pcie\n"));
    const Said small = check(open_to_all, "--gpu a100-40gb");
    EXPECT_EQ(small.status, refused) << "1g.10gb has double memory there";
    EXPECT_TRUE(holds(small.out, "at most 4 of 1g.10gb"));
    const Said nowhere = check("  x:\n  - devices: all\n    mig-enabled: true\n    mig-devices: {\"1g.7gb\": 1}\n");
    EXPECT_EQ(nowhere.status, refused);
    EXPECT_TRUE(holds(nowhere.out, "no known board has a profile 1g.7gb"));
}

TEST_F(MigCheck, never_calls_valid_what_nobody_checked) {
    constexpr const char* unknown =
        "  new:\n"
        "  - {device-filter: \"0xFFFF10DE\", devices: [1], mig-enabled: true, mig-devices: {\"1g.10gb\": 99}}\n";
    constexpr const char* half_known =
        "  half:\n"
        "  - {device-filter: [\"0x233010DE\", \"0xFFFF10DE\"], devices: all, mig-enabled: true, mig-devices: "
        "{\"1g.10gb\": 7}}\n";
    constexpr const char* off = "  off:\n  - {device-filter: \"0xFFFF10DE\", devices: all, mig-enabled: false}\n";
    constexpr const char* twice =
        "  twice:\n  - {devices: [0, 2, 0], mig-enabled: true, mig-devices: {\"1g.10gb\": 7}}\n";
    struct Row {
        std::string configs;
        const char* more;
        int status;
        const char *says, *file, *entry;  // the text; the beginning of the JSON; a part of it
    };
    const Row rows[] = {
        {unknown, "", could_not, "device 1: not checked for 0xFFFF10DE: no board we know", R"({"valid":null,)",
         R"("devices":[1],"deviceFilter":["0xFFFF10DE"],"migEnabled":true,"checked":false,"valid":null,)"},
        {unknown, "", could_not, "1 entry: 0 valid, 0 invalid, 1 not checked", R"({"valid":null,)", ""},
        {balanced, "--gpu a100-40gb", could_not, "not checked: its device-filter does not name the board of --gpu",
         R"({"valid":null,)", R"("checked":false,"valid":null,)"},
        {half_known, "", could_not, "not checked for 0xFFFF10DE", R"({"valid":null,)",
         R"("checked":false,"valid":null)"},
        {half_known, "--gpu h100-80gb-sxm5", done, "1 entry: 1 valid, 0 invalid, 0 not checked", R"({"valid":true,)",
         R"("devices":"all",)"},
        {off, "", done, "valid: MIG is off", R"({"valid":true,)", R"("checked":true,"valid":true)"},
        {std::string{balanced} + unknown, "", could_not, "2 entries: 1 valid, 0 invalid, 1 not checked",
         R"({"valid":null,)", R"("checked":true,"valid":true)"},
        {std::string{impossible} + unknown, "", refused, "2 entries: 0 valid, 1 invalid, 1 not checked",
         R"({"valid":false,)", R"("checked":false,"valid":null)"},
        {twice, "", refused, "device 0 is named more than once", R"({"valid":false,)",
         R"("checked":true,"valid":false)"},
    };
    for (const Row& row : rows) {
        SCOPED_TRACE(row.configs + row.more);
        const Said said = check(row.configs, row.more);
        EXPECT_EQ(said.status, row.status);
        EXPECT_TRUE(holds(said.out, row.says)) << said.out;
        const Said json = check(row.configs, std::string{row.more} + " -o json");
        EXPECT_EQ(json.status, row.status);
        EXPECT_TRUE(compact(json.out).starts_with(row.file)) << json.out;
        EXPECT_TRUE(holds(compact(json.out), row.entry)) << json.out;
    }
}

TEST_F(MigCheck, keeps_malformed_and_impossible_apart) {
    EXPECT_EQ(check("  x: {}\n").status, bad_input);
    EXPECT_EQ(bulkhead("mig check -f /nonexistent/file.yaml").status, could_not);
}

TEST(Mig, says_what_was_wrong_with_the_question) {
    struct Row {
        const char* line;
        int status;
        const char* says;
    };
    const Row rows[] = {
        {"mig fit 3g.41gb --gpu h100-80gb-sxm5", bad_input, "try: 3g.40gb"},
        {"mig fit 3g.40gb --gpu h100-80gb-smx5", could_not, "try: h100-80gb-sxm5"},
        {"mig fit 3g.40gb --gpu mi300x", could_not, "divided by partition modes"},
        {"mig fit 3g.40gb", bad_input, "--gpu is required"},
        {"mig plan --gpu a30 --have 2g.12gb@1 --want 1g.6gb", bad_input, "it starts only at 0, 2"},
        {"mig plan --gpu a30 --have 2g.12gb@0,1g.6gb@1 --want 1g.6gb", bad_input, "overlap"},
        {"mig plan --gpu a30 --want 2g.12gb@3", bad_input, "it starts only at 0, 2"},
        {"mig plan --gpu a30 --want 2y1g.6gb", bad_input, "is not a MIG profile name"},
        {"mig place 1g.6gb --gpu a30 --expect 1g.6gb", bad_input, "a profile and a weight"},
        {"mig profiles --ci", bad_input, "--ci requires --gpu"},
        {"mig profiles --have 1g.6gb@0", bad_input, "--have requires --gpu"},
        {"mig profiles --gpu mi300x --ci", bad_input, "--ci is about MIG; AMD Instinct MI300X is divided by"},
        {"mig profiles --gpu mi300x --have 1g.6gb@0", bad_input, "--have is about MIG"},
        {"mig profiles --gpu mi300y", could_not, "try: mi300x"},
        {"mig profiles --gpu mi300", could_not, "could be any of mi300x, mi300a"},
        {"mig fit 3g.40gb --gpu mi32", could_not, "try: bulkhead mig profiles --gpu mi325x"},
        {"mig sets --gpu a30 -o yaml", bad_input, "yaml"},
        {"mig", bad_input, "subcommand"},
    };
    for (const Row& row : rows) {
        const Said said = bulkhead(row.line);
        EXPECT_EQ(said.status, row.status) << row.line;
        EXPECT_TRUE(holds(said.err, row.says)) << row.line << ": " << said.err;
        EXPECT_EQ(said.out, "") << row.line;
    }
}

TEST(Mig, explains_each_command_with_examples_and_exit_status) {
    for (const char* sub : {"profiles", "fit", "place", "plan", "sets", "check"}) {
        const Said said = bulkhead(std::string{"mig "} + sub + " --help");
        EXPECT_EQ(said.status, done);
        for (const char* part : {"Usage:", "Examples:", "Exit status:", "Default: table"})
            EXPECT_TRUE(holds(said.out, part)) << sub;
    }
    const Said all = bulkhead("mig --help");
    EXPECT_TRUE(holds(all.out, "no board to check against")) << all.out;
    EXPECT_FALSE(holds(all.out, "workload")) << all.out;
    EXPECT_FALSE(holds(all.out, "It is computed")) << "only first lines";
}

}  // namespace
}  // namespace bulkhead::cli
