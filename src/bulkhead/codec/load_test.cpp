#include "bulkhead/codec/load.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bulkhead {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Loaded load_one(std::string text) {
    const SourceText file{"fleet.yaml", std::move(text)};
    return load({&file, 1});
}

std::string all_errors(const Loaded& loaded) {
    std::string out;
    for (const Diagnostic& error : loaded.errors) out += print(error);
    return out;
}

constexpr std::string_view tenant = R"(apiVersion: bulkhead.dev/v1alpha1
kind: Tenant
metadata:
  name: acme
spec:
  class: research
)";

TEST(Load, reads_what_a_person_writes) {
    const Loaded loaded = load_one(R"(# a fleet
apiVersion: bulkhead.dev/v1alpha1
kind: GpuWorkload
metadata:
  name: notebook
  labels: {team: vision}
spec:
  tenant: acme
  tasks: 4
  gpu:
    fraction: 0.5
    mechanism: mps
  memory: 10Gi
  deadline: 2026-11-15T09:00:00Z
  duration: 1h30m
  slo: {level: hard, resources: [sm, l2]}
  preemptible: false
---
# nothing here
---
apiVersion: bulkhead.dev/v1alpha1
kind: Tenant
metadata: {name: acme}
spec:
  class: research
  compliance: off
  quota: {guarantee: 8, limit: "16.5"}
)");
    EXPECT_EQ(all_errors(loaded), "");
    ASSERT_EQ(loaded.snapshot.workloads.size(), 1u);
    const GpuWorkloadSpec& spec = loaded.snapshot.workloads[0].spec;
    EXPECT_EQ(spec.tenant, "acme");
    EXPECT_EQ(spec.tasks, 4);
    EXPECT_EQ(spec.gpu.fraction, Gpus::of_thousandths(500));
    EXPECT_EQ(spec.gpu.mechanism, Mechanism::mps);
    EXPECT_EQ(spec.memory, ByteSize{10LL << 30});
    EXPECT_EQ(spec.duration, Duration{5'400'000});
    EXPECT_EQ(spec.slo.level, Slo::hard);
    EXPECT_THAT(spec.slo.resources, ElementsAre(Aspect::sm, Aspect::l2));
    EXPECT_EQ(spec.preemptible, false);
    ASSERT_EQ(loaded.snapshot.tenants.size(), 1u);
    EXPECT_EQ(loaded.snapshot.tenants[0].spec.quota.limit, Gpus::of_thousandths(16'500));
}

TEST(Load, reports_every_typo_of_a_file_with_its_place) {
    const Loaded loaded = load_one(R"(apiVersion: bulkhead.dev/v1alpha1
kind: GpuWorkload
metadata:
  name: notebook
spec:
  tennant: acme
  gpu:
    mechansim: mps
    profile: 1g.10gb
  isolation:
    tier: contianer
)");
    EXPECT_EQ(all_errors(loaded),
              "fleet.yaml:5:1: spec.tenant is missing\n"
              "  try: add tenant: Who owns the work.\n"
              "fleet.yaml:6:3: unknown field \"tennant\" in spec\n"
              "  try: tenant\n"
              "fleet.yaml:8:5: unknown field \"mechansim\" in spec.gpu\n"
              "  try: mechanism\n"
              "fleet.yaml:11:11: spec.isolation.tier is \"contianer\"; it takes one of process, container, vm, "
              "confidential-vm\n"
              "  try: container\n");
    EXPECT_TRUE(loaded.snapshot.workloads.empty()) << "an object with errors is not loaded";
}

TEST(Load, a_broken_document_does_not_hide_the_errors_of_the_next) {
    const Loaded loaded = load_one("a: [1\n---\nkind: Tenannt\n---\n" + std::string{tenant});
    ASSERT_EQ(loaded.errors.size(), 3u) << all_errors(loaded);
    EXPECT_THAT(print(loaded.errors[0]), HasSubstr("this is not YAML"));
    EXPECT_THAT(print(loaded.errors[1]), HasSubstr("fleet.yaml:3:1: apiVersion is missing"));
    EXPECT_THAT(print(loaded.errors[2]), HasSubstr("unknown kind \"Tenannt\""));
    EXPECT_EQ(loaded.snapshot.tenants.size(), 1u);
}

TEST(Load, refuses_what_is_not_an_object_of_ours) {
    struct Row {
        std::string_view says, text, error;
    };
    const std::string version = "apiVersion: bulkhead.dev/v1alpha1\n";
    const Row rows[] = {
        {"a list is no object", "- a\n- b\n", "an object takes fields"},
        {"a word is no object", "hello", "an object takes fields"},
        {"without a kind nothing is known", "apiVersion: bulkhead.dev/v1alpha1", "kind is missing"},
        {"an old version is not guessed at",
         "apiVersion: v1\nkind: Tenant\nmetadata: {name: a}\nspec: {class: research}",
         "apiVersion \"v1\" is not known"},
        {"a kind is a word, not a list", "apiVersion: bulkhead.dev/v1alpha1\nkind: [Tenant]", "unknown kind \"\""},
        {"a List has items", "apiVersion: v1\nkind: List\nitem: []", "a List takes items"},
        {"a tenant must have a spec", "apiVersion: bulkhead.dev/v1alpha1\nkind: Tenant\nmetadata: {name: a}",
         "spec is missing"},
        {"an empty spec is not a spec", "apiVersion: bulkhead.dev/v1alpha1\nkind: Tenant\nmetadata: {name: a}\nspec:",
         "fleet.yaml:4:1: spec has no value"},
    };
    for (const Row& row : rows) {
        const Loaded loaded = load_one(std::string{row.text});
        EXPECT_THAT(all_errors(loaded), HasSubstr(std::string{row.error})) << row.says;
        EXPECT_EQ(loaded.snapshot, Snapshot{}) << row.says;
    }
}

TEST(Load, takes_the_list_that_kubectl_prints) {
    const Loaded loaded = load_one(R"({"apiVersion": "v1", "kind": "List", "items": [
  {"apiVersion": "bulkhead.dev/v1alpha1", "kind": "Tenant", "metadata": {"name": "a"}, "spec": {"class": "batch"}},
  {"apiVersion": "bulkhead.dev/v1alpha1", "kind": "Tenant", "metadata": {"name": "b"}, "spec": {"class": "batch"}}
]})");
    EXPECT_EQ(all_errors(loaded), "");
    EXPECT_EQ(loaded.snapshot.tenants.size(), 2u);
}

