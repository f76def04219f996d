#include "bulkhead/hw/rdma/rdma_limits.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <charconv>

namespace bulkhead::rdma {

namespace {

std::string_view next_word(std::string_view& rest, char parted_by) {
    const std::size_t end = rest.find(parted_by);
    const std::string_view word = rest.substr(0, end);
    rest = end == rest.npos ? std::string_view{} : rest.substr(end + 1);
    return word;
}

bool read_amount(std::string_view text, std::optional<std::uint32_t>& amount) {
    if (text == "max") return true;
    std::uint32_t value = 0;
    const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), value);
    amount = value;
    return wrong == std::errc{} && end == text.data() + text.size();
}

}  // namespace

Result<std::map<std::string, RdmaLimit>> parse_rdma_limits(std::string_view text) {
    std::map<std::string, RdmaLimit> all;
    while (!text.empty()) {
        std::string_view line = next_word(text, '\n');
        const std::string shown{line.substr(0, 80)};
        const auto broken = [&] {
            return fail(Code::corrupt, fmt::format("'{}' is no line of rdma.max", shown), "see which kernel this is");
        };
        if (line.empty()) continue;
        const std::string device{next_word(line, ' ')};
        RdmaLimit limit;
        while (!line.empty()) {
            std::string_view value = next_word(line, ' ');
            const std::string_view name = next_word(value, '=');
            if (name.empty()) continue;
            if (name != "hca_handle" && name != "hca_object") continue;  // a newer kernel may count more
            if (!read_amount(value, name == "hca_handle" ? limit.handles : limit.objects)) return broken();
        }
        if (device.empty() || device.contains('=') || !all.emplace(device, limit).second) return broken();
    }
    return all;
}

std::string print_rdma_limit(const std::string& device, const RdmaLimit& limit) {
    const auto amount = [](const std::optional<std::uint32_t>& of) {
        return of ? fmt::format("{}", *of) : std::string{"max"};
    };
    return fmt::format("{} hca_handle={} hca_object={}", device, amount(limit.handles), amount(limit.objects));
}

bool has_rdma_limits(const std::string& cgroup) { return ::access((cgroup + "/rdma.max").c_str(), F_OK) == 0; }

Result<> limit_rdma(const std::string& cgroup, const std::string& device, const RdmaLimit& limit) {
    const std::string path = cgroup + "/rdma.max";
    if (auto ok = write_text(path, print_rdma_limit(device, limit)); !ok) return ok;
    const auto text = read_text(path);
    if (!text) return std::unexpected(text.error());
    const auto all = parse_rdma_limits(*text);
    if (!all) return std::unexpected(all.error());
    const auto at = all->find(device);
    // A device without a limit is not listed by every kernel.
    const RdmaLimit now = at == all->end() ? RdmaLimit{} : at->second;
    if (now == limit) return {};
    return fail(
        Code::unavailable,
        fmt::format("{} was told '{}' and reads '{}'", path, print_rdma_limit(device, limit),
                    print_rdma_limit(device, now)),
        "see that the device is there, and that the rdma controller is on in the parent's cgroup.subtree_control");
}

}  // namespace bulkhead::rdma
