// The items of the token checklist that need a network: keys that change, providers that fail, storms, and a whole
// server that is shown tokens. Numbers are those of the list in docs/decisions/0025.
#include "bulkhead/shell/oidc.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "bulkhead/auth/signer_test.hpp"
#include "bulkhead/shell/plane_test.hpp"
#include "bulkhead/shell/provider_test.hpp"

namespace bulkhead::shell {
namespace {

using auth::SigningKey;
using testing::HasSubstr;
using testing::Not;

bool comes_true(const std::function<bool()>& holds) {
    for (int i = 0; i < 1000; ++i) {
        if (holds()) return true;
        std::this_thread::sleep_for(std::chrono::milliseconds{10});
    }
    return false;
}

OidcOptions impatient(const FakeProvider& provider) {
    return {.issuer = provider.issuer(),
            .ca_file = provider.ca_file(),
            .refresh = Duration{3'600'000},
            .cool_down = Duration{0},
            .retry = Duration{20},
            .fetch_within = Duration{500}};
}

struct Believer {
    explicit Believer(const FakeProvider& provider) : Believer{impatient(provider)} {}
    explicit Believer(const OidcOptions& options) {
        auto started = Oidc::start(options, log);
        invariant(started.has_value(), started ? "" : started.error().what);
        oidc = *std::move(started);
    }
    // As a connection does: again, as long as keys are on their way; but not for more than those of the next two
    // fetches.
    std::expected<Oidc::Person, Oidc::Refusal> patiently(const std::string& token) const {
        const std::int64_t before = oidc->figures().fetches;
        for (;;) {
            auto person = oidc->identify(token, machine_clock());
            if (person || !person.error().soon || oidc->figures().fetches > before + 2) return person;
            std::this_thread::sleep_for(std::chrono::milliseconds{1});
        }
    }
    bool takes(const std::string& token) const { return patiently(token).has_value(); }

