// A report as a page that needs nothing else: one table, in the order things were found.
#include <fmt/format.h>

#include <iterator>

#include "bulkhead/probe/finding.hpp"

namespace bulkhead::probe {

namespace {

std::string escaped(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c == '<') {
            out += "&lt;";
        } else if (c == '>') {
            out += "&gt;";
        } else if (c == '&') {
            out += "&amp;";
        } else if (c == '"') {
            out += "&quot;";
        } else {
            out += c;
        }
    }
    return out;
}

}  // namespace

std::string page_of(const Report& report) {
    std::string out;
    auto to = std::back_inserter(out);
    fmt::format_to(
        to,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>probe {0}: {1}</title>\n<style>"
        "body{{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem;color:#1b1b1f}}"
        "table{{border-collapse:collapse;width:100%}}th,td{{text-align:left;padding:.3rem .6rem;border-bottom:1px "
        "solid #ddd;vertical-align:top}}td.n{{font-variant-numeric:tabular-nums;white-space:nowrap}}"
        ".no{{color:#777}}</style></head>\n<body><h1>probe {0}</h1>\n<p>{1}, driver {2}, {3}; {4}. Both sides of "
        "every measurement were ours. Grade: {5}.</p>\n<table><thead><tr><th>what</th><th>setting</th>"
        "<th>figures</th><th></th></tr></thead><tbody>\n",
        escaped(report.probe), escaped(report.model), escaped(report.driver), escaped(report.device), print(report.at),
        word(report.grade));
    for (const Finding& finding : report.findings) {
        fmt::format_to(to, "<tr><td>{}</td><td>{}</td><td class=\"n\">", escaped(finding.what),
                       escaped(finding.setting));
        for (const Figure& figure : finding.figures)
            fmt::format_to(to, "{} {}<br>", escaped(figure.name), figure.value);
        if (finding.not_tried.empty()) {
            fmt::format_to(to, "</td><td>{}</td></tr>\n", escaped(finding.says));
        } else {
            fmt::format_to(to, "</td><td class=\"no\">not tried: {}</td></tr>\n", escaped(finding.not_tried));
        }
    }
    out += "</tbody></table></body></html>\n";
    return out;
}

}  // namespace bulkhead::probe
