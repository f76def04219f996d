// The books of the fabric: which tenant has which numbers, and which of its functions has which address. Both are dirt
// too: an address stays a function's until the function's wipe is verified, whatever became of its lease, and a
// tenant's numbers stay its own while there is such a tenant or a function that may still have one of them.
#include <fmt/core.h>

#include <algorithm>
#include <limits>

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

// It stays whose it was until its functions are wiped, and nothing new is made of it.
void retire(Turn& turn, Key key) {
    FabricRow& row = turn.state.fabric.at(key).row;
    if (!row.former) turn.state.fabric_of.erase(row.tenant);
    row.former = true;
    turn.changed_fabric.insert(key);
}

// Nobody has anything new of it from here on.
void let_go(Turn& turn, Key key) {
    if (turn.state.fabric.at(key).row.addresses.empty())
        drop(turn, key);
    else
        retire(turn, key);
}

// Two who have these are in each other's way: in one VLAN or partition, or with an address in common.
bool clash(const fabric::Numbers& one, const fabric::Numbers& other) {
    return one.subnet.overlaps(other.subnet) || (one.vlan != 0 && one.vlan == other.vlan) ||
           (one.partition_key != 0 && one.partition_key == other.partition_key);
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

const std::map<Key, fabric::Numbers>& taken_in(const Core::State& state, FabricLook& look) {
    if (!look.taken) {
        look.taken.emplace();
        for (const auto& [key, run] : state.fabric) look.taken->emplace(key, numbers_of(run.row));
    }
    return *look.taken;
}

// By draws they have nothing in common with anybody's. What a backup remembers, or a node, may.
bool is_its_own(const Core::State& state, FabricLook& look, const FabricRun& run) {
    if (state.settings.planted == Planted::draw_blindly || look.sound.contains(run.key)) return true;
    const fabric::Numbers numbers = numbers_of(run.row);
    for (const auto& [key, other] : taken_in(state, look))
        if (key != run.key && clash(numbers, other)) return false;
    look.sound.insert(run.key);
    return true;
}

FabricRun* draw_for(Turn& turn, FabricLook& look, const FabricPolicy& policy, const std::string& tenant) {
    Core::State& state = turn.state;
    if (look.none_left) return nullptr;  // for whom it was looked for makes no difference
    std::vector<fabric::Numbers> taken;
    if (state.settings.planted != Planted::draw_blindly)
        for (const auto& [key, numbers] : taken_in(state, look)) taken.push_back(numbers);
    const auto drawn = fabric::draw(policy, taken, state.settings.secret, tenant);
    look.none_left = !drawn;
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
    if (look.taken) look.taken->emplace(key, *drawn);
    return &run;
}

}  // namespace

std::optional<Reason> await_fabric(Turn& turn, FabricLook& look, const std::string& tenant, std::int64_t functions) {
    Core::State& state = turn.state;
    const FabricPolicy* policy = declared_fabric(state);
    if (policy == nullptr || functions == 0) return std::nullopt;
    FabricRun* run = fabric_of(state, tenant);
    // Another policy reaches a tenant that has nothing on the fabric; until then it stays who it is.
    const bool is_outdated = run != nullptr && run->row.addresses.empty() && !fits(*policy, numbers_of(run->row));
    if (is_outdated || (run != nullptr && !is_its_own(state, look, *run))) {
        const Key key = run->key;
        let_go(turn, key);
        if (!state.fabric.contains(key)) {
            if (look.taken) look.taken->erase(key);
            look.none_left = false;
        }
        run = nullptr;
    }
    if (run == nullptr) run = draw_for(turn, look, *policy, tenant);
    if (run == nullptr || !separates(*policy, numbers_of(run->row))) return Reason{"wait.fabric", {}};
    const std::int64_t hosts = fabric::hosts_of(numbers_of(run->row).subnet);
    if (hosts < functions) return Reason{"wait.fabric-size", {{"functions", functions}, {"addresses", hosts}}};
    if (fabric_room(state, tenant) < functions) return Reason{"wait.fabric-addresses", {}};
    return std::nullopt;
}

std::int64_t fabric_room(Core::State& state, const std::string& tenant) {
    const FabricRun* run = fabric_of(state, tenant);
    if (declared_fabric(state) == nullptr || run == nullptr) return std::numeric_limits<std::int64_t>::max();
    return fabric::hosts_of(numbers_of(run->row).subnet) - static_cast<std::int64_t>(hosts_taken(run->row).size());
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
        const FabricRow& row = turn.state.fabric.at(key).row;
        if (row.addresses.empty() && row.former) drop(turn, key);
    }
}

void tenant_gone(Turn& turn, const std::string& tenant) {
    std::vector<Key> its;
    for (const auto& [key, run] : turn.state.fabric)
        if (run.row.tenant == tenant) its.push_back(key);
    // Whoever comes under the same name is somebody else.
    for (const Key key : its) let_go(turn, key);
}

void retire_without_tenants(Turn& turn) {
    std::vector<Key> orphans;
    for (const auto& [tenant, key] : turn.state.fabric_of)
        if (!turn.state.tenants.contains(tenant)) orphans.push_back(key);
    for (const Key key : orphans) let_go(turn, key);
}

