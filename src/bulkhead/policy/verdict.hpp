// One request tried against the rules and the fleet: what objects, where it could run. The compiler asks for one
// verdict to write a contract; the search for the nearest acceptable request asks for hundreds.
#pragma once

#include <vector>

#include "bulkhead/policy/fleet.hpp"
#include "bulkhead/policy/objection.hpp"

namespace bulkhead {

// Who asks: looked up once, shared by every request tried for them.
struct Asker {
    const Tenant* tenant = nullptr;
    const TenantClass* tenant_class = nullptr;
    Circumstances circumstances;
};

struct Verdict {
    Ask ask;                          // with every default filled in
    Objections to_request;            // wherever it would run
    std::vector<Objections> on_pool;  // by FleetView::pools
    bool short_of_capacity = false;   // some pools agree, and together give too few
    std::int64_t tasks_possible = 0;

    bool accepted() const { return to_request.empty() && !short_of_capacity && tasks_possible > 0; }
    // Everything that stands in the way: node objections only when no pool agrees.
    Objections standing_in_the_way() const;
};

// In which form a request asks for GPU.
Form form_of(const GpuRequest& gpu);

// The first way to fill in what the request leaves open that nobody objects to; else the one with the fewest
// objections.
Verdict judge(const GpuWorkloadSpec& spec, const Asker& asker, const FleetView& fleet);

}  // namespace bulkhead
