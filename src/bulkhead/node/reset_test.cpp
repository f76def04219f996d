// What the evidence says of a GPU reset: that it was made, that it was not and why, or that nobody knows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "bulkhead/evidence/statement.hpp"
#include "bulkhead/node/rig_test.hpp"

namespace bulkhead {
namespace {

using testing::HasSubstr;

TEST(NodeReset, the_evidence_says_how_it_went) {
    const DeviceId gpu{UnitKind::memory, 0};
    const auto answer = [](std::string why, bool untouched) {
        return [=](Rig& rig) {
            const Operation reset = rig.begun.front();
            rig.begun.pop_front();
            rig.carry(rig.executor->on_result(rig.now, {.number = reset.number, .why = why, .untouched = untouched}));
        };
    };
    struct Row {
        const char* says;
        std::function<void(Rig&)> meanwhile;  // when the reset has been begun, and not yet carried out
        std::string method;
        bool verified;
    };
    const std::string before = "model fill, second pass, ";
    const Row rows[] = {
        {"it was made", [](Rig&) {}, "after a GPU reset", true},
        {"it was not allowed after all", answer("resetting GPUs is not allowed on this node", true),
         "no GPU reset was made: resetting GPUs is not allowed on this node", false},
        {"somebody is on it whom the journal does not know",
         [](Rig& rig) {
             const StartTenant stranger{.lease = 99,
                                        .tier = Tier::vm,
                                        .gpus = {{.gpu = 0, .start = 0, .size = 8}},
                                        .drives = {},
                                        .functions = {},
                                        .tenant = {},
                                        .mechanism = {},
                                        .program = {}};
             ASSERT_TRUE(rig.model.carry_out({1, stranger})->ok);
         },
         "no GPU reset was made: in use: a process is still on it", false},
        {"it was tried", [=](Rig& rig) { rig.model.faults(gpu).fail = 1; },
         "a GPU reset failed: gpu0: input/output error", false},
        {"what a program printed becomes one line", answer("nvidia-smi ended\nwith \xff status", false),
         "a GPU reset failed: nvidia-smi ended with ? status", false},
        {"and says where it was cut", answer(std::string(5'000, 'x'), false),
         "a GPU reset failed: " + std::string(194, 'x') + " [cut]", false},
        {"it did not answer",
         [=](Rig& rig) {
             rig.model.faults(gpu).hang = 1;
             rig.settle();
             rig.pass(rig.identity.limits.reset);
         },
         "after a GPU reset of which nothing is known", false},
    };
    for (const Row& row : rows) {
        SCOPED_TRACE(row.says);
        Rig rig{{.gpus = 1}, {.gpu_reset = true}};
        rig.model.faults(gpu).lie = 2;
        rig.give(Sanitize{.wipes = {{UnitKind::memory, 0, 0, 8, rig.key()}}});
        while (rig.operations<ResetGpu>().empty() && rig.step()) {
        }
        ASSERT_EQ(rig.operations<ResetGpu>().size(), 1u);
        row.meanwhile(rig);
        rig.settle();
        const WipeReport report = rig.last<WipeReport>();
        EXPECT_EQ(report.verified, row.verified);
        const auto statement = evidence::read_statement(report.evidence.statement);
        ASSERT_TRUE(statement) << statement.error().what;
        EXPECT_EQ(statement->method, before + row.method);
        if (!row.verified) {
            EXPECT_THAT(report.why, HasSubstr("could not be reset"));
        }
    }
}

}  // namespace
}  // namespace bulkhead
