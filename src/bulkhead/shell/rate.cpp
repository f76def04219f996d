#include "bulkhead/shell/rate.hpp"

#include <algorithm>
#include <cmath>

namespace bulkhead::shell {

namespace {
constexpr std::size_t most_keys = 100'000;
}

double RateLimiter::filled(const Bucket& bucket, Clock::time_point now) const {
    const std::chrono::duration<double> passed = now - bucket.at;
    return std::min(static_cast<double>(rate_.burst),
                    bucket.level + std::max(0.0, passed.count()) * static_cast<double>(rate_.per_second));
}

void RateLimiter::sweep(Clock::time_point now) {
    std::erase_if(buckets_,
                  [&](const auto& entry) { return filled(entry.second, now) >= static_cast<double>(rate_.burst); });
    swept_ = now;
}

std::optional<std::int64_t> RateLimiter::ask(std::string_view key, Clock::time_point now) {
    const std::lock_guard lock{mutex_};
    if (now - swept_ > std::chrono::seconds{30} || buckets_.size() >= most_keys) sweep(now);
    auto found = buckets_.find(key);
    if (found == buckets_.end()) {
        if (buckets_.size() >= most_keys) return 1;  // so many callers at once: nobody new until some fall silent
        found = buckets_.emplace(key, Bucket{static_cast<double>(rate_.burst), now}).first;
    }
    Bucket& bucket = found->second;
    bucket = {filled(bucket, now), now};
    if (bucket.level >= 1) {
        bucket.level -= 1;
        return std::nullopt;
    }
    return std::max<std::int64_t>(
        1, static_cast<std::int64_t>(std::ceil((1 - bucket.level) / static_cast<double>(rate_.per_second))));
}

std::size_t RateLimiter::keys() const {
    const std::lock_guard lock{mutex_};
    return buckets_.size();
}

}  // namespace bulkhead::shell
