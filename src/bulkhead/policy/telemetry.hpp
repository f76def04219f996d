// Which of a device's counters a tenant may see, by what its lease holds of the device: never by who else is there now,
// so that whether somebody is there does not show. One table, which docs/metrics.md prints and a test compares.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "bulkhead/model/lease.hpp"
#include "bulkhead/model/telemetry.hpp"

namespace bulkhead {

// Who could be on the same GPU, by contract.
enum class Company : std::uint8_t {
    alone,         // the lease has all of the GPU, as a whole or by all of its shares
    own_instance,  // a hardware instance of its own; others, or the wipe of what others left, may be beside it
    among_others,  // a share of a GPU or of an instance
};
constexpr auto words(Company) { return std::to_array<Words>({"alone", "own-instance", "among-others"}); }
Company company_of(const GpuLeaseSpec& lease, const LeasedSlice& slice);

enum class Sight : std::uint8_t {
    withheld,
    own_bits,  // of a set of bits those that are about this device, not about its node
    exact,
};
constexpr auto words(Sight) { return std::to_array<Words>({"withheld", "own-bits", "exact"}); }

struct CounterRule {
    Counter counter{};
    Sight alone = Sight::withheld;     // read of the device
    Sight instance = Sight::withheld;  // read of the instance; what is read of the device is withheld there
    std::string_view why;
};
std::span<const CounterRule> counter_rules();  // one for each counter, in their order

// What a lease with this company may see of a reading of the device, or of its instance. Nothing: it is withheld.
enum class ReadOf : std::uint8_t { device, instance };
std::optional<Measured> shown_to_tenant(const Measured& reading, ReadOf read_of, Company company);

}  // namespace bulkhead
