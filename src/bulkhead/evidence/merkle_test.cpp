#include "bulkhead/evidence/merkle.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <boost/json.hpp>
#include <fstream>
#include <optional>
#include <sstream>

namespace bulkhead::evidence {
namespace {

namespace json = boost::json;

std::optional<json::value> read_json(const std::string& name) {
    std::ifstream file{std::string{BULKHEAD_SHARED_DIR} + "/data/tlog/" + name};
    if (!file) return std::nullopt;
    std::ostringstream text;
    text << file.rdbuf();
    return json::parse(text.str());
}

std::string text(const json::value& value) { return std::string{value.as_string()}; }
std::string hex(const Hash& hash) { return to_hex(bytes_of(hash)); }
Hash from_hex_text(const json::value& value) { return hash_from(from_hex(text(value)).value()).value(); }

std::vector<Hash> hashes(const json::value& list) {
    std::vector<Hash> out;
    for (const json::value& item : list.as_array()) out.push_back(from_hex_text(item));
    return out;
}

// A tree kept whole, straight from the definition in RFC 6962 section 2.1, to compare with.
struct WholeTree {
    std::vector<Hash> leaves;

    Hash root(std::size_t begin, std::size_t end) const {
        if (begin == end) return empty_root();
        if (end - begin == 1) return leaves[begin];
        std::size_t k = 1;
        while (k * 2 < end - begin) k *= 2;
        return node_hash(root(begin, begin + k), root(begin + k, end));
    }
    Hash root(std::size_t size) const { return root(0, size); }
    SubtreeReader reader() const {
        return [this](unsigned level, std::uint64_t index) -> Result<Hash> {
            const std::size_t begin = index << level, end = (index + 1) << level;
            if (end > leaves.size()) return fail(Code::not_found, "beyond the tree");
            return root(begin, end);
        };
    }
};

WholeTree numbered(std::size_t size) {
    WholeTree tree;
    for (std::size_t i = 0; i < size; ++i) tree.leaves.push_back(leaf_hash("entry " + std::to_string(i)));
    return tree;
}

TEST(Merkle, agrees_with_every_published_vector) {
    const auto file = read_json("rfc6962-vectors.json");
    if (!file) GTEST_SKIP() << "shared/data/tlog is not here";
    const json::object& facts = file->as_object();
    WholeTree tree;
    Frontier frontier;
    const json::array& inputs = facts.at("leaf_inputs").as_array();
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        EXPECT_EQ(hex(frontier.root()), text(facts.at("roots_by_size").at(i)));
        tree.leaves.push_back(leaf_hash(from_hex(text(inputs[i])).value()));
        EXPECT_EQ(hex(tree.leaves.back()), text(facts.at("leaf_hashes").at(i)));
        frontier.append(tree.leaves.back());
    }
    EXPECT_EQ(hex(frontier.root()), text(facts.at("roots_by_size").at(inputs.size())));

