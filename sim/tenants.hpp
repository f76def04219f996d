// The people of the simulated world: who they are, whom they trust, what they ask for; and the machines they share.
#pragma once

#include <string>
#include <vector>

#include "bulkhead/base/rng.hpp"
#include "bulkhead/model/snapshot.hpp"
#include "bulkhead/node/model.hpp"
#include "sim/checkers.hpp"

namespace bulkhead::sim {

std::vector<TenantFacts> tenant_facts(std::uint32_t gpus);    // what the checkers believe
std::vector<AnyObject> declared_objects(std::uint32_t gpus);  // policy
std::vector<AnyObject> declared_tenants(std::uint32_t gpus);  // once nodes have reported
const std::string& tenant_name(Rng& rng);
GpuWorkload random_workload(Rng& rng, std::uint64_t number);

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
