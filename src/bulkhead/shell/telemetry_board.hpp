// The newest sample of each node that is connected. In memory alone: it goes with the session that brought it, and the
// next one takes its place.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "bulkhead/model/telemetry.hpp"

namespace bulkhead::shell {

struct Sampled {
    Instant taken;  // by our clock
    std::shared_ptr<const Telemetry> telemetry;
};

class TelemetryBoard {
public:
    void put(const std::string& node, std::uint64_t session, Telemetry&& telemetry, Instant now);
    void forget(const std::string& node, std::uint64_t session);
    std::map<std::string, Sampled> newest() const;  // by node

private:
    struct Kept {
        std::uint64_t session = 0;
        Sampled sampled;
    };
    mutable std::mutex mutex_;
    std::map<std::string, Kept> kept_;
};

}  // namespace bulkhead::shell
