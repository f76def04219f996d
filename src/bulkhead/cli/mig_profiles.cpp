#include <fmt/format.h>

#include <ostream>

#include "bulkhead/cli/mig.hpp"
#include "bulkhead/gpu/instance_list.hpp"

namespace bulkhead::cli {

namespace {

using gpu::Board;
using gpu::Profile;

std::string gib(gpu::Known mib) { return mib ? fmt::format("{:.2f}", *mib / 1024.0) : "-"; }
std::string yes_no(std::optional<bool> truth) { return !truth ? "-" : *truth ? "Yes" : "No"; }

// The box of `nvidia-smi mig -lgip`, to the column: people and scripts know it.
std::string listing(const Board& board, const gpu::Geometry& geometry, gpu::Occupancy now) {
    const std::string rule = fmt::format("+{:-<79}+\n", "");
    std::string text = rule + fmt::format("|{:<79}|\n", " GPU instance profiles:") +
                       "| GPU   Name               ID    Instances   Memory     P2P    SM    DEC   ENC  |\n"
                       "|                                Free/Total   GiB              CE    JPEG  OFA  |\n" +
                       fmt::format("|{:=<79}|\n", "");
    for (std::size_t p = 0; p < board.profiles.size(); ++p) {
        const Profile& profile = board.profiles[p];
        const gpu::Engines& e = profile.engines;
        text += fmt::format("|   0  MIG {:<15}{:>3}     {:<11}{:<11}{:<7}{:<7}{:<6}{:<4}|\n", profile.name,
                            dash(profile.id), fmt::format("{}/{}", geometry.room(now, p), profile.max_instances),
                            gib(profile.memory_mib), yes_no(profile.p2p), dash(profile.sms), dash(e.decoders),
                            dash(e.encoders));
        text += fmt::format("|{:63}{:<6}{:<6}{:<4}|\n", "", dash(e.copy), dash(e.jpeg), dash(e.ofa)) + rule;
    }
    return text;
}

std::string placements(const Board& board) {
    std::vector<std::vector<std::string>> rows{
        {"PROFILE", "PLACEMENTS", "SLICES", "NVML", "ENUM", "RESOURCE", "DRIVER", "ALSO NAMED"}};
    for (const Profile& profile : board.profiles)
        rows.push_back(
            {std::string{profile.name}, fmt::format("{{{}}}:{}", print_starts(profile.starts), profile.memory_slices),
             fmt::format("{}g/{}m", profile.slices, profile.memory_slices),
             std::to_string(static_cast<int>(profile.nvml)), std::string{gpu::nvml_name(profile.nvml).substr(26)},
             gpu::resource_name(gpu::parse_profile_name(profile.name).value()),
             profile.min_driver.empty() ? "-" : std::string{profile.min_driver},
             profile.also_named.empty() ? "" : std::string{profile.also_named}});
    return aligned(rows);
}

std::string_view name_of(const Board& board, gpu::GiEnum nvml) {
    for (const Profile& profile : board.profiles)
        if (profile.nvml == nvml) return profile.name;
    return "-";
}

std::string compute_name(const Board& board, const gpu::ComputeProfile& ci) {
    for (const Profile& profile : board.profiles)
        if (profile.nvml == ci.gpu_instance)
            return ci.slices == profile.slices ? std::string{profile.name}
                                               : fmt::format("{}c.{}", ci.slices, profile.name);
    return "-";
}

void print_compute(const Board& board, Context& context) {
    if (board.compute_profiles.empty()) {
        context.out << fmt::format(
            "{}: no source lists its compute-instance profiles; plans use those of the other boards with {} slices\n",
            board.id, board.slices);
        return;
    }
    std::vector<std::vector<std::string>> rows{
        {"GPU INSTANCE", "COMPUTE INSTANCE", "ID", "MAX", "SM", "PLACEMENTS", "BASIS"}};
    for (const gpu::ComputeProfile& ci : board.compute_profiles)
        rows.push_back({std::string{name_of(board, ci.gpu_instance)}, compute_name(board, ci),
                        std::to_string(static_cast<int>(ci.nvml)), std::to_string(ci.max_instances), dash(ci.sms),
                        ci.starts.empty() ? "-" : fmt::format("{{{}}}:{}", print_starts(ci.starts), ci.slices),
                        ci.basis.empty() ? "not sourced" : std::string{ci.basis}});
    context.out << fmt::format(
                       "{}: compute-instance profiles; placements count compute slices inside the GPU instance\n\n",
                       board.id)
                << aligned(rows);
}

void print_board(const Board& board, gpu::Occupancy now, Context& context) {
    const std::string sms = !board.sms_full
                                ? "SMs not sourced"
                                : fmt::format("{} SMs ({} in MIG mode)", *board.sms_full, dash(board.sms_in_mig));
    context.out << fmt::format("{}: {}\n{}, compute capability {}; {} compute and {} memory slices; {}; {}\n", board.id,
                               board.product, board.architecture, board.compute_capability, board.slices,
                               board.memory_slices, sms,
                               board.memory_mib ? fmt::format("{} MiB", *board.memory_mib) : "memory not sourced");
    if (!board.min_driver.empty()) context.out << fmt::format("MIG needs driver {} or newer\n", board.min_driver);
    context.out << listing(board, gpu::Geometry{board}, now) << '\n' << placements(board) << '\n';
    context.out << fmt::format("placements: {} (grade: {})\n", board.basis_note, word(gpu::grade(board.basis)));
    if (!board.caution.empty()) context.out << fmt::format("caution: {}\n", board.caution);
    context.out << "a driver may change sizes, SM counts and names: on a node, NVML has the last word\n";
}

void write_profile(JsonWriter& json, const Profile& profile, unsigned free) {
    json.begin_object();
    json.member("name", profile.name);
    json.member("nvmlEnum", gpu::nvml_name(profile.nvml));
    json.member("nvmlValue", static_cast<int>(profile.nvml));
    member_or_null(json, "id", profile.id);
    json.member("slices", profile.slices);
    json.member("memorySlices", profile.memory_slices);
    member_or_null(json, "sms", profile.sms);
    member_or_null(json, "memoryMiB", profile.memory_mib);
    member_or_null(json, "copyEngines", profile.engines.copy);
    member_or_null(json, "decoders", profile.engines.decoders);
    member_or_null(json, "encoders", profile.engines.encoders);
    member_or_null(json, "jpegEngines", profile.engines.jpeg);
    member_or_null(json, "ofaEngines", profile.engines.ofa);
    json.key("p2p");
    if (profile.p2p)
        json.value(*profile.p2p);
    else
        json.null();
    json.member("instancesFree", free);
    json.member("instancesMax", profile.max_instances);
    write_starts(json, "starts", profile.starts);
    json.member("resource", gpu::resource_name(gpu::parse_profile_name(profile.name).value()));
    if (!profile.min_driver.empty()) json.member("minDriver", profile.min_driver);
    if (!profile.also_named.empty()) json.member("alsoNamed", profile.also_named);
    json.end_object();
}

void write_compute(JsonWriter& json, const Board& board) {
    json.key("computeProfiles");
    json.begin_array();
    for (const gpu::ComputeProfile& ci : board.compute_profiles) {
        json.begin_object();
        json.member("gpuInstance", name_of(board, ci.gpu_instance));
        json.member("name", compute_name(board, ci));
        json.member("nvmlEnum", gpu::nvml_name(ci.nvml));
        json.member("nvmlValue", static_cast<int>(ci.nvml));
        json.member("slices", ci.slices);
        json.member("instancesMax", ci.max_instances);
        member_or_null(json, "sms", ci.sms);
        json.key("starts");
        if (ci.starts.empty()) {
            json.null();
        } else {
            json.begin_array();
            for (const unsigned start : ci.starts) json.value(start);
            json.end_array();
        }
        json.member("basis", ci.basis.empty() ? "not sourced" : ci.basis);
        json.end_object();
    }
    json.end_array();
}

void write_board(const Board& board, gpu::Occupancy now, bool compute, Context& context) {
    JsonWriter json;
    json.begin_object();
    json.member("gpu", board.id);
    json.member("product", board.product);
    json.member("architecture", board.architecture);
    json.member("computeCapability", board.compute_capability);
    json.key("pciIds");
    json.begin_array();
    for (const gpu::PciDevice& device : board.pci) json.value(fmt::format("0x{:08X}", device.id));
    json.end_array();
    member_or_null(json, "sms", board.sms_full);
    member_or_null(json, "smsInMig", board.sms_in_mig);
    member_or_null(json, "memoryMiB", board.memory_mib);
    json.member("slices", board.slices);
    json.member("memorySlices", board.memory_slices);
    if (!board.min_driver.empty()) json.member("minDriver", board.min_driver);
    json.key("placementBasis");
    json.begin_object();
    json.member("basis", print(board.basis));
    json.member("grade", word(gpu::grade(board.basis)));
    json.member("note", board.basis_note);
    json.end_object();
    if (!board.caution.empty()) json.member("caution", board.caution);
    const gpu::Geometry geometry{board};
    json.key("profiles");
    json.begin_array();
    for (std::size_t p = 0; p < board.profiles.size(); ++p)
        write_profile(json, board.profiles[p], geometry.room(now, p));
    json.end_array();
    if (compute) write_compute(json, board);
    json.end_object();
    context.out << json.take();
}

int list_models(const MigOptions& options, Context& context) {
    if (options.json()) {
        JsonWriter json;
        json.begin_object();
        json.key("nvidia");
        json.begin_array();
        for (const Board& board : gpu::boards()) {
            json.begin_object();
            json.member("gpu", board.id);
            json.member("product", board.product);
            json.member("slices", board.slices);
            json.member("memorySlices", board.memory_slices);
            json.member("grade", word(gpu::grade(board.basis)));
            json.end_object();
        }
        json.end_array();
        json.key("amd");
        json.begin_array();
        for (const gpu::AmdBoard& board : gpu::amd_boards()) {
            json.begin_object();
            json.member("gpu", board.id);
            json.member("product", board.product);
            json.member("xcds", board.xcds);
            json.end_object();
        }
        json.end_array();
        json.end_object();
        context.out << json.take();
        return done;
    }
    std::vector<std::vector<std::string>> rows{{"MODEL", "SLICES", "PROFILES", "PLACEMENTS", "PRODUCT"}};
    for (const Board& board : gpu::boards())
        rows.push_back({std::string{board.id}, fmt::format("{}g/{}m", board.slices, board.memory_slices),
                        std::to_string(board.profiles.size()), std::string{word(gpu::grade(board.basis))},
                        std::string{board.product}});
    for (const gpu::AmdBoard& board : gpu::amd_boards())
        rows.push_back(
            {std::string{board.id}, fmt::format("{} XCDs", board.xcds), "-", "-", std::string{board.product}});
    context.out << aligned(rows) << "\nbulkhead mig profiles --gpu MODEL lists what a model can be cut into\n";
    return done;
}

}  // namespace

int mig_profiles(const MigOptions& options, Context& context) {
    if (options.gpu.empty()) return list_models(options, context);
    if (const auto amd = gpu::find_amd_board(options.gpu)) return mig_amd_modes(**amd, options, context);
    const auto board = gpu::find_board(options.gpu);
    if (!board) return complain(context, could_not, board.error());
    const auto existing = gpu::read_existing(**board, options.have, "");
    if (!existing) return complain(context, bad_input, existing.error());
    const gpu::Occupancy now = gpu::occupied(**board, *existing);
    if (options.json())
        write_board(**board, now, options.compute, context);
    else if (options.compute)
        print_compute(**board, context);
    else
        print_board(**board, now, context);
    return done;
}

}  // namespace bulkhead::cli
