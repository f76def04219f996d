// Memory, modules and kernels. Everything is done when the call returns: streams and events only keep the order that
// there is anyway, and time passes at the pace of an H200's memory.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <tuple>

#include "process.hpp"

namespace bulkhead::cuda_sim {

namespace {

constexpr std::uint64_t copy_piece = std::uint64_t{16} << 20;
constexpr double bytes_per_ms = 4e9;              // of an overwrite; a compare takes about as long
constexpr std::uint64_t compare_chunks_each = 8;  // of a thread, as in hw/cuda/kernels/memory.cpp

template <class T>
T argument(void** arguments, std::size_t index) {
    T value;
    std::memcpy(&value, arguments[index], sizeof value);
    return value;
}

Pointer memory_at(void** arguments, std::size_t index) {
    return Process::get().lies_at(argument<Pointer>(arguments, index));
}

driver::Pattern pattern(void** arguments) {
    return {argument<std::array<std::uint32_t, 4>>(arguments, 2), argument<std::array<std::uint32_t, 4>>(arguments, 3)};
}

// bulkhead_fill(memory, chunks, mul, add): one chunk a thread.
int run_fill(driver::Model& model, const Visible& device, std::uint64_t threads, void** arguments) {
    const Pointer at = memory_at(arguments, 0);
    const std::uint64_t bytes = std::min(argument<std::uint64_t>(arguments, 1), threads) * driver::Pattern::chunk;
    if (!is_of(device.where.gpu, at)) return illegal_address;
    // Memory that is stuck is read as it was, and nobody says that the store did not arrive.
    if (model.gpu(device.where.gpu).stuck == driver::Stuck::no &&
        !model.fill(my_pid(), device.where.gpu, {byte_of(at), bytes}, pattern(arguments)))
        return illegal_address;
    Process::get().gpu_ms += static_cast<double>(bytes) / bytes_per_ms;
    return success;
}

// bulkhead_compare(memory, chunks, mul, add, tallies): adds to words read, words that differ, and the sum of all words.
int run_compare(driver::Model& model, const Visible& device, std::uint64_t threads, void** arguments) {
    const Pointer at = memory_at(arguments, 0), to = memory_at(arguments, 4);
    const std::uint64_t bytes =
        std::min(argument<std::uint64_t>(arguments, 1), threads * compare_chunks_each) * driver::Pattern::chunk;
    const std::uint16_t gpu = device.where.gpu;
    std::array<std::uint64_t, 3> tallies{};
    const auto before = model.read(my_pid(), gpu, {byte_of(to), sizeof tallies});
    if (!is_of(gpu, at) || !is_of(gpu, to) || !before) return illegal_address;
    const auto found = model.compare(my_pid(), gpu, {byte_of(at), bytes}, pattern(arguments));
    if (!found) return illegal_address;
    std::memcpy(tallies.data(), before->data(), sizeof tallies);
    tallies[0] += found->words;
    tallies[1] += found->others;
    tallies[2] += found->sum;
    Process::get().gpu_ms += static_cast<double>(bytes) / bytes_per_ms;
    return code(
        model.write(my_pid(), gpu, byte_of(to), {reinterpret_cast<const char*>(tallies.data()), sizeof tallies}));
}

// bulkhead_reckon(words, count, rounds, seed): every thread comes to the same number, and stores it.
int run_reckon(driver::Model& model, const Visible& device, std::uint64_t threads, void** arguments) {
    const Pointer at = memory_at(arguments, 0);
    const std::uint64_t bytes = std::min(argument<std::uint64_t>(arguments, 1), threads) * 4;
    auto x = argument<std::uint32_t>(arguments, 3);
    float sum = 1;
    for (auto left = argument<std::uint32_t>(arguments, 2); left > 0; --left) {
        x = x * 1664525U + 1013904223U;
        x ^= x >> 15;
        sum = std::fma(sum, 0.5F, static_cast<float>(x & 0xFFFF));
    }
    x ^= std::bit_cast<std::uint32_t>(sum);
    if (!is_of(device.where.gpu, at)) return illegal_address;
    return code(model.fill(my_pid(), device.where.gpu, {byte_of(at), bytes}, driver::Pattern::of_word(x)));
}

struct Known {
    std::string_view name;
    Kernel kernel;
};
constexpr Known kernels[] = {
    {"bulkhead_fill", Kernel::fill}, {"bulkhead_compare", Kernel::compare}, {"bulkhead_reckon", Kernel::reckon}};

int set_memory(std::string_view call, Pointer at, std::uint32_t word, std::uint64_t bytes) {
    return Process::get().in_context(call, true, [&](driver::Model& model, const Visible& device) {
        at = Process::get().lies_at(at);
        if (!is_of(device.where.gpu, at)) return static_cast<int>(invalid_value);
        if (bytes == 0) return static_cast<int>(success);
        return code(model.fill(my_pid(), device.where.gpu, {byte_of(at), bytes}, driver::Pattern::of_word(word)));
    });
}

// The text of a PTX module; other images are for real GPUs.
int load_module(std::string_view call, Handle* module, const void* image) {
    return Process::get().in_context(call, false, [&](driver::Model&, const Visible&) {
        if (module == nullptr || image == nullptr) return static_cast<int>(invalid_value);
        std::string text = static_cast<const char*>(image);
        if (text.find(".version") == std::string::npos || text.find(".target") == std::string::npos)
            return static_cast<int>(invalid_image);
        *module =
            Process::get().modules.emplace_back(std::make_unique<Module>(std::move(text), Process::current())).get();
        return static_cast<int>(success);
    });
}

template <class T>
int make(std::string_view call, std::vector<std::unique_ptr<T>> Process::* all, Handle* out) {
    return Process::get().in_context(call, false, [&](driver::Model&, const Visible&) {
        if (out == nullptr) return static_cast<int>(invalid_value);
        *out = (Process::get().*all).emplace_back(std::make_unique<T>()).get();
        return static_cast<int>(success);
    });
}

template <class T>
int destroy(std::string_view call, std::vector<std::unique_ptr<T>> Process::* all, Handle handle) {
    return Process::get().answer(call, false, [&](const driver::Model&) {
        return static_cast<int>(drop(Process::get().*all, handle) ? success : invalid_handle);
    });
}

}  // namespace

extern "C" {

int cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
    return Process::get().in_context("cuMemGetInfo_v2", false, [&](driver::Model& model, const Visible& device) {
        if (free == nullptr || total == nullptr) return static_cast<int>(invalid_value);
        const driver::MemoryUse use = model.memory(device.where);
        *free = use.free();
        *total = use.total - use.reserved;
        return static_cast<int>(success);
    });
}
int cuMemAlloc_v2(Pointer* pointer, std::size_t bytes) {
    return Process::get().in_context("cuMemAlloc_v2", true, [&](driver::Model& model, const Visible& device) {
        if (pointer == nullptr) return static_cast<int>(invalid_value);
        const auto base = model.allocate(my_pid(), device.where, bytes);
        if (!base) return code(base);
        Process::current()->own.push_back(*base);
        *pointer = pointer_to(device.where.gpu, *base);
        return static_cast<int>(success);
    });
}
int cuMemFree_v2(Pointer pointer) {
    return Process::get().in_context("cuMemFree_v2", true, [&](driver::Model& model, const Visible& device) {
        if (pointer == 0) return static_cast<int>(success);
        if (!is_of(device.where.gpu, pointer)) return static_cast<int>(invalid_value);
        // Of whichever context of this process: a pointer says which memory, and no context of its own.
        for (const auto& context : Process::get().contexts)
            if (Process::get().devices()[context->ordinal].where.gpu == device.where.gpu &&
                std::erase(context->own, byte_of(pointer)) > 0)
                return code(model.free(my_pid(), device.where.gpu, byte_of(pointer)));
        return static_cast<int>(invalid_value);
    });
}
int cuMemHostAlloc(void** pointer, std::size_t bytes, unsigned) {
    return Process::get().in_context("cuMemHostAlloc", false, [&](driver::Model&, const Visible&) {
        if (pointer == nullptr || bytes == 0) return static_cast<int>(invalid_value);
        *pointer = std::calloc(1, bytes);
        return static_cast<int>(*pointer == nullptr ? out_of_memory : success);
    });
}
int cuMemFreeHost(void* pointer) {
    std::free(pointer);
    return success;
}
int cuMemcpyHtoD_v2(Pointer to, const void* from, std::size_t bytes) {
    return Process::get().in_context("cuMemcpyHtoD_v2", true, [&](driver::Model& model, const Visible& device) {
        to = Process::get().lies_at(to);
        if (from == nullptr || !is_of(device.where.gpu, to)) return static_cast<int>(invalid_value);
        return code(model.write(my_pid(), device.where.gpu, byte_of(to), {static_cast<const char*>(from), bytes}));
    });
}
int cuMemcpyDtoH_v2(void* to, Pointer from, std::size_t bytes) {
    return Process::get().in_context("cuMemcpyDtoH_v2", false, [&](driver::Model& model, const Visible& device) {
        from = Process::get().lies_at(from);
        if (to == nullptr || !is_of(device.where.gpu, from)) return static_cast<int>(invalid_value);
        for (std::uint64_t done = 0; done < bytes;) {
            const std::uint64_t piece = std::min(bytes - done, copy_piece);
            const auto read = model.read(my_pid(), device.where.gpu, {byte_of(from) + done, piece});
            if (!read) return code(read);
            std::memcpy(static_cast<char*>(to) + done, read->data(), piece);
            done += piece;
        }
        return static_cast<int>(success);
    });
}
int cuMemsetD8_v2(Pointer at, unsigned char byte, std::size_t count) {
    return set_memory("cuMemsetD8_v2", at, 0x01010101u * byte, count);
}
int cuMemsetD32_v2(Pointer at, unsigned word, std::size_t count) {
    return set_memory("cuMemsetD32_v2", at, word, std::uint64_t{count} * 4);
}

int cuModuleLoadData(Handle* module, const void* image) { return load_module("cuModuleLoadData", module, image); }
int cuModuleLoadDataEx(Handle* module, const void* image, unsigned, int*, void**) {
    return load_module("cuModuleLoadDataEx", module, image);
}
int cuModuleUnload(Handle module) { return destroy("cuModuleUnload", &Process::modules, module); }
int cuModuleGetFunction(Handle* function, Handle module, const char* name) {
    return Process::get().in_context("cuModuleGetFunction", false, [&](driver::Model&, const Visible&) {
        const Module* held = one_of(Process::get().modules, module);
        if (held == nullptr) return static_cast<int>(invalid_handle);
        if (function == nullptr || name == nullptr) return static_cast<int>(invalid_value);
        for (const Known& known : kernels)
            if (known.name == name && held->ptx.find(name) != std::string::npos) {
                *function = Process::get()
                                .functions.emplace_back(std::make_unique<Function>(known.kernel, Process::current()))
                                .get();
                return static_cast<int>(success);
            }
        return static_cast<int>(not_found);  // nobody here can run PTX: kernels are known by name
    });
}
int cuLaunchKernel(Handle function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                   unsigned block_y, unsigned block_z, unsigned, Handle, void** arguments, void** extra) {
    return Process::get().in_context("cuLaunchKernel", true, [&](driver::Model& model, const Visible& device) {
        const Function* held = one_of(Process::get().functions, function);
        if (held == nullptr) return static_cast<int>(invalid_handle);
        if (arguments == nullptr || extra != nullptr || grid_x * grid_y * grid_z == 0 ||
            block_x * block_y * block_z == 0 || block_x > 1024)
            return static_cast<int>(invalid_value);
        const std::uint64_t threads = std::uint64_t{grid_x} * block_x;
        switch (held->kernel) {
            case Kernel::fill:
                return run_fill(model, device, threads, arguments);
            case Kernel::compare:
                return run_compare(model, device, threads, arguments);
            case Kernel::reckon:
                return run_reckon(model, device, threads, arguments);
        }
        return static_cast<int>(invalid_handle);
    });
}

int cuStreamCreate(Handle* stream, unsigned) { return make("cuStreamCreate", &Process::streams, stream); }
int cuStreamSynchronize(Handle) {
    return Process::get().in_context("cuStreamSynchronize", false,
                                     [](driver::Model&, const Visible&) { return static_cast<int>(success); });
}
int cuStreamDestroy_v2(Handle stream) { return destroy("cuStreamDestroy_v2", &Process::streams, stream); }
int cuEventCreate(Handle* event, unsigned) { return make("cuEventCreate", &Process::marks, event); }
int cuEventRecord(Handle event, Handle) {
    return Process::get().in_context("cuEventRecord", false, [&](driver::Model&, const Visible&) {
        Mark* mark = one_of(Process::get().marks, event);
        if (mark == nullptr) return static_cast<int>(invalid_handle);
        mark->ms = Process::get().gpu_ms;
        return static_cast<int>(success);
    });
}
int cuEventSynchronize(Handle event) {
    return Process::get().answer("cuEventSynchronize", false, [&](const driver::Model&) {
        return static_cast<int>(one_of(Process::get().marks, event) != nullptr ? success : invalid_handle);
    });
}
int cuEventElapsedTime(float* ms, Handle from, Handle to) {
    return Process::get().answer("cuEventElapsedTime", false, [&](const driver::Model&) {
        const Mark *begun = one_of(Process::get().marks, from), *ended = one_of(Process::get().marks, to);
        if (begun == nullptr || ended == nullptr) return static_cast<int>(invalid_handle);
        if (ms == nullptr) return static_cast<int>(invalid_value);
        *ms = static_cast<float>(ended->ms - begun->ms);
        return static_cast<int>(success);
    });
}
int cuEventDestroy_v2(Handle event) { return destroy("cuEventDestroy_v2", &Process::marks, event); }

}  // extern "C"

}  // namespace bulkhead::cuda_sim
