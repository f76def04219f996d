#include "bulkhead/evidence/merkle.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>

namespace bulkhead::evidence {

namespace {

struct Range {
    std::uint64_t begin = 0, count = 0;
};

// Where RFC 6962 splits n > 1 leaves: the largest power of two smaller than n.
std::uint64_t split(std::uint64_t n) { return std::bit_floor(n - 1); }

// The root over a range that the tree has as one node: it begins at a multiple of its size rounded up to a power of
// two.
Result<Hash> root_over(Range range, const SubtreeReader& subtree) {
    if (std::has_single_bit(range.count)) {
        const auto level = static_cast<unsigned>(std::countr_zero(range.count));
        return subtree(level, range.begin >> level);
    }
    const std::uint64_t k = split(range.count);
    const Result<Hash> left = root_over({range.begin, k}, subtree);
    if (!left) return left;
    const Result<Hash> right = root_over({range.begin + k, range.count - k}, subtree);
    return right ? node_hash(*left, *right) : right;
}

// The ranges are met on the way down, the proof is read on the way up.
Result<std::vector<Hash>> roots_upwards(std::span<const Range> downwards, const SubtreeReader& subtree) {
    std::vector<Hash> hashes;
    hashes.reserve(downwards.size());
    for (auto range = downwards.rbegin(); range != downwards.rend(); ++range) {
        const Result<Hash> root = root_over(*range, subtree);
        if (!root) return std::unexpected(root.error());
        hashes.push_back(*root);
    }
    return hashes;
}

// Two places on one level of the tree, climbing together: the one that is followed, and the last of the level.
struct Climb {
    std::uint64_t at = 0, last = 0;

