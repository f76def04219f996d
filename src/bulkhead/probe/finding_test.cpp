// Reports as they are kept: those we measured on an H200 read, print and become a page, and the catalogue's words about
// contention are theirs.
#include "bulkhead/probe/finding.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

namespace bulkhead::probe {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string measured(const std::string& probe) {
    std::ifstream file{BULKHEAD_SOURCE_DIR "/docs/measurements/h200-580.159.04-probe-" + probe + ".json"};
    return {std::istreambuf_iterator<char>{file}, {}};
}

TEST(ProbeReport, what_was_measured_reads_and_prints_again) {
    for (const char* probe : {"residue", "visibility", "interference", "rates"}) {
        SCOPED_TRACE(probe);
        const auto report = read_report(measured(probe));
        ASSERT_TRUE(report) << report.error().what;
        EXPECT_EQ(report->probe, probe);
        EXPECT_EQ(report->grade, Grade::silicon);
        EXPECT_FALSE(report->findings.empty());
        EXPECT_THAT(report_text(*report), HasSubstr("\"grade\":\"silicon\""));
        const auto again = read_report(report_text(*report));
        ASSERT_TRUE(again) << again.error().what;
        EXPECT_EQ(*again, *report);
    }
}

TEST(ProbeReport, what_the_catalogue_says_of_contention_was_measured) {
    const auto report = read_report(measured("interference"));
    ASSERT_TRUE(report);
    const auto times = [&](std::string_view setting) -> std::int64_t {
        for (const Finding& finding : report->findings)
            if (finding.what == "compute beside compute" && finding.setting == setting)
                if (const Figure* figure = finding.find("p50TimesThousandths")) return figure->value;
        return 0;
    };
    EXPECT_EQ(times("time-sliced") / 1000, 46);
    EXPECT_EQ(times("mps") / 100, 35);
    EXPECT_EQ((times("mps, half of the multiprocessors each") + 5) / 10, 103);
}

TEST(ProbeReport, a_page_shows_everything_and_runs_nothing) {
    Report report{
        .probe = "residue", .device = "GPU-1", .model = "<script>alert(1)</script>", .grade = Grade::simulated};
    report.findings = {{.what = "memory & more", .setting = "\"next\"", .figures = {{"bytes", 7}}, .says = "left"},
                       {.what = "pools", .not_tried = "there are none"}};
    const std::string page = page_of(report);
    EXPECT_THAT(page, Not(HasSubstr("<script>")));
    for (const char* part : {"&lt;script&gt;", "memory &amp; more", "&quot;next&quot;", "bytes 7", "left",
                             "there are none", "Grade: simulated"})
        EXPECT_THAT(page, HasSubstr(part));
}

TEST(ProbeReport, what_is_no_report_is_refused) {
    for (const char* text : {"", "{}", "[]", R"({"probe":"residue","grade":"golden"})", R"({"probe":"residue","x":1})"})
        EXPECT_FALSE(read_report(text)) << text;
}

}  // namespace
}  // namespace bulkhead::probe
