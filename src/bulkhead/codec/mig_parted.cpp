#include "bulkhead/codec/mig_parted.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <span>

#include "bulkhead/base/nearest.hpp"
#include "bulkhead/codec/document.hpp"
#include "bulkhead/codec/lone_document.hpp"
#include "bulkhead/codec/plain.hpp"

namespace bulkhead {

namespace {

using Names = std::span<const std::string_view>;
constexpr std::array<std::string_view, 2> file_fields{"version", "mig-configs"};
constexpr std::array<std::string_view, 4> entry_fields{"device-filter", "devices", "mig-enabled", "mig-devices"};

constexpr bool is_decimal(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// "3g" for the unit "g"; nine digits are plenty and cannot overflow anyone's integer.
bool is_count_of(std::string_view unit, std::string_view text) {
    if (!text.ends_with(unit)) return false;
    text.remove_suffix(unit.size());
    return !text.empty() && text.size() <= 9 && std::ranges::all_of(text, is_decimal);
}

bool is_attribute(std::string_view text) {
    return !text.empty() && !is_decimal(text.front()) && text.front() != '.' && text.back() != '.' &&
           std::ranges::all_of(text, [](char c) { return is_letter(c) || is_decimal(c) || c == '.'; });
}

bool are_attributes(std::string_view text) {
    std::vector<std::string_view> seen;
    while (true) {
        const std::size_t comma = text.find(',');
        const std::string_view one = text.substr(0, comma);
        if (!is_attribute(one) || std::ranges::find(seen, one) != seen.end()) return false;
        seen.push_back(one);
        if (comma == std::string_view::npos) return true;
        text.remove_prefix(comma + 1);
    }
}

// [Cc.]Gg.NNgb, then +attributes or -attributes. Whether a board has it is not asked here.
bool is_profile(std::string_view text) {
    constexpr std::size_t longest = 128;
    if (text.size() > longest) return false;
    const std::size_t sign = text.find_first_of("+-");
    if (sign != std::string_view::npos && !are_attributes(text.substr(sign + 1))) return false;
    text = text.substr(0, sign);
    const std::size_t first = text.find('.');
    if (first == std::string_view::npos) return false;
    const std::size_t second = text.find('.', first + 1);
    if (second == std::string_view::npos)
        return is_count_of("g", text.substr(0, first)) && is_count_of("gb", text.substr(first + 1));
    return is_count_of("c", text.substr(0, first)) && is_count_of("g", text.substr(first + 1, second - first - 1)) &&
           is_count_of("gb", text.substr(second + 1));
}

class Reader {
public:
    explicit Reader(std::string_view file) : file_{file} {}

    MigPartedFile read(const Node& root) {
        MigPartedFile out;
        if (!is(root, Node::Type::map, root.at, "the file", "version: and mig-configs:")) return out;
        no_other_fields(root, "the file", file_fields);
        if (const Node::Member* version = member(root, "version")) {
            if (version->value->text != "v1")
                complain(version->value->at,
                         fmt::format("version \"{}\" is not known", shortened(version->value->text)), "version: v1");
        } else {
            complain(root.at, "version is missing", "version: v1");
        }
        const Node::Member* configs = member(root, "mig-configs");
        if (!configs ||
            !is(*configs->value, Node::Type::map, configs->at, "mig-configs", "a name for each configuration"))
            return out;
        if (configs->value->members.empty())
            complain(configs->at, "mig-configs is empty", "name at least one configuration");
        for (const Node::Member& config : configs->value->members) out.configs.push_back(read_config(config));
        return out;
    }

    void complain(Place at, std::string what, std::string remedy) {
        errors.push_back({position(at), std::move(what), std::move(remedy)});
    }

    std::vector<Diagnostic> errors;

private:
    Position position(Place at) const { return {std::string{file_}, at.line, at.column}; }

    bool is(const Node& node, Node::Type type, Place at, std::string_view name, std::string_view wanted) {
        if (node.type == type) return true;
        complain(node.type == Node::Type::null ? at : node.at, fmt::format("{} takes {}", name, wanted),
                 node.type == Node::Type::null ? "give it a value" : "see the examples of nvidia-mig-parted");
        return false;
    }

    static const Node::Member* member(const Node& map, std::string_view key) {
        const auto found = std::ranges::find(map.members, key, &Node::Member::key);
        return found == map.members.end() ? nullptr : &*found;
    }

    void no_other_fields(const Node& map, std::string_view name, Names known) {
        for (const Node::Member& field : map.members) {
            if (std::ranges::find(known, field.key) != known.end()) continue;
            const std::string_view near = nearest(field.key, known);
            complain(field.at, fmt::format("unknown field \"{}\" in {}", shortened(field.key), name),
                     near.empty() ? fmt::format("one of {}", fmt::join(known, ", ")) : std::string{near});
        }
    }

    MigPartedConfig read_config(const Node::Member& config) {
        MigPartedConfig out{config.key, {}, position(config.at)};
        const std::string name = shortened(config.key);
        if (!is(*config.value, Node::Type::list, config.at, name, "a list of entries, each after a \"- \"")) return out;
        if (config.value->items.empty())
            complain(config.at, fmt::format("{} has no entry", name), "add one, or remove it");
        for (const Node* entry : config.value->items) {
            if (!is(*entry, Node::Type::map, entry->at, fmt::format("an entry of {}", name),
                    "devices: and mig-enabled:"))
                continue;
            out.devices.push_back(read_entry(*entry, name));
        }
        return out;
    }

    MigPartedDevices read_entry(const Node& entry, const std::string& config) {
        MigPartedDevices out;
        out.where = position(entry.at);
        no_other_fields(entry, config, entry_fields);
        for (const std::string_view field : {"devices", "mig-enabled"})
            if (!member(entry, field))
                complain(entry.at, fmt::format("{} is missing in {}", field, config), fmt::format("add {}:", field));
        if (const Node::Member* filter = member(entry, "device-filter")) read_filter(*filter, out);
        if (const Node::Member* devices = member(entry, "devices")) read_devices(*devices, out);
        const Node::Member* enabled = member(entry, "mig-enabled");
        const bool enabled_known = enabled && read_enabled(*enabled, out);
        const Node::Member* mig_devices = member(entry, "mig-devices");
        if (mig_devices) read_counts(*mig_devices, out);
        if (!enabled_known) return out;
        if (out.mig_enabled && !mig_devices)
            complain(entry.at, fmt::format("mig-devices is missing in {}, and mig-enabled is true", config),
                     "add mig-devices: {} for MIG mode without instances");
        if (!out.mig_enabled && mig_devices && !mig_devices->value->members.empty())
            complain(mig_devices->at, fmt::format("{} lists mig-devices, and mig-enabled is false", config),
                     "remove mig-devices, or set mig-enabled: true");
        return out;
    }

    // A device id such as 0x233010DE is a number to YAML unless it is quoted; mig-parted refuses it then, and so do we.
    bool is_text(const Node& node, Place at, std::string_view name) {
        if (!is(node, Node::Type::scalar, at, name, "text, or a list of texts")) return false;
        if (node.quoted || plain_type(node.text) == PlainType::text) return true;
        complain(node.at, fmt::format("{} is {}, which is not text to YAML", name, shortened(node.text)),
                 fmt::format("\"{}\", in quotes", shortened(node.text)));
        return false;
    }

    void read_filter(const Node::Member& filter, MigPartedDevices& out) {
        if (filter.value->type != Node::Type::list) {
            if (is_text(*filter.value, filter.at, "device-filter") && !filter.value->text.empty())
                out.device_filter.push_back(filter.value->text);
            return;
        }
        for (const Node* item : filter.value->items)
            if (is_text(*item, item->at, "an item of device-filter")) out.device_filter.push_back(item->text);
    }

    void read_devices(const Node::Member& devices, MigPartedDevices& out) {
        const Node& node = *devices.value;
        if (node.type == Node::Type::scalar && node.text == "all") {
            out.all_devices = true;
            return;
        }
        if (node.type == Node::Type::scalar)
            return complain(node.at, fmt::format("devices is \"{}\"", shortened(node.text)),
                            "all, or a list of indexes: [0, 1]");
        if (!is(node, Node::Type::list, devices.at, "devices", "all, or a list of indexes: [0, 1]")) return;
        for (const Node* item : node.items)
            if (const auto index = number(*item, item->at, "an item of devices"))
                out.devices.push_back(static_cast<unsigned>(*index));
    }

    bool read_enabled(const Node::Member& enabled, MigPartedDevices& out) {
        if (!is(*enabled.value, Node::Type::scalar, enabled.at, "mig-enabled", "true or false")) return false;
        const std::string& text = enabled.value->text;
        out.mig_enabled = text == "true";
        if (!enabled.value->quoted && (out.mig_enabled || text == "false")) return true;
        complain(enabled.value->at, fmt::format("mig-enabled is {}; it takes true or false", shortened(text)),
                 "true or false, without quotes");
        return false;
    }

    // Not negative, and small enough for everyone's int.
    std::optional<int> number(const Node& node, Place at, std::string_view name) {
        if (!is(node, Node::Type::scalar, at, name, "a number")) return std::nullopt;
        int value = 0;
        const char* end = node.text.data() + node.text.size();
        const auto [stop, error] = std::from_chars(node.text.data(), end, value);
        if (node.quoted || error != std::errc{} || stop != end || value < 0) {
            complain(node.at, fmt::format("{} is \"{}\"; it takes a number from 0", name, shortened(node.text)),
                     node.quoted ? "write it without quotes" : "write decimal digits");
            return std::nullopt;
        }
        return value;
    }

    void read_counts(const Node::Member& devices, MigPartedDevices& out) {
        if (!is(*devices.value, Node::Type::map, devices.at, "mig-devices", "profiles with counts, or {}")) return;
        bool complete = true;
        for (const Node::Member& profile : devices.value->members) {
            const std::string name = shortened(profile.key);
            if (!is_profile(profile.key)) {
                complain(profile.at, fmt::format("\"{}\" is not written like a profile", name),
                         "write it like 1g.10gb, 1c.2g.20gb or 1g.10gb+me");
                complete = false;
            }
            const auto count = number(*profile.value, profile.at, fmt::format("the count of {}", name));
            if (count) out.mig_devices.push_back({profile.key, *count, position(profile.at)});
            complete = complete && count.has_value();
        }
        const auto none = [](const MigPartedCount& count) { return count.count == 0; };
        if (complete && !out.mig_devices.empty() && std::ranges::all_of(out.mig_devices, none))
            complain(devices.at, "all counts in mig-devices are 0", "write {} for MIG mode without instances");
    }

    std::string_view file_;
};

}  // namespace

std::expected<MigPartedFile, std::vector<Diagnostic>> read_mig_parted(std::string_view file, std::string_view text) {
    return read_alone(Reader{file}, file, text,
                      {"begin with version: v1 and mig-configs:", "a second document; mig-parted reads only one"});
}

}  // namespace bulkhead
