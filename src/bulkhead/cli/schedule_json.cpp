// The answer of the scheduler for programs.
#include <fmt/core.h>

#include <algorithm>

#include "bulkhead/cli/schedule_text.hpp"
#include "bulkhead/codec/json_writer.hpp"
#include "bulkhead/codec/print.hpp"

namespace bulkhead::cli {

namespace {

class Writer {
public:
    explicit Writer(const ScheduleAnswer& answer) : answer_{answer} {}

    std::string all() {
        const sched::Played& played = answer_.played;
        json_.begin_object();
        json_.member("settled", played.settled);
        json_.member("cycles", played.cycles);
        json_.member("now", print(answer_.scene.now));
        list("bindings", played.bindings, [&](const auto& each) { binding(each.what, each.cycle); });
        list("running", played.running, [&](const auto& each) { binding(each, 0); });
        list("evictions", played.evictions, [&](const auto& each) { eviction(each.what, each.cycle); });
        list("moves", played.moves, [&](const auto& each) { move(each.what, each.cycle); });
        list("reboots", played.reboots, [&](const auto& each) {
            json_.begin_object();
            json_.member("node", node(each.what));
            json_.member("cycle", each.cycle);
            json_.end_object();
        });
        list("waiting", played.waiting, [&](const auto& each) { waiting(each); });
        list("refused", answer_.scene.refused, [&](const auto& each) { write(json_, each); });
        std::size_t at = 0;
        list("tenants", played.tenants, [&](const auto& each) {
            json_.begin_object();
            json_.member("tenant", answer_.scene.tenants[at++].name);
            json_.member("held", each.held);
            json_.member("due", each.due);
            json_.end_object();
        });
        list("overLimit", played.over_limit, [&](const sched::OverLimit& each) {
            json_.begin_object();
            json_.member("tenant", answer_.scene.tenants[each.tenant].name);
            json_.member("held", each.held);
            json_.member("kept", each.kept);
            json_.member("limit", each.limit);
            json_.member("notPreemptible", each.fixed);
            json_.end_object();
        });
        json_.end_object();
        return json_.take();
    }

private:
    template <class T, class Write>
    void list(std::string_view name, const std::vector<T>& items, const Write& write_one) {
        json_.key(name);
        json_.begin_array();
        for (const T& item : items) write_one(item);
        json_.end_array();
    }

    const std::string& node(std::uint32_t number) const { return answer_.scene.nodes[number].name; }
    const sched::SceneJob& job(std::int64_t key) const { return answer_.scene.jobs[static_cast<std::size_t>(key - 1)]; }

    void whose(std::int64_t key) {
        json_.member("workload", job(key).name);
        json_.member("tenant", answer_.scene.tenants[job(key).job.tenant].name);
    }

    // All GPUs of a task are held alike.
    void task(const sched::TaskSeat& seat) {
        json_.begin_object();
        json_.member("node", node(seat.node));
        list("gpus", seat.gpus, [&](std::uint16_t gpu) { json_.value(std::int64_t{gpu}); });
        if (!seat.seats.empty()) {
            const sched::Seat& first = seat.seats.front();
            if (!first.profile.empty()) {
                json_.key("slice");
                json_.begin_object();
                json_.member("profile", first.profile);
                json_.member("start", std::int64_t{first.start});
                json_.member("size", std::int64_t{first.size});
                json_.end_object();
            }
            json_.member("share", Gpus::of_thousandths(first.share));
        }
        if (!seat.drives.empty())
            list("drives", seat.drives, [&](std::uint16_t drive) { json_.value(std::int64_t{drive}); });
        if (!seat.functions.empty())
            list("functions", seat.functions, [&](std::uint16_t each) { json_.value(std::int64_t{each}); });
        json_.end_object();
    }

    void binding(const sched::Binding& each, int cycle) {
        json_.begin_object();
        whose(each.workload);
        list("tasks", each.tasks, [&](const sched::TaskSeat& seat) { task(seat); });
        if (cycle > 0) {
            json_.member("backfilled", each.backfilled);
            json_.member("cycle", cycle);
        }
        json_.end_object();
    }

    void reasons(const std::vector<Reason>& all) {
        list("reasons", all, [&](const Reason& reason) {
            json_.begin_object();
            json_.member("code", reason.code);
            json_.member("says", says(reason));
            json_.key("arguments");
            json_.begin_object();
            for (const Argument& argument : reason.arguments)
                std::visit([&](const auto& value) { json_.member(argument.name, value); }, argument.value);
            json_.end_object();
            json_.end_object();
        });
    }

    void names(std::string_view key, std::vector<std::uint32_t> nodes) {
        std::ranges::sort(nodes);
        nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
        list(key, nodes, [&](std::uint32_t each) { json_.value(node(each)); });
    }

    void claimant(std::int64_t key) {
        json_.key("claimant");
        if (key == 0)
            json_.null();
        else
            json_.value(job(key).name);
    }

    void eviction(const sched::Eviction& each, int cycle) {
        json_.begin_object();
        whose(each.workload);
        json_.member("action", word(each.action));
        claimant(each.claimant);
        json_.member("tasks", each.tasks);
        json_.member("whole", each.whole);
        json_.member("lostGpuSeconds", Gpus::of_thousandths(each.lost_gpu_ms));
        names("nodes", each.nodes);
        reasons(each.reasons);
        json_.member("cycle", cycle);
        json_.end_object();
    }

    void move(const sched::Move& each, int cycle) {
        json_.begin_object();
        whose(each.workload);
        claimant(each.claimant);
        names("from", each.from);
        list("to", each.to, [&](const sched::TaskSeat& seat) { task(seat); });
        json_.member("cycle", cycle);
        json_.end_object();
    }

    void waiting(const sched::Waiting& each) {
        json_.begin_object();
        whose(each.workload);
        reasons(each.reasons);
        if (each.expected_ms) json_.member("expected", print(Instant{*each.expected_ms}));
        if (each.blocking) {
            json_.key("inTheWay");
            write(json_, in_the_way(answer_, *each.blocking));
        }
        json_.end_object();
    }

    const ScheduleAnswer& answer_;
    JsonWriter json_;
};

}  // namespace

std::string schedule_json(const ScheduleAnswer& answer) { return Writer{answer}.all(); }

}  // namespace bulkhead::cli
