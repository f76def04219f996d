#include "bulkhead/hw/cuda/driver.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <map>
#include <utility>

namespace bulkhead::cuda {

namespace {

// Codes that mean something of their own here; the driver names the others.
constexpr int success = 0, out_of_memory = 2, no_device = 100;
constexpr int attribute_multiprocessors = 16, attribute_major = 75, attribute_minor = 76;
constexpr int attribute_virtual_memory = 102;
constexpr int of_device = 1, pinned = 1, read_and_write = 3;
constexpr int limit_stack = 0, limit_print_buffer = 1, limit_heap = 2;

using Handle = void*;

// As the driver lays them out (CUmemAllocationProp, CUmemAccessDesc).
struct Location {
    int type, id;
};
struct Wanted {
    int type, shareable_as;
    Location location;
    void* os_data;
    unsigned char flags[8];
};
struct Access {
    Location location;
    int how;
};
static_assert(sizeof(Wanted) == 32 && sizeof(Access) == 12);

}  // namespace

struct Calls {
    void* library = nullptr;
    int (*init)(unsigned) = nullptr;
    int (*driver_version)(int*) = nullptr;
    int (*error_name)(int, const char**) = nullptr;
    int (*error_text)(int, const char**) = nullptr;
    int (*device_count)(int*) = nullptr;
    int (*device)(int*, int) = nullptr;
    int (*device_name)(char*, int, int) = nullptr;
    int (*device_uuid)(unsigned char*, int) = nullptr;
    int (*device_attribute)(int*, int, int) = nullptr;
    int (*device_memory)(std::size_t*, int) = nullptr;
    int (*context_create)(Handle*, unsigned, int) = nullptr;
    int (*context_destroy)(Handle) = nullptr;
    int (*context_current)(Handle) = nullptr;
    int (*context_limit)(int, std::size_t) = nullptr;
    int (*context_synchronize)() = nullptr;
    int (*memory_info)(std::size_t*, std::size_t*) = nullptr;
    int (*memory_allocate)(Address*, std::size_t) = nullptr;
    int (*memory_free)(Address) = nullptr;
    int (*pool_allocate)(Address*, std::size_t, Handle) = nullptr;
    int (*pool_free)(Address, Handle) = nullptr;
    int (*physical_create)(std::uint64_t*, std::size_t, const Wanted*, std::uint64_t) = nullptr;
    int (*physical_release)(std::uint64_t) = nullptr;
    int (*address_reserve)(Address*, std::size_t, std::size_t, Address, std::uint64_t) = nullptr;
    int (*address_free)(Address, std::size_t) = nullptr;
    int (*map)(Address, std::size_t, std::size_t, std::uint64_t, std::uint64_t) = nullptr;
    int (*unmap)(Address, std::size_t) = nullptr;
    int (*set_access)(Address, std::size_t, const Access*, std::size_t) = nullptr;
    bool virtual_memory = false;  // all seven are there
    int (*host_allocate)(void**, std::size_t, unsigned) = nullptr;
    int (*copy_in)(Address, const void*, std::size_t) = nullptr;
    int (*copy_out)(void*, Address, std::size_t) = nullptr;
    int (*set_words)(Address, unsigned, std::size_t) = nullptr;
    int (*set_bytes)(Address, unsigned char, std::size_t) = nullptr;
    int (*module_load)(Handle*, const void*) = nullptr;
    int (*module_function)(Handle*, Handle, const char*) = nullptr;
    int (*launch)(Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Handle, void**,
                  void**) = nullptr;
    int (*event_create)(Handle*, unsigned) = nullptr;
    int (*event_record)(Handle, Handle) = nullptr;
    int (*event_synchronize)(Handle) = nullptr;
    int (*event_elapsed)(float*, Handle, Handle) = nullptr;
    int (*event_destroy)(Handle) = nullptr;

    Calls() = default;
    Calls(const Calls&) = delete;
    Calls& operator=(const Calls&) = delete;
    // The library stays loaded: the driver starts threads of its own, and unloading code under them ends badly.
    ~Calls() = default;

