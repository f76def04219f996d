// Where PCI devices sit in their machine, as hwloc sees it: which NUMA node and CPUs are beside a GPU, which bridges
// are above it, and where the ways of two of them meet. What hwloc does not know is said to be unknown, never guessed:
// a device of a simulated driver, or one that a hypervisor shows without its surroundings.
//
//     auto machine = topology::Machine::open();
//     auto place = machine->position("00000000:3B:00.0");   // nothing: there is no such device here
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/base/result.hpp"

namespace bulkhead::topology {

struct Position {
    std::string bus;                   // 0000:3b:00.0, as the kernel writes it
    std::optional<std::int64_t> numa;  // nothing: the machine does not say, or it hangs between several
    std::string cpus;                  // 0-15,64-79; empty with the above
    std::vector<std::string> bridges;  // PCI bridges above it, from the root down
    friend bool operator==(const Position&, const Position&) = default;
};

// Where two devices meet. Ordered: a larger value is further apart.
enum class Meeting : std::uint8_t { bridge, numa, socket, machine };

class Machine {
public:
    // This machine; or what a file of hwloc's says one is. HWLOC_XMLFILE in the environment does the same to the
    // former, as it does to every program that uses hwloc.
    static Result<Machine> open(const std::string& xml_file = {});

    // By a PCI address as NVML or as the kernel writes it.
    std::optional<Position> position(std::string_view address) const;
    std::optional<Meeting> meeting(std::string_view one, std::string_view other) const;  // nothing: unknown

private:
    Machine() = default;
    std::shared_ptr<void> loaded_;
};

}  // namespace bulkhead::topology
