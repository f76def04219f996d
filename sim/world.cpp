#include "sim/world.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <queue>

#include "bulkhead/base/rng.hpp"
#include "bulkhead/codec/load.hpp"
#include "bulkhead/core/core.hpp"
#include "bulkhead/evidence/commitment.hpp"
#include "bulkhead/node/executor.hpp"
#include "bulkhead/node/model.hpp"
#include "bulkhead/store/store.hpp"
#include "sim/disk/disk.hpp"
#include "sim/network.hpp"
#include "sim/tenants.hpp"

namespace bulkhead::sim {

namespace {

constexpr std::int64_t epoch_of_time = 1'800'000'000'000;  // when every simulation begins

enum class Happening : std::uint8_t {
    message,
    operation_done,
    agent_tick,  // heartbeats, reconnects, deadlines
    agent_starts,
    server_turn,
    server_tick,
    server_starts,
    submit,
    forget,  // delete a workload
    operate,
    repair,
    backup,
    mishap,
    heal_disk,
    heal_partition,
    heal_node,
    undo,
    calm,
};

struct Item {
    std::int64_t at = 0;
    std::uint64_t order = 0;
    Happening what{};
    std::uint32_t who = 0;
    std::uint64_t argument = 0;
    bool operator<(const Item& other) const { return std::pair{at, order} > std::pair{other.at, other.order}; }
};

// Things on their way, kept by number.
template <class T>
class Parcels {
public:
    std::uint64_t put(T thing) {
        if (free_.empty()) {
            things_.push_back(std::move(thing));
            return things_.size() - 1;
        }
        const std::uint64_t at = free_.back();
        free_.pop_back();
        things_[at] = std::move(thing);
        return at;
    }
    T take(std::uint64_t at) {
        free_.push_back(at);
        return std::move(things_[at]);
    }

private:
    std::vector<T> things_;
    std::vector<std::uint64_t> free_;
};

struct OperationDone {
    std::uint64_t life = 0;
    Operation operation;
    OperationResult result;
};

struct Agent {
    explicit Agent(NodeModelSpec spec, evidence::SigningKey signing)
        : name(spec.node), model(std::move(spec)), key(std::move(signing)) {}
    std::string name;
    NodeModel model;
    evidence::SigningKey key;
    std::optional<Executor> executor;  // the process; nothing: it is dead
    std::uint64_t life = 0;            // counts processes
    std::string journal;               // durable bytes
    std::uint64_t frames = 0;
    std::uint64_t session = 0;  // open or opening
    std::uint32_t server = 0;
    bool welcomed = false;
    std::uint64_t sent = 0, received = 0;  // in this session
    std::int64_t opened_at = 0, heard_at = 0, beat_at = 0;
    bool cut_off = false;
};

struct Session {
    std::uint32_t agent = 0;
    std::uint64_t sent = 0, received = 0;
};

struct Server {
    std::optional<store::Store> store;
    std::optional<Core> core;
    std::vector<Event> inbox;
    std::map<std::uint64_t, Session> sessions;
    std::int64_t clock = 0, skew = 0;
    bool turn_due = false;
    std::uint64_t life = 0;
};

struct Asked {
    enum class What : std::uint8_t { create, remove, other };
    What what{};
    std::string name;
    std::int64_t run_for = 0;
    std::uint32_t server = 0;
};

class World {
public:
    World(const Spec& spec, std::uint64_t seed, const std::string& trace)
        : spec_{spec}, rng_{seed}, checkers_{tenant_facts(spec.nodes * spec.gpus)} {
        result_.seed = seed;
        checkers_.trace(trace);
        Disk::seed_sqlite(static_cast<std::uint32_t>(rng_.next()));
        agents_.reserve(spec.nodes);
        for (std::uint32_t i = 0; i < spec.nodes; ++i) {
            std::string seed_bytes(32, '\0');
            for (char& byte : seed_bytes) byte = static_cast<char>(rng_.next());
            agents_.emplace_back(node_model_spec(i, spec.gpus), *evidence::SigningKey::from_seed(seed_bytes));
        }
        servers_.resize(2);
        calm_at_ = spec.length.ms - spec.calm.ms;
    }

