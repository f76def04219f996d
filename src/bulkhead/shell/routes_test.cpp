#include "bulkhead/shell/routes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <set>

#include "bulkhead/shell/body.hpp"
#include "bulkhead/shell/fixture_test.hpp"
#include "bulkhead/shell/log.hpp"
#include "bulkhead/shell/rate.hpp"

namespace bulkhead::shell {
namespace {

using testing::HasSubstr;

Target target(std::string_view text) {
    auto parsed = parse_target(text);
    EXPECT_TRUE(parsed) << text;
    return parsed ? *parsed : Target{};
}

TEST(Target, is_taken_apart_and_decoded) {
    const Target parsed = target("/v1/tenants?labelSelector=team%3Dvision&limit=5&watch");
    EXPECT_THAT(parsed.segments, testing::ElementsAre("v1", "tenants"));
    EXPECT_EQ(parsed.query.find("labelSelector")->second, "team=vision");
    EXPECT_EQ(parsed.query.find("watch")->second, "");
    EXPECT_EQ(target("/").segments.size(), 0u);
}

TEST(Target, refuses_what_could_mean_something_else_to_someone_else) {
    for (const std::string bad :
         {"", "v1", "http://x/v1", "/v1/../secret", "/v1/./x", "/v1//x", "/v1/", "/v1/a%2Fb", "/v1/%2e%2e/x", "/v1/%zz",
          "/v1/%0a", "/v1/%00", "/v1/%ff", "/v1/%4", "/v1?a=1&a=2", "/v1?a=%0d%0a", "/v1?x=%c0%af", "*"})
        EXPECT_FALSE(parse_target(bad)) << bad;
    EXPECT_FALSE(parse_target("/" + std::string(20'000, 'a')));
    std::string deep;
    for (int i = 0; i < 40; ++i) deep += "/a";
    EXPECT_FALSE(parse_target(deep));
}

TEST(Routes, every_route_has_a_handler_a_rule_and_a_sentence) {
    std::set<std::pair<Method, std::string_view>> seen;
    for (const Route& route : routes()) {
        EXPECT_NE(route.handler, nullptr) << route.pattern;
        EXPECT_FALSE(route.about.empty()) << route.pattern;
        EXPECT_FALSE(route.operation.empty()) << route.pattern;
        EXPECT_TRUE(seen.insert({route.method, route.pattern}).second) << route.pattern << " stands twice";
        EXPECT_NE(route.access.reach, Access::Reach::nobody) << route.pattern << " has no rule";
        if (route.method != Method::get && route.operation != "enrol") {
            EXPECT_NE(route.access.reach, Access::Reach::anyone) << route.pattern << " changes something";
        }
    }
}

TEST(Routes, a_row_that_was_written_without_a_rule_lets_nobody_through) {
    EXPECT_FALSE(may(Rights::everything(), Access{}));
}

TEST(Routes, paths_lead_where_they_should) {
    struct Row {
        Method method;
        std::string_view path, operation;
    };
    for (const Row& row : {Row{Method::get, "/healthz", "health"}, Row{Method::get, "/v1/nodes", "list"},
                           Row{Method::head, "/v1/nodes", "list"}, Row{Method::get, "/v1/nodes/hgx-01", "get"},
                           Row{Method::post, "/v1/nodes/hgx-01/drain", "drain"},
                           Row{Method::get, "/v1/workloads/train/explain", "explain"},
                           Row{Method::erase, "/v1/tokens/0123456789abcdef", "deleteToken"},
                           Row{Method::get, "/v1/log/tile/entries/x001/067", "logTile"},
                           Row{Method::put, "/v1/policies/fleet", "replace"}}) {
        const auto found = match(row.method, target(row.path));
        ASSERT_TRUE(found) << row.path;
        EXPECT_EQ(routes()[found->route].operation, row.operation) << row.path;
    }
}

TEST(Routes, a_path_that_leads_nowhere_says_the_nearest) {
    struct Row {
        Method method;
        std::string_view path;
        int status;
        std::string_view says;
    };
    for (const Row& row :
         {Row{Method::get, "/v1/node", 404, "/v1/nodes"}, Row{Method::get, "/v1/leeses/x", 404, "/v1/leases"},
          Row{Method::get, "/healtz", 404, "/healthz"}, Row{Method::get, "/v1/nodes/UPPER", 404, ""},
          Row{Method::get, "/v1/nodes/a/b/c", 404, ""}, Row{Method::get, "/", 404, "openapi"},
          Row{Method::put, "/v1/nodes", 405, "GET or HEAD or POST"}, Row{Method::post, "/healthz", 405, "GET"},
          Row{Method::get, "/v1/nodes?limitt=3", 400, "limit"}}) {
        const auto found = match(row.method, target(row.path));
        ASSERT_FALSE(found) << row.path;
        EXPECT_EQ(found.error().status, row.status) << row.path;
        EXPECT_THAT(found.error().body, HasSubstr(std::string{row.says})) << row.path;
        EXPECT_EQ(found.error().content_type, "application/problem+json");
    }
}

TEST(OpenApi, is_json_and_has_every_route_and_kind) {
    const auto api = boost::json::parse(openapi()).as_object();
    EXPECT_EQ(api.at("openapi").as_string(), "3.1.0");
    const auto& paths = api.at("paths").as_object();
    EXPECT_TRUE(paths.contains("/v1/nodes/{name}/drain"));
    EXPECT_TRUE(paths.contains("/v1/leases/{name}"));
    std::set<std::string> operations;
    for (const auto& path : paths)
        for (const auto& operation : path.value().as_object())
            EXPECT_TRUE(operations.insert(std::string{operation.value().at("operationId").as_string()}).second)
                << operation.value().at("operationId");
    for (const KindName& kind : kind_table())
        EXPECT_TRUE(api.at("components").at("schemas").as_object().contains(kind.type)) << kind.type;
    const auto& schemas = api.at("components").at("schemas").as_object();
    for (const char* member : {"nodes", "mustEnd", "reservedFor", "expectedStart", "expectedFrom", "expectedSays"})
        EXPECT_TRUE(schemas.at("InTheWay").at("properties").as_object().contains(member)) << member;
    EXPECT_EQ(schemas.at("Explanation").at("properties").at("inTheWay").at("$ref").as_string(),
              "#/components/schemas/InTheWay");
    EXPECT_EQ(paths.at("/v1/queue")
                  .at("get")
                  .at("responses")
                  .at("200")
                  .at("content")
                  .at("application/json")
                  .at("schema")
                  .at("$ref")
                  .as_string(),
              "#/components/schemas/Queue");
    EXPECT_TRUE(paths.at("/healthz").at("get").as_object().contains("security")) << "open to anyone";
    EXPECT_FALSE(paths.at("/metrics").at("get").as_object().contains("security"));
}

TEST(Problem, says_what_and_what_to_try_for_every_code) {
    for (int i = 0; i < 8; ++i) {
        const auto code = static_cast<Code>(i);
        const Response response = problem(Error{code, "what \"is\" wrong\n", "do this"});
        const auto json = boost::json::parse(response.body).as_object();
        EXPECT_EQ(json.at("status").as_int64(), response.status);
        EXPECT_EQ(json.at("detail").as_string(), "what \"is\" wrong\n");
        EXPECT_EQ(json.at("remedy").as_string(), "do this");
        EXPECT_EQ(code_from(std::string{json.at("code").as_string()}), code);
        EXPECT_GE(response.status, 400);
    }
    EXPECT_FALSE(code_from("nonsense"));
}

Request body(std::string text, std::string type = "") {
    Request request;
    request.body = std::move(text);
    request.head.content_type = std::move(type);
    return request;
}

TEST(Body, takes_yaml_and_json_and_names_every_mistake) {
    const auto both = read_objects(body(policy_yaml + "---\n" + tenant_yaml));
    ASSERT_TRUE(both);
    EXPECT_EQ(both->size(), 2u);
    EXPECT_TRUE(read_objects(body(tenant_json("acme"), "application/json; charset=utf-8")));
    EXPECT_EQ(read_objects(body(tenant_yaml, "image/png")).error().status, 415);
    const auto wrong = read_objects(body("kind: Tenant\nspec: {klass: batch}\n"));
    ASSERT_FALSE(wrong);
    EXPECT_GE(wrong.error().findings.size(), 2u);
    EXPECT_GT(wrong.error().findings[0].line, 0);
    for (const char* bad : {"", "{", "[]", "null", "---\n---\n", "\xff\xfe", "{\"kind\":\"Tenant\""})
        EXPECT_FALSE(read_objects(body(bad))) << bad;
}

TEST(Body, holds_an_object_to_its_path) {
    EXPECT_TRUE(read_one_object(body(tenant_yaml), "Tenant", "acme"));
    EXPECT_FALSE(read_one_object(body(tenant_yaml), "Tenant", "beta"));
    EXPECT_FALSE(read_one_object(body(tenant_yaml), "GpuNode", ""));
    EXPECT_FALSE(read_one_object(body(tenant_yaml + "---\n" + policy_yaml), "Tenant", ""));
}

TEST(Rate, lets_a_burst_through_and_then_a_steady_stream) {
    RateLimiter rate{{.per_second = 10, .burst = 5}};
    auto now = RateLimiter::Clock::now();
    for (int i = 0; i < 5; ++i) EXPECT_FALSE(rate.ask("a", now)) << i;
    EXPECT_EQ(rate.ask("a", now), 1);
    EXPECT_FALSE(rate.ask("b", now)) << "each has a bucket of its own";
    now += std::chrono::milliseconds{100};
    EXPECT_FALSE(rate.ask("a", now));
    EXPECT_TRUE(rate.ask("a", now));
    now += std::chrono::seconds{40};
    EXPECT_FALSE(rate.ask("c", now));
    EXPECT_EQ(rate.keys(), 1u) << "whoever fell silent is forgotten";
}

TEST(Log, no_value_can_pass_for_a_field_or_a_line) {
    EXPECT_EQ(
        Log::line(Level::warning, "commit failed", {{"what", "disk \"full\"\nlevel=info"}, {"n", 3}, {"ok", "a-b.c"}}),
        R"(level=warning event="commit failed" what="disk \"full\"\nlevel=info" n=3 ok=a-b.c)");
    EXPECT_EQ(Log::line(Level::info, "x", {{"empty", ""}, {"bell", "\a"}}),
              R"(level=info event=x empty="" bell="\x07")");
}

}  // namespace
}  // namespace bulkhead::shell
