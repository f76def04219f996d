#include "bulkhead/evidence/ocsf.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <fstream>
#include <set>

#include "bulkhead/evidence/keys_test.hpp"

namespace bulkhead::evidence {
namespace {

namespace json = boost::json;

const OcsfPlace ocsf_place{.log = "log.example/fleet", .index = 5, .entry = sha256("entry")};

json::object event_of(const Record& record, const std::optional<TenantOpening>& tenant = {}) {
    const std::string line = ocsf_event(ocsf_place, record, tenant);
    EXPECT_EQ(line.find('\n'), std::string::npos);
    return json::parse(line).as_object();
}

// Required by OCSF 1.8.0, written down here once more: of every event, and of each class that is used.
void expect_required(const json::object& event) {
    const std::string text = json::serialize(event);
    for (const char* name : {"activity_id", "category_uid", "class_uid", "type_uid", "time", "severity_id"})
        ASSERT_TRUE(event.contains(name) && event.at(name).is_int64()) << name << " in " << text;
    const std::int64_t of = event.at("class_uid").as_int64(), activity = event.at("activity_id").as_int64();
    EXPECT_EQ(event.at("type_uid").as_int64(), of * 100 + activity) << text;
    EXPECT_EQ(event.at("category_uid").as_int64(), of / 1000) << text;
    const json::object& metadata = event.at("metadata").as_object();
    EXPECT_EQ(metadata.at("version").as_string(), "1.8.0");
    EXPECT_TRUE(metadata.at("product").as_object().contains("name"));
    EXPECT_EQ(metadata.at("uid").as_string(), to_hex(bytes_of(ocsf_place.entry)));
    EXPECT_EQ(metadata.at("sequence").as_int64(), 5);
    EXPECT_EQ(event.at("unmapped").at("leaf_index").as_int64(), 5);
    if (activity == 99) {
        EXPECT_TRUE(event.contains("activity_name")) << "an activity without a number has a name";
    }

    struct Class {
        std::int64_t uid;
        std::vector<const char*> required;
        std::set<std::int64_t> activities;
    };
    const Class classes[] = {
        {2003, {"compliance", "finding_info"}, {1, 2, 3, 99}},
        {3002, {"user"}, {1, 2, 99}},
        {3004, {"entity"}, {1, 2, 3, 4, 99}},
        {6002, {"app"}, {1, 2, 3, 4, 99}},
        {6003, {"actor", "api", "src_endpoint"}, {1, 2, 3, 4, 99}},
    };
    const auto* const known = std::ranges::find(classes, of, &Class::uid);
    ASSERT_NE(known, std::end(classes)) << text;
    EXPECT_TRUE(known->activities.contains(activity)) << text;
    for (const char* name : known->required) EXPECT_TRUE(event.contains(name)) << name << " in " << text;
    if (of == 6003) {
        EXPECT_TRUE(event.at("api").as_object().contains("operation"));
    }
    if (of == 2003) {
        EXPECT_TRUE(event.at("finding_info").as_object().contains("uid"));
    }
    // An object of the schema that has no identifying attribute says nothing.
    if (of == 3004) {
        EXPECT_TRUE(event.at("entity").as_object().contains("uid"));
    }
    if (event.contains("actor")) {
        EXPECT_TRUE(event.at("actor").as_object().contains("user") ||
                    event.at("actor").as_object().contains("app_name"));
    }
}

TEST(Ocsf, every_kind_of_record_becomes_an_event_with_all_that_is_required) {
    for (const RecordKind kind : every<RecordKind>())
        for (const char* actor : {"core", "node:node-7", "api:alice", "bob"}) {
            Record record{.kind = kind, .at = {1'790'000'000'123}, .actor = actor};
            expect_required(event_of(record));  // with nothing but its kind
            record.tenant = "acme";
            record.node = "node-7";
            record.unit = "gpu3/slices 4-7";
            record.lease = "lease-81";
            record.object = "GpuWorkload/fraud";
            record.detail = {{"why", "because\n\"so\""}};
            expect_required(event_of(record));
            EXPECT_EQ(event_of(record).at("time").as_int64(), 1'790'000'000'123);
        }
}

Record wiped_record() {
    WipeStatement wipe;
    wipe.node = "node-7";
    wipe.device = "MIG-5e1f";
    wipe.board = "GPU-77aa";
    wipe.serial = "1650123";
    wipe.driver = "580.159.04";
    wipe.vbios = "96.00.A5.00.1A";
    wipe.unit = "gpu3/slices 4-7";
    wipe.tenants = {pseudonym(opening_of("secret", "acme"))};
    wipe.method = "overwrite";
    wipe.began = {1'790'000'000'000};
    wipe.ended = {1'790'000'004'250};
    wipe.bytes = wipe.bytes_verified = 4096;
    wipe.bytes_unreachable = 512;
    wipe.result = WipeResult::verified;
    Record record{.kind = RecordKind::wiped, .at = {1'790'000'004'300}, .actor = "node:node-7"};
    record.tenant = wipe.tenants.front();
    record.node = "node-7";
    record.unit = wipe.unit;
    record.evidence = sign_statement(key_of_seed('n'), statement_text(wipe));
    return record;
}

TEST(Ocsf, a_wipe_is_a_sanitized_entity_with_what_was_signed) {
    const json::object event = event_of(wiped_record());
    EXPECT_EQ(event.at("class_uid").as_int64(), 3004);
    EXPECT_EQ(event.at("activity_name").as_string(), "Sanitize");
    EXPECT_EQ(event.at("start_time").as_int64(), 1'790'000'000'000);
    EXPECT_EQ(event.at("end_time").as_int64(), 1'790'000'004'250);
    EXPECT_EQ(event.at("entity").at("uid").as_string(), "MIG-5e1f");
    EXPECT_EQ(event.at("entity").at("data").at("previous_tenant").as_string(), wiped_record().tenant);
    const json::object& wipe = event.at("unmapped").at("sanitization").as_object();
    EXPECT_EQ(wipe.at("serial").as_string(), "1650123");
    EXPECT_EQ(wipe.at("bytes_unreachable").as_int64(), 512);

    const json::object named = event_of(wiped_record(), opening_of("secret", "acme"));
    EXPECT_EQ(named.at("entity").at("data").at("previous_tenant").as_string(), "acme");
    const json::object wrong = event_of(wiped_record(), opening_of("secret", "beta"));
    EXPECT_EQ(wrong.at("entity").at("data").at("previous_tenant").as_string(), wiped_record().tenant)
        << "an opening of another pseudonym opens nothing";
}

TEST(Ocsf, a_wipe_that_failed_is_a_finding) {
    Record record = wiped_record();
    record.kind = RecordKind::wipe_failed;
    const json::object event = event_of(record);
    EXPECT_EQ(event.at("class_uid").as_int64(), 2003);
    EXPECT_EQ(event.at("compliance").at("status_id").as_int64(), 3);
    EXPECT_EQ(event.at("compliance").at("control").as_string(), "SC-4");
}

TEST(Ocsf, a_leaf_whose_record_is_lost_is_still_an_event) {
    expect_required(json::parse(ocsf_lost(ocsf_place, {1})).as_object());
}

TEST(Ocsf, a_line_knows_its_leaf) {
    EXPECT_EQ(ocsf_sequence(ocsf_event(ocsf_place, wiped_record())), 5);
    for (const char* line : {"", "{}", "nonsense", R"({"metadata":{}})", R"({"metadata":{"sequence":-1}})",
                             R"({"metadata":{"sequence":"x"}})", R"({"metadata":{"sequence":5)"})
        EXPECT_FALSE(ocsf_sequence(line)) << line;
}

// The examples have the shape that events of ours have: no name at the top that we do not know, and the other way
// round.
TEST(Ocsf, has_the_shape_of_the_examples) {
    std::map<std::int64_t, std::set<std::string>> shapes;
    for (const char* name : {"mig-reconfiguration", "media-sanitization", "compliance-finding"}) {
        std::ifstream file{std::string{BULKHEAD_SHARED_DIR} + "/data/ocsf/" + name + ".json"};
        if (!file) GTEST_SKIP() << "shared/data/ocsf is not here";
        const json::object example = json::parse(std::string{std::istreambuf_iterator<char>{file}, {}}).as_object();
        for (const auto& member : example) shapes[example.at("class_uid").as_int64()].insert(member.key());
    }
    Record failed = wiped_record();
    failed.kind = RecordKind::wipe_failed;
    const std::pair<std::int64_t, Record> ours[] = {
        {6003, {.kind = RecordKind::applied, .actor = "api:alice"}}, {3004, wiped_record()}, {2003, failed}};
    // Optional ones that one of the two has no need of.
    const std::set<std::string> besides{"unmapped", "comment", "message", "status_id", "start_time", "end_time"};
    for (const auto& [of, record] : ours) {
        const json::object event = event_of(record);
        ASSERT_EQ(event.at("class_uid").as_int64(), of);
        std::set<std::string> names;
        for (const auto& member : event) names.insert(member.key());
        for (const std::string& name : shapes[of])
            EXPECT_TRUE(names.contains(name) || besides.contains(name)) << of << " has no " << name;
        for (const std::string& name : names)
            EXPECT_TRUE(shapes[of].contains(name) || besides.contains(name)) << of << " has " << name;
    }
}

}  // namespace
}  // namespace bulkhead::evidence
