#include "bulkhead/hw/vm/vfio.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

namespace bulkhead::vm {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view vfio_driver = "vfio-pci";
// Resets that leave nothing of a function's state, the narrowest first. A change of power state (pm) may keep it.
constexpr auto whole_resets = std::to_array<std::string_view>({"flr", "af_flr", "device_specific", "bus"});

std::string first_line_of(const std::string& path) {
    std::ifstream file{path};
    std::string line;
    std::getline(file, line);
    return line;
}

bool is_bridge(const std::string& folder) { return first_line_of(folder + "/class").starts_with("0x0604"); }

}  // namespace

bool Vfio::has_groups() const {
    std::error_code failed;
    const fs::directory_iterator groups{settings_.sysfs + "/kernel/iommu_groups", failed};
    return !failed && groups != fs::directory_iterator{};
}

Result<std::vector<std::string>> Vfio::others_in_group(const std::string& device) const {
    std::error_code failed;
    if (!fs::exists(folder_of(device), failed))
        return fail(Code::not_found, fmt::format("there is no PCI device {} here", device), "");
    const auto group = fs::read_symlink(folder_of(device) + "/iommu_group", failed);
    if (failed)
        return fail(Code::unavailable, fmt::format("{} is in no IOMMU group: nothing would keep its DMA in", device),
                    "turn the IOMMU on, in the firmware and on the kernel's command line");
    std::vector<std::string> others;
    const std::string members =
        fmt::format("{}/kernel/iommu_groups/{}/devices", settings_.sysfs, group.filename().string());
    for (const auto& entry : fs::directory_iterator{members, failed}) {
        const std::string other = entry.path().filename().string();
        if (other != device && !is_bridge(folder_of(other))) others.push_back(other);
    }
    if (failed) return fail(Code::unavailable, fmt::format("{} cannot be listed: {}", members, failed.message()), "");
    std::ranges::sort(others);
    return others;
}

Result<> Vfio::may_be_given(const std::vector<std::string>& devices) const {
    std::vector<std::string> objections;
    for (const std::string& device : devices) {
        const auto others = others_in_group(device);
        if (!others) return std::unexpected(others.error());
        for (const std::string& other : *others)
            if (std::ranges::find(devices, other) == devices.end())
                objections.push_back(fmt::format("{} shares an IOMMU group with {}", device, other));
    }
    if (objections.empty()) return {};
    return fail(Code::conflict,
                fmt::format("not all devices can go to one machine alone: {}", fmt::join(objections, "; ")),
                "another slot, firmware with ACS, or a lease of all devices of the group");
}

Result<std::vector<std::string>> Vfio::not_alone(const std::vector<std::string>& devices) const {
    std::vector<std::string> shared;
    for (const std::string& device : devices) {
        const auto others = others_in_group(device);
        if (!others) return std::unexpected(others.error());
        if (!others->empty()) shared.push_back(device);
    }
    return shared;
}

Result<std::string> Vfio::driver_of(const std::string& device) const {
    std::error_code failed;
    const auto driver = fs::read_symlink(folder_of(device) + "/driver", failed);
    if (!failed) return driver.filename().string();
    if (!fs::exists(folder_of(device), failed))
        return fail(Code::not_found, fmt::format("there is no PCI device {} here", device), "");
    return std::string{};
}

Result<> Vfio::write(const std::string& path, const std::string& text) const {
    const int handle = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (handle < 0)
        return fail(Code::unavailable, fmt::format("could not open {}: {}", path, std::strerror(errno)), "");
    const ssize_t wrote = ::write(handle, text.data(), text.size());
    const int why = errno;
    ::close(handle);
    if (wrote != static_cast<ssize_t>(text.size()))
        return fail(Code::unavailable, fmt::format("{} does not take \"{}\": {}", path, text, std::strerror(why)),
                    "see dmesg");
    return {};
}

Result<> Vfio::wait_for_driver(const std::string& device, const std::string& driver) const {
    for (const auto until = std::chrono::steady_clock::now() + settings_.patience;;) {
        const auto now = driver_of(device);
        if (!now) return std::unexpected(now.error());
        if (*now == driver) return {};
        if (std::chrono::steady_clock::now() > until)
            return fail(
                Code::timeout,
                fmt::format("{} is bound to {} and not to {}, {} ms later", device, now->empty() ? "nothing" : *now,
                            driver.empty() ? "nothing" : driver, settings_.patience.count()),
                "see dmesg: somebody may still use it");
        std::this_thread::sleep_for(std::chrono::milliseconds{5});
    }
}

