// bulkhead-referee: the scheduler's law held to by brute force over random small scenes.
#include <fmt/core.h>

#include <chrono>
#include <cstdlib>
#include <string>

#include "sim/referee/draw.hpp"
#include "sim/referee/trial.hpp"

namespace {

using namespace bulkhead::referee;

int usage() {
    fmt::print(
        stderr,
        "bulkhead-referee [--scenes N] [--orders N] [--growth N] [--limits N] [--seed S] [--without WORDS] [--only "
        "WORDS] [--show N] [--print "
        "S]\n\n"
        "Draws random small scenes with one claimant each, lets the engine decide them, decides them again by trying\n"
        "every plan that the law allows, and compares. --orders: scenes in which the order of arrival is permuted.\n"
        "--print: one scene with what both say. --show: disagreements printed in full (default 3).\n"
        "Exit 0: the two always agree; 1: they do not; 2: bad arguments.\n\ndimensions (comma between):\n ");
    for (const std::string_view word : words(Dimension{})) fmt::print(stderr, " {}", word);
    fmt::print(stderr, "\n");
    return 2;
}

bool read_dimensions(std::string_view text, Dimensions& out) {
    while (!text.empty()) {
        const std::size_t comma = text.find(',');
        const std::string_view word = text.substr(0, comma);
        std::size_t i = 0;
        while (i < dimension_count && words(Dimension{})[i] != word) ++i;
        if (i == dimension_count) return false;
        out.insert(static_cast<Dimension>(i));
        text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
    }
    return true;
}

void show(std::uint64_t seed, const Scene& scene, const Trial& trial) {
    fmt::print("# seed {}: the referee says: {}{}\n{}", seed, words(Answer{})[static_cast<std::size_t>(trial.answer)],
               trial.moves ? ", with moves" : "", document(scene));
    const Outcome outcome = play(scene, {.tell = true});
    fmt::print("# dues:");
    for (std::size_t t = 0; t < outcome.dues.all.size(); ++t)
        fmt::print(" t{} {:.3f} (own {:.3f})", t, outcome.dues.all[t] / parts_of_gpu,
                   outcome.dues.own[t] / parts_of_gpu);
    fmt::print("\n");
    for (const std::string& event : outcome.events) fmt::print("# {}\n", event);
    for (const auto& [kind, what] : trial.disagreements) fmt::print("# {}: {}\n", kind, what);
}

}  // namespace

int main(int argc, char** argv) {
    std::uint64_t scenes = 200'000, orders = 20'000, growth = 20'000, limits = 20'000, first = 1, shown = 3;
    std::optional<std::uint64_t> printed;
    Dimensions allowed = all_dimensions(), without;
    std::string left_out;
    for (int i = 1; i < argc; ++i) {
        const std::string argument = argv[i];
        if (i + 1 == argc) return usage();
        const std::string value = argv[++i];
        char* end = nullptr;
        const std::uint64_t number = std::strtoull(value.c_str(), &end, 10);
        const bool is_number = !value.empty() && *end == '\0';
        if (argument == "--scenes" && is_number) {
            scenes = number;
        } else if (argument == "--orders" && is_number) {
            orders = number;
        } else if (argument == "--growth" && is_number) {
            growth = number;
        } else if (argument == "--limits" && is_number) {
            limits = number;
        } else if (argument == "--seed" && is_number) {
            first = number;
        } else if (argument == "--show" && is_number) {
            shown = number;
        } else if (argument == "--print" && is_number) {
            printed = number;
        } else if (argument == "--without" && read_dimensions(value, without)) {
            left_out = value;
        } else if (argument == "--only") {
            allowed = {};
            if (!read_dimensions(value, allowed)) return usage();
        } else {
            return usage();
        }
    }
    allowed = allowed - without;
    if (printed) {
        const Scene scene = draw(*printed, allowed);
        const Trial trial = compare(scene);
        show(*printed, scene, trial);
        return trial.disagreements.empty() ? 0 : 1;
    }
    const auto began = std::chrono::steady_clock::now();
    std::map<std::string, std::uint64_t> kinds;
    std::array<std::uint64_t, 5> answers{};
    std::uint64_t moved = 0, harsh = 0, differ = 0, plans = 0;
    for (std::uint64_t seed = first; seed < first + scenes; ++seed) {
        const Scene scene = draw(seed, allowed);
        const Trial trial = compare(scene);
        ++answers[static_cast<std::size_t>(trial.answer)];
        moved += trial.moves ? 1 : 0;
        plans += trial.plans;
        harsh += trial.harsh ? 1 : 0;
        if (trial.harsh && shown > 0 && harsh <= shown) show(seed, scene, trial);
        if (trial.disagreements.empty()) continue;
        ++differ;
        ++kinds[trial.disagreements.front().first];
        if (differ <= shown) show(seed, scene, trial);
    }
    std::uint64_t orders_tried = 0, orders_differ = 0;
    for (std::uint64_t seed = first; seed < first + orders; ++seed) {
        const Scene scene = draw(seed, allowed, 3);
        const OrderTrial trial = compare_orders(scene, seed);
        orders_tried += static_cast<std::uint64_t>(trial.orders);
        if (trial.difference.empty()) continue;
        if (++orders_differ <= shown)
            fmt::print("# seed {}, order of arrival: {}\n{}", seed, trial.difference, document(scene));
    }
    const auto try_all = [&](const char* what, std::uint64_t count, bool grow, auto&& drawn, auto&& compared) {
        std::uint64_t wrong = 0;
        for (std::uint64_t seed = first; seed < first + count; ++seed) {
            const Scene scene = drawn(seed, allowed);
            const std::vector<std::string> said = compared(scene);
            if (said.empty() || ++wrong > shown) continue;
            fmt::print("# seed {}, {}\n{}", seed, what, document(scene));
            for (const std::string& each : play(scene, {.grow = grow, .tell = true}).events) fmt::print("# {}\n", each);
            for (const std::string& each : said) fmt::print("# {}: {}\n", what, each);
        }
        return wrong;
    };
    const std::uint64_t growth_wrong = try_all("growth", growth, true, draw_growth, compare_growth);
    const std::uint64_t limits_wrong = try_all("lowered limits", limits, false, draw_lowered_limits, compare_limits);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    fmt::print(
        "referee: {} scenes from seed {}, {} plans tried: {} have free room, {} served by guarantee, {} by fair share, "
        "{} by "
        "preemption, {} with moves, {} refused by law; {} disagreements",
        scenes, first, plans, answers[0], answers[1], answers[2], answers[3], moved, answers[4], differ);
    for (const auto& [kind, count] : kinds) fmt::print(", {} {}", count, kind);
    fmt::print("; {} harsher than needed", harsh);
    fmt::print("; order of arrival: {} scenes, {} orders, {} differ", orders, orders_tried, orders_differ);
    fmt::print("; growth: {} scenes, {} wrong; lowered limits: {} scenes, {} wrong", growth, growth_wrong, limits,
               limits_wrong);
    if (!left_out.empty()) fmt::print("; without {}", left_out);
    fmt::print("; {:.0f} s\n", seconds);
    return differ + orders_differ + growth_wrong + limits_wrong == 0 ? 0 : 1;
}
