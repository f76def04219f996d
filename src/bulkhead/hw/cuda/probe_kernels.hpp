// The kernels of kernels/probe.cpp from the host's side.
#pragma once

#include <cstdint>

#include "bulkhead/hw/cuda/driver.hpp"

namespace bulkhead::cuda {

extern const char* const probe_ptx;

class ProbeKernels {
public:
    static Result<ProbeKernels> load(Context& context, int multiprocessors);

    // All begin, and do not wait. `scratch` is memory of a few words.
    Result<> burn(Context& context, std::uint32_t rounds, Address scratch) const;  // a block on every multiprocessor
    Result<> stream(Context& context, Piece piece, std::uint32_t rounds, Address scratch) const;
    // Reads once, 4, 8 or 16 chunks in flight in each thread.
    Result<> read(Context& context, Piece piece, unsigned each, std::uint32_t threads, Address scratch) const;

    Result<> mark_shared(Context& context, std::uint32_t mark) const;
    Result<> look_at_shared(Context& context, std::uint32_t mark, Address tallies) const;
    Result<> mark_local(Context& context, std::uint32_t mark, Address scratch) const;
    Result<> look_at_local(Context& context, std::uint32_t mark, Address tallies) const;

private:
    Function burn_, stream_, read_4_, read_8_, read_16_, mark_shared_, look_at_shared_, mark_local_, look_at_local_;
    std::uint32_t multiprocessors_ = 1;
};

}  // namespace bulkhead::cuda
