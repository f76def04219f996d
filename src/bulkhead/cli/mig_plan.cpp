#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <ostream>
#include <span>

#include "bulkhead/cli/mig.hpp"
#include "bulkhead/gpu/instance_list.hpp"
#include "bulkhead/gpu/why.hpp"

namespace bulkhead::cli {

namespace {

using gpu::Action;
using gpu::Board;
using gpu::Plan;
using gpu::Step;

std::string_view word(Action action) {
    switch (action) {
        case Action::destroy_compute_instances:
            return "destroy-compute-instances";
        case Action::destroy_gpu_instance:
            return "destroy-gpu-instance";
        case Action::create_gpu_instance:
            return "create-gpu-instance";
        case Action::create_compute_instance:
            return "create-compute-instance";
    }
    return "";
}

bool is_destroy(const Step& step) {
    return step.action == Action::destroy_gpu_instance || step.action == Action::destroy_compute_instances;
}

std::string sentence(const Board& board, const Step& step) {
    const gpu::Profile& profile = board.profiles[step.profile];
    const auto ci = compute_profile(board, profile, step.compute.size);
    switch (step.action) {
        case Action::destroy_compute_instances:
            return fmt::format("destroy the compute instances of {}@{}", profile.name, step.start);
        case Action::destroy_gpu_instance:
            return fmt::format("destroy {}@{}", profile.name, step.start);
        case Action::create_gpu_instance:
            return fmt::format("create {} at {}:{} (profile id {})", profile.name, step.start, profile.memory_slices,
                               dash(profile.id));
        case Action::create_compute_instance:
            return fmt::format("create compute instance {}c at {}:{} in {}@{} (compute profile {})", step.compute.size,
                               step.compute.start, step.compute.size, profile.name, step.start,
                               ci ? std::to_string(static_cast<int>(*ci)) : "-");
    }
    return "";
}

std::string sentence(const Board& board, const gpu::Move& move) {
    const std::string_view name = board.profiles[move.profile].name;
    return move.stop_first ? fmt::format("move {}@{} to {}: it must stop first, because two {} cannot exist at once",
                                         name, move.from, move.to, name)
                           : fmt::format("move {}@{} to {}: it can start there before it stops at {}", name, move.from,
                                         move.to, move.from);
}

void write_step(JsonWriter& json, const Board& board, const Step& step) {
    const gpu::Profile& profile = board.profiles[step.profile];
    json.begin_object();
    json.member("action", word(step.action));
    json.member("profile", profile.name);
    member_or_null(json, "profileId", profile.id);
    json.member("start", step.start);
    json.member("size", profile.memory_slices);
    if (step.action == Action::create_compute_instance) {
        const auto ci = compute_profile(board, profile, step.compute.size);
        json.key("computeInstance");
        json.begin_object();
        json.member("name", gpu::print(board, {step.profile, step.compute.size}));
        json.member("start", step.compute.start);
        json.member("size", step.compute.size);
        member_or_null(json, "profile", ci ? gpu::Known{static_cast<int>(*ci)} : gpu::Known{});
        json.end_object();
    }
    json.end_object();
}

void write_move(JsonWriter& json, const Board& board, const gpu::Move& move, bool as_step) {
    json.begin_object();
    if (as_step) json.member("action", "move");
    json.member("profile", board.profiles[move.profile].name);
    json.member("from", move.from);
    json.member("to", move.to);
    json.member("stopFirst", move.stop_first);
    json.end_object();
}

// Room for the move first, then the move, then what it was made for.
struct InOrder {
    std::span<const Step> before, after;
};
InOrder around_the_move(const Plan& plan) {
    const std::span<const Step> steps{plan.steps};
    const auto destroys = static_cast<std::size_t>(std::ranges::find_if_not(steps, is_destroy) - steps.begin());
    return {steps.first(destroys), steps.subspan(destroys)};
}

void write_plan(JsonWriter& json, const Board& board, const Plan& plan, const std::optional<gpu::Move>& move) {
    json.begin_object();
    json.member("destroyed", plan.destroyed);
    json.member("memorySlicesDestroyed", plan.slices_destroyed);
    json.member("created", plan.created);
    json.key("steps");
    json.begin_array();
    const InOrder steps = around_the_move(plan);
    for (const Step& step : steps.before) write_step(json, board, step);
    if (move) write_move(json, board, *move, true);
    for (const Step& step : steps.after) write_step(json, board, step);
    json.end_array();
    json.key("grants");
    json.begin_array();
    for (const gpu::Grant& grant : plan.grants) {
        json.begin_object();
        json.member("profile", gpu::print(board, grant.what));
        json.member("start", grant.start);
        json.member("existed", grant.existed);
        json.end_object();
    }
    json.end_array();
    json.end_object();
}

std::string gives(const Board& board, const Plan& plan) {
    std::vector<std::string> parts;
    parts.reserve(plan.grants.size());
    for (const gpu::Grant& grant : plan.grants)
        parts.push_back(fmt::format("{}@{}{}", gpu::print(board, grant.what), grant.start,
                                    grant.existed ? " (idle until now)" : ""));
    return fmt::format("gives {}\n", fmt::join(parts, ", "));
}

int print_plan(const Board& board, const Plan& plan, Context& context) {
    if (plan.steps.empty())
        context.out << fmt::format("{}: nothing to destroy or create\n", board.id);
    else
        context.out << fmt::format("{}: destroy {} ({} memory slice{}), create {}\n", board.id, plan.destroyed,
                                   plan.slices_destroyed, plan.slices_destroyed == 1 ? "" : "s", plan.created);
    int number = 0;
    for (const Step& step : plan.steps) context.out << fmt::format("  {}. {}\n", ++number, sentence(board, step));
    context.out << gives(board, plan);
    return done;
}

int print_refusal(const Board& board, const gpu::Refusal& refusal, const MigOptions& options, Context& context) {
    context.out << fmt::format("no: {} cannot be had on {} without touching what is in use\n", options.want, board.id);
    for (const Reason& reason : refusal.reasons) context.out << "  - " << gpu::explain(reason) << '\n';
    if (!refusal.move) {
        context.out << "no single instance in use could move to make it possible\n";
        return refused;
    }
    context.out << "one move would make it possible; the order would be:\n";
    int number = 0;
    const InOrder steps = around_the_move(refusal.with_move);
    for (const Step& step : steps.before) context.out << fmt::format("  {}. {}\n", ++number, sentence(board, step));
    context.out << fmt::format("  {}. {}\n", ++number, sentence(board, *refusal.move));
    for (const Step& step : steps.after) context.out << fmt::format("  {}. {}\n", ++number, sentence(board, step));
    context.out << gives(board, refusal.with_move);
    return refused;
}

}  // namespace

int mig_plan(const MigOptions& options, Context& context) {
    const auto board = board_for_mig(options.gpu);
    if (!board) return complain(context, could_not, board.error());
    const auto existing = gpu::read_existing(**board, options.have, options.idle);
    if (!existing) return complain(context, bad_input, existing.error());
    const auto wanted = gpu::read_wanted(**board, options.want);
    if (!wanted) return complain(context, bad_input, wanted.error());
    const auto weights =
        options.expect.empty() ? gpu::even_weights(**board) : gpu::read_weights(**board, options.expect);
    if (!weights) return complain(context, bad_input, weights.error());

    const auto answer = gpu::plan(gpu::Geometry{**board, *weights}, *existing, *wanted);
    if (!options.json()) {
        const int status =
            answer ? print_plan(**board, *answer, context) : print_refusal(**board, answer.error(), options, context);
        context.out << assumption(**board);
        return status;
    }
    JsonWriter json;
    json.begin_object();
    json.member("gpu", (*board)->id);
    json.member("grade", word(gpu::grade((*board)->basis)));
    json.member("possible", answer.has_value());
    if (answer) {
        json.key("plan");
        write_plan(json, **board, *answer, std::nullopt);
    } else {
        const auto& [reasons, move, with_move] = answer.error();
        write_reasons(json, "reasons", reasons);
        json.key("move");
        if (move) {
            write_move(json, **board, *move, false);
            json.key("planWithMove");
            write_plan(json, **board, with_move, move);
        } else {
            json.null();
        }
    }
    json.end_object();
    context.out << json.take();
    return answer ? done : refused;
}

}  // namespace bulkhead::cli
