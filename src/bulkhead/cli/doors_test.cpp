// Every door, every role, one's own and somebody else's: what is written here is what happens. The table is written a
// second time, by hand, so that a row of the server's own table that is wrong, or missing here, fails.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "bulkhead/cli/client.hpp"
#include "bulkhead/cli/live_fleet_test.hpp"
#include "bulkhead/shell/routes.hpp"

namespace bulkhead::cli {
namespace {

using shell::Method;

// For admin, security, auditor, and of acme: tenant-admin, tenant-user, break-glass.
//   y  let in       a  let in, and it may not be there        n  403       m  404, as of what does not exist
struct Expected {
    std::string own;      // what is acme's, or nobody's
    std::string foreign;  // what is beta's; empty: the door is not about an object of a tenant
};
const std::map<std::string, Expected> expected{
    {"health", {"yyyyyy", ""}},
    {"readiness", {"yyyyyy", ""}},
    {"openapi", {"yyyyyy", ""}},
    {"metrics", {"yyynnn", ""}},
    {"loginWith", {"aaaaaa", ""}},
    {"logKeys", {"yyyyyy", ""}},
    {"logProof", {"aaaaaa", ""}},
    {"logConsistency", {"aaaaaa", ""}},
    {"rotateLogKey", {"nynnnn", ""}},
    {"tenantMetrics", {"yyyyyy", "yyymmm"}},
    {"usage", {"yyyyyy", ""}},
    {"history", {"yyyyyy", ""}},
    {"correctUsage", {"ynnnnn", ""}},
    {"compliance", {"yyyyyy", "yyymmm"}},  // who may turn it is the core's to say: permitted_test
    {"apply", {"yyyyyy", ""}},             // what may be applied is the core's to say: permitted_test
    {"whatIf", {"yyyyyy", ""}},
    {"queue", {"yyyyyy", ""}},
    {"snapshot", {"yyynnn", ""}},
    {"certificates", {"yyyyyy", "yyymmm"}},
    {"backup", {"ynnnnn", ""}},
    {"whoAmI", {"yyyyyy", ""}},
    {"breakGlass", {"yynnnn", "yynmmm"}},
    {"listTokens", {"yyyyny", ""}},
    {"createToken", {"yynynn", ""}},
    {"createEnrolmentToken", {"ynnnnn", ""}},
    {"deleteToken", {"yynymn", "yynmmm"}},
    {"enrol", {"yyyyyy", ""}},
    {"logCheckpoint", {"yyyyyy", ""}},
    {"logKey", {"yyyyyy", ""}},
    {"logRecords", {"yyyyny", ""}},
    {"logTile", {"aaaaaa", ""}},
    {"explain", {"yyyyyy", "yyymmm"}},
    {"output", {"nnnyyy", "nnnmmm"}},
    {"nccl", {"yyyyyy", "yyymmm"}},
    {"drain", {"ynnnnn", ""}},
    {"undrain", {"ynnnnn", ""}},
    {"repair", {"nynnnn", ""}},
    {"testFabric", {"ynnnnn", ""}},
    {"revoke", {"yynnnn", ""}},
    {"freeze", {"yynnnn", "yynmmm"}},
    {"thaw", {"yynnnn", "yynmmm"}},
    {"hold", {"yynnnn", "yynmmm"}},
    {"unhold", {"nynnnn", "nynmmm"}},
    {"list policies", {"yyynnn", ""}},
    {"list classes", {"yyynnn", ""}},
    {"list nodes", {"yyynnn", ""}},
    {"list tenants", {"yyyyyy", ""}},
    {"list workloads", {"yyyyyy", ""}},
    {"list leases", {"yyyyyy", ""}},
    {"get policies", {"yyynnn", ""}},
    {"get classes", {"yyynnn", ""}},
    {"get nodes", {"yyynnn", ""}},
    {"get tenants", {"yyyyyy", "yyymmm"}},
    {"get workloads", {"yyyyyy", "yyymmm"}},
    {"get leases", {"yyyyyy", "yyymmm"}},
    {"delete policies", {"ynnnnn", ""}},
    {"delete classes", {"ynnnnn", ""}},
    {"delete nodes", {"ynnnnn", ""}},
    {"delete tenants", {"ynnnnn", "ynnmmm"}},
    {"delete workloads", {"ynnyyy", "ynnmmm"}},
    {"delete leases", {"nnnnnn", "nnnmmm"}},  // written by the system alone
};
// Creating and replacing: whether a body may be applied is the core's to say, and permitted_test's to try.
const std::set<std::string> by_object{"create", "replace"};

struct Answered {
    int status = 0;
    std::string body;
};

class Doors : public testing::Test {
protected:
    void SetUp() override {
        fleet.start();
        if (HasFatalFailure()) return;
        server = between(slurp(fleet.folder() / "context"), "\"server\": \"");
        ASSERT_FALSE(server.empty()) << slurp(fleet.folder() / "context");
        admin = token_in("admin.token");
        ASSERT_EQ(
            ask(admin, "POST", "/v1/apply", tenant("acme") + "---\n" + tenant("beta") + "---\n" + a_class()).status,
            200);
        for (const char* name : {"acme", "beta"}) {
            const Answered made = ask(admin, "POST", "/v1/apply", work(name, std::string{name} + "-job"));
            ASSERT_EQ(made.status, 200) << made.body;
        }
        ASSERT_TRUE(within(20s, [&] { return lease_of("acme").size() > 1 && lease_of("beta").size() > 1; }));
        // Once a tenant has an admin, its tokens are for the admin to make.
        const std::string user = minted("tenant-user", "acme");
        people = {
            admin,        token_in("security.token"), token_in("auditor.token"), minted("tenant-admin", "acme"), user,
            glass("acme")};
        end_a_lease_of_each();
    }
    // So that there are certificates to ask for.
    void end_a_lease_of_each() {
        for (const char* name : {"acme", "beta"}) {
            const std::string old = std::string{name} + "-old";
            ASSERT_EQ(ask(admin, "POST", "/v1/apply", work(name, old)).status, 200);
            ASSERT_TRUE(within(20s, [&] { return lease_called(old).size() > 1; }));
            ended_[name] = lease_called(old);
            ASSERT_EQ(ask(admin, "DELETE", "/v1/workloads/" + old).status, 200);
            ASSERT_TRUE(within(20s, [&] {
                return ask(admin, "GET", "/v1/certificates?lease=" + ended_[name]).status == 200;
            })) << name;
        }
    }
    static std::string slurp_line(const fs::path& path) {
        std::string text = slurp(path);
        return text.substr(0, text.find('\n'));
    }
    std::string token_in(const std::string& file) const { return slurp_line(fleet.data() / "keys" / file); }
    Answered ask(const std::string& token, const std::string& method, const std::string& target,
                 const std::string& body = {}, const std::string& if_match = {}) {
        auto client = Client::open({.server = server, .token = token, .ca_pem = slurp(fleet.data() / "keys/ca.crt")});
        EXPECT_TRUE(client) << client.error().what;
        Client::Request request{.method = method, .target = target, .body = body};
        if (!if_match.empty()) request.headers.emplace_back("If-Match", if_match);
        const auto reply = client->send(request);
        EXPECT_TRUE(reply) << target << ' ' << (reply ? "" : reply.error().what);
        return reply ? Answered{reply->status, reply->body} : Answered{};
    }
    static std::string between(const std::string& text, const std::string& from) {
        const std::size_t at = text.find(from);
        return at == text.npos ? ""
                               : text.substr(at + from.size(), text.find('"', at + from.size()) - at - from.size());
    }
    std::string minted(const std::string& role, const std::string& of, std::string* id = nullptr) {
        const Answered made = ask(of == "acme" && !people.empty() ? people[3] : admin, "POST", "/v1/tokens",
                                  fmt::format(R"({{"role":"{}","tenant":"{}","subject":"somebody"}})", role, of));
        EXPECT_EQ(made.status, 201) << made.body;
        if (id != nullptr) *id = between(made.body, "\"id\":\"");
        return between(made.body, "\"token\":\"");
    }
    std::string glass(const std::string& of) {
        const Answered made = ask(admin, "POST", "/v1/tenants/" + of + "/break-glass", R"({"why":"ticket 7"})");
        EXPECT_EQ(made.status, 201) << made.body;
        return between(made.body, "\"token\":\"");
    }
    std::string lease_called(const std::string& workload) {
        return between(ask(admin, "GET", "/v1/workloads/" + workload).body, "\"lease\":\"");
    }
    std::string lease_of(const std::string& tenant) { return lease_called(tenant + "-job"); }
    static std::string tenant(const std::string& name) {
        return "apiVersion: bulkhead.dev/v1alpha1\nkind: Tenant\nmetadata: {name: " + name +
               "}\nspec: {class: batch}\n";
    }
    static std::string a_class() {
        return "apiVersion: bulkhead.dev/v1alpha1\nkind: TenantClass\nmetadata: {name: special}\n"
               "spec: {mechanisms: [whole], quota: fair-share}\n";
    }
    static std::string work(const std::string& tenant, const std::string& name) {
        return "apiVersion: bulkhead.dev/v1alpha1\nkind: GpuWorkload\nmetadata: {name: " + name +
               "}\nspec: {tenant: " + tenant + ", gpu: {count: 1}}\n";
    }

