// MIG acceptance: how many requests for instances a fleet serves, and how many it could.
#include <fmt/format.h>

#include <array>
#include <ostream>

#include "bulkhead/cli/progress.hpp"
#include "bulkhead/cli/simulate.hpp"
#include "bulkhead/cli/terminal.hpp"
#include "bulkhead/codec/json_writer.hpp"
#include "bulkhead/gpu/instance_list.hpp"
#include "bulkhead/replay/mig_acceptance.hpp"

namespace bulkhead::cli {

namespace {

using replay::MigCount;
using replay::MigFigures;

constexpr std::array<std::int64_t, 5> loads{80, 90, 100, 120, 150};

struct Server {
    std::string_view name;
    std::int64_t MigCount::* served;
};
constexpr std::array servers{Server{"first-fit", &MigCount::first_fit}, Server{"bulkhead", &MigCount::bulkhead},
                             Server{"packed anew", &MigCount::packed_anew}};

// Served requests, or served slices.
struct Of {
    std::string_view name;
    MigCount MigFigures::* count;
};
constexpr std::array countings{Of{"requests", &MigFigures::requests}, Of{"slices", &MigFigures::slices}};

double percent(const MigCount& of, const Server& server) {
    return of.asked == 0 ? 0 : 100.0 * static_cast<double>(of.*server.served) / static_cast<double>(of.asked);
}

void add_to(MigCount& sum, const MigCount& more) {
    sum.asked += more.asked;
    for (const Server& server : servers) sum.*server.served += more.*server.served;
}

void print_lines(std::ostream& out, const std::vector<MigFigures>& figures, bool colour) {
    std::vector<Row> rows;
    Row head{{"SERVED", bold}, {"OF", bold}};
    for (const std::int64_t load : loads) head.push_back({fmt::format("@{}%", load), bold});
    rows.push_back(head);
    for (const Of& of : countings)
        for (const Server& server : servers) {
            Row row{{std::string{server.name}}, {std::string{of.name}}};
            for (const MigFigures& each : figures)
                row.push_back({fmt::format("{:.2f}", percent(each.*of.count, server))});
            rows.push_back(std::move(row));
        }
    print_table(out, rows, 2, colour);
}

void print_json(std::ostream& out, const std::vector<MigFigures>& figures) {
    JsonWriter json;
    json.begin_object();
    for (const Server& server : servers) {
        json.key(server.name);
        json.begin_object();
        for (const Of& of : countings) {
            json.key(fmt::format("{}_percent", of.name));
            json.begin_object();
            for (std::size_t i = 0; i < loads.size(); ++i) {
                json.key(std::to_string(loads[i]));
                json.number(fmt::format("{:.4f}", percent(figures[i].*of.count, server)));
            }
            json.end_object();
        }
        json.end_object();
    }
    json.end_object();
    out << json.take();
}

}  // namespace

int simulate_mig(const SimulateOptions& options, Context& context) {
    const auto seeds = parse_seeds(options.seeds);
    if (!seeds) return complain(context, bad_input, seeds.error());
    const auto board = gpu::find_board(options.mig);
    if (!board) return complain(context, could_not, board.error());
    auto weights = options.expect.empty() ? gpu::even_weights(**board) : gpu::read_weights(**board, options.expect);
    if (!weights) return complain(context, bad_input, weights.error());
    replay::MigFleet fleet{.board = *board, .gpus = options.gpus, .node_gpus = options.node_gpus};
    fleet.weights = std::move(*weights);
    std::vector<MigFigures> figures(loads.size());
    const std::size_t count = seeds->last - seeds->first + 1;
    Progress progress{context, count * loads.size()};
    for (std::size_t i = 0; i < loads.size(); ++i) {
        fleet.load = loads[i];
        for (std::size_t s = 0; s < count; ++s) {
            const auto run = replay::run_mig_acceptance(fleet, seeds->first + s);
            if (!run) return complain(context, bad_input, run.error());
            add_to(figures[i].requests, run->requests);
            add_to(figures[i].slices, run->slices);
            progress.step(fmt::format("{} % seed {}", loads[i], seeds->first + s));
        }
    }
    if (options.output == "json")
        print_json(context.out, figures);
    else
        print_lines(context.out, figures, context.colour);
    return done;
}

}  // namespace bulkhead::cli
