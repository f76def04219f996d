// The CUDA driver by its C ABI, loaded when it is asked for: no toolkit to build with, none to run with. What is
// declared here is what we call, under the names and versions the driver exports.
//
//     auto driver = cuda::Driver::open("libcuda.so.1");
//     auto context = driver->context(0);
//     auto memory = context->allocate(1 << 20);        // nothing: there is not so much in one piece
//
// A context belongs to the thread that made it. It and everything in it is gone when the value is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bulkhead/base/result.hpp"

namespace bulkhead::cuda {

using Address = std::uint64_t;  // in the GPU's memory

struct Calls;  // the driver's functions, in driver.cpp

struct Device {
    int ordinal = 0;
    std::string name;
    std::string uuid;  // "GPU-..." or, for a process that was shown one MIG instance only, "MIG-..."
    std::uint64_t bytes = 0;
    int multiprocessors = 0;
    int capability_major = 0, capability_minor = 0;
};

struct MemoryInfo {
    std::uint64_t free = 0, total = 0;
};

struct Piece {
    Address at = 0;
    std::uint64_t bytes = 0;
    friend bool operator==(const Piece&, const Piece&) = default;
};

struct Function {
    void* handle = nullptr;
};

struct Launch {
    std::uint32_t blocks = 1, threads = 1;
};

// Memory of a device that is no context's: it stays when the context it was taken in ends, and goes with this value.
class Holding {
public:
    Holding(Holding&&) noexcept;
    Holding& operator=(Holding&&) noexcept;
    ~Holding();
    Piece piece() const { return piece_; }

private:
    friend class Context;
    explicit Holding(std::shared_ptr<const Calls> calls) : calls_{std::move(calls)} {}
    std::shared_ptr<const Calls> calls_;
    Piece piece_;               // where it is mapped
    std::uint64_t memory_ = 0;  // the driver's number for it
    bool mapped_ = false;
};

class Context {
public:
    Context(Context&&) noexcept;
    Context& operator=(Context&&) noexcept;
    ~Context();

    // As little of the GPU's memory as a context can do with: shallow stacks, no heap, no printing. What a context
    // takes is memory that nobody in it can reach.
    Result<> shrink();
    Result<MemoryInfo> memory() const;
    Result<std::optional<Piece>> allocate(std::uint64_t bytes);
    Result<> release(Address at);
    bool can_hold() const;
    Result<std::optional<Holding>> hold(std::uint64_t bytes);  // whole pages of 2 MiB
    // From the driver's own pool, which may hand out again what was given back without asking anybody.
    Result<std::optional<Piece>> allocate_from_pool(std::uint64_t bytes);
    Result<> release_to_pool(Address at);
    // Of the host, in one place while the context lives, so that copies need not stop over.
    Result<std::span<std::byte>> pin(std::uint64_t bytes);
    Result<> copy_in(Address to, std::span<const std::byte> from);
    Result<> copy_out(std::span<std::byte> to, Address from) const;
    Result<> set_words(Address to, std::uint32_t word, std::uint64_t count);
    Result<> set_bytes(Address to, std::uint8_t byte, std::uint64_t count);

    Result<Function> load(const char* ptx, const char* name);  // a module is translated once, whoever asks
    // The pointers are to the arguments, as the kernel declares them.
    Result<> launch(Function function, Launch shape, std::span<void*> arguments);
    Result<> finish();  // waits, and says what went wrong on the GPU meanwhile

    // Marks a point in the order of work, and the GPU's time between two of them.
    struct Mark {
        void* event = nullptr;
    };
    Result<Mark> mark();
    Result<double> ms_between(Mark from, Mark to);  // waits for the second; both are given back

private:
    friend class Driver;
    struct State;
    explicit Context(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

class Driver {
public:
    static Result<Driver> open(const std::string& soname);

    int version() const { return version_; }  // 13000: CUDA 13.0
    Result<std::vector<Device>> devices() const;
    Result<Context> context(int ordinal) const;

private:
    Driver() = default;
    std::shared_ptr<const Calls> calls_;
    int version_ = 0;
};

}  // namespace bulkhead::cuda
