#include "bulkhead/shell/telemetry_board.hpp"

#include <utility>

namespace bulkhead::shell {

void TelemetryBoard::put(const std::string& node, std::uint64_t session, Telemetry&& telemetry, Instant now) {
    const Instant taken{now.ms - telemetry.age.ms};
    auto newest = std::make_shared<const Telemetry>(std::move(telemetry));
    const std::lock_guard lock{mutex_};
    Kept& kept = kept_[node];
    if (session < kept.session) return;  // of one that another has taken the place of
    kept = {session, {taken, std::move(newest)}};
}

void TelemetryBoard::forget(const std::string& node, std::uint64_t session) {
    const std::lock_guard lock{mutex_};
    if (const auto kept = kept_.find(node); kept != kept_.end() && kept->second.session == session) kept_.erase(kept);
}

std::map<std::string, Sampled> TelemetryBoard::newest() const {
    const std::lock_guard lock{mutex_};
    std::map<std::string, Sampled> out;
    for (const auto& [node, kept] : kept_) out.emplace(node, kept.sampled);
    return out;
}

}  // namespace bulkhead::shell
