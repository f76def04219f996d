#include <fmt/format.h>

#include <ostream>

#include "bulkhead/cli/mig.hpp"

namespace bulkhead::cli {

namespace {

using gpu::AmdBoard;
using gpu::ComputeMode;
using gpu::MemoryMode;

constexpr MemoryMode every_memory_mode[]{MemoryMode::nps1, MemoryMode::nps2, MemoryMode::nps4, MemoryMode::nps8};

void write(const AmdBoard& board, Context& context) {
    JsonWriter json;
    json.begin_object();
    json.member("gpu", board.id);
    json.member("product", board.product);
    json.member("xcds", board.xcds);
    member_or_null(json, "computeUnits", board.compute_units);
    member_or_null(json, "memoryGB", board.memory_gb);
    json.member("singleResource", gpu::amd_single_resource);
    json.key("modes");
    json.begin_array();
    for (const ComputeMode compute : board.compute_modes)
        for (const MemoryMode memory : every_memory_mode) {
            const gpu::AmdVerdict verdict = judge(board, compute, memory);
            json.begin_object();
            json.member("compute", print(compute));
            json.member("memory", print(memory));
            json.member("standing", print(verdict.standing));
            json.member("partitions", verdict.partitions);
            member_or_null(json, "computeUnitsPerPartition", verdict.compute_units);
            member_or_null(json, "memoryGBPerPartition", verdict.memory_gb);
            json.key("resource");
            if (verdict.standing == gpu::Standing::invalid)
                json.null();
            else
                json.value(gpu::amd_resource_name(compute, memory));
            if (!verdict.min_rocm.empty()) json.member("minRocm", verdict.min_rocm);
            json.member("why", verdict.why);
            json.end_object();
        }
    json.end_array();
    json.member("caution", board.caution);
    json.end_object();
    context.out << json.take();
}

}  // namespace

int mig_amd_modes(const AmdBoard& board, const MigOptions& options, Context& context) {
    if (options.compute || !options.have.empty())
        return complain(context, bad_input,
                        {Code::invalid,
                         fmt::format("{} is about MIG; {} is divided by partition modes, not into MIG profiles",
                                     options.compute ? "--ci" : "--have", board.product),
                         fmt::format("bulkhead mig profiles --gpu {}", board.id)});
    if (options.json()) {
        write(board, context);
        return done;
    }
    context.out << fmt::format("{}: {}; {} XCDs, {} compute units, {} GB\n\n", board.id, board.product, board.xcds,
                               dash(board.compute_units), dash(board.memory_gb));
    std::vector<std::vector<std::string>> rows{
        {"COMPUTE", "MEMORY", "STANDING", "PARTITIONS", "CUS", "GB", "ROCM", "RESOURCE (MIXED)", "WHY"}};
    for (const ComputeMode compute : board.compute_modes)
        for (const MemoryMode memory : every_memory_mode) {
            const gpu::AmdVerdict verdict = judge(board, compute, memory);
            rows.push_back({std::string{print(compute)}, std::string{print(memory)},
                            std::string{print(verdict.standing)}, std::to_string(verdict.partitions),
                            dash(verdict.compute_units), dash(verdict.memory_gb),
                            verdict.min_rocm.empty() ? "-" : std::string{verdict.min_rocm},
                            verdict.standing == gpu::Standing::invalid ? "-" : gpu::amd_resource_name(compute, memory),
                            verdict.why});
        }
    context.out << aligned(rows)
                << fmt::format("\nresource under strategy single: {}\ncaution: {}\n", gpu::amd_single_resource,
                               board.caution);
    return done;
}

}  // namespace bulkhead::cli
