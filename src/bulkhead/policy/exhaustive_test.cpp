// Every combination of trust, class, mechanism, tier, service level, compliance, threat model and machine, through the
// real compiler, held against an independent reading of the rules: contracts keep them, refusals have cause and name
// it, proposals are accepted and as near as anything can be, and where there is none, nothing would have been accepted.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>

#include "bulkhead/policy/checker_test.hpp"
#include "bulkhead/policy/compile.hpp"
#include "bulkhead/policy/fleet_fixture_test.hpp"

namespace bulkhead {

namespace {

using checker::Breaches;
using checker::Checker;
using fixture::in_one_line;

// A sample takes every nth pair of tenant and fleet; a prime, so that no dimension is lost.
#if defined(BULKHEAD_SAMPLE)
constexpr std::size_t every_nth = BULKHEAD_SAMPLE;
#elif defined(BULKHEAD_SLOW_BUILD)
constexpr std::size_t every_nth = 23;
#else
constexpr std::size_t every_nth = 1;
#endif

constexpr std::size_t most_failures = 20;  // different ones; each is counted and shown once

// --- the requests of one tenant to one fleet, by number ---

constexpr std::size_t tier_count = 4;
constexpr std::size_t request_count =
    fixture::shapes.size() * tier_count * fixture::peers.size() * fixture::levels.size();

struct Place {  // of a request in the cross product
    std::size_t shape, tier, peers, level;
};

constexpr Place place(std::size_t number) {
    const std::size_t level = number % fixture::levels.size();
    number /= fixture::levels.size();
    const std::size_t peers = number % fixture::peers.size();
    number /= fixture::peers.size();
    return {number / tier_count, number % tier_count, peers, level};
}

constexpr std::size_t number(Place p) {
    return ((p.shape * tier_count + p.tier) * fixture::peers.size() + p.peers) * fixture::levels.size() + p.level;
}

const std::vector<GpuWorkload>& requests() {
    static const auto all = [] {
        std::vector<GpuWorkload> made;
        for (std::size_t i = 0; i < request_count; ++i) {
            const Place p = place(i);
            made.push_back(fixture::request(fixture::shapes[p.shape], static_cast<Tier>(p.tier),
                                            fixture::peers[p.peers], fixture::levels[p.level]));
        }
        return made;
    }();
    return all;
}

// --- one fleet and its tenant, all requests ---

struct Tally {
    std::size_t combinations = 0, contracts = 0, proposed = 0, hopeless = 0;
    struct Failure {
        std::size_t times = 0;
        std::string first;
    };
    std::map<std::string, Failure> failures;  // by what is wrong

    bool full() const { return failures.size() >= most_failures; }
};

class Block {
public:
    Block(const Snapshot& snapshot, std::string about, Tally& tally)
        : compiler_(snapshot, fixture::now),
          checker_(snapshot, fixture::now),
          about_(std::move(about)),
          tally_(tally) {}

    void run() {
        for (std::size_t i = 0; i < request_count && !tally_.full(); ++i) decide(i);
        for (std::size_t i = 0; i < request_count && !tally_.full(); ++i) accepted_[i] ? trust_more(i) : look_around(i);
    }

private:
    void fail(const GpuWorkload& asked, const std::string& wrong, const std::string& more = {}) {
        Tally::Failure& failure = tally_.failures[wrong];
        if (failure.times++ == 0)
            failure.first = fmt::format("{}\n  asks {}\n{}{}", about_, in_one_line(asked), wrong, more);
    }

    void decide(std::size_t i) {
        const GpuWorkload& asked = requests()[i];
        const checker::Answer answer = ask(compiler_, checker_, asked, &proven_);
        ++tally_.combinations;
        if (!answer.wrong.empty()) fail(asked, answer.wrong, in_words(asked, answer));
        if (answer.contract() != nullptr) {
            ++tally_.contracts;
            accepted_[i] = true;
            accepted_numbers_.push_back(i);
            const Breaches broken = checker_.expected(asked).surely;
            if (!broken.empty()) fail(asked, "  is accepted although it breaks\n" + print(broken));
            return;
        }
        const auto& proposal = answer.refusal()->proposal;
        if (proposal) changes_[i] = checker::differences(asked.spec, proposal->request.spec).size();
        ++(proposal ? tally_.proposed : tally_.hopeless);
    }

    // How many fields of the manifest differ between two requests of the product; none when the way leads down.
    std::optional<std::size_t> distance(Place from, Place to) const {
        const fixture::Peers asked = fixture::peers[from.peers], given = fixture::peers[to.peers];
        if (to.tier < from.tier || given.node > asked.node || given.gpu > asked.gpu) return std::nullopt;
        if (from.level < to.level) return std::nullopt;  // would raise what was asked
        std::size_t fields = from.level != to.level;
        fields += to.tier != from.tier;
        fields += given.node != asked.node;
        fields += given.gpu != asked.gpu;
        const GpuRequest& x = requests()[number({from.shape, 0, 0, 0})].spec.gpu;
        const GpuRequest& y = requests()[number({to.shape, 0, 0, 0})].spec.gpu;
        fields += x.mechanism != y.mechanism;
        fields += x.count != y.count || x.profile != y.profile || x.fraction != y.fraction;
        return fields;
    }

