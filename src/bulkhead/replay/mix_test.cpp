// One document, read strictly: what it means, and every way it is refused.
#include "bulkhead/replay/mix.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "bulkhead/codec/print.hpp"

namespace bulkhead::replay {
namespace {

using testing::HasSubstr;

constexpr std::string_view good =
    "kind: FleetMix\n"
    "nodes: [{model: h100-80gb-sxm5, cpu: 64, memory: 1Ti}]\n"
    "jobs:\n";

std::string errors_in(std::string_view text) {
    const auto read = read_mix("m.yaml", text);
    std::string out;
    if (!read)
        for (const Diagnostic& error : read.error()) out += print(error);
    return out;
}

TEST(Mix, reads_what_is_written_and_fills_in_the_rest) {
    const auto read = read_mix("m.yaml",
                               "kind: FleetMix\n"
                               "full: 0.85\n"
                               "dirty: 0.02\n"
                               "tenants: {departments: 3, teams: 5, domainOf: 2, alone: 20, vm: 10, hard: 5, idle: 1}\n"
                               "topology: {nodesPerLeaf: 4}\n"
                               "nodes: [{weight: 2, model: h100-80gb-sxm5, gpus: 4, cpu: 64, memory: 1Ti, cut: 7}]\n"
                               "jobs:\n"
                               "  - {weight: 3, fraction: [0.05, 0.95], variants: 9, cpu: [1, 5], memory: [3Gi]}\n"
                               "  - {gpus: 4, tasks: 8, within: zone, group: 4, groupWithin: leaf}\n");
    ASSERT_TRUE(read) << errors_in("");
    EXPECT_EQ(read->full, Gpus::of_thousandths(850));
    EXPECT_EQ(read->tenants.teams, 5);
    EXPECT_EQ(read->topology.nodesPerLeaf, 4);
    EXPECT_EQ(read->topology.racksPerZone, 16) << "as usual where nothing is said";
    EXPECT_EQ(read->nodes[0].cut, 7);
    EXPECT_THAT(read->jobs[0].fraction, testing::ElementsAre(Gpus::of_thousandths(50), Gpus::of_thousandths(950)));
    EXPECT_EQ(read->jobs[1].groupWithin, TopologyLevel::leaf);
    EXPECT_EQ(read_mix("again", to_yaml(*read)).value(), *read) << "printed, and read again";
}

TEST(Mix, every_committed_mix_reads_and_two_have_two_hundred_tenants_of_mixed_trust) {
    const std::filesystem::path folder = std::filesystem::path{BULKHEAD_SOURCE_DIR} / "bench/mixes";
    std::size_t large = 0;
    for (const char* name : {"coarse.yaml", "distinct.yaml", "slurm.yaml"}) {
        std::ifstream file{folder / name};
        std::ostringstream text;
        text << file.rdbuf();
        const auto mix = read_mix(name, text.str());
        ASSERT_TRUE(mix) << errors_in(text.str());
        const MixTenants& tenants = mix->tenants;
        if (tenants.departments * tenants.teams < 200) continue;
        ++large;
        EXPECT_GT(tenants.alone, 0) << name;
        EXPECT_GT(tenants.vm, 0) << name;
        EXPECT_GT(tenants.hard, 0) << name;
        EXPECT_GT(tenants.domainOf, 1) << name;
        EXPECT_GT(mix->dirty, Gpus{}) << name;
        EXPECT_EQ(mix->full, Gpus::of_thousandths(900)) << name;
    }
    EXPECT_EQ(large, 2u);
}

TEST(Mix, refuses_with_place_and_remedy) {
    struct Row {
        std::string_view says, text, error, remedy;
    };
    const std::string head{good};
    const std::string rows_text[] = {
        head + "  - {cpu: [1]}\n",
        head + "  - {gpus: 1, profile: 1g.10gb}\n",
        head + "  - {gpus: 1, cpu: [5, 3]}\n",
        head + "  - {gpus: 1, cpu: [1, 2, 3]}\n",
        head + "  - {gpus: 1, cpu: [65]}\n",
        head + "  - {gpus: 9}\n",
        head + "  - {gpus: 1, model: t4}\n",
        head + "  - {profile: 9g.90gb}\n",
        head + "  - {fraction: [0.125]}\n",
        head + "  - {gpus: 1, tasks: 8, group: 3, groupWithin: leaf}\n",
        head + "  - {gpus: 1, tasks: 8, group: 4}\n",
        head + "  - {gpus: 1, weight: 0}\n",
        head + "  - {gpus: 1, variants: 10000}\n  - {gpus: 1, variants: 10000}\n  - {gpus: 1}\n",
        head + "  - {gpus: 1, wieght: 2}\n",
        "tenants: {departments: 1000, teams: 10}\n" + head + "  - {gpus: 1}\n",
        "tenants: {idle: 100}\n" + head + "  - {gpus: 1}\n",
    };
    const Row rows[] = {
        {"nothing", "", "m.yaml: the file is empty", "begin with kind: FleetMix"},
        {"another kind", "kind: Mix\nnodes: []\njobs: []\n", "m.yaml:1:7: kind \"Mix\" is not FleetMix",
         "kind: FleetMix"},
        {"no nodes", "kind: FleetMix\njobs: []\n", "m.yaml:1:1: nodes is missing", "add nodes"},
        {"an empty list", "kind: FleetMix\nnodes: []\njobs: []\n", "m.yaml:2:8: nodes has nothing", "list one"},
        {"two documents", "kind: FleetMix\nnodes: []\njobs: []\n---\na: 1\n", "a second document", "remove it"},
        {"more than all", "kind: FleetMix\nfull: 1.5\nnodes: []\njobs: []\n", "m.yaml:2:7: full is 1.5", "to 1"},
        {"no GPUs at all", rows_text[0], "m.yaml:4:5: a sort of jobs asks for GPUs in 0 ways", "one of gpus"},
        {"twice", rows_text[1], "in 2 ways", "one of gpus"},
        {"backwards", rows_text[2], "m.yaml:4:20: cpu goes from the larger", "the smaller value first"},
        {"three values", rows_text[3], "cpu has 3 values", "one value, or two"},
        {"more cores than any node", rows_text[4], "m.yaml:4:20: no node has the cores", "less of them"},
        {"more GPUs than any node", rows_text[5], "m.yaml:4:12: no node has 9 GPUs", "larger nodes"},
        {"a model nobody has", rows_text[6], "m.yaml:4:22: no node has a GPU of model \"t4\"", "that nodes lists"},
        {"a profile no board has", rows_text[7], "m.yaml:4:15: no node can be cut into \"9g.90gb\"", "mig profiles"},
        {"finer than a percent", rows_text[8], "fraction 0.125 is finer than hundredths", "0.25"},
        {"groups that do not divide", rows_text[9], "groups of 3 do not divide 8 tasks", "a divisor"},
        {"groups of nowhere", rows_text[10], "groups of 4", "with groupWithin"},
        {"nothing ever comes", rows_text[11], "jobs has nothing with a weight above 0", "list one"},
        {"too many variants", rows_text[12], "the jobs have 20001 variants", "at most 20000"},
        {"a slip", rows_text[13], "unknown field \"wieght\"", "try: weight"},
        {"too many tenants", rows_text[14], "1000 departments of 10 teams are 11000 tenants", "at most 10000"},
        {"nobody works", rows_text[15], "every team is idle", "idle: 10"},
    };
    for (const Row& row : rows) {
        EXPECT_THAT(errors_in(row.text), HasSubstr(row.error)) << row.says;
        EXPECT_THAT(errors_in(row.text), HasSubstr(row.remedy)) << row.says;
    }
}

}  // namespace
}  // namespace bulkhead::replay
