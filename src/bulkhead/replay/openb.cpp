#include "bulkhead/replay/openb.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "bulkhead/codec/diagnostic.hpp"
#include "bulkhead/replay/csv_lines.hpp"

namespace bulkhead::replay {

namespace {

constexpr std::size_t most_models = 32;
// What no machine has and no trace needs; with these, every sum and product in packing stays far within 64 bits.
constexpr std::int64_t most_milli = 10'000'000, most_mib = std::int64_t{1} << 40;
constexpr std::size_t most_listed_nodes = 100'000, most_tasks = 1'000'000;

}  // namespace

std::int64_t OpenbFleet::capacity() const {
    std::int64_t sum = 0;
    for (const sched::NodeRoom& node : nodes) sum += std::int64_t{node.gpus} * 1000;
    return sum;
}

Result<OpenbFleet> read_openb_nodes(std::string_view name, std::string_view text) {
    CsvLines lines{name, text};
    const auto at = lines.columns<5>({"sn", "cpu_milli", "memory_mib", "gpu", "model"}, 5);
    if (!at) return std::unexpected(at.error());
    OpenbFleet fleet;
    std::map<std::string, sched::NodeRoom> by_name;
    while (lines.next()) {
        const auto cpu = lines.number((*at)[1], "cpu_milli", 0, most_milli);
        const auto memory = lines.number((*at)[2], "memory_mib", 0, most_mib);
        const auto gpus = lines.number((*at)[3], "gpu", 0, sched::most_gpus_of_node);
        for (const auto* read : {&cpu, &memory, &gpus})
            if (!*read) return std::unexpected(read->error());
        const std::string model{lines.cell((*at)[4])};
        auto known = std::ranges::find(fleet.models, model);
        if (known == fleet.models.end()) {
            if (fleet.models.size() == most_models)
                return lines.wrong("there are too many models", fmt::format("at most {}", most_models));
            known = fleet.models.insert(fleet.models.end(), model);
        }
        sched::NodeRoom node{.cpu = *cpu,
                             .memory = *memory,
                             .model = static_cast<std::uint8_t>(known - fleet.models.begin()),
                             .gpus = static_cast<std::uint8_t>(*gpus)};
        std::fill_n(node.free.begin(), node.gpus, std::int16_t{1000});
        if (by_name.size() == most_listed_nodes)
            return lines.wrong("there are too many nodes", fmt::format("at most {}", most_listed_nodes));
        if (!by_name.emplace(lines.cell((*at)[0]), node).second)
            return lines.wrong(fmt::format("node \"{}\" is there twice", shortened(lines.cell((*at)[0]))),
                               "each node once");
    }
    for (const auto& [node, room] : by_name) {
        fleet.names.push_back(node);
        fleet.nodes.push_back(room);
    }
    if (fleet.capacity() == 0) return fail(Code::invalid, fmt::format("{} has no GPUs", name), "a list of GPU nodes");
    return fleet;
}

Result<OpenbTasks> read_openb_tasks(std::string_view name, std::string_view text, const OpenbFleet& fleet) {
    CsvLines lines{name, text};
    const auto at = lines.columns<5>({"cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec"}, 4);
    if (!at) return std::unexpected(at.error());
    OpenbTasks out;
    std::map<sched::TaskShape, std::uint32_t> known;
    while (lines.next()) {
        const auto cpu = lines.number((*at)[0], "cpu_milli", 0, most_milli);
        const auto memory = lines.number((*at)[1], "memory_mib", 0, most_mib);
        const auto gpus = lines.number((*at)[2], "num_gpu", 0, sched::most_gpus_of_node);
        const auto share = lines.number((*at)[3], "gpu_milli", 0, 1000);
        for (const auto* read : {&cpu, &memory, &gpus, &share})
            if (!*read) return std::unexpected(read->error());
        sched::TaskShape shape{.cpu = *cpu, .memory = *memory, .gpus = static_cast<std::int32_t>(*gpus)};
        if (shape.gpus > 0) shape.share = shape.gpus > 1 ? 1000 : static_cast<std::int32_t>(*share);
        if (shape.gpus == 1 && shape.share == 0)
            return lines.wrong("one GPU is asked for, and nothing of it", "gpu_milli from 1 to 1000");
        if (std::string_view models = lines.cell((*at)[4]); !models.empty()) {
            shape.models = 0;
            while (!models.empty()) {
                const std::size_t end = std::min(models.find('|'), models.size());
                const auto model = std::ranges::find(fleet.models, models.substr(0, end));
                if (model != fleet.models.end())
                    shape.models |= 1u << (model - fleet.models.begin());
                else
                    out.unknown_models.emplace(models.substr(0, end));
                models.remove_prefix(std::min(end + 1, models.size()));
            }
        }
        if (out.tasks.size() == most_tasks)
            return lines.wrong("there are too many tasks", fmt::format("at most {}", most_tasks));
        const auto [entry, fresh] = known.emplace(shape, static_cast<std::uint32_t>(out.shapes.size()));
        if (fresh) out.shapes.push_back(shape);
        out.tasks.push_back(entry->second);
    }
    if (std::ranges::none_of(out.shapes, [](const sched::TaskShape& shape) { return shape.gpus > 0; }))
        return fail(Code::invalid, fmt::format("no task of {} asks for a GPU", name), "a list of GPU tasks");
    return out;
}

}  // namespace bulkhead::replay
