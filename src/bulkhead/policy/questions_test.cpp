// How a question is put must not change what is true: requests that leave things open or contradict themselves, fleets
// written down in another order, answers read by another reader.
#include <gtest/gtest.h>

#include <algorithm>

#include "bulkhead/policy/checker_test.hpp"
#include "bulkhead/policy/compile.hpp"
#include "bulkhead/policy/fleet_fixture_test.hpp"

namespace bulkhead {

namespace {

using checker::Answer;
using checker::Checker;
using fixture::in_one_line;
using fixture::Level;

const auto same_tenant = PeerTrust::same_tenant, same_domain = PeerTrust::same_domain,
           distrusting = PeerTrust::distrusting;

// --- requests that leave things open ---

TEST(PolicyQuestions, what_a_request_leaves_open_is_filled_in_soundly_and_never_in_vain) {
    [[maybe_unused]] int pairs = 0;
    for (const ThreatModel threat : every<ThreatModel>())
        for (const GpuNode& node : fixture::machines())
            for (const char* const tenant_class : {"frontier-training", "slo-serving", "research", "batch"})
                for (const Compliance compliance : every<Compliance>()) {
#if defined(BULKHEAD_SLOW_BUILD)
                    if (++pairs % 7 != 0) continue;  // a sample
#endif
                    const Snapshot snapshot = fixture::fleet(
                        threat, {node}, fixture::subject(tenant_class, OperatorTrust::trusted, compliance, true));
                    const Compiler compiler(snapshot, fixture::now);
                    const Checker checker(snapshot, fixture::now);
                    for (const fixture::Peers beside : fixture::peers)
                        for (const fixture::Form form : {fixture::Form::count, fixture::Form::fraction}) {
                            bool some = false;
                            for (const fixture::Shape shape : fixture::shapes)
                                for (const Tier tier : every<Tier>())
                                    if (shape.form == form)
                                        some = some || std::holds_alternative<Contract>(compiler.compile(
                                                           fixture::request(shape, tier, beside, Level::soft)));
                            GpuWorkload open =
                                fixture::request({Mechanism::whole, form}, Tier::vm, beside, Level::soft);
                            open.spec.gpu.mechanism.reset();
                            open.spec.isolation.tier.reset();
                            const Answer answer = ask(compiler, checker, open);
                            ASSERT_EQ(answer.wrong, "") << in_one_line(open);
                            ASSERT_EQ(answer.contract() != nullptr, some)
                                << word(threat) << " " << node.metadata.name << " " << tenant_class << " compliance "
                                << word(compliance) << ": " << in_one_line(open);
                            GpuWorkload opener = open;
                            opener.spec.isolation = {};
                            ASSERT_EQ(ask(compiler, checker, opener).wrong, "") << in_one_line(opener);
                        }
                }
}

// --- requests that contradict themselves ---

TEST(PolicyQuestions, a_gpu_shared_wider_than_its_node_never_widens_the_node) {
    for (const ThreatModel threat : every<ThreatModel>())
        for (const char* const tenant_class : {"frontier-training", "slo-serving", "research", "batch"}) {
            const Snapshot snapshot =
                fixture::fleet(threat, fixture::machines(),
                               fixture::subject(tenant_class, OperatorTrust::trusted, Compliance::off, true));
            const Compiler compiler(snapshot, fixture::now);
            const Checker checker(snapshot, fixture::now);
            for (const fixture::Peers odd :
                 {fixture::Peers{same_tenant, same_domain}, {same_tenant, distrusting}, {same_domain, distrusting}})
                for (const fixture::Shape shape : fixture::shapes)
                    for (const Tier tier : every<Tier>()) {
                        const GpuWorkload work = fixture::request(shape, tier, odd, Level::soft);
                        const Answer answer = ask(compiler, checker, work);
                        ASSERT_EQ(answer.wrong, "") << word(threat) << " " << tenant_class << ": " << in_one_line(work);
                    }
        }
}

// --- who asks when, in which order, and who reads ---

Snapshot whole_fleet(std::vector<GpuNode> nodes) {
    return fixture::fleet(ThreatModel::internal, std::move(nodes),
                          fixture::subject("batch", OperatorTrust::trusted, Compliance::off, true));
}

void sort_lists(Decision& decision) {
    const auto in_order = [](std::vector<ExcludedNodes>& excluded) {
        for (ExcludedNodes& some : excluded) std::ranges::sort(some.nodes);
        std::ranges::sort(excluded, {}, [](const ExcludedNodes& some) { return some.nodes; });
    };
    if (auto* const contract = std::get_if<Contract>(&decision)) {
        std::ranges::sort(contract->nodes);
        std::ranges::sort(contract->slices, {}, [](const Slice& slice) { return slice.model + slice.slice; });
        in_order(contract->excluded);
    } else {
        in_order(std::get<Refusal>(decision).excluded);
    }
}

TEST(PolicyQuestions, one_snapshot_gives_one_answer_in_whatever_order_its_nodes_stand) {
    const Snapshot snapshot = whole_fleet(fixture::machines());
    std::vector<GpuNode> reversed = fixture::machines();
    std::ranges::reverse(reversed);
    const Snapshot mirrored = whole_fleet(reversed);
    const Compiler once(snapshot, fixture::now), again(snapshot, fixture::now), other(mirrored, fixture::now);
    const Checker checker(snapshot, fixture::now);
    for (const fixture::Shape shape : fixture::shapes)
        for (const Tier tier : every<Tier>())
            for (const fixture::Peers beside : fixture::peers) {
                const GpuWorkload work = fixture::request(shape, tier, beside, Level::soft);
                Decision first = once.compile(work);
                ASSERT_EQ(first, again.compile(work)) << in_one_line(work);
                ASSERT_EQ(first, once.compile(work)) << in_one_line(work);
                ASSERT_EQ(ask(once, checker, work).wrong, "") << in_one_line(work);
                Decision mirror = other.compile(work);
                sort_lists(first);
                sort_lists(mirror);
                ASSERT_EQ(first, mirror) << in_one_line(work);
            }
}

TEST(PolicyQuestions, terms_alone_are_those_of_the_whole_contract) {
    const Snapshot snapshot = whole_fleet(fixture::machines());
    const Compiler compiler(snapshot, fixture::now);
    for (const fixture::Shape shape : fixture::shapes)
        for (const Tier tier : every<Tier>())
            for (const fixture::Peers beside : fixture::peers) {
                const GpuWorkload work = fixture::request(shape, tier, beside, Level::soft);
                Decision whole = compiler.compile(work);
                Decision terms = compiler.compile(work, Audience::fleet_operator, Written::terms_alone);
                if (Contract* const contract = std::get_if<Contract>(&whole)) {
                    EXPECT_FALSE(contract->isolates.empty() && contract->open.empty()) << in_one_line(work);
                    contract->isolates.clear();
                    contract->open.clear();
                    contract->reclaim.clear();
                    contract->controls.clear();
                    contract->excluded.clear();
                    contract->reliesOn.clear();
                    contract->guaranteed.clear();
                    contract->entitlement = {};
                    if (Contract* const bare = std::get_if<Contract>(&terms)) {
                        contract->grade = bare->grade = Grade{};
                        contract->bound = bare->bound = {};
                    }
                }
                ASSERT_EQ(whole, terms) << in_one_line(work);
            }
}

// Every text of an answer, wherever it stands.
struct Texts {
    std::vector<std::string> all;

