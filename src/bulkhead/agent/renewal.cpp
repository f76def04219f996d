#include "bulkhead/agent/renewal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace bulkhead::agent {

Result<Renewal> Renewal::of(Identity identity, std::string folder) {
    const auto peer = auth::read_peer(identity.certificate);
    if (!peer) return std::unexpected(peer.error());
    return Renewal{std::move(identity), std::move(folder), peer->validity};
}

Instant Renewal::due() const { return validity_.until + Duration{-life().ms / 3}; }

Result<std::optional<std::string>> Renewal::request(Instant now) {
    // Several attempts fit into what is left, however short the life. A clock that was set back makes none wait.
    const Duration pause = std::min(Duration::hours(1), Duration{life().ms / 12});
    if (now < due() || (asked_ && now >= *asked_ && now < *asked_ + pause)) return std::nullopt;
    asked_ = now;
    auto made = auth::make_request(identity_.name);
    if (!made) return std::unexpected(made.error());
    key_ = std::move(made->key);
    return std::move(made->request);
}

Result<auth::KeyPair> Renewal::accept(std::string_view certificate, Instant now) {
    // Believed is only what we can check: our new key, our name, our CA; and it is good now, and for longer.
    auth::KeyPair renewed{std::exchange(key_, {}), std::string{certificate}};
    if (renewed.key.empty()) return fail(Code::conflict, "a certificate came that nobody had asked for");
    if (auto pair = auth::check_pair(renewed); !pair) return std::unexpected(pair.error());
    const auto peer = auth::verify_peer(identity_.ca, certificate, now);
    if (!peer) return std::unexpected(peer.error());
    if (peer->node != identity_.name)
        return fail(Code::denied, fmt::format("the server certified the name {}, not {}", peer->node, identity_.name));
    if (peer->validity.until < validity_.until)
        return fail(Code::invalid,
                    fmt::format("the new certificate ends at {}, before the old one at {}", print(peer->validity.until),
                                print(validity_.until)),
                    "has the server's clock been set back?");
    if (auto stored = store_renewed(folder_, renewed); !stored) {
        // It may have failed after the new files took the old ones' place: then they are what the next process finds,
        // and this one must not go on to ask for a third.
        const auto found = load_identity(folder_);
        if (!found || found->certificate != renewed.certificate) return std::unexpected(stored.error());
    }
    identity_.key = renewed.key;
    identity_.certificate = renewed.certificate;
    validity_ = peer->validity;
    return renewed;
}

}  // namespace bulkhead::agent
