#include "node_file.hpp"

#include <fmt/format.h>

#include <charconv>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "bulkhead/base/nearest.hpp"

namespace bulkhead::nvml_sim {

namespace {

constexpr std::string_view keys[] = {"node",         "gpus",           "driver",          "vbios",
                                     "cuda",         "fabric",         "gpus-per-socket", "cpu-protection",
                                     "confidential", "passed-through", "keeps-residue",   "pci"};
constexpr std::size_t text_max = 64 * 1024;

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) text.remove_suffix(1);
    return text;
}

std::optional<std::uint32_t> number(std::string_view text, int base = 10) {
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

std::unexpected<Error> wrong(std::string_view key, std::string_view value, std::string_view rule) {
    return fail(Code::invalid, fmt::format("node.yaml: {}: \"{}\" {}", key, value, rule), "see nvml-sim/README.md");
}

bool is_plain(std::string_view value) {
    for (const char c : value)
        if (c < ' ' || c > '~' || c == '"' || c == '\\') return false;
    return !value.empty() && value.size() <= 64;
}

// "8 x h200-141gb, 2 x l40s"
Result<std::vector<driver::Group>> parse_groups(std::string_view value) {
    std::vector<driver::Group> groups;
    for (std::string_view left = value; !left.empty();) {
        const std::size_t comma = left.find(',');
        const std::string_view item = trimmed(left.substr(0, comma));
        left = comma == std::string_view::npos ? std::string_view{} : left.substr(comma + 1);
        const std::size_t times = item.find(" x ");
        const auto count = times == std::string_view::npos ? std::nullopt : number(trimmed(item.substr(0, times)));
        if (!count) return wrong("gpus", value, "is no list of groups such as \"8 x h200-141gb\"");
        groups.push_back({std::string{trimmed(item.substr(times + 3))}, *count});
    }
    return groups;
}

Result<std::map<std::string, std::string>> parse_lines(std::string_view text) {
    if (text.size() > text_max) return fail(Code::invalid, "node.yaml is larger than 64 kB", "it needs a dozen lines");
    std::map<std::string, std::string> found;
    for (std::size_t line = 1; !text.empty(); ++line) {
        const std::size_t end = text.find('\n');
        std::string_view row = text.substr(0, end);
        text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
        if (const std::size_t comment = row.find('#'); comment != std::string_view::npos) row = row.substr(0, comment);
        if (trimmed(row).empty()) continue;
        const std::size_t colon = row.find(": ");
        const std::string_view key = colon == std::string_view::npos ? row : row.substr(0, colon);
        if (colon == std::string_view::npos || key != trimmed(key))
            return fail(Code::invalid, fmt::format("node.yaml, line {}: not \"key: value\"", line),
                        "write one key a line, without indentation");
        bool known = false;
        for (const std::string_view k : keys) known = known || k == key;
        if (!known) {
            const std::string_view near = nearest(key, keys);
            return fail(Code::invalid,
                        fmt::format("node.yaml, line {}: there is no key \"{}\"", line, key.substr(0, 64)),
                        near.empty() ? "see nvml-sim/README.md" : fmt::format("did you mean \"{}\"?", near));
        }
        if (!found.emplace(key, trimmed(row.substr(colon + 2))).second)
            return fail(Code::invalid, fmt::format("node.yaml, line {}: \"{}\" a second time", line, key),
                        "say it once");
    }
    return found;
}

Result<> read_bool(const std::map<std::string, std::string>& from, const char* key, bool& into) {
    const auto found = from.find(key);
    if (found == from.end()) return {};
    if (found->second != "true" && found->second != "false")
        return wrong(key, found->second, "is neither true nor false");
    into = found->second == "true";
    return {};
}

template <class E>
Result<> read_word(const std::map<std::string, std::string>& from, const char* key, E& into) {
    const auto found = from.find(key);
    if (found == from.end()) return {};
    const auto value = from_word<E>(found->second);
    if (!value) return wrong(key, found->second, fmt::format("is none of {}", fmt::join(words(E{}), ", ")));
    into = *value;
    return {};
}

// "00:06": bus and device of the first GPU; the others follow it device by device, as virtual machines number them.
Result<> read_pci(const std::map<std::string, std::string>& from, driver::Spec& spec) {
    const auto found = from.find("pci");
    if (found == from.end()) return {};
    const std::string_view value = found->second;
    const auto bus = number(value.substr(0, 2), 16),
               device = value.size() == 5 && value[2] == ':' ? number(value.substr(3), 16) : std::nullopt;
    if (!bus || !device || *device + spec.gpus.size() > 32)
        return wrong("pci", value, "is no bus and device such as \"00:06\" with room for every GPU");
    for (std::uint32_t i = 0; i < spec.gpus.size(); ++i) {
        spec.gpus[i].pci_bus = *bus;
        spec.gpus[i].pci_device = *device + i;
    }
    return {};
}

Result<> read_text(const std::map<std::string, std::string>& from, const char* key, std::string& into) {
    const auto found = from.find(key);
    if (found == from.end()) return {};
    if (!is_plain(found->second) || found->second.size() > 31)
        return wrong(key, found->second.substr(0, 64), "is not at most 31 plain characters");
    into = found->second;
    return {};
}

}  // namespace

