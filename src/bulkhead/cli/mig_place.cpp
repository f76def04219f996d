#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <utility>

#include "bulkhead/cli/mig.hpp"
#include "bulkhead/gpu/instance_list.hpp"
#include "bulkhead/gpu/why.hpp"

namespace bulkhead::cli {

namespace {

using gpu::Board;

struct Asked {
    const Board* board{};
    std::vector<gpu::Instance> existing;
    gpu::ProfileChoice what;
    const gpu::Profile& profile() const { return board->profiles[what.index]; }
    gpu::Occupancy now() const { return gpu::occupied(*board, existing); }
    std::string name() const { return gpu::print(*board, what); }
};

Result<Asked> read(const Board& board, const MigOptions& options) {
    Asked asked{&board, {}, {}};
    const auto choice = gpu::find_profile(board, options.profile);
    if (!choice) return std::unexpected(choice.error());
    auto existing = gpu::read_existing(board, options.have, "");
    if (!existing) return std::unexpected(existing.error());
    asked.what = *choice;
    asked.existing = std::move(*existing);
    return asked;
}

// Why it fits nowhere: the plan that only places it, with nothing idle, knows.
std::vector<Reason> why_not(const Asked& asked, const gpu::Geometry& geometry) {
    const gpu::Wanted wanted{asked.what, std::nullopt};
    const auto answer = gpu::plan(geometry, asked.existing, {&wanted, 1});
    return answer ? std::vector<Reason>{} : answer.error().reasons;
}

int refuse(const Asked& asked, const gpu::Geometry& geometry, const MigOptions& options, Context& context) {
    const std::vector<Reason> reasons = why_not(asked, geometry);
    if (options.json()) {
        JsonWriter json;
        json.begin_object();
        json.member("gpu", asked.board->id);
        json.member("grade", word(gpu::grade(asked.board->basis)));
        json.member("profile", asked.name());
        json.member("fits", false);
        write_starts(json, "starts", {});
        write_reasons(json, "reasons", reasons);
        json.end_object();
        context.out << json.take();
        return refused;
    }
    context.out << fmt::format("no: {} fits nowhere on {} beside {}\n", asked.name(), asked.board->id, options.have);
    for (const Reason& reason : reasons) context.out << "  - " << gpu::explain(reason) << '\n';
    context.out << assumption(*asked.board);
    context.out << fmt::format("  try: bulkhead mig plan --gpu {} --have {} --want {}\n", asked.board->id, options.have,
                               asked.name());
    return refused;
}

std::string room_left(const gpu::Geometry& geometry, gpu::Occupancy after) {
    std::vector<std::string> parts;
    const auto profiles = geometry.board().profiles;
    for (std::size_t p = 0; p < profiles.size(); ++p)
        if (const unsigned room = geometry.room(after, p); profiles[p].plain() && room > 0)
            parts.push_back(fmt::format("{} x {}", room, profiles[p].name));
    return parts.empty() ? "nothing" : fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

int mig_fit(const MigOptions& options, Context& context) {
    const auto board = board_for_mig(options.gpu);
    if (!board) return complain(context, could_not, board.error());
    const auto asked = read(**board, options);
    if (!asked) return complain(context, bad_input, asked.error());
    const gpu::Geometry geometry{**board};
    const gpu::Starts starts = geometry.fit(asked->now(), asked->what.index);
    if (starts.empty()) return refuse(*asked, geometry, options, context);
    if (options.json()) {
        JsonWriter json;
        json.begin_object();
        json.member("gpu", (*board)->id);
        json.member("grade", word(gpu::grade((*board)->basis)));
        json.member("profile", asked->name());
        json.member("fits", true);
        write_starts(json, "starts", starts);
        json.member("size", asked->profile().memory_slices);
        json.end_object();
        context.out << json.take();
    } else {
        context.out << fmt::format("yes: {} fits on {} at {} ({} memory slice{} wide)\n", asked->name(), (*board)->id,
                                   print_starts(starts), asked->profile().memory_slices,
                                   asked->profile().memory_slices == 1 ? "" : "s")
                    << assumption(**board);
    }
    return done;
}

int mig_place(const MigOptions& options, Context& context) {
    const auto board = board_for_mig(options.gpu);
    if (!board) return complain(context, could_not, board.error());
    const auto asked = read(**board, options);
    if (!asked) return complain(context, bad_input, asked.error());
    const auto weights =
        options.expect.empty() ? gpu::even_weights(**board) : gpu::read_weights(**board, options.expect);
    if (!weights) return complain(context, bad_input, weights.error());
    const gpu::Geometry geometry{**board, *weights};
    const auto best = geometry.place(asked->now(), asked->what.index);
    if (!best) return refuse(*asked, geometry, options, context);

    std::vector<unsigned> starts;
    for (const unsigned start : geometry.fit(asked->now(), asked->what.index)) starts.push_back(start);
    const auto after = [&](unsigned start) { return asked->now().with(asked->profile(), start); };
    std::ranges::sort(starts, {},
                      [&](unsigned start) { return std::pair{~geometry.value(after(start)).ticks, start}; });
    if (options.json()) {
        JsonWriter json;
        json.begin_object();
        json.member("gpu", (*board)->id);
        json.member("grade", word(gpu::grade((*board)->basis)));
        json.member("profile", asked->name());
        json.member("fits", true);
        json.member("start", *best);
        json.member("size", asked->profile().memory_slices);
        json.key("candidates");
        json.begin_array();
        for (const unsigned start : starts) {
            json.begin_object();
            json.member("start", start);
            json.key("value");
            json.number(fmt::format("{:.6f}", geometry.value(after(start)).requests()));
            json.key("room");
            json.begin_object();
            for (std::size_t p = 0; p < (*board)->profiles.size(); ++p)
                json.member((*board)->profiles[p].name, geometry.room(after(start), p));
            json.end_object();
            json.end_object();
        }
        json.end_array();
        json.end_object();
        context.out << json.take();
        return done;
    }
    context.out << fmt::format("{} goes to {}:{} on {}\n\n", asked->name(), *best, asked->profile().memory_slices,
                               (*board)->id);
    std::vector<std::vector<std::string>> rows{{"START", "VALUE", "LEAVES ROOM FOR (EACH ALONE)"}};
    for (const unsigned start : starts)
        rows.push_back({std::to_string(start), fmt::format("{:.3f}", geometry.value(after(start)).requests()),
                        room_left(geometry, after(start))});
    context.out << aligned(rows) << "\nvalue: how many more requests are expected to be served before one is refused,\n"
                << (options.expect.empty() ? "when every profile without attributes is as likely as any other"
                                           : fmt::format("when requests come as --expect {} says", options.expect))
                << "; of equal values, the lowest start\n"
                << assumption(**board);
    return done;
}

}  // namespace bulkhead::cli
