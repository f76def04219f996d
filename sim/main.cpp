// bulkhead-sim: the whole fleet in one thread, from one seed, with faults.
#include <fmt/core.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>

#include "sim/world.hpp"

namespace {

using namespace bulkhead::sim;

int usage() {
    fmt::print(
        stderr,
        "bulkhead-sim --seeds A..B [--spec NAME] [--hours H] [--nodes N] [--minutes M] [--trace TEXT] [--quiet]\n\n"
        "Runs one simulated fleet for each seed and holds it to the invariants. Exit 0: none was violated; 1: "
        "one was,\n"
        "with the seed that replays it; 2: bad arguments. --minutes: stop starting new seeds after so "
        "long.\n\nspecs:\n");
    for (const Spec& spec : specs()) fmt::print(stderr, "  {:<10}{}\n", spec.name, spec.about);
    return 2;
}

void print_counts(const char* title, const std::map<std::string, std::uint64_t>& counts) {
    fmt::print("{}\n", title);
    for (const auto& [name, count] : counts) fmt::print("  {:<56}{:>12}\n", name, count);
}

}  // namespace

int main(int argc, char** argv) {
    std::uint64_t first = 1, last = 20;
    Spec world = *find_spec("default");
    const Spec* const spec = &world;
    double minutes = 0;
    bool quiet = false;
    std::string trace;
    // The world first: the other arguments change it.
    for (int i = 1; i + 1 < argc; ++i)
        if (argv[i] == std::string_view{"--spec"}) {
            const Spec* named = find_spec(argv[i + 1]);
            if (named == nullptr) return usage();
            world = *named;
        }
    std::string smaller;  // how the world differs from its spec, for the replay
    for (int i = 1; i < argc; ++i) {
        const std::string argument = argv[i];
        if (argument == "--seeds" && i + 1 < argc) {
            const std::string range = argv[++i];
            const std::size_t dots = range.find("..");
            char* end = nullptr;
            first = std::strtoull(range.c_str(), &end, 10);
            last = dots == std::string::npos ? first : std::strtoull(range.c_str() + dots + 2, &end, 10);
            if (end == nullptr || *end != '\0' || first > last) return usage();
        } else if (argument == "--spec" && i + 1 < argc) {
            ++i;
        } else if (argument == "--hours" && i + 1 < argc) {  // of which half are calm
            world.length = bulkhead::Duration::hours(std::atoi(argv[++i]));
            world.calm = bulkhead::Duration{world.length.ms / 2};
            smaller += fmt::format(" --hours {}", argv[i]);
        } else if (argument == "--nodes" && i + 1 < argc) {
            world.nodes = static_cast<std::uint32_t>(std::max(1, std::atoi(argv[++i])));
            smaller += fmt::format(" --nodes {}", world.nodes);
        } else if (argument == "--minutes" && i + 1 < argc) {
            minutes = std::atof(argv[++i]);
        } else if (argument == "--trace" && i + 1 < argc) {
            trace = argv[++i];
        } else if (argument == "--quiet") {
            quiet = true;
        } else {
            return usage();
        }
    }
    const auto began = std::chrono::steady_clock::now();
    const auto seconds = [&] {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    };
    std::map<std::string, std::uint64_t> faults, probes;
    std::uint64_t events = 0, runs = 0;
    std::int64_t simulated_ms = 0;
    int failures = 0;
    for (std::uint64_t seed = first; seed <= last; ++seed) {
        if (minutes > 0 && seconds() > minutes * 60) break;
        const RunResult result = run(*spec, seed, trace);
        ++runs;
        events += result.events;
        simulated_ms += result.simulated_ms;
        for (const auto& [name, count] : result.faults) faults[name] += count;
        for (const auto& [name, count] : result.probes) probes[name] += count;
        for (const Violation& violation : result.violations)
            fmt::print("seed {}: invariant {} at {:.3f} s: {}\n", seed, violation.invariant,
                       static_cast<double>(violation.at_ms) / 1000, violation.what);
        if (!result.violations.empty()) {
            ++failures;
            fmt::print("  replay: bulkhead-sim --spec {}{} --seeds {}..{}\n", spec->name, smaller, seed, seed);
        }
    }
    if (!quiet) {
        print_counts("faults", faults);
        print_counts("probes", probes);
    }
    fmt::print("spec {}: {} seeds, {} events, {:.1f} simulated hours, {:.1f} s, {:.0f} events/s; {} failed\n",
               spec->name, runs, events, static_cast<double>(simulated_ms) / 3'600'000, seconds(),
               static_cast<double>(events) / seconds(), failures);
    return failures == 0 ? 0 : 1;
}