TEST(Load, errors_come_file_by_file_in_the_order_given) {
    const std::vector<SourceText> files{{"b.yaml", "kind: 1"}, {"a.yaml", "kind: 2"}};
    const Loaded loaded = load(files);
    ASSERT_EQ(loaded.errors.size(), 4u);
    EXPECT_EQ(loaded.errors[0].where.file, "b.yaml");
    EXPECT_EQ(loaded.errors[3].where.file, "a.yaml");
}

TEST(SourceMap, finds_the_place_of_a_field_or_of_its_nearest_ancestor) {
    const Loaded loaded = load_one(R"(apiVersion: bulkhead.dev/v1alpha1
kind: FleetPolicy
metadata:
  name: fleet
  labels: {a/b: "1"}
spec:
  sites:
    - name: ber
      jurisdiction: de
    - name: par
      jurisdiction: fr
---
apiVersion: bulkhead.dev/v1alpha1
kind: FleetPolicy
metadata: {name: fleet}
)");
    ASSERT_EQ(all_errors(loaded), "");
    struct Row {
        std::string_view says, pointer;
        std::size_t occurrence;
        int line, column;
    };
    const Row rows[] = {
        {"a value is found where it is written", "/spec/sites/1/jurisdiction", 0, 11, 21},
        {"an item is found by its number", "/spec/sites/1", 0, 10, 7},
        {"a map is found at its key", "/spec/sites", 0, 7, 3},
        {"a slash in a key is escaped", "/metadata/labels/a~1b", 0, 5, 17},
        {"what is not written is at its parent", "/spec/sites/1/colour", 0, 10, 7},
        {"an item too far is at its list", "/spec/sites/7", 0, 7, 3},
        {"no pointer is the object", "", 0, 1, 1},
        {"the second of a name is another object", "/metadata/name", 1, 15, 18},
    };
    for (const Row& row : rows) {
        const Position at = loaded.where.find("FleetPolicy", "fleet", row.occurrence, row.pointer);
        EXPECT_EQ(at, (Position{"fleet.yaml", row.line, row.column})) << row.says;
    }
    EXPECT_EQ(loaded.where.find("Tenant", "nobody", 0, "/spec"), (Position{"fleet.yaml", 0, 0}))
        << "an object that is nowhere has no line";
}

TEST(SourceMap, places_findings_about_the_snapshot) {
    const Loaded loaded = load_one(std::string{tenant});
    const Finding finding{"Tenant", "acme", 0, "/spec/class", "what", "remedy"};
    EXPECT_THAT(located(loaded.where, {&finding, 1}), ElementsAre(Diagnostic{{"fleet.yaml", 6, 10}, "what", "remedy"}));
}

}  // namespace
}  // namespace bulkhead
