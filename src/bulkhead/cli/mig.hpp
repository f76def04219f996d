// What the `bulkhead mig` subcommands share: their options, and how they print. One function a subcommand.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/base/result.hpp"
#include "bulkhead/cli/command.hpp"
#include "bulkhead/codec/json_writer.hpp"
#include "bulkhead/gpu/amd.hpp"
#include "bulkhead/gpu/plan.hpp"

namespace bulkhead::cli {

struct MigOptions {
    std::string gpu, output = "table";
    std::string profile, have, idle, want, expect, file;
    bool compute = false;           // --ci
    bool all = false;               // sets --all
    bool no_double_memory = false;  // sets --no-double-memory
    bool json() const { return output == "json"; }
};

int mig_profiles(const MigOptions& options, Context& context);
int mig_amd_modes(const gpu::AmdBoard& board, const MigOptions& options, Context& context);
int mig_fit(const MigOptions& options, Context& context);
int mig_place(const MigOptions& options, Context& context);
int mig_plan(const MigOptions& options, Context& context);
int mig_sets(const MigOptions& options, Context& context);
int mig_check(const MigOptions& options, Context& context);

// The NVIDIA board the person named. An AMD model is refused with the command that does know it.
Result<const gpu::Board*> board_for_mig(std::string_view typed);

// Columns two spaces apart, as wide as their widest cell; the first row is the heading.
std::string aligned(const std::vector<std::vector<std::string>>& rows);

// A line that says so, when the answer rests on placements nobody has seen; else nothing.
std::string assumption(const gpu::Board& board);

std::string dash(gpu::Known number);  // "-" when no source says
void member_or_null(JsonWriter& json, std::string_view name, gpu::Known number);
void write_reasons(JsonWriter& json, std::string_view name, const std::vector<Reason>& reasons);
void write_starts(JsonWriter& json, std::string_view name, gpu::Starts starts);
std::string print_starts(gpu::Starts starts);  // "0,4"

}  // namespace bulkhead::cli
