// The people of the simulated world: who they are, whom they trust, what they ask for; and the machines they share.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bulkhead/base/rng.hpp"
#include "bulkhead/model/snapshot.hpp"
#include "bulkhead/node/model.hpp"
#include "sim/checkers.hpp"

namespace bulkhead::sim {

std::vector<TenantFacts> tenant_facts(std::uint32_t nodes, std::uint32_t gpus);    // what the checkers believe
std::vector<AnyObject> declared_objects();                                         // policy
std::vector<AnyObject> declared_tenants(std::uint32_t nodes, std::uint32_t gpus);  // once nodes have reported
const std::string& tenant_name(Rng& rng);
// Of any tenant, or only of those that are guaranteed nothing.
GpuWorkload random_workload(Rng& rng, std::uint64_t number, std::uint32_t gpus, bool without_guarantee);
// A workload that asks for all that its tenant is guaranteed, of one node. The tenant is a random one with a guarantee.
GpuWorkload random_claim(Rng& rng, std::uint64_t number, std::uint32_t nodes, std::uint32_t gpus);
GpuWorkload elastic_gang(const std::string& tenant, std::uint64_t number, std::int64_t tasks);  // of one GPU each
Tenant limited_tenant(const std::string& name, std::optional<Gpus> limit);  // of those without a guarantee

GpuNodeSpec node_spec(std::uint32_t index);
NodeModelSpec node_model_spec(std::uint32_t index, std::uint32_t gpus);

// The prices of the world, by which its bills are checked; in order.
struct PriceFacts {
    std::int64_t from = 0;  // since 1970
    std::int64_t surcharge_percent = 0;
    std::map<std::string, std::int64_t> nano_per_hour;  // by profile; empty: the whole GPU
};
std::vector<PriceFacts> price_facts();

}  // namespace bulkhead::sim
