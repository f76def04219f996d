// Every door in one table: what it is called, who may go through, what goes in. The same rows dispatch requests, refuse
// what is not in them, and are published as OpenAPI.
#pragma once

#include <cstdint>
#include <expected>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/auth/token.hpp"
#include "bulkhead/core/event.hpp"
#include "bulkhead/shell/http.hpp"
#include "bulkhead/shell/http_server.hpp"

namespace bulkhead::shell {

class Api;

// Who may go through a door. Whatever is not written here is denied.
struct Access {
    enum class Reach : std::uint8_t {
        nobody,
        anyone,  // also without a token
        fleet,   // who has the permission over the whole fleet
        own,     // who has it over the fleet or a tenant: what is behind the door shows each only what is theirs
        caller,  // whoever is known: it depends on the object, and the core decides
    };
    Reach reach = Reach::nobody;
    Permission permission{};
};
bool may(const Rights& rights, Access access);

struct Parameter {
    std::string_view name, about;
};

struct Call {
    const Request& request;
    const std::map<std::string, std::string, std::less<>>& parameters;  // of the path
    const auth::Caller& caller;

    const std::string& path(std::string_view name) const { return parameters.find(name)->second; }
    std::string_view query(std::string_view name) const {
        const auto found = request.head.target.query.find(name);
        return found == request.head.target.query.end() ? std::string_view{} : std::string_view{found->second};
    }
};

struct Range {
    std::int64_t least = 0, most = 0;
};
// A number in the query.
Result<std::int64_t> number_of(const Call& call, std::string_view name, std::int64_t otherwise, Range range);

enum class Body : std::uint8_t { none, object, objects, json };

struct Route {
    Method method{};
    std::string_view pattern;  // "/v1/{kind}/{name}": {kind} one of the six, {name} a DNS label, {path} any rest
    Access access;
    Lane lane = Lane::quick;
    Body body = Body::none;
    std::string_view operation;  // of OpenAPI
    std::string_view about;
    void (Api::*handler)(const Call&, const Respond&) = nullptr;
    std::span<const Parameter> query = {};
};
std::span<const Route> routes();

struct Match {
    std::size_t route = 0;
    std::map<std::string, std::string, std::less<>> parameters;
};
// 404 with the nearest path, 405 with what is allowed, 400 for a parameter that the route does not know.
std::expected<Match, Response> match(Method method, const Target& target);

// "nodes" and GpuNode.
struct KindName {
    ObjectKind kind{};
    std::string_view plural, singular, brief, type;
};
std::span<const KindName> kind_table();
const KindName& name_of(ObjectKind kind);
const KindName* kind_by_plural(std::string_view plural);  // null: there is none

std::string openapi();  // OpenAPI 3.1, JSON

}  // namespace bulkhead::shell
