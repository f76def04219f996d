#include "bulkhead/shell/traffic.hpp"

#include <fmt/core.h>

namespace bulkhead::shell {

Result<Traffic::Turn> Traffic::enter(Lane lane, const auth::Caller& caller) {
    const std::string& token = caller.token_id;
    const std::lock_guard lock{counts_->mutex};
    std::size_t& inside = counts_->inside[static_cast<std::size_t>(lane)];
    if (inside >= lane_max_) return fail(Code::exhausted, "too many large requests at once", "ask again in a second");
    // Strangers have no token to count by; the door holds back their addresses.
    if (!token.empty()) {
        std::size_t& own = counts_->of_token[{lane, token}];
        if (own >= share_max_)
            return fail(Code::exhausted, fmt::format("{} large requests of this token are under way already", own),
                        "wait for one of them to be answered");
        ++own;
    }
    ++inside;
    return Turn{nullptr, [counts = counts_, lane, token](const void*) {
                    const std::lock_guard again{counts->mutex};
                    --counts->inside[static_cast<std::size_t>(lane)];
                    if (token.empty()) return;
                    const auto own = counts->of_token.find({lane, token});
                    if (--own->second == 0) counts->of_token.erase(own);
                }};
}

}  // namespace bulkhead::shell
