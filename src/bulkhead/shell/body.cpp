#include "bulkhead/shell/body.hpp"

#include <fmt/core.h>

#include "bulkhead/codec/load.hpp"

namespace bulkhead::shell {

namespace {

constexpr std::string_view the_body = "the body";

// Nothing said is fine: JSON can be told from YAML by its first byte.
bool is_readable(std::string_view content_type) {
    const std::string_view type = content_type.substr(0, content_type.find(';'));
    for (const std::string_view known : {"", "application/json", "application/yaml", "application/x-yaml", "text/yaml",
                                         "text/x-yaml", "text/plain", "application/octet-stream"})
        if (type == known) return true;
    return false;
}

}  // namespace

std::expected<std::vector<AnyObject>, Problem> read_objects(const Request& request) {
    if (!is_readable(request.head.content_type))
        return std::unexpected(Problem{
            .error = {Code::invalid, "a body of this type is not read here", "send JSON or YAML"}, .status = 415});
    const SourceText source{std::string{the_body}, request.body};
    Loaded loaded = load({&source, 1});
    if (!loaded.errors.empty()) {
        constexpr std::size_t most = 100;
        Problem problem{.error = {Code::invalid, loaded.errors.front().what, loaded.errors.front().remedy}};
        if (loaded.errors.size() > 1)
            problem.error.what += fmt::format(" (and {} more errors)", loaded.errors.size() - 1);
        for (const Diagnostic& each : loaded.errors) {
            if (problem.findings.size() == most) break;
            problem.findings.push_back(
                {.line = each.where.line, .column = each.where.column, .what = each.what, .remedy = each.remedy});
        }
        return std::unexpected(std::move(problem));
    }
    std::vector<AnyObject> objects;
    for_each_kind([&]<class T>() {
        for (T& object : loaded.snapshot.list<T>()) objects.emplace_back(std::move(object));
    });
    if (objects.empty())
        return std::unexpected(Problem{.error = {Code::invalid, "there is no object in the body",
                                                 "send at least one, beginning with apiVersion and kind"}});
    return objects;
}

std::expected<AnyObject, Problem> read_one_object(const Request& request, std::string_view kind,
                                                  std::string_view name) {
    auto objects = read_objects(request);
    if (!objects) return std::unexpected(std::move(objects.error()));
    if (objects->size() != 1)
        return std::unexpected(
            Problem{.error = {Code::invalid, fmt::format("{} objects where one belongs", objects->size()),
                              "POST /v1/apply takes several"}});
    AnyObject& object = objects->front();
    if (kind_of(object) != kind)
        return std::unexpected(
            Problem{.error = {Code::invalid, fmt::format("a {} does not belong here; a {} does", kind_of(object), kind),
                              "use the path of its own kind"}});
    if (!name.empty() && metadata_of(object).name != name)
        return std::unexpected(
            Problem{.error = {Code::invalid,
                              fmt::format("the path says {} and the object says {}", name, metadata_of(object).name),
                              "make them the same; objects are not renamed"}});
    return std::move(object);
}

std::string_view kind_of(const AnyObject& object) {
    return std::visit([]<class T>(const T&) { return T::kind; }, object);
}

const Metadata& metadata_of(const AnyObject& object) {
    return std::visit([](const auto& one) -> const Metadata& { return one.metadata; }, object);
}

}  // namespace bulkhead::shell
