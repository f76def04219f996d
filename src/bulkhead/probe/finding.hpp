// What a probe found: figures, each with its unit in its name, under a setting; and what was not tried, with why.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bulkhead/base/quantity.hpp"
#include "bulkhead/base/result.hpp"
#include "bulkhead/model/describe.hpp"
#include "bulkhead/model/terms.hpp"

namespace bulkhead::probe {

struct Figure {
    std::string name;  // "p50Ns", "bytesMarked", "ratioThousandths"
    std::int64_t value = 0;
    static constexpr void describe(auto&& field) {
        field("name", &Figure::name, "What, with its unit.", Rule{.required = true, .format = Format::line});
        field("value", &Figure::value, "How much.", Rule{.required = true});
    }
    friend bool operator==(const Figure&, const Figure&) = default;
};

struct Finding {
    std::string what;     // "memory after exit", "latency of compute"
    std::string setting;  // "another process", "time-sliced", "mps"
    std::vector<Figure> figures;
    std::string says;       // the figures in a sentence
    std::string not_tried;  // why there are none
    static constexpr void describe(auto&& field) {
        field("what", &Finding::what, "What was looked at.", Rule{.required = true, .format = Format::line});
        field("setting", &Finding::setting, "Under which conditions.", Rule{.format = Format::line});
        field("figures", &Finding::figures, "What was measured.");
        field("says", &Finding::says, "In a sentence.", Rule{.format = Format::line});
        field("notTried", &Finding::not_tried, "Why there are no figures.", Rule{.format = Format::line});
    }
    const Figure* find(std::string_view name) const;
    friend bool operator==(const Finding&, const Finding&) = default;
};

struct Report {
    std::string probe;  // residue, visibility, interference
    std::string device, model, driver, host;
    Instant at;
    Grade grade = Grade::assumed;  // until somebody says
    std::vector<Finding> findings;
    static constexpr void describe(auto&& field) {
        field("probe", &Report::probe, "Which probe.", Rule{.required = true, .format = Format::line});
        field("device", &Report::device, "UUID of the GPU.", Rule{.format = Format::line});
        field("model", &Report::model, "Its product name.", Rule{.format = Format::line});
        field("driver", &Report::driver, "The driver's version.", Rule{.format = Format::line});
        field("host", &Report::host, "The machine.", Rule{.format = Format::line});
        field("at", &Report::at, "When, by its clock.");
        field("grade", &Report::grade, "How it is known.");
        field("findings", &Report::findings, "What was found.");
    }
    friend bool operator==(const Report&, const Report&) = default;
};

struct Options {
    std::string gpu = "0";
    std::string cuda = "libcuda.so.1", nvml = "libnvidia-ml.so.1", mps = "nvidia-cuda-mps-control";
    std::int64_t mib = 4096;        // that a neighbour marks
    std::int64_t seconds = 3;       // at most, for each figure of interference
    std::vector<std::string> self;  // how to start a part: this program, and what makes it one
};

Result<Report> residue(const Options& options);
Result<Report> visibility(const Options& options);
Result<Report> interference(const Options& options);
Result<Report> rates(const Options& options);

std::string report_text(const Report& report);  // compact JSON
Result<Report> read_report(std::string_view text);
std::string page_of(const Report& report);  // HTML that needs nothing else

}  // namespace bulkhead::probe