    void collect(const auto& value) {
        using T = std::remove_cvref_t<decltype(value)>;
        if constexpr (std::same_as<T, std::string>)
            all.push_back(value);
        else if constexpr (Described<T>)
            T::describe([&](std::string_view, auto member, auto&&...) { collect(value.*member); });
        else if constexpr (requires {
                               value.has_value();
                               *value;
                           }) {
            if (value) collect(*value);
        } else if constexpr (requires {
                                 value.begin();
                                 value.end();
                             })
            for (const auto& item : value) {
                if constexpr (requires {
                                  item.first;
                                  item.second;
                              })
                    collect(item.second);
                else
                    collect(item);
            }
    }
};

TEST(PolicyQuestions, a_tenant_reads_no_neighbours_name_and_no_nodes) {
    Snapshot snapshot = whole_fleet(fixture::machines());
    const Compiler compiler(snapshot, fixture::now);
    for (const fixture::Shape shape : fixture::shapes)
        for (const Tier tier : every<Tier>())
            for (const fixture::Peers beside : fixture::peers) {
                const GpuWorkload work = fixture::request(shape, tier, beside, Level::hard_bare);
                const Decision decision = compiler.compile(work, Audience::tenant);
                EXPECT_EQ(decision.index(), compiler.compile(work).index()) << "the answer depends on who reads it";
                Texts texts;
                std::visit([&](const auto& it) { texts.collect(it); }, decision);
                for (const std::string& text : texts.all) {
                    for (const GpuNode& node : snapshot.nodes)
                        EXPECT_EQ(text.find(node.metadata.name), std::string::npos) << text;
                    for (const char* const neighbour : {"friend", "rival"})
                        EXPECT_EQ(text.find(neighbour), std::string::npos) << text;
                }
                if (HasFailure()) FAIL() << in_one_line(work);
            }
}

}  // namespace

}  // namespace bulkhead
