// A snapshot: all the objects of a fleet at one moment, in the order they were read. What commands compile, what a live
// system exports, what a bug report attaches.
#pragma once

#include <tuple>
#include <variant>
#include <vector>

#include "bulkhead/model/lease.hpp"
#include "bulkhead/model/node.hpp"
#include "bulkhead/model/policy.hpp"
#include "bulkhead/model/tenant.hpp"
#include "bulkhead/model/tenant_class.hpp"
#include "bulkhead/model/workload.hpp"

namespace bulkhead {

using AnyObject = std::variant<FleetPolicy, TenantClass, Tenant, GpuWorkload, GpuNode, GpuLease>;

struct Snapshot {
    std::vector<FleetPolicy> policies;  // consistency() holds it to exactly one
    std::vector<TenantClass> classes;
    std::vector<Tenant> tenants;
    std::vector<GpuWorkload> workloads;
    std::vector<GpuNode> nodes;
    std::vector<GpuLease> leases;

    // The list that holds objects of kind T.
    template <class T, class Self>
    static auto& list_of(Self& self) {
        if constexpr (std::same_as<T, FleetPolicy>)
            return self.policies;
        else if constexpr (std::same_as<T, TenantClass>)
            return self.classes;
        else if constexpr (std::same_as<T, Tenant>)
            return self.tenants;
        else if constexpr (std::same_as<T, GpuWorkload>)
            return self.workloads;
        else if constexpr (std::same_as<T, GpuNode>)
            return self.nodes;
        else
            return self.leases;
    }
    template <class T>
    std::vector<T>& list() {
        return list_of<T>(*this);
    }
    template <class T>
    const std::vector<T>& list() const {
        return list_of<T>(*this);
    }

    template <class T>
    const T* find(std::string_view name) const {
        for (const T& object : list<T>())
            if (object.metadata.name == name) return &object;
        return nullptr;
    }

    friend bool operator==(const Snapshot&, const Snapshot&) = default;
};

// Calls visit.template operator()<T>() for each of the six kinds, in the order people read them.
constexpr void for_each_kind(auto&& visit) {
    visit.template operator()<FleetPolicy>();
    visit.template operator()<TenantClass>();
    visit.template operator()<Tenant>();
    visit.template operator()<GpuWorkload>();
    visit.template operator()<GpuNode>();
    visit.template operator()<GpuLease>();
}

}  // namespace bulkhead
