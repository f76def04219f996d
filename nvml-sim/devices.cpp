// Finding devices, and what they are.
#include <fmt/format.h>

#include <charconv>
#include <cstring>

#include "exports.hpp"
#include "session.hpp"

namespace bulkhead::nvml {

namespace {

const driver::GpuSpec& spec_of(const driver::Model& model, std::uint16_t gpu) { return model.spec().gpus[gpu]; }

Return count_devices(std::string_view call, std::uint32_t* count) {
    return Session::get().answer(call, Session::Access::read,
                                 [&](const driver::Model& model) { return put(count, model.gpus()); });
}

Return device_at(std::string_view call, std::uint32_t index, Device* device) {
    return Session::get().answer(call, Session::Access::read, [&](const driver::Model& model) {
        if (device == nullptr || index >= model.gpus()) return Return::invalid_argument;
        *device = Session::get().device(static_cast<std::uint16_t>(index));
        return model.gpu(static_cast<std::uint16_t>(index)).lost ? Return::gpu_is_lost : Return::success;
    });
}

// "domain:bus:device.function" or without the domain; hexadecimal of any width.
struct Address {
    std::uint32_t domain = 0, bus = 0, device = 0;
    friend bool operator==(const Address&, const Address&) = default;
};
std::optional<Address> parse_address(std::string_view text) {
    std::vector<std::uint32_t> parts;
    while (parts.size() < 4) {
        std::uint32_t value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
        if (error != std::errc{}) return std::nullopt;
        parts.push_back(value);
        text.remove_prefix(static_cast<std::size_t>(end - text.data()));
        if (text.empty()) break;
        if (text.front() != ':' && text.front() != '.') return std::nullopt;
        if (text.front() == '.') {
            if (text != ".0") return std::nullopt;
            break;
        }
        text.remove_prefix(1);
    }
    if (parts.size() == 2) return Address{0, parts[0], parts[1]};
    if (parts.size() == 3) return Address{parts[0], parts[1], parts[2]};
    return std::nullopt;
}

Return device_on_bus(std::string_view call, const char* text, Device* device) {
    return Session::get().answer(call, Session::Access::read, [&](const driver::Model& model) {
        if (text == nullptr || device == nullptr) return Return::invalid_argument;
        const auto wanted = parse_address(text);
        if (!wanted) return Return::invalid_argument;
        for (std::uint16_t gpu = 0; gpu < model.gpus(); ++gpu) {
            const driver::GpuSpec& spec = spec_of(model, gpu);
            if (*wanted != Address{spec.pci_domain, spec.pci_bus, spec.pci_device}) continue;
            *device = Session::get().device(gpu);
            return Return::success;
        }
        return Return::not_found;
    });
}

Return pci_info(std::string_view call, Device device, PciInfo* pci) {
    return ask(call, device, [&](const driver::Model& model, const Target& target) {
        if (pci == nullptr) return Return::invalid_argument;
        const driver::GpuSpec& spec = spec_of(model, target.gpu());
        *pci = {};
        pci->domain = spec.pci_domain;
        pci->bus = spec.pci_bus;
        pci->device = spec.pci_device;
        pci->device_id = model.product(target.gpu()).pci_id;
        pci->subsystem_id = model.product(target.gpu()).subsystem_id;
        copy_text(pci->bus_id_legacy,
                  fmt::format("{:04X}:{:02X}:{:02X}.0", spec.pci_domain, spec.pci_bus, spec.pci_device));
        copy_text(pci->bus_id, fmt::format("{:08X}:{:02X}:{:02X}.0", spec.pci_domain, spec.pci_bus, spec.pci_device));
        return Return::success;
    });
}

Return text_of(std::string_view call, Device device, char* out, std::uint32_t length,
               const std::function<std::string(const driver::Model&, const Target&)>& text) {
    return ask(call, device, [&](const driver::Model& model, const Target& target) {
        return put_text(out, length, text(model, target));
    });
}

Architecture architecture_of(const driver::Product& product) {
    switch (product.architecture) {
        case driver::Architecture::volta:
            return Architecture::volta;
        case driver::Architecture::turing:
            return Architecture::turing;
        case driver::Architecture::ampere:
            return Architecture::ampere;
        case driver::Architecture::ada:
            return Architecture::ada;
        case driver::Architecture::hopper:
            return Architecture::hopper;
        case driver::Architecture::blackwell:
            return Architecture::blackwell;
    }
    return Architecture::unknown;
}

Brand brand_of(const driver::Product& product) {
    if (product.name.find("GeForce RTX") != std::string_view::npos) return Brand::geforce_rtx;
    if (product.name.find("RTX PRO") != std::string_view::npos) return Brand::nvidia_rtx;
    return product.name.starts_with("Tesla") ? Brand::tesla : Brand::nvidia;
}

}  // namespace

extern "C" {

Return nvmlDeviceGetCount(std::uint32_t* count) { return count_devices("nvmlDeviceGetCount", count); }
Return nvmlDeviceGetCount_v2(std::uint32_t* count) { return count_devices("nvmlDeviceGetCount_v2", count); }
Return nvmlDeviceGetHandleByIndex(std::uint32_t index, Device* device) {
    return device_at("nvmlDeviceGetHandleByIndex", index, device);
}
Return nvmlDeviceGetHandleByIndex_v2(std::uint32_t index, Device* device) {
    return device_at("nvmlDeviceGetHandleByIndex_v2", index, device);
}
Return nvmlDeviceGetHandleByPciBusId(const char* id, Device* device) {
    return device_on_bus("nvmlDeviceGetHandleByPciBusId", id, device);
}
Return nvmlDeviceGetHandleByPciBusId_v2(const char* id, Device* device) {
    return device_on_bus("nvmlDeviceGetHandleByPciBusId_v2", id, device);
}

Return nvmlDeviceGetHandleBySerial(const char* serial, Device* device) {
    return Session::get().answer("nvmlDeviceGetHandleBySerial", Session::Access::read, [&](const driver::Model& model) {
        if (serial == nullptr || device == nullptr) return Return::invalid_argument;
        for (std::uint16_t gpu = 0; gpu < model.gpus(); ++gpu)
            if (spec_of(model, gpu).serial == serial) {
                *device = Session::get().device(gpu);
                return Return::success;
            }
        return Return::not_found;
    });
}

Return nvmlDeviceGetHandleByUUID(const char* uuid, Device* device) {
    return Session::get().answer("nvmlDeviceGetHandleByUUID", Session::Access::read, [&](const driver::Model& model) {
        if (uuid == nullptr || device == nullptr) return Return::invalid_argument;
        for (std::uint16_t gpu = 0; gpu < model.gpus(); ++gpu)
            if (spec_of(model, gpu).uuid == uuid) {
                *device = Session::get().device(gpu);
                return Return::success;
            }
        const auto mig = model.mig_device_by_uuid(uuid);
        if (!mig) return Return::not_found;
        *device = Session::get().mig(mig->where.gpu, mig->compute->uuid);
        return Return::success;
    });
}

Return nvmlDeviceGetName(Device device, char* name, std::uint32_t length) {
    return text_of("nvmlDeviceGetName", device, name, length, [](const driver::Model& model, const Target& target) {
        const std::string product{model.product(target.gpu()).name};
        if (!target.mig) return product;
        const driver::GpuProfile& profile = *model.profile(target.gpu(), target.mig->instance->profile_id);
        return fmt::format("{} MIG {}", product, profile.name);
    });
}

Return nvmlDeviceGetUUID(Device device, char* uuid, std::uint32_t length) {
    return text_of("nvmlDeviceGetUUID", device, uuid, length, [](const driver::Model& model, const Target& target) {
        return target.mig ? target.mig->compute->uuid : spec_of(model, target.gpu()).uuid;
    });
}

Return nvmlDeviceGetSerial(Device device, char* serial, std::uint32_t length) {
    return text_of("nvmlDeviceGetSerial", device, serial, length, [](const driver::Model& model, const Target& target) {
        return spec_of(model, target.gpu()).serial;
    });
}
Return nvmlDeviceGetVbiosVersion(Device device, char* version, std::uint32_t length) {
    return text_of("nvmlDeviceGetVbiosVersion", device, version, length,
                   [](const driver::Model& model, const Target&) { return model.spec().vbios; });
}
Return nvmlDeviceGetGspFirmwareVersion(Device device, char* version) {
    return text_of("nvmlDeviceGetGspFirmwareVersion", device, version, gsp_version_size,
                   [](const driver::Model& model, const Target&) { return model.spec().driver; });
}
Return nvmlDeviceGetBoardPartNumber(Device device, char* part, std::uint32_t length) {
    return text_of("nvmlDeviceGetBoardPartNumber", device, part, length,
                   [](const driver::Model&, const Target&) { return std::string{"692-2G520-0282-000"}; });
}
Return nvmlDeviceGetInforomImageVersion(Device device, char* version, std::uint32_t length) {
    return text_of("nvmlDeviceGetInforomImageVersion", device, version, length,
                   [](const driver::Model&, const Target&) { return std::string{"G520.0282.02.02"}; });
}
Return nvmlDeviceGetInforomVersion(Device device, InforomObject object, char* version, std::uint32_t length) {
    return ask("nvmlDeviceGetInforomVersion", device, [&](const driver::Model&, const Target&) {
        if (object > InforomObject::den) return Return::invalid_argument;
        if (object > InforomObject::ecc) return Return::not_supported;
        return put_text(version, length, object == InforomObject::oem ? "2.1" : "7.16");
    });
}

Return nvmlDeviceGetGspFirmwareMode(Device device, std::uint32_t* enabled, std::uint32_t* by_default) {
    return ask("nvmlDeviceGetGspFirmwareMode", device, [&](const driver::Model& model, const Target& target) {
        if (enabled == nullptr || by_default == nullptr) return Return::invalid_argument;
        *by_default = model.product(target.gpu()).architecture >= driver::Architecture::turing ? 1 : 0;
        return put(enabled, *by_default);
    });
}

Return nvmlDeviceGetIndex(Device device, std::uint32_t* index) {
    return ask("nvmlDeviceGetIndex", device, [&](const driver::Model&, const Target& target) {
        return put(index, target.mig ? target.mig->compute->index : target.gpu());
    });
}
Return nvmlDeviceGetMinorNumber(Device device, std::uint32_t* minor) {
    return ask_gpu("nvmlDeviceGetMinorNumber", device, [&](const driver::Model& model, std::uint16_t gpu) {
        return put(minor, spec_of(model, gpu).minor);
    });
}
Return nvmlDeviceGetModuleId(Device device, std::uint32_t* module) {
    // The one board that was read sat in the third place of its baseboard.
    return ask_gpu("nvmlDeviceGetModuleId", device, [&](const driver::Model& model, std::uint16_t gpu) {
        return put(module, model.gpus() == 1 ? 3u : gpu + 1u);
    });
}
Return nvmlDeviceGetBoardId(Device device, std::uint32_t* id) {
    return ask_gpu("nvmlDeviceGetBoardId", device, [&](const driver::Model& model, std::uint16_t gpu) {
        return put(id, spec_of(model, gpu).pci_bus << 8 | spec_of(model, gpu).pci_device);
    });
}
Return nvmlDeviceGetMultiGpuBoard(Device device, std::uint32_t* multi) {
    return ask_gpu("nvmlDeviceGetMultiGpuBoard", device,
                   [&](const driver::Model&, std::uint16_t) { return put(multi, 0u); });
}
Return nvmlDeviceGetBrand(Device device, Brand* brand) {
    return ask("nvmlDeviceGetBrand", device, [&](const driver::Model& model, const Target& target) {
        return put(brand, brand_of(model.product(target.gpu())));
    });
}
Return nvmlDeviceGetArchitecture(Device device, Architecture* architecture) {
    return ask("nvmlDeviceGetArchitecture", device, [&](const driver::Model& model, const Target& target) {
        return put(architecture, architecture_of(model.product(target.gpu())));
    });
}
Return nvmlDeviceGetCudaComputeCapability(Device device, std::int32_t* major, std::int32_t* minor) {
    return ask("nvmlDeviceGetCudaComputeCapability", device, [&](const driver::Model& model, const Target& target) {
        if (major == nullptr || minor == nullptr) return Return::invalid_argument;
        *minor = static_cast<std::int32_t>(model.product(target.gpu()).capability_minor);
        return put(major, model.product(target.gpu()).capability_major);
    });
}
Return nvmlDeviceGetNumGpuCores(Device device, std::uint32_t* cores) {
    return ask_gpu("nvmlDeviceGetNumGpuCores", device, [&](const driver::Model& model, std::uint16_t gpu) {
        return put(cores, model.product(gpu).sms * model.product(gpu).cores_per_sm);
    });
}
Return nvmlDeviceGetMemoryBusWidth(Device device, std::uint32_t* bits) {
    return ask_gpu("nvmlDeviceGetMemoryBusWidth", device, [&](const driver::Model& model, std::uint16_t gpu) {
        return put(bits, model.product(gpu).bus_width_bits);
    });
}
Return nvmlDeviceGetBusType(Device device, BusType* type) {
    return ask_gpu("nvmlDeviceGetBusType", device,
                   [&](const driver::Model&, std::uint16_t) { return put(type, BusType::pcie); });
}
Return nvmlDeviceGetVirtualizationMode(Device device, Virtualization* mode) {
    return ask_gpu("nvmlDeviceGetVirtualizationMode", device, [&](const driver::Model& model, std::uint16_t) {
        return put(mode, model.spec().passed_through ? Virtualization::passthrough : Virtualization::none);
    });
}

Return nvmlDeviceGetPciInfo(Device device, PciInfo* pci) { return pci_info("nvmlDeviceGetPciInfo", device, pci); }
Return nvmlDeviceGetPciInfo_v2(Device device, PciInfo* pci) { return pci_info("nvmlDeviceGetPciInfo_v2", device, pci); }
Return nvmlDeviceGetPciInfo_v3(Device device, PciInfo* pci) { return pci_info("nvmlDeviceGetPciInfo_v3", device, pci); }
Return nvmlDeviceGetPciInfoExt(Device device, PciInfoExt* pci) {
    return ask("nvmlDeviceGetPciInfoExt", device, [&](const driver::Model& model, const Target& target) {
        if (pci == nullptr) return Return::invalid_argument;
        if (pci->version != pci_info_ext_v1) return Return::argument_version_mismatch;
        const driver::GpuSpec& spec = spec_of(model, target.gpu());
        const driver::Product& product = model.product(target.gpu());
        *pci = {pci_info_ext_v1,
                spec.pci_domain,
                spec.pci_bus,
                spec.pci_device,
                product.pci_id,
                product.subsystem_id,
                3,
                2,
                {}};
        copy_text(pci->bus_id, fmt::format("{:08X}:{:02X}:{:02X}.0", spec.pci_domain, spec.pci_bus, spec.pci_device));
        return Return::success;
    });
}

Return nvmlDeviceOnSameBoard(Device one, Device other, std::int32_t* same) {
    return ask_gpu("nvmlDeviceOnSameBoard", one, [&](const driver::Model& model, std::uint16_t gpu) {
        const auto second = Session::get().find_gpu(model, other);
        return second ? put(same, second->gpu() == gpu ? 1 : 0) : second.error();
    });
}

}  // extern "C"

}  // namespace bulkhead::nvml
