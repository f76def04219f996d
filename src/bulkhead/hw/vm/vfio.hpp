// Devices given to a machine whole, and taken back: unbound from the host's driver, bound to vfio-pci, and on return
// reset and bound to the host's driver again. All by sysfs, which is the kernel's own word on who has what; every step
// is read back there before it counts.
//
// The IOMMU keeps a device's DMA inside its machine, and it does that by groups: a group with anybody else's device in
// it is not given.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bulkhead/base/result.hpp"

namespace bulkhead::vm {

struct VfioSettings {
    std::string sysfs = "/sys";
    std::chrono::milliseconds patience{30'000};  // for a driver to let go, or to take up
};

class Vfio {
public:
    explicit Vfio(VfioSettings settings = {}) : settings_{std::move(settings)} {}

    // Whether this host separates devices at all.
    bool has_groups() const;
    // Whether these devices, by their PCI addresses, can go to one machine: each exists and is in a group, and no group
    // holds a device that is not among them. PCI bridges do not count: they have no DMA of their own.
    Result<> may_be_given(const std::vector<std::string>& devices) const;
    // Devices of the host whose group they share with another, among these: where the answer is empty, each can be
    // given away alone.
    Result<std::vector<std::string>> not_alone(const std::vector<std::string>& devices) const;

    Result<std::string> driver_of(const std::string& device) const;  // empty: none
    // Safe to repeat.
    Result<> give(const std::string& device) const;
    // By which path it came back: "flr, rebind nvidia". `driver` empty: whichever the kernel finds. Nothing: that
    // driver has it, so that no machine does, and it is not reset under the host's hands. A virtual function is left
    // without a driver: whoever attached it decides what comes next. `was_reset` is told how ("flr") before the driver
    // takes it up again, which may take seconds; where it fails, the device stays.
    using WasReset = std::function<Result<>(const std::string& method)>;
    Result<std::optional<std::string>> take_back(const std::string& device, const std::string& driver,
                                                 const WasReset& was_reset = {}) const;

private:
    std::string folder_of(const std::string& device) const { return settings_.sysfs + "/bus/pci/devices/" + device; }
    Result<std::vector<std::string>> others_in_group(const std::string& device) const;
    Result<> write(const std::string& path, const std::string& text) const;
    Result<> wait_for_driver(const std::string& device, const std::string& driver) const;
    Result<> unbind(const std::string& device) const;
    Result<std::string> reset(const std::string& device) const;

    VfioSettings settings_;
};

}  // namespace bulkhead::vm