    // What is accepted beside strangers is accepted beside friends, and alone.
    void trust_more(std::size_t i) {
        Place closer = place(i);
        const fixture::Peers wide = fixture::peers[closer.peers];
        for (closer.peers = 0; closer.peers < fixture::peers.size(); ++closer.peers) {
            const fixture::Peers narrow = fixture::peers[closer.peers];
            if (narrow.node <= wide.node && narrow.gpu <= wide.gpu && !accepted_[number(closer)])
                fail(requests()[i], "  is accepted, and refused with narrower sharing\n");
        }
    }

    // Is there anything in the whole product that is accepted, no weaker than asked, and nearer than the proposal?
    void look_around(std::size_t i) {
        std::optional<std::size_t> best, nearest;
        for (const std::size_t j : accepted_numbers_) {
            const auto far = distance(place(i), place(j));
            if (far && (!best || *far < *best)) best = far, nearest = j;
        }
        if (!nearest) return;
        const std::string nearer = fmt::format("  {}, {} fields away\n", in_one_line(requests()[*nearest]), *best);
        if (changes_[i] == 0)
            fail(requests()[i], "  is offered nothing although something would be accepted:\n", nearer);
        else if (*best < changes_[i])
            fail(requests()[i],
                 fmt::format("  is offered something {} fields away although something is nearer:\n", changes_[i]),
                 nearer + in_words(requests()[i], ask(compiler_, checker_, requests()[i])));
    }

    Compiler compiler_;
    Checker checker_;
    std::string about_;
    Tally& tally_;
    std::array<bool, request_count> accepted_{};
    std::array<std::size_t, request_count> changes_{};  // fields the proposal changes; 0: accepted, or no proposal
    std::vector<std::size_t> accepted_numbers_;
    std::vector<GpuWorkload> proven_;
};

// All tenants against all fleets; of those, every nth.
Tally cross(bool accepts, std::size_t nth) {
    Tally tally;
    std::size_t blocks = 0;
    for (const ThreatModel threat : every<ThreatModel>())
        for (const GpuNode& node : fixture::machines())
            for (const std::string_view tenant_class : {"frontier-training", "slo-serving", "research", "batch"})
                for (const OperatorTrust trust : every<OperatorTrust>())
                    for (const Compliance compliance : every<Compliance>()) {
                        if (blocks++ % nth != 0 || tally.full()) continue;
                        const Snapshot snapshot = fixture::fleet(
                            threat, {node}, fixture::subject(std::string(tenant_class), trust, compliance, accepts));
                        Block(snapshot,
                              fmt::format("{}, {}: {} tenant, operator {}, compliance {}, accepts {}", word(threat),
                                          node.metadata.name, tenant_class, word(trust), word(compliance),
                                          accepts ? "every risk" : "no risk"),
                              tally)
                            .run();
                    }
    return tally;
}

void report(const Tally& tally, std::size_t nth) {
    for (const auto& [wrong, failure] : tally.failures)
        ADD_FAILURE() << failure.times << " times, first\n" << failure.first;
    fmt::print(
        "policy cross product: {} combinations, {} contracts, {} refusals with proposal, {} refusals without "
        "(brute-forced {}){}\n",
        tally.combinations, tally.contracts, tally.proposed, tally.hopeless, tally.hopeless,
        nth == 1 ? "" : fmt::format(" (a sample: every {}th pair of tenant and fleet)", nth));
    testing::Test::RecordProperty("combinations", static_cast<int>(tally.combinations));
    testing::Test::RecordProperty("contracts", static_cast<int>(tally.contracts));
    testing::Test::RecordProperty("refusals_with_proposal", static_cast<int>(tally.proposed));
    testing::Test::RecordProperty("refusals_without_proposal", static_cast<int>(tally.hopeless));
    EXPECT_GT(tally.contracts, 0U);  // a compiler that refuses everything keeps every rule, and is of no use
    EXPECT_GT(tally.proposed, 0U);
    EXPECT_GT(tally.hopeless, 0U);
}

TEST(PolicyCrossProduct, every_contract_keeps_the_rules_and_every_refusal_has_cause) {
    report(cross(true, every_nth), every_nth);
}

// The same for a tenant that accepts no disclosed risk: a sample, for it differs in few places.
TEST(PolicyCrossProduct, so_it_is_for_a_tenant_that_accepts_no_risk) {
    report(cross(false, 7 * every_nth), 7 * every_nth);
}

}  // namespace

}  // namespace bulkhead
