// bulkhead simulate: policies tried out on traces and mixes.
#include "bulkhead/cli/simulate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>

#include "bulkhead/replay/inflation.hpp"
#include "bulkhead/replay/queueing.hpp"

namespace bulkhead::cli {

namespace {

// Which experiment it is: whoever names its input.
enum class Mode : std::uint8_t { pods, trace, mix, mig };
constexpr std::array<std::string_view, 4> mode_options{"--pods", "--trace", "--mix", "--mig"};

// An option, and the experiments it is for.
struct Belongs {
    const Option option;
    std::vector<Mode> modes;
};

bool is_for(const Belongs& belongs, Mode mode) { return std::ranges::find(belongs.modes, mode) != belongs.modes.end(); }

Result<Mode> chosen_mode(const Command command, const std::vector<Belongs>& options) {
    std::vector<Mode> given;
    for (std::size_t i = 0; i < mode_options.size(); ++i)
        if (command.is_given(std::string{mode_options[i]})) given.push_back(static_cast<Mode>(i));
    if (given.empty())
        return fail(Code::invalid, "there is nothing to simulate",
                    "one of --pods (with --nodes), --trace, --mix and --mig");
    const std::string_view first = mode_options[static_cast<std::size_t>(given.front())];
    if (given.size() > 1)
        return fail(Code::invalid,
                    fmt::format("{} and {} are different experiments", first,
                                mode_options[static_cast<std::size_t>(given.back())]),
                    "one of them at a time");
    std::vector<std::string> known;
    for (const Belongs& belongs : options)
        if (is_for(belongs, given.front())) known.push_back(belongs.option.name());
    for (const Belongs& belongs : options)
        if (belongs.option.is_given() && !is_for(belongs, given.front()))
            return fail(Code::invalid, fmt::format("{} does not go with {}", belongs.option.name(), first),
                        fmt::format("with {}: {}", first, fmt::join(known, ", ")));
    if (given.front() == Mode::pods && !command.is_given("--nodes"))
        return fail(Code::invalid, "--pods is given, and no nodes to put them on", "--nodes FILE");
    return given.front();
}

template <class Policy>
Result<> all_known(const std::vector<std::string>& asked, std::string_view mode) {
    const auto known = words(Policy{});
    for (const std::string& word : asked)
        if (word != "all" && std::ranges::find(known, word) == known.end())
            return fail(Code::invalid, fmt::format("{} has no policy \"{}\"", mode, word.substr(0, 64)),
                        fmt::format("{}, or all", fmt::join(known, ", ")));
    return {};
}

int simulate(const SimulateOptions& options, const Result<Mode>& mode, Context& context) {
    if (!mode) return complain(context, bad_input, mode.error());
    const std::string_view name = mode_options[static_cast<std::size_t>(*mode)];
    const auto known = *mode == Mode::pods ? all_known<replay::PackingPolicy>(options.policies, name)
                                           : all_known<replay::QueuePolicy>(options.policies, name);
    if (!known) return complain(context, bad_input, known.error());
    switch (*mode) {
        case Mode::pods:
            return simulate_inflation(options, context);
        case Mode::trace:
            return simulate_trace(options, context);
        case Mode::mix:
            return simulate_mix(options, context);
        case Mode::mig:
            break;
    }
    return simulate_mig(options, context);
}

void describe(Command command) {
    command.description(
        "Try policies out on a trace or a mix.\n\n"
        "--pods: the inflation experiment on the openb files. Tasks arrive in random order, then more drawn from the\n"
        "same list, until 130 % of the fleet's GPUs have been asked for; nobody leaves, and what fits nowhere is\n"
        "dropped. Printed is the share of GPUs in use when so much has arrived, the mean over all seeds.\n\n"
        "--trace: jobs arrive, wait for their GPUs, run and leave, as a trace says (columns num_gpu, submit_time,\n"
        "duration; priority or ddl). fifo serves strictly in the order of arrival; bulkhead is the scheduler of the\n"
        "control plane, told how long each job takes. Who is stopped or moved loses what it did since the last\n"
        "checkpoint, one every 30 minutes. Printed is how long jobs wait and take, and what that costs.\n\n"
        "--mix: the same with jobs, nodes and tenants drawn from a mix (bench/mixes/) and a seed.\n\n"
        "--mig: requests for MIG instances of one model arrive, are served at once or refused, and leave; nothing is\n"
        "moved. Printed is how many are served at several loads: by first-fit, by bulkhead, which learns from the\n"
        "requests what is asked for how often, and by a fleet that is packed anew for every request.\n\n"
        "The same input gives every policy the same arrivals, and the same bytes on every run.");
    command.footer(
        "Examples:\n"
        "  bulkhead simulate --nodes openb_node_list_gpu_node.csv --pods openb_pod_list_default.csv\n"
        "  bulkhead simulate --nodes NODES --pods A.csv.gz --pods B.csv.gz --policy all --seeds 42..51 -o json\n"
        "  bulkhead simulate --trace muri_trace1.csv --gpus 64 --tenants 4 --wipe 30s --out report.html\n"
        "  bulkhead simulate --mix bench/mixes/coarse.yaml --nodes 1000 --jobs 20000 --seed 1\n"
        "  bulkhead simulate --mig h100-80gb-sxm5 --gpus 100 --expect 1g.10gb=8,2g.20gb=4,3g.40gb=2,7g.80gb=1\n\n"
        "Exit status:\n"
        "  0  done\n"
        "  1  a file cannot be read or written\n"
        "  2  a file or an argument is wrong");
}

}  // namespace

Result<Seeds> parse_seeds(std::string_view text) {
    const auto number = [](std::string_view digits, std::uint64_t& into) {
        const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), into);
        return read.ec == std::errc{} && read.ptr == digits.data() + digits.size();
    };
    Seeds seeds;
    const std::size_t dots = text.find("..");
    const bool good = number(text.substr(0, dots), seeds.first) &&
                      number(dots == std::string_view::npos ? text : text.substr(dots + 2), seeds.last);
    if (!good || seeds.last < seeds.first || seeds.last - seeds.first >= 10'000)
        return fail(Code::invalid, fmt::format("\"{}\" is not a range of seeds", text.substr(0, 64)),
                    "--seeds 42..51, at most 10,000 of them");
    return seeds;
}

