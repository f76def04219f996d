#include "bulkhead/shell/loop.hpp"

#include <fmt/core.h>
#include <openssl/rand.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>
#include <optional>
#include <thread>

#include "bulkhead/evidence/commitment.hpp"
#include "bulkhead/shell/machine_clock.hpp"

namespace bulkhead::shell {

namespace {

using Steady = std::chrono::steady_clock;

std::chrono::milliseconds milliseconds_of(Duration duration) { return std::chrono::milliseconds{duration.ms}; }

// The salts of that many leaves, one after the other: OpenSSL asks as much for one as for all of a batch.
std::string fresh_salts(std::size_t leaves) {
    std::string salts(leaves * evidence::salt_size, '\0');
    const int drawn = RAND_bytes(reinterpret_cast<unsigned char*>(salts.data()), static_cast<int>(salts.size()));
    // A guessable salt would open what the log keeps closed, and nothing later could repair that.
    invariant(drawn == 1, "the operating system gives random bytes");
    return salts;
}

template <class T>
void append(std::vector<T>& to, std::vector<T>&& from) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

struct Item {
    Event event;
    Loop::Done done;
    std::vector<Row> also;
    std::uint64_t request = 0;
};

Error nothing_written(std::string why) {
    return {Code::unavailable, std::move(why),
            "read on; writing is tried again every second. Ask again when /readyz says so"};
}

}  // namespace

struct Loop::State {
    State(Settings settings_, std::vector<Follower*> followers_, Log& log_)
        : settings{std::move(settings_)}, followers{std::move(followers_)}, log{log_} {
        if (!settings.clock) settings.clock = machine_clock;
    }

    Result<> begin(std::int64_t epoch_at_least);
    void run();
    std::vector<Item> take();
    void perform(std::vector<Item> items);
    Result<> commit(Effects& effects);
    void after_failure(const Error& error);
    void try_again();
    void refuse(std::vector<Item>& items, const Error& why);
    void rise_above(std::int64_t seen);
    void set(LoopState next) { current.store(next); }
    Instant now() { return clock = std::max(clock, settings.clock()); }

    Settings settings;
    const std::vector<Follower*> followers;
    Log& log;
    Meter meter;

    // The loop's thread alone:
    std::optional<store::Store> store;
    std::optional<Core> core;
    Instant clock;
    std::int64_t epoch = 0, log_size = 0, epoch_wanted = 0;
    int rises = 0;
    Steady::time_point next_tick, next_try, next_rise;

    std::mutex mutex;
    std::condition_variable wake;
    std::deque<Item> queue;
    bool stopping = false;
    std::uint64_t next_request = 1;

