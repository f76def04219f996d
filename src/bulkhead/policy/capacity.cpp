#include "bulkhead/policy/capacity.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "bulkhead/policy/owed.hpp"

namespace bulkhead {

namespace {

constexpr std::int64_t detail_budget = assignment_budget / 10;  // of each further question that a refusal asks
constexpr std::size_t most_findings = 8, most_alternatives = 4;

class Refusing {
public:
    Refusing(const OwedFleet& fleet, std::span<const std::string> applied) : fleet_{fleet}, applied_{applied} {}

    std::vector<Finding> findings() {
        std::vector<Finding> out;
        std::vector<Owed> owed = fleet_.owed();
        std::ranges::stable_partition(owed, [&](const Owed& each) {  // the last of several is refused
            return std::ranges::find(applied_, each.tenant->metadata.name) == applied_.end();
        });
        while (out.size() < most_findings) {
            const Keepable all = fleet_.keepable(owed);
            if (all == Keepable::yes) break;
            const std::vector<Owed> rivals = all == Keepable::no ? rivals_among(owed) : owed;
            const Tenant& about = *rivals.back().tenant;
            out.push_back(all == Keepable::no ? refusal(about, rivals) : undecided(about, owed));
            std::erase_if(owed, [&](const Owed& each) { return each.tenant == &about; });
        }
        return out;
    }

private:
    // A set of guarantees that cannot be kept at once, and of which each is needed for that.
    std::vector<Owed> rivals_among(std::vector<Owed> owed) const {
        for (std::size_t i = 0; i < owed.size();) {
            std::vector<Owed> fewer = owed;
            fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
            if (fleet_.keepable(fewer, detail_budget) == Keepable::no)
                owed = std::move(fewer);
            else
                ++i;
        }
        return owed;
    }

    // The largest guarantee of the tenant that is accepted while all others stay, in its own unit; at least what its
    // children are guaranteed.
    std::string largest(const Tenant& tenant) const {
        const auto of_tenant = [&](const Owed& each) { return each.tenant == &tenant; };
        const Owed& mine = *std::ranges::find_if(fleet_.owed(), of_tenant);
        const std::int64_t step = mine.unit.what == GuaranteeUnit::What::gpu ? gpu_unit : 1;
        const auto fits = [&](std::int64_t steps) {
            std::vector<Owed> changed = fleet_.owed();
            std::ranges::find_if(changed, of_tenant)->amount = steps * step;
            return fleet_.keepable(changed, detail_budget) == Keepable::yes;
        };
        if (!fits(0)) return "";
        const std::int64_t has = mine.amount / step;
        std::int64_t most = 0, too_many = has + 1;
        while (most + 1 < too_many) {
            const std::int64_t middle = most + (too_many - most) / 2;
            (fits(middle) ? most : too_many) = middle;
        }
        Quota quota = tenant.spec.quota;
        quota.guarantee.units -= (has - most) * gpu_unit + mine.amount % step;
        return print_guarantee(quota);
    }

    struct Needs {
        std::string who;
        std::int64_t nodes = 0;
    };
    // The fewest nodes that tenants which share nodes need, counted alone; largest nodes first.
    std::vector<Needs> needs_of(const std::vector<Owed>& rivals) const {
        std::map<std::string, std::vector<Owed>> sharing;
        for (const Owed& each : rivals) {
            std::optional<PeerTrust> widest;
            for (const auto& bears : each.bears)
                if (bears) widest = std::max(widest.value_or(*bears), *bears);
            std::string who = each.tenant->metadata.name;
            if (each.unit.what != GuaranteeUnit::What::node && widest == PeerTrust::same_domain)
                who = trust_group(*each.tenant);
            if (each.unit.what != GuaranteeUnit::What::node && widest == PeerTrust::distrusting)
                who = "those in VMs together";
            if (who.starts_with("tenant ")) who = who.substr(7);
            sharing[who].push_back(each);
        }
        std::vector<Needs> out;
        out.reserve(sharing.size());
        for (const auto& [who, members] : sharing) out.push_back({who, fewest_nodes(members)});
        return out;
    }
    std::int64_t fewest_nodes(const std::vector<Owed>& members) const {
        std::int64_t gpus = 0, nodes = 0, largest_node = 0, largest_of_all = 1;
        for (std::size_t k = 0; k < fleet_.kinds().size(); ++k) {
            largest_of_all = std::max(largest_of_all, fleet_.kinds()[k].gpus);
            if (std::ranges::any_of(members, [&](const Owed& each) { return each.bears[k].has_value(); }))
                largest_node = std::max(largest_node, fleet_.kinds()[k].gpus);
        }
        if (largest_node == 0) largest_node = largest_of_all;  // none may serve them now
        for (const NodeClaim& claim : claims_of(members)) (claim.whole_nodes ? nodes : gpus) += claim.amount;
        return nodes + (gpus + largest_node - 1) / largest_node;
    }

