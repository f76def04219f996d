// The table of routes as OpenAPI 3.1, with the schemas of the kinds from their one description.
#include <fmt/core.h>

#include <map>

#include "bulkhead/codec/json_writer.hpp"
#include "bulkhead/codec/schema.hpp"
#include "bulkhead/sched/blocking_text.hpp"
#include "bulkhead/shell/routes.hpp"

namespace bulkhead::shell {

namespace {

class Writer {
public:
    std::string whole() {
        json_.begin_object();
        json_.member("openapi", "3.1.0");
        json_.key("info");
        json_.begin_object();
        json_.member("title", "Bulkhead");
        json_.member("version", "v1alpha1");
        json_.member("description", "The control plane of a GPU fleet that several tenants share.");
        json_.end_object();
        json_.key("paths");
        json_.begin_object();
        for (const auto& [path, list] : by_path()) {
            json_.key(path);
            json_.begin_object();
            for (const Entry& entry : list) operation(entry);
            json_.end_object();
        }
        json_.end_object();
        components();
        json_.end_object();
        return json_.take();
    }

private:
    struct Entry {
        const Route* route = nullptr;
        const KindName* kind = nullptr;
    };

    // {kind} is written out: each kind has a schema of its own.
    static std::map<std::string, std::vector<Entry>> by_path() {
        std::map<std::string, std::vector<Entry>> out;
        for (const Route& route : routes()) {
            const std::size_t at = route.pattern.find("{kind}");
            if (at == std::string_view::npos) {
                out[std::string{route.pattern}].push_back({&route, nullptr});
                continue;
            }
            for (const KindName& kind : kind_table()) {
                std::string path{route.pattern};
                path.replace(at, 6, kind.plural);
                out[path].push_back({&route, &kind});
            }
        }
        return out;
    }

    static std::string_view verb(Method method) {
        switch (method) {
            case Method::get:
                return "get";
            case Method::head:
                return "head";
            case Method::post:
                return "post";
            case Method::put:
                return "put";
            case Method::erase:
                return "delete";
        }
        return "get";
    }

    void operation(const Entry& entry) {
        const Route& route = *entry.route;
        json_.key(verb(route.method));
        json_.begin_object();
        json_.member("operationId", entry.kind ? fmt::format("{}{}", route.operation, entry.kind->type)
                                               : std::string{route.operation});
        json_.member("summary", route.about);
        parameters(route);
        body(entry);
        if (route.access.reach == Access::Reach::anyone) {
            json_.key("security");
            json_.begin_array();
            json_.end_array();
        } else if (route.access.reach != Access::Reach::caller) {
            json_.member("x-bulkhead-permission", word(route.access.permission));
        }
        json_.key("responses");
        json_.begin_object();
        answer(entry);
        json_.key("default");
        json_.begin_object();
        json_.member("$ref", "#/components/responses/Problem");
        json_.end_object();
        json_.end_object();
        json_.end_object();
    }

    void parameter(std::string_view name, std::string_view in, std::string_view about, bool required) {
        json_.begin_object();
        json_.member("name", name);
        json_.member("in", in);
        if (!about.empty()) json_.member("description", about);
        json_.member("required", required);
        json_.key("schema");
        json_.begin_object();
        json_.member("type", "string");
        json_.end_object();
        json_.end_object();
    }

    void parameters(const Route& route) {
        json_.key("parameters");
        json_.begin_array();
        for (const std::string_view name : {"name", "id", "path"})
            if (route.pattern.find(fmt::format("{{{}}}", name)) != std::string_view::npos)
                parameter(name, "path", "", true);
        for (const Parameter& each : route.query) parameter(each.name, "query", each.about, false);
        if (route.method == Method::put)
            parameter("If-Match", "header", "The version that is replaced, or * for whichever it is.", true);
        if (route.operation == "delete") parameter("If-Match", "header", "Only while it is at this version.", false);
        if (route.operation == "get")
            parameter("If-None-Match", "header", "304 while it is still at this version.", false);
        json_.end_array();
    }

    void content(std::string_view type, std::string_view schema) {
        json_.key(type);
        json_.begin_object();
        json_.key("schema");
        json_.begin_object();
        if (!schema.empty()) json_.member("$ref", fmt::format("#/components/schemas/{}", schema));
        json_.end_object();
        json_.end_object();
    }

    void body(const Entry& entry) {
        if (entry.route->body == Body::none) return;
        json_.key("requestBody");
        json_.begin_object();
        json_.key("content");
        json_.begin_object();
        const std::string_view schema = entry.kind ? entry.kind->type : std::string_view{};
        content("application/json", schema);
        if (entry.route->body != Body::json) content("application/yaml", schema);
        json_.end_object();
        json_.end_object();
    }

    void answer(const Entry& entry) {
        const bool creates = entry.route->operation == "create";
        json_.key(creates ? "201" : "200");
        json_.begin_object();
        json_.member("description", entry.route->about);
        if (entry.kind && entry.route->operation != "list" && entry.route->operation != "delete") {
            json_.key("content");
            json_.begin_object();
            content("application/json", entry.kind->type);
            json_.end_object();
        } else if (const std::string_view schema = answer_schema(entry.route->operation); !schema.empty()) {
            json_.key("content");
            json_.begin_object();
            content("application/json", schema);
            json_.end_object();
        }
        json_.end_object();
    }