    void up() {
        at >>= 1;
        last >>= 1;
    }
    // The next sibling stands to the left: of a right child, or of a last node that has been carried up alone.
    bool sibling_is_left() const { return (at & 1) != 0 || at == last; }
    void skip_levels_without_sibling() {
        while ((at & 1) == 0 && at != 0) up();
    }
};

std::string hex(const Hash& hash) { return to_hex(bytes_of(hash)); }

std::unexpected<Error> wrong_root(std::string_view what, const Hash& computed, const Hash& claimed) {
    return fail(Code::corrupt, fmt::format("{} gives root {}, not {}", what, hex(computed), hex(claimed)),
                "the proof, the leaf or the root was changed, or they belong to different trees");
}

std::unexpected<Error> wrong_length(std::string_view what, std::size_t hashes) {
    return fail(Code::corrupt, fmt::format("{} has {} hashes, which is not what these sizes need", what, hashes),
                "ask for the proof again, for these very sizes");
}

}  // namespace

Hash leaf_hash(std::string_view entry) { return sha256({std::string_view{"\0", 1}, entry}); }

Hash node_hash(const Hash& left, const Hash& right) {
    std::array<char, 1 + 2 * sizeof(Hash)> bytes{1};
    std::ranges::copy(right, std::ranges::copy(left, bytes.begin() + 1).out);
    return sha256(std::string_view{bytes.data(), bytes.size()});
}

Hash empty_root() { return sha256(""); }

Result<Frontier> Frontier::restore(std::uint64_t size, std::vector<Hash> subtrees) {
    const auto needed = static_cast<std::size_t>(std::popcount(size));
    if (subtrees.size() != needed)
        return fail(Code::invalid,
                    fmt::format("a tree of {} leaves has {} complete subtrees on its right edge, and {} were given",
                                size, needed, subtrees.size()),
                    "read the edge again, or compute it from the entries");
    Frontier frontier;
    frontier.size_ = size;
    frontier.subtrees_ = std::move(subtrees);
    return frontier;
}

void Frontier::append(const Hash& leaf, const std::function<void(unsigned level, const Hash& root)>& completed) {
    Hash carried = leaf;
    unsigned level = 0;
    if (completed) completed(level, carried);
    for (std::uint64_t rest = size_; (rest & 1) != 0; rest >>= 1) {
        carried = node_hash(subtrees_.back(), carried);
        subtrees_.pop_back();
        if (completed) completed(++level, carried);
    }
    subtrees_.push_back(carried);
    ++size_;
}

Hash Frontier::root() const {
    if (subtrees_.empty()) return empty_root();
    Hash root = subtrees_.back();
    for (std::size_t i = subtrees_.size() - 1; i-- > 0;) root = node_hash(subtrees_[i], root);
    return root;
}

Result<Hash> root_of(std::uint64_t size, const SubtreeReader& subtree) {
    return size == 0 ? empty_root() : root_over({0, size}, subtree);
}

Result<std::vector<Hash>> prove_inclusion(std::uint64_t index, std::uint64_t size, const SubtreeReader& subtree) {
    if (index >= size)
        return fail(Code::not_found, fmt::format("a tree of {} leaves has no leaf {}", size, index),
                    "leaves are counted from 0");
    std::vector<Range> beside;
    for (Range in{0, size}; in.count > 1;) {
        const std::uint64_t k = split(in.count);
        const Range left{in.begin, k}, right{in.begin + k, in.count - k};
        beside.push_back(index < right.begin ? right : left);
        in = index < right.begin ? left : right;
    }
    return roots_upwards(beside, subtree);
}

Result<std::vector<Hash>> prove_consistency(Sizes sizes, const SubtreeReader& subtree) {
    if (sizes.older == 0 || sizes.older > sizes.newer)
        return fail(Code::invalid, fmt::format("no proof leads from {} to {} leaves", sizes.older, sizes.newer),
                    "prove from a tree of at least one leaf to one that is not smaller");
    std::vector<Range> parts;
    Range in{0, sizes.newer};
    while (in.begin + in.count != sizes.older) {
        const std::uint64_t k = split(in.count);
        const Range left{in.begin, k}, right{in.begin + k, in.count - k};
        parts.push_back(sizes.older <= right.begin ? right : left);
        in = sizes.older <= right.begin ? left : right;
    }
    // Where the older tree is one complete subtree, whoever checks knows its root already.
    if (in.begin != 0) parts.push_back(in);
    return roots_upwards(parts, subtree);
}

Result<> verify_inclusion(const InclusionClaim& claim, std::span<const Hash> proof) {
    if (claim.index >= claim.size)
        return fail(Code::invalid, fmt::format("a tree of {} leaves has no leaf {}", claim.size, claim.index),
                    "leaves are counted from 0");
    Climb climb{claim.index, claim.size - 1};
    Hash root = claim.leaf;
    for (const Hash& sibling : proof) {
        if (climb.last == 0) return wrong_length("the inclusion proof", proof.size());
        if (climb.sibling_is_left()) {
            root = node_hash(sibling, root);
            climb.skip_levels_without_sibling();
        } else {
            root = node_hash(root, sibling);
        }
        climb.up();
    }
    if (climb.last != 0) return wrong_length("the inclusion proof", proof.size());
    if (root != claim.root) return wrong_root("the inclusion proof", root, claim.root);
    return {};
}

Result<> verify_consistency(const ConsistencyClaim& claim, std::span<const Hash> proof) {
    const auto [older, newer] = claim.sizes;
    if (older == 0 || older > newer)
        return fail(Code::invalid, fmt::format("nothing leads from {} to {} leaves", older, newer),
                    "compare a tree of at least one leaf with one that is not smaller");
    if (older == newer) {
        if (!proof.empty()) return wrong_length("the consistency proof", proof.size());
        if (claim.older_root != claim.newer_root)
            return wrong_root("the same size", claim.newer_root, claim.older_root);
        return {};
    }
    const bool implied = std::has_single_bit(older);  // the proof begins with the older root, which is not sent
    if (!implied && proof.empty()) return wrong_length("the consistency proof", 0);
    Climb climb{older - 1, newer - 1};
    while ((climb.at & 1) != 0) climb.up();
    Hash old_root = implied ? claim.older_root : proof.front();
    Hash new_root = old_root;
    for (const Hash& sibling : implied ? proof : proof.subspan(1)) {
        if (climb.last == 0) return wrong_length("the consistency proof", proof.size());
        if (climb.sibling_is_left()) {
            old_root = node_hash(sibling, old_root);
            new_root = node_hash(sibling, new_root);
            climb.skip_levels_without_sibling();
        } else {
            new_root = node_hash(new_root, sibling);
        }
        climb.up();
    }
    if (climb.last != 0) return wrong_length("the consistency proof", proof.size());
    if (old_root != claim.older_root)
        return wrong_root("the consistency proof, for the older tree,", old_root, claim.older_root);
    if (new_root != claim.newer_root)
        return wrong_root("the consistency proof, for the newer tree,", new_root, claim.newer_root);
    return {};
}

}  // namespace bulkhead::evidence
