// Publishes the log beside the commits, not in their way: a thread that takes the entries of durable leaves, appends
// them to the tiles, and signs a checkpoint over all that has come together. When the disk refuses it tries again; the
// store has everything.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "bulkhead/audit/publisher.hpp"
#include "bulkhead/shell/loop.hpp"
#include "bulkhead/store/reader.hpp"

namespace bulkhead::shell {

class LogPublisher final : public Follower {
public:
    LogPublisher(audit::Publisher publisher, store::Options store, Log& log, Duration pause = Duration{100});
    ~LogPublisher() override;

    void start();  // once the store exists
    void stop();   // after a last attempt

    void loaded(const Reign& reign) override;
    void committed(const Batch& batch) override;

    std::uint64_t published() const { return published_.load(); }

    // Of the log's key, while it is replaced: as audit::Publisher has them. From any thread.
    void cosign(std::optional<evidence::SigningKey> next);
    Result<> change_key();

private:
    void run();
    Result<> publish(const std::vector<Hash>& entries, std::int64_t first, std::int64_t size);

    std::mutex publishing_;  // of the publisher: the thread's, and whoever changes the key
    audit::Publisher publisher_;
    const store::Options store_;
    Log& log_;
    const Duration pause_;  // between two checkpoints

    std::mutex mutex_;
    std::condition_variable wake_;
    std::vector<Hash> entries_;  // durable, not yet taken
    std::int64_t first_ = 0;     // index of the first of them
    std::int64_t size_ = 0;      // of the durable log
    bool stopping_ = false;
    std::atomic<std::uint64_t> published_{0};
    std::thread thread_;
};

}  // namespace bulkhead::shell
