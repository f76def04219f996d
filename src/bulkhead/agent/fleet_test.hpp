// A small fleet for tests: a CA, a server's certificate for loopback, and nodes.
#pragma once

#include <chrono>
#include <string>

#include "bulkhead/auth/ca.hpp"

namespace bulkhead::agent {

inline Instant wall_clock() {
    const auto since = std::chrono::system_clock::now().time_since_epoch();
    return {std::chrono::duration_cast<std::chrono::milliseconds>(since).count()};
}

struct TestFleet {
    auth::Validity today{{wall_clock().ms - 3'600'000}, wall_clock() + Duration::days(1)};
    auth::Validity yesterday{{wall_clock().ms - Duration::days(2).ms}, {wall_clock().ms - Duration::days(1).ms}};
    auth::Validity decade{{wall_clock().ms - Duration::days(365).ms}, wall_clock() + Duration::days(3650)};
    auth::KeyPair ca = *auth::create_ca("test fleet", decade);
    auth::KeyPair server = *auth::issue_server(ca, {{"localhost"}, {"127.0.0.1"}}, today);

    auth::KeyPair node(const std::string& name) const { return node(name, ca, today); }
    static auth::KeyPair node(const std::string& name, const auth::KeyPair& by, auth::Validity when) {
        auto made = auth::make_request(name);
        return {made->key, *auth::sign_request(by, made->request, name, when)};
    }
};

inline const TestFleet& fleet() {
    static const TestFleet made;
    return made;
}

}  // namespace bulkhead::agent