    // A request that changes nothing, whoever sends it: where it is let in, its body or its condition is wrong.
    Answered try_door(const std::string& token, const shell::Route& route, std::string target) {
        const std::string body = route.body == shell::Body::none ? "" : "{\"nonsense\": 1}";
        const bool conditional = route.method == Method::erase && route.operation == "delete";
        if (route.operation == "certificates") target += "?lease=" + subject_;
        return ask(token, std::string{word(route.method)}, target, body, conditional ? "\"stale\"" : "");
    }
    std::string at(const shell::Route& route, const std::string& kind, const std::string& name) {
        subject_ = name;
        std::string target{route.pattern};
        const auto put = [&](const std::string& what, const std::string& with) {
            if (const std::size_t found = target.find(what); found != target.npos)
                target.replace(found, what.size(), with);
        };
        put("{kind}", kind);
        put("{name}", name);
        put("{id}", name);
        put("{path}", "0/000");
        return target;
    }

    // What is called so in a door about this kind of thing: acme's, beta's, and nobody's.
    struct Names {
        std::string own, foreign, ghost;
    };
    Names names_for(const shell::Route& route, const std::string& kind) {
        const std::string pattern{route.pattern};
        if (route.operation == "deleteToken") {
            std::string own, foreign;
            minted("tenant-admin", "acme", &own);
            minted("tenant-user", "beta", &foreign);
            return {own, foreign, "0123456789abcdef"};
        }
        if (route.operation == "certificates") return {ended_["acme"], ended_["beta"], "lease-0123456789ab"};
        if (pattern.starts_with("/v1/leases/") || kind == "leases")
            return {lease_of("acme"), lease_of("beta"), "lease-0123456789ab"};
        if (pattern.starts_with("/v1/tenants/") || kind == "tenants") return {"acme", "beta", "ghost"};
        if (pattern.starts_with("/v1/workloads/") || kind == "workloads") return {"acme-job", "beta-job", "ghost-job"};
        if (pattern.starts_with("/v1/nodes/") || kind == "nodes") return {"node-01", "", ""};
        return {kind == "policies" ? "fleet" : "special", "", ""};
    }

