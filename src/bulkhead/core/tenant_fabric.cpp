// The books of the fabric: which tenant has which numbers, and which of its functions has which address. Both are dirt
// too: an address stays a function's until the function's wipe is verified, whatever became of its lease, and a
// tenant's numbers stay its own while there is such a tenant or a function that may still have one of them.
#include <algorithm>

#include "bulkhead/core/fabric.hpp"
#include "bulkhead/core/state.hpp"
#include "bulkhead/node/leased_port.hpp"

namespace bulkhead {

namespace {

fabric::Numbers numbers_of(const FabricRow& row) {
    const auto subnet = parse_subnet(row.subnet);
    return {subnet.value_or(Subnet{}), static_cast<std::uint16_t>(row.vlan),
            static_cast<std::uint16_t>(row.partitionKey)};
}

FabricRun* fabric_of(Core::State& state, const std::string& tenant) {
    const auto found = state.fabric_of.find(tenant);
    return found == state.fabric_of.end() ? nullptr : &state.fabric.at(found->second);
}

const FabricPolicy* declared_fabric(const Core::State& state) {
    return state.policy && state.policy->object.spec.fabric ? &*state.policy->object.spec.fabric : nullptr;
}

std::set<std::int64_t> hosts_taken(const FabricRow& row) {
    std::set<std::int64_t> taken;
    for (const FabricAddress& address : row.addresses) taken.insert(address.number);
    return taken;
}

void drop(Turn& turn, Key key) {
    const FabricRow& row = turn.state.fabric.at(key).row;
    invariant(row.addresses.empty(), "numbers that a function may still have are nobody else's");
    if (!row.former) turn.state.fabric_of.erase(row.tenant);
    turn.changed_fabric.erase(key);
    turn.rows.push_back({.table = Table::fabric, .key = key, .erased = true});
    turn.state.fabric.erase(key);
    turn.state.cycle_wanted = true;  // somebody may have waited for it
}

void drop_if_over(Turn& turn, Key key) {
    const FabricRow& row = turn.state.fabric.at(key).row;
    if (row.addresses.empty() && (row.former || !turn.state.tenants.contains(row.tenant))) drop(turn, key);
}

bool is_within(std::int64_t number, const std::optional<NumberRange>& range) {
    return range ? number >= range->first && number <= range->last : number == 0;
}

// As the policy would draw them now.
bool fits(const FabricPolicy& policy, const fabric::Numbers& numbers) {
    const auto pool = parse_subnet(policy.pool);
    const bool ethernet = policy.kind == FabricKind::ethernet;
    return pool && pool->contains(numbers.subnet.base) && numbers.subnet.prefix == policy.tenantPrefix &&
           is_within(numbers.vlan, ethernet ? policy.vlans : std::nullopt) &&
           is_within(numbers.partition_key, ethernet ? std::nullopt : policy.partitionKeys);
}

// What separates it from others on this kind of fabric.
bool separates(const FabricPolicy& policy, const fabric::Numbers& numbers) {
    return policy.kind == FabricKind::ethernet ? numbers.vlan != 0 : numbers.partition_key != 0;
}

FabricRun* draw_for(Turn& turn, const FabricPolicy& policy, const std::string& tenant) {
    Core::State& state = turn.state;
    std::vector<fabric::Numbers> taken;
    if (state.settings.planted != Planted::draw_blindly)
        for (const auto& [key, other] : state.fabric) taken.push_back(numbers_of(other.row));
    const auto drawn = fabric::draw(policy, taken, state.settings.secret, tenant);
    if (!drawn) return nullptr;
    const Key key = state.fresh_key();
    state.fabric_of[tenant] = key;
    turn.changed_fabric.insert(key);
    FabricRun& run = state.fabric[key];
    run = {key,
           {.tenant = tenant,
            .subnet = print(drawn->subnet),
            .vlan = drawn->vlan,
            .partitionKey = drawn->partition_key,
            .addresses = {}}};
    return &run;
}

}  // namespace

std::optional<Reason> await_fabric(Turn& turn, const std::string& tenant, std::int64_t functions) {
    Core::State& state = turn.state;
    const FabricPolicy* policy = declared_fabric(state);
    if (policy == nullptr || functions == 0) return std::nullopt;
    FabricRun* run = fabric_of(state, tenant);
    // Another policy reaches a tenant that has nothing on the fabric; until then it stays who it is.
    if (run != nullptr && run->row.addresses.empty() && !fits(*policy, numbers_of(run->row))) {
        drop(turn, run->key);
        run = nullptr;
    }
    if (run == nullptr) run = draw_for(turn, *policy, tenant);
    if (run == nullptr || !separates(*policy, numbers_of(run->row))) return Reason{"wait.fabric", {}};
    const std::int64_t left =
        fabric::hosts_of(numbers_of(run->row).subnet) - static_cast<std::int64_t>(hosts_taken(run->row).size());
    if (left < functions) return Reason{"wait.fabric-addresses", {}};
    return std::nullopt;
}

void give_ports(Turn& turn, LeaseRun& lease) {
    Core::State& state = turn.state;
    const FabricPolicy* policy = declared_fabric(state);
    const GpuLeaseSpec& spec = lease.object.spec;
    if (policy == nullptr || spec.functions.empty()) return;
    FabricRun* run = fabric_of(state, spec.tenant);
    invariant(run != nullptr, "a lease with functions is bound for a tenant that is somebody on the fabric");
    const auto tenant = state.tenants.find(spec.tenant);
    const std::string tenant_class =
        tenant == state.tenants.end() ? std::string{} : tenant->second.object.spec.tenantClass;
    const fabric::Numbers numbers = numbers_of(run->row);
    std::set<std::int64_t> taken = hosts_taken(run->row);
    for (const LeasedDevice& function : spec.functions) {
        const std::int64_t host = fabric::next_host(numbers.subnet, taken);
        taken.insert(host);
        run->row.addresses.push_back({host, function.node, function.index});
        lease.object.status->ports.push_back(
            fabric::port_of(*policy, numbers, {function.node, function.index, host}, tenant_class));
    }
    turn.changed_fabric.insert(run->key);
    place_ports(state, lease);
}

void place_ports(const Core::State& state, LeaseRun& lease) {
    for (const LeasedPort& port : lease.object.status->ports)
        if (const auto node = state.node_names.find(port.node); node != state.node_names.end())
            if (Part* part = part_on(lease, node->second)) part->prepare.ports.push_back(as_told(port));
}

void function_wiped(Turn& turn, const NodeRun& node, std::uint16_t function) {
    std::vector<Key> changed;
    for (auto& [key, run] : turn.state.fabric)
        if (std::erase_if(run.row.addresses, [&](const FabricAddress& one) {
                return one.node == node.object.metadata.name && one.function == function;
            }) != 0)
            changed.push_back(key);
    for (const Key key : changed) {
        turn.changed_fabric.insert(key);
        drop_if_over(turn, key);
    }
}

void tenant_gone(Turn& turn, const std::string& tenant) {
    std::vector<Key> its;
    for (const auto& [key, run] : turn.state.fabric)
        if (run.row.tenant == tenant) its.push_back(key);
    for (const Key key : its) drop_if_over(turn, key);
}

void take_ports(Turn& turn, NodeRun& node, const std::vector<KnownPort>& ports) {
    Core::State& state = turn.state;
    for (const KnownPort& known : ports) {
        const auto address = parse_host_address(known.port.address);
        if (!address || known.port.function >= node.functions.size()) continue;
        const Subnet subnet = address->network();
        const FabricAddress entry{address->address - std::int64_t{subnet.base}, node.object.metadata.name,
                                  known.port.function};
        const FabricRow wanted{.tenant = known.tenant,
                               .subnet = print(subnet),
                               .vlan = known.port.vlan,
                               .partitionKey = known.port.pkey & ~fabric::full_member,
                               .addresses = {entry},
                               .former = false};
        const auto same = std::ranges::find_if(state.fabric, [&](const auto& entry_) {
            const FabricRow& row = entry_.second.row;
            return row.tenant == wanted.tenant && row.subnet == wanted.subnet && row.vlan == wanted.vlan &&
                   row.partitionKey == wanted.partitionKey;
        });
        if (same != state.fabric.end()) {
            std::vector<FabricAddress>& list = same->second.row.addresses;
            if (std::ranges::find(list, entry) != list.end()) continue;
            list.push_back(entry);
            turn.changed_fabric.insert(same->first);
            continue;
        }
        const Key key = state.fresh_key();
        FabricRun& run = state.fabric[key];
        run = {key, wanted};
        run.row.former =
            !state.tenants.contains(wanted.tenant) || !state.fabric_of.try_emplace(wanted.tenant, key).second;
        turn.changed_fabric.insert(key);
    }
}

}  // namespace bulkhead
