// A scene in the words of a Cluster document, played to its end.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/sched/play.hpp"

namespace bulkhead::sched {

struct Told {
    Scene scene;
    Played played;

    std::string name(std::int64_t key) const { return scene.jobs[static_cast<std::size_t>(key - 1)].name; }
    std::vector<std::string> running() const {
        std::vector<std::string> names;
        for (const Binding& each : played.running) names.push_back(name(each.workload));
        return names;
    }
    std::vector<std::string> waiting() const {
        std::vector<std::string> names;
        for (const Waiting& each : played.waiting) names.push_back(name(each.workload));
        return names;
    }
};

inline Told told(std::string_view text, const PlaySettings& settings = {}) {
    const auto cluster = read_cluster("c.yaml", text);
    EXPECT_TRUE(cluster) << (cluster ? "" : print(cluster.error().front()));
    auto scene = scene_of(cluster.value_or(Cluster{}));
    EXPECT_TRUE(scene) << (scene ? "" : scene.error().front().what);
    Told out{scene ? *std::move(scene) : Scene{}, {}};
    out.played = play(out.scene, settings);
    return out;
}

}  // namespace bulkhead::sched