    // Of answers that are no objects of a kind.
    static std::string_view answer_schema(std::string_view operation) {
        if (operation == "explain") return "Explanation";
        return operation == "queue" ? "Queue" : std::string_view{};
    }

    void components() {
        json_.key("components");
        json_.begin_object();
        json_.key("securitySchemes");
        json_.begin_object();
        json_.key("token");
        json_.begin_object();
        json_.member("type", "http");
        json_.member("scheme", "bearer");
        json_.end_object();
        json_.end_object();
        json_.key("responses");
        json_.begin_object();
        json_.key("Problem");
        json_.begin_object();
        json_.member("description", "No, with the reason and what to try (RFC 9457).");
        json_.key("content");
        json_.begin_object();
        content("application/problem+json", "Problem");
        json_.end_object();
        json_.end_object();
        json_.end_object();
        json_.key("schemas");
        json_.begin_object();
        json_.key("Problem");
        json_.number(problem_schema);
        json_.key("InTheWay");
        json_.number(json_schema(shape_of<sched::InTheWay>(),
                                 {.id = "https://bulkhead.dev/schemas/in-the-way-v1.json",
                                  .title = "InTheWay",
                                  .about = "What is in the way of a workload that waits, and when it could start. A "
                                           "tenant reads it without the names and sizes of other tenants' work."}));
        json_.key("Explanation");
        json_.number(explanation_schema);
        json_.key("Queue");
        json_.number(queue_schema);
        for (const std::string_view kind : kind_names()) {
            json_.key(kind);
            json_.number(json_schema(kind));  // JSON already
        }
        json_.end_object();
        json_.end_object();
        json_.key("security");
        json_.begin_array();
        json_.begin_object();
        json_.key("token");
        json_.begin_array();
        json_.end_array();
        json_.end_object();
        json_.end_array();
    }

    static constexpr std::string_view problem_schema =
        R"({"type":"object","required":["type","title","status","code","detail"],"properties":{)"
        R"("type":{"type":"string"},"title":{"type":"string"},"status":{"type":"integer"},)"
        R"("code":{"type":"string","enum":["invalid","not-found","conflict","denied","exhausted","unavailable","timeout","corrupt"]},)"
        R"("detail":{"type":"string","description":"What is wrong: the object, the rule, the numbers."},)"
        R"("remedy":{"type":"string","description":"What to try."},)"
        R"("findings":{"type":"array","description":"Every place that must change.","items":{"type":"object","properties":{)"
        R"("kind":{"type":"string"},"name":{"type":"string"},"occurrence":{"type":"integer"},)"
        R"("pointer":{"type":"string","format":"json-pointer"},"line":{"type":"integer"},"column":{"type":"integer"},)"
        R"("what":{"type":"string"},"remedy":{"type":"string"}}}},)"
        R"("refusal":{"type":"object","description":"Of work that policy refuses: every objection, and the nearest request it would accept."}}})";

    static constexpr std::string_view explanation_schema =
        R"({"type":"object","required":["workload","tenant","phase","reasons"],"properties":{)"
        R"("workload":{"type":"string"},"tenant":{"type":"string"},"phase":{"type":"string"},)"
        R"("since":{"type":"string","format":"date-time"},"lease":{"type":"string"},)"
        R"("reasons":{"type":"array","items":{"type":"string"}},)"
        R"("expectedStart":{"type":"string","format":"date-time","description":"By a reservation, to the minute."},)"
        R"("inTheWay":{"$ref":"#/components/schemas/InTheWay"},)"
        R"("failure":{"type":"object","description":"The last failure that was the work's own."},)"
        R"("contract":{"type":"object","description":"The contract under which it may run."},)"
        R"("refusal":{"type":"object","description":"Why policy refuses it, and the nearest request it would accept."}}})";

    static constexpr std::string_view queue_schema =
        R"({"type":"object","required":["items"],"properties":{"items":{"type":"array","items":{"type":"object",)"
        R"("required":["place","workload","tenant","phase","priority","reasons"],"properties":{)"
        R"("place":{"type":"integer","description":"Among the waiting workloads that the caller may see, from 1."},)"
        R"("workload":{"type":"string"},"tenant":{"type":"string"},"phase":{"type":"string"},)"
        R"("priority":{"type":"integer"},"gpus":{"type":"string"},"since":{"type":"string","format":"date-time"},)"
        R"("reasons":{"type":"array","items":{"type":"string"}},)"
        R"("expectedStart":{"type":"string","format":"date-time"},)"
        R"("inTheWay":{"$ref":"#/components/schemas/InTheWay"}}}}}})";

    JsonWriter json_{JsonLayout::compact};
};

}  // namespace

std::string openapi() { return Writer{}.whole(); }

}  // namespace bulkhead::shell
