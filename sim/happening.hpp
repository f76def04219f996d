// What can happen in the simulated world, and when: one queue of happenings, and what they carry kept by number.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace bulkhead::sim {

enum class Happening : std::uint8_t {
    message,
    operation_done,
    agent_tick,  // heartbeats, reconnects, deadlines
    agent_starts,
    server_turn,
    server_tick,
    server_starts,
    submit,
    forget,  // delete a workload
    operate,
    repair,
    backup,
    mishap,
    heal_disk,
    heal_partition,
    heal_node,
    undo,
    calm,
};

struct Item {
    std::int64_t at = 0;
    std::uint64_t order = 0;
    Happening what{};
    std::uint32_t who = 0;
    std::uint64_t argument = 0;
    bool operator<(const Item& other) const { return std::pair{at, order} > std::pair{other.at, other.order}; }
};

// Things on their way, kept by number.
template <class T>
class Parcels {
public:
    std::uint64_t put(T thing) {
        if (free_.empty()) {
            things_.push_back(std::move(thing));
            return things_.size() - 1;
        }
        const std::uint64_t at = free_.back();
        free_.pop_back();
        things_[at] = std::move(thing);
        return at;
    }
    T take(std::uint64_t at) {
        free_.push_back(at);
        return std::move(things_[at]);
    }

private:
    std::vector<T> things_;
    std::vector<std::uint64_t> free_;
};

}  // namespace bulkhead::sim
