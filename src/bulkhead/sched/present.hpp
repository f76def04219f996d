// Work that a person says runs already: each task sits where it fits first on the node that was named.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "bulkhead/sched/scene.hpp"

namespace bulkhead::sched {

class Present {
public:
    explicit Present(const std::vector<Node>& empty) : nodes_{empty} {}

    // Seats for a task on each of these nodes, written into the job; or what is in the way, with numbers. All who sit
    // somewhere already are jobs of the scene.
    std::optional<Error> seat(const Scene& scene, SceneJob& job, std::span<const NodeNo> on);

private:
    std::vector<Node> nodes_;  // with everyone who was seated
};

}  // namespace bulkhead::sched
