// Whatever a stranger sends: no crash, no hang, no throw; every request leads to one route or to a problem with words.
// The first line is method and target, the second the label selector, the rest the body.
#include <cstddef>
#include <cstdint>

#include "bulkhead/codec/document.hpp"
#include "bulkhead/shell/body.hpp"
#include "bulkhead/shell/catalog.hpp"
#include "bulkhead/shell/routes.hpp"

using namespace bulkhead;
using namespace bulkhead::shell;

namespace {

std::string_view take_line(std::string_view& text) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return line;
}

void check(const Response& response) {
    invariant(response.status >= 400 && response.status < 600, "a problem has a status");
    const ReadText read = read_documents("problem", response.body, {.bytes = 64u << 20, .scalar_bytes = 64u << 20});
    invariant(read.errors.empty() && read.documents.size() == 1, "a problem is JSON");
    invariant(read.documents[0].root->find("detail") != nullptr, "a problem has words");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::string_view text{reinterpret_cast<const char*>(data), size};
    std::string_view line = take_line(text);
    const std::string_view verb = line.substr(0, line.find(' '));
    line.remove_prefix(std::min(verb.size() + 1, line.size()));
    const auto target = parse_target(line);
    if (!target) {
        check(problem(target.error()));
    } else {
        const Method method = from_word<Method>(verb).value_or(Method::get);
        const auto found = match(method, *target);
        if (!found)
            check(found.error());
        else
            invariant(found->route < routes().size(), "a match is a route");
    }
    if (const auto selector = Selector::parse(take_line(text)); selector)
        static_cast<void>(selector->matches({{"team", "vision"}, {"env", "prod"}}));
    else
        check(problem(selector.error()));
    const Catalog catalog{7};
    static_cast<void>(catalog.parse_point(line));

    Request request;
    request.body = std::string{text};
    if (const auto objects = read_objects(request); !objects) check(problem(objects.error()));
    if (const auto object = read_one_object(request, "Tenant", "acme"); !object) check(problem(object.error()));
    if (const auto body = read_body<WhyBody>(request); !body) check(problem(body.error()));
    if (const auto body = read_body<RepairBody>(request); !body) check(problem(body.error()));
    if (const auto body = read_body<EnrolmentTokenBody>(request); !body) check(problem(body.error()));
    if (const auto body = read_body<ApiTokenBody>(request); !body) check(problem(body.error()));
    static_cast<void>(read_object(Row{Table::tenant, 1, request.body, false}));
    return 0;
}
