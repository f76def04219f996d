// The fabric as the operator declares it: from which numbers tenants get theirs, how fast each class may send, and how
// its packets are marked. Who has which number is not declared: the control plane draws it (decision 0035).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bulkhead/model/meta.hpp"

namespace bulkhead {

struct NumberRange {
    std::int64_t first = 0;
    std::int64_t last = 0;

    static constexpr void describe(auto&& field) {
        field("first", &NumberRange::first, "The first number.", Rule{.required = true, .min = 0, .max = 65535});
        field("last", &NumberRange::last, "The last number.", Rule{.required = true, .min = 0, .max = 65535});
    }
    constexpr std::int64_t count() const { return last < first ? 0 : last - first + 1; }
    friend bool operator==(const NumberRange&, const NumberRange&) = default;
};

struct FabricClass {
    std::string tenantClass;
    std::int64_t rateMbps = 0;
    std::int64_t dscp = 0;
    std::optional<std::int64_t> sharePercent;

    static constexpr void describe(auto&& field) {
        field("class", &FabricClass::tenantClass, "A TenantClass; empty: whoever is of none that is listed.");
        field("rateMbps", &FabricClass::rateMbps, "Mbit/s that one virtual function sends at most; 0: not limited.",
              Rule{.min = 0, .max = 10'000'000});
        field("dscp", &FabricClass::dscp, "What its packets are marked with.", Rule{.min = 0, .max = 63});
        field("sharePercent", &FabricClass::sharePercent,
              "Of a congested link, for all packets so marked together; absent: an equal part of what is left.",
              Rule{.min = 1, .max = 99});
    }
    friend bool operator==(const FabricClass&, const FabricClass&) = default;
};

struct FabricPolicy {
    FabricKind kind = FabricKind::ethernet;
    std::string pool;
    std::int64_t tenantPrefix = 20;
    std::optional<NumberRange> vlans;
    std::optional<NumberRange> partitionKeys;
    std::int64_t losslessPriority = 3;
    std::vector<FabricClass> classes;

    static constexpr void describe(auto&& field) {
        field("kind", &FabricPolicy::kind, "What it is made of.");
        field("pool", &FabricPolicy::pool, "The IPv4 network tenants' subnets are cut from: 10.128.0.0/9.",
              Rule{.required = true, .format = Format::line});
        field("tenantPrefix", &FabricPolicy::tenantPrefix, "How long the prefix of one tenant's subnet is.",
              Rule{.min = 8, .max = 29});
        field("vlans", &FabricPolicy::vlans, "On Ethernet: VLANs, one for each tenant.");
        field("partitionKeys", &FabricPolicy::partitionKeys,
              "On InfiniBand: partition keys without the membership bit, one for each tenant.");
        field("losslessPriority", &FabricPolicy::losslessPriority,
              "The one priority that flow control pauses, for RDMA.", Rule{.min = 0, .max = 7});
        field("classes", &FabricPolicy::classes, "How fast and as what each class of tenants sends.");
    }
    friend bool operator==(const FabricPolicy&, const FabricPolicy&) = default;
};

}  // namespace bulkhead
