// The control group of one lease, in every tree there is: the truth about which processes a lease has. Two rooms: the
// keeper, our own program, sits beside the tenant, so that the tenant's memory limit never picks it as a victim.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "bulkhead/base/result.hpp"
#include "bulkhead/hw/container/durable.hpp"
#include "bulkhead/hw/container/hierarchies.hpp"
#include "bulkhead/hw/container/spec.hpp"

namespace bulkhead::container {

enum class Room : std::uint8_t { keeper, tenant };

class LeaseCgroup {
public:
    LeaseCgroup(Hierarchies trees, std::string parent, LeaseKey lease);

    // Both rooms, with the limits; idempotent.
    Result<> create(const Limits& limits, std::span<const DeviceNode> devices) const;
    // What to write "0" to in order to be inside, in every tree.
    Result<std::vector<Fd>> doors(Room room) const;
    bool holds(pid_t process, Room room) const;  // in every tree

    // Everything below, in any tree, in order. Groups that are not there hold nobody.
    Result<std::vector<pid_t>> processes(Room room) const;
    // To everybody inside, and to nobody who has taken over a number since.
    Result<> signal(Room room, int signal) const;
    // Whether anybody inside could do something about that signal. Process 1 of a pid namespace gets none that it has
    // not asked for.
    Result<bool> hears(Room room, int signal) const;
    // No forks any more, and SIGKILL to everybody. Who is in the middle of a system call may take a moment: ask again.
    Result<> kill(Room room) const;
    // Of groups that are empty; others say `conflict`.
    Result<> remove() const;

    std::int64_t memory_kills() const;
    std::string name(Room room) const;  // below any tree: "bulkhead/lease-7/tenant"

private:
    std::string path(const std::string& tree, Room room) const { return tree + "/" + name(room); }
    Result<> limit(const Limits& limits) const;
    Result<> limit_memory(std::int64_t bytes) const;
    Result<> limit_rdma(std::span<const RdmaLimit> limits) const;
    Result<> hand_down(const char* controller) const;

    Hierarchies trees_;
    std::string lease_;  // "bulkhead/lease-7"
};

}  // namespace bulkhead::container
