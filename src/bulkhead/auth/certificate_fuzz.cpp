// Whatever the bytes: reading them as a certificate, request or key ends in a value or an error, never in a crash; and
// nothing is certified but a request that is signed by its own key.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "bulkhead/auth/ca.hpp"
#include "bulkhead/auth/enrolment.hpp"
#include "bulkhead/auth/token.hpp"

using namespace bulkhead;
using namespace bulkhead::auth;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const Validity always{{0}, {Duration::days(36500).ms}};
    static const KeyPair ca = *create_ca("fuzz", always);
    const std::string_view text{reinterpret_cast<const char*>(data), size};
    if (const auto made = sign_request(ca, text, "node-17", always)) {
        const auto peer = verify_peer(ca.certificate, *made, {1});
        invariant(peer && peer->node == "node-17", "what we certify names the node we were asked about");
    }
    if (const auto peer = read_peer(text)) invariant(!peer->node.empty(), "a peer has a name");
    (void)fingerprint(text);
    (void)make_request("node-17", text);
    (void)hash_of_token(text);
    if (const auto request = read_enrolment_request(text))
        invariant(read_enrolment_request(print(*request)) == *request, "what was read can be written and read again");
    return 0;
}
