// What a process without rights learns about a neighbour on the same GPU, through the doors that everybody has.
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include "bulkhead/hw/nvml/profiling.hpp"
#include "bulkhead/probe/scene.hpp"

namespace bulkhead::probe {

namespace {

struct Row {
    const char *name, *what, *says;
};
constexpr Row rows[] = {
    {"free", "free memory", "a neighbour's allocations can be counted to the byte"},
    {"processes", "list of processes", "a neighbour's processes are listed"},
    {"processBytes", "memory of each process", "how much memory each neighbour holds is listed"},
    {"powerMw", "power", "how hard a neighbour works can be read from the card's power"},
    {"gpuPercent", "utilisation", "whether a neighbour works can be read from utilisation"},
    {"memoryPercent", "utilisation of memory", "how much memory traffic a neighbour makes can be read"},
    {"smMhz", "clock", "a neighbour's load can be read from the clock"},
};

// Whether counters of the GPU are for root alone: then nobody profiles a neighbour.
Finding profiling() {
    Finding finding{
        .what = "performance counters", .setting = "any process", .figures = {}, .says = {}, .not_tried = {}};
    if (const auto closed = nvml::profiling_is_restricted()) {
        finding.figures.push_back({"adminOnly", *closed ? 1 : 0});
        finding.says = *closed ? "for administrators alone" : "open to every process on the node";
    } else {
        finding.not_tried = "the driver's parameters cannot be read here";
    }
    return finding;
}

}  // namespace

Result<Report> visibility(const Options& options) {
    auto scene = set_up(options, "visibility");
    if (!scene) return std::unexpected(scene.error());
    const Options& with = scene->options;
    auto observer = Part::start(with, {"observe"}, {}, true);
    if (!observer) return std::unexpected(observer.error());
    const std::string self = std::to_string(observer->pid());
    const auto alone = observer->ask(self);
    if (!alone) return std::unexpected(alone.error());
    auto holder = Part::start(with, {"mark", std::to_string(with.mib)});
    auto worker = Part::start(with, {"hog", "compute"});
    for (auto* const part : {&holder, &worker}) {
        if (!*part) return std::unexpected(part->error());
        if (const auto ready = (*part)->hear(); !ready) return std::unexpected(ready.error());
    }
    std::this_thread::sleep_for(std::chrono::seconds{2});  // utilisation is an average over up to a second
    const auto beside = observer->ask(self);
    if (!beside) return std::unexpected(beside.error());
    for (const Row& row : rows) {
        const auto before = number_in(*alone, row.name), now = number_in(*beside, row.name);
        if (!before || !now) return std::unexpected(before ? now.error() : before.error());
        Finding finding{.what = row.what,
                        .setting = "another process, no rights",
                        .figures = {{"alone", *before}, {"beside", *now}},
                        .says = {},
                        .not_tried = {}};
        finding.says = *before == -1 || *now == -1 ? "not told" : *before == *now ? "shows nothing" : row.says;
        if (std::string_view{row.name} == "free") finding.figures.push_back({"neighbourHolds", with.mib << 20});
        scene->report.findings.push_back(std::move(finding));
    }
    scene->report.findings.push_back(profiling());
    return std::move(scene->report);
}

}  // namespace bulkhead::probe
