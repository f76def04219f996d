// The program as a person meets it: what it prints, and the status it leaves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <sstream>

#include "bulkhead/cli/said_test.hpp"

namespace bulkhead::cli {
namespace {

using testing::HasSubstr;

Said bulkhead(std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "bulkhead");
    std::ostringstream out, err;
    const int status = run(static_cast<int>(arguments.size()), arguments.data(), out, err, false);
    return {status, out.str(), err.str()};
}

TEST(ContractCommand, leaves_a_status_that_scripts_can_trust) {
    const std::string typos = examples + "broken/three-typos.yaml", slo = examples + "refused/hard-slo-on-mps.yaml",
                      nowhere = examples + "nowhere.yaml";
    struct Row {
        std::string_view says;
        std::vector<const char*> arguments;
        int status;
    };
    const Row rows[] = {
        {"a contract", {"contract", "-f", examples.c_str(), "-w", "pretrain"}, done},
        {"a refusal among them", {"contract", "-f", examples.c_str()}, refused},
        {"a refusal alone", {"contract", "-f", slo.c_str()}, refused},
        {"typos", {"contract", "-f", typos.c_str()}, bad_input},
        {"no such file", {"contract", "-f", nowhere.c_str()}, could_not},
        {"no such workload", {"contract", "-f", examples.c_str(), "-w", "pretain"}, could_not},
        {"no such format", {"contract", "-f", examples.c_str(), "-o", "xml"}, bad_input},
        {"no file at all", {"contract"}, bad_input},
        {"a moment that is none", {"contract", "-f", examples.c_str(), "--at", "yesterday"}, bad_input},
        {"no command", {}, bad_input},
        {"help", {"contract", "--help"}, done},
        {"version", {"--version"}, done},
    };
    for (const Row& row : rows) {
        const Said said = bulkhead(row.arguments);
        EXPECT_EQ(said.status, row.status) << row.says << "\n" << said.err;
        if (row.status == bad_input || row.status == could_not) {
            EXPECT_FALSE(said.err.empty()) << row.says;
        }
    }
}

TEST(ContractCommand, reports_every_typo_with_its_place) {
    const std::string file = examples + "broken/three-typos.yaml";
    const Said said = bulkhead({"contract", "-f", file.c_str()});
    for (const char* part : {"three-typos.yaml:10:5: unknown field \"fracton\"", "try: fraction",
                             "three-typos.yaml:11:16:", "try: mps", "three-typos.yaml:13:13:", "3 errors"})
        EXPECT_THAT(said.err, HasSubstr(part));
    EXPECT_TRUE(said.out.empty());
}

TEST(ContractCommand, refuses_a_hard_level_on_mps_with_reasons_and_a_proposal_that_compiles) {
    const std::string file = examples + "refused/hard-slo-on-mps.yaml";
    const Said said = bulkhead({"contract", "-f", file.c_str(), "-o", "json"});
    EXPECT_EQ(said.status, refused);
    const auto answer = boost::json::parse(said.out).as_object();
    EXPECT_TRUE(answer.at("contracts").as_array().empty());
    const auto& refusal = answer.at("refusals").as_array().at(0).as_object();
    std::vector<std::string> codes;
    for (const auto& objection : refusal.at("objections").as_array())
        codes.emplace_back(objection.at("code").as_string());
    EXPECT_THAT(codes, testing::ElementsAre("slo.soft-mechanism", "slo.resource"));
    const auto& changes = refusal.at("proposal").at("changes").as_array();
    ASSERT_EQ(changes.size(), 1u);
    EXPECT_EQ(changes[0].at("field").as_string(), "spec.gpu.mechanism");
    EXPECT_EQ(changes[0].at("to").as_string(), "mig");
}

TEST(ContractCommand, refuses_guarantees_that_need_more_nodes_than_there_are) {
    const std::string file = examples + "refused/guarantees-need-more-nodes.yaml";
    const Said said = bulkhead({"contract", "-f", file.c_str()});
    EXPECT_EQ(said.status, bad_input);
    for (const char* part :
         {"the guarantee of 4 GPUs in tier container cannot be kept together with a, b",
          "3 nodes are needed (a 1, b 1, c 1), and 2 nodes with 16 GPUs may serve them; guaranteed are 12 GPUs",
          "lower the guarantee of c to 0 GPUs, or that of a to 0 GPUs, or that of b to 0 GPUs, or add nodes"})
        EXPECT_THAT(said.err, HasSubstr(part));
}

TEST(ContractCommand, states_the_bound_within_which_guaranteed_work_starts) {
    const Said said = bulkhead({"contract", "-f", examples.c_str(), "-w", "pretrain", "-o", "json"});
    const auto bound = boost::json::parse(said.out).at("contracts").at(0).at("bound");
    EXPECT_EQ(bound.at("save").as_string(), "5m");
    EXPECT_EQ(bound.at("stop").as_string(), "5m");
    EXPECT_EQ(bound.at("reboot").as_string(), "2h");
    EXPECT_THAT(bulkhead({"contract", "-f", examples.c_str(), "-w", "pretrain"}).out,
                HasSubstr("within the guarantee it starts within"));
}

TEST(ContractCommand, a_tenant_reads_reasons_and_no_nodes_name) {
    const Said for_operator = bulkhead({"contract", "-f", examples.c_str(), "-o", "json"});
    for (const char* format : {"json", "table"}) {
        const Said for_tenant = bulkhead({"contract", "-f", examples.c_str(), "-o", format, "--as-tenant", "ministry"});
        EXPECT_THAT(for_tenant.out, HasSubstr("casework-llm"));
        for (const char* name : {"hgx-01", "tee-01", "vgpu-01", "dev-01", "amd-01"}) {
            EXPECT_THAT(for_operator.out, HasSubstr(name));
            EXPECT_THAT(for_tenant.out, testing::Not(HasSubstr(name)));
        }
        for (const char* other : {"harbor-bank", "aurora", "lab-vision", "CVE-", "mi300x", "7 nodes"})
            EXPECT_THAT(for_tenant.out, testing::Not(HasSubstr(other)));
    }
}

TEST(ContractCommand, a_contract_says_what_is_not_isolated) {
    const Said said = bulkhead({"contract", "-f", examples.c_str(), "-w", "fraud-scoring"});
    for (const char* part :
         {"NOT isolated", "pcie", "power-and-clocks", "trusted-base", "vram-scrub", "60 SMs", "mig (simulated)"})
        EXPECT_THAT(said.out, HasSubstr(part));
}

TEST(ContractCommand, puts_three_threat_models_side_by_side) {
    const Said said = bulkhead({"contract", "-f", examples.c_str(), "--threat-model", "all"});
    for (const char* part : {"internal", "cloud", "regulated", "shared-notebook", "no: gpu.soft-outside-tenant"})
        EXPECT_THAT(said.out, HasSubstr(part));
}

}  // namespace
}  // namespace bulkhead::cli
