// The FOCUS export, looked at twice: here, and by a script that shares nothing with what wrote it.
#include "bulkhead/meter/focus.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "bulkhead/meter/history_test.hpp"

namespace bulkhead::meter {
namespace {

using testing::HasSubstr;

const Interval everything{{history_begins.ms - 31 * ms_per_day}, {history_begins.ms + 396 * ms_per_day}};

std::string total_text(const Report& said) {
    Wide total = 0;
    for (const auto& [currency, amount] : said.totals) total += amount;
    return print_amount(total);
}

// What the script says of an export; empty: nothing is wrong.
std::string checked(const std::string& csv, const std::string& total) {
    const std::string path = testing::TempDir() + "focus-" + std::to_string(::getpid()) + ".csv";
    std::ofstream{path, std::ios::binary} << csv;
    const std::string command =
        std::string{"python3 " BULKHEAD_SOURCE_DIR "/scripts/check-focus.py "} + path + " --total=" + total + " 2>&1";
    std::FILE* script = ::popen(command.c_str(), "r");
    std::string said;
    for (int c = std::fgetc(script); c != EOF; c = std::fgetc(script)) said += static_cast<char>(c);
    const int status = ::pclose(script);
    std::filesystem::remove(path);
    return status == 0 ? std::string{} : said + "status " + std::to_string(status);
}

class Focus : public testing::Test {
protected:
    void SetUp() override {
        if (std::system("python3 -c '' >/dev/null 2>&1") != 0) GTEST_SKIP() << "no python3 here";
    }
    static std::string export_of(const Ledger& closed, const Ledger& open, const Question& question) {
        const Report said = report({closed, open}, question);
        return focus_csv({closed, open}, question, said, {.provider = "fleet, \"the\" large"}).value();
    }
};

UsageRow example(bool compliant) {
    UsageRow row{.lease = "lease-0123456789ab",
                 .tenant = "acme",
                 .workload = "serve",
                 .from = history_begins,
                 .to = history_begins + Duration{12'000'000},
                 .mechanism = Mechanism::mig,
                 .currency = "EUR"};
    row.metered = Metered{.tenantClass = "slo-serving",
                          .account = "acme-group",
                          .compliance = compliant ? Compliance::dedicated : Compliance::off,
                          .units = {{"h100", "3g.40gb", false, Gpus::whole(1)}},
                          .leaf = 5};
    if (compliant) row.metered->covered = {{row.from, row.to}};
    row.rates = {{.from = {0}, .list = "list", .surchargePercent = 12, .prices = {{0, {2'400'000'000}}}}};
    return row;
}

TEST_F(Focus, the_example_of_the_facts_comes_out_as_it_should) {
    Ledger closed;
    const Ledger open;
    ASSERT_TRUE(closed.add(example(true)));
    const Question question{.window = everything, .now = everything.to + Duration::days(2)};
    const std::string csv = export_of(closed, open, question);
    EXPECT_THAT(csv, HasSubstr("gpu-h100-3g40gb,GPU slice time"));
    EXPECT_THAT(csv, HasSubstr("gpu-h100-3g40gb-scm,Security & Compliance Mode"));
    EXPECT_THAT(csv, HasSubstr(",3.333333333,Slice-Hours,"));
    EXPECT_THAT(csv, HasSubstr(",12000,Slice-Seconds,"));
    EXPECT_THAT(csv, HasSubstr(",0.288,"));
    EXPECT_THAT(csv, HasSubstr("\r\n8,acme-group,"));
    EXPECT_THAT(csv, HasSubstr("\r\n0.96,acme-group,"));
    EXPECT_THAT(csv, HasSubstr(R"("{""x_SurchargeBasis"":""gpu-h100-3g40gb"",""x_SurchargeRate"":""0.12""}")"));
    EXPECT_EQ(checked(csv, "8.96"), "");
}

TEST_F(Focus, random_histories_pass_the_script_and_sum_to_the_reports_total) {
    // Few and large: each starts an interpreter.
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
        rc::Random random{seed};
        const auto history = rc::gen::exec([] {
            const Pricing pricing = any_pricing();
            std::vector<UsageRow> rows;
            for (int i = 0; i < 25; ++i) rows.push_back(any_lease(pricing, i));
            return rows;
        });
        const std::vector<UsageRow> rows = history(random, 100).value();
        Ledger closed, open;
        for (std::size_t i = 0; i < rows.size(); ++i) ASSERT_TRUE((i % 5 == 0 ? open : closed).add(rows[i]));
        UsageRow correction = rows[1];
        correction.correction = UsageCorrection{.id = "c-1",
                                                .amount = {-5},
                                                .posted = correction.from + Duration::days(50),
                                                .by = "ops",
                                                .why = "=SUM(A1), \"quoted\"\nand broken"};
        if (!correction.currency.empty()) {
            ASSERT_TRUE(closed.add(correction));
        }
        const Question question{.window = everything, .now = history_begins + Duration::days(seed % 2 == 0 ? 45 : 500)};
        const Report said = report({closed, open}, question);
        EXPECT_EQ(checked(export_of(closed, open, question), total_text(said)), "") << "seed " << seed;
    }
}

TEST_F(Focus, the_script_sees_what_is_wrong) {
    Ledger closed;
    const Ledger open;
    ASSERT_TRUE(closed.add(example(true)));
    const Question question{.window = everything, .now = everything.to + Duration::days(2)};
    const std::string good = export_of(closed, open, question);
    const auto with = [&](std::string_view from, std::string_view to) {
        std::string bad = good;
        bad.replace(bad.find(from), from.size(), to);
        return checked(bad, "8.96");
    };
    EXPECT_THAT(checked(good, "8.95"), HasSubstr("sum"));
    EXPECT_THAT(with("BilledCost,", "BiledCost,"), HasSubstr("BilledCost"));
    EXPECT_THAT(with("\r\n8,", "\r\n8.01,"), HasSubstr("BilledCost"));
    EXPECT_THAT(with(",Usage,", ",Usge,"), HasSubstr("ChargeCategory"));
    EXPECT_THAT(with("Slice-Hours", ""), HasSubstr("PricingUnit"));
    EXPECT_THAT(with("x_LeaseId", "LeaseId"), HasSubstr("LeaseId"));
    EXPECT_THAT(with(",2.4,", ",2.5,"), HasSubstr("UnitPrice"));
    EXPECT_THAT(with("2027-01-01T00:00:00Z", "2027-01-01"), HasSubstr("BillingPeriodStart"));
}

TEST_F(Focus, more_rows_than_one_answer_holds_are_refused_and_not_cut) {
    Ledger closed;
    const Ledger open;
    ASSERT_TRUE(closed.add(example(true)));
    const Question question{.window = everything, .now = everything.to};
    const auto csv = focus_csv({closed, open}, question, report({closed, open}, question), {"fleet", 1});
    ASSERT_FALSE(csv);
    EXPECT_EQ(csv.error().code, Code::exhausted);
    EXPECT_THAT(csv.error().what, HasSubstr("2 charges"));
}

}  // namespace
}  // namespace bulkhead::meter
