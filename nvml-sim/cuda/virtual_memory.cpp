// Memory and addresses apart: memory that is the process's, addresses that it reserves, and the one mapped at the
// other. Such memory outlives the contexts it was used in.
#include "process.hpp"

namespace bulkhead::cuda_sim {

namespace {

constexpr std::uint64_t page = std::uint64_t{2} << 20;
constexpr Pointer first_address = Pointer{1} << 60;  // beyond every pointer of memory.cpp

int invalid() { return invalid_value; }

void give_up(driver::Model& model, std::uint64_t handle) {
    Process& process = Process::get();
    const auto memory = process.physical.find(handle);
    if (--memory->second.uses > 0) return;
    const std::size_t ordinal = memory->second.ordinal;
    (void)model.free(my_pid(), process.devices()[ordinal].where.gpu, memory->second.base);
    process.physical.erase(memory);
    process.detach_if_nothing_is_there(model, ordinal);
}

// All of what was reserved in one go, as nobody here maps a part.
Addresses* addresses(Pointer at, std::size_t bytes) {
    const auto found = Process::get().reserved.find(at);
    return found == Process::get().reserved.end() || found->second.bytes != bytes ? nullptr : &found->second;
}

}  // namespace

Pointer Process::lies_at(Pointer pointer) const {
    if (pointer < first_address) return pointer;
    auto around = reserved.upper_bound(pointer);
    if (around == reserved.begin()) return 0;
    --around;
    const std::uint64_t offset = pointer - around->first;
    if (offset >= around->second.bytes || !around->second.open) return 0;
    const Physical& memory = physical.at(around->second.memory);
    return pointer_to(devices_[memory.ordinal].where.gpu, memory.base + offset);
}

extern "C" {

int cuMemCreate(std::uint64_t* handle, std::size_t bytes, const AllocationProperties* wanted, std::uint64_t flags) {
    return Process::get().answer("cuMemCreate", true, [&](driver::Model& model) {
        Process& process = Process::get();
        if (handle == nullptr || wanted == nullptr || flags != 0 || bytes == 0 || bytes % page != 0) return invalid();
        if (wanted->type != 1 || wanted->location.type != 1) return invalid();
        if (wanted->shareable_as != 0) return static_cast<int>(not_supported);
        const Visible* device = process.device(wanted->location.id);
        if (device == nullptr) return static_cast<int>(invalid_device);
        const auto ordinal = static_cast<std::size_t>(wanted->location.id);
        if (const int attached = process.attach(model, *device); attached != success) return attached;
        const auto base = model.allocate(my_pid(), device->where, bytes);
        if (!base) {
            process.detach_if_nothing_is_there(model, ordinal);
            return code(base);
        }
        *handle = process.physical.empty() ? 1 : process.physical.rbegin()->first + 1;
        process.physical[*handle] = {.ordinal = ordinal, .base = *base, .bytes = bytes};
        return static_cast<int>(success);
    });
}
// It stays for as long as it is mapped somewhere.
int cuMemRelease(std::uint64_t handle) {
    return Process::get().answer("cuMemRelease", true, [&](driver::Model& model) {
        const auto memory = Process::get().physical.find(handle);
        if (memory == Process::get().physical.end() || std::exchange(memory->second.released, true)) return invalid();
        give_up(model, handle);
        return static_cast<int>(success);
    });
}
int cuMemAddressReserve(Pointer* at, std::size_t bytes, std::size_t, Pointer, std::uint64_t flags) {
    return Process::get().answer("cuMemAddressReserve", false, [&](const driver::Model&) {
        auto& reserved = Process::get().reserved;
        if (at == nullptr || bytes == 0 || bytes % page != 0 || flags != 0) return invalid();
        *at = reserved.empty() ? first_address : reserved.rbegin()->first + reserved.rbegin()->second.bytes;
        reserved[*at] = {.bytes = bytes};
        return static_cast<int>(success);
    });
}
int cuMemAddressFree(Pointer at, std::size_t bytes) {
    return Process::get().answer("cuMemAddressFree", false, [&](const driver::Model&) {
        const Addresses* found = addresses(at, bytes);
        if (found == nullptr || found->memory != 0) return invalid();
        Process::get().reserved.erase(at);
        return static_cast<int>(success);
    });
}
int cuMemMap(Pointer at, std::size_t bytes, std::size_t offset, std::uint64_t handle, std::uint64_t flags) {
    return Process::get().answer("cuMemMap", false, [&](const driver::Model&) {
        Addresses* found = addresses(at, bytes);
        const auto memory = Process::get().physical.find(handle);
        if (found == nullptr || found->memory != 0 || flags != 0 || offset != 0) return invalid();
        if (memory == Process::get().physical.end() || memory->second.bytes != bytes) return invalid();
        found->memory = handle;
        ++memory->second.uses;
        return static_cast<int>(success);
    });
}
int cuMemUnmap(Pointer at, std::size_t bytes) {
    return Process::get().answer("cuMemUnmap", true, [&](driver::Model& model) {
        Addresses* found = addresses(at, bytes);
        if (found == nullptr || found->memory == 0) return invalid();
        give_up(model, found->memory);
        *found = {.bytes = bytes};
        return static_cast<int>(success);
    });
}
int cuMemSetAccess(Pointer at, std::size_t bytes, const AccessDescription* wanted, std::size_t count) {
    return Process::get().answer("cuMemSetAccess", false, [&](const driver::Model&) {
        Addresses* found = addresses(at, bytes);
        if (found == nullptr || found->memory == 0 || wanted == nullptr || count != 1) return invalid();
        const Physical& memory = Process::get().physical.at(found->memory);
        if (wanted->location.type != 1 || std::cmp_not_equal(wanted->location.id, memory.ordinal))
            return static_cast<int>(not_supported);  // no GPU here reads another's memory
        if (wanted->access != 0 && wanted->access != 3) return static_cast<int>(not_supported);
        found->open = wanted->access == 3;
        return static_cast<int>(success);
    });
}

}  // extern "C"

}  // namespace bulkhead::cuda_sim
