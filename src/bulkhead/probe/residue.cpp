// What is left in memory for the next one, by how the last one left.
#include <fmt/format.h>

#include "bulkhead/probe/scene.hpp"

namespace bulkhead::probe {

namespace {

Result<Finding> seen_in(std::string what, std::string setting, const std::string& line) {
    Finding finding{.what = std::move(what), .setting = std::move(setting), .figures = {}, .says = {}, .not_tried = {}};
    for (const std::string_view name : {"bytes", "notZero", "marked"}) {
        const auto value = number_in(line, name);
        if (!value) return std::unexpected(value.error());
        finding.figures.push_back({name == "bytes"     ? "bytesLookedAt"
                                   : name == "notZero" ? "bytesNotZero"
                                                       : "bytesMarked",
                                   *value});
    }
    const std::int64_t not_zero = finding.figures[1].value, marked = finding.figures[2].value;
    finding.says = marked > 0     ? fmt::format("{} bytes of the other were there to read", marked)
                   : not_zero > 0 ? fmt::format("nothing of the other; {} bytes of something else", not_zero)
                                  : "nothing but zeros";
    return finding;
}

enum class Leaving : std::uint8_t { exit, kill, free };

Result<std::string> after(Leaving how, const Options& options, const Environment& environment) {
    auto last = Part::start(options, {"mark", std::to_string(options.mib)}, environment);
    if (!last) return std::unexpected(last.error());
    if (const auto ready = last->hear(); !ready) return std::unexpected(ready.error());
    if (how == Leaving::kill) last->kill();
    if (how == Leaving::exit)
        if (const auto ended = last->end(); !ended) return std::unexpected(ended.error());
    if (how == Leaving::free)
        if (const auto freed = last->ask("free"); !freed) return std::unexpected(freed.error());
    auto next = Part::start(options, {"look"}, environment);
    if (!next) return std::unexpected(next.error());
    return next->hear();
}

void add(Report& report, const std::string& what, const std::string& setting, const Result<std::string>& line) {
    const auto finding = line ? seen_in(what, setting, *line) : Result<Finding>{std::unexpected(line.error())};
    report.findings.push_back(finding ? *finding : not_tried(what, setting, finding.error()));
}

void within_one_process(Report& report, const Options& options) {
    auto part = Part::start(options, {"within", std::to_string(options.mib)});
    for (const std::string what : {"memory freed and taken again", "memory of the driver's pool, taken again"}) {
        const auto line = part ? part->hear() : Result<std::string>{std::unexpected(part.error())};
        add(report, what, "same process", line);
    }
}

void on_chip(Report& report, const Options& options, bool meanwhile) {
    const std::string setting = meanwhile ? "another process, time-sliced" : "the next process";
    auto last = Part::start(options, {"mark-chip"});
    const auto ready = last ? last->hear() : Result<std::string>{std::unexpected(last.error())};
    auto next = Result<Part>{fail(Code::unavailable, "")};
    if (ready) {
        if (!meanwhile) (void)last->end();
        next = Part::start(options, {"look-chip"});
    }
    for (const std::string what : {"shared memory of a multiprocessor", "local memory of a thread"}) {
        const auto line = !ready ? Result<std::string>{std::unexpected(ready.error())}
                          : next ? next->hear()
                                 : Result<std::string>{std::unexpected(next.error())};
        add(report, what, setting, line);
    }
}

}  // namespace

Result<Report> residue(const Options& options) {
    auto scene = set_up(options, "residue");
    if (!scene) return std::unexpected(scene.error());
    Report& report = scene->report;
    const Options& with = scene->options;
    add(report, "memory after the process ended", "the next process", after(Leaving::exit, with, {}));
    add(report, "memory after kill -9", "the next process", after(Leaving::kill, with, {}));
    add(report, "memory freed, its context alive", "another process", after(Leaving::free, with, {}));
    within_one_process(report, with);
    if (auto mps = OwnMps::start(with)) {
        add(report, "memory after the process ended", "the next client of one MPS server",
            after(Leaving::exit, with, mps->environment()));
        add(report, "memory freed, its context alive", "another client of one MPS server",
            after(Leaving::free, with, mps->environment()));
    } else {
        report.findings.push_back(
            not_tried("memory after the process ended", "the next client of one MPS server", mps.error()));
    }
    on_chip(report, with, false);
    on_chip(report, with, true);
    return std::move(scene->report);
}

}  // namespace bulkhead::probe
