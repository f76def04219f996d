// The checklist of what goes wrong with tokens, one claim for each item that a verifier alone can keep: numbers are
// those of the list in docs/decisions/0025. What needs a network is in shell/oidc_test.cpp, what needs a provider in
// cli/.
#include "bulkhead/auth/jwt.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "bulkhead/auth/base64url.hpp"
#include "bulkhead/auth/pkce.hpp"
#include "bulkhead/auth/signer_test.hpp"

namespace bulkhead::auth {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::int64_t second = 1'800'000'000;  // now
constexpr Instant at_noon{second * 1000};

const Expectations& expected_here() {
    static const Expectations here{.issuer = "https://id.example/realms/fleet", .audience = "bulkhead"};
    return here;
}

// A payload as Keycloak writes it, with some members replaced; an empty value leaves one out.
std::string payload_with(const std::vector<std::pair<std::string, std::string>>& changes = {}) {
    std::vector<std::pair<std::string, std::string>> members{
        {"iss", R"("https://id.example/realms/fleet")"},
        {"sub", R"("7f1c8a52-0d1b-4f0e-9a57-2f9c2b1a77d0")"},
        {"aud", R"(["bulkhead","account"])"},
        {"typ", R"("Bearer")"},
        {"azp", R"("bulkhead-cli")"},
        {"iat", std::to_string(second - 10)},
        {"exp", std::to_string(second + 290)},
        {"preferred_username", R"("ada")"},
        {"groups", R"(["/acme","/acme/ml"])"},
        {"realm_access", R"({"roles":["offline_access"]})"},
        {"resource_access", R"({"bulkhead":{"roles":["tenant-admin"]},"account":{"roles":["platform-admin"]}})"},
    };
    for (const auto& [name, value] : changes) {
        std::erase_if(members, [&](const auto& member) { return member.first == name; });
        members.emplace_back(name, value);
    }
    std::string out = "{";
    for (const auto& [name, value] : members)
        if (!value.empty()) out += fmt::format("{}\"{}\":{}", out == "{" ? "" : ",", name, value);
    return out + "}";
}

const KeySet& both_keys() {
    static const KeySet keys =
        *read_key_set(key_set_of({rsa_signer().jwk(R"("use":"sig","alg":"RS256")"), ec_signer().jwk()}));
    return keys;
}

Result<Claims> tried(const std::string& token, const KeySet& keys = both_keys(), Instant at = at_noon) {
    return verify_token(token, keys, expected_here(), at);
}
Result<Claims> with_payload(const std::string& payload, Instant at = at_noon) {
    return tried(ec_signer().token("ES256", payload), both_keys(), at);
}
Result<Claims> with_header(const std::string& header) {
    return tried(ec_signer().token_of("ES256", header, payload_with()));
}
std::string why_not(const Result<Claims>& result) { return result ? "it was accepted" : result.error().what; }

TEST(Jwt, a_good_token_is_read_in_keycloaks_shapes) {
    for (const std::string& token :
         {rsa_signer().token("RS256", payload_with()), ec_signer().token("ES256", payload_with())}) {
        const auto claims = tried(token);
        ASSERT_TRUE(claims) << claims.error().what;
        const auto who = read_identity(*claims, "bulkhead");
        ASSERT_TRUE(who) << who.error().what;
        EXPECT_EQ(who->issuer, "https://id.example/realms/fleet");
        EXPECT_EQ(who->subject, "7f1c8a52-0d1b-4f0e-9a57-2f9c2b1a77d0");
        EXPECT_EQ(who->name, "ada");
        EXPECT_EQ(who->client, "bulkhead-cli");
        EXPECT_THAT(who->groups, ElementsAre("/acme", "/acme/ml"));
        EXPECT_THAT(who->roles, ElementsAre("tenant-admin")) << "of our client, not of account";
        EXPECT_THAT(who->realm_roles, ElementsAre("offline_access"));
        EXPECT_EQ(who->issued, (Instant{(second - 10) * 1000}));
        EXPECT_EQ(who->expires, (Instant{(second + 290 + 60) * 1000})) << "with the skew";
    }
}

TEST(Jwt, every_allowed_algorithm_verifies_with_its_own_kind_of_key) {
    using Kind = SigningKey::Kind;
    const SigningKey p384{Kind::p384, "k"}, edwards{Kind::ed25519, "k"}, p256{Kind::p256, "k"};
    const SigningKey rsa = rsa_signer().named("k");
    const std::pair<std::string_view, const SigningKey*> rows[] = {
        {"RS256", &rsa}, {"RS384", &rsa},  {"RS512", &rsa},  {"PS256", &rsa},    {"PS384", &rsa},
        {"PS512", &rsa}, {"ES256", &p256}, {"ES384", &p384}, {"EdDSA", &edwards}};
    for (const auto& [algorithm, key] : rows) {
        const auto keys = read_key_set(key_set_of({key->jwk()}));
        ASSERT_TRUE(keys) << keys.error().what;
        const std::string token = key->token(algorithm, payload_with());
        EXPECT_TRUE(tried(token, *keys)) << algorithm << ": " << why_not(tried(token, *keys));
        std::string other = token;
        other[token.rfind('.') + 8] = token[token.rfind('.') + 8] == 'A' ? 'B' : 'A';
        EXPECT_FALSE(tried(other, *keys)) << algorithm;
    }
}

TEST(Jwt, nine_algorithms_are_taken_unless_said_otherwise) {
    const std::unique_ptr<Expectations> made{new Expectations{}};
    EXPECT_EQ(made->algorithms.size(), 9u);
    EXPECT_EQ(made->algorithms.front(), Algorithm::rs256);
    EXPECT_EQ(made->algorithms.back(), Algorithm::eddsa);
}

TEST(JwtChecklist, item_01_no_algorithm_at_all_is_refused_however_it_is_spelled) {
    for (const std::string name : {"none", "None", "nOnE", "NONE", ""}) {
        const std::string head = url_text(fmt::format(R"({{"alg":"{}","kid":"ec-1"}})", name));
        EXPECT_FALSE(tried(head + "." + url_text(payload_with()) + ".")) << name;
        EXPECT_FALSE(tried(head + "." + url_text(payload_with()) + ".AAAA")) << name;
    }
    EXPECT_FALSE(with_header(R"({"kid":"ec-1"})")) << "no alg";
    EXPECT_FALSE(with_header(R"({"alg":null,"kid":"ec-1"})"));
}

TEST(JwtChecklist, item_02_a_public_key_is_no_shared_secret) {
    const std::string text = url_text(R"({"alg":"HS256","typ":"JWT","kid":"rsa-1"})") + "." + url_text(payload_with());
    for (const std::string& secret : {rsa_signer().public_pem(), rsa_signer().public_der(), rsa_signer().jwk()}) {
        unsigned char mac[32];
        HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
             reinterpret_cast<const unsigned char*>(text.data()), text.size(), mac, nullptr);
        const auto result = tried(text + "." + url_text({reinterpret_cast<const char*>(mac), sizeof mac}));
        EXPECT_THAT(why_not(result), HasSubstr("HS256"));
    }
}

TEST(JwtChecklist, item_03_only_algorithms_of_our_list_are_taken) {
    for (const std::string name : {"RS1", "ES256K", "HS256", "HS384", "HS512", "ES512", "rs256", "RS256 ", "dir"})
        EXPECT_THAT(why_not(tried(rsa_signer().token_of("RS256", fmt::format(R"({{"alg":"{}","kid":"rsa-1"}})", name),
                                                        payload_with()))),
                    HasSubstr("is not taken here"))
            << name;
    Expectations narrow = expected_here();
    narrow.algorithms = {Algorithm::es256};
    EXPECT_FALSE(verify_token(rsa_signer().token("RS256", payload_with()), both_keys(), narrow, at_noon))
        << "not on this server's list";
    EXPECT_TRUE(verify_token(ec_signer().token("ES256", payload_with()), both_keys(), narrow, at_noon));
}

TEST(JwtChecklist, item_04_keys_and_addresses_in_a_header_are_not_looked_at) {
    const SigningKey thief{SigningKey::Kind::p256, "ec-1"};
    const std::string offers[] = {R"("jwk":)" + thief.jwk(), R"("jku":"https://thief.example/keys")",
                                  R"("x5u":"https://thief.example/chain")", R"("x5c":["AAAA"])"};
    for (const std::string& offer : offers) {
        const std::string header = R"({"alg":"ES256","typ":"JWT","kid":"ec-1",)" + offer + "}";
        EXPECT_THAT(why_not(tried(thief.token_of("ES256", header, payload_with()))), HasSubstr("not the issuer's"));
        EXPECT_TRUE(tried(ec_signer().token_of("ES256", header, payload_with()))) << "and do not harm a good token";
    }
}

TEST(JwtChecklist, item_05_a_strange_key_name_finds_nothing) {
    const std::string names[] = {"../../../../etc/passwd", "' OR 1=1 --", "ec-1\\u0000", "EC-1", " ec-1",
                                 std::string(10'000, 'k')};
    for (const std::string& name : names)
        EXPECT_FALSE(with_header(fmt::format(R"({{"alg":"ES256","kid":"{}"}})", name))) << name.substr(0, 40);
    EXPECT_FALSE(with_header(R"({"alg":"ES256"})")) << "none";
    EXPECT_FALSE(with_header(R"({"alg":"ES256","kid":7})")) << "no text";
    EXPECT_FALSE(with_header(R"({"alg":"ES256","kid":["ec-1"]})"));
    // A name that two keys of different types bear is each of them for its own algorithm.
    const SigningKey twin = ec_signer().named("rsa-1");
    const auto keys = read_key_set(key_set_of({twin.jwk(), rsa_signer().jwk()}));
    ASSERT_TRUE(keys);
    EXPECT_TRUE(tried(rsa_signer().token("RS256", payload_with()), *keys));
    EXPECT_TRUE(tried(twin.token("ES256", payload_with()), *keys));
    // Two of one type: which is meant cannot be told.
    const SigningKey double_name{SigningKey::Kind::p256, "rsa-1"};
    const auto unclear = read_key_set(key_set_of({twin.jwk(), double_name.jwk(), rsa_signer().jwk()}));
    ASSERT_TRUE(unclear);
    EXPECT_FALSE(tried(twin.token("ES256", payload_with()), *unclear));
    EXPECT_FALSE(tried(double_name.token("ES256", payload_with()), *unclear));
    EXPECT_TRUE(tried(rsa_signer().token("RS256", payload_with()), *unclear));
}

TEST(JwtChecklist, item_06_the_encryption_key_and_keys_of_another_type_verify_nothing) {
    const auto keys = read_key_set(key_set_of(
        {rsa_signer().jwk(R"("use":"enc","alg":"RSA-OAEP")"), ec_signer().jwk(R"("use":"sig","alg":"ES256")")}));
    ASSERT_TRUE(keys) << keys.error().what;
    EXPECT_FALSE(tried(rsa_signer().token("RS256", payload_with()), *keys));
    const std::string as_rsa = R"({"alg":"RS256","typ":"JWT","kid":"ec-1"})";
    EXPECT_THAT(why_not(tried(ec_signer().token_of("ES256", as_rsa, payload_with()), *keys)),
                HasSubstr("not one for RS256"));
    // A key that says RS256 is not one for PS256.
    EXPECT_FALSE(tried(rsa_signer().token("PS256", payload_with())));
}

TEST(JwtChecklist, item_07_zero_and_der_signatures_and_weak_keys_are_refused) {
    const std::string head = url_text(R"({"alg":"ES256","typ":"JWT","kid":"ec-1"})");
    const std::string text = head + "." + url_text(payload_with());
    EXPECT_FALSE(tried(text + "." + url_text(std::string(64, '\0')))) << "r = s = 0";
    EXPECT_FALSE(tried(text + "." + url_text(ec_signer().sign("ES256", text, true)))) << "DER";
    EXPECT_FALSE(tried(text + "." + url_text(ec_signer().sign("ES256", text) + '\0'))) << "one byte more";
    EXPECT_FALSE(tried(text + "." + url_text(std::string(64, '\xff')))) << "beyond the order";
    EXPECT_TRUE(tried(text + "." + url_text(ec_signer().sign("ES256", text))));
    using Kind = SigningKey::Kind;
    for (const Kind weak : {Kind::rsa1024, Kind::rsa_e3})
        EXPECT_FALSE(read_key_set(key_set_of({SigningKey{weak}.jwk()})));
    const std::string n = url_text(rsa_signer().number(OSSL_PKEY_PARAM_RSA_N));
    for (const std::string e :
         {"AQ", "Ag", "Aw", "AQAC", "AAEAAQ", "AQAAAAAAAAAB", ""})  // 1, 2, 3, even, with zeros, huge, none
        EXPECT_FALSE(
            read_key_set(key_set_of({fmt::format(R"({{"kid":"a","use":"sig","kty":"RSA","n":"{}","e":"{}"}})", n, e)})))
            << e;
}

TEST(JwtChecklist, item_08_the_issuer_is_compared_to_the_byte) {
    for (const std::string other : {"https://id.example/realms/other", "https://id.example/realms/fleet/",
                                    "https://ID.example/realms/fleet", "https://id.example:443/realms/fleet",
                                    "http://id.example/realms/fleet", "https://id.example/realms/flee", ""})
        EXPECT_FALSE(with_payload(payload_with({{"iss", '"' + other + '"'}}))) << other;
    EXPECT_FALSE(with_payload(payload_with({{"iss", ""}}))) << "missing";
    EXPECT_FALSE(with_payload(payload_with({{"iss", R"(["https://id.example/realms/fleet"])"}})));
}

TEST(JwtChecklist, item_09_the_audience_must_be_ours_also_among_others) {
    struct Row {
        std::string aud;
        bool good;
    };
    for (const Row& row : {Row{"", false},
                           {R"("account")", false},
                           {R"(["account","other"])", false},
                           {"[]", false},
                           {R"("Bulkhead")", false},
                           {R"("bulkhead ")", false},
                           {R"({"bulkhead":1})", false},
                           {R"(["bulkhead",7])", false},
                           {"7", false},
                           {R"("bulkhead")", true},
                           {R"(["bulkhead"])", true},
                           {R"(["account","bulkhead"])", true}})
        EXPECT_EQ(with_payload(payload_with({{"aud", row.aud}})).has_value(), row.good) << row.aud;
}

TEST(JwtChecklist, item_10_only_an_access_token_is_one) {
    for (const std::string type : {"ID", "Refresh", "Logout", "Offline", "bearer", ""})
        EXPECT_FALSE(with_payload(payload_with({{"typ", '"' + type + '"'}}))) << type;
    EXPECT_FALSE(with_payload(payload_with({{"typ", ""}}))) << "nothing says what it is";
    const auto headed = [](const std::string& typ, const std::string& payload) {
        return tried(
            ec_signer().token_of("ES256", fmt::format(R"({{"alg":"ES256","kid":"ec-1","typ":"{}"}})", typ), payload));
    };
    EXPECT_TRUE(headed("at+jwt", payload_with({{"typ", ""}}))) << "RFC 9068 says it in the header";
    EXPECT_TRUE(headed("application/AT+JWT", payload_with({{"typ", ""}})));
    EXPECT_FALSE(headed("at+jwt", payload_with({{"typ", R"("ID")"}}))) << "one yes does not outweigh a no";
    for (const std::string typ : {"logout+jwt", "dpop+jwt", "secevent+jwt", "id+jwt", "JWE"})
        EXPECT_FALSE(headed(typ, payload_with())) << typ;
    EXPECT_FALSE(with_payload(payload_with({{"cnf", R"({"jkt":"x"})"}}))) << "bound to a key that nobody asks for";
}

TEST(JwtChecklist, item_11_the_end_is_a_whole_number_of_seconds_and_holds_to_the_second) {
    for (const std::string exp : {"", R"("1800000290")", "1800000290.5", "1.8e9", "-1", "9223372036854775808",
                                  "9223372036854775807", "true", "[1800000290]", "253402300800"})
        EXPECT_FALSE(with_payload(payload_with({{"exp", exp}}))) << exp;
    const std::string payload = payload_with({{"exp", std::to_string(second)}});
    EXPECT_TRUE(with_payload(payload, {(second + 59) * 1000}));
    EXPECT_TRUE(with_payload(payload, {(second + 60) * 1000 - 1}));
    EXPECT_FALSE(with_payload(payload, {(second + 60) * 1000}));
    EXPECT_FALSE(with_payload(payload, {(second + 61) * 1000}));
    EXPECT_FALSE(with_payload(payload_with({{"exp", std::to_string(second - 10)}}))) << "ends as it begins";
    EXPECT_FALSE(with_payload(payload, {std::numeric_limits<std::int64_t>::max() - 100'000'000})) << "no overflow";
}

TEST(JwtChecklist, item_12_nothing_is_good_before_its_time_or_for_too_long) {
    EXPECT_TRUE(with_payload(payload_with({{"nbf", std::to_string(second + 60)}})));
    EXPECT_FALSE(with_payload(payload_with({{"nbf", std::to_string(second + 61)}})));
    EXPECT_FALSE(with_payload(payload_with({{"nbf", R"("0")"}})));
    EXPECT_TRUE(with_payload(payload_with({{"iat", std::to_string(second + 60)}})));
    EXPECT_FALSE(with_payload(payload_with({{"iat", std::to_string(second + 61)}})));
    EXPECT_FALSE(with_payload(payload_with({{"iat", ""}}))) << "its age must be known";
    const std::string long_lived =
        payload_with({{"iat", std::to_string(second)}, {"exp", std::to_string(second + 864'000)}});
    EXPECT_TRUE(with_payload(long_lived, {(second + 7199) * 1000}));
    EXPECT_FALSE(with_payload(long_lived, {(second + 7200) * 1000})) << "ten days are not believed";
    Expectations loose = expected_here();
    loose.skew = Duration{60'001};
    EXPECT_FALSE(check(loose));
    EXPECT_TRUE(check(expected_here()));
}

TEST(JwtChecklist, item_13_json_is_read_strictly_and_within_bounds) {
    const std::string good = payload_with();
    const std::string twice = good.substr(0, good.size() - 1) + R"(,"groups":["/root"]})";
    const std::string bad[] = {twice,
                               payload_with({{"resource_access", R"({"bulkhead":{"roles":["a"],"roles":["b"]}})"}}),
                               payload_with({{"exp", "NaN"}}),
                               payload_with({{"x", std::string(64, '[') + std::string(64, ']')}}),
                               payload_with({{"x", std::string(5'000, '[')}}),
                               good + "{}",
                               good + " x",
                               "[" + good + "]",
                               " " + good,
                               "\xef\xbb\xbf" + good,
                               "iss: yaml",
                               "",
                               "{}",
                               "null"};
    for (const std::string& payload : bad) EXPECT_FALSE(with_payload(payload)) << payload.substr(0, 60);
    EXPECT_FALSE(with_header(R"({"alg":"ES256","kid":"ec-1","kid":"ec-1"})")) << "twice in the header";
    const std::string large = ec_signer().token("ES256", payload_with({{"x", '"' + std::string(1 << 20, 'x') + '"'}}));
    EXPECT_THAT(why_not(tried(large)), HasSubstr("at most"));
}

TEST(JwtChecklist, item_14_each_token_has_one_spelling) {
    const std::string token = ec_signer().token("ES256", payload_with());
    ASSERT_TRUE(tried(token));
    for (const std::string& other : {token + "=", token + "==", " " + token, token + "\n", token + " ", "\t" + token})
        EXPECT_FALSE(tried(other)) << other.substr(0, 3);
    // The last letter of 64 bytes carries four bits that must be zero.
    std::string trailing = token;
    for (const char c : std::string_view{"BCDEFGHIJKLMNOPRSTUVWXYZ0_-"}) {
        trailing.back() = c;
        if (trailing != token) {
            EXPECT_FALSE(tried(trailing)) << c;
        }
    }
    EXPECT_FALSE(from_base64url("AB")) << "bits left over";
    EXPECT_TRUE(from_base64url("AA"));
    EXPECT_FALSE(from_base64url("A"));
    EXPECT_FALSE(from_base64url("AA=="));
    EXPECT_FALSE(from_base64url("+/+/"));
    EXPECT_EQ(from_base64url("-_-_"), std::string("\xfb\xff\xbf"));
    EXPECT_FALSE(with_payload(payload_with({{"preferred_username", "\"\xff\xfe\""}}))) << "not UTF-8";
}

TEST(JwtChecklist, item_15_only_the_compact_form_is_read) {
    const std::string text = url_text(R"({"alg":"ES256","kid":"ec-1"})"), payload = url_text(payload_with());
    EXPECT_FALSE(tried(fmt::format(R"({{"protected":"{}","payload":"{}","signature":"AAAA"}})", text, payload)));
    EXPECT_FALSE(tried(text + "." + payload + ".AAAA.AAAA.AAAA")) << "JWE has five parts";
    EXPECT_FALSE(tried(text + "." + payload));
    EXPECT_FALSE(tried(text + ".." + url_text(ec_signer().sign("ES256", text + "."))));
    EXPECT_FALSE(tried(".."));
    EXPECT_FALSE(tried(""));
    EXPECT_FALSE(tried("a.b.c"));
}

TEST(JwtChecklist, item_16_nothing_is_inflated_and_no_password_is_stretched) {
    EXPECT_FALSE(with_header(R"({"alg":"ES256","kid":"ec-1","zip":"DEF"})"));
    EXPECT_FALSE(with_header(R"({"alg":"dir","enc":"A256GCM","zip":"DEF"})"));
    EXPECT_THAT(why_not(with_header(R"({"alg":"PBES2-HS512+A256KW","p2c":2147483647,"p2s":"AAAA","kid":"ec-1"})")),
                HasSubstr("is not taken here"));
}

TEST(JwtChecklist, item_17_what_a_header_calls_critical_is_not_skipped) {
    for (const std::string crit : {R"(["exp"])", R"(["b64"],"b64":false)", "[]", "null", R"("exp")"})
        EXPECT_THAT(why_not(with_header(R"({"alg":"ES256","kid":"ec-1","crit":)" + crit + "}")), HasSubstr("crit"));
}

TEST(JwtChecklist, item_22_groups_and_roles_are_kept_to_the_letter) {
    const auto claims = with_payload(payload_with(
        {{"groups", R"(["/acme","/acme-evil","/ACME","/аcme"," /acme"])"},  // the fourth begins with a Cyrillic letter
         {"resource_access",
          R"({"bulkhead":{"roles":["Platform-Admin","plаtform-admin"]},"Bulkhead":{"roles":["platform-admin"]}})"}}));
    ASSERT_TRUE(claims);
    const auto who = read_identity(*claims, "bulkhead");
    ASSERT_TRUE(who);
    EXPECT_THAT(who->groups, ElementsAre("/acme", "/acme-evil", "/ACME",
                                         "/\xd0\xb0"
                                         "cme",
                                         " /acme"));
    EXPECT_THAT(who->roles, ElementsAre("Platform-Admin", "pl\xd0\xb0tform-admin")) << "and of no other client";
    for (const auto& [claim, value] :
         std::vector<std::pair<std::string, std::string>>{{"groups", R"("/acme")"},
                                                          {"groups", "[1]"},
                                                          {"groups", R"([""])"},
                                                          {"groups", "{}"},
                                                          {"groups", "[\"" + std::string(300, 'g') + "\"]"},
                                                          {"realm_access", "[]"},
                                                          {"realm_access", R"({"roles":"admin"})"},
                                                          {"resource_access", "7"},
                                                          {"resource_access", R"({"bulkhead":["platform-admin"]})"},
                                                          {"azp", "7"}}) {
        const auto odd = with_payload(payload_with({{claim, value}}));
        ASSERT_TRUE(odd);
        EXPECT_FALSE(read_identity(*odd, "bulkhead")) << claim << value;
    }
}

TEST(JwtChecklist, item_24_a_name_cannot_write_lines_or_move_the_cursor) {
    const auto claims = with_payload(
        payload_with({{"preferred_username", R"("ada\nlevel=error event=\u001b[2Jgone\u009b31m\u202egnp\u200b")"}}));
    ASSERT_TRUE(claims);
    const auto who = read_identity(*claims, "bulkhead");
    ASSERT_TRUE(who);
    EXPECT_EQ(who->name, R"(ada\u{a}level=error event=\u{1b}[2Jgone\u{9b}31m\u{202e}gnp\u{200b})");
    EXPECT_EQ(displayed("M\xc3\xbcller \xe6\x9d\x8e"), "M\xc3\xbcller \xe6\x9d\x8e") << "names are not only English";
    EXPECT_FALSE(with_payload(payload_with({{"sub", R"("ada\u200b")"}}))) << "a key that looks like another";
    EXPECT_FALSE(with_payload(payload_with({{"sub", R"("")"}})));
    EXPECT_FALSE(with_payload(payload_with({{"sub", ""}})));
    EXPECT_FALSE(with_payload(payload_with({{"sub", '"' + std::string(256, 's') + '"'}})));
    // What is said of a refused token goes to the log, and must not carry such things either.
    const auto refused = with_payload(payload_with({{"iss", R"("https://a\n\u001b[31m")"}}));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().what.find_first_of("\n\x1b"), std::string::npos);
}

TEST(JwtChecklist, item_28_one_subject_of_two_issuers_is_two_people) {
    const auto here = with_payload(payload_with());
    ASSERT_TRUE(here);
    Expectations other = expected_here();
    other.issuer = "https://id.example/realms/other";
    const auto there =
        verify_token(ec_signer().token("ES256", payload_with({{"iss", R"("https://id.example/realms/other")"}})),
                     both_keys(), other, at_noon);
    ASSERT_TRUE(there);
    const auto one = read_identity(*here, "bulkhead"), two = read_identity(*there, "bulkhead");
    ASSERT_TRUE(one && two);
    EXPECT_EQ(one->subject, two->subject);
    EXPECT_NE(*one, *two);
}

TEST(Jwks, a_set_is_read_key_by_key_and_what_is_left_out_is_named) {
    const std::string good = ec_signer().jwk();
    const std::string x = url_text(ec_signer().coordinate(OSSL_PKEY_PARAM_EC_PUB_X));
    const std::string bad[] = {
        R"({"kid":"a","kty":"oct","k":"AAAA","use":"sig"})",
        R"({"kid":"a","kty":"EC","crv":"secp256k1","x":"AA","y":"AA","use":"sig"})",
        fmt::format(R"({{"kid":"a","use":"sig","kty":"EC","crv":"P-256","x":"{0}","y":"{0}"}})",
                    x),  // not on the curve
        fmt::format(R"({{"kid":"a","use":"sig","kty":"EC","crv":"P-384","x":"{0}","y":"{0}"}})", x),
        fmt::format(R"({{"use":"sig",{}}})", ec_signer().material()),  // no name
        ec_signer().named("a").jwk(""),                                // for whatever
        ec_signer().named("a").jwk(R"("use":"enc")"),
        ec_signer().named("a").jwk(R"("use":"sig","key_ops":["sign"])"),
        ec_signer().named("a").jwk(R"("use":"sig","alg":"RS256")"),
        ec_signer().named("a").jwk(R"("use":"sig","alg":7)"),
        ec_signer().named("a").jwk(R"("use":"sig","d":"AAAA")"),
        R"({"kid":"a","kty":"OKP","crv":"Ed25519","x":"AAAA","use":"sig"})",
    };
    for (const std::string& jwk : bad) {
        const auto keys = read_key_set(key_set_of({jwk, good}));
        ASSERT_TRUE(keys) << keys.error().what;
        EXPECT_EQ(keys->keys.size(), 1u) << jwk;
        EXPECT_EQ(keys->left_out.size(), 1u) << jwk;
        EXPECT_FALSE(read_key_set(key_set_of({jwk}))) << "nothing is left: " << jwk;
    }
    for (const std::string text : {"", "[]", "{}", R"({"keys":{}})", R"({"keys":[]})", R"({"keys":[7]})", "keys: []",
                                   R"({"keys":[],"keys":[]})"})
        EXPECT_FALSE(read_key_set(text)) << text;
    EXPECT_FALSE(read_key_set(key_set_of(std::vector<std::string>(65, good)))) << "too many";
    EXPECT_FALSE(read_key_set(key_set_of({good}) + std::string(key_set_bytes_max, ' '))) << "too long";
}

TEST(Pkce, the_challenge_is_that_of_RFC_7636) {
    EXPECT_EQ(pkce_challenge("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"),
              "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    const Pkce one = new_pkce(), two = new_pkce();
    EXPECT_EQ(one.verifier.size(), 43u);
    EXPECT_EQ(one.verifier.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"),
              std::string::npos);
    EXPECT_EQ(one.challenge, pkce_challenge(one.verifier));
    EXPECT_NE(one.verifier, two.verifier);
    EXPECT_NE(new_nonce(), new_nonce());
}

}  // namespace
}  // namespace bulkhead::auth