std::string title_of(const std::string& path) {
    std::string name = std::filesystem::path{path}.filename();
    for (const std::string_view ending : {".gz", ".csv", ".yaml"})
        if (name.ends_with(ending)) name.resize(name.size() - ending.size());
    return name;
}

Result<> write_page(const std::string& path, const std::string& text) {
    std::ofstream page{path, std::ios::binary};
    page << text;
    if (!page.flush()) return fail(Code::unavailable, fmt::format("{} cannot be written", path), "check the path");
    return {};
}

void add_simulate(Command program, Context& context) {
    Command command = program.add_subcommand("simulate", "Try policies out on a trace or a mix.");
    describe(command);
    auto options = std::make_shared<SimulateOptions>();
    auto belongs = std::make_shared<std::vector<Belongs>>();
    using enum Mode;
    const auto add = [&](const std::string& name, auto& into, const std::string& says, const std::string& type,
                         std::vector<Mode> modes) {
        Option option = command.add_option(name, into, says).type_name(type);
        belongs->push_back({option, std::move(modes)});
        return option;
    };
    add("--pods", options->pods, "A list of tasks, CSV, gzip or not; may be given several times.", "FILE", {pods});
    add("--nodes", options->nodes, "With --pods, the list of nodes; with --mix, how many (100).", "FILE|N",
        {pods, mix});
    add("--seeds", options->seeds, "Which seeds: 42..51.", "A..B", {pods, mig});
    add("--trace", options->trace, "Jobs with durations, CSV, gzip or not.", "FILE", {trace});
    add("--gpus", options->gpus, "GPUs of the fleet (64).", "N", {trace, mig});
    add("--node-gpus", options->node_gpus, "GPUs of each node (8).", "N", {trace, mig});
    add("--tenants", options->tenants, "Tenants that take turns at submitting (1).", "N", {trace});
    add("--mix", options->mix, "What a fleet is made of and what is asked of it.", "FILE", {mix});
    add("--jobs", options->jobs, "How many jobs are drawn (1000).", "N", {mix});
    add("--seed", options->seed, "What they are drawn with (1).", "N", {mix});
    add("--wipe", options->wipe, "How long GPUs are wiped after each job: 30s (0s).", "DURATION", {trace, mix});
    add("--mig", options->mig, "A model that can be cut: h100-80gb-sxm5.", "MODEL", {mig});
    add("--expect", options->expect, "What is asked for how often: 1g.10gb=5,3g.40gb=1 (every profile alike).", "LIST",
        {mig});
    add("--policy", options->policies, "Which policies, with commas between; or all.", "POLICY", {pods, trace, mix})
        .delimiter(',');
    add("-o,--output", options->output, "table or json.", "FORMAT", {pods, trace, mix, mig}).one_of({"table", "json"});
    add("--out", options->page, "Also write one HTML page with plots.", "FILE", {pods, trace, mix});
    belongs->push_back(
        {command.add_flag("--timing", options->timing, "Also say, on standard error, how long each policy took."),
         {trace, mix}});
    command.callback([options, belongs, command, &context] {
        context.status = simulate(*options, chosen_mode(command, *belongs), context);
    });
}

}  // namespace bulkhead::cli
