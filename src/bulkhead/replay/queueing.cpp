#include "bulkhead/replay/queueing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <queue>

#include "bulkhead/replay/gpu_ledger.hpp"
#include "bulkhead/sched/engine.hpp"

namespace bulkhead::replay {

namespace {

using sched::Engine;
using sched::Statement;
using sched::TaskSeat;

struct Event {
    enum class Kind : std::uint8_t { finished, wiped };
    Instant at;
    Kind kind{};
    std::uint32_t subject = 0;  // a job or a node
    std::uint32_t detail = 0;   // the job's stint: another one by now, it was stopped in between; or the node's GPU
    friend auto operator<=>(const Event&, const Event&) = default;
};

// A job while the experiment runs.
struct Live {
    enum class Phase : std::uint8_t { unborn, waiting, running, done };
    Phase phase = Phase::unborn;
    sched::JobNo number = 0;
    std::uint32_t stint = 0;
    Instant since;  // it runs
    Duration left;  // of its work
    std::vector<TaskSeat> seats;
};

class Queueing {
public:
    Queueing(const Scenario& scenario, QueuePolicy policy, const QueueingSettings& settings)
        : jobs_{scenario.jobs},
          fifo_{policy == QueuePolicy::fifo},
          settings_{settings},
          engine_{{.wipes = settings.wipe.ms > 0}},
          ledger_{scenario.nodes},
          live_(scenario.jobs.size()) {
        std::vector<sched::TenantFacts> tenants = scenario.tenants;
        if (fifo_)
            for (sched::TenantFacts& tenant : tenants) {
                tenant.guarantee = {};
                tenant.limit.reset();
                tenant.hard = false;
            }
        engine_.set_tenants(std::move(tenants));
        for (const sched::Node& node : scenario.nodes) engine_.add_node(node);
        for (const sched::TaskNeed& need : scenario.needs) shapes_.push_back(engine_.shape(need));
        run_.jobs.resize(jobs_.size());
        for (std::size_t i = 0; i < jobs_.size(); ++i) live_[i].left = jobs_[i].duration;
    }

    Result<QueueingRun> run() {
        while (finished_ < jobs_.size()) {
            if (events_.empty() && arrived_ == jobs_.size()) return stuck();
            now_ = next_moment();
            while (!events_.empty() && events_.top().at == now_) {
                const Event event = events_.top();
                events_.pop();
                event.kind == Event::Kind::finished ? finish(event) : wipe(event);
            }
            for (; arrived_ < jobs_.size() && jobs_[arrived_].work.submitted == now_; ++arrived_) arrive(arrived_);
            fifo_ ? serve_in_order() : serve();
            run_.moments.push_back({now_, waiting_, in_use_, ledger_.wiping()});
            if (settings_.progress) settings_.progress(finished_);
        }
        return std::move(run_);
    }

private:
    Instant next_moment() const {
        if (events_.empty()) return jobs_[arrived_].work.submitted;
        if (arrived_ == jobs_.size()) return events_.top().at;
        return std::min(events_.top().at, jobs_[arrived_].work.submitted);
    }

    void wipe(const Event& event) {
        const auto gpu = static_cast<std::uint16_t>(event.detail);
        if (const std::uint8_t slices = ledger_.wiped(event.subject, gpu, now_); slices != 0)
            engine_.clean(event.subject, gpu, slices);
    }

    void finish(const Event& event) {
        Live& job = live_[event.subject];
        if (job.phase != Live::Phase::running || job.stint != event.detail) return;
        leave(event.subject);
        engine_.finish(job.number);
        job.phase = Live::Phase::done;
        run_.jobs[event.subject].finished = now_;
        ++finished_;
    }

    void arrive(std::size_t index) {
        live_[index].phase = Live::Phase::waiting;
        ++waiting_;
        if (fifo_)
            line_.push_back(index);
        else
            live_[index].number = submit(index);
    }

