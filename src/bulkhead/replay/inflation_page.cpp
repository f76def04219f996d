#include "bulkhead/replay/inflation_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "bulkhead/replay/page.hpp"

namespace bulkhead::replay {

namespace {

constexpr double width = 720, height = 400, left = 60, bottom = 40, top = 20, right = 150;
constexpr std::array<std::string_view, 6> colours{"#8c8c8c", "#d1495b", "#edae49", "#66a182", "#2e4057", "#00798c"};

std::string_view policy_word(PackingPolicy policy) { return words(policy)[static_cast<std::size_t>(policy)]; }

double x_of(int percent) {
    constexpr double first = arrived_percent.front(), last = arrived_percent.back();
    return left + (percent - first) / (last - first) * (width - left - right);
}

// One trace: lines over what has arrived. The scale begins just below the lowest point, and says so by its numbers.
void plot(std::string& out, std::span<const InflationLine> lines) {
    double low = 100;
    for (const InflationLine& line : lines) low = std::min(low, *std::ranges::min_element(line.mean));
    low = std::floor(low) - 1;
    const auto y_of = [&](double percent) { return top + (100 - percent) / (100 - low) * (height - top - bottom); };
    auto to = std::back_inserter(out);
    fmt::format_to(to, "<h2>{}</h2>\n<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"GPUs allocated\">\n",
                   escaped(lines.front().trace), width, height);
    for (const int percent : arrived_percent)
        fmt::format_to(to, "<text x=\"{:.1f}\" y=\"{}\" class=\"x\">{}</text>\n", x_of(percent), height - 18, percent);
    const double stride = std::max(1.0, std::ceil((100 - low) / 8));
    for (double percent = 100; percent >= low; percent -= stride)
        fmt::format_to(
            to,
            "<line x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\" class=\"grid\"/><text x=\"{}\" y=\"{:.1f}\" "
            "class=\"y\">{:.0f}</text>\n",
            left, width - right, y_of(percent), y_of(percent), left - 8, y_of(percent) + 4, percent);
    double label = top + 10;
    for (const InflationLine& line : lines) {
        const std::string_view colour = colours[static_cast<std::size_t>(line.policy)];
        fmt::format_to(to, "<polyline fill=\"none\" stroke-width=\"2\" stroke=\"{}\" points=\"", colour);
        for (std::size_t i = 0; i < line.mean.size(); ++i)
            fmt::format_to(to, "{:.1f},{:.1f} ", x_of(arrived_percent[i]), y_of(line.mean[i]));
        fmt::format_to(to, "\"/><text x=\"{}\" y=\"{}\" fill=\"{}\">{} {:.2f}</text>\n", width - right + 10, label,
                       colour, policy_word(line.policy), line.mean.back());
        label += 18;
    }
    out += "</svg>\n<table><tr><th>arrived %</th>";
    for (const int percent : arrived_percent) fmt::format_to(to, "<th>{}</th>", percent);
    out += "</tr>\n";
    for (const InflationLine& line : lines) {
        fmt::format_to(to, "<tr><td>{}</td>", policy_word(line.policy));
        for (std::size_t i = 0; i < line.mean.size(); ++i)
            fmt::format_to(to, "<td>{:.2f} &plusmn;{:.2f}</td>", line.mean[i], line.deviation[i]);
        out += "</tr>\n";
    }
    out += "</table>\n";
}

}  // namespace

InflationLine summed(std::string trace, PackingPolicy policy, std::span<const InflationRun> runs) {
    InflationLine line{.trace = std::move(trace), .policy = policy};
    const auto count = static_cast<double>(runs.size());
    for (std::size_t i = 0; i < line.mean.size(); ++i) {
        double sum = 0, squares = 0;
        for (const InflationRun& run : runs) sum += run.allocated_percent[i];
        line.mean[i] = sum / count;
        for (const InflationRun& run : runs) {
            const double off = run.allocated_percent[i] - line.mean[i];
            squares += off * off;
        }
        line.deviation[i] = runs.size() < 2 ? 0 : std::sqrt(squares / (count - 1));
    }
    return line;
}

std::string inflation_page(std::span<const InflationLine> lines, std::string_view about) {
    std::string out = page_head("GPUs allocated, by what has arrived", about);
    for (std::size_t i = 0; i < lines.size();) {
        std::size_t end = i;
        while (end < lines.size() && lines[end].trace == lines[i].trace) ++end;
        plot(out, lines.subspan(i, end - i));
        i = end;
    }
    return out + "</html>\n";
}

}  // namespace bulkhead::replay
