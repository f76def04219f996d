// What a NIC's driver says of itself and of the firmware below it: for evidence, so that somebody can tell later what a
// statement was about.
#pragma once

#include <string>
#include <string_view>

#include "bulkhead/hw/rdma/space.hpp"

namespace bulkhead::rdma {

struct NicIdentity {
    std::string driver;    // "mlx5_core 6.1.0"
    std::string firmware;  // "28.39.1002 (MT_0000000838)"; empty: it does not say
    friend bool operator==(const NicIdentity&, const NicIdentity&) = default;
};
Result<NicIdentity> identity_of(const Space& space, const std::string& link);

// A text of the kernel's in a field of fixed width, as one line: up to its first zero, with '?' for what does not
// print.
std::string legible_field(std::string_view bytes);

}  // namespace bulkhead::rdma
