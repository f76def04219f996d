#include "bulkhead/shell/key_rotation.hpp"

#include <fmt/core.h>
#include <openssl/rand.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "bulkhead/codec/decode.hpp"

namespace bulkhead::shell {

namespace {

constexpr std::chrono::seconds published_within{20};

Result<std::string> fresh_seed() {
    std::string seed(32, '\0');
    if (RAND_bytes(reinterpret_cast<unsigned char*>(seed.data()), static_cast<int>(seed.size())) != 1)
        return fail(Code::unavailable, "the operating system gives no random bytes", "");
    return seed;
}

}  // namespace

KeyRotation::KeyRotation(LogKeyFiles files, evidence::VerifierKey key, evidence::KeyHistory history,
                         std::optional<NextLogKey> next, Parts parts)
    : files_{std::move(files)},
      parts_{parts},
      next_{std::move(next)},
      key_{std::move(key)},
      history_{std::move(history)} {}

Result<std::unique_ptr<KeyRotation>> KeyRotation::open(LogKeyFiles files, evidence::VerifierKey key,
                                                       std::optional<NextLogKey> next, Parts parts) {
    auto history = files.history(key);
    if (!history) return std::unexpected(history.error());
    // What we give to others must lead to the key we sign with.
    if (const auto keys = evidence::keys_of(*history, key); !keys || keys->newest() != key)
        return fail(Code::corrupt,
                    fmt::format("the history of the log's key does not lead to the key it has: {}",
                                keys ? "it ends with another" : keys.error().what),
                    "put log.seed, log.vkey and log.history back from one copy of the folder");
    return std::unique_ptr<KeyRotation>{
        new KeyRotation{std::move(files), std::move(key), *std::move(history), std::move(next), parts}};
}

evidence::VerifierKey KeyRotation::key() const {
    const std::lock_guard lock{mutex_};
    return key_;
}

std::string KeyRotation::history() const {
    const std::lock_guard lock{mutex_};
    return print(history_);
}

evidence::KeyChange KeyRotation::change() const {
    const evidence::VerifierKey before = key();
    return {before, {before.name, next_->key.public_key()}};
}

Result<> KeyRotation::resume() {
    const std::lock_guard lock{changing_};
    return next_ ? settle() : Result<>{};
}

// Whether the record of the change is in the store, and where.
Result<std::optional<std::int64_t>> KeyRotation::leaf_of_change() const {
    constexpr std::int64_t at_once = 1000;
    const evidence::KeyChange wanted = change();
    for (std::int64_t from = next_->since;;) {
        const auto leaves = parts_.certificates.leaves(from, at_once);
        if (!leaves) return std::unexpected(leaves.error());
        for (const Leaf& leaf : *leaves) {
            const auto record = evidence::read_record(leaf.payload);
            if (!record || record->kind != evidence::RecordKind::log_key_rotated) continue;
            if (const auto found = evidence::key_change_of(*record); found && *found == wanted) return leaf.index;
        }
        if (std::cmp_less(leaves->size(), at_once)) return std::nullopt;
        from += at_once;
    }
}

Result<> KeyRotation::settle() {
    const auto leaf = leaf_of_change();
    if (!leaf) return std::unexpected(leaf.error());
    if (*leaf) return complete(**leaf);
    parts_.publisher.cosign(std::nullopt);
    if (auto gone = files_.abandon(); !gone) return gone;
    next_.reset();
    parts_.log.warning("a change of the log's key was cut short before it was recorded: the log keeps its key");
    return {};
}

Result<> KeyRotation::complete(std::int64_t leaf) {
    const auto until = std::chrono::steady_clock::now() + published_within;
    while (std::cmp_less_equal(parts_.publisher.published(), leaf)) {
        if (std::chrono::steady_clock::now() > until)
            return fail(Code::unavailable,
                        fmt::format("entry {}, which changes the log's key, is not published yet", leaf),
                        "see why the log is not published; ask again, and the change goes on from there");
        std::this_thread::sleep_for(std::chrono::milliseconds{10});
    }
    auto certificate = parts_.certificates.of_leaf(leaf);
    if (!certificate) return std::unexpected(certificate.error());
    evidence::KeyHistory with = [&] {
        const std::lock_guard lock{mutex_};
        return history_;
    }();
    with.rotations.push_back(*std::move(certificate));
    const evidence::VerifierKey after = change().after;
    // Nothing is kept that others would not believe.
    const auto believed = evidence::keys_of(with, key());
    if (!believed) return std::unexpected(believed.error());
    invariant(believed->newest() == after, "the history ends with the key that follows");
    if (auto kept = files_.keep(with); !kept) return kept;
    if (auto forward = files_.roll_forward(); !forward) return forward;
    if (auto changed = parts_.publisher.change_key(); !changed) return changed;
    parts_.certificates.trust(after);
    parts_.proofs.trust(after);
    next_.reset();
    const std::lock_guard lock{mutex_};
    key_ = after;
    history_ = std::move(with);
    parts_.log.info("the log has another key", {{"key", print(after)}, {"leaf", leaf}});
    return {};
}

Result<evidence::VerifierKey> KeyRotation::rotate(const std::string& actor) {
    const std::unique_lock lock{changing_, std::try_to_lock};
    if (!lock) return fail(Code::conflict, "the log's key is being changed", "ask again when that is done");
    if (next_) {  // an earlier attempt had to stop on its way
        const std::string before = print(key());
        if (auto settled = settle(); !settled) return std::unexpected(settled.error());
        if (print(key()) != before) return key();
    }
    const auto seed = fresh_seed();
    if (!seed) return std::unexpected(seed.error());
    const auto size = parts_.certificates.committed();
    if (!size) return std::unexpected(size.error());
    auto begun = files_.begin(*seed, *size);
    if (!begun) return std::unexpected(begun.error());
    next_ = *std::move(begun);
    parts_.certificates.introduce_lab_by(next_->key);
    parts_.publisher.cosign(next_->key);
    const evidence::KeyChange wanted = change();
    const Answer answer =
        parts_.loop.ask(actor, command::RotateLogKey{.before = print(wanted.before), .after = print(wanted.after)});
    if (!answer.outcome) {
        if (auto settled = settle(); !settled) return std::unexpected(settled.error());
        if (key() != wanted.after) return std::unexpected(answer.outcome.error());
        return key();
    }
    if (auto settled = settle(); !settled) return std::unexpected(settled.error());
    if (key() != wanted.after)
        return fail(Code::unavailable, "the change of the log's key was not recorded", "ask again");
    return key();
}

}  // namespace bulkhead::shell
