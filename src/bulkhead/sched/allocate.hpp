// The plain allocate action: each pending gang, in the order given, goes whole onto nodes where nobody objects, or
// stays and says why. The full engine will answer the same question with the same types.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bulkhead/base/reason.hpp"
#include "bulkhead/model/workload.hpp"
#include "bulkhead/policy/contract.hpp"
#include "bulkhead/sched/fleet.hpp"

namespace bulkhead::sched {

struct Request {
    std::int64_t workload = 0;
    TenantNo tenant = 0;
    const GpuWorkloadSpec* spec = nullptr;
    const Contract* contract = nullptr;     // accepted; names the nodes that can serve it
    std::vector<std::uint32_t> candidates;  // the same nodes, by index into the fleet
};

// One limit on what a tenant and all below it may hold, in thousandths of GPUs.
struct Holding {
    std::optional<std::int64_t> limit;
    std::int64_t held = 0;
    std::int64_t owed = 0;  // guaranteed, never lent, not yet held, and not part of what someone below is owed
};

// Where one task goes.
struct TaskSeat {
    std::uint32_t node = 0;
    std::vector<Seat> seats;          // `lease` is the caller's to fill in
    std::vector<std::uint16_t> gpus;  // by seat
    std::vector<std::uint16_t> drives, functions;
};
struct Binding {
    std::int64_t workload = 0;
    std::vector<TaskSeat> tasks;
};

struct Waiting {
    std::int64_t workload = 0;
    std::vector<Reason> reasons;
};

struct Statement {
    std::vector<Binding> bind;
    std::vector<std::uint32_t> reboot;  // empty nodes whose host another trust domain used, wanted by somebody
    std::vector<Waiting> waiting;
};

// Nodes are changed as gangs are placed, so that the next sees them taken; the caller throws the copy away or keeps it.
Statement allocate(std::vector<Node>& nodes, const Relations& relations, std::vector<Holding>& holdings,
                   std::span<const Request> requests);

// The words of a waiting reason.
std::string_view words_of(std::string_view code);

}  // namespace bulkhead::sched
