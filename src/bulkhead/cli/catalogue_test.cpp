#include "bulkhead/policy/catalogue.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "bulkhead/cli/command.hpp"
#include "bulkhead/cli/said_test.hpp"
#include "bulkhead/policy/threat_model.hpp"
#include "bulkhead/policy/version_gate.hpp"

namespace bulkhead::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

Said ask(std::vector<std::string> words, bool colour = false) {
    std::ostringstream out, err;
    CLI::App app{"", "bulkhead"};
    Context context{out, err, colour};
    add_catalogue(Command{app}, context);
    words.insert(words.begin(), "catalogue");
    std::ranges::reverse(words);  // the way CLI11 wants them
    try {
        app.parse(words);
    } catch (const CLI::ParseError& error) {
        return {app.exit(error, out, err) == 0 ? done : bad_input, out.str(), err.str()};
    }
    return {context.status, out.str(), err.str()};
}

const std::vector<std::string> sections{"mechanisms", "tiers", "pairs", "corrections", "threat-models", "advisories"};

TEST(CatalogueCommand, every_section_fits_a_plain_terminal) {
    std::vector<std::vector<std::string>> asks{{}};
    for (const std::string& section : sections) asks.push_back({section});
    for (const auto& words : asks) {
        const Said said = ask(words);
        EXPECT_EQ(said.status, done);
        EXPECT_THAT(said.out, Not(HasSubstr("\033")));
        std::istringstream lines{said.out};
        for (std::string line; std::getline(lines, line);) {
            EXPECT_LE(line.size(), 112U) << line;
            EXPECT_FALSE(line.ends_with(' ')) << '"' << line << '"';
        }
    }
}

TEST(CatalogueCommand, colour_adds_paint_and_nothing_else) {
    for (const std::string& section : sections) {
        const std::string plain = ask({section}).out;
        std::string painted = ask({section}, true).out;
        EXPECT_THAT(painted, HasSubstr("\033[")) << section;
        for (std::size_t at; (at = painted.find('\033')) != std::string::npos;)
            painted.erase(at, painted.find('m', at) - at + 1);
        EXPECT_EQ(painted, plain) << section;
    }
}

TEST(CatalogueCommand, the_overview_names_every_mechanism_tier_and_threat_model) {
    const std::string text = ask({}).out;
    for (const std::string_view name : words(Mechanism{})) EXPECT_THAT(text, HasSubstr(std::string{name}));
    for (const std::string_view name : words(Tier{})) EXPECT_THAT(text, HasSubstr(std::string{name}));
    for (const std::string_view name : words(ThreatModel{})) EXPECT_THAT(text, HasSubstr(std::string{name}));
    EXPECT_THAT(text,
                HasSubstr("\n  mig           hard hard hard hard     hard      hard    hard    hard    soft   -"));
}

TEST(CatalogueCommand, json_holds_every_claim_with_grade_and_source) {
    const auto json = boost::json::parse(ask({"-o", "json"}).out).as_object();
    const auto count = [&](const char* section) { return json.at(section).as_array().size(); };
    EXPECT_EQ(count("mechanisms"), mechanisms().size());
    EXPECT_EQ(count("tiers"), tiers().size());
    EXPECT_EQ(count("pairs"), 32U);
    EXPECT_EQ(count("corrections"), corrections().size());
    EXPECT_EQ(count("threatModels"), 3U);
    EXPECT_EQ(count("advisories"), shipped_advisories().size());

    for (std::size_t i = 0; i < mechanisms().size(); ++i) {
        const auto& entry = json.at("mechanisms").as_array()[i].as_object();
        const auto& claims = entry.at("claims").as_object();
        EXPECT_EQ(claims.size(), aspect_count);
        for (const Aspect aspect : every<Aspect>()) {
            const Claim& claim = mechanisms()[i].claims[static_cast<std::size_t>(aspect)];
            const auto& written = claims.at(word(aspect)).as_object();
            EXPECT_EQ(written.at("strength").as_string(), word(claim.strength));
            EXPECT_EQ(written.at("grade").as_string(), word(claim.grade));
            EXPECT_EQ(written.at("says").as_string(), claim.says);
            EXPECT_EQ(written.at("source").as_string(), claim.source);
        }
    }
    for (const auto& tier : json.at("tiers").as_array())
        EXPECT_EQ(tier.as_object().at("claims").as_object().size(), wall_count);
}

TEST(CatalogueCommand, a_name_narrows_a_section_whatever_its_case) {
    const std::string mig = ask({"mechanisms", "MIG"}).out;
    EXPECT_THAT(mig, HasSubstr("MIG instance (mig)"));
    EXPECT_THAT(mig, HasSubstr("fraction over MIG"));
    EXPECT_THAT(mig, Not(HasSubstr("MPS inside")));
    EXPECT_THAT(ask({"pairs", "confidential-vm"}).out, Not(HasSubstr("container")));
    EXPECT_THAT(ask({"advisories", "dcgm"}).out, HasSubstr("CVE-2026-47483"));
    EXPECT_THAT(ask({"advisories", "cve-2026-24197"}).out, Not(HasSubstr("24187")));
    EXPECT_THAT(ask({"corrections", "nccl"}).out, HasSubstr("NCCL_IB_HCA"));
    const auto json = boost::json::parse(ask({"tiers", "vm", "-o", "json"}).out).as_object();
    EXPECT_EQ(json.size(), 1U);
    EXPECT_EQ(json.at("tiers").as_array().size(), 1U);
}

TEST(CatalogueCommand, a_wrong_word_gets_the_nearest_right_one) {
    struct Row {
        std::vector<std::string> words;
        int status;
        std::string hint;
    };
    for (const Row& row : {
             Row{{"mechanisms", "mgi"}, could_not, "bulkhead catalogue mechanisms mig"},
             Row{{"tiers", "confidental-vm"}, could_not, "bulkhead catalogue tiers confidential-vm"},
             Row{{"threat-models", "frobnicate"}, could_not, "internal, cloud, regulated"},
             Row{{"corrections", "frobnicate"}, could_not, "nothing called \"frobnicate\""},
             Row{{"advisories", "CVE-1999-0001"}, could_not, "nothing called"},
             Row{{"mechanics"}, bad_input, "mechanisms"},
             Row{{"-o", "xml"}, bad_input, "json"},
         }) {
        const Said said = ask(row.words);
        EXPECT_EQ(said.status, row.status) << row.words.back();
        EXPECT_THAT(said.err, HasSubstr(row.hint));
        EXPECT_TRUE(said.out.empty()) << said.out;
    }
}

TEST(CatalogueCommand, help_shows_examples_and_exit_status) {
    const Said said = ask({"--help"});
    EXPECT_EQ(said.status, done);
    EXPECT_THAT(said.out, HasSubstr("Examples:"));
    EXPECT_THAT(said.out, HasSubstr("Exit status:"));
}

}  // namespace
}  // namespace bulkhead::cli
