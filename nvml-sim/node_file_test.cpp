#include "node_file.hpp"

#include <gtest/gtest.h>

namespace bulkhead::nvml_sim {
namespace {

TEST(NodeFile, what_is_printed_is_read_as_it_was) {
    auto spec = *driver::spec_of("node-07", {{"h200-141gb", 8}, {"l40s", 2}});
    spec.driver = "570.86.15";
    spec.cpu_protection = driver::CpuProtection::tdx;
    spec.confidential = spec.keeps_residue = true;
    const auto again = parse_node(print_node(spec));
    ASSERT_TRUE(again) << again.error().what;
    EXPECT_EQ(*again, spec);
}

TEST(NodeFile, what_is_wrong_is_refused_by_name) {
    struct Row {
        std::string_view says, text, complaint;
    };
    const Row rows[] = {
        {"no GPUs", "node: a\n", "which GPUs"},
        {"an unknown key, with the nearest known one", "gpu: 1 x l40s\n", "no key \"gpu\""},
        {"an unknown GPU", "gpus: 1 x h2000\n", "\"h2000\""},
        {"too many", "gpus: 17 x l4\n", "1 to 16"},
        {"none of them", "gpus: 0 x l4\n", "1 to 16"},
        {"no count", "gpus: l4\n", "list of groups"},
        {"a key twice", "gpus: 1 x l4\ngpus: 1 x l4\n", "second time"},
        {"indentation", "gpus: 1 x l4\n  node: a\n", "line 2"},
        {"a list", "- gpus\n", "line 1"},
        {"a word for a switch", "gpus: 1 x l4\nconfidential: yes\n", "neither true nor false"},
        {"an odd fabric", "gpus: 1 x l4\nfabric: token-ring\n", "none of none, nvlink"},
        {"an odd address", "gpus: 1 x l4\npci: 6\n", "bus and device"},
        {"an odd version", "gpus: 1 x l4\ncuda: 13\n", "no version"},
    };
    for (const Row& row : rows) {
        const auto spec = parse_node(row.text);
        ASSERT_FALSE(spec) << row.says;
        EXPECT_NE(spec.error().what.find(row.complaint), std::string::npos) << row.says << ": " << spec.error().what;
    }
}

}  // namespace
}  // namespace bulkhead::nvml_sim
