// The Merkle tree of RFC 6962 and RFC 9162 over SHA-256: roots, inclusion proofs, consistency proofs. Leaves and nodes
// are hashed under different prefixes, so that nobody can pass a node off as a leaf.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "bulkhead/base/hash.hpp"
#include "bulkhead/base/result.hpp"

namespace bulkhead::evidence {

Hash leaf_hash(std::string_view entry);
Hash node_hash(const Hash& left, const Hash& right);
Hash empty_root();

// The right edge of a growing tree: the roots of its complete subtrees, largest first, one for each bit of the size.
// Enough to go on appending and to know the root; a few hundred bytes whatever the size.
class Frontier {
public:
    Frontier() = default;
    // What size() and subtrees() gave; refused unless there is one hash for each bit of the size.
    static Result<Frontier> restore(std::uint64_t size, std::vector<Hash> subtrees);

    // `completed` hears of every subtree that this leaf (a leaf_hash) completes, itself at level 0 first.
    void append(const Hash& leaf, const std::function<void(unsigned level, const Hash& root)>& completed = {});
    Hash root() const;
    std::uint64_t size() const { return size_; }
    const std::vector<Hash>& subtrees() const { return subtrees_; }

    friend bool operator==(const Frontier&, const Frontier&) = default;

private:
    std::uint64_t size_ = 0;
    std::vector<Hash> subtrees_;
};

// The root of the complete subtree over leaves [index << level, (index + 1) << level), from wherever those are kept.
using SubtreeReader = std::function<Result<Hash>(unsigned level, std::uint64_t index)>;

Result<Hash> root_of(std::uint64_t size, const SubtreeReader& subtree);

// The siblings from the leaf up to the root of the tree of that size.
Result<std::vector<Hash>> prove_inclusion(std::uint64_t index, std::uint64_t size, const SubtreeReader& subtree);
// That the tree of the newer size continues the tree of the older one. The older size is at least 1: an empty tree
// is continued by any tree, and a proof of that would prove nothing.
struct Sizes {
    std::uint64_t older = 0, newer = 0;
};
Result<std::vector<Hash>> prove_consistency(Sizes sizes, const SubtreeReader& subtree);

// The leaf with this hash is at this index of the tree with this size and root.
struct InclusionClaim {
    std::uint64_t index = 0, size = 0;
    Hash leaf{}, root{};
};
Result<> verify_inclusion(const InclusionClaim& claim, std::span<const Hash> proof);

struct ConsistencyClaim {
    Sizes sizes;
    Hash older_root{}, newer_root{};
};
Result<> verify_consistency(const ConsistencyClaim& claim, std::span<const Hash> proof);

}  // namespace bulkhead::evidence
