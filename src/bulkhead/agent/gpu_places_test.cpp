#include "bulkhead/agent/gpu_places.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace bulkhead::agent {
namespace {

class Places : public testing::Test {
protected:
    void SetUp() override {
        folder_ = std::filesystem::temp_directory_path() / fmt::format("gpu-places-{}", ::getpid());
        std::filesystem::create_directories(folder_);
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }
    static nvml::Gpu gpu(const std::string& uuid, const std::string& bus) {
        nvml::Gpu one;
        one.uuid = uuid;
        one.bus_id = bus;
        one.name = "NVIDIA H200";
        one.pci_device = 0x233510DE;
        one.mig = nvml::MigMode::disabled;
        one.nvlinks = 18;
        return one;
    }
    std::unique_ptr<GpuPlaces> open(const std::vector<nvml::Gpu>& there, const std::string& held = {}) const {
        auto opened =
            GpuPlaces::open(folder_ / "gpus", there, [&](const nvml::Gpu& one) { return one.bus_id == held; });
        EXPECT_TRUE(opened);
        return *std::move(opened);
    }
    std::filesystem::path folder_;
    const nvml::Gpu first_ = gpu("GPU-a", "00000000:3B:00.0"), second_ = gpu("GPU-b", "00000000:5E:00.0");
};

TEST_F(Places, one_that_a_machine_holds_is_as_it_was_and_one_that_nobody_holds_is_lost) {
    open({first_, second_});
    const auto held = open({second_}, first_.bus_id);
    ASSERT_EQ(held->size(), 2U);
    EXPECT_FALSE(held->at(0)->lost);
    EXPECT_EQ(held->at(0)->bus_id, first_.bus_id);
    EXPECT_EQ(held->at(0)->name, "NVIDIA H200");
    EXPECT_EQ(held->at(0)->pci_device, 0x233510DEU);
    EXPECT_EQ(held->at(0)->nvlinks, 18U);
    EXPECT_EQ(held->at(0)->mig, nvml::MigMode::disabled);
    EXPECT_TRUE(held->is_away(0));
    EXPECT_FALSE(held->is_away(1));
    EXPECT_TRUE(open({second_})->at(0)->lost);
}

TEST_F(Places, one_that_comes_back_is_seen_anew_in_its_place) {
    open({first_, second_});
    const auto places = open({second_});
    places->see({second_});
    EXPECT_TRUE(places->at(0)->lost);
    nvml::Gpu back = first_;
    back.index = 7;
    back.minor = 3;
    places->see({second_, back});
    EXPECT_FALSE(places->at(0)->lost);
    EXPECT_EQ(places->at(0)->minor, 3U);
    EXPECT_EQ(places->at(0)->index, 0U) << "the node's number, not NVML's";
    EXPECT_FALSE(places->is_away(0));
}

TEST_F(Places, a_file_of_uuids_alone_still_says_who_is_where) {
    std::ofstream{folder_ / "gpus"} << "GPU-b\nGPU-a\n";
    const auto places = open({first_});
    EXPECT_EQ(places->at(0)->uuid, "GPU-b");
    EXPECT_TRUE(places->at(0)->lost) << "nobody knows what bus it was on";
    EXPECT_EQ(places->at(1)->uuid, "GPU-a");
    EXPECT_FALSE(open({second_}, first_.bus_id)->at(1)->lost) << "by now it is known where it was";
}

}  // namespace
}  // namespace bulkhead::agent
