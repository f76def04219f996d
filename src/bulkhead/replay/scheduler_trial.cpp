#include "bulkhead/replay/scheduler_trial.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "bulkhead/replay/meters.hpp"
#include "bulkhead/replay/mix_fleet.hpp"
#include "bulkhead/sched/engine.hpp"

namespace bulkhead::replay {

namespace {

using sched::JobNo;
using sched::ShapeNo;

constexpr std::int64_t most_trial_nodes = 1'000'000;

class Times {
public:
    void add(std::int64_t ns, bool yes) {
        ns_.push_back(ns);
        yes_ += yes ? 1 : 0;
    }
    TrialTimes summed() {
        TrialTimes out{.count = static_cast<std::int64_t>(ns_.size()), .yes = yes_};
        if (ns_.empty()) return out;
        std::ranges::sort(ns_);
        const auto at = [&](std::size_t percent) {
            return static_cast<double>(ns_[(ns_.size() - 1) * percent / 100]) / 1000;
        };
        out.p50_us = at(50);
        out.p99_us = at(99);
        out.max_us = at(100);
        return out;
    }

private:
    std::vector<std::int64_t> ns_;
    std::int64_t yes_ = 0;
};

// The gang that is asked for beside the mix: 64 whole nodes of 8, eight and eight on one leaf, all in one zone.
constexpr std::int32_t gang_tasks = 64, gang_group = 8;
constexpr std::int64_t gang_gpus = 8;

class Trial {
public:
    Trial(const FleetMix& mix, const TrialOptions& options)
        : mix_{mix},
          options_{options},
          resident_before_{resident_bytes()},
          fleet_{mix, static_cast<std::size_t>(options.nodes), options.seed},
          rng_{options.seed ^ 0xB0B0} {}

    TrialFigures run() {
        build();
        fill();
        note_memory();
        measure_churn();
        measure_unschedulable();
        measure_gangs();
        measure_reclaim();
        return figures_;
    }

private:
    struct Running {
        JobNo job = 0;
        std::int64_t units = 0;
    };

    void say(std::string_view what) const {
        if (options_.progress) options_.progress(what);
    }
    static double seconds_since(std::int64_t ns) { return static_cast<double>(thread_cpu_ns() - ns) / 1e9; }
    Instant tick() {
        now_.ms += 10;
        return now_;
    }

    void build() {
        say("building the fleet");
        const std::int64_t began = thread_cpu_ns();
        engine_.set_tenants(fleet_.tenants());
        for (std::size_t i = 0; i < fleet_.nodes(); ++i) {
            const sched::Node node = fleet_.node(i);
            engine_.add_node(node);
            for (const sched::Gpu& gpu : node.gpus)
                for (const sched::Seat& seat : gpu.seats) held_ += gpu_unit * seat.size / gpu.slices;
        }
        for (const MixVariant& variant : fleet_.variants())
            for (const sched::TaskNeed& need : variant.needs) shapes_.push_back(engine_.shape(need));
        for (const MixTeam& team : fleet_.teams())
            if (team.idle) idle_.push_back(team);
        figures_.nodes = options_.nodes;
        figures_.gpus = fleet_.gpus();
        figures_.tenants = static_cast<std::int64_t>(fleet_.tenants().size());
        std::vector<ShapeNo> different = shapes_;
        std::ranges::sort(different);
        figures_.shapes = std::ranges::unique(different).begin() - different.begin();
        figures_.build_s = seconds_since(began);
    }

    sched::Job drawn() {
        MixDraw draw = fleet_.draw(rng_);
        draw.job.shape = shapes_[draw.variant * team_trusts + static_cast<std::size_t>(draw.trust)];
        return draw.job;
    }

    // Places the job or takes it back.
    bool place(sched::Job& job, Times* times) {
        job.key = ++last_key_;
        job.submitted = tick();
        const JobNo number = engine_.submit(job);
        const std::int64_t before = times != nullptr ? thread_cpu_ns() : 0;
        const bool placed = engine_.allocate(number, now_);
        if (times != nullptr && job.tasks == 1) times->add(thread_cpu_ns() - before, placed);
        if (!placed) {
            engine_.finish(number);
            return false;
        }
        running_.push_back({number, job.gpus.units * job.tasks});
        held_ += running_.back().units;
        return true;
    }

