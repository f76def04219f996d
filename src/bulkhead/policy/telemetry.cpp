#include "bulkhead/policy/telemetry.hpp"

#include <algorithm>

#include "bulkhead/base/result.hpp"

namespace bulkhead {

namespace {

using enum Sight;

// What adds up over the life of a board or of a boot tells of whoever had it before; what a node does as a whole (its
// power brake) tells of whoever is on its other GPUs.
constexpr std::string_view why_activity = "others on the GPU move it",
                           why_own = "an instance has its own; read of the GPU it is the sum over all of them",
                           why_past = "it adds up over earlier tenants of the board", why_reserve = "the GPU's",
                           why_reasons =
                               "without the power brake and the sum of hardware slowdowns: those are the node's",
                           why_board = "one board, one clock, one heat sink";
constexpr std::array counter_table{
    CounterRule{Counter::gpu_percent, exact, exact, why_own},
    CounterRule{Counter::memory_percent, exact, exact, why_own},
    CounterRule{Counter::memory_used_bytes, exact, exact, why_own},
    CounterRule{Counter::memory_free_bytes, exact, exact, why_own},
    CounterRule{Counter::memory_reserved_bytes, exact, withheld, why_reserve},
    CounterRule{Counter::power_mw, exact, withheld, why_board},
    CounterRule{Counter::energy_mj, withheld, withheld, why_past},
    CounterRule{Counter::celsius, exact, withheld, why_board},
    CounterRule{Counter::memory_celsius, exact, withheld, why_board},
    CounterRule{Counter::sm_mhz, exact, withheld, why_board},
    CounterRule{Counter::memory_mhz, exact, withheld, why_board},
    CounterRule{Counter::pcie_tx_kbps, exact, withheld, why_activity},
    CounterRule{Counter::pcie_rx_kbps, exact, withheld, why_activity},
    CounterRule{Counter::pcie_replays, withheld, withheld, why_past},
    CounterRule{Counter::clock_reasons, own_bits, withheld, why_reasons},
    CounterRule{Counter::ecc_corrected, withheld, withheld, why_past},
    CounterRule{Counter::ecc_uncorrected, withheld, withheld, why_past},
    CounterRule{Counter::ecc_corrected_lifetime, withheld, withheld, why_past},
    CounterRule{Counter::ecc_uncorrected_lifetime, withheld, withheld, why_past},
    CounterRule{Counter::rows_remapped_corrected, withheld, withheld, why_past},
    CounterRule{Counter::rows_remapped_uncorrected, withheld, withheld, why_past},
    CounterRule{Counter::row_remap_failed, withheld, withheld, why_past},
    CounterRule{Counter::xid_last, withheld, withheld, why_past},
    CounterRule{Counter::xid_count, withheld, withheld, why_past},
};
static_assert(counter_table.size() == words(Counter{}).size());
static_assert(std::ranges::is_sorted(counter_table, {}, &CounterRule::counter),
              "a rule is found by its counter's number");
static_assert(std::ranges::all_of(counter_table, [](const CounterRule& rule) { return rule.instance <= rule.alone; }),
              "nobody sees more beside others than alone");

constexpr std::uint64_t bits_of_the_node = clocks_by_hardware | clocks_by_power_brake;

}  // namespace

std::span<const CounterRule> counter_rules() { return counter_table; }

Company company_of(const GpuLeaseSpec& lease, const LeasedSlice& slice) {
    if (slice.share < 1000) return Company::among_others;
    switch (lease.mechanism) {
        case Mechanism::whole:
        case Mechanism::mps:
        case Mechanism::time_slicing:  // who has all the shares of a GPU leaves none for anybody else
            return slice.profile.empty() ? Company::alone : Company::among_others;
        case Mechanism::mig:
            return Company::own_instance;
        case Mechanism::vgpu:
        case Mechanism::mig_vgpu:
        case Mechanism::mps_in_mig:
        case Mechanism::amd_partition:
            break;
    }
    return Company::among_others;
}

std::optional<Measured> shown_to_tenant(const Measured& reading, ReadOf read_of, Company company) {
    const auto number = static_cast<std::size_t>(reading.counter);
    invariant(number < counter_table.size(), "every counter has a rule");
    const bool of_device = read_of == ReadOf::device;
    if (of_device ? company != Company::alone : company != Company::own_instance) return std::nullopt;
    switch (of_device ? counter_table[number].alone : counter_table[number].instance) {
        case Sight::withheld:
            break;
        case Sight::own_bits:
            return Measured{reading.counter, reading.value & ~bits_of_the_node};
        case Sight::exact:
            return reading;
    }
    return std::nullopt;
}

}  // namespace bulkhead
