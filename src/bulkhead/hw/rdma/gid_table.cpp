#include "bulkhead/hw/rdma/gid_table.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

namespace bulkhead::rdma {

namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t rows_max = 65'536;

// Names that are numbers, in their order; others are not rows.
std::vector<std::uint32_t> numbers_in(const std::string& folder) {
    std::vector<std::uint32_t> all;
    std::error_code wrong;
    for (fs::directory_iterator at{folder, wrong}, end; !wrong && at != end; at.increment(wrong)) {
        const std::string name = at->path().filename().string();
        std::uint32_t value = 0;
        const auto [stop, bad] = std::from_chars(name.data(), name.data() + name.size(), value);
        if (bad == std::errc{} && stop == name.data() + name.size() && value < rows_max) all.push_back(value);
    }
    std::ranges::sort(all);
    return all;
}

// A thousand rows, nearly all empty: an empty one is known by its GID, and its other files answer EINVAL.
Result<std::vector<GidRow>> rows_of(const std::string& port) {
    std::vector<GidRow> rows;
    for (const std::uint32_t index : numbers_in(port + "/gids")) {
        const auto text = read_text(fmt::format("{}/gids/{}", port, index));
        if (!text) {
            if (text.error().code == Code::invalid) continue;
            return std::unexpected(text.error());
        }
        const auto gid = parse_gid(*text);
        if (!gid) return std::unexpected(gid.error());
        if (gid->is_zero()) continue;
        GidRow row{.index = index, .gid = *gid};
        if (const auto type = read_text(fmt::format("{}/gid_attrs/types/{}", port, index))) {
            const auto version = parse_gid_type(*type);
            if (!version)
                return fail(Code::corrupt, fmt::format("{}: row {} is of type '{}'", port, index, type->substr(0, 64)),
                            "see which kernel this is, and report it");
            row.version = *version;
        }
        if (const auto device = read_text(fmt::format("{}/gid_attrs/ndevs/{}", port, index))) row.device = *device;
        rows.push_back(std::move(row));
    }
    return rows;
}

bool is_device_name(std::string_view name) {
    return !name.empty() && name.size() < 64 && !name.contains('/') && name.front() != '.';
}

}  // namespace

std::optional<bool> parse_active(std::string_view state) {
    const std::size_t colon = state.find(": ");
    if (colon == state.npos) return std::nullopt;
    return state.substr(colon + 2) == "ACTIVE";
}

std::optional<std::uint16_t> parse_pkey(std::string_view text) {
    if (!text.starts_with("0x") || text.size() != 6) return std::nullopt;
    std::uint16_t value = 0;
    const auto [end, wrong] = std::from_chars(text.data() + 2, text.data() + text.size(), value, 16);
    if (wrong != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

std::optional<RoceVersion> parse_gid_type(std::string_view text) {
    if (text == "RoCE v2") return RoceVersion::v2;
    if (text == "IB/RoCE v1") return RoceVersion::infiniband_or_v1;
    return std::nullopt;
}

std::vector<std::string> RdmaTree::devices() const {
    std::vector<std::string> names;
    std::error_code wrong;
    for (fs::directory_iterator at{root_ + "/class/infiniband", wrong}, end; !wrong && at != end; at.increment(wrong))
        names.push_back(at->path().filename().string());
    std::ranges::sort(names);
    return names;
}

Result<std::vector<RdmaPort>> RdmaTree::ports(const std::string& device) const {
    if (!is_device_name(device)) return fail(Code::invalid, "'" + device + "' is no RDMA device", "see `rdma dev`");
    const std::string folder = root_ + "/class/infiniband/" + device + "/ports";
    std::vector<RdmaPort> all;
    for (const std::uint32_t number : numbers_in(folder)) {
        const std::string port = fmt::format("{}/{}", folder, number);
        RdmaPort found{.number = number};
        const auto layer = read_text(port + "/link_layer"), state = read_text(port + "/state");
        if (!layer) return std::unexpected(layer.error());
        if (!state) return std::unexpected(state.error());
        found.is_infiniband = *layer == "InfiniBand";
        found.is_active = parse_active(*state).value_or(false);
        auto rows = rows_of(port);
        if (!rows) return std::unexpected(rows.error());
        found.gids = std::move(*rows);
        for (const std::uint32_t index : numbers_in(port + "/pkeys"))
            if (const auto text = read_text(fmt::format("{}/pkeys/{}", port, index)))
                if (const auto key = parse_pkey(*text); key.value_or(0) != 0) found.pkeys.push_back(*key);
        all.push_back(std::move(found));
    }
    return all;
}

Result<VerbsNode> RdmaTree::verbs(const std::string& device) const {
    std::error_code wrong;
    const std::string folder = root_ + "/class/infiniband_verbs";
    for (fs::directory_iterator at{folder, wrong}, end; !wrong && at != end; at.increment(wrong)) {
        const std::string name = at->path().filename().string();
        const auto of = read_text(at->path().string() + "/ibdev");
        if (!of || *of != device) continue;
        const auto numbers = read_text(at->path().string() + "/dev");
        if (!numbers) return std::unexpected(numbers.error());
        VerbsNode node{.path = "/dev/infiniband/" + name};
        const char* const end_of = numbers->data() + numbers->size();
        const auto major = std::from_chars(numbers->data(), end_of, node.major);
        if (major.ec == std::errc{} && major.ptr != end_of && *major.ptr == ':') {
            const auto minor = std::from_chars(major.ptr + 1, end_of, node.minor);
            if (minor.ec == std::errc{} && minor.ptr == end_of) return node;
        }
        return fail(Code::corrupt, fmt::format("{} has the device number '{}'", name, numbers->substr(0, 32)),
                    "report this");
    }
    return fail(Code::not_found, fmt::format("no file in /dev/infiniband belongs to {}", device),
                "load the module ib_uverbs");
}

std::string RdmaTree::netdev_of(const std::string& device) const {
    if (!is_device_name(device)) return {};
    return read_text(root_ + "/class/infiniband/" + device + "/parent").value_or(std::string{});
}

std::optional<std::uint32_t> row_of(const RdmaPort& port, const Gid& gid) {
    for (const GidRow& row : port.gids)
        if (row.gid == gid && (port.is_infiniband || row.version == RoceVersion::v2)) return row.index;
    return std::nullopt;
}

}  // namespace bulkhead::rdma
