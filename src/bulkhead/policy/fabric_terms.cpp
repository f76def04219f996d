#include "bulkhead/policy/fabric_terms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace bulkhead {

namespace {

void disclose_fabric(Contract& contract, std::string_view subject, std::string says, Grade grade = Grade::documented,
                     std::string_view source = "Bulkhead catalogue") {
    contract.open.push_back({.subject = std::string{subject},
                             .strength = Strength::none,
                             .grade = grade,
                             .says = std::move(says),
                             .source = std::string{source}});
}

// What the fabric is by itself, whatever a node has tested.
void write_kind(Contract& contract, const FabricPolicy& fabric) {
    const bool ethernet = fabric.kind == FabricKind::ethernet;
    contract.isolates.push_back(
        {.subject = "fabric-identity",
         .strength = Strength::hard,
         .grade = Grade::documented,
         .says = ethernet
                     ? "The tenant has a subnet and a VLAN of its own, tagged by the NIC; no other tenant gets "
                       "either before every function that had it is wiped."
                     : "The tenant has a subnet and a partition key of its own; no other tenant gets either before "
                       "every function that had it is wiped.",
         .source = "Bulkhead, decision 0035"});
    if (ethernet) {
        disclose_fabric(
            contract, "fabric-source",
            "RoCE authenticates no sender: within the tenant's own VLAN any of its functions can speak as another, "
            "and whoever gets into the VLAN can as well");
        disclose_fabric(contract, "fabric-source-address",
                        "a NIC in legacy mode checks source MAC and VLAN, not source addresses; those are checked only "
                        "in switchdev mode or by the switch");
    } else {
        disclose_fabric(
            contract, "fabric-source",
            "partitions are as good as the subnet manager that writes them and the switches that enforce them");
    }
    disclose_fabric(contract, "fabric-contents",
                    "packets are not encrypted: whoever is on the path reads and writes them, unless the tenant "
                    "encrypts");
    disclose_fabric(
        contract, "fabric-contention",
        "functions of one NIC share its caches and its PCIe link; rate limits count bytes, and small messages of a "
        "neighbour slow others down");
}

// Nodes, or tests, that are alike: the first few by name, the rest by number. How many there are is not a tenant's to
// know.
class Few {
public:
    void add(std::string name) {
        if (++count_ > 3) return;
        text_ += (text_.empty() ? "" : "; ") + std::move(name);
    }
    std::size_t count() const { return count_; }
    std::string text(const FabricReader& of) const {
        if (count_ <= 3) return text_;
        if (of.reader != Audience::fleet_operator) return text_ + "; and more";
        return fmt::format("{}; and {} more", text_, count_ - 3);
    }

private:
    std::string text_;
    std::size_t count_ = 0;
};

std::string place_in_log(const NodeFabricTest& test) {
    return fmt::format("log record {}, sha256 {}", test.record, test.digest.substr(0, 16));
}

// What the tests of all these nodes come to, for one setting of the fences.
struct Tested {
    std::size_t nodes = 0;                       // that have functions, or should
    Few untested;                                // nodes
    std::map<std::string, Few> open, unproven;   // by attempt: where
    std::map<std::string, std::size_t> stopped;  // by attempt: by how many tests
    std::size_t tests = 0;
    Few closed;  // tests that show it
    Grade weakest = Grade::silicon;
};

Tested look_at_tests(const FleetView& fleet, FabricFence fence, const FabricReader& of) {
    Tested tested;
    const std::set<std::string_view> wanted{of.nodes.begin(), of.nodes.end()};
    for (const GpuNode& node : fleet.snapshot.nodes) {
        if (!wanted.contains(node.metadata.name)) continue;
        ++tested.nodes;
        const std::string name = of.reader == Audience::fleet_operator ? node.metadata.name : std::string{"a node"};
        std::set<std::string_view> nics;
        for (const NodeFunction& function : node.status.functions)
            if (!function.physical.empty()) nics.insert(function.physical);  // what is gone does not say whose it was
        const bool says_no_nic = nics.empty();
        for (const NodeFabricTest& test : node.status.fabricTests) {
            if (test.fence != fence) continue;
            tested.weakest = std::max(tested.weakest, test.grade);
            const std::string where = fmt::format("{} ({})", name, place_in_log(test));
            for (const std::string& attempt : test.through) tested.open[attempt].add(where);
            if (is_left_over(test)) continue;
            nics.erase(test.nic);
            ++tested.tests;
            for (const std::string& attempt : test.unclear) tested.unproven[attempt].add(where);
            // What a process of ours may do is not tried where the tenant has a kernel of its own: nobody promises it.
            for (const std::string& attempt : test.untried)
                if (fence == FabricFence::on || attempt == attempt_on_another_tenant)
                    tested.unproven[attempt].add(where);
            if (test.found == FabricFound::unproven)
                // Why is in the node's own words, about its own devices.
                tested.unproven["anything"].add(
                    of.reader == Audience::fleet_operator ? fmt::format("{}: {}", where, test.why) : where);
            else
                for (const std::string& attempt : test.stopped) ++tested.stopped[attempt];
            if (!test.stopped.empty() && test.found != FabricFound::unproven) tested.closed.add(where);
        }
        if (!nics.empty() || says_no_nic) tested.untested.add(name);
    }
    return tested;
}

void write_tests(Contract& contract, const Tested& tested, const FabricReader& of) {
    constexpr std::string_view source = "the nodes' own tests, decision 0038";
    if (tested.untested.count() != 0)
        disclose_fabric(contract, "fabric-selftest",
                        of.reader == Audience::fleet_operator
                            ? fmt::format("on {} of {} nodes no test of the fences was made in this boot: {}",
                                          tested.untested.count(), tested.nodes, tested.untested.text(of))
                            : fmt::format("on {} nodes no test of the fences was made in this boot",
                                          tested.untested.count() == tested.nodes ? "all" : "some"),
                        Grade::assumed, source);
    for (const auto& [attempt, where] : tested.open)
        disclose_fabric(contract, "fabric-selftest", fmt::format("{} gets through: {}", attempt, where.text(of)),
                        tested.weakest, source);
    for (const auto& [attempt, where] : tested.unproven)
        disclose_fabric(contract, "fabric-selftest",
                        fmt::format("{} is not shown to be stopped: {}", attempt, where.text(of)), Grade::assumed,
                        source);
    // Closed is what was stopped in every test, where every NIC was tested.
    if (tested.tests == 0 || tested.untested.count() != 0) return;
    std::string closed;
    for (const auto& [attempt, times] : tested.stopped)
        if (times == tested.tests && !tested.open.contains(attempt)) closed += (closed.empty() ? "" : ", ") + attempt;
    if (closed.empty()) return;
    contract.isolates.push_back({.subject = "fabric-selftest",
                                 .strength = Strength::hard,
                                 .grade = tested.weakest,
                                 .says = fmt::format("Stopped when tried: {}; by {}.", closed, tested.closed.text(of)),
                                 .source = std::string{source}});
    // And what the catalogue only says of identities is then seen.
    const auto seen = tested.stopped.find(std::string{attempt_on_another_tenant});
    if (seen == tested.stopped.end() || seen->second != tested.tests || tested.open.contains(seen->first)) return;
    for (Held& held : contract.isolates)
        if (held.subject == "fabric-identity") {
            held.grade = std::min(held.grade, tested.weakest);
            held.says += fmt::format(" Another tenant's port was not reached: {}.", tested.closed.text(of));
        }
}

}  // namespace

void write_fabric(Contract& contract, const Ask& ask, const FleetView& fleet, const FabricReader& of) {
    if (!fleet.policy.fabric)
        disclose_fabric(contract, "fabric",
                        "the fleet declares no fabric: agents hand out no function of a real NIC, and what separates "
                        "tenants on simulated ones nobody promises");
    else
        write_kind(contract, *fleet.policy.fabric);
    write_tests(contract, look_at_tests(fleet, fence_of(ask.tier), of), of);
}

}  // namespace bulkhead
