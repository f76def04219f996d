// Where one task of a gang would sit on one node: which GPUs, which slices, which drives and functions.
#pragma once

#include <optional>
#include <vector>

#include "bulkhead/sched/allocate.hpp"
#include "bulkhead/sched/work.hpp"

namespace bulkhead::sched {

// One for each model that the contract allows; the contract's own order.
std::vector<Want> wants_of(const Request& request);

// Seats for one more task, without regard to who sits elsewhere on the node; nothing when there is no room. `beside`
// says whether the request may sit on a GPU with the lease that holds a seat there.
template <class Beside>
std::optional<TaskSeat> seat_task(const Node& node, const Request& request, std::span<const Want> wants,
                                  const Beside& beside);

// Takes what the task was given.
void take(Node& node, const TaskSeat& task, const Request& request);

namespace seating {

std::optional<std::pair<std::vector<std::uint16_t>, std::vector<Seat>>> find_gpus(
    const Node& node, const Want& want, Mechanism mechanism, const std::vector<bool>& gpu_allowed,
    const std::vector<std::vector<bool>>& seat_joinable);

bool find_devices(const Node& node, const Request& request, TaskSeat& task);

}  // namespace seating

template <class Beside>
std::optional<TaskSeat> seat_task(const Node& node, const Request& request, std::span<const Want> wants,
                                  const Beside& beside) {
    if (request.spec->cpu.value_or(0) > node.cpu_free) return std::nullopt;
    if (request.spec->memory && request.spec->memory->bytes > node.memory_free) return std::nullopt;
    std::vector<bool> allowed(node.gpus.size());
    std::vector<std::vector<bool>> joinable(node.gpus.size());
    for (std::size_t i = 0; i < node.gpus.size(); ++i) {
        allowed[i] = true;
        for (const Seat& seat : node.gpus[i].seats) {
            const auto [on_gpu, in_instance] = beside(seat);
            allowed[i] = allowed[i] && on_gpu;
            joinable[i].push_back(in_instance);
        }
    }
    TaskSeat task;
    if (!seating::find_devices(node, request, task)) return std::nullopt;
    for (const Want& want : wants)
        if (auto found = seating::find_gpus(node, want, request.contract->mechanism, allowed, joinable)) {
            task.gpus = std::move(found->first);
            task.seats = std::move(found->second);
            return task;
        }
    return std::nullopt;
}

}  // namespace bulkhead::sched