    std::atomic<LoopState> current{LoopState::read_only};
    std::thread thread;
};

// A reign: the store opened, an epoch of our own, the core built from what is on the disk, and the fact on record.
Result<> Loop::State::begin(std::int64_t epoch_at_least) {
    core.reset();
    if (store && store->must_be_reopened()) store.reset();
    if (!store) {
        auto opened = store::Store::open(settings.store);
        if (!opened) return std::unexpected(opened.error());
        store.emplace(*std::move(opened));
    }
    // Minutes: even a store that was put back to where it was a day ago begins above every epoch it had since.
    const auto raised = store->raise_epoch(std::max(epoch_at_least, settings.clock().ms / 60'000));
    if (!raised) return std::unexpected(raised.error());
    epoch = *raised;

    const auto before = store->position();
    if (!before) return std::unexpected(before.error());
    CoreSettings for_core = settings.core;
    for_core.secret = store->secret();
    for_core.last_clock = before->clock;
    Core fresh{epoch, before->log_size, for_core};
    std::vector<Row> rows;
    const auto position = store->load([&](Row&& row) -> Result<> {
        // Tokens are the doors' business; the core never hears of them.
        const Result<> taken = row.table == Table::token ? Result<>{} : fresh.load(row);
        rows.push_back(std::move(row));
        return taken;
    });
    if (!position) return std::unexpected(position.error());
    log_size = position->log_size;
    clock = std::max(clock, position->clock);
    core.emplace(std::move(fresh));
    for (Follower* follower : followers) follower->loaded({epoch, log_size, rows});

    Effects effects = core->start(now());
    if (auto written = commit(effects); !written) {
        core.reset();
        return written;
    }
    for (Follower* follower : followers) follower->allowed(effects);
    settings.core.restored = false;  // said once, and kept in the store until every node was heard of
    meter.epoch.store(static_cast<std::uint64_t>(epoch));
    set(LoopState::running);
    next_tick = Steady::now() + milliseconds_of(settings.tick);
    log.info("reign begins",
             {{"epoch", epoch}, {"log_size", log_size}, {"rows", static_cast<std::int64_t>(rows.size())}});
    return {};
}

// One transaction. Afterwards the rows and leaves are the batch's, and what may leave is still in the effects.
Result<> Loop::State::commit(Effects& effects) {
    if (!effects.durable()) return {};
    Batch batch{.epoch = epoch, .clock = clock, .rows = std::move(effects.rows)};
    std::int64_t index = log_size;
    const std::string salts = fresh_salts(effects.log.size());
    batch.leaves.reserve(effects.log.size());
    for (std::size_t i = 0; i < effects.log.size(); ++i) {
        Leaf leaf{.index = index++,
                  .salt = salts.substr(i * evidence::salt_size, evidence::salt_size),
                  .payload = std::move(effects.log[i])};
        leaf.entry = evidence::commit_to(leaf.salt, leaf.payload);
        batch.leaves.push_back(std::move(leaf));
    }
    effects.rows.clear();
    effects.log.clear();

    const auto began = Steady::now();
    const auto committed = store->commit(batch);
    const auto us = std::chrono::duration_cast<std::chrono::microseconds>(Steady::now() - began).count();
    if (!committed) {
        ++meter.failed_commits;
        return committed;
    }
    std::size_t slot = 0;
    while (slot < Meter::bounds_us.size() && us > Meter::bounds_us[slot]) ++slot;
    ++meter.commit_us[slot];
    meter.commit_us_sum += static_cast<std::uint64_t>(us);
    ++meter.commits;
    log_size = index;
    meter.log_size.store(static_cast<std::uint64_t>(log_size));
    invariant(core->log_size() == log_size, "core and store agree on the size of the log");
    for (Follower* follower : followers) follower->committed(batch);
    return {};
}

std::vector<Item> Loop::State::take() {
    std::unique_lock lock{mutex};
    const auto until = current.load() == LoopState::running ? next_tick : next_try;
    if (current.load() == LoopState::fenced)
        wake.wait(lock, [&] { return stopping || !queue.empty(); });
    else
        wake.wait_until(lock, until, [&] { return stopping || !queue.empty(); });
    std::vector<Item> items;
    while (!queue.empty() && (items.size() < settings.batch || stopping)) {
        items.push_back(std::move(queue.front()));
        queue.pop_front();
    }
    return items;
}

void Loop::State::refuse(std::vector<Item>& items, const Error& why) {
    for (Item& item : items) {
        if (!item.done) continue;
        ++meter.refused;
        item.done(Answer{.request = item.request, .outcome = std::unexpected(why)});
    }
    items.clear();
}

// A node has obeyed a reign that the store has forgotten: it was restored from a backup. The new reign stands above
// that.
void Loop::State::rise_above(std::int64_t seen) {
    constexpr std::int64_t believable = 1'000'000;  // more reigns than any store can have had: the node is lying
    constexpr std::chrono::seconds patience{5};     // nor may a node that lies make us start anew all the time
    constexpr int often_enough = 16;
    if (seen < epoch || seen - epoch > believable || Steady::now() < next_rise || rises == often_enough) return;
    next_rise = Steady::now() + patience;
    ++rises;
    log.warning("a node has obeyed a later epoch; starting a new one above it", {{"seen", seen}, {"ours", epoch}});
    epoch_wanted = seen;
    set(LoopState::read_only);
    try_again();
}

void Loop::State::perform(std::vector<Item> items) {
    Effects all;
    std::vector<Answer> answers;
    std::vector<Done> waiting;  // for the answer at the same place
    const Instant at = now();
    const auto collect = [&](Effects effects, std::vector<Row> also) {
        append(all.rows, std::move(effects.rows));
        append(all.rows, std::move(also));
        append(all.log, std::move(effects.log));
        append(all.orders, std::move(effects.orders));
        append(all.welcomes, std::move(effects.welcomes));
        append(all.acknowledgements, std::move(effects.acknowledgements));
        append(all.closes, std::move(effects.closes));
        all.epoch_seen = std::max(all.epoch_seen, effects.epoch_seen);
    };
    for (Item& item : items) {
        ++meter.events;
        Effects effects = core->apply(at, item.event);
        bool refused = false;
        if (item.done) {
            invariant(effects.answers.size() == 1 && effects.answers[0].request == item.request,
                      "every command is answered once, by its own effects");
            refused = !effects.answers[0].outcome;
            answers.push_back(std::move(effects.answers[0]));
            waiting.push_back(std::move(item.done));
        }
        collect(std::move(effects), refused ? std::vector<Row>{} : std::move(item.also));
    }
    const bool ticks = Steady::now() >= next_tick || core->wants_tick();
    if (ticks) {
        collect(core->apply(at, Tick{}), {});
        next_tick = Steady::now() + milliseconds_of(settings.tick);
    }
    // A commit finds out who leads. Where there is none, whoever is answered must not be told what is true no longer,
    // and nodes must not be kept by a master that has been replaced: so it is looked up, and once a second at least.
    const bool look = !all.durable() && (ticks || !waiting.empty() || all.epoch_seen != 0);
    if (const Result<> committed = look ? store->still_newest(epoch) : commit(all); !committed) {
        after_failure(committed.error());
        const Error why = nothing_written(
            committed.error().code == Code::unavailable
                ? fmt::format("the disk failed, and whether this was stored is not known: {}", committed.error().what)
                : fmt::format("nothing was changed: {}", committed.error().what));
        for (std::size_t i = 0; i < waiting.size(); ++i)
            waiting[i](Answer{.request = answers[i].request, .outcome = std::unexpected(why)});
        return;
    }
    for (Follower* follower : followers) follower->allowed(all);
    for (std::size_t i = 0; i < waiting.size(); ++i) waiting[i](std::move(answers[i]));
    if (all.epoch_seen == 0) return;
    if (core->restoring()) return rise_above(all.epoch_seen);
    log.warning("a node claims an epoch that was not; revoke it and look at it", {{"claimed", all.epoch_seen}});
}

// What the core believes now was never written: it goes, and nobody was told.
void Loop::State::after_failure(const Error& error) {
    core.reset();
    if (error.code == Code::conflict) {
        const auto position = store->position();
        if (position && position->epoch > epoch) {
            const Error fenced{
                Code::conflict,
                fmt::format("another control plane has taken over this store: its epoch is {}, ours was {}",
                            position->epoch, epoch),
                "stop this one; two must never run on one data directory"};
            set(LoopState::fenced);
            log.error("fenced", {{"what", fenced.what}, {"try", fenced.remedy}});
            if (settings.on_fenced) settings.on_fenced(fenced);
            return;
        }
    }
    set(LoopState::read_only);
    next_try = Steady::now();
    log.error("commit failed; read-only until a write works", {{"what", error.what}, {"try", error.remedy}});
}

void Loop::State::try_again() {
    if (const auto begun = begin(epoch_wanted); !begun) {
        log.warning("still read-only", {{"what", begun.error().what}});
        next_try = Steady::now() + milliseconds_of(settings.retry);
    }
}

void Loop::State::run() {
    for (;;) {
        std::vector<Item> items = take();
        bool stop = false;
        {
            const std::lock_guard lock{mutex};
            stop = stopping;
        }
        if (stop) {
            refuse(items, {Code::unavailable, "the server is stopping", "ask again when it is back"});
            break;
        }
        switch (current.load()) {
            case LoopState::running:
                perform(std::move(items));
                break;
            case LoopState::read_only:
                refuse(items, nothing_written("the store cannot be written"));
                if (Steady::now() >= next_try) try_again();
                break;
            default:
                refuse(items, {Code::unavailable, "another control plane has taken over", "ask that one"});
        }
    }
    set(LoopState::stopped);
}

Loop::Loop(std::unique_ptr<State> state) : state_{std::move(state)} {}

Loop::~Loop() { stop(); }

Result<std::unique_ptr<Loop>> Loop::start(Settings settings, std::vector<Follower*> followers, Log& log,
                                          std::optional<store::Store> opened) {
    auto state = std::make_unique<State>(std::move(settings), std::move(followers), log);
    state->store = std::move(opened);
    if (auto begun = state->begin(0); !begun) return std::unexpected(begun.error());
    State& running = *state;
    state->thread = std::thread{[&running] { running.run(); }};
    return std::unique_ptr<Loop>{new Loop{std::move(state)}};
}

namespace {

Result<> may_write(LoopState state) {
    switch (state) {
        case LoopState::running:
            return {};
        case LoopState::read_only:
            return std::unexpected(nothing_written("the store cannot be written"));
        default:
            return fail(Code::unavailable, "this control plane has stopped", "ask the one that runs");
    }
}

}  // namespace

Result<> Loop::enqueue(Event event, Done done, std::vector<Row> also) {
    State& state = *state_;
    if (auto may = may_write(state.current.load()); !may) return may;
    {
        const std::lock_guard lock{state.mutex};
        if (state.stopping) return fail(Code::unavailable, "the server is stopping", "ask again when it is back");
        // Nodes may fill the queue only in part, so that an operator is heard while ten thousand of them come back.
        // That a session is over must always be heard: the core would wait for it, and there is one for each session.
        const Command* const asked = std::get_if<Command>(&event);
        const bool from_node = !done || (asked != nullptr && std::holds_alternative<command::Renew>(asked->what));
        const std::size_t room = from_node ? state.settings.queue - state.settings.queue / 4 : state.settings.queue;
        if (state.queue.size() >= room && !std::holds_alternative<AgentGone>(event)) {
            ++state.meter.refused;
            return fail(Code::exhausted, fmt::format("{} requests are waiting already", state.queue.size()),
                        "ask again in a second");
        }
        const std::uint64_t request = state.next_request++;
        if (auto* command = std::get_if<Command>(&event)) command->request = request;
        state.queue.push_back({std::move(event), std::move(done), std::move(also), request});
    }
    state.wake.notify_one();
    return {};
}

Result<> Loop::submit(Asker asker, decltype(Command::what) what, Done done, std::vector<Row> also) {
    invariant(done != nullptr, "whoever submits a command hears its answer");
    return enqueue(Command{.actor = std::move(asker.actor), .what = std::move(what), .rights = std::move(asker.rights)},
                   std::move(done), std::move(also));
}

Result<> Loop::tell(Event event) {
    invariant(!std::holds_alternative<Command>(event), "a command is submitted, so that it can be answered");
    return enqueue(std::move(event), {}, {});
}

Answer Loop::ask(Asker asker, decltype(Command::what) what) {
    auto promise = std::make_shared<std::promise<Answer>>();
    auto answer = promise->get_future();
    const auto taken =
        submit(std::move(asker), std::move(what), [promise](Answer given) { promise->set_value(std::move(given)); });
    if (!taken) return Answer{.outcome = std::unexpected(taken.error())};
    return answer.get();
}

LoopState Loop::state() const { return state_->current.load(); }

std::size_t Loop::waiting() const {
    const std::lock_guard lock{state_->mutex};
    return state_->queue.size();
}

const Loop::Meter& Loop::meter() const { return state_->meter; }

void Loop::stop() {
    {
        const std::lock_guard lock{state_->mutex};
        state_->stopping = true;
    }
    state_->wake.notify_one();
    if (state_->thread.joinable()) state_->thread.join();
}

}  // namespace bulkhead::shell
