// One wipe of a GPU's memory, or of a MIG instance's, in this process: NVML says what there is and who else is on it,
// CUDA takes, overwrites and reads back (hw/cuda/scrub.hpp). What comes out is a value that travels as JSON, because an
// agent has it done by a process of its own: a context ends with its process, and a driver that hangs takes nobody
// along.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "bulkhead/base/result.hpp"
#include "bulkhead/hw/cuda/scrub.hpp"
#include "bulkhead/model/describe.hpp"

namespace bulkhead::agent {

struct ScrubTimes {  // microseconds
    std::int64_t start = 0, driver = 0, context = 0, module = 0, allocation = 0, survey = 0, overwrite = 0, verify = 0;
    std::int64_t handover = 0;
    std::int64_t total = 0;  // from the start of the process

    static constexpr void describe(auto&& field) {
        field("start", &ScrubTimes::start, "From the start of the process to the first step, in microseconds.");
        field("driver", &ScrubTimes::driver, "Until the libraries answered.");
        field("context", &ScrubTimes::context, "Until there was a context.");
        field("module", &ScrubTimes::module, "Until the kernels were translated.");
        field("allocation", &ScrubTimes::allocation, "Until all memory was taken.");
        field("survey", &ScrubTimes::survey, "Until it was known what had been there.");
        field("overwrite", &ScrubTimes::overwrite, "Until it was overwritten.");
        field("verify", &ScrubTimes::verify, "Until it was read back.");
        field("handover", &ScrubTimes::handover, "Until what the first context had lain on was wiped by a second.");
        field("total", &ScrubTimes::total, "From the start of the process to the result.");
    }
    friend bool operator==(const ScrubTimes&, const ScrubTimes&) = default;
};

struct GpuScrub {
    std::string device;  // UUID
    std::string model, driver;
    bool simulated = false;
    std::int64_t bytes_total = 0;  // on the board, or of the instance
    std::int64_t bytes_reached = 0, bytes_reserved = 0, bytes_context = 0, bytes_others = 0, bytes_left = 0;
    std::string why_context_stays;
    std::int64_t pieces = 0;
    std::optional<std::int64_t> bytes_found;
    std::int64_t bytes_other = 0, bytes_verified = 0;
    std::int64_t burn_in_passes = 0;
    std::int64_t survey_gpu_us = 0, overwrite_gpu_us = 0, verify_gpu_us = 0;
    bool verified = false;
    std::string why_not, digest;
    ScrubTimes times;

    std::int64_t bytes_unreachable() const { return bytes_total - bytes_reached; }
    std::string unreachable() const;  // whose those are, in words

    static constexpr void describe(auto&& field) {
        field("device", &GpuScrub::device, "UUID of the GPU or of the MIG device.",
              Rule{.required = true, .format = Format::line});
        field("model", &GpuScrub::model, "Its product name.", Rule{.format = Format::line});
        field("driver", &GpuScrub::driver, "The driver's version.", Rule{.format = Format::line});
        field("simulated", &GpuScrub::simulated, "Whether there is silicon behind it.");
        field("bytesTotal", &GpuScrub::bytes_total, "Memory on it.", Rule{.min = 0});
        field("bytesReached", &GpuScrub::bytes_reached, "Overwritten and read back.", Rule{.min = 0});
        field("bytesReserved", &GpuScrub::bytes_reserved, "The driver's and its firmware's.", Rule{.min = 0});
        field("bytesContext", &GpuScrub::bytes_context, "The wiping program's own context.", Rule{.min = 0});
        field("bytesOthers", &GpuScrub::bytes_others, "Of other programs.", Rule{.min = 0});
        field("bytesLeft", &GpuScrub::bytes_left, "Free, in no piece that could be had.", Rule{.min = 0});
        field("whyContextStays", &GpuScrub::why_context_stays,
              "Why what that context lies on was not wiped; empty: it was.", Rule{.format = Format::line});
        field("pieces", &GpuScrub::pieces, "In how many allocations.", Rule{.min = 0});
        field("bytesFound", &GpuScrub::bytes_found, "That were not zero before.", Rule{.min = 0});
        field("bytesOther", &GpuScrub::bytes_other, "That differ from what was written.", Rule{.min = 0});
        field("bytesVerified", &GpuScrub::bytes_verified, "Read back and compared.", Rule{.min = 0});
        field("burnInPasses", &GpuScrub::burn_in_passes, "Passes of a burn-in before, all read back as written.",
              Rule{.min = 0});
        field("surveyGpuUs", &GpuScrub::survey_gpu_us, "Of the GPU's time for the first look.", Rule{.min = 0});
        field("overwriteGpuUs", &GpuScrub::overwrite_gpu_us, "For the overwrite.", Rule{.min = 0});
        field("verifyGpuUs", &GpuScrub::verify_gpu_us, "For reading back.", Rule{.min = 0});
        field("verified", &GpuScrub::verified, "Whether it counts.");
        field("whyNot", &GpuScrub::why_not, "Why it does not.", Rule{.format = Format::line});
        field("digest", &GpuScrub::digest, "SHA-256 of what was read back: how much, and what it adds up to.",
              Rule{.format = Format::line});
        field("times", &GpuScrub::times, "Wall clock.");
    }
    friend bool operator==(const GpuScrub&, const GpuScrub&) = default;
};

struct GpuScrubOptions {
    std::string cuda = "libcuda.so.1", nvml = "libnvidia-ml.so.1";
    std::string gpu;  // an index as NVML counts, or a UUID
    bool survey = true;
    std::int64_t burn_in = 0;  // passes before the wipe itself
    cuda::ScrubMishap mishap;
};

// Sets variables of this process's environment that the driver reads at its start: call it once, and first.
Result<GpuScrub> scrub_gpu(const GpuScrubOptions& options);

std::string scrub_text(const GpuScrub& scrub);  // compact JSON
Result<GpuScrub> read_scrub(std::string_view text);

}  // namespace bulkhead::agent
