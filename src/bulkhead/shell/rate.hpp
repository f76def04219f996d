// How often each caller may ask: a bucket of tokens per key that fills at a steady rate. Keys that have not been heard
// of while their bucket filled up are forgotten, so that nobody can fill the memory with new names.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace bulkhead::shell {

struct Rate {
    std::int64_t per_second = 200;
    std::int64_t burst = 400;
};

class RateLimiter {
public:
    using Clock = std::chrono::steady_clock;
    explicit RateLimiter(Rate rate) : rate_{rate} {}

    // Nothing: go on. Otherwise how many seconds to wait, rounded up.
    std::optional<std::int64_t> ask(std::string_view key, Clock::time_point now);
    std::size_t keys() const;

private:
    struct Bucket {
        double level = 0;
        Clock::time_point at;
    };
    struct Hash {
        using is_transparent = void;
        std::size_t operator()(std::string_view key) const { return std::hash<std::string_view>{}(key); }
    };
    double filled(const Bucket& bucket, Clock::time_point now) const;
    void sweep(Clock::time_point now);

    const Rate rate_;
    mutable std::mutex mutex_;
    std::unordered_map<std::string, Bucket, Hash, std::equal_to<>> buckets_;
    Clock::time_point swept_;
};

}  // namespace bulkhead::shell
