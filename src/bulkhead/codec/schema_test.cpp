#include "bulkhead/codec/schema.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "bulkhead/codec/print.hpp"

namespace bulkhead {
namespace {

namespace json = boost::json;
using testing::Contains;

TEST(Schema, says_of_a_field_what_reading_asks_of_it) {
    const json::value schema = json::parse(json_schema("GpuWorkload"));
    const auto at = [&](std::string_view pointer) { return json::serialize(schema.at_pointer(std::string{pointer})); };
    const std::string spec = "/properties/spec/properties";
    EXPECT_EQ(at("/properties/kind"), R"({"type":"string","enum":["GpuWorkload"]})");
    EXPECT_EQ(at("/required"), R"(["apiVersion","kind","metadata","spec"])");
    EXPECT_EQ(at("/additionalProperties"), "false");
    EXPECT_EQ(at("/properties/spec/required"), R"(["tenant","gpu"])");
    EXPECT_EQ(
        at(spec + "/tasks"),
        R"({"description":"How many tasks run together, all or none.","type":"integer","minimum":1,"maximum":100000,"default":1})");
    EXPECT_EQ(at(spec + "/slo/properties/level/enum"), R"(["soft","hard"])");
    EXPECT_EQ(at(spec + "/slo/properties/level/default"), R"("soft")");
    EXPECT_EQ(at(spec + "/gpu/properties/fraction/anyOf"), R"([{"type":"number"},{"type":"string"}])");
    EXPECT_EQ(at(spec + "/gpu/properties/fraction/description"),
              R"("A fraction of one GPU per task: 0.5, 1/7. At least 0.001. At most 0.999.")");
    EXPECT_EQ(at("/properties/metadata/properties/labels/additionalProperties"), R"({"type":"string"})");
    EXPECT_EQ(at("/properties/metadata/properties/name/pattern"), R"("^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")");
}

TEST(Schema, of_all_kinds_is_one_of_each) {
    const json::value schema = json::parse(json_schema());
    EXPECT_EQ(schema.at("oneOf").as_array().size(), 6u);
    for (const std::string_view kind : kind_names()) EXPECT_TRUE(schema.at("$defs").as_object().contains(kind)) << kind;
}

// Every keyword below spec is one that a Kubernetes structural schema knows.
void expect_structural(const json::value& schema, const std::string& path) {
    static const std::set<std::string_view> known{"description",
                                                  "type",
                                                  "enum",
                                                  "default",
                                                  "pattern",
                                                  "minimum",
                                                  "maximum",
                                                  "maxLength",
                                                  "required",
                                                  "properties",
                                                  "additionalProperties",
                                                  "items",
                                                  "anyOf"};
    for (const auto& [keyword, value] : schema.as_object()) {
        EXPECT_THAT(known, Contains(std::string_view{keyword})) << path;
        if (keyword == "properties")
            for (const auto& [name, property] : value.as_object())
                expect_structural(property, path + "." + std::string{name});
        if (keyword == "items") expect_structural(value, path + "[]");
    }
}

TEST(Schema, uses_only_what_kubernetes_knows) {
    for (const std::string_view kind : kind_names()) {
        const json::value schema = json::parse(json_schema(kind));
        for (const char* part : {"spec", "status"})
            if (const json::value* found = schema.at("properties").as_object().if_contains(part))
                expect_structural(*found, std::string{kind} + "." + part);
    }
}

// A validator that we did not write: python3-jsonschema, where it is installed.
class SchemaInPython : public testing::Test {
protected:
    void SetUp() override {
        if (std::system("python3 -c 'import jsonschema' >/dev/null 2>&1") != 0)
            GTEST_SKIP() << "python3 has no jsonschema";
        folder_ = std::filesystem::temp_directory_path() /
                  ("bulkhead-schema-" + std::to_string(::testing::UnitTest::GetInstance()->random_seed()) + "-" +
                   std::to_string(reinterpret_cast<std::uintptr_t>(this)));
        std::filesystem::create_directory(folder_);
        write("schema.json", json_schema());
    }
    void TearDown() override {
        if (!folder_.empty()) std::filesystem::remove_all(folder_);
    }
    void write(const std::string& name, const std::string& text) const { std::ofstream{folder_ / name} << text; }
    bool accepts(const std::string& object) const {
        write("object.json", object);
        const std::string script =
            "import json,jsonschema,sys; d=sys.argv[1]; "
            "v=jsonschema.Draft202012Validator(json.load(open(d+\"/schema.json\"))); v.check_schema(v.schema); "
            "sys.exit(0 if v.is_valid(json.load(open(d+\"/object.json\"))) else 3)";
        const int status = std::system(("python3 -c '" + script + "' " + folder_.string()).c_str());
        return status == 0;
    }

    std::filesystem::path folder_;
};

TEST_F(SchemaInPython, accepts_what_we_print) {
    GpuWorkload workload;
    workload.metadata.name = "job";
    workload.spec.tenant = "acme";
    workload.spec.gpu.fraction = Gpus::of_thousandths(500);
    workload.spec.memory = ByteSize{10LL << 30};
    workload.spec.duration = Duration{5'400'001};
    workload.spec.deadline = Instant{1};
    EXPECT_TRUE(accepts(to_json(workload)));
    GpuNode node;
    node.metadata.name = "n1";
    node.spec.site = "ber";
    node.status.gpus = {{"h200", 1, {{"1g.18gb", 0, CleanState::available, "l"}}}};
    EXPECT_TRUE(accepts(to_json(node)));
}

TEST_F(SchemaInPython, refuses_what_we_refuse) {
    Tenant tenant;
    tenant.metadata.name = "acme";
    tenant.spec.tenantClass = "research";
    std::string object = to_json(tenant);
    ASSERT_TRUE(accepts(object));
    const auto changed = [&](std::string_view from, std::string_view to) {
        std::string out = object;
        return out.replace(out.find(from), from.size(), to);
    };
    EXPECT_FALSE(accepts(changed("\"research\"", "\"Research!\"")));
    EXPECT_FALSE(accepts(changed("\"weight\": 1", "\"weight\": -1")));
    EXPECT_FALSE(accepts(changed("\"overQuotaPriority\": 0", "\"overQuotaPriority\": 1001")));
    EXPECT_FALSE(accepts(changed("\"weight\": 1", "\"wieght\": 1")));
    EXPECT_FALSE(accepts(changed("\"trusted\"", "\"trustworthy\"")));
    EXPECT_FALSE(accepts(changed("\"Tenant\"", "\"Tennant\"")));
}

}  // namespace
}  // namespace bulkhead
