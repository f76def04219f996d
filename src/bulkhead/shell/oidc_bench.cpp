// What it costs to know who is calling: by memory, and in full.
#include <benchmark/benchmark.h>

#include <chrono>
#include <thread>

#include "bulkhead/shell/machine_clock.hpp"
#include "bulkhead/shell/oidc.hpp"
#include "bulkhead/shell/provider_test.hpp"

namespace bulkhead::shell {
namespace {

// As long as a token of a person in a dozen groups is: about 1.3 kB.
std::string token_of_a_busy_person(const FakeProvider& provider, const auth::SigningKey& key,
                                   std::string_view algorithm) {
    std::string groups;
    for (int i = 0; i < 12; ++i) groups += fmt::format("{}\"/organisation/department-{}/team\"", i == 0 ? "" : ",", i);
    return key.token(algorithm, provider.claims(",\"memberships\":[" + groups + "]"));
}

void a_remembered_token(benchmark::State& state) {
    FakeProvider provider;
    provider.serve_keys({auth::rsa_signer().jwk()});
    Log log{-1};
    const auto oidc = Oidc::start({.issuer = provider.issuer(), .ca_file = provider.ca_file()}, log);
    invariant(oidc.has_value(), "it starts");
    const std::string token = token_of_a_busy_person(provider, auth::rsa_signer(), "RS256");
    while (!(*oidc)->identify(token, machine_clock())) std::this_thread::sleep_for(std::chrono::milliseconds{10});
    for (auto _ : state) {
        auto person = (*oidc)->identify(token, machine_clock());
        invariant(person.has_value(), "it is remembered");
        benchmark::DoNotOptimize(person);
    }
    state.counters["bytes"] = static_cast<double>(token.size());
}
BENCHMARK(a_remembered_token)->Unit(benchmark::kMicrosecond);

void in_full(benchmark::State& state, const auth::SigningKey& key, std::string_view algorithm) {
    FakeProvider provider;
    const auto keys = auth::read_key_set(auth::key_set_of({key.jwk()}));
    const std::string token = token_of_a_busy_person(provider, key, algorithm);
    const auth::Expectations expected{.issuer = provider.issuer(), .audience = "bulkhead"};
    for (auto _ : state) {
        const auto claims = auth::verify_token(token, *keys, expected, machine_clock());
        invariant(claims.has_value(), "it is good");
        auto person = auth::read_identity(*claims, "bulkhead");
        benchmark::DoNotOptimize(person);
    }
}
BENCHMARK_CAPTURE(in_full, rs256, auth::rsa_signer(), "RS256")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(in_full, es256, auth::ec_signer(), "ES256")->Unit(benchmark::kMicrosecond);

void a_forged_token(benchmark::State& state) {
    FakeProvider provider;
    const auto keys = auth::read_key_set(auth::key_set_of({auth::ec_signer().jwk()}));
    const std::string token =
        token_of_a_busy_person(provider, auth::SigningKey{auth::SigningKey::Kind::p256, "ec-1"}, "ES256");
    const auth::Expectations expected{.issuer = provider.issuer(), .audience = "bulkhead"};
    for (auto _ : state) benchmark::DoNotOptimize(auth::verify_token(token, *keys, expected, machine_clock()));
}
BENCHMARK(a_forged_token)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace bulkhead::shell