    RunResult run() {
        at(0, Happening::server_starts, 0);
        for (std::uint32_t i = 0; i < agents_.size(); ++i) at(rng_.between(1000, 20'000), Happening::agent_starts, i);
        at(60'000, Happening::submit);
        at(spec_.between_operators.ms, Happening::operate);
        at(1'200'000, Happening::repair);
        at(600'000, Happening::backup);
        at(calm_at_, Happening::calm);
        arm_mishaps();
        while (!queue_.empty() && queue_.top().at <= spec_.length.ms && checkers_.violations().empty()) {
            const Item item = queue_.top();
            queue_.pop();
            now_ = item.at;
            checkers_.set_time(now_);
            ++result_.events;
            happen(item);
        }
        if (checkers_.violations().empty()) finish();
        result_.simulated_ms = now_;
        result_.probes = checkers_.probes();
        result_.violations = checkers_.violations();
        for (Server& server : servers_) {
            server.core.reset();
            server.store.reset();
        }
        return result_;
    }

private:
    // ---- time ----
    void at(std::int64_t delay, Happening what, std::uint32_t who = 0, std::uint64_t argument = 0) {
        queue_.push({now_ + std::max<std::int64_t>(delay, 0), ++order_, what, who, argument});
    }
    std::int64_t about(Duration mean) {  // exponential, by inverting a uniform draw in integers' reach
        const double uniform = (static_cast<double>(rng_.below(1'000'000)) + 1) / 1'000'001.0;
        return static_cast<std::int64_t>(-std::log(uniform) * static_cast<double>(mean.ms)) + 1;
    }
    void fault(const std::string& kind) { ++result_.faults[kind]; }
    bool is_calm() const { return now_ >= calm_at_; }

    void happen(const Item& item) {
        switch (item.what) {
            case Happening::message:
                return deliver(messages_.take(item.argument));
            case Happening::operation_done:
                return operation_done(item.who, operations_.take(item.argument));
            case Happening::agent_tick:
                return agent_tick(item.who, item.argument);
            case Happening::agent_starts:
                return start_agent(item.who);
            case Happening::server_turn:
                return server_turn(item.who, item.argument);
            case Happening::server_tick:
                return server_tick(item.who, item.argument);
            case Happening::server_starts:
                return start_server(item.who, false);
            case Happening::submit:
                return submit();
            case Happening::forget:
                return forget(names_.take(item.argument));
            case Happening::operate:
                return operate();
            case Happening::repair:
                return repair();
            case Happening::backup:
                return back_up();
            case Happening::mishap:
                return mishap(item.who);
            case Happening::heal_disk:
                disk_.heal();
                return;
            case Happening::heal_partition:
                agents_[item.who].cut_off = false;
                return;
            case Happening::heal_node:
                agents_[item.who].model.set_slowness(1000);
                return;
            case Happening::undo:
                return command(undo_.take(item.argument), {Asked::What::other, {}});
            case Happening::calm:
                return begin_calm();
        }
    }

    // ---- servers ----
    Server* leader() {
        for (std::uint32_t i = 0; i < servers_.size(); ++i)
            if (servers_[(preferred_ + i) % servers_.size()].core) return &servers_[(preferred_ + i) % servers_.size()];
        return nullptr;
    }
    std::uint32_t index_of(const Server& server) const { return static_cast<std::uint32_t>(&server - servers_.data()); }

    void stop_server(std::uint32_t index) {
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

    void restart_later(std::uint32_t index) {
        stop_server(index);
        at(rng_.between(500, 20'000), Happening::server_starts, index);
    }

    void start_server(std::uint32_t index, bool restored) {
        Server& server = servers_[index];
        if (server.core) return;
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
        CoreSettings settings{.restored = restored, .simulated_fleet = true, .planted = spec_.planted};
        settings.secret = server.store->secret();
        const auto position = server.store->position();
        if (!position) return again(position.error());
        server.core.emplace(*epoch, position->log_size, settings);
        std::map<std::pair<Table, std::int64_t>, std::string> rows;
        std::string bad_row;
        const auto loaded = server.store->load([&](Row&& row) -> Result<> {
            if (auto read = server.core->load(row); !read) bad_row = read.error().what;
            rows[{row.table, row.key}] = std::move(row.body);
            return {};
        });
        if (!loaded) return again(loaded.error());
        if (!bad_row.empty()) checkers_.probe("BAD ROW " + bad_row);
        std::vector<Hash> entries;
        const auto leaves = server.store->leaves(0, position->log_size);
        if (!leaves) return again(leaves.error());
        for (const Leaf& leaf : *leaves) entries.push_back(leaf.entry);
        adopt_unknown_commit(server, rows, entries, *leaves);
        checkers_.recovered(rows, entries);
        preferred_ = index;
        server.clock = std::max(server.clock, position->clock.ms - epoch_of_time);
        server.inbox.clear();
        if (!commit(index, server.core->start(core_time(server)))) return;
        if (!enrolled_) enrol_everything(index);
        at(1000, Happening::server_tick, index, server.life);
    }

    // A commit whose answer was lost with the power may have happened, whole; nobody was told either way.
    void adopt_unknown_commit(Server&, const std::map<std::pair<Table, std::int64_t>, std::string>& rows,
                              const std::vector<Hash>& entries, const std::vector<Leaf>&) {
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

    Instant core_time(Server& server) {
        server.clock = std::max(server.clock, now_ + server.skew);
        return {epoch_of_time + server.clock};
    }

    bool commit(std::uint32_t index, Effects effects) {
        Server& server = servers_[index];
        if (spec_.planted == Planted::answer_early)
            for (const Answer& answer : effects.answers) answered(answer);
        if (effects.durable()) {
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
                if (done.error().code == Code::unavailable || done.error().code == Code::corrupt)
                    in_doubt_ = std::move(batch);
                commit_failed(index, done.error().code);
                return false;
            }
            in_doubt_.reset();
            checkers_.committed(batch);
        }
        for (const Effects::Welcome& welcome : effects.welcomes)
            to_agent(index, welcome.session, WelcomeMessage{server.core->epoch()});
        for (const Effects::ToNode& order : effects.orders) {
            checkers_.ordered(order.node, order.order);
            to_agent(index, order.session, order.order);
        }
        for (const Effects::Acknowledge& ack : effects.acknowledgements)
            to_agent(index, ack.session, AckMessage{ack.number});
        for (const Effects::Close& close : effects.closes) {
            to_agent(index, close.session, CloseMessage{close.why});
            server.sessions.erase(close.session);
        }
        if (spec_.planted != Planted::answer_early)
            for (const Answer& answer : effects.answers) answered(answer);
        if (effects.epoch_seen != 0) {  // the store is older than what a node has obeyed: a new reign above it
            epoch_floor_ = std::max(epoch_floor_, effects.epoch_seen);
            checkers_.probe("a node had obeyed a newer epoch");
            restart_later(index);
            return false;
        }
        return true;
    }

    static std::string_view code_name(Code code) {
        constexpr std::array<std::string_view, 8> names{"invalid",   "not-found",   "conflict", "denied",
                                                        "exhausted", "unavailable", "timeout",  "corrupt"};
        return names[static_cast<std::size_t>(code)];
    }

    void commit_failed(std::uint32_t index, Code code) {
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

    void server_turn(std::uint32_t index, std::uint64_t life) {
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
        commit(index, std::move(all));
    }

    void server_tick(std::uint32_t index, std::uint64_t life) {
        Server& server = servers_[index];
        if (!server.core || server.life != life) return;
        at(1000, Happening::server_tick, index, life);
        server.inbox.emplace_back(Tick{});
        wake(index);
    }

    void wake(std::uint32_t index) {
        Server& server = servers_[index];
        if (server.turn_due || !server.core) return;
        server.turn_due = true;
        at(3, Happening::server_turn, index, server.life);
    }

    // ---- network ----
    template <class T>
    void to_agent(std::uint32_t index, std::uint64_t session, T what) {
        const auto found = servers_[index].sessions.find(session);
        if (found == servers_[index].sessions.end()) return;
        send({index, found->second.agent, false, session, ++found->second.sent, std::move(what)});
    }
    template <class T>
    void to_server(std::uint32_t agent, T what) {
        Agent& from = agents_[agent];
        send({from.server, agent, true, from.session, ++from.sent, std::move(what)});
    }

    void send(Message message) {
        const Mishaps& mishaps = spec_.mishaps;
        const bool calm = is_calm();
        if (agents_[message.agent].cut_off) return;
        std::int64_t delay = rng_.between(1, 5);
        if (!calm) {
            if (mishaps.lost != 0 && rng_.chance(mishaps.lost)) return fault("message lost");
            if (mishaps.delayed != 0 && rng_.chance(mishaps.delayed)) {
                fault("message delayed");
                delay += rng_.between(100, 15'000);
            }
            if (mishaps.duplicated != 0 && rng_.chance(mishaps.duplicated)) {
                fault("message duplicated");
                at(delay + rng_.between(0, 20'000), Happening::message, 0, messages_.put(message));
            }
        }
        // A stream keeps its order unless something below it fails.
        std::int64_t& earliest = message.to_server ? up_[message.agent] : down_[message.agent];
        const bool reorder = !calm && mishaps.reordered != 0 && rng_.chance(mishaps.reordered);
        if (reorder)
            fault("message reordered");
        else
            earliest = std::max(earliest, now_ + delay);
        at((reorder ? now_ + delay : earliest) - now_, Happening::message, 0, messages_.put(std::move(message)));
    }

    void deliver(Message message) {
        Agent& agent = agents_[message.agent];
        if (agent.cut_off) return;
        if (message.to_server) return deliver_to_server(std::move(message));
        if (!agent.executor || agent.session != message.session || message.sequence <= agent.received) return;
        if (message.sequence != agent.received + 1) return reconnect(message.agent, "gap");
        agent.received = message.sequence;
        agent.heard_at = now_;
        if (const WelcomeMessage* welcome = std::get_if<WelcomeMessage>(&message.what)) {
            Outcome outcome = agent.executor->on_welcome(welcome->epoch);
            if (!outcome.ignored.empty()) {
                checkers_.probe("an agent refused an old epoch");
                return reconnect(message.agent, "old");
            }
            agent.welcomed = true;
            if (!carry(message.agent, std::move(outcome))) return;
            for (Report& report : agent.executor->unacknowledged()) to_server(message.agent, std::move(report));
        } else if (const Order* order = std::get_if<Order>(&message.what)) {
            Outcome outcome = agent.executor->on_order(agent_time(), *order);
            if (!outcome.ignored.empty()) checkers_.probe("an order was ignored");
            carry(message.agent, std::move(outcome));
        } else if (const AckMessage* ack = std::get_if<AckMessage>(&message.what)) {
            carry(message.agent, agent.executor->on_ack(ack->number));
        } else if (std::holds_alternative<CloseMessage>(message.what)) {
            reconnect(message.agent, "closed");
        }
    }

    void deliver_to_server(Message message) {
        Server& server = servers_[message.server];
        if (!server.core) return;
        const std::string& node = agents_[message.agent].name;
        if (std::holds_alternative<Hello>(message.what)) {
            if (server.sessions.contains(message.session)) return;
            server.sessions[message.session] = {.agent = message.agent, .received = message.sequence};
            server.inbox.emplace_back(AgentHello{node, message.session, std::get<Hello>(std::move(message.what))});
            return wake(message.server);
        }
        const auto session = server.sessions.find(message.session);
        if (session == server.sessions.end() || message.sequence <= session->second.received) return;
        if (message.sequence != session->second.received + 1) {
            server.sessions.erase(session);
            server.inbox.emplace_back(AgentGone{node, message.session});
            return wake(message.server);
        }
        session->second.received = message.sequence;
        if (Report* report = std::get_if<Report>(&message.what))
            server.inbox.emplace_back(AgentReport{node, message.session, std::move(*report)});
        else
            server.inbox.emplace_back(AgentHeartbeat{node, message.session});
        wake(message.server);
    }

    // ---- agents ----
    Instant agent_time() const { return {epoch_of_time + now_}; }

    void start_agent(std::uint32_t index) {
        Agent& agent = agents_[index];
        if (agent.executor) return;
        std::vector<JournalRecord> records;
        const auto read = read_journal(agent.journal);
        if (!read) {
            checkers_.probe("JOURNAL DAMAGED " + read.error().what);
            return;
        }
        if (read->dropped_bytes != 0) checkers_.probe("a torn journal was taken up");
        agent.journal.resize(read->sound_bytes);
        agent.frames = read->next_sequence;
        ++agent.life;
        agent.executor.emplace(NodeIdentity{.node = agent.name, .grade = Grade::simulated}, agent.key, read->records);
        agent.session = 0;
        agent.welcomed = false;
        if (!carry(index, agent.executor->resume(agent_time(), agent.model.boot_id()))) return;
        at(rng_.between(100, 2000), Happening::agent_tick, index, agent.life);
    }

    void kill_agent(std::uint32_t index) {
        Agent& agent = agents_[index];
        if (!agent.executor) return;
        agent.executor.reset();
        ++agent.life;
        agent.session = 0;
        agent.welcomed = false;
        at(rng_.between(500, 30'000), Happening::agent_starts, index);
    }

    // The journal first; then hardware; then words. False: the process died on the way.
    bool carry(std::uint32_t index, Outcome outcome) {
        Agent& agent = agents_[index];
        const std::uint64_t life = agent.life;
        if (!outcome.journal.empty()) {
            const std::string frame = journal_frame(agent.frames, outcome.journal);
            const bool dies = !is_calm() && spec_.mishaps.agent_dies_at_journal != 0 &&
                              rng_.chance(spec_.mishaps.agent_dies_at_journal);
            const std::uint64_t how = dies ? rng_.below(3) : 3;
            if (how == 1) agent.journal += frame.substr(0, rng_.below(frame.size()));
            if (how >= 2) {
                agent.journal += frame;
                ++agent.frames;
            }
            if (dies) {
                fault("agent died at its journal");
                kill_agent(index);
                return false;
            }
            if (agent.journal.size() > 200'000) {
                agent.journal = journal_frame(agent.frames, agent.executor->compacted());
                ++agent.frames;
                checkers_.probe("a journal was compacted");
            }
        }
        for (const Operation& operation : outcome.begin) begin_operation(index, operation);
        for (Report& report : outcome.reports) {
            if (const LeaseReport* lease = std::get_if<LeaseReport>(&report.what)) {
                if (lease->phase == PartPhase::prepared) checkers_.prepared(agent.name, lease->lease);
                if (lease->phase == PartPhase::refused)
                    checkers_.probe("the node's own gate refused a lease: " + lease->why);
                if (lease->phase == PartPhase::failed) checkers_.probe("a part failed");
            }
            if (agent.welcomed) to_server(index, std::move(report));
        }
        return agent.life == life;
    }

    void begin_operation(std::uint32_t index, const Operation& operation) {
        Agent& agent = agents_[index];
        checkers_.begun(agent.name, agent.model, operation);
        const Duration takes = agent.model.duration(operation);
        auto answer = agent.model.carry_out(operation);
        if (!answer) return checkers_.probe("an operation hangs");
        checkers_.ended(agent.name, operation, answer->ok);
        at(takes.ms, Happening::operation_done, index, operations_.put({agent.life, operation, std::move(*answer)}));
    }

    void operation_done(std::uint32_t index, OperationDone done) {
        Agent& agent = agents_[index];
        if (!agent.executor || agent.life != done.life) return;
        const Wipe* wipe = std::get_if<Wipe>(&done.operation.what);
        if (wipe != nullptr && wipe->kind == UnitKind::host && done.result.ok) {
            // The host went down under its agent: the process begins anew, and finds out from its journal.
            checkers_.probe("a host was rebooted on order");
            kill_agent(index);
            return;
        }
        carry(index, agent.executor->on_result(agent_time(), done.result));
    }

    void reconnect(std::uint32_t index, std::string_view) {
        Agent& agent = agents_[index];
        agent.session = 0;
        agent.welcomed = false;
        agent.opened_at = now_ + rng_.between(0, 5000) - 5000;
    }

    void agent_tick(std::uint32_t index, std::uint64_t life) {
        Agent& agent = agents_[index];
        if (!agent.executor || agent.life != life) return;
        at(rng_.between(1800, 2200), Happening::agent_tick, index, life);
        if (agent.session != 0 && now_ - agent.heard_at > 25'000) reconnect(index, "silence");
        if (agent.session == 0 && now_ - agent.opened_at >= 0) {
            agent.session = ++sessions_;
            agent.sent = agent.received = 0;
            agent.opened_at = agent.heard_at = agent.beat_at = now_;
            agent.server = preferred_;
            if (servers_[1 - preferred_].core && rng_.chance(300)) agent.server = 1 - preferred_;
            Hello hello = agent.executor->hello(agent.model.inventory(), agent.model.boot_id());
            for (const KnownLease& lease : hello.leases)
                if (lease.phase == PartPhase::prepared || lease.phase == PartPhase::running)
                    checkers_.prepared(agent.name, lease.lease);
            to_server(index, std::move(hello));
        } else if (agent.welcomed && now_ - agent.beat_at >= 10'000) {
            agent.beat_at = now_;
            to_server(index, Beat{});
            // The transport's own keep-alive tells the agent that the other end is there.
            const Server& server = servers_[agent.server];
            if (server.core && !agent.cut_off && server.sessions.contains(agent.session)) agent.heard_at = now_;
        }
        if (const auto deadline = agent.executor->next_deadline(); deadline && deadline->ms <= agent_time().ms)
            carry(index, agent.executor->tick(agent_time()));
    }

    // ---- callers ----
    void command(decltype(Command::what) what, Asked asked) {
        Server* server = leader();
        if (server == nullptr) return;
        asked.server = index_of(*server);
        const std::uint64_t request = ++requests_;
        asked_[request] = std::move(asked);
        server->inbox.emplace_back(Command{request, "sim", std::move(what)});
        wake(index_of(*server));
    }

    void enrol_everything(std::uint32_t index) {
        enrolled_ = true;
        for (AnyObject& object : declared_objects(spec_.nodes * spec_.gpus))
            command(command::Apply{.objects = {std::move(object)}}, {Asked::What::other, {}});
        for (std::uint32_t i = 0; i < agents_.size(); ++i)
            command(
                command::Enrol{
                    .node = agents_[i].name, .spec = node_spec(i), .evidence_key = print(agents_[i].key.public_key())},
                {Asked::What::other, {}});
        for (AnyObject& object : declared_tenants(spec_.nodes * spec_.gpus)) late_tenants_.push_back(std::move(object));
        wake(index);
    }

    void submit() {
        if (is_calm()) return;
        at(about(spec_.between_submits), Happening::submit);
        if (!late_tenants_.empty()) {  // guarantees need nodes that have reported
            if (now_ < 120'000) return;
            command(command::Apply{.objects = late_tenants_}, {Asked::What::other, {}});
            if (++tenant_tries_ > 3) late_tenants_.clear();
            return;
        }
        GpuWorkload workload = random_workload(rng_, ++workload_count_);
        const std::string name = workload.metadata.name;
        command(command::Apply{.objects = {std::move(workload)}, .mode = command::Mode::create},
                {Asked::What::create, name, about(spec_.run_for)});
    }

    void forget(const std::string& name) {
        if (gone_.contains(name) || (is_calm() && !wanted_gone_.contains(name))) return;
        wanted_gone_.insert(name);
        at(20'000 + rng_.between(0, 10'000), Happening::forget, 0, names_.put(name));  // until the answer comes
        command(command::Delete{.kind = ObjectKind::workload, .name = name}, {Asked::What::remove, name});
    }

    void answered(const Answer& answer) {
        const auto found = asked_.find(answer.request);
        if (found == asked_.end()) return;
        const Asked asked = std::move(found->second);
        asked_.erase(found);
        switch (asked.what) {
            case Asked::What::create:
                if (answer.outcome) {
                    checkers_.acknowledged_create(asked.name);
                    at(asked.run_for, Happening::forget, 0, names_.put(asked.name));
                } else {
                    checkers_.refused(asked.name);
                    checkers_.probe(fmt::format("a request was refused: {}", code_name(answer.outcome.error().code)));
                }
                break;
            case Asked::What::remove:
                if (answer.outcome || answer.outcome.error().code == Code::not_found) {
                    checkers_.acknowledged_delete(asked.name);
                    gone_.insert(asked.name);
                }
                break;
            case Asked::What::other:
                if (!answer.outcome)
                    checkers_.probe(
                        fmt::format("an operator was refused: {}", answer.outcome.error().what.substr(0, 60)));
                break;
        }
    }

    void operate() {
        if (is_calm()) return;
        at(about(spec_.between_operators), Happening::operate);
        const std::int64_t later = rng_.between(60'000, 900'000);
        const auto undo_later = [&](decltype(Command::what) what) {
            at(later, Happening::undo, 0, undo_.put(std::move(what)));
        };
        const std::string& tenant = tenant_name(rng_);
        const std::string& node = agents_[rng_.below(agents_.size())].name;
        switch (rng_.below(3)) {
            case 0:
                fault("node drained");
                command(command::Drain{.node = node, .on = true}, {Asked::What::other, {}});
                return undo_later(command::Drain{.node = node, .on = false});
            case 1:
                fault("tenant frozen");
                command(command::Freeze{.tenant = tenant, .on = true, .why = "drill"}, {Asked::What::other, {}});
                return undo_later(command::Freeze{.tenant = tenant, .on = false, .why = "drill over"});
            default:
                fault("tenant held");
                command(command::Hold{.tenant = tenant, .on = true, .why = "court"}, {Asked::What::other, {}});
                return undo_later(command::Hold{.tenant = tenant, .on = false, .why = "court is done"});
        }
    }

    // The operator walks through the fleet and lets broken things be tried again.
    void repair() {
        if (!is_calm()) at(1'200'000, Happening::repair);
        for (Agent& agent : agents_)
            for (std::uint32_t gpu = 0; gpu < spec_.gpus; ++gpu)
                agent.model.set_lost(static_cast<std::uint16_t>(gpu), false);
        Server* server = leader();
        if (server == nullptr) return;
        const Snapshot all = server->core->snapshot();
        for (const GpuNode& node : all.nodes) {
            std::int64_t index = 0;
            for (const NodeGpus& gpu : node.status.gpus) {
                if (std::ranges::any_of(gpu.slices,
                                        [](const GpuSlice& slice) { return slice.state == CleanState::quarantined; }))
                    command(
                        command::Repair{
                            .node = node.metadata.name, .kind = UnitKind::memory, .device = index, .why = "seen"},
                        {Asked::What::other, {}});
                ++index;
            }
            for (std::size_t i = 0; i < node.status.drives.size(); ++i)
                if (node.status.drives[i].state == CleanState::quarantined)
                    command(command::Repair{.node = node.metadata.name,
                                            .kind = UnitKind::drive,
                                            .device = static_cast<std::int64_t>(i),
                                            .why = "seen"},
                            {Asked::What::other, {}});
            for (std::size_t i = 0; i < node.status.functions.size(); ++i)
                if (node.status.functions[i].state == CleanState::quarantined)
                    command(command::Repair{.node = node.metadata.name,
                                            .kind = UnitKind::vf,
                                            .device = static_cast<std::int64_t>(i),
                                            .why = "seen"},
                            {Asked::What::other, {}});
            if (node.status.host && node.status.host->state == CleanState::quarantined)
                command(command::Repair{.node = node.metadata.name, .kind = UnitKind::host, .why = "seen"},
                        {Asked::What::other, {}});
        }
    }

    // ---- backups ----
    struct Backup {
        std::shared_ptr<const Checkers::Memory> memory;
        std::set<std::string> gone;
    };
    void back_up() {
        if (spec_.mishaps.restore.ms == 0 || is_calm()) return;
        at(about(Duration{1'800'000}), Happening::backup);
        Server* server = leader();
        if (server == nullptr) return;
        if (const auto made = server->store->backup("backup.db"); made)
            backup_ = Backup{checkers_.remember(), gone_};
        else
            checkers_.probe(fmt::format("backup refused: {}", code_name(made.error().code)));
    }

    void restore() {
        if (!backup_) return;
        for (std::uint32_t i = 0; i < servers_.size(); ++i)
            if (servers_[i].store) stop_server(i);
        disk_.kill_processes();
        disk_.heal();
        in_doubt_.reset();
        const store::Options target{.path = "bulkhead.db", .vfs = disk_.vfs()};
        if (const auto copied = store::Store::copy_from("backup.db", target, store::Store::Existing::replace);
            !copied) {
            checkers_.probe(fmt::format("restore refused: {}", copied.error().what));
            at(5000, Happening::server_starts, 0);
            return;
        }
        fault("restored from an old backup");
        // The published log is ahead of the backup; it goes on from where it was, not from where the backup was.
        const std::vector<Hash> entries = checkers_.entries();
        {
            auto store = store::Store::open(target);
            if (!store) return checkers_.probe("RESTORE could not open " + store.error().what);
            const std::size_t have = backup_->memory->log_size;
            if (entries.size() > have)
                if (auto imported =
                        store->import_lost_leaves(static_cast<std::int64_t>(have), std::span{entries}.subspan(have));
                    !imported)
                    checkers_.probe("RESTORE could not import " + imported.error().what);
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

    // ---- mishaps ----
    struct Kind {
        const char* name;
        Duration Mishaps::* mean;
    };
    static constexpr std::array kinds{
        Kind{"server killed", &Mishaps::server_killed}, Kind{"power cut", &Mishaps::power_cut},
        Kind{"second leader", &Mishaps::second_leader}, Kind{"disk full", &Mishaps::disk_full},
        Kind{"disk fails", &Mishaps::disk_fails},       Kind{"restore", &Mishaps::restore},
        Kind{"clock step", &Mishaps::clock_step},       Kind{"agent killed", &Mishaps::agent_killed},
        Kind{"host crash", &Mishaps::host_crash},       Kind{"gpu lost", &Mishaps::gpu_lost},
        Kind{"wipe fails", &Mishaps::wipe_fails},       Kind{"wipe lies", &Mishaps::wipe_lies},
        Kind{"wipe hangs", &Mishaps::wipe_hangs},       Kind{"start fails", &Mishaps::start_fails},
        Kind{"stop fails", &Mishaps::stop_fails},       Kind{"partition", &Mishaps::partition},
        Kind{"slow node", &Mishaps::slow_node},
    };

    void arm_mishaps() {
        for (std::uint32_t i = 0; i < kinds.size(); ++i)
            if (const Duration mean = spec_.mishaps.*kinds[i].mean; mean.ms != 0)
                at(300'000 + about(mean), Happening::mishap, i);
    }

    DeviceId some_device() {
        switch (rng_.below(4)) {
            case 0:
                return {UnitKind::drive, static_cast<std::uint16_t>(rng_.below(2))};
            case 1:
                return {UnitKind::vf, static_cast<std::uint16_t>(rng_.below(4))};
            default:
                return {UnitKind::memory, static_cast<std::uint16_t>(rng_.below(spec_.gpus))};
        }
    }

    void mishap(std::uint32_t kind) {
        if (is_calm()) return;
        at(about(spec_.mishaps.*kinds[kind].mean), Happening::mishap, kind);
        const std::string name = kinds[kind].name;
        const auto index = static_cast<std::uint32_t>(rng_.below(agents_.size()));
        Agent& agent = agents_[index];
        if (name != "restore") fault(name);
        if (name == "server killed") {
            for (std::uint32_t i = 0; i < servers_.size(); ++i)
                if (servers_[i].store) restart_later(i);
            disk_.kill_processes();
        } else if (name == "power cut") {
            disk_.crash_at_write(disk_.writes() + 1 + rng_.below(12));
        } else if (name == "second leader") {
            const std::uint32_t other = servers_[0].core ? 1 : 0;
            start_server(other, false);
        } else if (name == "disk full") {
            disk_.leave_free(rng_.below(20'000));
            at(rng_.between(5000, 120'000), Happening::heal_disk);
        } else if (name == "disk fails") {
            switch (rng_.below(3)) {
                case 0:
                    disk_.fail_writes(rng_.below(6));
                    break;
                case 1:
                    disk_.fail_sync(rng_.chance(500) ? Disk::SyncFault::keeps : Disk::SyncFault::loses);
                    break;
                default:
                    disk_.read_only(true);
            }
            at(rng_.between(1000, 60'000), Happening::heal_disk);
        } else if (name == "restore") {
            restore();
        } else if (name == "clock step") {
            if (Server* server = leader()) server->skew = rng_.between(-120'000, 20'000);
        } else if (name == "agent killed") {
            kill_agent(index);
        } else if (name == "host crash") {
            agent.model.crash_host();
            checkers_.host_crashed(agent.name);
            kill_agent(index);
        } else if (name == "gpu lost") {
            const auto gpu = static_cast<std::uint16_t>(rng_.below(spec_.gpus));
            agent.model.set_lost(gpu, true);
            if (agent.executor)
                carry(index, agent.executor->on_fault(agent_time(), {.kind = UnitKind::memory,
                                                                     .device = gpu,
                                                                     .why = "Xid 79: GPU has fallen off the bus"}));
        } else if (name == "wipe fails") {
            agent.model.faults(some_device()).fail += 1;
        } else if (name == "wipe lies") {
            agent.model.faults(some_device()).lie += 1 + static_cast<std::uint32_t>(rng_.below(2));
        } else if (name == "wipe hangs") {
            agent.model.faults(some_device()).hang += 1;
        } else if (name == "start fails") {
            agent.model.fail_starts(1);
        } else if (name == "stop fails") {
            agent.model.fail_stops(1);
        } else if (name == "partition") {
            const std::uint64_t size = 1 + rng_.below(std::max<std::uint64_t>(agents_.size() / 4, 1));
            const std::int64_t until = rng_.chance(200) ? rng_.between(300'000, 900'000) : rng_.between(5000, 90'000);
            for (std::uint64_t i = 0; i < size; ++i) {
                const auto one = static_cast<std::uint32_t>((index + i) % agents_.size());
                agents_[one].cut_off = true;
                at(until, Happening::heal_partition, one);
            }
        } else if (name == "slow node") {
            agent.model.set_slowness(rng_.between(2000, 20'000));
            at(rng_.between(60'000, 600'000), Happening::heal_node, index);
        }
    }

    // ---- the end ----
    void begin_calm() {
        if (++calms_ == 2) return checkers_.calm_began();
        at((spec_.calm.ms * 2) / 3, Happening::calm);
        disk_.heal();
        for (Agent& agent : agents_) {
            agent.cut_off = false;
            agent.model.clear_faults();
            agent.model.set_slowness(1000);
        }
        for (Server& server : servers_) server.skew = 0;
        if (leader() == nullptr) at(30'000, Happening::server_starts, 0);
        // One last round of repairs while things come to rest; then the checkers expect silence.
        at(600'000, Happening::repair);
    }

    void finish() {
        checkers_.finished();
        // Everything once more from the disk.
        for (std::uint32_t i = 0; i < servers_.size(); ++i) stop_server(i);
        disk_.kill_processes();
        auto store = store::Store::open({.path = "bulkhead.db", .vfs = disk_.vfs()});
        if (!store) return checkers_.probe("FINISH could not open " + store.error().what);
        std::map<std::pair<Table, std::int64_t>, std::string> rows;
        const auto loaded = store->load([&](Row&& row) -> Result<> {
            rows[{row.table, row.key}] = std::move(row.body);
            return {};
        });
        std::vector<Hash> entries;
        if (const auto leaves = store->leaves(0, loaded ? loaded->log_size : 0); leaves)
            for (const Leaf& leaf : *leaves) entries.push_back(leaf.entry);
        checkers_.recovered(rows, entries);
    }

    const Spec& spec_;
    Rng rng_;
    Checkers checkers_;
    RunResult result_;
    std::int64_t now_ = 0, calm_at_ = 0;
    int calms_ = 0;
    std::uint64_t order_ = 0, sessions_ = 0, requests_ = 0, workload_count_ = 0;
    std::priority_queue<Item> queue_;
    Disk disk_;
    std::vector<Server> servers_;
    std::uint32_t preferred_ = 0;
    std::int64_t epoch_floor_ = 0;
    std::optional<Batch> in_doubt_;
    std::vector<Agent> agents_;
    std::map<std::uint32_t, std::int64_t> up_, down_;
    Parcels<Message> messages_;
    Parcels<OperationDone> operations_;
    Parcels<std::string> names_;
    Parcels<decltype(Command::what)> undo_;
    std::map<std::uint64_t, Asked> asked_;
    std::set<std::string> gone_, wanted_gone_;
    std::optional<Backup> backup_;
    bool enrolled_ = false;
    std::vector<AnyObject> late_tenants_;
    int tenant_tries_ = 0;
};

}  // namespace

RunResult run(const Spec& spec, std::uint64_t seed, const std::string& trace) { return World{spec, seed, trace}.run(); }

}  // namespace bulkhead::sim
