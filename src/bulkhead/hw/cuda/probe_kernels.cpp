#include "bulkhead/hw/cuda/probe_kernels.hpp"

#include <array>

#include "bulkhead/hw/cuda/pattern.hpp"

namespace bulkhead::cuda {

namespace {

constexpr std::uint32_t threads = 256;
constexpr std::uint32_t visits = 16;  // blocks a multiprocessor, so that none is left out of a look

}  // namespace

Result<ProbeKernels> ProbeKernels::load(Context& context, int multiprocessors) {
    ProbeKernels kernels;
    kernels.multiprocessors_ = static_cast<std::uint32_t>(multiprocessors);
    const std::pair<Function*, const char*> all[] = {{&kernels.burn_, "bulkhead_burn"},
                                                     {&kernels.stream_, "bulkhead_stream"},
                                                     {&kernels.read_4_, "bulkhead_read_4"},
                                                     {&kernels.read_8_, "bulkhead_read_8"},
                                                     {&kernels.read_16_, "bulkhead_read_16"},
                                                     {&kernels.mark_shared_, "bulkhead_shared_mark"},
                                                     {&kernels.look_at_shared_, "bulkhead_shared_look"},
                                                     {&kernels.mark_local_, "bulkhead_local_mark"},
                                                     {&kernels.look_at_local_, "bulkhead_local_look"}};
    for (const auto& [function, name] : all) {
        const auto found = context.load(probe_ptx, name);
        if (!found) return std::unexpected(found.error());
        *function = *found;
    }
    return kernels;
}

Result<> ProbeKernels::burn(Context& context, std::uint32_t rounds, Address scratch) const {
    std::array<void*, 2> arguments{&rounds, &scratch};
    return context.launch(burn_, {multiprocessors_, threads}, arguments);
}

Result<> ProbeKernels::stream(Context& context, Piece piece, std::uint32_t rounds, Address scratch) const {
    std::uint64_t chunks = piece.bytes / chunk_bytes;
    std::array<void*, 4> arguments{&piece.at, &chunks, &rounds, &scratch};
    return context.launch(stream_, {multiprocessors_ * 8, threads}, arguments);
}

Result<> ProbeKernels::read(Context& context, Piece piece, unsigned each, std::uint32_t block, Address scratch) const {
    std::uint64_t chunks = piece.bytes / chunk_bytes;
    std::array<void*, 3> arguments{&piece.at, &chunks, &scratch};
    const std::uint64_t tile = std::uint64_t{block} * each;
    return context.launch(each == 4   ? read_4_
                          : each == 8 ? read_8_
                                      : read_16_,
                          {static_cast<std::uint32_t>((chunks + tile - 1) / tile), block}, arguments);
}

Result<> ProbeKernels::mark_shared(Context& context, std::uint32_t mark) const {
    std::array<void*, 1> arguments{&mark};
    return context.launch(mark_shared_, {multiprocessors_ * visits, threads}, arguments);
}

Result<> ProbeKernels::look_at_shared(Context& context, std::uint32_t mark, Address tallies) const {
    std::array<void*, 2> arguments{&mark, &tallies};
    return context.launch(look_at_shared_, {multiprocessors_ * visits, threads}, arguments);
}

Result<> ProbeKernels::mark_local(Context& context, std::uint32_t mark, Address scratch) const {
    std::array<void*, 2> arguments{&mark, &scratch};
    return context.launch(mark_local_, {multiprocessors_ * visits, threads}, arguments);
}

Result<> ProbeKernels::look_at_local(Context& context, std::uint32_t mark, Address tallies) const {
    std::array<void*, 2> arguments{&mark, &tallies};
    return context.launch(look_at_local_, {multiprocessors_ * visits, threads}, arguments);
}

}  // namespace bulkhead::cuda
