// A whole control plane on loopback for tests: real core, real store, real TLS.
#pragma once

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <memory>
#include <optional>
#include <string>

#include "bulkhead/shell/fixture_test.hpp"
#include "bulkhead/shell/https_probe_test.hpp"
#include "bulkhead/shell/server.hpp"

namespace bulkhead::shell {

namespace json = boost::json;

struct Plane {
    explicit Plane(const ScratchFolder& folder, ServerOptions options = {}, int log_to = -1) : log{log_to} {
        options.data = folder / "data";
        options.port = options.agent_port = 0;
        options.sync = false;
        options.tick = Duration{100};
        options.requests_per_second = 10'000;
        auto started = Server::start(std::move(options), log);
        if (!started) {
            error = started.error();
            return;
        }
        server = *std::move(started);
        ca = slurp(server->ca_file());
        token = slurp(server->token_file());
        token.pop_back();
        probe = std::make_unique<Probe>(server->port(), ca);
    }
    ~Plane() {
        probe.reset();
        server.reset();
    }
    std::string bearer() const { return "Authorization: Bearer " + token + "\r\n"; }
    Heard ask(const std::string& method, const std::string& target, const std::string& body = {},
              const std::string& more = {}) {
        auto heard = probe->ask(method, target, body, bearer() + more);
        if (!heard) {  // the server hung up after a refusal, as it may
            probe = std::make_unique<Probe>(server->port(), ca);
            heard = probe->ask(method, target, body, bearer() + more);
        }
        EXPECT_TRUE(heard) << method << ' ' << target;
        return heard.value_or(Heard{});
    }
    // As somebody else, on a connection of their own.
    Heard ask_as(const std::string& who, const std::string& method, const std::string& target,
                 const std::string& body = {}, const std::string& more = {}) {
        Probe own{server->port(), ca};
        const auto heard = own.ask(method, target, body, "Authorization: Bearer " + who + "\r\n" + more);
        EXPECT_TRUE(heard) << method << ' ' << target;
        return heard.value_or(Heard{});
    }
    std::string token_in(const std::string& file) const {
        const std::string admin = server->token_file();
        std::string text = slurp(admin.substr(0, admin.rfind('/') + 1) + file);
        text.pop_back();
        return text;
    }
    std::string security() const { return token_in("security.token"); }
    std::string auditor() const { return token_in("auditor.token"); }
    // A token of a tenant's role, made by the administrator.
    std::string token_of(const std::string& role, const std::string& tenant, const std::string& more = {}) {
        const Heard made =
            ask("POST", "/v1/tokens",
                R"({"role":")" + role + R"(","subject":"someone","tenant":")" + tenant + '"' + more + '}');
        EXPECT_EQ(made.status, 201) << made.body;
        return made.status == 201 ? std::string{json::parse(made.body).at("token").as_string()} : std::string{};
    }
    json::object get(const std::string& target) {
        const Heard heard = ask("GET", target);
        EXPECT_EQ(heard.status, 200) << target << '\n' << heard.body;
        return heard.status == 200 ? json::parse(heard.body).as_object() : json::object{};
    }

    Log log;
    std::unique_ptr<Server> server;
    std::string ca, token;
    std::unique_ptr<Probe> probe;
    std::optional<Error> error;
};

}  // namespace bulkhead::shell
