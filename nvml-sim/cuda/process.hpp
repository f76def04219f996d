// One process's use of CUDA: which devices it is shown, its contexts, and what it holds. Everything that lasts is in
// the driver model of the node; here are only the handles that the process was given.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/node/driver_model.hpp"
#include "calls.hpp"
#include "store.hpp"

namespace bulkhead::cuda_sim {

struct Visible {
    driver::Place where;
    std::string uuid;  // "GPU-..." or "MIG-..."
};

struct Context {
    std::size_t ordinal = 0;
    bool primary = false;
    std::uint64_t base = 0;  // of the memory it takes for itself
    unsigned users = 1;
    std::vector<std::uint64_t> own;  // allocations that end with it, by their first byte
};
// Memory that is the process's and no context's (virtual_memory.cpp).
struct Physical {
    std::size_t ordinal = 0;
    std::uint64_t base = 0, bytes = 0;
    unsigned uses = 1;  // whoever made it, and addresses it is mapped at
    bool released = false;
};
struct Addresses {  // that were reserved
    std::uint64_t bytes = 0;
    std::uint64_t memory = 0;  // what is mapped there, by its handle; 0: nothing
    bool open = false;         // to kernels and copies
};
struct Module {
    std::string ptx;
    const Context* of = nullptr;
};
enum class Kernel : std::uint8_t { fill, compare, reckon };
struct Function {
    Kernel kernel{};
    const Context* of = nullptr;
};
struct Mark {  // an event: a moment of the GPU's time
    double ms = 0;
};

// CUDA_VISIBLE_DEVICES as the driver reads it: numbers or UUIDs, up to the first that names nothing. A MIG device is
// one for the process alone.
std::vector<Visible> visible_devices(const driver::Model& model, std::optional<std::string_view> wanted);

class Process {
public:
    static Process& get();

    int init();
    // One call: after cuInit, on the newest state of the node, with the faults ordered for it. A call that changes
    // something is saved.
    int answer(std::string_view call, bool changes, const std::function<int(driver::Model&)>& work);
    // The same within the current context.
    int in_context(std::string_view call, bool changes, const std::function<int(driver::Model&, const Visible&)>& work);

    const std::vector<Visible>& devices() const { return devices_; }
    const Visible* device(int ordinal) const;
    static Context*& current();

    int attach(driver::Model& model, const Visible& device);
    int enter(driver::Model& model, Context context, Handle* out);
    void leave(driver::Model& model, Context* context);  // with what was allocated in it
    // From a device where it has neither a context nor memory any more.
    void detach_if_nothing_is_there(driver::Model& model, std::size_t ordinal);
    // Where the memory behind a pointer lies; 0: nowhere that may be used.
    Pointer lies_at(Pointer pointer) const;

    std::vector<std::unique_ptr<Context>> contexts;
    std::vector<std::unique_ptr<Module>> modules;
    std::vector<std::unique_ptr<Function>> functions;
    std::vector<std::unique_ptr<Mark>> marks;
    std::vector<std::unique_ptr<char>> streams;
    std::map<std::uint64_t, Physical> physical;  // by handle
    std::map<Pointer, Addresses> reserved;
    double gpu_ms = 0;  // how long the GPU has worked for this process, at an H200's pace

private:
    std::mutex mutex_;
    std::shared_ptr<nvml_sim::Store> store_;
    std::vector<Visible> devices_;
};

template <class T>
T* one_of(const std::vector<std::unique_ptr<T>>& all, Handle handle) {
    for (const auto& each : all)
        if (each.get() == handle) return each.get();
    return nullptr;
}
template <class T>
bool drop(std::vector<std::unique_ptr<T>>& all, Handle handle) {
    return std::erase_if(all, [&](const auto& each) { return each.get() == handle; }) > 0;
}

std::uint32_t my_pid();
int code(driver::Refusal refusal);
template <class T>
int code(const driver::Answer<T>& answer) {
    return answer ? success : code(answer.error());
}

// A pointer says which GPU it is of, so that a copy needs no context to know.
constexpr unsigned gpu_shift = 40;
constexpr Pointer pointer_to(std::uint16_t gpu, std::uint64_t byte) { return (Pointer{gpu} + 1) << gpu_shift | byte; }
constexpr std::uint64_t byte_of(Pointer pointer) { return pointer & ((Pointer{1} << gpu_shift) - 1); }
constexpr bool is_of(std::uint16_t gpu, Pointer pointer) { return pointer >> gpu_shift == Pointer{gpu} + 1; }

}  // namespace bulkhead::cuda_sim
