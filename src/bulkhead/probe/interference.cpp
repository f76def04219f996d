// How much slower a small piece of work gets beside a neighbour that takes what it can, by how the two share the GPU.
#include <fmt/format.h>

#include "bulkhead/probe/scene.hpp"

namespace bulkhead::probe {

namespace {

struct Contest {
    const char *victim, *hog, *what;
};
constexpr Contest contests[] = {
    {"compute", "compute", "compute beside compute"},        {"memory", "memory", "memory beside memory"},
    {"cache", "memory", "second-level cache beside memory"}, {"copy", "copy", "copies over PCIe beside copies"},
    {"compute", "memory", "compute beside memory"},
};

struct Sharing {
    std::string name;
    bool beside = true;
    Environment environment;
};

Result<Finding> run(Scene& scene, const Contest& contest, const Sharing& sharing) {
    std::optional<Part> hog;
    if (sharing.beside) {
        auto started = Part::start(scene.options, {"hog", contest.hog}, sharing.environment);
        if (!started) return std::unexpected(started.error());
        if (const auto ready = started->hear(); !ready) return std::unexpected(ready.error());
        hog.emplace(*std::move(started));
    }
    auto victim = Part::start(scene.options, {"victim", contest.victim, std::to_string(scene.options.seconds)},
                              sharing.environment);
    if (!victim) return std::unexpected(victim.error());
    const auto line = victim->hear();
    if (!line) return std::unexpected(line.error());
    const auto load = scene.nvml.load(scene.gpu.uuid);
    if (hog) (void)hog->end();
    Finding finding{.what = contest.what, .setting = sharing.name, .figures = {}, .says = {}, .not_tried = {}};
    for (const auto& [name, figure] :
         {std::pair{"p50", "p50Ns"}, std::pair{"p99", "p99Ns"}, std::pair{"p999", "p999Ns"},
          std::pair{"most", "mostNs"}, std::pair{"mbPerS", "mbPerS"}, std::pair{"count", "count"}}) {
        const auto value = number_in(*line, name);
        if (!value) return std::unexpected(value.error());
        if (*value != 0) finding.figures.push_back({figure, *value});
    }
    if (load) {
        finding.figures.push_back({"smMhz", load->sm_mhz});
        finding.figures.push_back({"powerMw", load->power_mw});
    }
    return finding;
}

void compare(Finding& finding, const Finding& alone) {
    for (const auto& [figure, ratio] :
         {std::pair{"p50Ns", "p50TimesThousandths"}, std::pair{"p99Ns", "p99TimesThousandths"}}) {
        const Figure *mine = finding.find(figure), *its = alone.find(figure);
        if (mine == nullptr || its == nullptr || its->value == 0) continue;
        finding.figures.push_back({ratio, mine->value * 1000 / its->value});
    }
    if (const Figure* times = finding.find("p50TimesThousandths"))
        finding.says =
            fmt::format("the median takes {:.1f} times as long as alone", static_cast<double>(times->value) / 1000);
}

}  // namespace

Result<Report> interference(const Options& options) {
    auto scene = set_up(options, "interference");
    if (!scene) return std::unexpected(scene.error());
    const auto mps = OwnMps::start(scene->options);
    for (const Contest& contest : contests) {
        std::vector<Sharing> ways{{.name = "alone", .beside = false, .environment = {}},
                                  {.name = "time-sliced", .environment = {}}};
        if (mps) {
            Environment half = mps->environment();
            half.emplace_back("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "50");
            ways.push_back({.name = "mps", .environment = mps->environment()});
            ways.push_back({.name = "mps, half of the multiprocessors each", .environment = half});
        }
        std::optional<Finding> alone;
        for (const Sharing& way : ways) {
            auto finding = run(*scene, contest, way);
            if (!finding) {
                scene->report.findings.push_back(not_tried(contest.what, way.name, finding.error()));
                continue;
            }
            if (!way.beside) alone = *finding;
            if (way.beside && alone) compare(*finding, *alone);
            scene->report.findings.push_back(*std::move(finding));
        }
        if (!mps) scene->report.findings.push_back(not_tried(contest.what, "mps", mps.error()));
        scene->report.findings.push_back(not_tried(
            contest.what, "mig",
            {Code::invalid,
             scene->gpu.mig == nvml::MigMode::enabled ? "instances belong to leases: probe each by its MIG- UUID"
                                                      : "the GPU is not cut, and a probe changes no modes",
             {}}));
    }
    return std::move(scene->report);
}

}  // namespace bulkhead::probe
