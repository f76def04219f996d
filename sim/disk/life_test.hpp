// What a store should hold, kept beside it by a model that shares no code with it, and one control plane's life with
// both: it commits, is cut short, comes back, and must find everything that was acknowledged.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "bulkhead/store/store.hpp"
#include "sim/disk/disk.hpp"

namespace bulkhead::sim {

using store::Options;
using store::Position;
using store::Store;

inline constexpr auto tables = words(Table{}).size();
inline const std::string path = "/var/lib/bulkhead/state.db";

inline Options on(const Disk& disk, int checkpoint_pages = 12) {
    return {.path = path,
            .vfs = disk.vfs(),
            .checkpoint_pages = checkpoint_pages,
            .secret_if_new = "0123456789abcdef0123456789abcdef"};
}

// What a store should hold, kept beside it.
struct Model {
    Position position;
    std::map<std::pair<Table, std::int64_t>, std::string> rows;
    std::vector<Leaf> leaves;
    friend bool operator==(const Model&, const Model&) = default;

    void apply(const Batch& batch) {
        for (const Row& row : batch.rows) {
            if (row.erased)
                rows.erase({row.table, row.key});
            else
                rows[{row.table, row.key}] = row.body;
        }
        leaves.insert(leaves.end(), batch.leaves.begin(), batch.leaves.end());
        position.clock = batch.clock;
        position.log_size = static_cast<std::int64_t>(leaves.size());
    }
};

inline std::string random_bytes(Rng& rng, std::uint64_t size) {
    std::string bytes(size, '\0');
    for (char& byte : bytes) byte = static_cast<char>(rng.next());
    return bytes;
}

inline Batch random_batch(Rng& rng, const Model& model) {
    Batch batch{.epoch = model.position.epoch, .clock = model.position.clock + Duration{rng.between(0, 5000)}};
    for (auto rows = rng.below(5); rows > 0; --rows) {
        Row row{static_cast<Table>(rng.below(tables)), rng.between(-3, 20)};
        row.erased = rng.chance(200);
        if (!row.erased) row.body = random_bytes(rng, rng.chance(50) ? rng.below(12'000) : rng.below(900));
        batch.rows.push_back(std::move(row));
    }
    for (auto leaves = rng.below(3); leaves > 0; --leaves) {
        const auto index = static_cast<std::int64_t>(model.leaves.size() + batch.leaves.size());
        Leaf leaf{index, random_bytes(rng, 16), random_bytes(rng, rng.below(700))};
        leaf.entry = sha256({leaf.salt, leaf.payload});
        batch.leaves.push_back(std::move(leaf));
    }
    return batch;
}

inline Result<Model> read_back(const Store& store) {
    Model model;
    const Result<Position> position = store.load([&](Row&& row) -> Result<> {
        model.rows[{row.table, row.key}] = std::move(row.body);
        return {};
    });
    if (!position) return std::unexpected(position.error());
    model.position = *position;
    auto leaves = store.leaves(0, 1'000'000);
    if (!leaves) return std::unexpected(leaves.error());
    model.leaves = std::move(*leaves);
    return model;
}

inline std::string words_of(const Error& error) { return fmt::format("{} (try: {})", error.what, error.remedy); }

// One control plane's life with a store: what was acknowledged, and what was under way when it stopped.
struct Life {
    Model acknowledged;
    std::optional<Model> under_way;

    // True: all steps done. False: something failed, and what it was may be there or not.
    bool work(Store& store, Rng& rng, int steps) {
        under_way = acknowledged;
        ++under_way->position.epoch;
        if (!store.raise_epoch()) return false;
        acknowledged = *under_way;
        for (int step = 0; step < steps; ++step) {
            const Batch batch = random_batch(rng, acknowledged);
            under_way = acknowledged;
            under_way->apply(batch);
            if (!store.commit(batch)) return false;
            acknowledged = *under_way;
        }
        under_way.reset();
        return true;
    }

    // Whatever was acknowledged is there; what was under way is there whole or not at all. Goes on from what is there.
    void must_be_in(const Store& store) {
        const Result<Model> found = read_back(store);
        ASSERT_TRUE(found) << words_of(found.error());
        if (under_way && *found == *under_way) acknowledged = *under_way;
        under_way.reset();
        ASSERT_EQ(found->position, acknowledged.position);
        ASSERT_TRUE(*found == acknowledged) << "rows or leaves are not those that were acknowledged";
        const auto complaints = store.check();
        ASSERT_TRUE(complaints) << words_of(complaints.error());
        ASSERT_TRUE(complaints->empty()) << complaints->front();
    }
};

}  // namespace bulkhead::sim
