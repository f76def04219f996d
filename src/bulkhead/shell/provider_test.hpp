// An identity provider that misbehaves on demand, on loopback, over real TLS: what it serves, how fast and as what is
// up to the test. A real one is in testdata/oidc.
#pragma once

#include <fmt/core.h>

#include <atomic>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "bulkhead/auth/ca.hpp"
#include "bulkhead/auth/signer_test.hpp"
#include "bulkhead/shell/fixture_test.hpp"
#include "bulkhead/shell/http_server.hpp"
#include "bulkhead/shell/machine_clock.hpp"

namespace bulkhead::shell {

class FakeProvider final : public HttpDoor {
public:
    FakeProvider() {
        const Instant now = machine_clock();
        const auth::Validity validity{now + Duration{-3'600'000}, now + Duration::days(1)};
        const auto ca = auth::create_ca("a provider's authority", validity);
        invariant(ca.has_value(), "an authority can be made");
        const auto pair = auth::issue_server(*ca, {.dns = {"localhost"}, .addresses = {"127.0.0.1"}}, validity);
        invariant(pair.has_value(), "a certificate can be made");
        certificate_ = *pair;
        std::ofstream{ca_file()} << ca->certificate;
        start();
        describe();
    }
    ~FakeProvider() override { stop(); }

    void start() {
        auto started = HttpServer::start(
            {.port = port_, .certificate = certificate_.certificate, .key = certificate_.key}, *this, log_);
        invariant(started.has_value(), "a provider can be started");
        http_ = *std::move(started);
        port_ = http_->port();
    }
    void stop() {
        hold(false);
        http_.reset();
    }

    std::string ca_file() const { return folder_ / "provider-ca.crt"; }
    std::string issuer() const { return fmt::format("https://127.0.0.1:{}", port_); }
    std::string at(const std::string& path) const { return issuer() + path; }

    void answer(const std::string& path, Response response) {
        const std::lock_guard lock{mutex_};
        answers_[path] = std::move(response);
    }
    void serve_keys(const std::vector<std::string>& jwks) { answer("/keys", {.body = auth::key_set_of(jwks)}); }
    void describe(const std::string& more = {}) {
        answer("/.well-known/openid-configuration",
               {.body = fmt::format(R"({{"issuer":"{}","jwks_uri":"{}"{}}})", issuer(), at("/keys"), more)});
    }
    // Answers are held back until they are not any more.
    void hold(bool held) {
        held_ = held;
        std::vector<Respond> kept;
        {
            const std::lock_guard lock{mutex_};
            if (!held) kept.swap(kept_);
        }
        for (const Respond& respond : kept) respond({.status = 503, .body = "{}"});
    }

    int asked(const std::string& path) const {
        const std::lock_guard lock{mutex_};
        const auto found = asked_.find(path);
        return found == asked_.end() ? 0 : found->second;
    }
    std::vector<std::string> forms(const std::string& path) const {
        const std::lock_guard lock{mutex_};
        const auto found = forms_.find(path);
        return found == forms_.end() ? std::vector<std::string>{} : found->second;
    }
    // One answer after the other; the last one stays.
    void answer_in_turn(const std::string& path, std::vector<Response> answers) {
        const std::lock_guard lock{mutex_};
        turns_[path] = std::move(answers);
    }

    // Claims of a good token, as Keycloak shapes them, that begin now.
    std::string claims(const std::string& more = {}, std::int64_t lives_s = 300) const {
        const std::int64_t second = machine_clock().ms / 1000;
        return fmt::format(
            R"({{"iss":"{}","sub":"ada","aud":"bulkhead","typ":"Bearer","azp":"bulkhead-cli","iat":{},"exp":{},)"
            R"("preferred_username":"ada","groups":["/fleet/admins"],)"
            R"("resource_access":{{"bulkhead":{{"roles":["platform-admin"]}}}}{}}})",
            issuer(), second, second + lives_s, more);
    }

    std::expected<Admission, Response> admit(const Head&) override { return Admission{.body_max = 64 << 10}; }
    void handle(const Admission&, Request request, Respond respond) override {
        const std::lock_guard lock{mutex_};
        const std::string& path = request.head.target.path;
        ++asked_[path];
        if (!request.body.empty()) forms_[path].push_back(request.body);
        if (held_) return kept_.push_back(std::move(respond));
        if (auto turn = turns_.find(path); turn != turns_.end() && !turn->second.empty()) {
            Response next = turn->second.front();
            if (turn->second.size() > 1) turn->second.erase(turn->second.begin());
            return respond(std::move(next));
        }
        const auto found = answers_.find(path);
        respond(found == answers_.end() ? Response{.status = 404, .body = "{}"} : found->second);
    }
    void note(const Admission*, int, std::int64_t) override {}

private:
    ScratchFolder folder_;
    auth::KeyPair certificate_;
    mutable std::mutex mutex_;
    std::map<std::string, Response> answers_;
    std::map<std::string, std::vector<Response>> turns_;
    std::map<std::string, int> asked_;
    std::map<std::string, std::vector<std::string>> forms_;
    std::vector<Respond> kept_;
    std::atomic<bool> held_ = false;
    Log log_{-1};
    std::uint16_t port_ = 0;
    std::unique_ptr<HttpServer> http_;
};

}  // namespace bulkhead::shell
