#include "bulkhead/shell/log_proofs.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <iterator>

namespace bulkhead::shell {

namespace {

std::uint64_t first_bytes(std::string_view entry) {
    std::uint64_t number = 0;
    std::memcpy(&number, entry.data(), std::min(entry.size(), sizeof number));
    return number;
}

std::unexpected<Error> beyond(std::uint64_t wanted, std::uint64_t size) {
    return fail(Code::not_found,
                fmt::format("the log is published up to {} entries, and {} were asked for", size, wanted),
                "read /v1/log/checkpoint for its size");
}

}  // namespace

Result<LogProofs> LogProofs::open(const std::string& tiles, evidence::VerifierKey log) {
    auto reader = audit::TileReader::open(tiles);
    if (!reader) return std::unexpected(reader.error());
    return LogProofs{*std::move(reader), std::move(log)};
}

void LogProofs::trust(evidence::VerifierKey log) {
    const std::lock_guard lock{mutex_};
    log_ = std::move(log);
}

Result<LogProofs::Newest> LogProofs::newest() {
    const evidence::VerifierKey log = [&] {
        const std::lock_guard lock{mutex_};
        return log_;
    }();
    auto note = tiles_.note();
    if (!note) return std::unexpected(note.error());
    auto checkpoint = evidence::open_checkpoint(*note, log);
    if (!checkpoint) return std::unexpected(checkpoint.error());
    return Newest{*std::move(note), *std::move(checkpoint)};
}

Result<Hash> LogProofs::root_at(evidence::Sizes sizes, const Newest& newest) const {
    if (sizes.older == newest.checkpoint.size) return newest.checkpoint.root;
    const auto frontier = tiles_.frontier(sizes);
    if (!frontier) return std::unexpected(frontier.error());
    return frontier->root();
}

Result<LogProofs::Inclusion> LogProofs::inclusion(std::uint64_t index, std::optional<std::uint64_t> size) {
    const auto known = newest();
    if (!known) return std::unexpected(known.error());
    const std::uint64_t published = known->checkpoint.size;
    if (size.value_or(0) > published) return beyond(*size, published);
    Inclusion out{.size = size.value_or(published)};
    if (index >= out.size) return beyond(index + 1, out.size);
    const auto root = root_at({out.size, published}, *known);
    if (!root) return std::unexpected(root.error());
    out.root = *root;
    auto entry = tiles_.entry(index, published);
    if (!entry) return std::unexpected(entry.error());
    out.entry = *std::move(entry);
    auto hashes = tiles_.prove(index, out.size);
    if (!hashes) return std::unexpected(hashes.error());
    out.proof = {.extra = {}, .index = index, .hashes = *std::move(hashes), .checkpoint = {}};
    if (out.size == published) out.proof.checkpoint = known->note;
    return out;
}

Result<LogProofs::Consistency> LogProofs::consistency(std::uint64_t from, std::optional<std::uint64_t> to) {
    const auto known = newest();
    if (!known) return std::unexpected(known.error());
    const std::uint64_t published = known->checkpoint.size, newer = to.value_or(published);
    if (std::max(from, newer) > published) return beyond(std::max(from, newer), published);
    Consistency out{.sizes = {from, newer}};
    auto hashes = tiles_.prove_consistency(out.sizes);
    if (!hashes) return std::unexpected(hashes.error());
    out.hashes = *std::move(hashes);
    const auto older_root = root_at({from, published}, *known), newer_root = root_at({newer, published}, *known);
    if (!older_root || !newer_root) return std::unexpected(!older_root ? older_root.error() : newer_root.error());
    out.older_root = *older_root;
    out.newer_root = *newer_root;
    if (newer == published) out.checkpoint = known->note;
    return out;
}

Result<std::uint64_t> LogProofs::index_of(const Hash& entry) {
    const auto known = newest();
    if (!known) return std::unexpected(known.error());
    const std::lock_guard lock{mutex_};
    if (const std::size_t before = places_.size(); before < known->checkpoint.size) {
        std::vector<std::pair<std::uint64_t, std::uint64_t>> more;
        const auto read = tiles_.each_entry(
            before, known->checkpoint.size,
            [&](std::uint64_t index, const std::string& bytes) { more.emplace_back(first_bytes(bytes), index); });
        if (!read) return std::unexpected(read.error());
        std::ranges::sort(more);
        std::vector<std::pair<std::uint64_t, std::uint64_t>> all;
        all.reserve(places_.size() + more.size());
        std::ranges::merge(places_, more, std::back_inserter(all));
        places_ = std::move(all);
    }
    const std::uint64_t first = first_bytes(bytes_of(entry));
    for (auto at = std::ranges::lower_bound(places_, std::pair{first, std::uint64_t{0}});
         at != places_.end() && at->first == first; ++at) {
        const auto there = tiles_.entry(at->second, known->checkpoint.size);
        if (!there) return std::unexpected(there.error());
        if (*there == bytes_of(entry)) return at->second;
    }
    return fail(Code::not_found, fmt::format("the log has no entry {}", to_hex(bytes_of(entry))),
                "an entry is SHA-256 over salt and payload; it may not be published yet");
}

}  // namespace bulkhead::shell
