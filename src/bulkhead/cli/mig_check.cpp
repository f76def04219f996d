#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <ostream>

#include "bulkhead/cli/input.hpp"
#include "bulkhead/cli/mig.hpp"
#include "bulkhead/codec/mig_parted.hpp"
#include "bulkhead/gpu/layout.hpp"
#include "bulkhead/gpu/why.hpp"

namespace bulkhead::cli {

namespace {

using gpu::Board;

// What one board says to one entry of the file.
struct Judged {
    const Board* board{};
    bool known = true;  // every profile exists on the board
    std::vector<Diagnostic> problems;
    gpu::LayoutVerdict verdict;
    bool valid() const { return problems.empty(); }
};

struct Entry {
    const MigPartedConfig* config{};
    const MigPartedDevices* devices{};
    bool asked = false;                // --gpu narrows the question to one board
    bool filtered = false;             // the boards are those the file or --gpu names, not all we know
    std::vector<std::string> strange;  // device-filter ids of no board we know
    std::vector<Diagnostic> problems;  // of the entry itself, whatever the board
    std::vector<Judged> judged;

    // Every board the question is about has answered. Where MIG is off there is nothing to ask.
    bool checked() const { return !devices->mig_enabled || (!judged.empty() && (asked || strange.empty())); }
    // Nothing when nobody could say: silence is not a yes.
    std::optional<bool> valid() const {
        if (!problems.empty()) return false;
        if (!devices->mig_enabled) return true;
        // Without a filter the file leaves the board open: one that can hold the layout is enough.
        if (!filtered) return std::ranges::any_of(judged, &Judged::valid);
        if (!std::ranges::all_of(judged, &Judged::valid)) return false;
        return checked() ? std::optional{true} : std::nullopt;
    }
};

// How many entries of the file are what.
struct Tally {
    std::size_t valid{}, invalid{}, unchecked{};
    std::optional<bool> all() const {
        if (invalid > 0) return false;
        return unchecked > 0 ? std::nullopt : std::optional{true};
    }
};

Tally tally(const std::vector<Entry>& entries) {
    Tally sum;
    for (const Entry& entry : entries) {
        const auto valid = entry.valid();
        ++(!valid ? sum.unchecked : *valid ? sum.valid : sum.invalid);
    }
    return sum;
}

std::vector<Diagnostic> repeated_devices(const MigPartedDevices& devices) {
    std::vector<unsigned> sorted = devices.devices;
    std::ranges::sort(sorted);
    std::vector<Diagnostic> problems;
    for (std::size_t i = 1; i < sorted.size(); ++i)
        if (sorted[i] == sorted[i - 1] && (i == 1 || sorted[i] != sorted[i - 2]))
            problems.push_back({devices.where, fmt::format("device {} is named more than once", sorted[i]),
                                "name each device once; was another one meant?"});
    return problems;
}

Judged judge(const Board& board, const MigPartedDevices& devices) {
    Judged judged{.board = &board};
    std::vector<gpu::Count> counts;
    for (const MigPartedCount& entry : devices.mig_devices) {
        const auto choice = gpu::find_profile(board, entry.profile);
        if (choice) {
            counts.push_back({*choice, static_cast<std::uint64_t>(std::max(entry.count, 0))});
            continue;
        }
        judged.known = false;
        judged.problems.push_back({entry.where, choice.error().what, choice.error().remedy});
    }
    if (!judged.known) return judged;
    judged.verdict = gpu::check_layout(gpu::Geometry{board}, counts);
    for (const Reason& reason : judged.verdict.reasons)
        judged.problems.push_back({devices.where, fmt::format("{}: {}", board.id, gpu::explain(reason)), {}});
    return judged;
}

Entry judge(const MigPartedConfig& config, const MigPartedDevices& devices, const Board* asked) {
    Entry entry{.config = &config, .devices = &devices, .asked = asked != nullptr};
    entry.problems = repeated_devices(devices);
    if (!devices.mig_enabled) return entry;
    std::vector<const Board*> boards;
    for (const std::string& id : devices.device_filter) {
        const Board* board = gpu::find_board_by_pci(id);
        if (board == nullptr)
            entry.strange.push_back(id);
        else if (std::ranges::find(boards, board) == boards.end())
            boards.push_back(board);
    }
    entry.filtered = asked != nullptr || !devices.device_filter.empty();
    if (devices.device_filter.empty() && asked != nullptr) boards.push_back(asked);
    if (!entry.filtered)
        for (const Board& board : gpu::boards()) boards.push_back(&board);
    if (asked != nullptr) std::erase_if(boards, [&](const Board* board) { return board != asked; });
    for (const Board* board : boards) entry.judged.push_back(judge(*board, devices));
    return entry;
}

std::string places(const Judged& judged) {
    std::vector<std::string> parts;
    parts.reserve(judged.verdict.seats.size());
    for (const gpu::Seat& seat : judged.verdict.seats)
        parts.push_back(fmt::format("{}@{}", judged.board->profiles[seat.profile].name, seat.start));
    return parts.empty() ? "no instances" : fmt::format("{}", fmt::join(parts, " "));
}

std::string which(const MigPartedDevices& devices) {
    if (devices.all_devices) return "all devices";
    return fmt::format("device{} {}", devices.devices.size() == 1 ? "" : "s", fmt::join(devices.devices, ","));
}

// No board can hold it: the boards that at least have the profiles say why, or the profile that none has is named.
void print_nowhere(const Entry& entry, Context& context) {
    const bool some_known = std::ranges::any_of(entry.judged, &Judged::known);
    for (const Judged& judged : entry.judged)
        if (judged.known)
            for (const Diagnostic& problem : judged.problems) context.out << print(problem);
    if (some_known) return;
    for (const MigPartedCount& count : entry.devices->mig_devices) {
        const auto has = [&](const Judged& judged) {
            return gpu::find_profile(*judged.board, count.profile).has_value();
        };
        if (std::ranges::none_of(entry.judged, has))
            context.out << print(Diagnostic{count.where, fmt::format("no known board has a profile {}", count.profile),
                                            "bulkhead mig profiles"});
    }
}

void print_entry(const Entry& entry, Context& context) {
    const Position& at = entry.devices->where;
    const std::string head =
        fmt::format("{}:{}:{}: {}, {}", at.file, at.line, at.column, entry.config->name, which(*entry.devices));
    for (const Diagnostic& problem : entry.problems) context.out << print(problem);
    if (!entry.checked())
        for (const std::string& id : entry.strange)
            context.out << fmt::format("{}: not checked for {}: no board we know has that PCI id\n", head, id);
    if (!entry.devices->mig_enabled) {
        if (entry.problems.empty()) context.out << fmt::format("{}: valid: MIG is off\n", head);
        return;
    }
    if (!entry.filtered) {
        std::vector<std::string_view> boards;
        for (const Judged& judged : entry.judged)
            if (judged.valid()) boards.push_back(judged.board->id);
        if (!boards.empty()) {
            context.out << fmt::format("{}: valid on {}\n", head, fmt::join(boards, ", "));
            return;
        }
        context.out << fmt::format("{}: impossible on every board we know\n", head);
        return print_nowhere(entry, context);
    }
    if (entry.asked && entry.judged.empty())
        context.out << fmt::format("{}: not checked: its device-filter does not name the board of --gpu\n", head);
    for (const Judged& judged : entry.judged) {
        if (judged.valid())
            context.out << fmt::format("{}: valid on {}: {}\n", head, judged.board->id, places(judged));
        else
            context.out << fmt::format("{}: impossible on {}\n", head, judged.board->id);
        for (const Diagnostic& problem : judged.problems) context.out << print(problem);
        for (const Reason& note : judged.verdict.notes) context.out << fmt::format("  note: {}\n", gpu::explain(note));
    }
}

void write_problems(JsonWriter& json, const std::vector<Diagnostic>& problems) {
    json.key("problems");
    json.begin_array();
    for (const Diagnostic& problem : problems) {
        json.begin_object();
        json.member("line", problem.where.line);
        json.member("column", problem.where.column);
        json.member("text", problem.what);
        json.member("remedy", problem.remedy);
        json.end_object();
    }
    json.end_array();
}

void write_valid(JsonWriter& json, std::optional<bool> valid) {
    json.key("valid");
    if (valid)
        json.value(*valid);
    else
        json.null();
}

void write_devices(JsonWriter& json, const MigPartedDevices& devices) {
    json.key("devices");
    if (devices.all_devices) {
        json.value(std::string_view{"all"});
    } else {
        json.begin_array();
        for (const unsigned device : devices.devices) json.value(device);
        json.end_array();
    }
    json.key("deviceFilter");
    json.begin_array();
    for (const std::string& id : devices.device_filter) json.value(id);
    json.end_array();
}

void write_judged(JsonWriter& json, const Judged& judged) {
    json.begin_object();
    json.member("gpu", judged.board->id);
    json.member("valid", judged.valid());
    write_problems(json, judged.problems);
    write_reasons(json, "reasons", judged.verdict.reasons);
    write_reasons(json, "notes", judged.verdict.notes);
    json.key("placements");
    json.begin_array();
    for (const gpu::Seat& seat : judged.verdict.seats) {
        json.begin_object();
        json.member("profile", judged.board->profiles[seat.profile].name);
        json.member("start", seat.start);
        json.member("size", judged.board->profiles[seat.profile].memory_slices);
        json.end_object();
    }
    json.end_array();
    json.end_object();
}

void write(const std::vector<Entry>& entries, std::optional<bool> valid, Context& context) {
    JsonWriter json;
    json.begin_object();
    write_valid(json, valid);
    json.key("entries");
    json.begin_array();
    for (const Entry& entry : entries) {
        json.begin_object();
        json.member("file", entry.devices->where.file);
        json.member("line", entry.devices->where.line);
        json.member("column", entry.devices->where.column);
        json.member("config", entry.config->name);
        write_devices(json, *entry.devices);
        json.member("migEnabled", entry.devices->mig_enabled);
        json.member("checked", entry.checked());
        write_valid(json, entry.valid());
        write_problems(json, entry.problems);
        json.key("unknownDevices");
        json.begin_array();
        for (const std::string& id : entry.strange) json.value(id);
        json.end_array();
        json.key("boards");
        json.begin_array();
        for (const Judged& judged : entry.judged) write_judged(json, judged);
        json.end_array();
        json.end_object();
    }
    json.end_array();
    json.end_object();
    context.out << json.take();
}

}  // namespace

int mig_check(const MigOptions& options, Context& context) {
    const Board* asked = nullptr;
    if (!options.gpu.empty()) {
        const auto board = board_for_mig(options.gpu);
        if (!board) return complain(context, could_not, board.error());
        asked = *board;
    }
    const auto sources = read_sources({options.file});
    if (!sources) return complain(context, could_not, sources.error());
    std::vector<MigPartedFile> files;
    for (const SourceText& source : *sources) {
        auto file = read_mig_parted(source.name, source.text);
        if (!file) {
            for (const Diagnostic& problem : file.error()) context.err << print(problem);
            return bad_input;
        }
        files.push_back(*std::move(file));
    }
    std::vector<Entry> entries;
    for (const MigPartedFile& file : files)
        for (const MigPartedConfig& config : file.configs)
            for (const MigPartedDevices& devices : config.devices) entries.push_back(judge(config, devices, asked));

    const Tally sum = tally(entries);
    if (options.json()) {
        write(entries, sum.all(), context);
    } else {
        for (const Entry& entry : entries) print_entry(entry, context);
        context.out << fmt::format("{} {}: {} valid, {} invalid, {} not checked\n", entries.size(),
                                   entries.size() == 1 ? "entry" : "entries", sum.valid, sum.invalid, sum.unchecked);
    }
    if (sum.invalid > 0) return refused;
    return sum.unchecked > 0 ? could_not : done;
}

}  // namespace bulkhead::cli