    void end(std::size_t at) {
        held_ -= running_[at].units;
        engine_.finish(running_[at].job);
        running_[at] = running_.back();
        running_.pop_back();
    }

    void fill() {
        say("filling it");
        const std::int64_t began = thread_cpu_ns();
        const std::int64_t wanted = fleet_.gpus() * mix_.full.units;
        constexpr int patience = 3000;
        for (int misses = 0; held_ < wanted && misses < patience;) {
            sched::Job job = drawn();
            misses = place(job, nullptr) ? 0 : misses + 1;
            ++figures_.fill_decisions;
        }
        target_ = std::min(wanted, held_);  // a mix that cannot fill its fleet churns where it got stuck
        figures_.fill_s = seconds_since(began);
        figures_.jobs = static_cast<std::int64_t>(running_.size());
        figures_.full = static_cast<double>(held_) / static_cast<double>(fleet_.gpus() * gpu_unit);
    }

    void note_memory() {
        const sched::EngineFigures memory = engine_.figures();
        const auto per = [](std::size_t bytes, std::int64_t count) {
            return count == 0 ? 0 : static_cast<double>(bytes) / static_cast<double>(count);
        };
        figures_.distinct_states = static_cast<std::int64_t>(memory.states);
        figures_.bytes_per_node = per(memory.node_bytes, figures_.nodes);
        figures_.bytes_per_job = per(memory.job_bytes, figures_.jobs);
        const std::int64_t grown = std::max<std::int64_t>(resident_bytes() - resident_before_, 0);
        figures_.process_bytes_per_job = per(static_cast<std::size_t>(grown), figures_.jobs);
    }

    // One decision: what ended makes room, what is next is tried.
    bool decide(sched::Job& job, Times* times) {
        while (held_ >= target_ && !running_.empty()) end(rng_.below(running_.size()));
        return place(job, times);
    }

    struct Batch {
        std::int64_t placed = 0;
        double cpu_s = 0;
        std::optional<std::int64_t> instructions;
    };
    // Jobs are drawn beforehand, so that only the engine is on the clock.
    Batch churn(std::int64_t decisions, Times* times) {
        coming_.clear();
        for (std::int64_t i = 0; i < decisions; ++i) coming_.push_back(drawn());
        Batch batch;
        const std::optional<std::int64_t> counted = counter_.read();
        const std::int64_t began = thread_cpu_ns();
        for (sched::Job& job : coming_) batch.placed += decide(job, times) ? 1 : 0;
        batch.cpu_s = seconds_since(began);
        if (const auto after = counter_.read(); after && counted) batch.instructions = *after - *counted;
        return batch;
    }

    // Reading the clock costs a tenth of a decision. So throughput and latency are measured in turns, never at once.
    void measure_churn() {
        say("warming up");
        constexpr std::int64_t batch_size = 1024;
        const auto enough = [&](std::int64_t done, double cpu_s) {
            return done <= 0 || cpu_s * 1000 >= static_cast<double>(options_.cpu_ms);
        };
        double warming = 0;
        for (std::int64_t left = options_.decisions / 10; !enough(left, warming * 5); left -= batch_size)
            warming += churn(std::min(left, batch_size), nullptr).cpu_s;
        say("measuring decisions");
        Times times;
        std::int64_t instructions = 0;
        for (std::int64_t left = options_.decisions; !enough(left, figures_.cpu_s); left -= batch_size) {
            const std::int64_t size = std::min(left, batch_size);
            const Batch batch = churn(size, nullptr);
            figures_.decisions += size;
            figures_.placed += batch.placed;
            figures_.cpu_s += batch.cpu_s;
            instructions += batch.instructions.value_or(0);
            churn(size / 2, &times);
        }
        figures_.single = times.summed();
        figures_.decisions_per_second = static_cast<double>(figures_.decisions) / figures_.cpu_s;
        if (instructions > 0)
            figures_.instructions_per_decision =
                static_cast<double>(instructions) / static_cast<double>(figures_.decisions);
    }

