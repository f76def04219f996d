#include "bulkhead/replay/queueing_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "bulkhead/replay/page.hpp"

namespace bulkhead::replay {

namespace {

constexpr double width = 720, height = 260, left = 60, bottom = 40, top = 20, right = 110;
constexpr std::array<std::string_view, 2> colours{"#d1495b", "#00798c"};
constexpr std::size_t steps = 300;
constexpr double hour_ms = 3'600'000;

std::string_view word_of(QueuePolicy policy) { return words(policy)[static_cast<std::size_t>(policy)]; }

// Parts of a plot's width and height; y upwards.
struct Point {
    double x = 0, y = 0;
};
using Curve = std::vector<Point>;

struct Mark {
    double at = 0;  // part of the axis
    std::string text;
};

void plot(std::string& out, std::string_view title, std::span<const QueueingLine> lines,
          const std::vector<Curve>& curves, const std::vector<Mark>& below, const std::vector<Mark>& beside) {
    const auto x_of = [](double part) { return left + part * (width - left - right); };
    const auto y_of = [](double part) { return height - bottom - part * (height - top - bottom); };
    auto to = std::back_inserter(out);
    fmt::format_to(to, "<h2>{}</h2>\n<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n", title, width,
                   height, title);
    for (const Mark& mark : below)
        fmt::format_to(to, "<text x=\"{:.1f}\" y=\"{}\" class=\"x\">{}</text>\n", x_of(mark.at), height - 18,
                       mark.text);
    for (const Mark& mark : beside)
        fmt::format_to(to,
                       "<line x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\" class=\"grid\"/><text x=\"{}\" "
                       "y=\"{:.1f}\" class=\"y\">{}</text>\n",
                       left, width - right, y_of(mark.at), y_of(mark.at), left - 8, y_of(mark.at) + 4, mark.text);
    for (std::size_t i = 0; i < lines.size(); ++i) {
        const std::string_view colour = colours[static_cast<std::size_t>(lines[i].policy)];
        fmt::format_to(to, "<polyline fill=\"none\" stroke-width=\"1.5\" stroke=\"{}\" points=\"", colour);
        for (const Point point : curves[i]) fmt::format_to(to, "{:.1f},{:.1f} ", x_of(point.x), y_of(point.y));
        fmt::format_to(to, "\"/><text x=\"{}\" y=\"{}\" fill=\"{}\">{}</text>\n", width - right + 10,
                       top + 10 + 18 * static_cast<double>(i), colour, word_of(lines[i].policy));
    }
    out += "</svg>\n";
}

// Four steps of an axis that ends at `most`.
std::vector<Mark> marks(double most, double unit) {
    std::vector<Mark> out;
    for (int i = 0; i <= 4; ++i) out.push_back({i / 4.0, fmt::format("{:.4g}", most * i / 4 / unit)});
    return out;
}

// The mean over each of `steps` equal stretches of time.
template <class Value>
Curve over_time(const QueueingLine& line, double span, double most, Value value) {
    std::vector<double> sums(steps);
    const double stretch = span / steps;
    for (std::size_t i = 0; i + 1 < line.moments.size(); ++i) {
        const auto amount = static_cast<double>(value(line.moments[i]));
        auto from = static_cast<double>(line.moments[i].at.ms);
        const auto until = static_cast<double>(line.moments[i + 1].at.ms);
        while (from < until) {
            const auto step = std::min(static_cast<std::size_t>(from / stretch), steps - 1);
            const double end = step + 1 == steps ? until : std::min(until, static_cast<double>(step + 1) * stretch);
            if (end <= from) break;
            sums[step] += amount * (end - from);
            from = end;
        }
    }
    Curve curve;
    const auto used = static_cast<double>(line.figures.makespan.ms);
    for (std::size_t i = 0; i < steps; ++i) {
        const double begins = static_cast<double>(i) * stretch;
        if (begins > used) break;
        curve.push_back({(static_cast<double>(i) + 0.5) / steps, sums[i] / stretch / most});
    }
    return curve;
}

void plots(std::string& out, std::span<const QueueingLine> lines, std::int64_t units) {
    double span = 1, queue = 1, shortest = 0, longest = 1;
    for (const QueueingLine& line : lines) {
        span = std::max(span, static_cast<double>(line.figures.makespan.ms));
        for (const Moment& moment : line.moments) queue = std::max(queue, static_cast<double>(moment.waiting));
        const double first = std::log10(std::max(1.0, static_cast<double>(line.jct_ms.front())));
        shortest = &line == &lines.front() ? first : std::min(shortest, first);
        longest = std::max(longest, std::log10(std::max(1.0, static_cast<double>(line.jct_ms.back()))));
    }
    longest = std::max(longest, shortest + 0.1);
    std::vector<Curve> waiting, in_use, jct;
    for (const QueueingLine& line : lines) {
        waiting.push_back(over_time(line, span, queue, [](const Moment& moment) { return moment.waiting; }));
        in_use.push_back(
            over_time(line, span, static_cast<double>(units), [](const Moment& moment) { return moment.in_use; }));
        Curve curve;
        const std::size_t all = line.jct_ms.size();
        for (std::size_t i = 0; i <= steps; ++i) {
            const std::size_t rank = std::min(all - 1, i * all / steps);
            const double at = std::log10(std::max(1.0, static_cast<double>(line.jct_ms[rank])));
            curve.push_back({(at - shortest) / (longest - shortest), static_cast<double>(i) / steps});
        }
        jct.push_back(std::move(curve));
    }
    plot(out, "Jobs that wait, over days", lines, waiting, marks(span, 24 * hour_ms), marks(queue, 1));
    plot(out, "GPUs in use, over days", lines, in_use, marks(span, 24 * hour_ms),
         marks(static_cast<double>(units), gpu_unit));
    std::vector<Mark> powers;
    for (double power = std::ceil(shortest - 3); power <= longest - 3; ++power)
        powers.push_back({(power + 3 - shortest) / (longest - shortest), fmt::format("{:.0f}", std::pow(10, power))});
    plot(out, "Part of the jobs that took no longer than so many seconds", lines, jct, powers, marks(1, 1));
}

std::string hours(double ms) { return fmt::format("{:.2f}h", ms / hour_ms); }
std::string percent(double part) { return fmt::format("{:.2f}%", 100 * part); }

}  // namespace

QueueingLine line_of(QueuePolicy policy, const Scenario& scenario, QueueingRun run, std::span<const Duration> alone) {
    QueueingLine line{.policy = policy, .figures = figures_of(scenario, run, alone), .moments = {}, .jct_ms = {}};
    for (std::size_t i = 0; i < scenario.jobs.size(); ++i)
        line.jct_ms.push_back((run.jobs[i].finished - scenario.jobs[i].work.submitted).ms);
    std::ranges::sort(line.jct_ms);
    line.moments = std::move(run.moments);
    return line;
}

std::vector<std::pair<std::string, std::string>> spelled(const QueueingFigures& figures) {
    std::vector<std::pair<std::string, std::string>> out;
    const auto add = [&](std::string name, std::string value) { out.emplace_back(std::move(name), std::move(value)); };
    const auto spread = [&](const std::string& name, const Spread& values) {
        add(name + " mean", hours(values.mean));
        add(name + " p50", hours(static_cast<double>(values.p50)));
        add(name + " p99", hours(static_cast<double>(values.p99)));
    };
    add("jobs", std::to_string(figures.jobs));
    add("utilisation", percent(figures.utilisation));
    add("utilisation with a queue",
        figures.utilisation_with_a_queue ? percent(*figures.utilisation_with_a_queue) : "-");
    spread("waiting", figures.waiting_ms);
    for (const auto& [gpus, values] : figures.waiting_ms_by_gpus)
        add(fmt::format("waiting mean, {} GPUs ({} jobs)", print(gpus), values.count), hours(values.mean));
    for (const auto& [gpus, values] : figures.waiting_ms_by_gpus)
        add(fmt::format("waiting p99, {} GPUs", print(gpus)), hours(static_cast<double>(values.p99)));
    spread("JCT", figures.jct_ms);
    if (figures.jct_ms_by_priority.size() > 1)
        for (const auto& [priority, values] : figures.jct_ms_by_priority)
            add(fmt::format("JCT mean, priority {} ({} jobs)", priority, values.count), hours(values.mean));
    add("makespan", hours(static_cast<double>(figures.makespan.ms)));
    if (figures.deadlines > 0) {
        add("deadlines", std::to_string(figures.deadlines));
        add("deadlines admitted", std::to_string(figures.admitted));
        add("deadlines met", std::to_string(figures.met));
        add("deadlines missed", std::to_string(figures.missed));
    }
    add("Jain index of tenants", fmt::format("{:.4f}", figures.jain));
    if (figures.rho_mean) {
        add("rho mean", fmt::format("{:.3f}", *figures.rho_mean));
        add("rho max", fmt::format("{:.3f}", *figures.rho_most));
    }
    add("evictions", std::to_string(figures.evictions));
    add("moves", std::to_string(figures.moves));
    add("backfilled", std::to_string(figures.backfilled));
    add("lost GPU-hours", fmt::format("{:.1f}", figures.lost_gpu_hours));
    if (figures.wiping_gpu_hours > 0) add("wiping GPU-hours", fmt::format("{:.1f}", figures.wiping_gpu_hours));
    add("cycles", std::to_string(figures.cycles));
    add("decisions", std::to_string(figures.decisions));
    return out;
}

std::string queueing_page(std::span<const QueueingLine> lines, std::int64_t units, std::string_view about) {
    std::string out = page_head("Waiting and running", about);
    plots(out, lines, units);
    auto to = std::back_inserter(out);
    out += "<h2>Figures</h2>\n<table><tr><th></th>";
    std::vector<std::vector<std::pair<std::string, std::string>>> columns;
    for (const QueueingLine& line : lines) {
        fmt::format_to(to, "<th>{}</th>", word_of(line.policy));
        columns.push_back(spelled(line.figures));
    }
    out += "</tr>\n";
    for (std::size_t row = 0; row < columns.front().size(); ++row) {
        fmt::format_to(to, "<tr><td>{}</td>", columns.front()[row].first);
        for (const auto& column : columns) fmt::format_to(to, "<td>{}</td>", column[row].second);
        out += "</tr>\n";
    }
    return out + "</table>\n</html>\n";
}

}  // namespace bulkhead::replay
