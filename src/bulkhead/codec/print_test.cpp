#include "bulkhead/codec/print.hpp"

#include <gtest/gtest.h>

namespace bulkhead {
namespace {

TEST(Print, yaml_says_what_differs_and_what_is_required) {
    FleetPolicy policy;
    policy.metadata.name = "fleet";
    policy.spec.sites = {{"ber", "de"}, {"par", "fr"}};
    policy.spec.trustDomains = {{"vision", {"acme", "beta"}}};
    policy.spec.versionGate.dueDays.high = 14;
    EXPECT_EQ(to_yaml(policy), R"(apiVersion: bulkhead.dev/v1alpha1
kind: FleetPolicy
metadata:
  name: fleet
spec:
  sites:
    - name: ber
      jurisdiction: de
    - name: par
      jurisdiction: fr
  trustDomains:
    - name: vision
      members:
        - acme
        - beta
  versionGate:
    dueDays:
      high: 14
)");
}

TEST(Print, required_parts_are_there_even_when_empty) {
    TenantClass object;
    object.metadata.name = "x";
    EXPECT_EQ(to_yaml(object),
              "apiVersion: bulkhead.dev/v1alpha1\nkind: TenantClass\nmetadata:\n  name: x\nspec:\n  mechanisms: []\n");
    GpuWorkload workload;
    workload.metadata.name = "w";
    workload.spec.tenant = "t";
    EXPECT_EQ(
        to_yaml(workload),
        "apiVersion: bulkhead.dev/v1alpha1\nkind: GpuWorkload\nmetadata:\n  name: w\nspec:\n  tenant: t\n  gpu: {}\n");
}

TEST(Print, json_says_everything_but_absent_options) {
    Quota quota;
    quota.guarantee = Gpus::of_thousandths(500);
    EXPECT_EQ(
        to_json(quota),
        "{\n  \"guarantee\": 0.5,\n  \"guaranteeUnit\": \"gpu\",\n  \"weight\": 1,\n  \"overQuotaPriority\": 0\n}\n");
    EXPECT_EQ(to_yaml(quota), "guarantee: 0.5\n");
    EXPECT_EQ(to_yaml(Quota{}), "{}\n");
}

TEST(Print, quotes_what_a_reader_would_take_for_something_else) {
    struct Row {
        std::string_view says, text, printed;
    };
    const Row rows[] = {
        {"a word is a word", "acme", "acme"},
        {"a sentence is plain", "research, mostly", "research, mostly"},
        {"a version with two dots is no number", "580.159.04", "580.159.04"},
        {"letters of other alphabets are plain", "gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f"},
        {"a time of day with letters is plain", "09:00h", "09:00h"},
        {"a number is quoted", "580", "\"580\""},
        {"so is one with an exponent", "1e3", "\"1e3\""},
        {"so is YAML 1.1's base 60", "12:30:45", "\"12:30:45\""},
        {"so is a word some take for true", "yes", "\"yes\""},
        {"whatever its case", "Off", "\"Off\""},
        {"but not within a longer word", "offline", "offline"},
        {"null is quoted", "null", "\"null\""},
        {"nothing at all is quoted", "", "\"\""},
        {"a comment would begin here", "a #b", "\"a #b\""},
        {"a key would begin here", "a: b", "\"a: b\""},
        {"a trailing colon makes a key", "a:", "\"a:\""},
        {"a list would begin here", "- a", "\"- a\""},
        {"an alias would begin here", "*a", "\"*a\""},
        {"spaces at the ends would be lost", " a ", "\" a \""},
        {"lines are escaped", "a\nb", "\"a\\nb\""},
        {"quotes alone need none", "say \"a\"", "say \"a\""},
        {"a backslash is itself", "a\\b", "a\\b"},
        {"a quote in front needs quotes", "\"a\" \\", "\"\\\"a\\\" \\\\\""},
        {"what cannot be seen is escaped", "a\xe2\x80\xa8", "\"a\\u2028\""},
    };
    for (const Row& row : rows) {
        GpuSlice slice;
        slice.profile = row.text;
        // An empty profile is the default and is left out; a lease shows its quotes.
        AcceptedRisk risk{.risk = Risk::shared_nvlink, .by = std::string{row.text}, .at = Instant{0}};
        EXPECT_EQ(to_yaml(risk),
                  "risk: shared-nvlink\nby: " + std::string{row.printed} + "\nat: 1970-01-01T00:00:00Z\n")
            << row.says;
    }
}

TEST(Print, a_word_that_kubectl_would_take_for_false_is_quoted_even_in_an_enum) {
    DetectedCapability capability{.name = Capability::mig};
    EXPECT_EQ(to_yaml(capability), "name: mig\n");
    GpuNodeStatus status;
    status.confidentialMode = ConfidentialMode::on;
    EXPECT_EQ(to_yaml(status), "confidentialMode: \"on\"\n");
}

}  // namespace
}  // namespace bulkhead