    void expect(const std::string& door, std::size_t who, char letter, const Answered& answered) {
        static const char* const roles[] = {"platform-admin", "security-admin", "auditor",
                                            "tenant-admin",   "tenant-user",    "break-glass"};
        const std::string about = fmt::format("{} as {}: {} {}", door, roles[who], answered.status, answered.body);
        switch (letter) {
            case 'y':
                EXPECT_NE(answered.status, 404) << about;
                [[fallthrough]];
            case 'a':
                EXPECT_NE(answered.status, 401) << about;
                EXPECT_NE(answered.status, 403) << about;
                EXPECT_LT(answered.status, 500) << about;
                break;
            case 'n':
                EXPECT_EQ(answered.status, 403) << about;
                break;
            case 'm':
                EXPECT_EQ(answered.status, 404) << about;
                break;
            default:
                FAIL() << about;
        }
    }

    void walk(const shell::Route& route, const std::string& kind) {
        const std::string door =
            kind.empty() ? std::string{route.operation} : fmt::format("{} {}", route.operation, kind);
        const auto row = expected.find(door);
        ASSERT_NE(row, expected.end()) << door << " (" << route.pattern << ") has no row in this test";
        for (std::size_t who = 0; who < people.size(); ++who) {
            // What would really be done is tried only by those who are turned away.
            const bool does_it =
                route.operation == "backup" || route.operation == "deleteToken" || route.operation == "rotateLogKey";
            if (does_it && row->second.own[who] == 'y') continue;
            const Names names = names_for(route, kind);
            expect(door, who, row->second.own[who], try_door(people[who], route, at(route, kind, names.own)));
            if (row->second.foreign.empty()) continue;
            Answered there = try_door(people[who], route, at(route, kind, names.foreign));
            Answered nowhere = try_door(people[who], route, at(route, kind, names.ghost));
            expect(door + " of another", who, row->second.foreign[who], there);
            if (row->second.foreign[who] != 'm') continue;
            EXPECT_EQ(there.status, nowhere.status) << door;
            for (std::size_t found; (found = nowhere.body.find(names.ghost)) != nowhere.body.npos;)
                nowhere.body.replace(found, names.ghost.size(), names.foreign);
            EXPECT_EQ(there.body, nowhere.body) << door << ": whether it exists shows";
        }
    }