Result<> Vfio::unbind(const std::string& device) const {
    const auto bound = driver_of(device);
    if (!bound) return std::unexpected(bound.error());
    if (bound->empty()) return {};
    if (auto wrote = write(folder_of(device) + "/driver/unbind", device); !wrote) return wrote;
    return wait_for_driver(device, "");
}

Result<> Vfio::give(const std::string& device) const {
    const auto bound = driver_of(device);
    if (!bound) return std::unexpected(bound.error());
    if (*bound == vfio_driver) return {};
    std::error_code failed;
    if (!fs::exists(fmt::format("{}/bus/pci/drivers/{}", settings_.sysfs, vfio_driver), failed))
        return fail(Code::unavailable, "this kernel has no vfio-pci driver loaded", "modprobe vfio-pci");
    // The override first: nobody else can take it up once it is free.
    if (auto wrote = write(folder_of(device) + "/driver_override", std::string{vfio_driver}); !wrote) return wrote;
    if (auto freed = unbind(device); !freed) return freed;
    if (auto wrote = write(settings_.sysfs + "/bus/pci/drivers_probe", device); !wrote) return wrote;
    return wait_for_driver(device, std::string{vfio_driver});
}

// The function as after power-on. What is offered is read, the narrowest is chosen by name, and the name is what is
// told.
Result<std::string> Vfio::reset(const std::string& device) const {
    const std::string methods_file = folder_of(device) + "/reset_method";
    std::istringstream offered{first_line_of(methods_file)};
    std::vector<std::string> methods;
    for (std::string method; offered >> method;) methods.push_back(method);
    const auto chosen = std::ranges::find_if(
        whole_resets, [&](std::string_view way) { return std::ranges::find(methods, way) != methods.end(); });
    if (chosen == whole_resets.end())
        return fail(Code::unavailable,
                    fmt::format("{} can be reset in no way that forgets everything; the kernel offers {}", device,
                                methods.empty() ? "none" : fmt::format("{}", fmt::join(methods, ", "))),
                    "reboot the host before the device is used again");
    std::string method{*chosen};
    if (auto wrote = write(methods_file, method); !wrote) return std::unexpected(wrote.error());
    if (auto wrote = write(folder_of(device) + "/reset", "1"); !wrote) return std::unexpected(wrote.error());
    return method;
}

Result<std::optional<std::string>> Vfio::take_back(const std::string& device, const std::string& driver,
                                                   const WasReset& was_reset) const {
    const auto has = driver_of(device);
    if (!has) return std::unexpected(has.error());
    const bool stayed = !driver.empty() && *has == driver;
    const auto method = stayed ? Result<std::string>{} : reset(device);
    if (!method) return std::unexpected(method.error());
    if (!stayed && was_reset)
        if (auto told = was_reset(*method); !told) return std::unexpected(told.error());
    if (auto wrote = write(folder_of(device) + "/driver_override", "\n"); !wrote) return std::unexpected(wrote.error());
    if (stayed) return std::nullopt;
    if (auto freed = unbind(device); !freed) return std::unexpected(freed.error());
    // Its physical one says that no driver is found for it by itself: asking the kernel to would never end well.
    if (std::error_code failed; fs::exists(folder_of(device) + "/physfn", failed))
        return fmt::format("{}, left without a driver", *method);
    if (auto wrote = write(settings_.sysfs + "/bus/pci/drivers_probe", device); !wrote)
        return std::unexpected(wrote.error());
    if (!driver.empty())
        if (auto bound = wait_for_driver(device, driver); !bound) return std::unexpected(bound.error());
    const auto now = driver_of(device);
    if (!now) return std::unexpected(now.error());
    if (*now == vfio_driver)
        return fail(Code::conflict, fmt::format("{} went back to vfio-pci by itself", device),
                    "see the ids that vfio-pci was loaded with");
    return fmt::format("{}, rebind {}", *method, now->empty() ? "nothing" : *now);
}

}  // namespace bulkhead::vm
