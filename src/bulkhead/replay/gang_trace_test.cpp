#include "bulkhead/replay/gang_trace.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bulkhead::replay {
namespace {

using ::testing::HasSubstr;

TEST(GangTrace, muri_counts_in_milliseconds_and_knows_priorities) {
    const auto trace = read_gang_trace("muri.csv",
                                       "job_id,num_gpu,submit_time,iterations,model_name,duration,priority\n"
                                       "0,8,5000,17,bert,60000,1\n"
                                       "1,1,7000,17,dqn,500,0\n");
    ASSERT_TRUE(trace) << trace.error().what;
    const GangTrace expected{{.gpus = 8, .submitted = {0}, .duration = {60'000}, .priority = 1, .deadline = {}},
                             {.gpus = 1, .submitted = {2000}, .duration = {500}, .priority = 0, .deadline = {}}};
    EXPECT_EQ(*trace, expected) << "time begins with the first job";
}

TEST(GangTrace, elasticflow_counts_in_seconds_and_knows_deadlines) {
    const auto trace = read_gang_trace("ef.csv", "submit_time,ddl,num_gpu,duration\r\n10,40,4,20\r\n");
    ASSERT_TRUE(trace) << trace.error().what;
    const GangTrace expected{
        {.gpus = 4, .submitted = {0}, .duration = {20'000}, .priority = 0, .deadline = Instant{30'000}}};
    EXPECT_EQ(*trace, expected);
}

TEST(GangTrace, jobs_come_in_the_order_of_arrival_and_ties_in_that_of_the_file) {
    const auto trace = read_gang_trace("t.csv", "num_gpu,submit_time,duration\n1,9,1\n2,3,1\n3,9,1\n");
    ASSERT_TRUE(trace) << trace.error().what;
    ASSERT_EQ(trace->size(), 3u);
    EXPECT_EQ((*trace)[0].gpus, 2);
    EXPECT_EQ((*trace)[1].gpus, 1);
    EXPECT_EQ((*trace)[2].gpus, 3);
    EXPECT_EQ((*trace)[2].submitted.ms, 6);
}

TEST(GangTrace, what_is_wrong_is_named_with_its_line) {
    const struct {
        std::string_view text, says;
    } rows[] = {
        {"", "t.csv is empty"},
        {"num_gpu,submit_time,duration\n", "t.csv has no jobs"},
        {"num_gpu,submit_time\n1,1\n", "t.csv:1: there is no column duration"},
        {"num_gpu,submit_time,duration\n0,1,1\n", "t.csv:2: num_gpu is \"0\""},
        {"num_gpu,submit_time,duration\n1,1,1\n1,-1,1\n", "t.csv:3: submit_time is \"-1\""},
        {"num_gpu,submit_time,duration\n1,1,0\n", "t.csv:2: duration is \"0\""},
        {"num_gpu,submit_time,duration\n1,1,1.5\n", "t.csv:2: duration is \"1.5\""},
        {"num_gpu,submit_time,duration\n1,1,99999999999999\n", "t.csv:2: duration is \"99999999999999\""},
        {"num_gpu,submit_time,duration,ddl\n1,1,1\n", "t.csv:2: ddl is \"\""},
        {"num_gpu,submit_time,duration,priority\n1,1,1,high\n", "t.csv:2: priority is \"high\""},
    };
    for (const auto& row : rows) {
        const auto trace = read_gang_trace("t.csv", row.text);
        ASSERT_FALSE(trace) << row.text;
        EXPECT_THAT(trace.error().what, HasSubstr(row.says));
        EXPECT_FALSE(trace.error().remedy.empty());
    }
}

}  // namespace
}  // namespace bulkhead::replay
