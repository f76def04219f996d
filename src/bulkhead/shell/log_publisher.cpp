#include "bulkhead/shell/log_publisher.hpp"

#include <chrono>
#include <utility>

namespace bulkhead::shell {

LogPublisher::LogPublisher(audit::Publisher publisher, store::Options store, Log& log, Duration pause)
    : publisher_{std::move(publisher)}, store_{std::move(store)}, log_{log}, pause_{pause} {
    published_.store(publisher_.published());
}

LogPublisher::~LogPublisher() { stop(); }

void LogPublisher::start() {
    thread_ = std::thread{[this] { run(); }};
}

void LogPublisher::stop() {
    {
        const std::lock_guard lock{mutex_};
        stopping_ = true;
    }
    wake_.notify_one();
    if (thread_.joinable()) thread_.join();
}

void LogPublisher::loaded(const Reign& reign) {
    const std::lock_guard lock{mutex_};
    entries_.clear();
    first_ = size_ = reign.log_size;
}

void LogPublisher::committed(const Batch& batch) {
    if (batch.leaves.empty()) return;
    {
        const std::lock_guard lock{mutex_};
        if (entries_.empty()) first_ = batch.leaves.front().index;
        for (const Leaf& leaf : batch.leaves) entries_.push_back(leaf.entry);
        size_ = batch.leaves.back().index + 1;
    }
    wake_.notify_one();
}

Result<> LogPublisher::publish(const std::vector<Hash>& entries, std::int64_t first, std::int64_t size) {
    if (std::cmp_equal(publisher_.size(), first)) {
        for (const Hash& entry : entries) publisher_.append(entry);
    } else if (std::cmp_less(publisher_.size(), size)) {
        // After a start, or when the store was opened anew: what is missing comes from there.
        const auto reader = store::Reader::open(store_);
        if (!reader) return std::unexpected(reader.error());
        const auto caught_up =
            publisher_.catch_up(static_cast<std::uint64_t>(size), [&](std::uint64_t index) -> Result<Hash> {
                const auto leaf = reader->leaf(static_cast<std::int64_t>(index));
                if (!leaf) return std::unexpected(leaf.error());
                return leaf->entry;
            });
        if (!caught_up) return caught_up;
    }
    return publisher_.publish();
}

void LogPublisher::cosign(std::optional<evidence::SigningKey> next) {
    const std::lock_guard publishing{publishing_};
    publisher_.cosign(std::move(next));
}

Result<> LogPublisher::change_key() {
    const std::lock_guard publishing{publishing_};
    return publisher_.change_key();
}

void LogPublisher::run() {
    bool behind = true;  // the first round looks at what was durable before the start; a failed one is tried again
    for (;;) {
        std::unique_lock lock{mutex_};
        if (!behind) wake_.wait(lock, [&] { return stopping_ || !entries_.empty(); });
        const bool last = stopping_;
        std::vector<Hash> entries = std::exchange(entries_, {});
        const std::int64_t first = first_, size = size_;
        first_ = size_;
        lock.unlock();

        const auto done = [&] {
            const std::lock_guard publishing{publishing_};
            auto published = publish(entries, first, size);
            published_.store(publisher_.published());
            return published;
        }();
        if (!done) log_.error("the log is not published", {{"what", done.error().what}, {"try", done.error().remedy}});
        if (last) return;
        behind = !done;
        // Several commits share one checkpoint: signing and syncing cost more than waiting a moment.
        lock.lock();
        wake_.wait_for(lock, std::chrono::milliseconds{done ? pause_.ms : 1000}, [&] { return stopping_; });
    }
}

}  // namespace bulkhead::shell
