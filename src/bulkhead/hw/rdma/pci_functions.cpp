#include "bulkhead/hw/rdma/pci_functions.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>

namespace bulkhead::rdma {

namespace {

namespace fs = std::filesystem;

std::string last_of_link(const std::string& path) {
    std::error_code wrong;
    const fs::path target = fs::read_symlink(path, wrong);
    return wrong ? std::string{} : target.filename().string();
}

std::vector<std::string> names_in(const std::string& folder) {
    std::vector<std::string> names;
    std::error_code wrong;
    for (fs::directory_iterator at{folder, wrong}, end; !wrong && at != end; at.increment(wrong))
        names.push_back(at->path().filename().string());
    std::ranges::sort(names);
    return names;
}

}  // namespace

bool PhysicalFunction::is_emulated() const {
    if (subsystem_vendor == "0x1af4") return true;
    return vendor == "0x8086" && device == "0x10c9" && (subsystem_device == "0x0000" || subsystem_device == "0x1100");
}

bool is_pci_address(std::string_view text) {
    if (text.size() != 12 || text[4] != ':' || text[7] != ':' || text[10] != '.') return false;
    for (const std::size_t at : {0U, 1U, 2U, 3U, 5U, 6U, 8U, 9U})
        if (!((text[at] >= '0' && text[at] <= '9') || (text[at] >= 'a' && text[at] <= 'f'))) return false;
    return text[11] >= '0' && text[11] <= '7';
}

Result<std::uint32_t> PciTree::number(const std::string& path) const {
    const auto text = read_text(path);
    if (!text) return std::unexpected(text.error());
    std::uint32_t value = 0;
    const auto [end, wrong] = std::from_chars(text->data(), text->data() + text->size(), value);
    if (wrong != std::errc{} || end != text->data() + text->size() || value > 65'535)
        return fail(Code::corrupt, fmt::format("{} says '{}', which is no number", path, text->substr(0, 64)),
                    "report this");
    return value;
}

bool PciTree::has(const std::string& address) const {
    std::error_code wrong;
    return is_pci_address(address) && fs::exists(device(address), wrong);
}

std::string PciTree::driver(const std::string& address) const { return last_of_link(device(address) + "/driver"); }

std::optional<std::int64_t> PciTree::numa_node(const std::string& address) const {
    const auto node = number(device(address) + "/numa_node");
    if (!node) return std::nullopt;  // -1 too
    return *node;
}

std::vector<std::string> PciTree::bridges(const std::string& address) const {
    std::error_code wrong;
    std::vector<std::string> above;
    for (const fs::path& step : fs::canonical(device(address), wrong))
        if (is_pci_address(step.string()) && step.string() != address) above.push_back(step.string());
    return above;
}

std::int64_t PciTree::speed_mbps(const std::string& link) const {
    const auto text = read_text(root_ + "/class/net/" + link + "/speed");
    std::int64_t speed = 0;
    if (text) std::from_chars(text->data(), text->data() + text->size(), speed);
    return std::max<std::int64_t>(speed, 0);  // -1 without a cable
}

Result<PhysicalFunction> PciTree::physical(const std::string& address) const {
    if (!is_pci_address(address))
        return fail(Code::invalid, fmt::format("'{}' is no PCI address", address), "write it as 0000:3b:00.0");
    if (!has(address))
        return fail(Code::not_found, fmt::format("there is no PCI device {}", address), "see `lspci -D`");
    PhysicalFunction found;
    found.address = address;
    found.driver = driver(address);
    const std::string folder = device(address);
    for (const auto& [name, to] : {std::pair{"vendor", &found.vendor}, std::pair{"device", &found.device},
                                   std::pair{"subsystem_vendor", &found.subsystem_vendor},
                                   std::pair{"subsystem_device", &found.subsystem_device}}) {
        auto text = read_text(folder + "/" + name);
        if (!text) return std::unexpected(text.error());
        *to = std::move(*text);
    }
    std::error_code wrong;
    if (!fs::exists(folder + "/sriov_totalvfs", wrong))
        return fail(Code::invalid, fmt::format("{} has no virtual functions", address),
                    "name a physical function with SR-IOV, switched on in firmware");
    const auto most = number(folder + "/sriov_totalvfs"), now = number(folder + "/sriov_numvfs");
    if (!most) return std::unexpected(most.error());
    if (!now) return std::unexpected(now.error());
    found.functions_max = *most;
    for (std::uint32_t vf = 0; vf < *now; ++vf) {
        const std::string of = last_of_link(fmt::format("{}/virtfn{}", folder, vf));
        if (!is_pci_address(of))
            return fail(Code::corrupt,
                        fmt::format("{} says it has {} functions, and virtfn{} leads nowhere", address, *now, vf),
                        "try again: they may be coming or going");
        found.functions.push_back({vf, of, driver(of), last_of_link(device(of) + "/iommu_group")});
    }
    return found;
}

Result<std::optional<NetDevice>> PciTree::net_device(const std::string& address) const {
    const auto names = names_in(device(address) + "/net");
    if (names.empty()) return std::nullopt;
    // A count of all links that there ever were: it goes further than anything else that is counted here.
    const std::string path = fmt::format("{}/net/{}/ifindex", device(address), names.front());
    const auto text = read_text(path);
    if (!text) return std::unexpected(text.error());
    int index = 0;
    const auto [end, wrong] = std::from_chars(text->data(), text->data() + text->size(), index);
    if (wrong != std::errc{} || end != text->data() + text->size() || index <= 0)
        return fail(Code::corrupt, fmt::format("{} says '{}', which is no link", path, text->substr(0, 64)),
                    "report this");
    return NetDevice{names.front(), index};
}

std::vector<std::string> PciTree::rdma_devices(const std::string& address) const {
    return names_in(device(address) + "/infiniband");
}

Result<> PciTree::make_functions(const std::string& physical_address, std::uint32_t count) const {
    const auto now = physical(physical_address);
    if (!now) return std::unexpected(now.error());
    const std::string folder = device(physical_address);
    // Even where they exist: whoever is bound next is bound by us, after its addresses were set.
    if (auto ok = write_text(folder + "/sriov_drivers_autoprobe", "0"); !ok) return ok;
    if (now->functions.size() == count) return {};
    if (!now->functions.empty())
        return fail(
            Code::conflict,
            fmt::format("{} has {} virtual functions; {} are wanted, and changing the number takes all of them away",
                        physical_address, now->functions.size(), count),
            fmt::format("drain the node, write 0 to {}/sriov_numvfs, and start the agent again", folder));
    if (count > now->functions_max)
        return fail(
            Code::invalid,
            fmt::format("{} can have {} virtual functions, not {}", physical_address, now->functions_max, count),
            "ask for fewer, or raise the number in the NIC's firmware");
    if (auto ok = write_text(folder + "/sriov_numvfs", fmt::format("{}", count)); !ok) return ok;
    const auto made = physical(physical_address);
    if (!made) return std::unexpected(made.error());
    if (made->functions.size() != count)
        return fail(Code::unavailable,
                    fmt::format("{} was asked for {} virtual functions and shows {}", physical_address, count,
                                made->functions.size()),
                    "see dmesg");
    return {};
}

std::string PciTree::driver_of_functions(const std::string& physical_driver) {
    static const std::map<std::string, std::string> others{
        {"igb", "igbvf"}, {"ixgbe", "ixgbevf"}, {"i40e", "iavf"}, {"ice", "iavf"}, {"fm10k", "fm10k"}};
    const auto at = others.find(physical_driver);
    return at == others.end() ? physical_driver : at->second;
}

Result<> PciTree::bind(const std::string& address, const std::string& wanted) const {
    if (driver(address) == wanted) return {};
    if (!driver(address).empty())
        return fail(Code::conflict, fmt::format("{} has the driver {}, not {}", address, driver(address), wanted),
                    "unbind it first");
    std::error_code wrong;
    const std::string folder = root_ + "/bus/pci/drivers/" + wanted;
    if (!fs::exists(folder, wrong))
        return fail(Code::unavailable, fmt::format("the driver {} of {} is not loaded", wanted, address),
                    fmt::format("run `modprobe {}`, and see that it is loaded at boot", wanted));
    // Without a preference the kernel binds nothing to a function whose physical one says "no automatic drivers".
    if (auto ok = write_text(device(address) + "/driver_override", wanted); !ok) return ok;
    if (auto ok = write_text(folder + "/bind", address); !ok) return ok;
    if (driver(address) != wanted)
        return fail(Code::unavailable,
                    fmt::format("{} was bound to {} and is bound to '{}'", address, wanted, driver(address)),
                    "see dmesg for why its probe failed");
    return {};
}

Result<> PciTree::unbind(const std::string& address) const {
    if (!driver(address).empty())
        if (auto ok = write_text(device(address) + "/driver/unbind", address); !ok) return ok;
    if (const std::string still = driver(address); !still.empty())
        return fail(Code::unavailable, fmt::format("{} still has the driver {}", address, still), "see dmesg");
    return write_text(device(address) + "/driver_override", "\n");
}

Result<bool> PciTree::reset(const std::string& address) const {
    std::error_code wrong;
    if (!fs::exists(device(address) + "/reset", wrong)) return false;
    if (auto ok = write_text(device(address) + "/reset", "1"); !ok) return std::unexpected(ok.error());
    return true;
}

}  // namespace bulkhead::rdma