    // Asks until there are enough answers or time is up.
    template <class Ask>
    TrialTimes rounds(const Ask& ask) {
        Times times;
        const std::int64_t until = thread_cpu_ns() + options_.round_ms * 1'000'000;
        for (std::int64_t i = 0; i < options_.rounds && thread_cpu_ns() < until; ++i) ask(i, times);
        return times.summed();
    }

    const MixTeam& some_team() {
        for (;;) {
            const MixTeam& team = fleet_.teams()[rng_.below(fleet_.teams().size())];
            if (!team.idle) return team;
        }
    }

    // A job for whole GPUs in the names of a team.
    sched::Job whole(const MixTeam& team, std::int64_t gpus, std::int32_t tasks) {
        const MixVariant variant = fleet_.variant_of({.gpus = gpus, .cpu = {gpus}, .memory = {{gpus << 30}}});
        sched::Job job{.key = ++last_key_, .tenant = team.tenant, .tasks = tasks, .gpus = Gpus::whole(gpus)};
        job.shape = engine_.shape(variant.needs[static_cast<std::size_t>(team.trust)]);
        job.submitted = tick();
        return job;
    }
    sched::Job gang(const MixTeam& team, std::int32_t tasks) {
        sched::Job job = whole(team, gang_gpus, tasks);
        job.within = TopologyLevel::zone;
        job.group = gang_group;
        job.group_within = TopologyLevel::leaf;
        return job;
    }
    bool has_room_for_gangs() const {
        const std::int64_t per_zone =
            mix_.topology.nodesPerLeaf * mix_.topology.leavesPerRack * mix_.topology.racksPerZone;
        return std::min(per_zone, options_.nodes) >= gang_tasks && mix_.topology.nodesPerLeaf >= gang_group &&
               std::ranges::any_of(mix_.nodes, [](const MixNodes& sort) { return sort.gpus >= gang_gpus; });
    }

    void measure_unschedulable() {
        if (!has_room_for_gangs()) return;
        say("asking for gangs that do not fit");
        figures_.unschedulable = rounds([&](std::int64_t i, Times& times) {
            churn(5, nullptr);
            const MixTeam& team = some_team();
            bool fits = true;
            for (std::int32_t tasks = gang_tasks << i % 3; fits; tasks *= 2) {  // one that fits is made larger
                const JobNo number = engine_.submit(gang(team, tasks));
                const std::int64_t before = thread_cpu_ns();
                fits = engine_.allocate(number, now_);
                if (!fits) {
                    const sched::Waiting waiting = engine_.why(number, now_);
                    times.add(thread_cpu_ns() - before, !waiting.reasons.empty());
                }
                engine_.finish(number);
            }
        });
    }

    // Empties enough nodes in every second zone, eight on a leaf, so that the gang fits there and nowhere else.
    void drain() {
        std::vector<std::vector<std::uint32_t>> jobs_on(fleet_.nodes());
        for (std::uint32_t i = 0; i < running_.size(); ++i)
            for (const sched::TaskSeat& seat : engine_.seats(running_[i].job)) jobs_on[seat.node].push_back(i);
        const std::size_t per_leaf = static_cast<std::size_t>(mix_.topology.nodesPerLeaf);
        std::vector<std::uint32_t> ending;
        std::vector<int> drained(fleet_.zone_of_node(fleet_.nodes() - 1) + 1);
        for (std::size_t leaf = 0; leaf * per_leaf < fleet_.nodes(); ++leaf) {
            const std::size_t first = leaf * per_leaf, last = std::min(first + per_leaf, fleet_.nodes());
            int& here = drained[fleet_.zone_of_node(first)];
            if (fleet_.zone_of_node(first) % 2 != 0 || here >= gang_tasks + gang_group) continue;
            std::vector<std::size_t> good;
            for (std::size_t i = first; i < last && good.size() < gang_group; ++i) {
                const sched::Node node = fleet_.node(i);
                if (node.gpus.size() >= gang_gpus && std::ranges::all_of(node.gpus, &sched::Gpu::empty))
                    good.push_back(i);
            }
            if (good.size() < gang_group) continue;
            here += gang_group;
            for (const std::size_t node : good) ending.insert(ending.end(), jobs_on[node].begin(), jobs_on[node].end());
        }
        std::ranges::sort(ending, std::greater<>{});  // from the back, so that places stay what they are
        ending.erase(std::ranges::unique(ending).begin(), ending.end());
        for (const std::uint32_t at : ending) end(at);
    }

