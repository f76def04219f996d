#include "bulkhead/codec/decode.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bulkhead/model/snapshot.hpp"

namespace bulkhead {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

template <class T>
std::string errors_in(std::string_view text, T target = {}) {
    const ReadText read = read_documents("f", text);
    std::vector<Diagnostic> errors = read.errors;
    if (!read.documents.empty()) decode(*read.documents[0].root, "f", target, errors);
    std::string out;
    for (const Diagnostic& error : errors) out += print(error);
    return out;
}

// One field of a workload that is otherwise complete.
std::string workload_errors(std::string_view field) {
    return errors_in<GpuWorkloadSpec>("tenant: acme\ngpu: {count: 1}\n" + std::string{field});
}

TEST(Decode, takes_quantities_as_people_write_them) {
    for (const char* field :
         {"memory: 10Gi", "memory: \"10Gi\"", "memory: 1000", "duration: 1h30m", "deadline: 2026-11-15T09:00:00Z",
          "deadline: \"2026-11-15T09:00:00Z\"", "tasks: 4", "preemptible: true", "placement: {}", "slo: {level: hard}",
          "slo: {level: \"hard\"}", "placement: {sites: []}", "isolation: {tier: vm}"})
        EXPECT_EQ(workload_errors(field), "") << field;
    GpuRequest gpu;
    const ReadText read = read_documents("f", "fraction: 0.5");
    std::vector<Diagnostic> errors;
    EXPECT_TRUE(decode(*read.documents[0].root, "f", gpu, errors));
    EXPECT_EQ(gpu.fraction, Gpus::of_thousandths(500));
}

TEST(Decode, says_what_is_wrong_with_a_value_and_what_to_write) {
    struct Row {
        std::string_view says, field, error;
    };
    const Row rows[] = {
        {"a field near a known one", "taks: 4", "f:3:1: unknown field \"taks\"\n  try: tasks\n"},
        {"a field near none", "frobnicate: 4", "unknown field \"frobnicate\"\n  try: one of tenant, tasks,"},
        {"a field near one, deeper", "slo: {levle: hard}", "f:3:7: unknown field \"levle\" in slo\n  try: level\n"},
        {"a word for a number", "tasks: four", "f:3:8: tasks is \"four\"; it takes a whole number"},
        {"a half for a whole", "tasks: 1.5", "tasks is \"1.5\"; it takes a whole number"},
        {"octal is not guessed at", "tasks: 010", "tasks is \"010\"; it takes a whole number"},
        {"neither is hexadecimal", "tasks: 0x10", "it takes a whole number"},
        {"nor a plus sign", "tasks: +1", "it takes a whole number"},
        {"a number in quotes", "tasks: \"4\"", "\"4\" in quotes is text\n  try: 4, without quotes"},
        {"too small", "tasks: 0", "tasks is 0, which is out of range\n  try: a value from 1 to 100000"},
        {"too large", "tasks: 100001", "tasks is 100001, which is out of range"},
        {"far too large", "tasks: 99999999999999999999", "more than 64 bits hold\n  try: a value from 1 to 100000"},
        {"a quantity below its least", "memory: 0", "memory is 0, which is out of range\n  try: a value from 1 to 1Pi"},
        {"a quantity without its unit", "duration: 90",
         "duration: \"90\" is not a span of time\n  try: write numbers with d, h"},
        {"a date for a point in time", "deadline: 2026-11-15", "deadline: \"2026-11-15\" is not a point in time"},
        {"a quantity as a list", "memory: [10Gi]", "memory takes one value, and this is a list"},
        {"yes for true", "preemptible: yes", "preemptible is yes; it takes true or false\n  try: true\n"},
        {"off for false", "preemptible: Off", "preemptible is Off; it takes true or false\n  try: false\n"},
        {"on for true", "preemptible: on", "try: true\n"},
        {"no for false", "preemptible: no", "try: false\n"},
        {"true in quotes", "preemptible: \"true\"", "try: true, without quotes"},
        {"a number for true", "preemptible: 1", "try: write true or false"},
        {"a word near a known one", "slo: {level: hrad}",
         "slo.level is \"hrad\"; it takes one of soft, hard\n  try: hard\n"},
        {"a word near none", "slo: {level: maximal}", "one of soft, hard\n  try: choose one of these words"},
        {"words are exact", "slo: {level: Hard}", "try: hard\n"},
        {"a word as a map", "slo: {level: {a: b}}", "slo.level takes one word, and this is a map"},
        {"one word for a list", "slo: {resources: sm}", "slo.resources takes a list, and this is a single value"},
        {"an item that is wrong", "slo: {resources: [sm, l3]}", "f:3:23: slo.resources[1] is \"l3\"; it takes one of"},
        {"an item that is nothing", "slo:\n  resources:\n    -\n", "slo.resources[0] has no value"},
        {"text for fields", "slo: hard", "slo takes fields, and this is a single value"},
        {"a list for fields", "slo: [hard]", "slo takes fields, and this is a list"},
        {"nothing for fields", "slo:", "f:3:1: slo has no value\n  try: write {} or remove the field"},
        {"nothing for a list", "placement: {sites: }",
         "placement.sites has no value\n  try: write [] or remove the field"},
        {"nothing for a number", "cpu: ~", "cpu has no value\n  try: write a value or remove the field"},
        {"a name that is none", "placement: {sites: [Berlin]}",
         "placement.sites[0] is \"Berlin\"\n  try: 1 to 63 lower-case"},
        {"an item cannot be left empty", "placement: {sites: ['']}",
         "placement.sites[0] is \"\"\n  try: 1 to 63 lower-case"},
        {"a number for text", "placement: {sites: [49]}",
         "placement.sites[0] takes text, and 49 is a number to YAML\n  try: \"49\", in quotes"},
        {"a truth for text", "placement: {sites: [no]}",
         "placement.sites[0] takes text, and no is true or false to YAML\n  try: \"no\", in quotes"},
    };
    for (const Row& row : rows) EXPECT_THAT(workload_errors(row.field), HasSubstr(std::string{row.error})) << row.says;
}

TEST(Decode, says_what_is_missing_and_what_it_is_for) {
    EXPECT_EQ(errors_in<GpuWorkloadSpec>("{}"),
              "f:1:1: tenant is missing\n  try: add tenant: Who owns the work.\n"
              "f:1:1: gpu is missing\n  try: add gpu: What each task needs of GPUs.\n");
    EXPECT_THAT(errors_in<Tenant>("metadata: {}\nspec: {class: batch}"), HasSubstr("f:1:1: metadata.name is missing"));
}

TEST(Decode, free_pairs_are_text) {
    EXPECT_EQ(errors_in<Metadata>("name: a\nlabels: {a: b, \"1\": \"2\", on: \"off\"}"), "");
    struct Row {
        std::string_view text, error;
    };
    for (const Row& row : {Row{"labels: {a: 1}", "labels.a takes text, and 1 is a number"},
                           Row{"labels: {a: true}", "labels.a takes text, and true is true or false"},
                           Row{"labels: {a: }", "labels.a has no value"},
                           Row{"labels: {a: [b]}", "labels.a takes text, and this is a list"},
                           Row{"labels: [a]", "labels takes keys and values, and this is a list"},
                           Row{"labels: x", "labels takes keys and values"}})
        EXPECT_THAT(errors_in<Metadata>("name: a\n" + std::string{row.text}), HasSubstr(std::string{row.error}))
            << row.text;
}

TEST(Decode, json_is_held_to_the_same_rules) {
    EXPECT_EQ(errors_in<Quota>(R"({"guarantee": 0.5, "limit": "8", "weight": 2})"), "");
    EXPECT_THAT(errors_in<Quota>(R"({"weight": "2"})"), HasSubstr("2, without quotes"));
    EXPECT_THAT(errors_in<Quota>(R"({"guarantee": 5e-1})"), HasSubstr("\"5e-1\" is not a number of GPUs"));
    EXPECT_THAT(errors_in<Quota>(R"({"guarantee": null})"), HasSubstr("guarantee has no value"));
    EXPECT_THAT(errors_in<Metadata>(R"({"name": 1})"), HasSubstr("name takes text, and 1 is a number"));
}

TEST(Decode, long_and_strange_values_stay_short_in_messages) {
    const std::string errors = workload_errors("slo: {level: " + std::string(5000, 'x') + "}");
    EXPECT_LT(errors.size(), 300u);
    EXPECT_LT(workload_errors("duration: " + std::string(5000, '1')).size(), 300u);
    EXPECT_THAT(workload_errors("\"a\\nb\": 1"), HasSubstr("unknown field \"a?b\""));
}

}  // namespace
}  // namespace bulkhead
