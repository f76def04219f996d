#include "bulkhead/shell/bound_people.hpp"

#include <algorithm>
#include <utility>

#include "bulkhead/codec/decode.hpp"

namespace bulkhead::shell {

namespace {

// Whether it is worth reading: most tenants bind nobody, and their rows change with every lease.
bool speaks_of_bindings(const Row& row) { return !row.erased && row.body.find("\"bindings\"") != std::string::npos; }

}  // namespace

bool BoundPeople::take(const Row& row) {
    if (row.table == Table::policy) {
        std::vector<RoleBinding> now;
        if (speaks_of_bindings(row))
            if (auto policy = from_json<FleetPolicy>("a policy", row.body, own_text))
                now = std::move(policy->spec.bindings);
        const auto before = policies_.find(row.key);
        if (before == policies_.end() ? now.empty() : before->second == now) return false;
        if (now.empty())
            policies_.erase(row.key);
        else
            policies_[row.key] = std::move(now);
        return true;
    }
    if (row.table != Table::tenant) return false;
    const auto before = tenants_.find(row.key);
    Tenants now;
    if (speaks_of_bindings(row))
        if (auto tenant = from_json<Tenant>("a tenant", row.body, own_text))
            now = {std::move(tenant->metadata.name), std::move(tenant->spec.bindings)};
    if (before == tenants_.end() ? now.bindings.empty() : before->second.bindings == now.bindings) return false;
    if (now.bindings.empty())
        tenants_.erase(row.key);
    else
        tenants_[row.key] = std::move(now);
    return true;
}

void BoundPeople::publish() {
    auto fresh = std::make_shared<auth::Bindings>();
    for (const auto& [row, bindings] : policies_) fresh->add(FleetPolicySpec{.bindings = bindings});
    for (const auto& [row, tenant] : tenants_) fresh->add(tenant.name, TenantSpec{.bindings = tenant.bindings});
    {
        const std::lock_guard lock{mutex_};
        current_ = std::move(fresh);
    }
    changed_();
}

void BoundPeople::loaded(const Reign& reign) {
    policies_.clear();
    tenants_.clear();
    for (const Row& row : reign.rows) take(row);
    publish();
}

void BoundPeople::committed(const Batch& batch) {
    bool changed = false;
    for (const Row& row : batch.rows) changed = take(row) || changed;
    if (changed) publish();
}

std::shared_ptr<const auth::Bindings> BoundPeople::current() const {
    const std::lock_guard lock{mutex_};
    return current_;
}

}  // namespace bulkhead::shell
