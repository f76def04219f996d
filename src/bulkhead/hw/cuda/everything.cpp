#include "bulkhead/hw/cuda/everything.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>

namespace bulkhead::cuda {

namespace {

constexpr std::uint64_t page = 2 << 20;      // memory comes in pages of this size
constexpr std::uint64_t last_try = 4 << 10;  // smaller pieces are parts of pages that are ours already

}  // namespace

// Largest first: half of what was refused, then half of that, until not even a few kilobytes are left. Memory that the
// driver is still clearing after its last owner comes back a little later, so that a second look is worth its wait.
Result<std::vector<Piece>> take_everything(Context& context) {
    std::vector<Piece> pieces;
    for (int rounds = 0; rounds < 4; ++rounds) {
        const auto memory = context.memory();
        if (!memory) return std::unexpected(memory.error());
        if (rounds > 0 && memory->free < 4 * page) break;
        if (rounds > 0) std::this_thread::sleep_for(std::chrono::milliseconds{20});
        std::uint64_t wanted = memory->free / page * page;
        if (wanted == 0) wanted = page;
        while (wanted >= last_try) {
            const auto had = context.allocate(wanted);
            if (!had) return std::unexpected(had.error());
            if (*had) {
                pieces.push_back(**had);
            } else {
                wanted = wanted > 2 * page ? wanted / 2 / page * page : wanted / 2;
            }
        }
    }
    std::ranges::sort(pieces, {}, [](const Piece& piece) { return std::pair{~piece.bytes, piece.at}; });
    return pieces;
}

}  // namespace bulkhead::cuda