    sched::JobNo submit(std::size_t index) {
        sched::Job work = jobs_[index].work;
        work.key = static_cast<std::int64_t>(index) + 1;
        work.shape = shapes_[jobs_[index].need];
        work.duration = jobs_[index].duration;
        if (!jobs_[index].deadline_is_feasible()) work.deadline.reset();
        if (fifo_) work.preemptible = true;  // there are no guarantees here to be within
        return engine_.submit(work);
    }

    // One job at a time is shown to the engine: whoever is first.
    void serve_in_order() {
        ++run_.cycles;
        for (; !line_.empty(); line_.pop_front()) {
            const std::size_t first = line_.front();
            if (!first_is_known_) live_[first].number = submit(first);
            first_is_known_ = true;
            if (!engine_.allocate(live_[first].number, now_)) return;
            first_is_known_ = false;
            start(first, engine_.seats(live_[first].number));
        }
    }

    // Again after somebody was stopped: what that freed is kept for whom it was done.
    void serve() {
        constexpr int most_rounds = 100;  // at one moment: nobody may stop others by turns for ever
        for (int round = 0; round < most_rounds; ++round) {
            const Statement statement = engine_.cycle(now_);
            ++run_.cycles;
            carry_out(statement);
            if (statement.evict.empty() && statement.move.empty()) return;
        }
    }

    static std::size_t index_of(std::int64_t key) { return static_cast<std::size_t>(key - 1); }

    // First everybody leaves who must; then whoever has a place takes it, where it is to be in the end. A job may be
    // given a place and lose it in one statement: then it was never there.
    void carry_out(const Statement& statement) {
        std::map<std::size_t, const std::vector<TaskSeat>*> places;
        for (const sched::Binding& binding : statement.bind) {
            places[index_of(binding.workload)] = &binding.tasks;
            run_.backfilled += binding.backfilled ? 1 : 0;
        }
        const auto running = [&](std::size_t index) { return live_[index].phase == Live::Phase::running; };
        for (const sched::Move& move : statement.move) {
            const std::size_t index = index_of(move.workload);
            if (running(index)) {
                interrupt(index);
                ++run_.moves;
                ++run_.decisions;
            } else {
                never_used(*places.at(index));
            }
            places[index] = &move.to;
        }
        for (const sched::Eviction& eviction : statement.evict) {
            const std::size_t index = index_of(eviction.workload);
            invariant(eviction.whole, "only elastic gangs lose a part, and none is replayed");
            engine_.stopped(live_[index].number);
            if (running(index)) {
                interrupt(index);
                ++run_.evictions;
                ++run_.decisions;
            }
            if (const auto place = places.find(index); place != places.end()) {
                never_used(*place->second);
                places.erase(place);
            }
        }
        for (const auto& [index, seats] : places) start(index, *seats);
    }

    // The engine takes it for dirty.
    void never_used(const std::vector<TaskSeat>& seats) {
        if (settings_.wipe.ms == 0) return;
        for (const TaskSeat& task : seats)
            for (std::size_t i = 0; i < task.gpus.size(); ++i)
                engine_.clean(task.node, task.gpus[i], gpu::Placement{task.seats[i].start, task.seats[i].size}.mask());
    }

    void start(std::size_t index, const std::vector<TaskSeat>& seats) {
        Live& job = live_[index];
        invariant(job.phase == Live::Phase::waiting, "only who waits is started");
        invariant(std::ssize(seats) == jobs_[index].work.tasks, "a gang starts as a whole");
        for (const TaskSeat& task : seats) ledger_.take(task);
        job.phase = Live::Phase::running;
        job.seats = seats;
        job.since = now_;
        ++job.stint;
        --waiting_;
        ++run_.decisions;
        in_use_ += jobs_[index].units();
        if (job.stint == 1) run_.jobs[index].started = now_;
        events_.push({now_ + job.left, Event::Kind::finished, static_cast<std::uint32_t>(index), job.stint});
    }

