#include "bulkhead/policy/threat_model.hpp"

#include <gtest/gtest.h>

#include <set>

#include "bulkhead/model/describe.hpp"

namespace bulkhead {
namespace {

TEST(ThreatModel, presets_are_as_written) {
    using enum Tier;
    struct Row {
        ThreatModel model;
        Tier alone, in_domain, distrusting;
        bool soft, gpu, exceptions, reboot;
    };
    for (const Row& row : {
             Row{ThreatModel::internal, process, container, vm, true, true, true, false},
             Row{ThreatModel::cloud, container, container, vm, false, true, true, false},
             Row{ThreatModel::regulated, container, vm, vm, false, false, false, true},
         }) {
        const ThreatPreset& preset = preset_of(row.model);
        EXPECT_EQ(preset.model, row.model);
        EXPECT_EQ(preset.floor_alone, row.alone) << word(row.model);
        EXPECT_EQ(preset.floor_in_domain, row.in_domain) << word(row.model);
        EXPECT_EQ(preset.floor_distrusting, row.distrusting) << word(row.model);
        EXPECT_EQ(preset.soft_sharing_in_domain, row.soft) << word(row.model);
        EXPECT_EQ(preset.gpu_sharing_distrusting, row.gpu) << word(row.model);
        EXPECT_EQ(preset.exceptions, row.exceptions) << word(row.model);
        EXPECT_EQ(preset.verified_reboot_required, row.reboot) << word(row.model);
    }
}

TEST(ThreatModel, controls_are_sentences_named_once_and_worded_alike_in_every_model) {
    std::set<std::pair<std::string_view, std::string_view>> wordings;
    std::set<std::string_view> ids;
    for (const ThreatModel model : every<ThreatModel>()) {
        std::set<std::string_view> here;
        EXPECT_FALSE(preset_of(model).attacker.empty());
        for (const KeyControl& control : preset_of(model).controls) {
            EXPECT_TRUE(here.insert(control.id).second) << word(model) << " " << control.id;
            EXPECT_EQ(control.id.find_first_not_of("abcdefghijklmnopqrstuvwxyz-"), std::string_view::npos)
                << control.id;
            EXPECT_TRUE(control.says.ends_with('.')) << control.id;
            ids.insert(control.id);
            if (control.id != "versions-gated") wordings.emplace(control.id, control.says);  // cloud pins as well
        }
    }
    EXPECT_EQ(wordings.size() + 1, ids.size());
}

TEST(ThreatModel, each_keeps_the_controls_its_attacker_calls_for) {
    const auto has = [](ThreatModel model, std::string_view id) {
        for (const KeyControl& control : preset_of(model).controls)
            if (control.id == id) return true;
        return false;
    };
    EXPECT_TRUE(has(ThreatModel::internal, "no-untrusted-code"));
    EXPECT_FALSE(has(ThreatModel::cloud, "no-untrusted-code")) << "tenants run what they like";
    for (const std::string_view id : {"no-soft-sharing", "default-deny-network", "versions-gated", "metrics-restricted",
                                      "scrub-on-teardown", "firmware-current", "mig-changes-audited"}) {
        EXPECT_TRUE(has(ThreatModel::cloud, id)) << id;
        EXPECT_TRUE(has(ThreatModel::regulated, id)) << id;
    }
    for (const std::string_view id :
         {"separation-of-duties", "evidence-per-control", "disclosure-in-ssp", "no-exceptions"})
        EXPECT_TRUE(has(ThreatModel::regulated, id)) << id;
}

}  // namespace
}  // namespace bulkhead
