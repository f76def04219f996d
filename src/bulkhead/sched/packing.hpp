// Which of the nodes that could take a task should: the one whose remaining room serves what usually comes best.
//
// The fragmentation of a node, for a mix of shapes, is the free GPU capacity that a shape drawn from the mix could not
// use there (FGD, USENIX ATC'23). A placement is good when that grows little. Four things are added, because the
// gradient alone looks one step ahead:
//   - a hole is worth what the usual fractions could put into it (hole_prices.hpp), not its size;
//   - GPUs whose node has too few cores left for the mix are stranded, whatever shape is asked for next;
//   - a node of eight idle GPUs is worth something to whoever wants all of it;
//   - a model that part of the mix insists on is left to those who do.
// The sum is rounded, so that it does not decide between nodes that it cannot tell apart; among those the one with the
// least free GPU capacity is taken, and among those the first in the caller's order.
// Integers throughout: every machine breaks a tie the same way.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "bulkhead/sched/hole_prices.hpp"

namespace bulkhead::sched {

inline constexpr std::size_t most_gpus_of_node = 16;

// What one task asks. Cores and GPUs in thousandths, memory in MiB.
struct TaskShape {
    std::int64_t cpu = 0, memory = 0;
    std::int32_t gpus = 0;
    std::int32_t share = 0;      // of each GPU; 1000 when there are several
    std::uint32_t models = ~0u;  // one bit for each model it accepts

    std::int64_t demand() const { return std::int64_t{gpus} * share; }
    friend auto operator<=>(const TaskShape&, const TaskShape&) = default;
};

// What is free on one node.
struct NodeRoom {
    std::int64_t cpu = 0, memory = 0;
    std::uint8_t model = 0, gpus = 0;
    std::array<std::int16_t, most_gpus_of_node> free{};  // thousandths of each GPU

    std::int64_t gpu_free() const;
    bool takes(const TaskShape& task) const;
    // A task for one GPU goes onto the GPU given, others onto the first that are whole. It must fit.
    void take(const TaskShape& task, std::size_t gpu);
    friend bool operator==(const NodeRoom&, const NodeRoom&) = default;
};

// What usually comes, and on which fleet: the shapes asked for most, until they cover 95 % of all tasks.
class Mix {
public:
    struct Part {
        TaskShape shape;
        std::int64_t count = 0;
    };
    // `parts`: each shape once. `fleet`: every node when it is empty.
    Mix(std::vector<Part> parts, std::span<const NodeRoom> fleet);

    // The free capacity that the mix cannot use: thousandths of GPUs times the tasks of the mix.
    std::int64_t fragmentation(const NodeRoom& room) const;
    // Of nodes of one model with so many free cores: the tasks for one GPU that a GPU with so much free could serve.
    class Served {
    public:
        std::int64_t by(std::int32_t free) const {
            return row_ != nullptr ? row_[mix_->share_ranks_[static_cast<std::size_t>(free)]]
                                   : mix_->counted(model_, cpu_, free);
        }
        // The part of a GPU's free capacity that tasks for one GPU can use, times those tasks.
        std::int64_t use(std::int32_t free) const { return free * by(free); }

    private:
        friend Mix;
        const Mix* mix_ = nullptr;
        const std::int64_t* row_ = nullptr;
        std::int64_t cpu_ = 0;
        std::uint8_t model_ = 0;
    };
    Served served(std::uint8_t model, std::int64_t cpu) const;
    // Likewise what tasks for several GPUs, which take whole ones, can use of a node with so many whole GPUs.
    std::int64_t used_by_several(std::uint8_t model, std::int64_t cpu, std::int32_t whole) const;
    // Of so much free capacity, what there are no cores for, as the mix uses them, in thousandths.
    std::int64_t stranded(std::int64_t free, std::int64_t cpu) const;
    // How much of a model's capacity is wanted by those who insist on it, in thousandths.
    std::int64_t wanted(std::uint8_t model) const { return wanted_[model]; }
    std::int64_t tasks() const { return tasks_; }
    const HolePrices& holes() const { return holes_; }
    std::size_t bytes() const { return table_.capacity() * sizeof(std::int64_t); }

private:
    // The usual shapes that differ in cores alone, by share, the smallest first; memory does not matter.
    struct Group {
        std::int32_t share = 0, gpus = 0;
        std::uint32_t models = 0;
        std::uint32_t first = 0, last = 0;  // into the two below
    };
    void tabulate();
    std::int64_t served_of(const Group& group, std::int64_t cpu) const;
    std::int64_t counted(std::uint8_t model, std::int64_t cpu, std::int32_t free) const;

    std::vector<Group> single_, several_;      // for one GPU, and for more
    std::vector<std::int64_t> cores_, up_to_;  // of each shape, and how many tasks ask for no more
    // How many tasks for one GPU ask for no more than so many cores and such a share: for each kind of model (which
    // the same groups accept), cores and share. Empty where that would be too many numbers; then groups are counted.
    std::vector<std::int64_t> table_;
    std::vector<std::int64_t> steps_;  // cores that a task for one GPU asks for, each once
    std::array<std::uint16_t, 1001> share_ranks_{};
    std::array<std::uint8_t, 32> model_kinds_{};
    std::size_t shares_ = 0;
    std::int64_t tasks_ = 0;          // of `usual_`
    std::int64_t cpu_ = 0, gpu_ = 0;  // of all that ask for GPUs
    std::array<std::int64_t, 32> wanted_{};
    HolePrices holes_;
};

// Larger is better.
struct PackingScore {
    std::int64_t good = 0;      // what the placement leaves, in steps
    std::int64_t fullness = 0;  // minus the free GPU capacity before
    friend auto operator<=>(const PackingScore&, const PackingScore&) = default;
};

struct PackedPlace {
    PackingScore score;
    std::uint8_t gpu = 0;
};
// The best GPU of the node for a task that it takes; of equals the first. `allowed`: one bit for each GPU that a task
// for one GPU may go to; there must be one with room.
PackedPlace pack(const Mix& mix, const NodeRoom& room, const TaskShape& task, std::uint32_t allowed = ~0u);

}  // namespace bulkhead::sched
