// Backups, and the day somebody puts back an old one.
#include <fmt/core.h>

#include <algorithm>

#include "sim/world_state.hpp"

namespace bulkhead::sim {

void World::back_up() {
    if (spec_.mishaps.restore.ms == 0 || is_calm()) return;
    at(about(Duration{1'800'000}), Happening::backup);
    Server* server = leader();
    if (server == nullptr) return;
    if (const auto made = server->store->backup("backup.db"); made)
        backup_ = Backup{checkers_.remember(), gone_};
    else
        checkers_.probe(fmt::format("backup refused: {}", code_name(made.error().code)));
}

void World::restore(std::uint32_t) {
    if (!backup_) return;
    for (std::uint32_t i = 0; i < servers_.size(); ++i)
        if (servers_[i].store) stop_server(i);
    disk_.kill_processes();
    disk_.heal();
    in_doubt_.reset();
    const store::Options target{.path = "bulkhead.db", .vfs = disk_.vfs()};
    if (const auto copied = store::Store::copy_from("backup.db", target, store::Store::Existing::replace); !copied) {
        checkers_.probe(fmt::format("restore refused: {}", copied.error().what));
        at(5000, Happening::server_starts, 0);
        return;
    }
    fault("restored from an old backup");
    // The published log is ahead of the backup; it goes on from where it was, not from where the backup was.
    const std::vector<Hash> entries = checkers_.entries();
    {
        auto store = store::Store::open(target);
        if (!store) return checkers_.impossible(4, "a restored store cannot be opened: " + store.error().what);
        const std::size_t have = backup_->memory->log_size;
        if (entries.size() > have)
            if (auto imported =
                    store->import_lost_leaves(static_cast<std::int64_t>(have), std::span{entries}.subspan(have));
                !imported)
                checkers_.impossible(8, "the published log cannot be taken in: " + imported.error().what);
    }
    checkers_.restored(*backup_->memory);
    // Callers start over: whatever they wanted gone, and is there again, they ask for again.
    for (const std::string& name : gone_)
        if (!backup_->gone.contains(name)) at(rng_.between(10'000, 60'000), Happening::forget, 0, names_.put(name));
    gone_ = backup_->gone;
    for (Agent& agent : agents_) agent.opened_at = std::max(agent.opened_at, now_);
    epoch_floor_ = 0;
    start_server(0, true);
}

}  // namespace bulkhead::sim
