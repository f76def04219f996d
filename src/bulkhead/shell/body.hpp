// What callers send, read strictly: objects as YAML or JSON, and the small bodies of the verbs.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/codec/decode.hpp"
#include "bulkhead/model/snapshot.hpp"
#include "bulkhead/shell/http.hpp"

namespace bulkhead::shell {

// Any number of objects, kind by kind. Everything that is wrong, each with its line.
std::expected<std::vector<AnyObject>, Problem> read_objects(const Request& request);

// Exactly one, of the kind and, unless empty, the name that the path says.
std::expected<AnyObject, Problem> read_one_object(const Request& request, std::string_view kind, std::string_view name);

std::string_view kind_of(const AnyObject& object);
const Metadata& metadata_of(const AnyObject& object);

// One small JSON object; an empty body is an empty object.
template <Described T>
Result<T> read_body(const Request& request) {
    return from_json<T>("the body", request.body.empty() ? std::string_view{"{}"} : std::string_view{request.body});
}

// Why an operator does what they do; the log keeps it.
struct WhyBody {
    std::string why;
    static constexpr void describe(auto&& field) {
        field("why", &WhyBody::why, "Why: the log keeps it.", Rule{.required = true, .format = Format::line});
    }
};
struct MaybeWhyBody {
    std::string why;
    static constexpr void describe(auto&& field) {
        field("why", &MaybeWhyBody::why, "Why: the log keeps it.", Rule{.format = Format::line});
    }
};
struct RepairBody {
    std::string device, why;
    static constexpr void describe(auto&& field) {
        field("device", &RepairBody::device, "gpu3, drive0, vf12 or host.",
              Rule{.required = true, .format = Format::line});
        field("why", &RepairBody::why, "What was looked at and done: the log keeps it.",
              Rule{.required = true, .format = Format::line});
    }
};
struct EnrolmentTokenBody {
    std::string node;
    std::optional<Duration> validFor;
    static constexpr void describe(auto&& field) {
        field("node", &EnrolmentTokenBody::node,
              "The name of the node it admits, or a beginning of names followed by '*'.",
              Rule{.required = true, .format = Format::line});
        field("validFor", &EnrolmentTokenBody::validFor, "How long it may be used. Default: 1h.",
              Rule{.min = 1, .max = Duration::days(30).ms});
    }
};
struct BreakGlassBody {
    std::string why;
    std::optional<Duration> validFor;
    static constexpr void describe(auto&& field) {
        field("why", &BreakGlassBody::why, "Why: the tenant reads it.", Rule{.required = true, .format = Format::line});
        field("validFor", &BreakGlassBody::validFor, "For how long. Default: 1h; at most 8h.",
              Rule{.min = 1, .max = Duration::hours(8).ms});
    }
};
struct ApiTokenBody {
    std::string name, role, subject, tenant;
    std::vector<std::string> scope;
    std::optional<Duration> validFor;
    static constexpr void describe(auto&& field) {
        field("name", &ApiTokenBody::name, "What it is called: ci-runner.", Rule{.format = Format::line});
        field("scope", &ApiTokenBody::scope, "Only these permissions of its role: submit. Default: all of them.",
              Rule{.format = Format::line});
        field("role", &ApiTokenBody::role, "platform-admin, security-admin, auditor, tenant-admin or tenant-user.",
              Rule{.required = true, .format = Format::line});
        field("subject", &ApiTokenBody::subject, "Who will hold it; the log names them.",
              Rule{.required = true, .format = Format::line});
        field("tenant", &ApiTokenBody::tenant, "The tenant it belongs to.", Rule{.format = Format::name});
        field("validFor", &ApiTokenBody::validFor, "How long it may be used. Default: 90d.",
              Rule{.min = 1, .max = Duration::days(366).ms});
    }
};

}  // namespace bulkhead::shell
