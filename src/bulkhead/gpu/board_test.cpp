#include "bulkhead/gpu/board.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <fstream>
#include <sstream>

#include "bulkhead/gpu/profile_name.hpp"

namespace bulkhead::gpu {
namespace {

namespace json = boost::json;

std::optional<json::value> read_json(const std::string& path) {
    std::ifstream file{path};
    if (!file) return std::nullopt;
    std::ostringstream text;
    text << file.rdbuf();
    return json::parse(text.str());
}

Known known(const json::object& from, std::string_view key) {
    const json::value* value = from.if_contains(key);
    return value == nullptr || value->is_null() ? Known{} : Known{static_cast<int>(value->to_number<std::int64_t>())};
}

std::string text(const json::object& from, std::string_view key) {
    const json::value* value = from.if_contains(key);
    return value == nullptr || value->is_null() ? "" : std::string{value->as_string()};
}

// The starts of a list of placements, all of which must have this size.
Starts starts(const json::value& placements, unsigned size) {
    unsigned bits = 0;
    for (const json::value& placement : placements.as_array()) {
        EXPECT_EQ(placement.at("size").to_number<unsigned>(), size);
        bits |= 1u << placement.at("start").to_number<unsigned>();
    }
    return Starts{static_cast<std::uint8_t>(bits)};
}

void compare_profile(const Board& board, const Profile& profile, const json::object& fact) {
    SCOPED_TRACE(profile.name);
    EXPECT_EQ(profile.name, text(fact, "name"));
    EXPECT_EQ(nvml_name(profile.nvml), text(fact, "nvml_profile_enum"));
    EXPECT_EQ(static_cast<int>(profile.nvml), known(fact, "nvml_profile_value"));
    EXPECT_EQ(profile.id, known(fact, "nvidia_smi_profile_id"));
    EXPECT_EQ(profile.slices, fact.at("gi_slices").to_number<unsigned>());
    EXPECT_EQ(profile.memory_slices, fact.at("memory_slices").to_number<unsigned>());
    EXPECT_EQ(profile.sms, known(fact, "sm_count"));
    EXPECT_EQ(profile.engines.copy, known(fact, "copy_engines"));
    EXPECT_EQ(profile.engines.decoders, known(fact, "decoders"));
    EXPECT_EQ(profile.engines.encoders, known(fact, "encoders"));
    EXPECT_EQ(profile.engines.jpeg, known(fact, "jpeg_engines"));
    EXPECT_EQ(profile.engines.ofa, known(fact, "ofa_engines"));
    EXPECT_EQ(profile.max_instances, fact.at("max_instances").to_number<unsigned>());
    EXPECT_EQ(profile.min_driver, text(fact, "min_driver_branch"));
    EXPECT_EQ(resource_name(parse_profile_name(profile.name).value()), text(fact, "k8s_resource"));
    const json::value& p2p = fact.at("p2p_supported");
    EXPECT_EQ(profile.p2p, p2p.is_null() ? std::nullopt : std::optional{p2p.as_bool()});
    // The H200 has our own capture; its test is below.
    if (board.basis != Basis::capture) {
        EXPECT_EQ(profile.memory_mib, known(fact, "memory_size_mb"));
    }
    if (fact.at("placements").is_null()) {
        EXPECT_EQ(board.basis, Basis::assumed) << "a place that no source shows must say so";
    } else {
        EXPECT_EQ(profile.starts, starts(fact.at("placements"), profile.memory_slices));
    }
}

void compare_compute_profiles(const Board& board, const json::value& facts) {
    if (facts.is_null()) {
        EXPECT_TRUE(board.compute_profiles.empty());
        return;
    }
    ASSERT_EQ(board.compute_profiles.size(), facts.as_array().size());
    for (std::size_t i = 0; i < board.compute_profiles.size(); ++i) {
        SCOPED_TRACE("compute profile " + std::to_string(i));
        const ComputeProfile& ci = board.compute_profiles[i];
        const json::object& fact = facts.as_array()[i].as_object();
        EXPECT_EQ(nvml_name(ci.gpu_instance), text(fact, "gi_profile_enum"));
        EXPECT_EQ(nvml_name(ci.nvml), text(fact, "ci_profile_enum"));
        EXPECT_EQ(static_cast<int>(ci.nvml), known(fact, "ci_profile_value"));
        EXPECT_EQ(ci.max_instances, fact.at("max_instances").to_number<unsigned>());
        EXPECT_EQ(ci.sms, known(fact, "sm_count"));
        EXPECT_EQ(ci.basis.empty(), text(fact, "basis").empty());
        EXPECT_EQ(ci.starts, fact.at("placements").is_null() ? Starts{} : starts(fact.at("placements"), ci.slices));
    }
}

TEST(Boards, say_what_the_facts_say_model_by_model_and_field_by_field) {
    const auto facts = read_json(BULKHEAD_SHARED_DIR "/facts/gpu-partitioning.json");
    if (!facts) GTEST_SKIP() << "no " BULKHEAD_SHARED_DIR "/facts/gpu-partitioning.json on this machine";
    const json::array& models = facts->at("models").as_array();
    ASSERT_EQ(models.size(), boards().size());
    for (std::size_t m = 0; m < models.size(); ++m) {
        const Board& board = boards()[m];
        const json::object& fact = models[m].as_object();
        SCOPED_TRACE(board.id);
        EXPECT_EQ(board.id, text(fact, "id"));
        EXPECT_EQ(board.product, text(fact, "product"));
        EXPECT_EQ(board.architecture, text(fact, "architecture"));
        EXPECT_EQ(board.compute_capability, text(fact, "compute_capability"));
        EXPECT_EQ(board.sms_full, known(fact, "sm_count_full"));
        EXPECT_EQ(board.sms_in_mig, known(fact, "sm_count_in_mig"));
        EXPECT_EQ(board.memory_mib, known(fact, "memory_total_mib"));
        EXPECT_EQ(board.slices, fact.at("gpu_instance_slices").to_number<unsigned>());
        EXPECT_EQ(board.memory_slices, fact.at("memory_slices").to_number<unsigned>());
        EXPECT_EQ(board.max_instances, fact.at("max_gpu_instances").to_number<unsigned>());
        EXPECT_EQ(board.min_driver, text(fact, "min_driver"));
        EXPECT_EQ(print(board.basis),
                  text(fact, "placement_basis").empty() ? "assumed" : text(fact, "placement_basis"));
        const json::array& pci = fact.at("pci_device_ids").as_array();
        ASSERT_EQ(board.pci.size(), pci.size());
        for (std::size_t i = 0; i < pci.size(); ++i) {
            EXPECT_EQ(find_board_by_pci(text(pci[i].as_object(), "id")), &board);
            EXPECT_EQ(board.pci[i].product, text(pci[i].as_object(), "product"));
        }
        const json::array& profiles = fact.at("profiles").as_array();
        ASSERT_EQ(board.profiles.size(), profiles.size());
        for (std::size_t i = 0; i < profiles.size(); ++i)
            compare_profile(board, board.profiles[i], profiles[i].as_object());
        const json::value* compute = fact.if_contains("compute_instance_profiles");
        compare_compute_profiles(board, compute == nullptr ? json::value{} : *compute);
    }
}

TEST(Boards, have_the_h200_as_we_read_it_on_silicon) {
    const auto capture = read_json(BULKHEAD_SOURCE_DIR "/testdata/gpu/h200-nvml-580.159.04.json");
    ASSERT_TRUE(capture);
    const Board& h200 = *find_board("h200-141gb").value();
    EXPECT_EQ(grade(h200.basis), Grade::silicon);
    EXPECT_EQ(h200.sms_full, known(capture->as_object(), "multiprocessors"));
    EXPECT_EQ(h200.memory_mib, known(capture->as_object(), "memory_total_mib_nvidia_smi"));
    std::size_t seen = 0;
    for (const auto& [key, answer] : capture->at("profiles_by_enum").as_object()) {
        if (answer.at("rc").to_number<int>() != 0) continue;
        SCOPED_TRACE("NVML enum " + std::string{key});
        ++seen;
        const json::object& info = answer.as_object();
        const auto found = std::ranges::find(h200.profiles, std::string{key},
                                             [](const Profile& p) { return std::to_string(static_cast<int>(p.nvml)); });
        ASSERT_NE(found, h200.profiles.end());
        EXPECT_EQ(found->id, known(info, "id"));
        EXPECT_EQ(found->slices, info.at("sliceCount").to_number<unsigned>());
        EXPECT_EQ(found->max_instances, info.at("instanceCount").to_number<unsigned>());
        EXPECT_EQ(found->sms, known(info, "multiprocessorCount"));
        EXPECT_EQ(found->memory_mib, known(info, "memorySizeMB"));
        EXPECT_EQ(found->engines.copy, known(info, "copyEngineCount"));
        EXPECT_EQ(found->engines.decoders, known(info, "decoderCount"));
        EXPECT_EQ(found->engines.encoders, known(info, "encoderCount"));
        EXPECT_EQ(found->engines.jpeg, known(info, "jpegCount"));
        EXPECT_EQ(found->engines.ofa, known(info, "ofaCount"));
        EXPECT_EQ(found->p2p, info.at("isP2pSupported").to_number<int>() != 0);
        EXPECT_EQ(found->starts, starts(info.at("placements"), found->memory_slices));
    }
    EXPECT_EQ(seen, h200.profiles.size());
}

TEST(Boards, name_profiles_by_the_formula_of_the_tools) {
    int checked = 0;
    for (const Board& board : boards())
        for (const Profile& profile : board.profiles) {
            if (!board.memory_mib || !profile.memory_mib) continue;
            const auto total_bytes = static_cast<std::uint64_t>(*board.memory_mib) << 20;
            const auto gigabytes = gigabytes_in_name(static_cast<std::uint64_t>(*profile.memory_mib), total_bytes);
            EXPECT_EQ(parse_profile_name(profile.name).value().gigabytes, static_cast<unsigned>(gigabytes))
                << board.id << ' ' << profile.name;
            ++checked;
        }
    EXPECT_EQ(checked, 56) << "as many profiles as have both a size and a total";
    EXPECT_EQ(gigabytes_in_name(40448, 81559ull << 20), 40)
        << "rounding the size itself would say 39, as Slurm once did";
}

TEST(Boards, keep_names_slices_and_attributes_in_step) {
    for (const Board& board : boards())
        for (const Profile& profile : board.profiles) {
            SCOPED_TRACE(std::string{board.id} + " " + std::string{profile.name});
            const ProfileName name = parse_profile_name(profile.name).value();
            EXPECT_EQ(name.gpu, profile.slices);
            EXPECT_TRUE(profile.name.ends_with(profile.attribute));
            EXPECT_EQ(name.attributes.empty(), profile.plain());
            for (const unsigned start : profile.starts) EXPECT_LE(profile.at(start).end(), board.memory_slices);
        }
}

TEST(FindBoard, takes_ids_beginnings_and_pci_ids_in_any_case) {
    struct Row {
        std::string_view typed, id;
    };
    const Row rows[] = {
        {"h100-80gb-sxm5", "h100-80gb-sxm5"},
        {"H100-80GB-SXM5", "h100-80gb-sxm5"},
        {"a30", "a30-24gb"},
        {"rtx", "rtx-pro-6000-blackwell-96gb"},
        {"0x233010DE", "h100-80gb-sxm5"},
        {"0x233010de", "h100-80gb-sxm5"},
        {"233010DE", "h100-80gb-sxm5"},
        {"2335", "h200-141gb"},
        {"0x2335", "h200-141gb"},
        {"10DE:2901", "b200-180gb"},
        {"0x2BB410DE", "rtx-pro-6000-blackwell-96gb"},
    };
    for (const Row& row : rows) {
        const auto board = find_board(row.typed);
        ASSERT_TRUE(board) << row.typed;
        EXPECT_EQ((*board)->id, row.id) << row.typed;
    }
}

TEST(FindBoard, proposes_what_was_meant_and_lists_what_exists) {
    struct Row {
        std::string_view typed, what, remedy;
    };
    const Row rows[] = {
        {"h100-80gb-smx5", "no GPU model is called \"h100-80gb-smx5\"", "h100-80gb-sxm5"},
        {"h100", "could be any of h100-80gb-sxm5, h100-80gb-pcie, h100-94gb", "write the whole name"},
        {"", "no GPU model is called \"\"", "bulkhead mig profiles"},
        {"mi300y", "mi350x-mi355x, mi300a", "mi300x"},
        {"mi300", "could be any of mi300x, mi300a", "write the whole name"},
        {"toaster", "known are a100-40gb", "bulkhead mig profiles"},
        {"0x233310DE", "no GPU model", "bulkhead mig profiles"},  // the id a public mock gives the H200
        {"10de:23", "no GPU model", "bulkhead mig profiles"},
    };
    for (const Row& row : rows) {
        const auto board = find_board(row.typed);
        ASSERT_FALSE(board) << row.typed;
        EXPECT_EQ(board.error().code, Code::not_found);
        EXPECT_NE(board.error().what.find(row.what), std::string::npos) << board.error().what;
        EXPECT_EQ(board.error().remedy, row.remedy);
    }
}

TEST(Grade, follows_from_the_basis_and_a_mock_proves_nothing) {
    EXPECT_EQ(grade(Basis::capture), Grade::silicon);
    EXPECT_EQ(grade(Basis::listing), Grade::documented);
    EXPECT_EQ(grade(Basis::carried_over), Grade::assumed);
    EXPECT_EQ(grade(Basis::mock), Grade::assumed);
    EXPECT_EQ(grade(Basis::assumed), Grade::assumed);
}

}  // namespace
}  // namespace bulkhead::gpu
