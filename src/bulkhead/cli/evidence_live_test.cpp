// Evidence of a running fleet as others take it: certificates that a program in another language checks, schemas that a
// third one holds them against, a log that is watched and exported while its key changes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cstdlib>
#include <set>

#include "bulkhead/cli/live_fleet_test.hpp"

namespace bulkhead::cli {
namespace {

namespace json = boost::json;
using testing::HasSubstr;

struct Ran {
    int status = 0;
    std::string out;
};
Ran python(const Fleet& fleet, const std::string& words) {
    const std::string out = (fleet.folder() / "python.out").string();
    const int status = std::system(fmt::format("python3 {} >{} 2>&1", words, out).c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, slurp(out)};
}

const std::string independent = BULKHEAD_SOURCE_DIR "/docs/verify/verify_certificate.py";

void spill(const std::filesystem::path& path, const std::string& text) { std::ofstream{path} << text; }

// The certificate's JSON, with something in it changed.
std::string spoilt_by(const std::string& text, const std::function<void(json::object&)>& change) {
    json::object list = json::parse(text).as_object();
    change(list.at("certificates").as_array().at(0).as_object());
    return json::serialize(list);
}

void replace_in(json::value& text, const std::string& from, const std::string& to) {
    std::string now{text.as_string()};
    const std::size_t at = now.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text = now.replace(at, from.size(), to);
}

TEST(EvidenceLive, a_wipe_is_proven_to_others_before_and_after_the_logs_key_has_changed) {
    Fleet fleet;
    ASSERT_NO_FATAL_FAILURE(fleet.start());
    const auto file = [&](const std::string& name) { return (fleet.folder() / name).string(); };
    const std::string key = word_after(slurp(fleet.data() / "server.log"), "log key");
    ASSERT_EQ(fleet.say({"audit", "watch", "--once", "--key", key, "--state", file("watch")}).status, 0);
    ASSERT_TRUE(within(std::chrono::seconds{30}, [&] {
        return fleet.say({"fleet"}).out.find("32 available") != std::string::npos;
    })) << fleet.say({"fleet"}).out;
    ASSERT_EQ(fleet.say({"apply", "-f", (fleet.data() / "first-steps.yaml").string()}).status, 0);
    ASSERT_TRUE(within(std::chrono::seconds{30}, [&] {
        return fleet.say({"get", "workload", "fraud-scoring"}).out.find("running") != std::string::npos;
    })) << fleet.say({"explain", "fraud-scoring"}).out;
    const std::string lease = word_after(fleet.say({"get", "workload", "fraud-scoring", "-o", "yaml"}).out, "lease:");
    ASSERT_EQ(fleet.say({"delete", "workload", "fraud-scoring"}).status, 0);
    ASSERT_TRUE(within(std::chrono::seconds{30}, [&] {
        return fleet.say({"certificate", "--lease", lease, "-o", file("before.json")}).status == 0;
    })) << fleet.say({"certificate", "--lease", lease}).out;
    ASSERT_EQ(fleet.say({"certificate", "--lease", lease, "--pseudonymous", "-o", file("others.json")}).status, 0);

    // Names are for those who may know them.
    const std::string certificate = slurp(file("before.json")), others = slurp(file("others.json"));
    EXPECT_THAT(certificate, HasSubstr("\"name\": \"harbor-bank\""));
    EXPECT_THAT(others, testing::Not(HasSubstr("harbor-bank")));
    EXPECT_EQ(fleet.say({"verify", file("others.json"), "--key", key, "--accept-lab"}).status, 0);
    EXPECT_EQ(fleet.say({"verify", file("others.json"), "--key", key}).status, 5) << "of model GPUs";
    EXPECT_EQ(fleet.say({"verify", file("others.json"), "--key", key, "--tenant", "harbor-bank"}).status, 3);
    EXPECT_THAT(fleet.say({"audit", "list", "--limit", "1000"}).out, HasSubstr("harbor-bank"));

    // The other program agrees, on what is good and on what is not.
    const auto check_as_given = [&](const std::string& name, const std::string& more = "") {
        return python(fleet, fmt::format("{} {} --key '{}' {}", independent, file(name), key, more));
    };
    const auto check = [&](const std::string& name, const std::string& more = "") {
        return check_as_given(name, "--accept-lab " + more);
    };
    EXPECT_EQ(check_as_given("before.json").status, 3);
    EXPECT_THAT(check_as_given("before.json").out, HasSubstr("LAB ONLY, NOT HARDWARE"));
    EXPECT_EQ(check("before.json", "--tenant harbor-bank --lease " + lease).status, 0)
        << check("before.json", "--tenant harbor-bank").out;
    EXPECT_THAT(check("before.json").out, HasSubstr("PROVEN"));
    EXPECT_EQ(check("others.json").status, 0);
    EXPECT_EQ(check("others.json", "--tenant harbor-bank").status, 1);
    EXPECT_EQ(check("before.json", "--tenant aurora").status, 1);
    struct Row {
        std::string_view says;
        std::function<void(json::object&)> change;
    };
    const Row rows[] = {
        {"the record", [](json::object& one) { replace_in(one.at("record").at("payload"), "wiped", "Wiped"); }},
        {"the statement in it",
         [](json::object& one) { replace_in(one.at("record").at("payload"), "\\\"bytes\\\":", "\\\"bytes\\\":1"); }},
        {"the salt", [](json::object& one) { one.at("record").at("salt") = std::string(32, '0'); }},
        {"the place",
         [](json::object& one) { one.at("record").at("index") = one.at("record").at("index").as_int64() + 1; }},
        {"a hash of the proof",
         [](json::object& one) {
             auto& proof = one.at("record").at("proof").as_array();
             proof.at(0) = proof.at(proof.size() - 1);
         }},
        {"a proof that is too short", [](json::object& one) { one.at("record").at("proof").as_array().pop_back(); }},
        {"the checkpoint's size",
         [](json::object& one) {
             std::string note{one.at("checkpoint").as_string()};
             note.insert(note.find('\n') + 1, "1");
             one.at("checkpoint") = note;
         }},
        {"whose key signed", [](json::object& one) { one.at("key") = one.at("record"); }},
        {"without the key", [](json::object& one) { one.erase("key"); }},
        {"without the lab's key", [](json::object& one) { one.erase("lab"); }},
        {"another lab's key", [](json::object& one) { replace_in(one.at("lab"), "/lab+", "/lib+"); }},
        {"the tenant's name", [](json::object& one) { one.at("tenant").at("name") = "aurora"; }},
    };
    for (const Row& row : rows) {
        spill(file("bad.json"), spoilt_by(certificate, row.change));
        const Ran other = check("bad.json");
        EXPECT_EQ(other.status, 1) << row.says << ": " << other.out;
        EXPECT_EQ(check_as_given("bad.json").status, 1) << row.says;
        EXPECT_NE(fleet.say({"verify", file("bad.json"), "--key", key, "--accept-lab"}).status, 0) << row.says;
    }

    // Held against the schemas that we publish, by somebody else's validator.
    if (std::system("python3 -c 'import jsonschema' 2>/dev/null") == 0) {
        for (const char* name : {"certificates", "certificate", "record", "wipe-statement", "log-keys"})
            spill(file(std::string{name} + ".schema"), fleet.say({"schema", name}).out);
        spill(file("validate.py"), R"(import json, sys
from jsonschema import Draft202012Validator as Validator
folder = sys.argv[1]
def schema(name):
    loaded = json.load(open(f"{folder}/{name}.schema"))
    Validator.check_schema(loaded)
    return Validator(loaded)
listed = json.load(open(f"{folder}/before.json"))
schema("certificates").validate(listed)
for one in listed["certificates"]:
    schema("certificate").validate(one)
    record = json.loads(one["record"]["payload"])
    schema("record").validate(record)
    schema("record").validate(json.loads(one["key"]["payload"]))
    statement = json.loads(record["evidence"]["statement"])
    schema("wipe-statement").validate(statement)
    for name in ("device", "method", "result", "bytes", "bytesVerified", "began", "ended", "grade", "agentVersion"):
        assert name in statement, name
    spoilt = dict(one, surplus=1)
    assert not schema("certificate").is_valid(spoilt)
    del spoilt["surplus"], spoilt["checkpoint"]
    assert not schema("certificate").is_valid(spoilt)
print("valid")
)");
        const Ran valid = python(fleet, file("validate.py") + " " + fleet.folder().string());
        EXPECT_EQ(valid.out, "valid\n");
    } else {
        std::printf("python3-jsonschema is not here: schemas were not checked\n");
    }

    // Another key for the log: what was proven stays proven, and so does what comes.
    const auto rotated =
        fleet.say({"audit", "rotate-key", "--token-file", (fleet.data() / "keys/security.token").string()});
    ASSERT_EQ(rotated.status, 0) << rotated.out;
    const std::string new_key = rotated.out.substr(0, rotated.out.find('\n'));
    EXPECT_NE(new_key, key);
    ASSERT_TRUE(within(std::chrono::seconds{20}, [&] {
        return fleet.say({"certificate", "--lease", lease, "-o", file("after.json")}).status == 0 &&
               fleet.say({"verify", file("after.json"), "--key", new_key, "--accept-lab"}).status == 0;
    })) << fleet.say({"verify", file("after.json"), "--key", new_key}).out;
    const auto history = [&] {
        const std::string text = slurp(fleet.data() / "keys/log.history");
        spill(file("keys.json"), text);
        return file("keys.json");
    }();
    for (const std::string& trusted : {key, new_key})
        for (const char* one : {"before.json", "after.json"}) {
            const auto said = fleet.say({"verify", file(one), "--key", trusted, "--keys", history, "--accept-lab"});
            EXPECT_EQ(said.status, 0) << one << ' ' << trusted << '\n' << said.out;
            EXPECT_EQ(python(fleet, fmt::format("{} {} --key '{}' --keys {} --accept-lab", independent, file(one),
                                                trusted, history))
                          .status,
                      0)
                << one;
        }
    const auto watched = fleet.say({"audit", "watch", "--once", "--state", file("watch")});
    EXPECT_EQ(watched.status, 0) << watched.out;
    EXPECT_THAT(watched.out, HasSubstr("continues what was seen before"));
    EXPECT_EQ(fleet.stop(SIGINT), 0);
    const auto audited =
        fleet.say({"audit", "verify", "--tiles", (fleet.data() / "tiles").string(), "--key", key, "--keys", history});
    EXPECT_EQ(audited.status, 0) << audited.out;
}

// As far as a node without a NIC goes: it is asked over the line, and its reason comes back and is in the log.
TEST(EvidenceLive, a_node_is_asked_to_test_its_fences_and_says_why_it_does_not) {
    Fleet fleet;
    ASSERT_NO_FATAL_FAILURE(fleet.start());
    const std::string name = word_after(fleet.say({"get", "nodes", "-o", "yaml"}).out, "name:");
    Fleet::Said said;
    ASSERT_TRUE(within(std::chrono::seconds{30}, [&] {
        said = fleet.say({"selftest", "fabric", "--node", name});
        return said.out.find("made no test") != std::string::npos;
    })) << said.out;
    EXPECT_NE(said.status, 0);
    EXPECT_THAT(said.out, HasSubstr("has no NIC for tenants to test"));
    EXPECT_THAT(fleet.say({"get", "node", name, "-o", "yaml"}).out, HasSubstr("fabricTestRequest"));
    EXPECT_THAT(fleet.say({"audit", "list", "--limit", "1000"}).out, HasSubstr("refused"));
    EXPECT_NE(fleet.say({"selftest", "fabric", "--node", "nobody"}).status, 0);
    EXPECT_NE(fleet.say({"selftest", "fabric", "--node", name, "--veth"}).status, 0)
        << "its ends are its own to choose";
}

TEST(EvidenceLive, an_export_that_is_killed_again_and_again_has_each_record_once) {
    Fleet fleet;
    ASSERT_NO_FATAL_FAILURE(fleet.start());
    const std::string out = (fleet.folder() / "events.json").string();
    for (int round = 0; round < 6; ++round) {
        const pid_t exporter =
            Fleet::spawn({"audit", "export", "--format", "ocsf", "--out", out, "--follow"}, fleet.folder() / "export");
        for (int i = 0; i < 3; ++i) fleet.say({"apply", "-f", (fleet.data() / "first-steps.yaml").string()});
        std::this_thread::sleep_for(std::chrono::milliseconds{150 + 70 * round});
        ::kill(exporter, SIGKILL);
        int status = 0;
        ::waitpid(exporter, &status, 0);
        ASSERT_TRUE(WIFSIGNALED(status)) << slurp(fleet.folder() / "export");
    }
    const auto rest = fleet.say({"audit", "export", "--out", out});
    ASSERT_EQ(rest.status, 0) << rest.out;
    std::ifstream file{out};
    std::int64_t next = 0;
    for (std::string line; std::getline(file, line); ++next) {
        const json::object event = json::parse(line).as_object();
        ASSERT_EQ(event.at("metadata").at("sequence").as_int64(), next);
        EXPECT_EQ(event.at("metadata").at("version").as_string(), "1.8.0");
    }
    EXPECT_GT(next, 10);
    const auto piped = fleet.say({"audit", "export", "--from", "0"});
    EXPECT_EQ(piped.status, 0);
    EXPECT_TRUE(piped.out.starts_with(slurp(out))) << "to standard output, the same";
}

}  // namespace
}  // namespace bulkhead::cli
