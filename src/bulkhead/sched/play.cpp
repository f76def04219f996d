#include "bulkhead/sched/play.hpp"

#include <optional>

namespace bulkhead::sched {

namespace {

class Stage {
public:
    Stage(const Scene& scene, const PlaySettings& settings)
        : scene_{scene}, settings_{settings}, engine_{remembering(scene.settings)}, numbers_(scene.jobs.size()) {
        engine_.set_tenants(scene.tenants);
        for (const Node& node : scene.nodes) engine_.add_node(node);
        for (std::size_t i = 0; i < scene.jobs.size(); ++i) {
            const SceneJob& job = scene.jobs[i];
            if (job.held_back) continue;
            Job its = job.job;
            its.shape = engine_.shape(job.need);
            numbers_[i] = engine_.submit(its);
            if (!job.runs.empty()) engine_.adopt(*numbers_[i], job.runs, job.started);
        }
    }

    Played play() {
        const int last = settings_.cycles > 0 ? settings_.cycles : most_cycles;
        Instant now = scene_.now;
        bool was_quiet = false;
        while (out_.cycles < last) {
            if (settings_.cycles > 0 && out_.cycles > 0) now = now + between_cycles;
            ++out_.cycles;
            Statement statement = engine_.cycle(now);
            // A job for which room is reserved may start in the cycle after the last change.
            const bool quiet = statement.quiet() && statement.reboot.empty();
            out_.settled = quiet && (was_quiet || engine_.promises().empty());
            was_quiet = quiet;
            out_.over_limit = statement.over_limit;
            carry_out(std::move(statement));
            if (out_.settled && settings_.cycles == 0) break;
        }
        look_around(now);
        return std::move(out_);
    }

private:
    // Work that leaves has used the kernel of its node, which a stranger gets after a reboot alone.
    static EngineSettings remembering(EngineSettings settings) {
        settings.remember_hosts = true;
        return settings;
    }

    std::optional<JobNo>& number_of(std::int64_t key) { return numbers_[static_cast<std::size_t>(key - 1)]; }

    void carry_out(Statement statement) {
        for (Binding& each : statement.bind) out_.bindings.push_back({out_.cycles, std::move(each)});
        for (Move& each : statement.move) out_.moves.push_back({out_.cycles, std::move(each)});
        for (Eviction& each : statement.evict) {
            if (each.whole) leave(number_of(each.workload));
            out_.evictions.push_back({out_.cycles, std::move(each)});
        }
        for (const NodeNo node : statement.reboot) {
            engine_.rebooted(node);
            out_.reboots.push_back({out_.cycles, node});
        }
    }

    void leave(std::optional<JobNo>& job) {
        if (settings_.resubmit) return engine_.stopped(*job);
        engine_.finish(*job);
        job.reset();
    }

    void look_around(Instant now) {
        for (std::size_t i = 0; i < scene_.jobs.size(); ++i) {
            const SceneJob& job = scene_.jobs[i];
            if (job.held_back)
                out_.waiting.push_back(
                    {.workload = job.job.key, .reasons = {*job.held_back}, .expected_ms = {}, .blocking = {}});
            if (!numbers_[i]) continue;
            if (engine_.running(*numbers_[i]))
                out_.running.push_back({.workload = job.job.key, .tasks = engine_.seats(*numbers_[i])});
            else
                out_.waiting.push_back(engine_.explain(*numbers_[i], now));
        }
        for (TenantNo i = 0; i < scene_.tenants.size(); ++i)
            out_.tenants.push_back({Gpus{engine_.held(i)}, Gpus{engine_.due(i)}});
    }

    const Scene& scene_;
    PlaySettings settings_;
    Engine engine_;
    std::vector<std::optional<JobNo>> numbers_;  // none: held back, or gone
    Played out_;
};

}  // namespace

Played play(const Scene& scene, const PlaySettings& settings) { return Stage{scene, settings}.play(); }

}  // namespace bulkhead::sched
