#include "bulkhead/gpu/layout_values.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "bulkhead/base/result.hpp"

namespace bulkhead::gpu {

namespace {

constexpr std::int64_t demand_parts = 40;
constexpr std::int64_t rarest = 10;       // a profile of less than one request in so many counts less
constexpr std::int64_t rate_unit = 4096;  // departures of one instance in its mean stay
constexpr int rounds = 400;               // about 25 mean stays; values no longer change then, mostly long before
constexpr std::array<std::int64_t, 9> size_to_the_1_4{0, 1000, 2639, 4656, 6964, 9518, 12'286, 15'245, 18'379};

struct Layout {
    std::uint8_t taken = 0, begins = 0;
    std::size_t key() const { return std::size_t{taken} << 8 | begins; }
};

// Every layout that instances can form, and where requests and departures lead from there.
struct Layouts {
    std::vector<Layout> all{{}};
    std::vector<std::uint16_t> number;                          // by key
    std::vector<std::vector<std::vector<std::uint16_t>>> next;  // by layout and profile: one for each start
    std::vector<std::vector<std::uint16_t>> ended;              // by layout: one for each instance

    explicit Layouts(const Board& board) : number(std::size_t{1} << 16, none) {
        number[0] = 0;
        for (std::size_t at = 0; at < all.size(); ++at) {
            next.emplace_back();
            for (const Profile& profile : board.profiles) {
                std::vector<std::uint16_t>& here = next.back().emplace_back();
                for (const unsigned start : profile.starts) {
                    const Layout now = all[at];
                    const std::uint8_t mask = profile.at(start).mask();
                    if ((now.taken & mask) == 0) here.push_back(number_of(with(now, start, mask)));
                }
            }
        }
        for (const Layout& now : all) {
            std::vector<std::uint16_t>& here = ended.emplace_back();
            for (unsigned start = 0; start < 8; ++start)
                if ((now.begins >> start & 1u) != 0) here.push_back(number[without(now, start).key()]);
        }
    }

private:
    static constexpr std::uint16_t none = 0xFFFF;

    static Layout with(Layout now, unsigned start, std::uint8_t mask) {
        return {static_cast<std::uint8_t>(now.taken | mask), static_cast<std::uint8_t>(now.begins | 1u << start)};
    }
    static Layout without(Layout now, unsigned start) {
        unsigned mask = 1u << start;
        for (unsigned next = start + 1; next < 8 && (now.taken >> next & 1u) != 0 && (now.begins >> next & 1u) == 0;
             ++next)
            mask |= 1u << next;
        return {static_cast<std::uint8_t>(now.taken & ~mask), static_cast<std::uint8_t>(now.begins & ~(1u << start))};
    }
    std::uint16_t number_of(Layout layout) {
        std::uint16_t& known = number[layout.key()];
        if (known == none) {
            known = static_cast<std::uint16_t>(all.size());
            all.push_back(layout);
        }
        return known;
    }
};

struct Arrival {
    std::size_t profile = 0;
    std::int64_t rate = 0, paid = 0;
};

std::vector<Arrival> arrivals_of(const Board& board, const Demand40& demand) {
    std::int64_t all = 0, slices = 0;
    for (std::size_t p = 0; p < demand.size(); ++p) {
        all += demand[p];
        slices += std::int64_t{demand[p]} * board.profiles[p].memory_slices;
    }
    invariant(slices > 0, "some profile is asked for");
    std::vector<Arrival> arrivals;
    for (std::size_t p = 0; p < demand.size(); ++p) {
        if (demand[p] == 0) continue;
        const std::int64_t rarity = std::min<std::int64_t>(rarest * 64, 64 * all / demand[p]);
        arrivals.push_back({.profile = p,
                            .rate = rate_unit * board.memory_slices * demand[p] / slices,
                            .paid = size_to_the_1_4[std::min(board.profiles[p].memory_slices, 8u)] * rarity});
    }
    return arrivals;
}

}  // namespace

Demand40 demand_of(const Board& board, std::span<const std::int64_t> asked) {
    std::vector<std::int64_t> counts(asked.begin(), asked.end());
    for (std::size_t p = 0; p < counts.size(); ++p) counts[p] += board.profiles[p].plain() ? 1 : 0;
    const std::int64_t sum = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
    Demand40 demand;
    for (const std::int64_t count : counts)
        demand.push_back(static_cast<std::uint8_t>((2 * demand_parts * count + sum) / (2 * sum)));
    return demand;
}

LayoutValues::LayoutValues(const Board& board, const Demand40& demand) {
    const Layouts layouts{board};
    number_ = layouts.number;
    const std::vector<Arrival> arrivals = arrivals_of(board, demand);
    std::int64_t all_rates = rate_unit * board.max_instances;
    for (const Arrival& arrival : arrivals) all_rates += arrival.rate;

    const std::size_t count = layouts.all.size();
    std::vector<std::int64_t> values(count, 0), then(count, 0);
    for (int round = 0; round < rounds; ++round) {
        for (std::size_t at = 0; at < count; ++at) {
            std::int64_t sum = 0, rest = all_rates;
            for (const Arrival& arrival : arrivals) {
                const std::vector<std::uint16_t>& next = layouts.next[at][arrival.profile];
                std::int64_t best = values[at] - arrival.paid;
                if (!next.empty()) {
                    best = values[next.front()];
                    for (const std::uint16_t other : next) best = std::max(best, values[other]);
                }
                sum += arrival.rate * best;
                rest -= arrival.rate;
            }
            for (const std::uint16_t ended : layouts.ended[at]) sum += rate_unit * values[ended];
            rest -= rate_unit * std::ssize(layouts.ended[at]);
            then[at] = (sum + rest * values[at]) / all_rates;
        }
        const std::int64_t empty = then.front();
        for (std::int64_t& value : then) value -= empty;
        if (then == values) break;
        values.swap(then);
    }

    const auto [lowest, highest] = std::ranges::minmax(values);
    const std::int64_t range = std::max<std::int64_t>(highest - lowest, 1);
    for (const std::int64_t value : values) values_.push_back((value - lowest) * 1'000'000 / range);
    best_with_.fill(std::numeric_limits<std::int64_t>::min());
    for (std::size_t at = 0; at < count; ++at) {
        std::int64_t& best = best_with_[layouts.all[at].taken];
        best = std::max(best, values_[at]);
    }
    for (std::size_t taken = best_with_.size(); taken-- > 0;)
        for (unsigned slice = 0; slice < 8; ++slice)
            if ((taken >> slice & 1u) == 0)
                best_with_[taken] = std::max(best_with_[taken], best_with_[taken | std::size_t{1} << slice]);
    for (std::int64_t& best : best_with_) best = std::max<std::int64_t>(best, 0);  // of no board of this size
}

}  // namespace bulkhead::gpu