    Fleet fleet;
    std::map<std::string, std::string> ended_;  // a lease of each that is over
    std::string server, admin, subject_;
    std::vector<std::string> people;
};

TEST_F(Doors, every_route_lets_in_whom_it_should_and_shows_nobody_what_is_not_theirs) {
    for (const shell::Route& route : shell::routes()) {
        if (by_object.contains(std::string{route.operation})) continue;
        if (route.pattern.find("{kind}") == route.pattern.npos) {
            walk(route, "");
            continue;
        }
        for (const shell::KindName& kind : shell::kind_table()) walk(route, std::string{kind.plural});
    }
}

TEST_F(Doors, a_stranger_gets_only_what_is_open_to_all) {
    const std::set<std::string> open{"health",  "readiness", "openapi", "enrol",    "logCheckpoint", "logKey",
                                     "logTile", "loginWith", "logKeys", "logProof", "logConsistency"};
    for (const shell::Route& route : shell::routes()) {
        auto client = Client::open({.server = server, .token = "", .ca_pem = slurp(fleet.data() / "keys/ca.crt")});
        ASSERT_TRUE(client);
        const auto reply = client->send({.method = std::string{word(route.method)},
                                         .target = at(route, "tenants", "acme"),
                                         .body = route.body == shell::Body::none ? "" : "{}"});
        ASSERT_TRUE(reply) << route.pattern;
        if (open.contains(std::string{route.operation}))
            EXPECT_NE(reply->status, 401) << route.pattern;
        else
            EXPECT_EQ(reply->status, 401) << route.pattern;
    }
}

TEST_F(Doors, breaking_glass_is_seen_by_the_tenant_before_anything_is_seen_of_it) {
    const std::string& tenants = people[3];
    ASSERT_EQ(ask(people[5], "GET", "/v1/workloads/acme-job/output").status, 200);
    const std::string records = ask(tenants, "GET", "/v1/log/records?limit=1000").body;
    EXPECT_THAT(records, testing::HasSubstr("token-minted"));
    EXPECT_THAT(records, testing::HasSubstr("ticket 7")) << "and why";
    EXPECT_THAT(records, testing::HasSubstr("tenant-entered"));
    EXPECT_THAT(records, testing::HasSubstr("/v1/workloads/acme-job/output"));
    EXPECT_THAT(records, testing::Not(testing::HasSubstr("beta")));
    EXPECT_THAT(ask(tenants, "GET", "/v1/tokens").body, testing::HasSubstr("break-glass"));
}

}  // namespace
}  // namespace bulkhead::cli