    Finding refusal(const Tenant& about, const std::vector<Owed>& rivals) const {
        std::vector<std::string> others;
        std::int64_t nodes_there = 0, gpus_there = 0, nodes_needed = 0;
        Gpus guaranteed;
        Tier tier{};
        for (const Owed& each : rivals) {
            guaranteed = guaranteed + each.gpus;
            if (each.tenant == &about) tier = each.tier;
            if (each.tenant != &about && std::ranges::find(others, each.tenant->metadata.name) == others.end())
                others.push_back(each.tenant->metadata.name);
        }
        for (std::size_t k = 0; k < fleet_.kinds().size(); ++k)
            if (std::ranges::any_of(rivals, [&](const Owed& each) { return each.bears[k].has_value(); })) {
                nodes_there += fleet_.kinds()[k].nodes;
                gpus_there += fleet_.kinds()[k].nodes * fleet_.kinds()[k].gpus;
            }
        std::vector<std::string> parts;
        for (const Needs& needs : needs_of(rivals)) {
            parts.push_back(fmt::format("{} {}", needs.who, needs.nodes));
            nodes_needed += needs.nodes;
        }
        return finding(
            about,
            fmt::format(
                "the guarantee of {} in tier {} cannot be kept{}: {} needed ({}), and {} with {} GPUs may serve "
                "{}; guaranteed are {} GPUs",
                print_guarantee(about.spec.quota), word(tier),
                others.empty() ? "" : fmt::format(" together with {}", fmt::join(others, ", ")),
                counted(nodes_needed, nodes_needed == 1 ? "node is" : "nodes are"), fmt::join(parts, ", "),
                counted(nodes_there, nodes_there == 1 ? "node" : "nodes"), gpus_there, others.empty() ? "it" : "them",
                print(guaranteed)),
            remedy(about, others, tier));
    }

    static std::string counted(std::int64_t number, std::string_view what) {
        return fmt::format("{} {}", number, what);
    }

    std::string remedy(const Tenant& about, const std::vector<std::string>& others, Tier tier) const {
        std::vector<std::string> ways;
        if (const std::string most = largest(about); !most.empty())
            ways.push_back(fmt::format("lower the guarantee of {} to {}", about.metadata.name, most));
        for (const Owed& each : fleet_.owed()) {
            if (ways.size() >= most_alternatives) break;
            const std::string& name = each.tenant->metadata.name;
            if (each.tenant == &about || std::ranges::find(others, name) == others.end()) continue;
            const std::string most = largest(*each.tenant);
            std::string way = fmt::format("that of {} to {}", name, most);
            if (!most.empty() && std::ranges::find(ways, way) == ways.end()) ways.push_back(std::move(way));
        }
        ways.push_back(
            fmt::format("add nodes that can serve tier {} where {} may run", word(tier), about.metadata.name));
        return fmt::format("{}", fmt::join(ways, ", or "));
    }

    Finding undecided(const Tenant& about, const std::vector<Owed>& owed) const {
        std::set<std::size_t> domains;
        for (const Owed& each : owed) domains.insert(each.domain);
        return finding(
            about,
            fmt::format(
                "it is not shown that the guarantee of {} can be kept: the search for an assignment of {} kinds "
                "of nodes to {} trust domains has spent its budget of {} steps",
                print_guarantee(about.spec.quota), fleet_.kinds().size(), domains.size(), assignment_budget),
            "lower guarantees until an assignment is found, or let fewer rules tell nodes apart: sites, sizes, tiers");
    }

    static Finding finding(const Tenant& about, std::string what, std::string remedy) {
        return {.kind = Tenant::kind,
                .name = about.metadata.name,
                .path = "/spec/quota/guarantee",
                .what = std::move(what),
                .remedy = std::move(remedy)};
    }

    const OwedFleet& fleet_;
    std::span<const std::string> applied_;
};

}  // namespace

std::vector<Finding> unkeepable_guarantees(const Snapshot& snapshot, Instant now,
                                           std::span<const std::string> applied) {
    if (auto misfits = misfit_guarantees(snapshot); !misfits.empty()) return misfits;
    if (snapshot.nodes.empty()) return {};  // a policy without its fleet: nothing to hold it against yet
    const OwedFleet fleet{snapshot, now};
    return Refusing{fleet, applied}.findings();
}

}  // namespace bulkhead
