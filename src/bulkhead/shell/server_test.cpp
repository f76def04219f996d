// The whole control plane on loopback: real core, real store, real TLS; only the agents' machines are missing.
#include "bulkhead/shell/server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <boost/json.hpp>
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

#include "bulkhead/audit/tile_reader.hpp"
#include "bulkhead/auth/ca.hpp"
#include "bulkhead/auth/enrolment.hpp"
#include "bulkhead/evidence/note.hpp"
#include "bulkhead/evidence/signing.hpp"
#include "bulkhead/shell/fixture_test.hpp"
#include "bulkhead/shell/plane_test.hpp"
#include "bulkhead/store/store.hpp"

namespace bulkhead::shell {
namespace {

using testing::HasSubstr;

TEST(Server, its_first_start_makes_what_it_needs_and_keeps_it_to_itself) {
    const ScratchFolder folder;
    std::string token, key;
    {
        Plane plane{folder};
        ASSERT_FALSE(plane.error) << plane.error->what;
        token = plane.token;
        key = plane.server->verifier_key();
        for (const auto& entry : std::filesystem::recursive_directory_iterator{folder / "data/keys"}) {
            struct stat status{};
            ASSERT_EQ(::stat(entry.path().c_str(), &status), 0);
            EXPECT_EQ(status.st_mode & 0077, 0u) << entry.path();
        }
    }
    Plane again{folder};
    ASSERT_FALSE(again.error);
    EXPECT_EQ(again.token, token);
    EXPECT_EQ(again.server->verifier_key(), key);
}

TEST(Server, a_second_one_on_the_same_data_is_refused_before_it_takes_over) {
    const ScratchFolder folder;
    Plane first{folder};
    ASSERT_FALSE(first.error);
    const Plane second{folder};
    ASSERT_TRUE(second.error);
    EXPECT_EQ(first.ask("POST", "/v1/apply", policy_yaml).status, 200) << "the first goes on";
}

TEST(Server, objects_are_applied_read_changed_and_deleted) {
    const ScratchFolder folder;
    Plane plane{folder};
    ASSERT_FALSE(plane.error) << plane.error->what;
    const Heard applied = plane.ask("POST", "/v1/apply", policy_yaml + "---\n" + tenant_yaml);
    ASSERT_EQ(applied.status, 200) << applied.body;
    EXPECT_EQ(json::parse(applied.body).at("items").as_array().size(), 2u);

    const Heard read = plane.ask("GET", "/v1/tenants/acme");
    ASSERT_EQ(read.status, 200);
    const std::string tag = read.headers.at("etag");
    EXPECT_EQ(plane.ask("GET", "/v1/tenants/acme", {}, "If-None-Match: " + tag + "\r\n").status, 304);

    const std::string changed = tenant_json("acme", "{}", 5);
    EXPECT_EQ(plane.ask("PUT", "/v1/tenants/acme", changed).status, 428) << "a write says what it replaces";
    EXPECT_EQ(plane.ask("PUT", "/v1/tenants/acme", changed, "If-Match: \"stale\"\r\n").status, 412);
    const Heard put = plane.ask("PUT", "/v1/tenants/acme", changed, "If-Match: " + tag + "\r\n");
    ASSERT_EQ(put.status, 200) << put.body;
    EXPECT_NE(put.headers.at("etag"), tag);
    EXPECT_EQ(json::parse(put.body).at("spec").at("quota").at("weight").as_int64(), 5);
    EXPECT_EQ(plane.ask("PUT", "/v1/tenants/acme", changed, "If-Match: " + tag + "\r\n").status, 412) << "once";
    EXPECT_EQ(plane.ask("PUT", "/v1/tenants/beta", tenant_json("beta"), "If-Match: *\r\n").status, 404);

    const Heard created = plane.ask("POST", "/v1/tenants", tenant_json("beta"));
    EXPECT_EQ(created.status, 201);
    EXPECT_EQ(created.headers.at("location"), "/v1/tenants/beta");
    EXPECT_EQ(plane.ask("POST", "/v1/tenants", tenant_json("beta")).status, 409);

    EXPECT_EQ(plane.ask("DELETE", "/v1/tenants/beta", {}, "If-Match: \"stale\"\r\n").status, 412);
    EXPECT_EQ(plane.ask("DELETE", "/v1/tenants/beta").status, 200);
    EXPECT_EQ(plane.ask("GET", "/v1/tenants/beta").status, 404);
    EXPECT_EQ(plane.ask("DELETE", "/v1/tenants/beta").status, 404);
}

TEST(Server, every_writer_gets_its_own_write_back) {
    const ScratchFolder folder;
    Plane plane{folder};
    ASSERT_EQ(plane.ask("POST", "/v1/apply", policy_yaml + "---\n" + tenant_yaml).status, 200);
    constexpr int writers = 8, writes = 25;
    std::atomic<int> wrong{0}, asked{0};
    std::vector<std::thread> threads;
    for (int writer = 0; writer < writers; ++writer)
        threads.emplace_back([&, writer] {
            Probe probe{plane.server->port(), plane.ca};
            for (int i = 0; i < writes; ++i) {
                const std::string write = std::to_string(writer * writes + i);
                const auto heard =
                    probe.ask("PUT", "/v1/tenants/acme", tenant_json("acme", "{\"write\":\"" + write + "\"}"),
                              plane.bearer() + "If-Match: *\r\n");
                ++asked;
                if (!heard || heard->status != 200) {
                    ++wrong;
                    continue;
                }
                const json::value body = json::parse(heard->body);
                const std::string version{body.at("metadata").at("resourceVersion").as_string()};
                if (body.at("metadata").at("labels").at("write").as_string() != write ||
                    heard->headers.at("etag") != "\"" + version + "\"")
                    ++wrong;
            }
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(asked.load(), writers * writes);
    EXPECT_EQ(wrong.load(), 0);
}

TEST(Server, conditions_are_kept_or_refused_and_never_passed_over) {
    const ScratchFolder folder;
    Plane plane{folder};
    ASSERT_EQ(plane.ask("POST", "/v1/apply", policy_yaml + "---\n" + tenant_yaml).status, 200);
    const std::string tag = plane.ask("GET", "/v1/tenants/acme").headers.at("etag");
    for (const std::string& good : {tag, "W/" + tag, "\"x\", " + tag, std::string{"*"}})
        EXPECT_EQ(plane.ask("GET", "/v1/tenants/acme", {}, "If-None-Match: " + good + "\r\n").status, 304) << good;
    EXPECT_EQ(plane.ask("GET", "/v1/tenants/acme", {}, "If-None-Match: \"x\"\r\n").status, 200);

    const std::string why = R"({"why":"test"})", stale = "If-Match: \"stale\"\r\n";
    EXPECT_EQ(plane.ask("POST", "/v1/tenants/acme/freeze", why, stale).status, 400) << "nobody would look at it";
    EXPECT_EQ(plane.ask("POST", "/v1/apply", tenant_yaml, stale).status, 400);
    EXPECT_EQ(plane.ask("GET", "/v1/tenants/acme").headers.at("etag"), tag) << "nothing was done";
    EXPECT_EQ(plane.ask("POST", "/v1/tenants/acme/freeze", why, "If-Match: *\r\n").status, 200);

    for (const char* none : {"/v1/log/records?limit=0", "/v1/certificates?node=x&limit=0"})
        EXPECT_EQ(plane.ask("GET", none).status, 400) << none;
    EXPECT_EQ(plane.ask("PUT", "/v1/nodes", "{}").headers.at("allow"), "GET, HEAD, POST");
    Probe shouting{plane.server->port(), plane.ca};
    EXPECT_EQ(shouting.ask("GET", "/v1/nodes", {}, "Authorization: BEARER " + plane.token + "\r\n")->status, 200);
}

TEST(Server, a_question_has_an_end) {
    const ScratchFolder folder;
    Plane plane{folder};
    std::string many = policy_yaml;
    for (int i = 0; i < 5000; ++i) many += "---\n" + tenant_json("t" + std::to_string(i)) + "\n";
    for (const char* where : {"/v1/whatif", "/v1/apply?dryRun=true"}) {
        const Heard heard = plane.ask("POST", where, many);
        EXPECT_EQ(heard.status, 400) << where;
        EXPECT_THAT(heard.body, HasSubstr("at most 5000"));
    }
}

TEST(Server, several_objects_are_applied_all_or_none) {
    const ScratchFolder folder;
    Plane plane{folder};
    const std::string orphan =
        "---\napiVersion: bulkhead.dev/v1alpha1\nkind: Tenant\nmetadata: {name: child}\n"
        "spec: {class: batch, parent: nobody}\n";
    const Heard refused = plane.ask("POST", "/v1/apply", policy_yaml + "---\n" + tenant_yaml + orphan);
    EXPECT_EQ(refused.status, 400) << refused.body;
    const json::value finding = json::parse(refused.body).at("findings").as_array().at(0);
    EXPECT_EQ(finding.at("name").as_string(), "child");
    EXPECT_EQ(finding.at("pointer").as_string(), "/spec/parent");
    EXPECT_EQ(plane.ask("GET", "/v1/tenants/acme").status, 404);
    EXPECT_EQ(plane.ask("POST", "/v1/apply?dryRun=true", policy_yaml + "---\n" + tenant_yaml).status, 200);
    EXPECT_EQ(plane.ask("POST", "/v1/whatif", policy_yaml + "---\n" + tenant_yaml).status, 200);
    EXPECT_EQ(plane.ask("GET", "/v1/policies/fleet").status, 404) << "a question changes nothing";
}

TEST(Server, lists_come_in_pages_and_by_label) {
    const ScratchFolder folder;
    Plane plane{folder};
    std::string all = policy_yaml;
    for (int i = 0; i < 7; ++i)
        all += "---\n" + tenant_json("t" + std::to_string(i), i % 2 ? R"({"odd":"yes"})" : "{}") + "\n";
    ASSERT_EQ(plane.ask("POST", "/v1/apply", all).status, 200);
    std::size_t seen = 0;
    std::string next;
    for (int pages = 0; pages < 10; ++pages) {
        const json::object page = plane.get("/v1/tenants?limit=3" + (next.empty() ? "" : "&continue=" + next));
        seen += page.at("items").as_array().size();
        const json::object about = page.at("metadata").as_object();
        if (!about.contains("continue")) break;
        next = about.at("continue").as_string();
    }
    EXPECT_EQ(seen, 7u);
    EXPECT_EQ(plane.get("/v1/tenants?labelSelector=odd%3Dyes").at("items").as_array().size(), 3u);
    for (const char* bad :
         {"/v1/tenants?limit=0", "/v1/tenants?limit=x", "/v1/tenants?limit=1001", "/v1/tenants?continue=zz",
          "/v1/tenants?labelSelector=%3D", "/v1/tenants?watch=maybe", "/v1/tenants?resourceVersion=1"})
        EXPECT_EQ(plane.ask("GET", bad).status, 400) << bad;
}

TEST(Server, knows_who_asks_and_denies_by_default) {
    const ScratchFolder folder;
    Plane plane{folder};
    Probe stranger{plane.server->port(), plane.ca};
    EXPECT_EQ(stranger.ask("GET", "/healthz")->status, 200);
    EXPECT_EQ(stranger.ask("GET", "/readyz")->body, "running\n");
    EXPECT_EQ(stranger.ask("GET", "/openapi.json")->status, 200);
    const auto nobody = stranger.ask("GET", "/v1/nodes");
    EXPECT_EQ(nobody->status, 401);
    EXPECT_EQ(nobody->headers.at("www-authenticate"), "Bearer");
    for (const std::string wrong : {"Bearer ", "Bearer nonsense", "Basic YTpi", "bearer x"})
        EXPECT_EQ(stranger.ask("GET", "/v1/nodes", {}, "Authorization: " + wrong + "\r\n")->status, 401) << wrong;
    std::string other = plane.token;
    other.back() = other.back() == '0' ? '1' : '0';
    EXPECT_EQ(stranger.ask("GET", "/v1/nodes", {}, "Authorization: Bearer " + other + "\r\n")->status, 401);

    const Heard made =
        plane.ask_as(plane.security(), "POST", "/v1/tokens", R"({"role":"auditor","subject":"eve@audit.example"})");
    ASSERT_EQ(made.status, 201) << made.body;
    const std::string auditor{json::parse(made.body).at("token").as_string()};
    const std::string id{json::parse(made.body).at("id").as_string()};
    const std::string as_auditor = "Authorization: Bearer " + auditor + "\r\n";
    Probe audit{plane.server->port(), plane.ca};
    EXPECT_EQ(audit.ask("GET", "/v1/nodes", {}, as_auditor)->status, 200);
    EXPECT_EQ(audit.ask("GET", "/v1/log/records", {}, as_auditor)->status, 200);
    EXPECT_EQ(audit.ask("DELETE", "/v1/tenants/acme", {}, as_auditor)->status, 403);
    Probe audit_again{plane.server->port(), plane.ca};
    EXPECT_EQ(audit_again.ask("POST", "/v1/apply", policy_yaml, as_auditor)->status, 403);
    EXPECT_THAT(plane.ask("GET", "/v1/tokens").body, testing::Not(HasSubstr(auditor)));
    EXPECT_EQ(plane.ask_as(plane.security(), "DELETE", "/v1/tokens/" + id).status, 200);
    Probe late{plane.server->port(), plane.ca};
    EXPECT_EQ(late.ask("GET", "/v1/nodes", {}, as_auditor)->status, 401) << "taken back";
    EXPECT_EQ(plane.ask("POST", "/v1/tokens", R"({"role":"king","subject":"x"})").status, 400);
}

TEST(Server, the_first_token_stays_taken_back) {
    const ScratchFolder folder;
    std::string admin, bootstrap;
    {
        Plane plane{folder};
        const Heard made =
            plane.ask_as(plane.security(), "POST", "/v1/tokens", R"({"role":"platform-admin","subject":"ann"})");
        ASSERT_EQ(made.status, 201) << made.body;
        admin = json::parse(made.body).at("token").as_string();
        const json::object tokens = plane.get("/v1/tokens");
        for (const auto& item : tokens.at("items").as_array())
            if (item.at("subject").as_string() == "admin") bootstrap = item.at("id").as_string();
        ASSERT_EQ(plane.ask("DELETE", "/v1/tokens/" + bootstrap).status, 200);
        EXPECT_EQ(plane.ask("GET", "/v1/nodes").status, 401);
    }
    Plane again{folder};
    ASSERT_FALSE(again.error);
    EXPECT_EQ(again.ask("GET", "/v1/nodes").status, 401) << "although its text is still in the file";
    again.token = admin;
    EXPECT_THAT(again.ask("GET", "/v1/tokens").body, testing::Not(HasSubstr(bootstrap)));
    EXPECT_EQ(again.ask("DELETE", "/v1/tokens/" + bootstrap).status, 404) << "it is gone, for whoever looks";
    again.server->stop();
    std::filesystem::remove(again.server->token_file());
    again.server.reset();
    Plane anew{folder};
    EXPECT_EQ(anew.ask("GET", "/v1/nodes").status, 200) << "without the file, there is a new one";
}

TEST(Server, a_token_that_is_made_or_taken_back_is_said) {
    const ScratchFolder folder;
    std::FILE* const file = std::fopen((folder / "log").c_str(), "w");
    ASSERT_NE(file, nullptr);
    {
        Plane plane{folder, {}, ::fileno(file)};
        const Heard made =
            plane.ask_as(plane.security(), "POST", "/v1/tokens", R"({"role":"auditor","subject":"eve@audit.example"})");
        const std::string id{json::parse(made.body).at("id").as_string()};
        EXPECT_EQ(plane.ask_as(plane.security(), "DELETE", "/v1/tokens/" + id).status, 200);
        const std::string said = slurp(folder / "log");
        EXPECT_THAT(said, HasSubstr("event=\"a token was made\" id=" + id +
                                    " purpose=api role=auditor subject=eve@audit.example by=security-admin by_token="));
        EXPECT_THAT(said, HasSubstr("event=\"a token was taken back\" id=" + id));
        EXPECT_THAT(said, testing::Not(HasSubstr("bh1_"))) << "and its text is not";
    }
    std::fclose(file);
}

TEST(Server, a_watch_ends_with_its_token) {
    const ScratchFolder folder;
    Plane plane{folder};
    const auto watch = [&](Probe& probe, const std::string& token) {
        ASSERT_TRUE(probe.send("GET /v1/tenants?watch=true HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + token +
                               "\r\n\r\n"));
        ASSERT_TRUE(probe.read_until("event: synced"));
    };
    const Heard made = plane.ask_as(plane.security(), "POST", "/v1/tokens", R"({"role":"auditor","subject":"eve"})");
    ASSERT_EQ(made.status, 201);
    Probe eve{plane.server->port(), plane.ca}, admin{plane.server->port(), plane.ca};
    watch(eve, std::string{json::parse(made.body).at("token").as_string()});
    watch(admin, plane.token);
    const auto began = std::chrono::steady_clock::now();
    const std::string id{json::parse(made.body).at("id").as_string()};
    ASSERT_EQ(plane.ask_as(plane.security(), "DELETE", "/v1/tokens/" + id).status, 200);
    ASSERT_TRUE(eve.read_until("event: denied"));
    ASSERT_TRUE(eve.read_until("0\r\n\r\n")) << "the last word";
    EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds{5}) << "at once, not at the next pulse";
    ASSERT_EQ(plane.ask("POST", "/v1/apply", policy_yaml + "---\n" + tenant_yaml).status, 200);
    EXPECT_TRUE(admin.read_until("\"name\":\"acme\"")) << "others go on";
    EXPECT_THAT(eve.unread(), testing::Not(HasSubstr("acme")));
}

TEST(Server, one_token_cannot_crowd_out_others) {
    const ScratchFolder folder;
    Plane plane{folder};
    Probe stranger{plane.server->port(), plane.ca};
    int refused = 0;
    std::string wait;
    for (int i = 0; i < 1000; ++i) {
        const auto heard = stranger.ask("GET", "/healthz");
        ASSERT_TRUE(heard);
        if (heard->status == 429) {
            ++refused;
            wait = heard->headers.at("retry-after");
        }
    }
    EXPECT_GT(refused, 0);
    EXPECT_EQ(wait, "1");
    EXPECT_EQ(plane.ask("GET", "/v1/nodes").status, 200) << "from the same address, with a token";
}

TEST(Server, hostile_requests_get_an_answer_and_nothing_else) {
    const ScratchFolder folder;
    Plane plane{folder};
    ASSERT_EQ(plane.ask("POST", "/v1/apply", policy_yaml).status, 200);
    struct Row {
        std::string method, target, body;
        int status;
    };
    const Row rows[] = {
        {"POST", "/v1/apply", "{\"kind\":", 400},
        {"POST", "/v1/apply", std::string(2000, '['), 400},
        {"POST", "/v1/apply", "a: &a [*a, *a]", 400},
        {"POST", "/v1/apply", std::string("\0\0\0", 3), 400},
        {"POST", "/v1/tenants", tenant_json("UPPER"), 400},
        {"POST", "/v1/tenants", tenant_json("../etc"), 400},
        {"POST", "/v1/tenants", tenant_json(std::string(64, 'a')), 400},
        {"POST", "/v1/tenants", policy_yaml, 400},
        {"POST", "/v1/nodes/x/drain", "[1,2,3]", 400},
        {"POST", "/v1/nodes/x/drain", "{\"y\":1}", 400},
        {"POST", "/v1/nodes/x/drain", "{}", 404},
        {"POST", "/v1/nodes/x/repair", R"({"device":"gpu-1","why":"x"})", 400},
        {"POST", "/v1/tenants/x/freeze", "{}", 400},
        {"GET", "/v1/nodes/..%2f..%2fkeys", "", 400},
        {"GET", "/v1/log/tile/../../keys/ca.key", "", 400},
        {"GET", "/v1/log/tile/0/x1/000", "", 404},
        {"GET", "/v1/log/tile/0/999", "", 404},
        {"GET", "/v1/certificates", "", 400},
        {"GET", "/v1/certificates?lease=a&node=b", "", 400},
        {"GET", "/v1/certificates?lease=nothing", "", 404},
        {"GET", "/v1/workloads/none/explain", "", 404},
        {"GET", "/v2/nodes", "", 404},
        {"PUT", "/v1/nodes", "{}", 405},
        {"POST", "/v1/leases",
         R"({"apiVersion":"bulkhead.dev/v1alpha1","kind":"GpuLease","metadata":{"name":"l"},"spec":{"tenant":"a","workload":"w","mechanism":"mig","tier":"container"}})",
         403},
        {"DELETE", "/v1/policies/none", "", 404},
        {"POST", "/v1/enrol", "{}", 400},
    };
    for (const Row& row : rows) {
        const bool securitys = std::string_view{row.target}.ends_with("/repair");
        const Heard heard = securitys ? plane.ask_as(plane.security(), row.method, row.target, row.body)
                                      : plane.ask(row.method, row.target, row.body);
        EXPECT_EQ(heard.status, row.status) << row.method << ' ' << row.target << ' ' << row.body.substr(0, 80) << '\n'
                                            << heard.body;
        if (heard.status >= 400) {
            EXPECT_EQ(heard.headers.at("content-type"), "application/problem+json") << row.target;
        }
    }
}

struct NewNode {
    explicit NewNode(const std::string& name_) : name{name_} {}
    std::string name;
    auth::KeyAndRequest request = *auth::make_request(name);
    evidence::SigningKey key = *evidence::SigningKey::from_seed(std::string(32, 'k'));
    std::string body(const std::string& token) const {
        return print(auth::EnrolmentRequest{.name = name,
                                            .token = token,
                                            .request = request.request,
                                            .evidenceKey = print(key.public_key()),
                                            .spec = {.site = "here"}});
    }
};

TEST(Server, a_machine_becomes_a_node_once_per_token) {
    const ScratchFolder folder;
    Plane plane{folder};
    const auto mint = [&](const std::string& node) {
        const Heard heard = plane.ask("POST", "/v1/tokens/enrolment", R"({"node":")" + node + "\"}");
        EXPECT_EQ(heard.status, 201) << heard.body;
        return std::string{json::parse(heard.body).at("token").as_string()};
    };
    const std::string token = mint("rack1-*");
    const auto enrol = [&](const std::string& body) {
        Probe machine{plane.server->port(), plane.ca};
        return *machine.ask("POST", "/v1/enrol", body);
    };
    const NewNode node{"rack1-a"};
    EXPECT_EQ(enrol(node.body(token)).status, 400) << "no policy, no site: refused, and the token is not spent";
    ASSERT_EQ(plane.ask("POST", "/v1/apply", policy_yaml).status, 200);
    EXPECT_EQ(enrol(NewNode{"rack2-a"}.body(token)).status, 401) << "another name";
    const Heard welcome = enrol(node.body(token));
    ASSERT_EQ(welcome.status, 201) << welcome.body;
    const auto answer = auth::read_enrolment_answer(welcome.body);
    ASSERT_TRUE(answer);
    const auto peer = auth::read_peer(answer->certificate);
    ASSERT_TRUE(peer);
    EXPECT_EQ(peer->node, "rack1-a");
    EXPECT_EQ(answer->agents, "127.0.0.1:" + std::to_string(plane.server->agent_port()));
    EXPECT_EQ(plane.get("/v1/nodes/rack1-a").at("spec").at("site").as_string(), "here");

    EXPECT_EQ(enrol(NewNode{"rack1-b"}.body(token)).status, 401) << "a token admits one node, once";
    EXPECT_EQ(enrol(node.body(mint("rack1-*"))).status, 409) << "a token for many names does not take over a node";
    EXPECT_EQ(enrol(node.body(mint("rack1-a"))).status, 201) << "a token for exactly this one does";
    EXPECT_EQ(plane.ask("POST", "/v1/nodes/rack1-a/revoke", R"({"why":"stolen"})").status, 200);
    EXPECT_EQ(plane.ask("POST", "/v1/tokens/enrolment", R"({"node":"*x"})").status, 400);
}

TEST(Server, a_watch_tells_changes_and_goes_on_where_it_was_cut) {
    const ScratchFolder folder;
    Plane plane{folder};
    ASSERT_EQ(plane.ask("POST", "/v1/apply", policy_yaml + "---\n" + tenant_yaml).status, 200);
    std::string point;
    {
        Probe watcher{plane.server->port(), plane.ca};
        ASSERT_TRUE(watcher.send("GET /v1/tenants?watch=true HTTP/1.1\r\nHost: x\r\n" + plane.bearer() + "\r\n"));
        ASSERT_TRUE(watcher.read_until("event: synced"));
        EXPECT_THAT(watcher.unread(), HasSubstr("event: added"));
        ASSERT_EQ(plane.ask("POST", "/v1/tenants", tenant_json("beta")).status, 201);
        ASSERT_TRUE(watcher.read_until("\"name\":\"beta\""));
        const std::size_t at = watcher.unread().rfind("id: ");
        point = watcher.unread().substr(at + 4, watcher.unread().find('\n', at) - at - 4);
    }
    ASSERT_EQ(plane.ask("DELETE", "/v1/tenants/beta").status, 200);
    Probe again{plane.server->port(), plane.ca};
    ASSERT_TRUE(again.send("GET /v1/tenants?watch=true HTTP/1.1\r\nHost: x\r\nLast-Event-ID: " + point + "\r\n" +
                           plane.bearer() + "\r\n"));
    ASSERT_TRUE(again.read_until("event: deleted"));
    EXPECT_THAT(again.unread(), testing::Not(HasSubstr("event: added"))) << "nothing is told twice";
    EXPECT_EQ(plane.ask("GET", "/v1/tenants?watch=true&resourceVersion=1-1").status, 410) << "another server's point";
}

TEST(Server, output_is_asked_for_in_words_that_mean_something) {
    const ScratchFolder folder;
    Plane plane{folder};
    ASSERT_FALSE(plane.error) << plane.error->what;
    EXPECT_EQ(plane.ask("GET", "/v1/workloads/train/output").status, 403) << "content is its tenant's";
    ASSERT_EQ(plane.ask("POST", "/v1/apply", policy_yaml + "---\n" + tenant_yaml).status, 200);
    plane.token = plane.token_of("tenant-user", "acme");
    EXPECT_EQ(plane.ask("GET", "/v1/workloads/train/output").status, 404);
    for (const char* wrong : {"stream=both", "from=-1", "from=x", "rank=100001"})
        EXPECT_EQ(plane.ask("GET", std::string{"/v1/workloads/train/output?"} + wrong).status, 400) << wrong;
    EXPECT_EQ(plane.probe->ask("GET", "/v1/workloads/train/output", {}, "")->status, 401);
}

TEST(Server, publishes_a_log_that_verifies_offline) {
    const ScratchFolder folder;
    std::string key_text;
    {
        Plane plane{folder};
        ASSERT_EQ(plane.ask("POST", "/v1/apply", policy_yaml + "---\n" + tenant_yaml).status, 200);
        key_text = plane.server->verifier_key();
        Heard note;
        for (int i = 0; i < 100; ++i) {
            note = plane.ask("GET", "/v1/log/checkpoint");
            if (note.status == 200 && note.body.find("\n3\n") != std::string::npos) break;
            std::this_thread::sleep_for(std::chrono::milliseconds{20});
        }
        EXPECT_THAT(note.body, HasSubstr("\n3\n")) << "started, policy, tenant";
        EXPECT_EQ(plane.ask("GET", "/v1/log/key").body, key_text + "\n");
        EXPECT_EQ(plane.ask("GET", "/v1/log/tile/0/000.p/3").body.size(), 96u);
        const auto items = plane.get("/v1/log/records").at("items").as_array();
        ASSERT_EQ(items.size(), 3u);
        EXPECT_THAT(std::string{items[2].at("payload").as_string()}, HasSubstr("Tenant/acme"));
        EXPECT_THAT(plane.ask("GET", "/metrics").body, HasSubstr("bulkhead_log_leaves 3"));
    }
    const auto reader = audit::TileReader::open(folder / "data/tiles");
    ASSERT_TRUE(reader);
    const auto key = evidence::parse_verifier_key(key_text);
    ASSERT_TRUE(key);
    const auto audited = reader->verify_all(*key);
    ASSERT_TRUE(audited) << audited.error().what;
    EXPECT_EQ(audited->checkpoint.size, 3u);
}

TEST(Server, a_backup_is_a_store_and_an_old_one_is_noticed) {
    const ScratchFolder folder;
    std::filesystem::create_directory(folder / "data");
    std::ofstream{folder / "data/backup-7.db"} << "of a server that was killed";
    {
        Plane plane{folder};
        ASSERT_EQ(plane.ask("POST", "/v1/apply", policy_yaml).status, 200);
        const Heard copy = plane.ask("POST", "/v1/backup");
        ASSERT_EQ(copy.status, 200);
        std::ofstream{folder / "backup.db", std::ios::binary} << copy.body;
        ASSERT_EQ(plane.ask("POST", "/v1/apply", tenant_yaml).status, 200);
        for (const auto& entry : std::filesystem::directory_iterator{folder / "data"})
            EXPECT_THAT(entry.path().filename().string(), testing::Not(HasSubstr("backup-")))
                << "nothing is left behind";
    }
    ASSERT_TRUE(store::Store::copy_from(folder / "backup.db", {.path = folder / "data/bulkhead.db"},
                                        store::Store::Existing::replace));
    Plane restored{folder};
    ASSERT_FALSE(restored.error) << restored.error->what;
    EXPECT_EQ(restored.ask("GET", "/v1/policies/fleet").status, 200);
    EXPECT_EQ(restored.ask("GET", "/v1/tenants/acme").status, 404) << "written after the backup";
    const auto items = restored.get("/v1/log/records").at("items").as_array();
    bool lost = false, said = false;
    for (const auto& item : items) {
        lost = lost || item.as_object().contains("lost");
        said = said || (item.as_object().contains("payload") &&
                        item.at("payload").as_string().find("restored") != std::string::npos);
    }
    EXPECT_TRUE(lost) << "what was published stays in the log";
    EXPECT_TRUE(said) << "and the restore is itself an entry";
}

TEST(Server, says_how_it_is_in_prometheus_words) {
    const ScratchFolder folder;
    Plane plane{folder};
    ASSERT_EQ(plane.ask("POST", "/v1/apply", policy_yaml + "---\n" + tenant_yaml).status, 200);
    const std::string text = plane.ask("GET", "/metrics").body;
    for (const char* line :
         {"bulkhead_objects{kind=\"Tenant\"} 1\n", "bulkhead_agents_connected 0\n", "bulkhead_writable 1\n",
          "bulkhead_http_requests_total{route=\"/v1/apply\",status=\"200\"} 1\n",
          "bulkhead_commit_seconds_bucket{le=\"+Inf\"}", "# TYPE bulkhead_commit_seconds histogram\n",
          "bulkhead_leases{phase=\"active\"} 0\n", "bulkhead_units{state=\"quarantined\"} 0\n"})
        EXPECT_THAT(text, HasSubstr(line));
    const Heard own = plane.ask("GET", "/v1/tenants/acme/metrics");
    EXPECT_EQ(own.status, 200);
    EXPECT_THAT(own.body, HasSubstr("bulkhead_tenant_gpus_held{tenant=\"acme\"} 0.000\n"));
    EXPECT_THAT(own.body, testing::Not(HasSubstr("bulkhead_writable"))) << "how the server is, is not its business";
    EXPECT_EQ(plane.ask("GET", "/v1/tenants/nobody/metrics").status, 404);
    EXPECT_EQ(plane.ask("GET", "/v1/tenants/nobody/metrics").body, plane.ask("GET", "/v1/tenants/nobody").body);
    EXPECT_EQ(plane.ask("GET", "/metrics?nodes=rack7-").status, 200);
    const auto queue = plane.get("/v1/queue");
    EXPECT_TRUE(queue.at("items").as_array().empty());
    const Heard snapshot = plane.ask("GET", "/v1/snapshot");
    EXPECT_THAT(snapshot.body, HasSubstr("kind: FleetPolicy"));
    EXPECT_THAT(snapshot.body, HasSubstr("name: acme"));
}

TEST(Server, usage_is_asked_for_by_whole_days_and_the_compliance_switch_needs_a_reason) {
    const ScratchFolder folder;
    Plane plane{folder};
    ASSERT_FALSE(plane.error) << plane.error->what;
    ASSERT_EQ(plane.ask("POST", "/v1/apply", policy_yaml + "---\n" + tenant_yaml).status, 200);
    const json::object empty = plane.get("/v1/usage?from=2026-11-01&to=2026-12-01");
    EXPECT_TRUE(empty.at("items").as_array().empty());
    EXPECT_TRUE(empty.at("totals").as_array().empty());
    EXPECT_THAT(plane.ask("GET", "/v1/usage?from=2026-11-01&to=2026-12-01&format=focus").body,
                testing::StartsWith("BilledCost,BillingAccountId,"));
    for (const char* bad :
         {"", "?from=2026-11-01", "?from=2026-12-01&to=2026-11-01", "?from=2026-11-01T01:00:00Z&to=2026-12-01",
          "?from=2026-11-01&to=2026-12-01&format=xml", "?from=2026-11-01&to=2026-12-01&by=node"})
        EXPECT_EQ(plane.ask("GET", std::string{"/v1/usage"} + bad).status, 400) << bad;
    EXPECT_EQ(
        plane.ask("POST", "/v1/usage/corrections", R"({"id":"a","lease":"lease-1","amount":"1","why":"x"})").status,
        404);
    EXPECT_EQ(
        plane.ask("POST", "/v1/usage/corrections", R"({"id":"a","lease":"lease-1","amount":"1.0000000001"})").status,
        400);
    const std::string door = "/v1/tenants/acme/compliance";
    EXPECT_EQ(plane.ask("POST", door, R"({"mode":"dedicated"})").status, 400);
    const Heard preview = plane.ask("POST", door, R"({"mode":"dedicated","dryRun":true})");
    ASSERT_EQ(preview.status, 200) << preview.body;
    EXPECT_EQ(json::parse(preview.body).at("result").as_string(), "would change");
    EXPECT_FALSE(plane.get("/v1/tenants/acme").at("spec").as_object().contains("compliance") &&
                 plane.get("/v1/tenants/acme").at("spec").at("compliance").as_string() != "off");
    EXPECT_EQ(plane.ask("POST", door, R"({"mode":"dedicated","why":"audit"})").status, 200);
    EXPECT_EQ(plane.get("/v1/tenants/acme").at("spec").at("compliance").as_string(), "dedicated");
    EXPECT_EQ(plane.ask("POST", "/v1/tenants/nobody/compliance", R"({"mode":"off","why":"audit"})").status, 404);
}

}  // namespace
}  // namespace bulkhead::shell
