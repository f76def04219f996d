#include "bulkhead/cli/waiting_text.hpp"

#include <gmock/gmock.h>

#include "bulkhead/cli/client.hpp"

namespace bulkhead::cli {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

QueueSeen seen_in(const std::string& items) {
    const auto read = read_answer(Reply{.status = 200, .body = "{\"items\":[" + items + "]}"});
    EXPECT_TRUE(read) << read.error().what;
    return read ? queue_seen(*read->root) : QueueSeen{};
}

const std::string train = R"({"place":1,"workload":"train","tenant":"acme","phase":"pending","reasons":["no room"])";

std::string blocked_by(const std::string& work, const std::string& start = {}) {
    return train + R"(,"inTheWay":{"mustEnd":[{"workload":")" + work +
           R"(","tenant":"beta","nodes":["n1"],"stays":"guarantee","says":"it has run 3m"}],)" +
           (start.empty() ? "" : R"("expectedStart":")" + start + R"(",)") + R"("expectedFrom":"declared-run-times"}})";
}

TEST(QueueWatch, tells_what_came_and_what_left) {
    EXPECT_THAT(changes_between(QueueSeen{}, seen_in(train + "}")),
                ElementsAre("acme/train waits (pending)", "  + no room"));
    EXPECT_THAT(changes_between(seen_in(train + "}"), QueueSeen{}), ElementsAre("acme/train waits no more"));
    EXPECT_THAT(changes_between(seen_in(train + "}"), seen_in(train + "}")), IsEmpty());
}

TEST(QueueWatch, tells_which_reason_which_work_and_which_estimate_changed) {
    const auto before = seen_in(blocked_by("b1", "2026-11-18T09:00:00Z")),
               after = seen_in(blocked_by("b2", "2026-11-18T10:00:00Z"));
    EXPECT_THAT(
        changes_between(before, after),
        ElementsAre("acme/train waits for something else", "  - job b1 of tenant beta would have to end (guarantee)",
                    "  + job b2 of tenant beta would have to end (guarantee)",
                    "  expected start: 2026-11-18T10:00:00Z (was 2026-11-18T09:00:00Z)"));
    EXPECT_THAT(
        changes_between(seen_in(blocked_by("b1")), before),
        ElementsAre("acme/train waits for something else", "  expected start: 2026-11-18T09:00:00Z (was unknown)"));
}

TEST(WaitingText, nodes_without_named_work_are_told_by_obstacle) {
    const sched::InTheWay way{
        .nodes = {{"n1", sched::Obstacle::neighbours, ""},
                  {"n2", sched::Obstacle::neighbours, ""},
                  {"n3", sched::Obstacle::closed, ""}},
        .mustEnd = {{.workload = "s1", .tenant = "small", .nodes = {"n1"}, .says = "job s1 is there"}},
        .expectedSays = "no estimate"};
    EXPECT_THAT(lines_of(way),
                ElementsAre("job s1 is there", "other nodes: n3 (closed); n2 (neighbours)", "no estimate"));
    EXPECT_THAT(lines_of({}), IsEmpty());
}

}  // namespace
}  // namespace bulkhead::cli