    // It gives its GPUs up, done or not.
    void leave(std::size_t index) {
        Live& job = live_[index];
        JobStory& story = run_.jobs[index];
        story.ran.ms += (now_ - job.since).ms;
        const Instant last = jobs_.back().work.submitted;
        if (job.since < last) story.ran_by_last_arrival.ms += (std::min(now_, last) - job.since).ms;
        const bool dirty = settings_.wipe.ms > 0;
        const Instant clean = now_ + settings_.wipe;
        for (const TaskSeat& task : job.seats) {
            ledger_.leave(task, dirty ? std::optional{clean} : std::nullopt);
            if (!dirty) continue;
            for (const std::uint16_t gpu : task.gpus) events_.push({clean, Event::Kind::wiped, task.node, gpu});
        }
        in_use_ -= jobs_[index].units();
        if (settings_.keep_stints) run_.stints.push_back({index, job.since, now_, job.seats});
        job.seats.clear();
    }

    void interrupt(std::size_t index) {
        Live& job = live_[index];
        leave(index);
        const std::int64_t ran = (now_ - job.since).ms;
        const std::int64_t every = jobs_[index].work.checkpoint.value_or(Duration{}).ms;
        const std::int64_t kept = every > 0 ? ran / every * every : 0;
        job.left.ms -= kept;
        run_.lost_gpu_ms += static_cast<double>(ran - kept) * static_cast<double>(jobs_[index].units()) / gpu_unit;
        job.phase = Live::Phase::waiting;
        ++waiting_;
    }

    std::unexpected<Error> stuck() const {
        const auto job = std::ranges::find(live_, Live::Phase::waiting, &Live::phase);
        const auto number = static_cast<std::size_t>(job - live_.begin());
        std::string why;
        for (const Reason& reason : engine_.why(job->number, now_).reasons)
            why += "; " + fill(sched::words_of(reason.code), reason.arguments, Audience::fleet_operator);
        return fail(Code::conflict,
                    fmt::format("nothing runs, and {} jobs still wait; the first is job {}, which asks for {} GPUs{}",
                                waiting_, number + 1, print(Gpus{jobs_[number].units()}), why),
                    "this is a fault of the scheduler; report it with the input");
    }

    const std::vector<ScenarioJob>& jobs_;
    const bool fifo_;
    const QueueingSettings& settings_;
    Engine engine_;
    GpuLedger ledger_;
    std::vector<sched::ShapeNo> shapes_;  // by need
    std::vector<Live> live_;
    std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
    std::size_t arrived_ = 0, finished_ = 0;
    std::int64_t waiting_ = 0, in_use_ = 0;  // jobs; Gpus::units
    Instant now_;
    std::deque<std::size_t> line_;  // of fifo
    bool first_is_known_ = false;   // to the engine
    QueueingRun run_;
};

}  // namespace

Result<QueueingRun> run_queueing(const Scenario& scenario, QueuePolicy policy, const QueueingSettings& settings) {
    return Queueing{scenario, policy, settings}.run();
}

Result<std::vector<Duration>> times_alone(const GangTrace& trace, const TraceFleet& fleet, QueuePolicy policy,
                                          const QueueingSettings& settings) {
    TraceFleet share = fleet;
    share.tenants = 1;
    share.gpus = std::max<std::int64_t>(1, fleet.gpus / fleet.tenants);
    const std::int64_t whole = share.gpus / share.node_gpus * share.node_gpus;
    const std::int64_t most = whole > 0 ? whole : share.gpus;  // of one job
    std::vector<Duration> out(trace.size());
    for (std::size_t tenant = 0; tenant < std::min<std::size_t>(fleet.tenants, trace.size()); ++tenant) {
        GangTrace own;
        for (std::size_t i = tenant; i < trace.size(); i += fleet.tenants) {
            own.push_back(trace[i]);
            TraceJob& job = own.back();
            if (job.gpus <= most) continue;
            job.duration.ms = job.duration.ms * job.gpus / most;
            job.gpus = static_cast<std::int32_t>(most);
        }
        const auto scenario = scenario_of(own, share);
        if (!scenario) return std::unexpected(scenario.error());
        const auto run = run_queueing(*scenario, policy, {.wipe = settings.wipe});
        if (!run) return std::unexpected(run.error());
        for (std::size_t i = 0; i < own.size(); ++i)
            out[tenant + i * fleet.tenants] = run->jobs[i].finished - own[i].submitted;
    }
    return out;
}

}  // namespace bulkhead::replay