    void measure_gangs() {
        if (!has_room_for_gangs()) return;
        say("asking for gangs of 64 nodes");
        const std::int64_t before_draining = target_;
        bool fits = false;
        figures_.gang512 = rounds([&](std::int64_t, Times& times) {
            if (!fits) {
                drain();
                target_ = held_;
            }
            churn(20, nullptr);
            const JobNo number = engine_.submit(gang(some_team(), gang_tasks));
            const std::int64_t before = thread_cpu_ns();
            fits = engine_.allocate(number, now_);
            times.add(thread_cpu_ns() - before, fits);
            engine_.finish(number);
        });
        target_ = before_draining;
    }

    // Nothing is left for anybody and others wait for more; then the idle ask for what they are due.
    void measure_reclaim() {
        if (idle_.empty()) return;
        say("filling it up");
        constexpr int patience = 2000;
        for (int misses = 0; misses < patience;) {
            sched::Job job = drawn();
            misses = place(job, nullptr) ? 0 : misses + 1;
        }
        // Dues are of what is asked for: without a queue nobody would hold more than its due.
        const std::int64_t wanted = fleet_.gpus() * gpu_unit / 2;
        for (std::int64_t waiting = 0; waiting < wanted;) {
            sched::Job job = drawn();
            job.key = ++last_key_;
            job.submitted = tick();
            engine_.submit(job);
            waiting += job.gpus.units * job.tasks;
        }
        say("asking whom to reclaim from");
        figures_.reclaim = rounds([&](std::int64_t i, Times& times) {
            const MixTeam& team = idle_[static_cast<std::size_t>(i) % idle_.size()];
            const std::int64_t most = std::ranges::max(mix_.nodes, {}, &MixNodes::gpus).gpus;
            const JobNo number = engine_.submit(whole(team, std::min(rng_.between(1, 8), most), 1));
            const std::int64_t before = thread_cpu_ns();
            const std::vector<sched::Eviction> evicted = engine_.would_reclaim(number, now_);
            times.add(thread_cpu_ns() - before, !evicted.empty());
            engine_.finish(number);
        });
    }

    const FleetMix& mix_;
    const TrialOptions& options_;
    const std::int64_t resident_before_;
    MixFleet fleet_;
    sched::Engine engine_;
    Rng rng_;
    InstructionCounter counter_;
    std::vector<ShapeNo> shapes_;  // by variant, then trust
    std::vector<MixTeam> idle_;
    std::vector<Running> running_;
    std::vector<sched::Job> coming_;
    std::int64_t held_ = 0, target_ = 0;  // Gpus::units
    std::int64_t last_key_ = 0;
    Instant now_{1'800'000'000'000};
    TrialFigures figures_;
};

}  // namespace

Result<TrialFigures> try_scheduler(const FleetMix& mix, const TrialOptions& options) {
    if (options.nodes < 1 || options.nodes > most_trial_nodes)
        return fail(Code::invalid, fmt::format("a fleet of {} nodes cannot be tried", options.nodes),
                    fmt::format("from 1 to {}", most_trial_nodes));
    if (options.decisions < 1)
        return fail(Code::invalid, fmt::format("{} decisions measure nothing", options.decisions), "at least 1");
    return Trial{mix, options}.run();
}

}  // namespace bulkhead::replay