namespace {

// A function has been this many people at once at most: what it is, what it was before a wipe that failed, and what a
// backup believes. A node that says more goes on until the books are full.
constexpr std::ptrdiff_t most_claims = 4;
constexpr std::uint16_t functions_end = 1024;  // no node has more, nor ever had

std::ptrdiff_t claims_of(const Core::State& state, const FabricAddress& entry) {
    std::ptrdiff_t count = 0;
    for (const auto& [key, run] : state.fabric)
        count += std::ranges::count_if(run.row.addresses, [&](const FabricAddress& one) {
            return one.node == entry.node && one.function == entry.function;
        });
    return count;
}

void log_claim(Turn& turn, const NodeRun& node, const KnownPort& known, std::string_view why) {
    turn.log({.kind = evidence::RecordKind::refused,
              .actor = "node:" + node.object.metadata.name,
              .node = node.object.metadata.name,
              .detail = {{"function", std::to_string(known.port.function)},
                         {"address", known.port.address},
                         {"vlan", std::to_string(known.port.vlan)},
                         {"partition", fmt::format("{:#06x}", known.port.pkey)},
                         {"why", std::string{why}}}});
}

// Leases that a backup remembers and whose nodes were told nothing yet: what they were to be, somebody is.
void end_unprepared_like(Turn& turn, const FabricRow& claim, const FabricAddress& entry) {
    const fabric::Numbers claimed = numbers_of(claim);
    std::vector<Key> ending;
    for (const auto& [key, lease] : turn.state.leases) {
        if (lease.object.status->phase != LeasePhase::preparing) continue;
        const bool same_tenant = lease.object.spec.tenant == claim.tenant;
        for (const LeasedPort& port : lease.object.status->ports) {
            const auto address = parse_host_address(port.address);
            if (!address || (same_tenant && port.node == entry.node && port.function == entry.function)) continue;
            const fabric::Numbers its{address->network(), static_cast<std::uint16_t>(port.vlan),
                                      static_cast<std::uint16_t>(port.partitionKey & ~fabric::full_member)};
            if (same_tenant ? std::int64_t{address->address} == claimed.subnet.base + entry.number
                            : clash(its, claimed)) {
                ending.push_back(key);
                break;
            }
        }
    }
    for (const Key key : ending)
        end_lease(turn, turn.state.leases.at(key), "what it was to be on the fabric, something else is since a backup");
}

}  // namespace

void take_ports(Turn& turn, NodeRun& node, const std::vector<KnownPort>& ports) {
    Core::State& state = turn.state;
    const FabricPolicy* policy = declared_fabric(state);
    for (const KnownPort& known : ports) {
        const auto address = parse_host_address(known.port.address);
        if (!address || known.port.function >= functions_end) continue;
        const auto row_of = [&](const Subnet& subnet) {
            return FabricRow{.tenant = known.tenant,
                             .subnet = print(subnet),
                             .vlan = known.port.vlan,
                             .partitionKey = known.port.pkey & ~fabric::full_member,
                             .addresses = {{address->address - std::int64_t{subnet.base}, node.object.metadata.name,
                                            known.port.function}},
                             .former = false};
        };
        const auto find_same = [&](const FabricRow& wanted) {
            return std::ranges::find_if(state.fabric, [&](const auto& entry) {
                const FabricRow& row = entry.second.row;
                return row.tenant == wanted.tenant && row.subnet == wanted.subnet && row.vlan == wanted.vlan &&
                       row.partitionKey == wanted.partitionKey;
            });
        };
        FabricRow wanted = row_of(address->network());
        auto same = find_same(wanted);
        // By its word alone a node takes as much as one tenant is given, however wide it says that its subnet is.
        if (same == state.fabric.end() && policy != nullptr && address->prefix < policy->tenantPrefix) {
            wanted = row_of(HostAddress{address->address, static_cast<std::uint8_t>(policy->tenantPrefix)}.network());
            same = find_same(wanted);
        }
        const FabricAddress entry = wanted.addresses.front();
        if (same != state.fabric.end() &&
            std::ranges::find(same->second.row.addresses, entry) != same->second.row.addresses.end())
            continue;
        if (claims_of(state, entry) >= most_claims) {
            log_claim(turn, node, known, "the function is too many others already");
            continue;
        }
        if (state.restoring) end_unprepared_like(turn, wanted, entry);
        if (same != state.fabric.end()) {
            same->second.row.addresses.push_back(entry);
            turn.changed_fabric.insert(same->first);
            continue;
        }
        const fabric::Numbers numbers = numbers_of(wanted);
        const bool is_free = std::ranges::none_of(
            state.fabric, [&](const auto& other) { return clash(numbers, numbers_of(other.second.row)); });
        if (!is_free)
            log_claim(turn, node, known, "somebody else has the subnet, VLAN or partition in the books");
        else if (!state.restoring)
            log_claim(turn, node, known, "nobody has it in the books, and no backup was restored");
        const bool is_as_drawn = is_free && policy != nullptr && fits(*policy, numbers);
        const Key key = state.fresh_key();
        FabricRun& run = state.fabric[key];
        run = {key, wanted};
        // Kept from everybody either way; the tenant's own only where the control plane could have given it.
        run.row.former = !is_as_drawn || !state.tenants.contains(wanted.tenant) ||
                         !state.fabric_of.try_emplace(wanted.tenant, key).second;
        turn.changed_fabric.insert(key);
    }
}

}  // namespace bulkhead
