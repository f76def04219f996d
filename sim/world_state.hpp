// The world: servers, agents, the lines between them and the people who ask, as one class. It is defined over several
// files by what happens: world.cpp (time), servers.cpp, backups.cpp, lines.cpp, agents.cpp, callers.cpp, mishaps.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/base/rng.hpp"
#include "bulkhead/core/core.hpp"
#include "bulkhead/evidence/commitment.hpp"
#include "bulkhead/node/executor.hpp"
#include "bulkhead/node/model.hpp"
#include "bulkhead/store/store.hpp"
#include "sim/disk/disk.hpp"
#include "sim/happening.hpp"
#include "sim/network.hpp"
#include "sim/world.hpp"

namespace bulkhead::sim {

inline constexpr std::int64_t epoch_of_time = 1'800'000'000'000;  // when every simulation begins

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
    bool fence_is_open = false;  // a forged frame gets through
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

std::string_view code_name(Code code);

class World {
public:
    World(const Spec& spec, std::uint64_t seed, const std::string& trace);
    RunResult run();

private:
    using Rows = std::map<std::pair<Table, std::int64_t>, std::string>;
    using Asking = decltype(Command::what);
    using Saying = decltype(Message::what);

    // ---- time ----
    void at(std::int64_t delay, Happening what, std::uint32_t who = 0, std::uint64_t argument = 0);
    std::int64_t about(Duration mean);
    bool is_calm() const { return now_ >= calm_at_; }
    void happen(const Item& item);
    void begin_calm();
    void finish();

    // ---- servers ----
    Server* leader();
    std::uint32_t index_of(const Server& server) const { return static_cast<std::uint32_t>(&server - servers_.data()); }
    Instant core_time(Server& server);
    void start_server(std::uint32_t index, bool restored);
    void stop_server(std::uint32_t index);
    void restart_later(std::uint32_t index);
    void adopt_unknown_commit(const Rows& rows, const std::vector<Hash>& entries);
    bool commit(std::uint32_t index, Effects effects, bool ticks = false);
    bool make_durable(std::uint32_t index, Effects& effects);
    void commit_failed(std::uint32_t index, Code code);
    void tell_agents(std::uint32_t index, const Effects& effects);
    void server_turn(std::uint32_t index, std::uint64_t life);
    void server_tick(std::uint32_t index, std::uint64_t life);
    void wake(std::uint32_t index);

    // ---- backups ----
    struct Backup {
        std::shared_ptr<const Checkers::Memory> memory;
        std::set<std::string> gone;
    };
    void back_up();
    void restore(std::uint32_t);

    // ---- lines ----
    void to_agent(std::uint32_t index, std::uint64_t session, Saying what);
    void to_server(std::uint32_t agent, Saying what);
    void send(Message message);
    void deliver(Message message);
    void deliver_to_agent(Message message);
    void deliver_to_server(Message message);
    void reconnect(std::uint32_t index, std::string_view);

    // ---- agents ----
    Instant agent_time() const { return {epoch_of_time + now_}; }
    void start_agent(std::uint32_t index);
    void kill_agent(std::uint32_t index);
    bool carry(std::uint32_t index, Outcome outcome);
    bool append_to_journal(std::uint32_t index, const std::vector<JournalRecord>& records);
    void begin_operation(std::uint32_t index, const Operation& operation);
    void operation_done(std::uint32_t index, OperationDone done);
    void agent_tick(std::uint32_t index, std::uint64_t life);
    void open_session(std::uint32_t index);
    void test_fences(std::uint32_t index, Key ticket);

    // ---- callers ----
    void command(Asking what, Asked asked);
    void enrol_everything(std::uint32_t index);
    void submit();
    void claim();
    void last_input();
    void forget(const std::string& name);
    void answered(const Answer& answer);
    void operate();
    void repair();

    // ---- mishaps, by the words of `Mishaps`; each is given the node that luck points at ----
    struct MishapKind;
    static std::span<const MishapKind> mishap_kinds();
    void arm_mishaps();
    void mishap(std::uint32_t kind);
    void fault(const std::string& kind) { ++result_.faults[kind]; }
    DeviceId some_device();
    void server_killed(std::uint32_t);
    void power_cut(std::uint32_t);
    void second_leader(std::uint32_t);
    void disk_full(std::uint32_t);
    void disk_fails(std::uint32_t);
    void clock_step(std::uint32_t);
    void host_crash(std::uint32_t node);
    void node_lost(std::uint32_t node);
    void gpu_lost(std::uint32_t node);
    void gpu_drained(std::uint32_t node);
    void memory_stuck(std::uint32_t node);
    void fence_falls(std::uint32_t node);
    void wipe_fails(std::uint32_t node);
    void wipe_lies(std::uint32_t node);
    void wipe_hangs(std::uint32_t node);
    void start_fails(std::uint32_t node);
    void stop_fails(std::uint32_t node);
    void partition(std::uint32_t node);
    void slow_node(std::uint32_t node);

    const Spec& spec_;
    Rng rng_;
    Checkers checkers_;
    RunResult result_;
    std::int64_t now_ = 0, calm_at_ = 0;
    int calms_ = 0;
    std::uint64_t order_ = 0, sessions_ = 0, requests_ = 0, workload_count_ = 0, drains_ = 0;
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
    Parcels<Asking> undo_;
    std::map<std::uint64_t, Asked> asked_;
    std::set<std::string> gone_, wanted_gone_;
    struct Claim {
        std::string name;
        std::int64_t at = 0;
    };
    std::map<std::string, Claim> claims_;  // by tenant, the last one
    std::optional<Backup> backup_;
    bool enrolled_ = false;
    std::vector<AnyObject> late_tenants_;
    int tenant_tries_ = 0;
};

}  // namespace bulkhead::sim
