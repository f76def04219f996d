#include "bulkhead/evidence/statement.hpp"

#include <fmt/core.h>

#include "bulkhead/base/hash.hpp"
#include "bulkhead/codec/diagnostic.hpp"
#include "bulkhead/evidence/text.hpp"

namespace bulkhead::evidence {

namespace {

std::string signed_bytes(std::string_view text) { return fmt::format("bulkhead.dev/evidence/v1\n{}", text); }

}  // namespace

std::string statement_text(const WipeStatement& statement) { return compact_text(statement); }

Result<WipeStatement> read_statement(std::string_view text) { return read_text<WipeStatement>("statement", text); }

SignedEvidence sign_statement(const SigningKey& key, std::string_view text) {
    return {std::string{text}, key_id(key.public_key()), to_base64(key.sign(signed_bytes(text)))};
}

Result<> verify_statement(const PublicKey& key, const SignedEvidence& evidence) {
    if (evidence.key != key_id(key))
        return fail(Code::denied,
                    fmt::format("the statement names key {}, and this is key {}", shortened(evidence.key), key_id(key)),
                    "check it with the key that the node had enrolled then");
    const auto signature = from_base64(evidence.signature);
    if (!signature || !verify(key, signed_bytes(evidence.statement), *signature))
        return fail(Code::corrupt, fmt::format("the signature under key {} does not fit the statement", evidence.key),
                    "the statement was changed, or someone else signed it: do not believe it");
    return {};
}

}  // namespace bulkhead::evidence
