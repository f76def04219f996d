// Whatever the bytes: nothing is taken for a token but what the key signed. The first byte chooses: the bytes are a
// whole token; a header or a payload that the key then signs, so that the parts behind the signature are reached as
// well.
#include <openssl/evp.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "bulkhead/auth/base64url.hpp"
#include "bulkhead/auth/jwt.hpp"
#include "bulkhead/auth/signer_test.hpp"

using namespace bulkhead;
using namespace bulkhead::auth;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const SigningKey key{SigningKey::Kind::ed25519, "k"};
    static const KeySet keys = *read_key_set(key_set_of({key.jwk()}));
    static const Expectations expected{.issuer = "https://id.example", .audience = "bulkhead"};
    constexpr Instant now{1'800'000'000'000};
    if (size == 0) return 0;
    const std::string_view text{reinterpret_cast<const char*>(data) + 1, size - 1};
    const auto look = [&](const std::string& token) {
        const auto claims = verify_token(token, keys, expected, now);
        if (!claims) return;
        invariant(claims->issuer == expected.issuer && claims->expires > now, "what is accepted is ours, and in time");
        if (const auto who = read_identity(*claims, "bulkhead")) {
            invariant(!who->subject.empty(), "somebody is somebody");
            invariant(displayed(who->name).find_first_of("\n\x1b\x7f") == std::string::npos, "a name is one line");
        }
    };
    switch (data[0] % 4) {
        case 0:
            invariant(!verify_token(text, keys, expected, now), "nobody guesses a signature");
            break;
        case 1:
            look(key.token("EdDSA", text));
            break;
        case 2:
            look(key.token_of(
                "EdDSA", text,
                R"({"iss":"https://id.example","aud":"bulkhead","sub":"a","typ":"Bearer","iat":1799999990,"exp":1800000100})"));
            break;
        default:
            if (const auto bytes = from_base64url(text))
                invariant(to_base64url(*bytes) == text, "there is one spelling for each sequence of bytes");
    }
    return 0;
}
