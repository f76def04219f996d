// What figures are made of: objects as the catalog has them. A look costs what has changed since the last one, however
// many there are and however many look.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "bulkhead/model/lease.hpp"
#include "bulkhead/model/tenant.hpp"
#include "bulkhead/shell/catalog.hpp"

namespace bulkhead::shell {

struct NodeFacts {
    std::string name;
    NodePhase phase{};
    bool unschedulable = false;
    std::int64_t gpus = 0, gpus_draining = 0;
    std::array<std::uint64_t, 4> units{};   // by CleanState
    std::array<std::uint64_t, 3> fences{};  // tests of them, by FabricFound
};
struct WorkloadFacts {
    std::string tenant;
    WorkloadPhase phase{};
    std::optional<Instant> since;
    std::set<std::string, std::less<>> causes;  // of waiting, as the scheduler names them
};

class Census {
public:
    struct Taken {
        std::vector<std::shared_ptr<const GpuLease>> leases;
        std::vector<std::shared_ptr<const Tenant>> tenants;
        std::vector<std::shared_ptr<const NodeFacts>> nodes;
        std::vector<std::shared_ptr<const WorkloadFacts>> workloads;
    };
    // Each by name. Of one catalog, always the same.
    std::shared_ptr<const Taken> take(const Catalog& catalog);

private:
    template <class Facts>
    using Known = std::map<std::string, std::shared_ptr<const Facts>>;
    void begin_anew(const Catalog& catalog);
    void note(const Object& object, bool gone);

    std::mutex mutex_;
    std::optional<std::uint64_t> number_;  // of the last change that is in it
    std::shared_ptr<const Taken> taken_;
    Known<GpuLease> leases_;
    Known<Tenant> tenants_;
    Known<NodeFacts> nodes_;
    Known<WorkloadFacts> workloads_;
};

}  // namespace bulkhead::shell