    Log log{-1};
    std::unique_ptr<Oidc> oidc;
};

TEST(Oidc, a_token_is_verified_once_and_then_remembered) {
    FakeProvider provider;
    provider.serve_keys({auth::ec_signer().jwk()});
    const Believer here{provider};
    const std::string token = auth::ec_signer().token("ES256", provider.claims());
    const auto first = here.patiently(token);
    ASSERT_TRUE(first) << first.error().error.what;
    EXPECT_EQ((*first)->subject, "ada");
    EXPECT_EQ((*first)->token_id.size(), 5u + 16u);
    EXPECT_THAT(token, Not(HasSubstr((*first)->token_id.substr(5))));
    EXPECT_EQ(here.patiently(token).value(), *first) << "the very same";
    EXPECT_EQ(here.oidc->figures().verified, 1);
    EXPECT_EQ(here.oidc->figures().remembered, 1);
}

TEST(Oidc, memory_is_bounded_and_the_latest_stay) {
    FakeProvider provider;
    provider.serve_keys({auth::ec_signer().jwk()});
    OidcOptions options = impatient(provider);
    options.remembered_max = 2;
    const Believer here{options};
    const auto token = [&](int number) {
        return auth::ec_signer().token("ES256", provider.claims(fmt::format(R"(,"jti":"{}")", number)));
    };
    const std::string one = token(1), two = token(2), three = token(3);
    for (const std::string& each : {one, two, one, three, one}) EXPECT_TRUE(here.takes(each));
    EXPECT_EQ(here.oidc->figures().verified, 3);
    EXPECT_TRUE(here.takes(two));
    EXPECT_EQ(here.oidc->figures().verified, 4) << "it had made room";
}

TEST(Oidc, settings_that_cannot_be_meant_stop_the_start) {
    Log log{-1};
    for (const std::string issuer :
         {"http://id.example", "id.example", "https://", "https://id.example/?a=b", "https://u:p@id.example",
          "https://id.example/#x", "https://id.example:0", "https://id example"})
        EXPECT_FALSE(Oidc::start({.issuer = issuer}, log)) << issuer;
    EXPECT_FALSE(Oidc::start({.issuer = "https://id.example", .audience = ""}, log));
    EXPECT_FALSE(Oidc::start({.issuer = "https://id.example", .ca_file = "/no/such/file"}, log));
}

TEST(Oidc, a_provider_that_calls_itself_otherwise_or_that_nobody_vouches_for_is_not_believed) {
    FakeProvider provider;
    provider.serve_keys({auth::ec_signer().jwk()});
    OidcOptions slash = impatient(provider);
    slash.issuer += "/";
    const Believer with_slash{slash};
    EXPECT_TRUE(comes_true([&] { return with_slash.oidc->figures().failures > 0; }));
    EXPECT_EQ(with_slash.oidc->figures().keys, 0u);
    OidcOptions unvouched = impatient(provider);
    unvouched.ca_file.clear();
    const Believer without{unvouched};
    const int before = provider.asked("/keys");
    EXPECT_TRUE(comes_true([&] { return without.oidc->figures().failures > 0; }));
    EXPECT_EQ(provider.asked("/keys"), before);
    OidcOptions by_name = impatient(provider);
    by_name.issuer = "https://localhost.:" + by_name.issuer.substr(by_name.issuer.rfind(':') + 1);
    const Believer other_name{by_name};
    EXPECT_TRUE(comes_true([&] { return other_name.oidc->figures().failures > 0; }))
        << "not the name of its certificate";
}

TEST(TokenChecklist, item_04_no_address_in_a_token_is_ever_asked) {
    FakeProvider provider;
    provider.serve_keys({auth::ec_signer().jwk()});
    const SigningKey thief{SigningKey::Kind::p256, "ec-1"};
    provider.answer("/thief", {.body = auth::key_set_of({thief.jwk()})});
    const Believer here{provider};
    for (const std::string field : {"jku", "x5u"}) {
        const std::string header =
            fmt::format(R"({{"alg":"ES256","typ":"JWT","kid":"ec-1","{}":"{}"}})", field, provider.at("/thief"));
        EXPECT_FALSE(here.takes(thief.token_of("ES256", header, provider.claims())));
    }
    EXPECT_EQ(provider.asked("/thief"), 0);
}

TEST(TokenChecklist, item_18_keys_rotate_under_way) {
    FakeProvider provider;
    const SigningKey old_key{SigningKey::Kind::p256, "old"}, new_key{SigningKey::Kind::p256, "new"};
    provider.serve_keys({old_key.jwk()});
    const Believer here{provider};
    const std::string before = old_key.token("ES256", provider.claims());
    EXPECT_TRUE(here.takes(before));
    provider.serve_keys({new_key.jwk(), old_key.jwk()});
    EXPECT_TRUE(here.takes(new_key.token("ES256", provider.claims()))) << "a new key is fetched at once";
    EXPECT_TRUE(here.takes(before)) << "the old one still verifies";
    EXPECT_TRUE(here.takes(old_key.token("ES256", provider.claims(R"(,"jti":"2")"))));
    // Withdrawn: gone with the next fetch, also for tokens that are remembered.
    provider.serve_keys({new_key.jwk()});
    EXPECT_FALSE(here.takes(SigningKey{SigningKey::Kind::p256, "unknown"}.token("ES256", provider.claims())));
    EXPECT_FALSE(here.takes(before));
    EXPECT_TRUE(here.takes(new_key.token("ES256", provider.claims())));
}

TEST(TokenChecklist, item_18_a_withdrawn_key_is_noticed_without_being_asked_for) {
    FakeProvider provider;
    const SigningKey old_key{SigningKey::Kind::p256, "old"}, new_key{SigningKey::Kind::p256, "new"};
    provider.serve_keys({old_key.jwk()});
    OidcOptions options = impatient(provider);
    options.refresh = Duration{20};
    const Believer here{options};
    const std::string token = old_key.token("ES256", provider.claims());
    EXPECT_TRUE(here.takes(token));
    provider.serve_keys({new_key.jwk()});
    EXPECT_TRUE(comes_true([&] { return !here.takes(token); }));
}

TEST(TokenChecklist, item_19_a_failing_provider_leaves_the_last_good_keys_and_then_nobody_is_believed) {
    FakeProvider provider;
    const std::string token = auth::ec_signer().token("ES256", provider.claims());
    const auto good = [&] {
        provider.serve_keys({auth::ec_signer().jwk()}), provider.describe(), provider.hold(false);
    };
    const std::string keys = auth::key_set_of({auth::ec_signer().jwk()});
    const std::pair<std::string, std::function<void()>> faults[] = {
        {"500", [&] { provider.answer("/keys", {.status = 500, .body = keys}); }},
        {"large", [&] { provider.answer("/keys", {.body = keys + std::string(10 << 20, ' ')}); }},
        {"html", [&] { provider.answer("/keys", {.content_type = "text/html", .body = keys}); }},
        {"to http",
         [&] { provider.answer("/keys", {.status = 302, .headers = {{"Location", "http://127.0.0.1/keys"}}}); }},
        {"to https",
         [&] { provider.answer("/keys", {.status = 302, .headers = {{"Location", provider.at("/elsewhere")}}}); }},
        {"no set", [&] { provider.answer("/keys", {.body = R"({"keys":[]})"}); }},
        {"keys at http",
         [&] {
             provider.answer(
                 "/.well-known/openid-configuration",
                 {.body = fmt::format(R"({{"issuer":"{}","jwks_uri":"http://127.0.0.1/keys"}})", provider.issuer())});
         }},
        {"slow", [&] { provider.hold(true); }},
        {"down", [&] { provider.stop(); }},
    };
    for (const auto& [name, fault] : faults) {
        SCOPED_TRACE(name);
        good();
        provider.answer("/elsewhere", {.body = keys});
        OidcOptions options = impatient(provider);
        options.refresh = Duration{20};
        const Believer lasting{options};
        EXPECT_TRUE(lasting.takes(token));
        options.keys_last = Duration{300};
        const Believer strict{options};
        EXPECT_TRUE(strict.takes(token));
        fault();
        const auto failures = lasting.oidc->figures().failures;
        EXPECT_TRUE(comes_true([&] { return lasting.oidc->figures().failures > failures; }));
        EXPECT_TRUE(lasting.takes(token)) << "the last good keys";
        EXPECT_TRUE(comes_true([&] { return !strict.oidc->identify(token, machine_clock()); })) << "no longer";
        EXPECT_EQ(strict.oidc->figures().keys, 0u);
        const auto refused = strict.oidc->identify(token, machine_clock());
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().error.code, Code::unavailable) << "and that is said";
        // Whoever starts now has nothing to believe in.
        const Believer fresh{options};
        EXPECT_TRUE(comes_true([&] { return fresh.oidc->figures().failures > 0; }));
        EXPECT_FALSE(fresh.oidc->identify(token, machine_clock()));
        EXPECT_EQ(provider.asked("/elsewhere"), 0) << "nobody is sent anywhere";
    }
    provider.start();
    good();
    const Believer again{provider};
    EXPECT_TRUE(again.takes(token)) << "and the provider comes back";
}

TEST(TokenChecklist, item_20_ten_thousand_unknown_keys_are_one_fetch) {
    FakeProvider provider;
    provider.serve_keys({auth::ec_signer().jwk()});
    OidcOptions options = impatient(provider);
    options.cool_down = Duration{3'600'000};
    options.refresh = Duration{3'600'000};
    const Believer here{options};
    EXPECT_TRUE(here.takes(auth::ec_signer().token("ES256", provider.claims())));
    const int before = provider.asked("/keys");
    std::vector<std::jthread> callers;
    for (int t = 0; t < 4; ++t)
        callers.emplace_back([&, t] {
            for (int i = 0; i < 2'500; ++i) {
                const std::string header =
                    auth::url_text(fmt::format(R"({{"alg":"ES256","typ":"JWT","kid":"k-{}-{}"}})", t, i));
                EXPECT_FALSE(here.oidc->identify(header + ".e30.AAAA", machine_clock()));
            }
        });
    callers.clear();
    EXPECT_LE(provider.asked("/keys") - before, 1);
    options.cool_down = Duration{0};
    const Believer eager{options};
    EXPECT_TRUE(eager.takes(auth::ec_signer().token("ES256", provider.claims())));
    const int eager_before = provider.asked("/keys");
    EXPECT_FALSE(eager.takes(SigningKey{SigningKey::Kind::p256, "new"}.token("ES256", provider.claims())));
    EXPECT_GT(provider.asked("/keys"), eager_before) << "it does ask, when it may";
}

TEST(TokenChecklist, item_23_what_is_remembered_ends_with_the_token) {
    FakeProvider provider;
    provider.serve_keys({auth::ec_signer().jwk()});
    const Believer here{provider};
    const std::string token = auth::ec_signer().token("ES256", provider.claims({}, 10));
    const auto person = here.patiently(token);
    ASSERT_TRUE(person);
    const Instant end = (*person)->expires;
    EXPECT_TRUE(here.oidc->identify(token, {end.ms - 1}));
    EXPECT_FALSE(here.oidc->identify(token, end)) << "though it was remembered";
    EXPECT_FALSE(here.oidc->identify(token, {end.ms + 1}));
}

// A server that believes the provider, whose policy makes its admins ours, and what it writes down.
struct Front {
    explicit Front(const FakeProvider& provider)
        : plane{folder,
                {.oidc = impatient(provider)},
                ::open((folder / "log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)} {
        invariant(!plane.error, plane.error ? plane.error->what : "");
        EXPECT_EQ(plane.ask("POST", "/v1/apply", policy_yaml).status, 200);
        bind("{role: platform-admin, group: /fleet/admins}");
    }
    // To change who is who is a security-admin's.
    void bind(const std::string& binding) {
        const Heard bound =
            plane.ask_as(plane.security(), "POST", "/v1/apply", policy_yaml + "  bindings: [" + binding + "]\n");
        EXPECT_EQ(bound.status, 200) << bound.body;
    }
    Heard ask(const std::string& target, const std::string& token = {}) const {
        Probe probe{plane.server->port(), plane.ca};
        auto heard = probe.ask("GET", target, {}, token.empty() ? "" : "Authorization: Bearer " + token + "\r\n");
        EXPECT_TRUE(heard) << target;
        return heard.value_or(Heard{});
    }
    ScratchFolder folder;
    Plane plane;
};

TEST(OidcServer, tells_whom_to_log_in_with_and_lets_a_person_in) {
    FakeProvider provider;
    provider.serve_keys({auth::ec_signer().jwk()});
    Front front{provider};
    const Heard with = front.ask("/v1/login");
    EXPECT_EQ(with.status, 200);
    EXPECT_THAT(with.body, HasSubstr(fmt::format(R"("issuer":"{}")", provider.issuer())));
    EXPECT_THAT(with.body, HasSubstr(R"("clientId":"bulkhead-cli")"));
    const Heard in = front.ask("/v1/nodes", auth::ec_signer().token("ES256", provider.claims()));
    EXPECT_EQ(in.status, 200) << in.body << slurp(front.folder / "log");
    EXPECT_EQ(front.ask("/v1/nodes").status, 401);
    const SigningKey thief{SigningKey::Kind::p256, "ec-1"};
    const Heard out = front.ask("/v1/nodes", thief.token("ES256", provider.claims()));
    EXPECT_EQ(out.status, 401);
    EXPECT_THAT(out.body, Not(HasSubstr("signature"))) << "a stranger learns nothing";
}

TEST(TokenChecklist, item_22_a_binding_is_met_to_the_letter) {
    FakeProvider provider;
    provider.serve_keys({auth::ec_signer().jwk()});
    Front front{provider};
    const auto of_group = [&](const std::string& group) {
        std::string claims = provider.claims();
        const std::string usual = "/fleet/admins";
        claims.replace(claims.find(usual), usual.size(), group);
        return front.ask("/v1/nodes", auth::ec_signer().token("ES256", claims)).status;
    };
    EXPECT_EQ(of_group("/fleet/admins"), 200);
    for (const std::string other :
         {"/fleet", "/fleet/admins-evil", "/fleet/admins/", "/fleet/admins/more", "/Fleet/admins", "fleet/admins",
          "/fleet/\xd0\xb0"
          "dmins",
          "/fleet/admins ", "/fleet/admins\\u0000"})
        EXPECT_EQ(of_group(other), 403) << other;
}

TEST(TokenChecklist, item_23_a_binding_that_goes_takes_its_rights_along) {
    FakeProvider provider;
    provider.serve_keys({auth::ec_signer().jwk()});
    Front front{provider};
    const std::string token = auth::ec_signer().token("ES256", provider.claims());
    EXPECT_EQ(front.ask("/v1/nodes", token).status, 200);
    Probe watcher{front.plane.server->port(), front.plane.ca};
    ASSERT_TRUE(watcher.send("GET /v1/nodes?watch=true HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + token +
                             "\r\n\r\n"));
    ASSERT_TRUE(watcher.read_until("200 OK"));
    front.bind("{role: platform-admin, group: /others}");
    EXPECT_TRUE(watcher.read_until("event: denied")) << "also of what is still open";
    EXPECT_EQ(front.ask("/v1/nodes", token).status, 403) << "though the token is good, and was remembered";
    front.bind("{role: auditor, group: /fleet/admins}");
    EXPECT_EQ(front.ask("/v1/nodes", token).status, 200);
    const Heard who = front.ask("/v1/whoami", token);
    EXPECT_THAT(who.body, HasSubstr("\"role\":\"auditor\""));
    EXPECT_THAT(who.body, HasSubstr(provider.issuer() + "#ada")) << "a subject is its issuer's";
}

TEST(OidcServer, waits_for_a_key_that_is_on_its_way) {
    FakeProvider provider;
    const SigningKey new_key{SigningKey::Kind::p256, "new"};
    provider.serve_keys({auth::ec_signer().jwk()});
    Front front{provider};
    EXPECT_EQ(front.ask("/v1/nodes", auth::ec_signer().token("ES256", provider.claims())).status, 200);
    provider.serve_keys({new_key.jwk()});
    EXPECT_EQ(front.ask("/v1/nodes", new_key.token("ES256", provider.claims())).status, 200) << "one request, no retry";
}

TEST(OidcServer, goes_on_without_its_provider_for_whoever_has_a_token_of_the_fleet) {
    FakeProvider provider;
    provider.stop();
    Front front{provider};
    EXPECT_EQ(front.ask("/v1/nodes", front.plane.token).status, 200);
    EXPECT_EQ(front.ask("/v1/nodes", auth::ec_signer().token("ES256", provider.claims())).status, 503);
}

TEST(TokenChecklist, item_25_no_token_in_an_address_and_none_in_the_log) {
    FakeProvider provider;
    provider.serve_keys({auth::ec_signer().jwk()});
    std::string written;
    const std::string good = auth::ec_signer().token("ES256", provider.claims());
    const SigningKey thief{SigningKey::Kind::p256, "ec-1"};
    const std::string forged = thief.token("ES256", provider.claims());
    {
        Front front{provider};
        EXPECT_EQ(front.ask("/v1/nodes", good).status, 200);
        EXPECT_EQ(front.ask("/v1/nodes?access_token=" + good).status, 400);
        EXPECT_EQ(front.ask("/v1/nodes?access_token=" + good, good).status, 400) << "whoever else they say they are";
        EXPECT_EQ(front.ask("/healthz?access_token=" + good).status, 400) << "at every door";
        const Heard odd = front.ask("/v1/nodes?token=" + good);
        EXPECT_EQ(odd.status, 400);
        EXPECT_THAT(odd.body, Not(HasSubstr(good.substr(0, 40)))) << "and it is not said again";
        EXPECT_EQ(front.ask("/v1/nodes", forged).status, 401);
        EXPECT_EQ(front.ask("/v1/" + good, good).status, 404);
        EXPECT_TRUE(comes_true([&] { return slurp(front.folder / "log").find("refused") != std::string::npos; }));
        written = slurp(front.folder / "log");
    }
    EXPECT_THAT(written, HasSubstr("its signature is not the issuer's")) << "who runs it is told why";
    for (const std::string& token : {good, forged}) {
        const std::size_t first = token.find('.'), second = token.find('.', first + 1);
        for (const std::string& part : {token.substr(first + 1, 40), token.substr(second + 1, 40)})
            EXPECT_THAT(written, Not(HasSubstr(part)));
    }
}

TEST(HttpsFetch, addresses_are_read_strictly) {
    EXPECT_EQ(parse_https("https://id.example/a?b=c"), (HttpsAddress{"id.example", 443, "/a?b=c"}));
    EXPECT_EQ(parse_https("https://id.example:8443"), (HttpsAddress{"id.example", 8443, "/"}));
    EXPECT_EQ(parse_https("https://[::1]:8443/x"), (HttpsAddress{"::1", 8443, "/x"}));
    EXPECT_EQ(parse_https("https://id.example?q"), (HttpsAddress{"id.example", 443, "/?q"}));
    for (const std::string bad :
         {"", "http://a", "HTTPS://a", "https://", "https://a:b", "https://a:65536", "https://a:0", "https://u@a/",
          "https://a/#f", "https://a/ b", "https://a/\r\nX: y", "https://[::1", "https://a\xc3\xa4", "file:///etc"})
        EXPECT_FALSE(parse_https(bad)) << bad;
    std::string form;
    add_to_form(form, "scope", "openid a&b=c");
    add_to_form(form, "x", "\xc3\xa4/+~");
    EXPECT_EQ(form, "scope=openid%20a%26b%3Dc&x=%C3%A4%2F%2B~");
}

}  // namespace
}  // namespace bulkhead::shell
