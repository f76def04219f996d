// Units of a device are spoken of in runs: neighbours that belong together.
#pragma once

#include "bulkhead/core/state.hpp"

namespace bulkhead {

// The same state, the same lease and tenants.
void for_each_run(const Device& device, std::size_t first, std::size_t count, auto&& visit) {
    for (std::size_t i = first; i < first + count;) {
        std::size_t end = i + 1;
        while (end < first + count && device.units[end].state == device.units[i].state &&
               device.units[end].lease == device.units[i].lease && device.units[end].ticket == device.units[i].ticket &&
               device.units[end].tenants == device.units[i].tenants &&
               device.units[end].burn_in == device.units[i].burn_in &&
               device.units[end].out_of_use == device.units[i].out_of_use &&
               device.units[end].unsettled == device.units[i].unsettled)
            ++end;
        visit(i, end - i);
        i = end;
    }
}

inline std::string run_text(const Device& device, std::size_t at, std::size_t size) {
    return unit_text(device.kind, device.index, static_cast<unsigned>(at), static_cast<unsigned>(size));
}

}  // namespace bulkhead
