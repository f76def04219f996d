#include "bulkhead/auth/discovery.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "bulkhead/auth/jose_json.hpp"
#include "bulkhead/auth/pkce.hpp"
#include "bulkhead/codec/diagnostic.hpp"

namespace bulkhead::auth {

std::string discovery_address(std::string_view issuer) {
    if (issuer.ends_with('/')) issuer.remove_suffix(1);
    return fmt::format("{}/.well-known/openid-configuration", issuer);
}

Result<Discovery> read_discovery(std::string_view json, std::string_view issuer) {
    const auto document =
        read_json_object("the provider's description", json, {.bytes = discovery_bytes_max, .nodes = 4'000});
    if (!document) return std::unexpected(document.error());
    const Node& root = *document->root;
    Discovery out;
    auto said = required_text(root, "issuer");
    if (!said) return std::unexpected(said.error());
    if (*said != issuer)
        return fail(
            Code::denied,
            fmt::format("the provider calls itself \"{}\", and not \"{}\"", shortened(*said), shortened(issuer)),
            "configure the issuer exactly as the provider writes it, with or without a slash at the end");
    out.issuer = *std::move(said);
    auto keys = required_text(root, "jwks_uri");
    if (!keys) return std::unexpected(keys.error());
    out.keys = *std::move(keys);
    const auto optional_text = [&](std::string_view name, std::string& into) -> Result<> {
        auto found = text_member(root, name);
        if (!found) return std::unexpected(found.error());
        into = std::move(*found).value_or("");
        return {};
    };
    if (auto read = optional_text("device_authorization_endpoint", out.device); !read)
        return std::unexpected(read.error());
    if (auto read = optional_text("token_endpoint", out.token); !read) return std::unexpected(read.error());
    if (auto read = optional_text("revocation_endpoint", out.revocation); !read) return std::unexpected(read.error());
    const auto methods = texts_member(root, "code_challenge_methods_supported");
    if (!methods) return std::unexpected(methods.error());
    out.pkce = *methods && std::ranges::find(**methods, pkce_method) != (*methods)->end();
    return out;
}

}  // namespace bulkhead::auth
