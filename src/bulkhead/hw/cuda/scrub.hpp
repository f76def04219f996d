// Wipes the memory of one GPU, or of the one MIG instance this process was shown, and proves it: takes all memory that
// can be had, looks at what was there, overwrites it, reads every byte back. Then a second context takes the place of
// the first, and does the same with what that one lay on. Nothing else may run on it meanwhile; whoever calls makes
// sure, and what it could not reach is in the report.
//
// A scrub that cannot verify never passes: `verified` needs the same number of words read as written, none that
// differs, and the sum over all of them that only the pattern of this very wipe has. A compare that never ran adds up
// to nothing.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bulkhead/base/result.hpp"
#include "bulkhead/hw/cuda/driver.hpp"

namespace bulkhead::cuda {

// For tests and self-tests alone: what goes wrong on purpose between overwrite and verification.
struct ScrubMishap {
    bool skip_overwrite = false;  // leave what is there
    bool plant_marker = false;    // 16 bytes somewhere in the middle, after the overwrite
};

struct ScrubOptions {
    int ordinal = 0;
    std::array<std::uint32_t, 4> key{};  // random: what the overwrite leaves is made of it
    bool survey = true;                  // read first what was there
    // A burn-in: as many passes of overwriting and reading back before the last one, each by a key of its own, and a
    // computation on all of the GPU whose result the host knows. Empty: none.
    std::vector<std::array<std::uint32_t, 4>> burn_in;
    ScrubMishap mishap;
};

struct Pass {
    std::uint64_t bytes = 0;
    double ms = 0;  // on the GPU
    double bytes_per_second() const { return ms > 0 ? static_cast<double>(bytes) / (ms / 1000) : 0; }
};

struct ScrubReport {
    Device device;
    std::uint64_t bytes_total = 0;    // as the driver gives it to programs
    std::uint64_t bytes_reached = 0;  // overwritten and read back
    std::uint64_t bytes_left = 0;     // free, and in no piece that could be had
    std::string why_context_stays;    // why what our own context lies on was not wiped; empty: it was
    std::size_t pieces = 0;
    std::size_t burn_in_passes = 0;  // that were read back as they were written

    // That were not zero before, of what the first context could reach; counted in words of four.
    std::optional<std::uint64_t> bytes_found;
    Pass survey, overwrite, verify;
    std::uint64_t bytes_other = 0;  // that differ from what was written
    std::uint64_t words_read = 0;
    std::uint64_t sum_read = 0, sum_expected = 0;
    bool verified = false;
    std::string why_not;  // of one that is not verified

    // Wall clock, each from the end of the one before.
    double context_ms = 0, module_ms = 0, allocation_ms = 0, survey_ms = 0, overwrite_ms = 0, verify_ms = 0;
    double handover_ms = 0;  // until what our own context had lain on was wiped too
};

Result<ScrubReport> scrub(const Driver& driver, const ScrubOptions& options);

}  // namespace bulkhead::cuda
