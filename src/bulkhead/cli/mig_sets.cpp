#include <fmt/format.h>

#include <ostream>

#include "bulkhead/cli/mig.hpp"
#include "bulkhead/gpu/layout.hpp"

namespace bulkhead::cli {

namespace {

using gpu::Board;

std::string_view double_memory_profile(const Board& board) {
    for (const gpu::Profile& profile : board.profiles)
        if (profile.double_memory()) return profile.name;
    return {};
}

struct Slices {
    unsigned compute{}, memory{};
};

Slices slices_of(const Board& board, const gpu::Multiset& set) {
    Slices sum;
    for (std::size_t p = 0; p < set.size(); ++p) {
        sum.compute += set[p] * board.profiles[p].slices;
        sum.memory += set[p] * board.profiles[p].memory_slices;
    }
    return sum;
}

}  // namespace

int mig_sets(const MigOptions& options, Context& context) {
    const auto found = board_for_mig(options.gpu);
    if (!found) return complain(context, could_not, found.error());
    const Board& board = **found;
    const gpu::Include include = options.all                ? gpu::Include::all
                                 : options.no_double_memory ? gpu::Include::plain
                                                            : gpu::Include::double_memory;
    const std::vector<gpu::Multiset> sets = gpu::maximal_sets(board, include);
    const std::string_view twice = double_memory_profile(board);
    if (options.json()) {
        JsonWriter json;
        json.begin_object();
        json.member("gpu", board.id);
        json.member("attributes", options.all);
        json.member("doubleMemory", !twice.empty() && include != gpu::Include::plain);
        json.key("sets");
        json.begin_array();
        for (const gpu::Multiset& set : sets) {
            json.begin_object();
            for (std::size_t p = set.size(); p-- > 0;)
                if (set[p] > 0) json.member(board.profiles[p].name, unsigned{set[p]});
            json.end_object();
        }
        json.end_array();
        json.end_object();
        context.out << json.take();
        return done;
    }
    context.out << fmt::format("{}: {} sets to which nothing can be added, however they are placed\n", board.id,
                               sets.size());
    if (!twice.empty())
        context.out << fmt::format("double-memory {}: {}\n", twice,
                                   include == gpu::Include::plain ? "left out (--no-double-memory)" : "included");
    context.out << fmt::format("profiles with attributes (+me and the like): {}\n\n",
                               options.all ? "included" : "left out; --all includes them");
    std::vector<std::vector<std::string>> rows{{"SET", "COMPUTE", "MEMORY"}};
    for (const gpu::Multiset& set : sets) {
        const Slices sum = slices_of(board, set);
        rows.push_back({gpu::print(board, set), fmt::format("{}/{}", sum.compute, board.slices),
                        fmt::format("{}/{}", sum.memory, board.memory_slices)});
    }
    context.out << aligned(rows) << assumption(board);
    return done;
}

}  // namespace bulkhead::cli
