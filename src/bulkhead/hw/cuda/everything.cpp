#include "bulkhead/hw/cuda/everything.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>

namespace bulkhead::cuda {

namespace {

constexpr std::uint64_t last_try = 4 << 10;  // smaller pieces are parts of pages that are ours already

// Largest first: half of what was refused, then half of that, until not even a few kilobytes are left. Memory that the
// driver is still clearing after its last owner comes back a little later, so that a second look is worth its wait.
template <class T>
Result<std::vector<T>> everything(Context& context, std::uint64_t smallest,
                                  Result<std::optional<T>> (Context::*take)(std::uint64_t)) {
    std::vector<T> pieces;
    for (int rounds = 0; rounds < 4; ++rounds) {
        const auto memory = context.memory();
        if (!memory) return std::unexpected(memory.error());
        if (rounds > 0 && memory->free < 4 * page_bytes) break;
        if (rounds > 0) std::this_thread::sleep_for(std::chrono::milliseconds{20});
        std::uint64_t wanted = memory->free / page_bytes * page_bytes;
        if (wanted == 0) wanted = page_bytes;
        while (wanted >= smallest) {
            auto had = (context.*take)(wanted);
            if (!had) return std::unexpected(had.error());
            if (*had) {
                pieces.push_back(**std::move(had));
            } else {
                wanted = wanted > 2 * page_bytes ? wanted / 2 / page_bytes * page_bytes : wanted / 2;
            }
        }
    }
    return pieces;
}

auto larger_first(Piece piece) { return std::pair{~piece.bytes, piece.at}; }

}  // namespace

Result<std::vector<Piece>> take_everything(Context& context) {
    auto pieces = everything<Piece>(context, last_try, &Context::allocate);
    if (pieces) std::ranges::sort(*pieces, {}, larger_first);
    return pieces;
}

Result<std::vector<Holding>> hold_everything(Context& context) {
    auto held = everything<Holding>(context, page_bytes, &Context::hold);
    if (held) std::ranges::sort(*held, {}, [](const Holding& holding) { return larger_first(holding.piece()); });
    return held;
}

}  // namespace bulkhead::cuda
