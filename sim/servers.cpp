// The control planes: one leads, another may believe it does.
#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "sim/world_state.hpp"

namespace bulkhead::sim {

std::string_view code_name(Code code) {
    constexpr std::array<std::string_view, 8> names{"invalid",   "not-found",   "conflict", "denied",
                                                    "exhausted", "unavailable", "timeout",  "corrupt"};
    return names[static_cast<std::size_t>(code)];
}

Server* World::leader() {
    for (std::uint32_t i = 0; i < servers_.size(); ++i)
        if (servers_[(preferred_ + i) % servers_.size()].core) return &servers_[(preferred_ + i) % servers_.size()];
    return nullptr;
}

Instant World::core_time(Server& server) {
    server.clock = std::max(server.clock, now_ + server.skew);
    return {epoch_of_time + server.clock};
}

void World::stop_server(std::uint32_t index) {
    Server& server = servers_[index];
    server.core.reset();
    server.store.reset();
    server.inbox.clear();
    server.turn_due = false;
    // Callers that were waiting never hear: what they asked for may or may not have happened.
    std::erase_if(asked_, [&](const auto& entry) {
        if (entry.second.server != index) return false;
        if (entry.second.what == Asked::What::remove) checkers_.in_doubt(entry.second.name);
        return true;
    });
    for (const auto& [session, its] : server.sessions)
        if (agents_[its.agent].session == session)
            agents_[its.agent].heard_at = std::min(agents_[its.agent].heard_at, now_ - rng_.between(0, 20'000));
    server.sessions.clear();
    ++server.life;
}

void World::restart_later(std::uint32_t index) {
    stop_server(index);
    at(rng_.between(500, 20'000), Happening::server_starts, index);
}

void World::start_server(std::uint32_t index, bool restored) {
    Server& server = servers_[index];
    if (server.core) return;
    checkers_.disturbed();
    auto opened =
        store::Store::open({.path = "bulkhead.db", .vfs = disk_.vfs(), .secret_if_new = std::string(32, 's')});
    const auto again = [&](const Error& error) {
        checkers_.probe(fmt::format("server could not start: {}", code_name(error.code)));
        commit_failed(index, error.code);
    };
    if (!opened) return again(opened.error());
    server.store.emplace(std::move(*opened));
    const auto epoch = server.store->raise_epoch(epoch_floor_);
    if (!epoch) return again(epoch.error());
    epoch_floor_ = std::max(epoch_floor_, *epoch - 1);
    CoreSettings settings{
        .reboot_within = Duration{300'000}, .restored = restored, .simulated_fleet = true, .planted = spec_.planted};
    settings.secret = server.store->secret();
    const auto position = server.store->position();
    if (!position) return again(position.error());
    server.core.emplace(*epoch, position->log_size, settings);
    Rows rows;
    std::string bad_row;
    const auto loaded = server.store->load([&](Row&& row) -> Result<> {
        if (auto read = server.core->load(row); !read) bad_row = read.error().what;
        rows[{row.table, row.key}] = std::move(row.body);
        return {};
    });
    if (!loaded) return again(loaded.error());
    if (!bad_row.empty()) checkers_.impossible(4, "a row cannot be read back: " + bad_row);
    std::vector<Hash> entries;
    const auto leaves = server.store->leaves(0, position->log_size);
    if (!leaves) return again(leaves.error());
    for (const Leaf& leaf : *leaves) entries.push_back(leaf.entry);
    adopt_unknown_commit(rows, entries);
    checkers_.recovered(rows, entries);
    preferred_ = index;
    server.clock = std::max(server.clock, position->clock.ms - epoch_of_time);
    server.inbox.clear();
    if (!commit(index, server.core->start(core_time(server)))) return;
    if (!enrolled_) enrol_everything(index);
    at(1000, Happening::server_tick, index, server.life);
}

// A commit whose answer was lost with the power may have happened, whole; nobody was told either way.
void World::adopt_unknown_commit(const Rows& rows, const std::vector<Hash>& entries) {
    if (!in_doubt_) return;
    const Batch batch = std::move(*in_doubt_);
    in_doubt_.reset();
    const std::size_t known = checkers_.entries().size();
    bool there = entries.size() > known;
    if (batch.leaves.empty())
        there = std::ranges::all_of(batch.rows, [&](const Row& row) {
            const auto found = rows.find({row.table, row.key});
            return row.erased ? found == rows.end() : found != rows.end() && found->second == row.body;
        });
    if (there) {
        checkers_.committed(batch);
        checkers_.probe("a commit survived that nobody was told of");
    }
}

// The disk first; then words. False: the server has stopped on the way.
bool World::commit(std::uint32_t index, Effects effects, bool ticks) {
    Server& server = servers_[index];
    // As in the server's loop: without a commit nobody would say who leads.
    const bool look = !effects.durable() && (ticks || !effects.answers.empty() || effects.epoch_seen != 0);
    if (spec_.planted == Planted::answer_early)
        for (const Answer& answer : effects.answers) answered(answer);
    if (effects.durable() && !make_durable(index, effects)) return false;
    if (look)
        if (const auto newest = server.store->still_newest(server.core->epoch()); !newest) {
            checkers_.probe("a fenced leader found out before it answered, and stopped");
            commit_failed(index, newest.error().code);
            return false;
        }
    tell_agents(index, effects);
    if (spec_.planted != Planted::answer_early)
        for (const Answer& answer : effects.answers) answered(answer);
    if (effects.epoch_seen != 0 && server.core->restoring()) {  // the store is older than what a node has obeyed
        epoch_floor_ = std::max(epoch_floor_, effects.epoch_seen);
        checkers_.probe("a node had obeyed a newer epoch");
        restart_later(index);
        return false;
    }
    return true;
}

bool World::make_durable(std::uint32_t index, Effects& effects) {
    Server& server = servers_[index];
    Batch batch{.epoch = server.core->epoch(), .clock = {epoch_of_time + server.clock}};
    batch.rows = std::move(effects.rows);
    std::int64_t leaf = server.core->log_size() - std::ssize(effects.log);
    for (std::string& payload : effects.log) {
        std::string salt(16, '\0');
        for (char& byte : salt) byte = static_cast<char>(rng_.next());
        const Hash entry = evidence::commit_to(salt, payload);
        batch.leaves.push_back({leaf++, std::move(salt), std::move(payload), entry});
    }
    if (const auto done = server.store->commit(batch); !done) {
        checkers_.probe(fmt::format("commit refused: {}", code_name(done.error().code)));
        if (done.error().code == Code::unavailable || done.error().code == Code::corrupt) in_doubt_ = std::move(batch);
        commit_failed(index, done.error().code);
        return false;
    }
    in_doubt_.reset();
    checkers_.committed(batch);
    return true;
}

void World::tell_agents(std::uint32_t index, const Effects& effects) {
    Server& server = servers_[index];
    for (const Effects::Welcome& welcome : effects.welcomes)
        to_agent(index, welcome.session, WelcomeMessage{server.core->epoch()});
    for (const Effects::ToNode& order : effects.orders) {
        checkers_.ordered(order.node, order.order);
        to_agent(index, order.session, order.order);
    }
    for (const Effects::Acknowledge& ack : effects.acknowledgements) {
        checkers_.acknowledged_report(ack.node, ack.number);
        to_agent(index, ack.session, AckMessage{ack.number});
    }
    for (const Effects::Close& close : effects.closes) {
        to_agent(index, close.session, CloseMessage{close.why});
        server.sessions.erase(close.session);
    }
}

void World::commit_failed(std::uint32_t index, Code code) {
    if (disk_.power_lost()) {
        for (std::uint32_t i = 0; i < servers_.size(); ++i)
            if (servers_[i].store) stop_server(i);
        disk_.crash(rng_);
        at(rng_.between(500, 20'000), Happening::server_starts, index);
        return;
    }
    const bool other_leads = servers_[1 - index].core.has_value();
    if (code == Code::conflict && servers_[index].core && other_leads) {
        checkers_.probe("a fenced leader could not commit, and stopped");
        return stop_server(index);
    }
    restart_later(index);
}

void World::server_turn(std::uint32_t index, std::uint64_t life) {
    Server& server = servers_[index];
    if (!server.core || server.life != life) return;
    server.turn_due = false;
    std::vector<Event> events = std::move(server.inbox);
    server.inbox.clear();
    Effects all;
    const auto add = [&](Effects one) {
        const auto move = [](auto& from, auto& to) { std::ranges::move(from, std::back_inserter(to)); };
        move(one.rows, all.rows);
        move(one.log, all.log);
        move(one.orders, all.orders);
        move(one.welcomes, all.welcomes);
        move(one.acknowledgements, all.acknowledgements);
        move(one.closes, all.closes);
        move(one.answers, all.answers);
        all.epoch_seen = std::max(all.epoch_seen, one.epoch_seen);
    };
    for (const Event& event : events) add(server.core->apply(core_time(server), event));
    const bool ticks =
        std::ranges::any_of(events, [](const Event& event) { return std::holds_alternative<Tick>(event); });
    commit(index, std::move(all), ticks);
}

void World::server_tick(std::uint32_t index, std::uint64_t life) {
    Server& server = servers_[index];
    if (!server.core || server.life != life) return;
    at(1000, Happening::server_tick, index, life);
    server.inbox.emplace_back(Tick{});
    wake(index);
}

void World::wake(std::uint32_t index) {
    Server& server = servers_[index];
    if (server.turn_due || !server.core) return;
    server.turn_due = true;
    at(3, Happening::server_turn, index, server.life);
}

}  // namespace bulkhead::sim