Result<driver::Spec> parse_node(std::string_view text) {
    const auto lines = parse_lines(text);
    if (!lines) return std::unexpected(lines.error());
    std::string node = "node", cuda = "13.0", sockets = "4";
    if (const auto read = read_text(*lines, "node", node); !read) return std::unexpected(read.error());
    if (!lines->contains("gpus"))
        return fail(Code::invalid, "node.yaml does not say which GPUs the node has",
                    "add a line such as \"gpus: 8 x h200-141gb\"");
    const auto groups = parse_groups(lines->at("gpus"));
    if (!groups) return std::unexpected(groups.error());
    auto spec = driver::spec_of(node, *groups);
    if (!spec) return std::unexpected(spec.error());
    if (const auto found = lines->find("cuda"); found != lines->end()) cuda = found->second;
    if (const auto found = lines->find("gpus-per-socket"); found != lines->end()) sockets = found->second;
    const std::size_t dot = cuda.find('.');
    const auto major = number(std::string_view{cuda}.substr(0, dot)),
               minor = dot == std::string::npos ? std::nullopt : number(std::string_view{cuda}.substr(dot + 1));
    if (!major || !minor || *major > 99 || *minor > 99) return wrong("cuda", cuda, "is no version such as 13.0");
    spec->cuda = *major * 1000 + *minor * 10;
    const auto per_socket = number(sockets);
    if (!per_socket || *per_socket == 0 || *per_socket > driver::gpus_max)
        return wrong("gpus-per-socket", sockets, "is no number from 1 to 16");
    spec->gpus_per_socket = *per_socket;
    for (const auto& read :
         {read_text(*lines, "driver", spec->driver), read_text(*lines, "vbios", spec->vbios),
          read_word(*lines, "fabric", spec->fabric), read_word(*lines, "cpu-protection", spec->cpu_protection),
          read_bool(*lines, "confidential", spec->confidential),
          read_bool(*lines, "passed-through", spec->passed_through),
          read_bool(*lines, "keeps-residue", spec->keeps_residue), read_pci(*lines, *spec)})
        if (!read) return std::unexpected(read.error());
    return spec;
}

std::string print_node(const driver::Spec& spec) {
    std::string gpus;
    for (std::size_t i = 0; i < spec.gpus.size();) {
        std::size_t end = i;
        while (end < spec.gpus.size() && spec.gpus[end].product == spec.gpus[i].product) ++end;
        gpus += fmt::format("{}{} x {}", gpus.empty() ? "" : ", ", end - i, spec.gpus[i].product);
        i = end;
    }
    std::string text = fmt::format(
        "# A simulated node; see nvml-sim/README.md.\nnode: {}\ngpus: {}\ndriver: {}\nvbios: {}\ncuda: {}.{}\nfabric: "
        "{}\ngpus-per-socket: {}\n"
        "cpu-protection: {}\nconfidential: {}\npassed-through: {}\nkeeps-residue: {}\n",
        spec.node, gpus, spec.driver, spec.vbios, spec.cuda / 1000, spec.cuda % 1000 / 10, word(spec.fabric),
        spec.gpus_per_socket, word(spec.cpu_protection), spec.confidential, spec.passed_through, spec.keeps_residue);
    if (!spec.gpus.empty() && spec.gpus[0].pci_device != 0)
        text += fmt::format("pci: {:02x}:{:02x}\n", spec.gpus[0].pci_bus, spec.gpus[0].pci_device);
    return text;
}

}  // namespace bulkhead::nvml_sim