    Result<> check(int code, const char* doing) const {
        if (code == success) return {};
        const char *name = nullptr, *text = nullptr;
        if (error_name != nullptr) error_name(code, &name);
        if (error_text != nullptr) error_text(code, &text);
        return fail(
            code == out_of_memory ? Code::exhausted : Code::unavailable,
            fmt::format("the CUDA driver could not {}: {} ({}{}{})", doing, code, name != nullptr ? name : "unknown",
                        text != nullptr ? ": " : "", text != nullptr ? text : ""),
            "see dmesg for what the driver says; `nvidia-smi` shows whether the GPU still answers");
    }
};

Result<Driver> Driver::open(const std::string& soname) {
    auto calls = std::make_shared<Calls>();
    calls->library = ::dlopen(soname.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (calls->library == nullptr)
        return fail(Code::unavailable, fmt::format("there is no CUDA driver here: {}", ::dlerror()),
                    "install the NVIDIA driver, or name its library with --cuda");
    const char* missing = nullptr;
    const auto find = [&]<class F>(F*& call, const char* name) {
        call = reinterpret_cast<F*>(::dlsym(calls->library, name));
        if (call == nullptr && missing == nullptr) missing = name;
    };
    find(calls->init, "cuInit");
    find(calls->driver_version, "cuDriverGetVersion");
    find(calls->error_name, "cuGetErrorName");
    find(calls->error_text, "cuGetErrorString");
    find(calls->device_count, "cuDeviceGetCount");
    find(calls->device, "cuDeviceGet");
    find(calls->device_name, "cuDeviceGetName");
    find(calls->device_uuid, "cuDeviceGetUuid_v2");  // of a MIG instance its own; without _v2 that of the whole GPU
    find(calls->device_attribute, "cuDeviceGetAttribute");
    find(calls->device_memory, "cuDeviceTotalMem_v2");
    find(calls->context_create, "cuCtxCreate_v2");
    find(calls->context_destroy, "cuCtxDestroy_v2");
    find(calls->context_current, "cuCtxSetCurrent");
    find(calls->context_limit, "cuCtxSetLimit");
    find(calls->context_synchronize, "cuCtxSynchronize");
    find(calls->memory_info, "cuMemGetInfo_v2");
    find(calls->memory_allocate, "cuMemAlloc_v2");
    find(calls->memory_free, "cuMemFree_v2");
    find(calls->host_allocate, "cuMemHostAlloc");
    find(calls->copy_in, "cuMemcpyHtoD_v2");
    find(calls->copy_out, "cuMemcpyDtoH_v2");
    find(calls->set_words, "cuMemsetD32_v2");
    find(calls->set_bytes, "cuMemsetD8_v2");
    find(calls->module_load, "cuModuleLoadData");
    find(calls->module_function, "cuModuleGetFunction");
    find(calls->launch, "cuLaunchKernel");
    find(calls->event_create, "cuEventCreate");
    find(calls->event_record, "cuEventRecord");
    find(calls->event_synchronize, "cuEventSynchronize");
    find(calls->event_elapsed, "cuEventElapsedTime");
    find(calls->event_destroy, "cuEventDestroy_v2");
    const char* const needed = missing;
    find(calls->pool_allocate, "cuMemAllocAsync");  // since CUDA 11.2; nobody but a probe wants them
    find(calls->pool_free, "cuMemFreeAsync");
    missing = nullptr;
    find(calls->physical_create, "cuMemCreate");  // since CUDA 10.2
    find(calls->physical_release, "cuMemRelease");
    find(calls->address_reserve, "cuMemAddressReserve");
    find(calls->address_free, "cuMemAddressFree");
    find(calls->map, "cuMemMap");
    find(calls->unmap, "cuMemUnmap");
    find(calls->set_access, "cuMemSetAccess");
    calls->virtual_memory = missing == nullptr;
    missing = needed;
    if (missing != nullptr)
        return fail(Code::invalid, fmt::format("{} is no CUDA driver that we can use: it has no {}", soname, missing),
                    "a driver of 2020 (R450) or later is needed");
    if (const auto ready = calls->check(calls->init(0), "start"); !ready) return std::unexpected(ready.error());
    Driver driver;
    if (const auto known = calls->check(calls->driver_version(&driver.version_), "tell its version"); !known)
        return std::unexpected(known.error());
    driver.calls_ = std::move(calls);
    return driver;
}

Result<std::vector<Device>> Driver::devices() const {
    int count = 0;
    if (const int code = calls_->device_count(&count); code == no_device) {
        count = 0;
    } else if (const auto counted = calls_->check(code, "count its devices"); !counted) {
        return std::unexpected(counted.error());
    }
    std::vector<Device> found;
    for (int ordinal = 0; ordinal < count; ++ordinal) {
        Device device{.ordinal = ordinal};
        int handle = 0;
        char name[256] = {};
        unsigned char uuid[16] = {};
        std::size_t bytes = 0;
        for (const int code : {calls_->device(&handle, ordinal), calls_->device_name(name, sizeof name - 1, handle),
                               calls_->device_uuid(uuid, handle), calls_->device_memory(&bytes, handle),
                               calls_->device_attribute(&device.multiprocessors, attribute_multiprocessors, handle),
                               calls_->device_attribute(&device.capability_major, attribute_major, handle),
                               calls_->device_attribute(&device.capability_minor, attribute_minor, handle)})
            if (const auto described = calls_->check(code, "describe a device"); !described)
                return std::unexpected(described.error());
        device.name = name;
        device.bytes = bytes;
        for (int i = 0; i < 16; ++i)
            device.uuid += fmt::format("{}{:02x}", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
        device.uuid = (device.name.find("MIG") == std::string::npos ? "GPU-" : "MIG-") + device.uuid;
        found.push_back(std::move(device));
    }
    return found;
}

struct Context::State {
    std::shared_ptr<const Calls> calls;
    Handle context = nullptr;
    int device = 0;
    std::map<const char*, Handle> modules;  // by the text they were made of
    ~State() {
        if (context != nullptr) calls->context_destroy(context);
    }
};

Context::Context(std::unique_ptr<State> state) : state_{std::move(state)} {}
Context::Context(Context&&) noexcept = default;
Context& Context::operator=(Context&&) noexcept = default;
Context::~Context() = default;

Result<Context> Driver::context(int ordinal) const {
    auto state = std::make_unique<Context::State>();
    state->calls = calls_;
    int handle = 0;
    if (const auto found = calls_->check(calls_->device(&handle, ordinal), "find a device"); !found)
        return std::unexpected(found.error());
    if (const auto made = calls_->check(calls_->context_create(&state->context, 0, handle), "make a context"); !made)
        return std::unexpected(made.error());
    state->device = handle;
    return Context{std::move(state)};
}

Holding::Holding(Holding&& other) noexcept
    : calls_{std::move(other.calls_)},
      piece_{std::exchange(other.piece_, {})},
      memory_{std::exchange(other.memory_, 0)},
      mapped_{std::exchange(other.mapped_, false)} {}
Holding& Holding::operator=(Holding&& other) noexcept {
    std::swap(calls_, other.calls_);
    std::swap(piece_, other.piece_);
    std::swap(memory_, other.memory_);
    std::swap(mapped_, other.mapped_);
    return *this;
}
// What cannot be given back goes with the process.
Holding::~Holding() {
    if (mapped_) calls_->unmap(piece_.at, piece_.bytes);
    if (piece_.at != 0) calls_->address_free(piece_.at, piece_.bytes);
    if (memory_ != 0) calls_->physical_release(memory_);
}

bool Context::can_hold() const {
    int supported = 0;
    return state_->calls->virtual_memory &&
           state_->calls->device_attribute(&supported, attribute_virtual_memory, state_->device) == success &&
           supported == 1;
}

Result<std::optional<Holding>> Context::hold(std::uint64_t bytes) {
    const Calls& calls = *state_->calls;
    Holding holding{state_->calls};
    const Location here{.type = of_device, .id = state_->device};
    const Wanted wanted{.type = pinned, .shareable_as = 0, .location = here, .os_data = nullptr, .flags = {}};
    const int code = calls.physical_create(&holding.memory_, bytes, &wanted, 0);
    if (code == out_of_memory) return std::optional<Holding>{};
    if (const auto had = calls.check(code, "take memory"); !had) return std::unexpected(had.error());
    const auto reserved =
        calls.check(calls.address_reserve(&holding.piece_.at, bytes, 0, 0, 0), "reserve addresses for memory");
    if (!reserved) return std::unexpected(reserved.error());
    holding.piece_.bytes = bytes;
    // Tables for the addresses are memory of the GPU too: where none is left for them, the piece is one too many.
    const int map = calls.map(holding.piece_.at, bytes, 0, holding.memory_, 0);
    if (map == out_of_memory) return std::optional<Holding>{};
    if (const auto mapped = calls.check(map, "map memory"); !mapped) return std::unexpected(mapped.error());
    holding.mapped_ = true;
    const Access access{.location = here, .how = read_and_write};
    const int open = calls.set_access(holding.piece_.at, bytes, &access, 1);
    if (open == out_of_memory) return std::optional<Holding>{};
    if (const auto opened = calls.check(open, "open mapped memory"); !opened) return std::unexpected(opened.error());
    return std::optional{std::move(holding)};
}

Result<> Context::shrink() {
    const Calls& calls = *state_->calls;
    if (const auto stack = calls.check(calls.context_limit(limit_stack, 512), "make stacks small"); !stack)
        return stack;
    if (const auto heap = calls.check(calls.context_limit(limit_heap, 0), "make its heap small"); !heap) return heap;
    return calls.check(calls.context_limit(limit_print_buffer, 0), "make its print buffer small");
}

Result<MemoryInfo> Context::memory() const {
    std::size_t free = 0, total = 0;
    if (const auto told = state_->calls->check(state_->calls->memory_info(&free, &total), "tell its memory"); !told)
        return std::unexpected(told.error());
    return MemoryInfo{free, total};
}

Result<std::optional<Piece>> Context::allocate(std::uint64_t bytes) {
    Piece piece{.bytes = bytes};
    const int code = state_->calls->memory_allocate(&piece.at, bytes);
    if (code == out_of_memory) return std::optional<Piece>{};
    if (const auto had = state_->calls->check(code, "allocate memory"); !had) return std::unexpected(had.error());
    return std::optional{piece};
}

Result<> Context::release(Address at) { return state_->calls->check(state_->calls->memory_free(at), "free memory"); }

Result<std::optional<Piece>> Context::allocate_from_pool(std::uint64_t bytes) {
    if (state_->calls->pool_allocate == nullptr || state_->calls->pool_free == nullptr)
        return fail(Code::invalid, "this CUDA driver has no memory pools", "use a driver of R460 or later");
    Piece piece{.bytes = bytes};
    const int code = state_->calls->pool_allocate(&piece.at, bytes, nullptr);
    if (code == out_of_memory) return std::optional<Piece>{};
    if (const auto had = state_->calls->check(code, "allocate from its pool"); !had)
        return std::unexpected(had.error());
    return std::optional{piece};
}

Result<> Context::release_to_pool(Address at) {
    return state_->calls->check(state_->calls->pool_free(at, nullptr), "give memory back to its pool");
}

Result<std::span<std::byte>> Context::pin(std::uint64_t bytes) {
    void* at = nullptr;
    if (const auto had = state_->calls->check(state_->calls->host_allocate(&at, bytes, 0), "pin memory of the host");
        !had)
        return std::unexpected(had.error());
    return std::span{static_cast<std::byte*>(at), bytes};
}

Result<> Context::copy_in(Address to, std::span<const std::byte> from) {
    return state_->calls->check(state_->calls->copy_in(to, from.data(), from.size()), "copy to the GPU");
}

Result<> Context::copy_out(std::span<std::byte> to, Address from) const {
    return state_->calls->check(state_->calls->copy_out(to.data(), from, to.size()), "copy from the GPU");
}

Result<> Context::set_words(Address to, std::uint32_t word, std::uint64_t count) {
    return state_->calls->check(state_->calls->set_words(to, word, count), "set memory");
}

Result<> Context::set_bytes(Address to, std::uint8_t byte, std::uint64_t count) {
    return state_->calls->check(state_->calls->set_bytes(to, byte, count), "set memory");
}

Result<Function> Context::load(const char* ptx, const char* name) {
    const Calls& calls = *state_->calls;
    Handle& module = state_->modules[ptx];
    if (module == nullptr)
        if (const auto loaded = calls.check(calls.module_load(&module, ptx), "translate our kernels"); !loaded)
            return std::unexpected(loaded.error());
    Function function;
    if (const auto found = calls.check(calls.module_function(&function.handle, module, name), name); !found)
        return std::unexpected(found.error());
    return function;
}

Result<> Context::launch(Function function, Launch shape, std::span<void*> arguments) {
    return state_->calls->check(state_->calls->launch(function.handle, shape.blocks, 1, 1, shape.threads, 1, 1, 0,
                                                      nullptr, arguments.data(), nullptr),
                                "start a kernel");
}

Result<> Context::finish() { return state_->calls->check(state_->calls->context_synchronize(), "finish its work"); }

Result<Context::Mark> Context::mark() {
    const Calls& calls = *state_->calls;
    Mark mark;
    if (const auto made = calls.check(calls.event_create(&mark.event, 0), "make an event"); !made)
        return std::unexpected(made.error());
    if (const auto noted = calls.check(calls.event_record(mark.event, nullptr), "record an event"); !noted)
        return std::unexpected(noted.error());
    return mark;
}

Result<double> Context::ms_between(Mark from, Mark to) {
    const Calls& calls = *state_->calls;
    if (const auto there = calls.check(calls.event_synchronize(to.event), "finish its work"); !there)
        return std::unexpected(there.error());
    float ms = 0;
    const auto measured = calls.check(calls.event_elapsed(&ms, from.event, to.event), "measure time");
    calls.event_destroy(from.event);
    calls.event_destroy(to.event);
    if (!measured) return std::unexpected(measured.error());
    return double{ms};
}

}  // namespace bulkhead::cuda
