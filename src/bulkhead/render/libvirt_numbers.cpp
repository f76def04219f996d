// PCI addresses and lists of CPUs, as the kernel and NVML write them.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "bulkhead/render/libvirt_domain.hpp"

namespace bulkhead::render {

namespace {

constexpr unsigned cpus_max = 65'536;

std::optional<unsigned> whole_number_of(std::string_view text, int base, unsigned most) {
    unsigned value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (text.empty() || error != std::errc{} || end != text.data() + text.size() || value > most) return std::nullopt;
    return value;
}

}  // namespace

Result<PciAddress> parse_pci_address(std::string_view text) {
    const std::size_t first = text.find(':'), second = text.find(':', first + 1), dot = text.find('.');
    if (first != std::string_view::npos && second != std::string_view::npos && dot != std::string_view::npos &&
        dot > second) {
        const auto domain = whole_number_of(text.substr(0, first), 16, 0xFFFF);
        const auto bus = whole_number_of(text.substr(first + 1, second - first - 1), 16, 0xFF);
        const auto slot = whole_number_of(text.substr(second + 1, dot - second - 1), 16, 0x1F);
        const auto function = whole_number_of(text.substr(dot + 1), 16, 7);
        if (domain && bus && slot && function) return PciAddress{*domain, *bus, *slot, *function};
    }
    return fail(Code::invalid, fmt::format("\"{}\" is no PCI address", text), "as in 0000:3b:00.0");
}

std::string print(const PciAddress& address) {
    return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", address.domain, address.bus, address.slot, address.function);
}

Result<std::vector<unsigned>> parse_cpu_list(std::string_view text) {
    std::vector<unsigned> cpus;
    const std::string_view whole = text;
    while (!text.empty()) {
        const std::string_view piece = text.substr(0, text.find(','));
        text.remove_prefix(std::min(text.size(), piece.size() + 1));
        const std::size_t dash = piece.find('-');
        const auto from = whole_number_of(piece.substr(0, dash), 10, cpus_max - 1);
        const auto to =
            dash == std::string_view::npos ? from : whole_number_of(piece.substr(dash + 1), 10, cpus_max - 1);
        if (!from || !to || *to < *from)
            return fail(Code::invalid, fmt::format("\"{}\" is no list of CPUs", whole), "as in 0-15,64-79");
        for (unsigned cpu = *from; cpu <= *to; ++cpu) cpus.push_back(cpu);
        if (cpus.size() > std::size_t{2} * cpus_max) return fail(Code::invalid, "a list of too many CPUs", "");
    }
    std::ranges::sort(cpus);
    cpus.erase(std::ranges::unique(cpus).begin(), cpus.end());
    return cpus;
}

std::string print_cpu_list(const std::vector<unsigned>& cpus) {
    std::string out;
    for (std::size_t i = 0; i < cpus.size();) {
        std::size_t last = i;
        while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
        if (!out.empty()) out += ',';
        out += last == i ? fmt::format("{}", cpus[i]) : fmt::format("{}-{}", cpus[i], cpus[last]);
        i = last + 1;
    }
    return out;
}

}  // namespace bulkhead::render