    std::size_t checked = 0;
    for (const json::value& fact : facts.at("inclusion").as_array()) {
        const auto index = fact.at("index").to_number<std::uint64_t>();
        const auto size = fact.at("size").to_number<std::uint64_t>();
        const auto proof = hashes(fact.at("path"));
        EXPECT_EQ(prove_inclusion(index, size, tree.reader()), proof) << index << " of " << size;
        EXPECT_TRUE(verify_inclusion({index, size, tree.leaves[index], tree.root(size)}, proof));
        ++checked;
    }
    EXPECT_EQ(checked, 36u);
    checked = 0;
    for (const json::value& fact : facts.at("consistency").as_array()) {
        const Sizes sizes{fact.at("size1").to_number<std::uint64_t>(), fact.at("size2").to_number<std::uint64_t>()};
        const auto proof = hashes(fact.at("path"));
        EXPECT_EQ(prove_consistency(sizes, tree.reader()), proof) << sizes.older << " to " << sizes.newer;
        EXPECT_TRUE(verify_consistency({sizes, tree.root(sizes.older), tree.root(sizes.newer)}, proof));
        ++checked;
    }
    EXPECT_EQ(checked, 36u);
}

// In the probes null is an empty list, and a hash of another length is one that no caller could build. Only the roots
// of consistency probes are sometimes words ("don't care 2"); a hash stands in for each, so that the verifier has to
// decide.
std::optional<Hash> probe_hash(const json::value& value) {
    const auto bytes = from_base64(text(value));
    return bytes ? hash_from(*bytes) : std::nullopt;
}

std::optional<std::vector<Hash>> probe_proof(const json::value& value) {
    std::vector<Hash> out;
    if (value.is_null()) return out;
    for (const json::value& item : value.as_array()) {
        const auto hash = probe_hash(item);
        if (!hash) return std::nullopt;
        out.push_back(*hash);
    }
    return out;
}

bool inclusion_probe(const json::value& probe) {
    const auto leaf = probe_hash(probe.at("leafHash")), root = probe_hash(probe.at("root"));
    const auto proof = probe_proof(probe.at("proof"));
    if (!leaf || !root || !proof) return false;
    return verify_inclusion({probe.at("leafIdx").to_number<std::uint64_t>(),
                             probe.at("treeSize").to_number<std::uint64_t>(), *leaf, *root},
                            *proof)
        .has_value();
}

bool consistency_probe(const json::value& probe) {
    const auto root = [&](std::string_view name) {
        return probe_hash(probe.at(name)).value_or(sha256(text(probe.at(name))));
    };
    const auto proof = probe_proof(probe.at("proof"));
    if (!proof) return false;
    const Sizes sizes{probe.at("size1").to_number<std::uint64_t>(), probe.at("size2").to_number<std::uint64_t>()};
    return verify_consistency({sizes, root("root1"), root("root2")}, *proof).has_value();
}

TEST(Merkle, accepts_and_refuses_every_probe_as_the_reference_does) {
    const auto file = read_json("proof-probes.json");
    if (!file) GTEST_SKIP() << "shared/data/tlog is not here";
    std::size_t probes = 0, accepted = 0;
    const auto check = [&](const json::value& probe, bool ok) {
        EXPECT_EQ(ok, !probe.at("wantErr").as_bool()) << text(probe.at("file")) << ": " << text(probe.at("desc"));
        ++probes;
        accepted += ok ? 1u : 0u;
    };
    for (const json::value& probe : file->at("inclusion").as_array()) check(probe, inclusion_probe(probe));
    for (const json::value& probe : file->at("consistency").as_array()) check(probe, consistency_probe(probe));
    EXPECT_EQ(probes, 196u);
    EXPECT_EQ(accepted, 12u);
}

TEST(Merkle, proves_every_leaf_and_every_pair_of_sizes_up_to_70) {
    const WholeTree tree = numbered(70);
    for (std::uint64_t size = 1; size <= 70; ++size) {
        EXPECT_EQ(root_of(size, tree.reader()), tree.root(size));
        for (std::uint64_t index = 0; index < size; ++index) {
            const auto proof = prove_inclusion(index, size, tree.reader()).value();
            EXPECT_TRUE(verify_inclusion({index, size, tree.leaves[index], tree.root(size)}, proof));
        }
        for (std::uint64_t older = 1; older <= size; ++older) {
            const auto proof = prove_consistency({older, size}, tree.reader()).value();
            EXPECT_TRUE(verify_consistency({{older, size}, tree.root(older), tree.root(size)}, proof))
                << older << " to " << size;
        }
    }
}

TEST(Merkle, a_changed_proof_never_verifies) {
    const WholeTree tree = numbered(37);
    const auto spoil = [](std::vector<Hash> proof, std::size_t at) {
        proof[at][at % 32] ^= 1;
        return proof;
    };
    for (std::uint64_t index = 0; index < 37; ++index) {
        const InclusionClaim claim{index, 37, tree.leaves[index], tree.root(37)};
        const auto proof = prove_inclusion(index, 37, tree.reader()).value();
        for (std::size_t at = 0; at < proof.size(); ++at) EXPECT_FALSE(verify_inclusion(claim, spoil(proof, at)));
        EXPECT_FALSE(verify_inclusion({(index + 1) % 37, 37, claim.leaf, claim.root}, proof));
        auto longer = proof;
        longer.push_back(claim.root);
        EXPECT_FALSE(verify_inclusion(claim, longer));
        EXPECT_FALSE(verify_inclusion(claim, std::span{proof}.first(proof.size() - 1)));
    }
    for (std::uint64_t older = 1; older < 37; ++older) {
        const ConsistencyClaim claim{{older, 37}, tree.root(older), tree.root(37)};
        const auto proof = prove_consistency(claim.sizes, tree.reader()).value();
        for (std::size_t at = 0; at < proof.size(); ++at) EXPECT_FALSE(verify_consistency(claim, spoil(proof, at)));
        EXPECT_FALSE(verify_consistency({claim.sizes, tree.root(older - 1), claim.newer_root}, proof));
    }
}

TEST(Merkle, nothing_is_said_about_an_empty_older_tree) {
    const WholeTree tree = numbered(4);
    EXPECT_EQ(prove_consistency({0, 4}, tree.reader()).error().code, Code::invalid);
    EXPECT_EQ(verify_consistency({{0, 0}, empty_root(), empty_root()}, {}).error().code, Code::invalid);
    EXPECT_EQ(verify_consistency({{5, 4}, tree.root(4), tree.root(4)}, {}).error().code, Code::invalid);
    EXPECT_EQ(prove_inclusion(4, 4, tree.reader()).error().code, Code::not_found);
}

TEST(Merkle, a_node_cannot_pass_for_a_leaf) {
    const WholeTree tree = numbered(2);
    const std::string both = std::string{bytes_of(tree.leaves[0])} + std::string{bytes_of(tree.leaves[1])};
    EXPECT_NE(leaf_hash(both), node_hash(tree.leaves[0], tree.leaves[1]));
}

TEST(Merkle, a_refusal_says_what_does_not_fit) {
    const WholeTree tree = numbered(3);
    const auto proof = prove_inclusion(0, 3, tree.reader()).value();
    EXPECT_NE(verify_inclusion({0, 3, tree.leaves[1], tree.root(3)}, proof).error().what.find("gives root"),
              std::string::npos);
    EXPECT_EQ(verify_inclusion({0, 3, tree.leaves[0], tree.root(3)}, {}).error().what,
              "the inclusion proof has 0 hashes, which is not what these sizes need");
    EXPECT_EQ(verify_inclusion({3, 3, tree.leaves[0], tree.root(3)}, {}).error().what,
              "a tree of 3 leaves has no leaf 3");
}

TEST(Frontier, goes_on_after_being_kept_and_restored) {
    const WholeTree tree = numbered(300);
    Frontier frontier;
    for (std::size_t i = 0; i < 300; ++i) {
        EXPECT_EQ(frontier.subtrees().size(), static_cast<std::size_t>(std::popcount(i)));
        frontier = Frontier::restore(frontier.size(), frontier.subtrees()).value();
        frontier.append(tree.leaves[i]);
        EXPECT_EQ(frontier.root(), tree.root(i + 1));
    }
    EXPECT_EQ(Frontier::restore(3, {Hash{}}).error().code, Code::invalid);
    EXPECT_EQ(Frontier::restore(0, {Hash{}}).error().code, Code::invalid);
}

TEST(Frontier, tells_of_every_subtree_as_it_is_completed) {
    const WholeTree tree = numbered(64);
    Frontier frontier;
    std::size_t told = 0;
    for (std::size_t i = 0; i < 64; ++i)
        frontier.append(tree.leaves[i], [&](unsigned level, const Hash& root) {
            const std::size_t end = i + 1, begin = end - (std::size_t{1} << level);
            EXPECT_EQ(root, tree.root(begin, end));
            ++told;
        });
    EXPECT_EQ(told, 127u);
}

RC_GTEST_PROP(Merkle, large_sizes_prove_like_small_ones, ()) {
    // A tree of equal leaves needs one hash for each level, so that even 2^60 leaves fit.
    std::vector<Hash> of_level{leaf_hash("same")};
    for (int i = 1; i < 64; ++i) of_level.push_back(node_hash(of_level.back(), of_level.back()));
    const SubtreeReader reader = [&](unsigned level, std::uint64_t) -> Result<Hash> { return of_level[level]; };
    const auto size = *rc::gen::inRange<std::uint64_t>(1, std::uint64_t{1} << 62);
    const auto older = *rc::gen::inRange<std::uint64_t>(1, size + 1);
    const auto index = older - 1;
    const Hash root = root_of(size, reader).value();
    RC_ASSERT(verify_inclusion({index, size, of_level[0], root}, prove_inclusion(index, size, reader).value()));
    RC_ASSERT(verify_consistency({{older, size}, root_of(older, reader).value(), root},
                                 prove_consistency({older, size}, reader).value()));
}

}  // namespace
}  // namespace bulkhead::evidence
