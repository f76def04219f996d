#include <gtest/gtest.h>

#include "bulkhead/base/rng.hpp"
#include "bulkhead/lifecycle/lease.hpp"
#include "bulkhead/lifecycle/node.hpp"
#include "bulkhead/lifecycle/tenant.hpp"
#include "bulkhead/lifecycle/unit.hpp"

namespace bulkhead::lifecycle {
namespace {

TEST(UnitTable, no_story_hands_a_tenant_what_another_left) {
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
        Rng rng{seed};
        UnitState state = UnitState::dirty;
        bool dirty = true;
        for (int step = 0; step < 1'000; ++step) {
            const UnitEvent event = unit_edges[rng.below(unit_edges.size())].on;
            const auto to = next(unit_edges, state, event);
            if (!to) continue;
            if (*to == UnitState::available) {
                ASSERT_EQ(event, UnitEvent::wiped) << "seed " << seed;
                dirty = false;
            }
            if (*to == UnitState::reserved) {
                ASSERT_FALSE(dirty) << "seed " << seed;
            }
            if (*to == UnitState::in_use || event == UnitEvent::doubt) dirty = true;
            state = *to;
        }
    }
}

TEST(UnitTable, what_the_public_reads_is_never_better_than_what_is) {
    for (const UnitState state : every<UnitState>())
        EXPECT_EQ(clean_state(state) == CleanState::available, state == UnitState::available) << word(state);
    EXPECT_EQ(clean_state(UnitState::held), CleanState::quarantined);
    EXPECT_EQ(clean_state(UnitState::dirty), CleanState::sanitizing);
}

TEST(UnitTable, a_legal_hold_of_what_is_out_of_use_leads_back_there_and_repair_alone_leads_out) {
    EXPECT_EQ(next(unit_edges, UnitState::quarantined, UnitEvent::hold), UnitState::held);
    EXPECT_EQ(next(unit_edges, UnitState::held, UnitEvent::put_back), UnitState::quarantined);
    for (const UnitEvent event : every<UnitEvent>())
        if (const auto to = next(unit_edges, UnitState::quarantined, event)) {
            EXPECT_TRUE(*to == UnitState::held || event == UnitEvent::repair) << word(event);
        }
    EXPECT_FALSE(next(unit_edges, UnitState::sanitizing, UnitEvent::hold)) << "first it is known that no wipe goes on";
}

TEST(Tables, the_guards_can_see_a_broken_table) {
    constexpr std::array leaky{UnitEdge{UnitState::in_use, UnitEvent::release, UnitState::available},
                               UnitEdge{UnitState::in_use, UnitEvent::release, UnitState::dirty}};
    static_assert(!deterministic(leaky));
    static_assert(!only_reached_from(leaky, UnitState::available, UnitState::sanitizing));
    static_assert(!only_entered_on(leaky, UnitState::available, UnitEvent::wiped));
    static_assert(!always_recoverable(leaky, UnitState::sanitizing));
    EXPECT_FALSE(next(unit_edges, UnitState::quarantined, UnitEvent::reserve).has_value());
}

TEST(Tables, draw_themselves) {
    const std::string drawn = diagram(lease_edges);
    EXPECT_NE(drawn.find("preparing --> active: all-prepared"), std::string::npos) << drawn;
    EXPECT_NE(drawn.find("ending --> closed: all-settled"), std::string::npos) << drawn;
    EXPECT_NE(diagram(node_edges).find("fenced --> reconciling: hello"), std::string::npos);
    EXPECT_NE(diagram(tenant_edges).find("active --> frozen: freeze"), std::string::npos);
}

TEST(UnitText, names_units_as_evidence_does) {
    EXPECT_EQ(unit_text(UnitKind::memory, 3, 4, 4), "gpu3/slices 4-7");
    EXPECT_EQ(unit_text(UnitKind::drive, 1), "drive1");
    EXPECT_EQ(unit_text(UnitKind::vf, 12), "vf12");
    EXPECT_EQ(unit_text(UnitKind::host, 0), "host");
}

}  // namespace
}  // namespace bulkhead::lifecycle
