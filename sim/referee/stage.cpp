#include "sim/referee/stage.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace bulkhead::referee {

namespace {

constexpr const char* model = "any";
constexpr Instant now{1'800'000'000'000};

Gpus gpus_of(int parts) { return Gpus{Gpus::whole(parts).units / parts_of_gpu}; }
double parts_of(std::int64_t units) {
    return static_cast<double>(units) * parts_of_gpu / static_cast<double>(Gpus::whole(1).units);
}
std::optional<Duration> minutes(int count) {
    return count == none ? std::nullopt : std::optional{Duration{count * std::int64_t{60'000}}};
}

sched::TenantFacts facts_of(const Owner& owner, std::size_t number) {
    sched::TenantFacts facts;
    facts.name = fmt::format("t{}", number);
    if (owner.parent != none) facts.parent = static_cast<std::size_t>(owner.parent);
    facts.domain = static_cast<std::uint32_t>(owner.domain);
    facts.guarantee = gpus_of(owner.guarantee);
    if (owner.limit != none) facts.limit = gpus_of(owner.limit);
    facts.weight = owner.weight;
    facts.over_quota_priority = owner.surplus_priority;
    facts.hard = owner.hard;
    facts.reclaim_after = minutes(owner.reclaim_after);
    facts.preempt_after = minutes(owner.preempt_after);
    return facts;
}

sched::Node node_of(const Machine& machine, std::size_t number) {
    sched::Node node;
    node.name = fmt::format("n{}", number);
    node.leaf = fmt::format("l{}", machine.leaf);
    node.open = true;
    node.can_reboot = machine.can_reboot;
    node.cpu_free = machine.cores;
    node.memory_free = std::int64_t{1} << 40;
    for (const int user : machine.used_by) node.host_used_by.push_back(static_cast<sched::TenantNo>(user));
    for (int i = 0; i < machine.gpus; ++i)
        node.gpus.push_back({.model = model, .slices = 1, .available = 1, .seats = {}});
    return node;
}

Mechanism mechanism_of(const Work& work) {
    if (!work.is_share()) return Mechanism::whole;
    return work.time_sliced ? Mechanism::time_slicing : Mechanism::mps;
}

std::int64_t share_of(const Work& work) { return gpus_of(work.share).thousandths(); }

sched::TaskNeed need_of(const Work& work) {
    sched::Want want{.model = model, .profile_name = {}};
    want.count = work.gpus;
    if (work.is_share()) {
        want.form = sched::Want::Form::share;
        want.share = share_of(work);
    }
    sched::TaskNeed need;
    need.wants.push_back(want);
    need.any_model = true;
    need.mechanism = mechanism_of(work);
    need.cpu = work.cores;
    need.sharing = {work.node, work.gpu, work.instance(), work.node};
    need.on_host_kernel = work.host_kernel;
    return need;
}

sched::Job job_of(const Work& work, std::int64_t key) {
    sched::Job job;
    job.key = key;
    job.tenant = static_cast<sched::TenantNo>(work.tenant);
    job.tasks = work.tasks;
    job.least = work.least;
    job.gpus = gpus_of(work.part());
    if (work.within == Within::leaf) job.within = TopologyLevel::leaf;
    if (work.within == Within::node) job.within = TopologyLevel::node;
    job.priority = work.priority;
    job.preemptible = work.preemptible;
    job.submitted = now;
    job.checkpoint = minutes(work.checkpoint);
    return job;
}

sched::TaskSeat seat_of(const Work& work, const Place& place) {
    sched::TaskSeat seat;
    seat.node = static_cast<std::uint32_t>(place.node);
    for (std::uint16_t gpu = 0; gpu < most_gpus; ++gpu) {
        if ((place.gpus >> gpu & 1u) == 0) continue;
        seat.gpus.push_back(gpu);
        seat.seats.push_back({.start = 0,
                              .size = 1,
                              .profile = {},
                              .share = work.is_share() ? share_of(work) : sched::Seat{}.share,
                              .mechanism = mechanism_of(work)});
    }
    return seat;
}

class Stage {
public:
    Stage(const Scene& scene, const Playing& how) : scene_{scene}, how_{how}, engine_{settings_of(scene, how)} {
        std::vector<sched::TenantFacts> facts;
        for (std::size_t i = 0; i < scene.owners.size(); ++i) facts.push_back(facts_of(scene.owners[i], i));
        engine_.set_tenants(std::move(facts));
        for (std::size_t i = 0; i < scene.machines.size(); ++i) engine_.add_node(node_of(scene.machines[i], i));
        numbers_.resize(scene.running.size() + scene.waiting.size());
        by_key_.resize(numbers_.size());
        for (std::size_t i = 0; i < scene.running.size(); ++i) {
            const Work& work = scene.running[i];
            submit(i, i, work);
            std::vector<sched::TaskSeat> seats;
            for (const Place& place : work.runs) seats.push_back(seat_of(work, place));
            engine_.adopt(*numbers_[i], seats, Instant{now.ms - minutes(work.ran)->ms});
        }
        for (std::size_t i = 0; i < scene.waiting.size(); ++i) {
            const std::size_t next = how.order.empty() ? i : how.order[i];
            submit(scene.running.size() + next, scene.running.size() + i, scene.waiting[next]);
        }
    }

    Outcome play() {
        while (out_.cycles < most_cycles && !out_.settled) {
            ++out_.cycles;
            const sched::Statement statement = engine_.cycle(now);
            if (out_.cycles == 1) look_at_dues();
            out_.settled = statement.quiet() && statement.reboot.empty();
            carry_out(statement);
        }
        for (const auto& number : numbers_) {
            std::vector<Place> places;
            if (number && engine_.running(*number))
                for (const sched::TaskSeat& seat : engine_.seats(*number)) {
                    Place place{static_cast<int>(seat.node), 0};
                    for (const std::uint16_t gpu : seat.gpus)
                        place.gpus = static_cast<std::uint8_t>(place.gpus | 1u << gpu);
                    places.push_back(place);
                }
            out_.seats.push_back(std::move(places));
        }
        for (std::size_t t = 0; t < scene_.owners.size(); ++t)
            out_.leased.push_back(engine_.held(static_cast<sched::TenantNo>(t)));
        return std::move(out_);
    }

private:
    static sched::EngineSettings settings_of(const Scene& scene, const Playing& how) {
        sched::EngineSettings settings;
        settings.grow = how.grow;
        settings.moves = scene.moves;
        return settings;
    }

    void submit(std::size_t index, std::size_t position, const Work& work) {
        sched::Job job = job_of(work, static_cast<std::int64_t>(position) + 1);
        job.shape = engine_.shape(need_of(work));
        numbers_[index] = engine_.submit(job);
        by_key_[position] = index;
    }
    std::size_t job_of_key(std::int64_t key) const { return by_key_[static_cast<std::size_t>(key - 1)]; }

    void look_at_dues() {
        for (sched::TenantNo t = 0; t < scene_.owners.size(); ++t) {
            out_.dues.all.push_back(parts_of(engine_.due(t)));
            out_.dues.own.push_back(parts_of(engine_.own_due(t)));
        }
    }

    void look_for_budget(std::span<const Reason> reasons) {
        for (const Reason& reason : reasons)
            if (reason.code.find("budget") != std::string_view::npos) out_.budget_spent = true;
    }

    void carry_out(const sched::Statement& statement) {
        const auto tell = [&](const std::string& text) {
            if (how_.tell) out_.events.push_back(fmt::format("cycle {}: {}", out_.cycles, text));
        };
        for (const sched::Binding& each : statement.bind)
            tell(fmt::format("j{} starts {} tasks", each.workload, each.tasks.size()));
        for (const sched::Move& each : statement.move) {
            out_.moved = static_cast<JobSet>(out_.moved | only(job_of_key(each.workload)));
            tell(fmt::format("j{} moves for j{}", each.workload, each.claimant));
        }
        for (const sched::Eviction& each : statement.evict) {
            look_for_budget(each.reasons);
            out_.evicted.push_back(each);
            tell(fmt::format("j{} loses {} tasks ({}) for j{}{}", each.workload, each.tasks,
                             words(each.action)[static_cast<std::size_t>(each.action)], each.claimant,
                             each.whole ? "" : ", goes on"));
            if (!each.whole) continue;
            auto& number = numbers_[job_of_key(each.workload)];
            if (how_.wait_again) {
                engine_.stopped(*number);
            } else {
                engine_.finish(*number);
                number.reset();
            }
        }
        disturbed_ = disturbed_ || !statement.move.empty() || !statement.evict.empty();
        for (const sched::NodeNo node : statement.reboot) {
            engine_.rebooted(node);
            out_.rebooted |= 1u << node;
            if (!disturbed_) out_.rebooted_first |= 1u << node;
            tell(fmt::format("n{} reboots", node));
        }
        for (const sched::Waiting& each : statement.waiting) {
            look_for_budget(each.reasons);
            for (const Reason& reason : each.reasons) tell(fmt::format("j{} waits: {}", each.workload, reason.code));
        }
    }

    const Scene& scene_;
    Playing how_;
    sched::Engine engine_;
    std::vector<std::optional<sched::JobNo>> numbers_;
    std::vector<std::size_t> by_key_;
    bool disturbed_ = false;  // work was moved or ended
    Outcome out_;
};

}  // namespace

Outcome play(const Scene& scene, const Playing& how) { return Stage{scene, how}.play(); }

}  // namespace bulkhead::referee
