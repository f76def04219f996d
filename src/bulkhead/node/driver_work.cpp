// Processes and the memory they hold, and what a GPU looks like while they work.
#include <algorithm>

#include "bulkhead/node/driver_model.hpp"

namespace bulkhead::driver {

namespace {

constexpr std::uint64_t page = std::uint64_t{2} << 20;  // the driver hands out memory in these

constexpr std::uint64_t whole_pages(std::uint64_t bytes) { return (bytes + page - 1) / page * page; }

Range pages_of(const Allocation& allocation) { return {allocation.range.begin, whole_pages(allocation.range.size)}; }

bool covers(const Place& outer, const Place& inner) {
    return outer.gpu == inner.gpu && (!outer.gpu_instance || outer.gpu_instance == inner.gpu_instance);
}

}  // namespace

Answer<> Model::attach(Process process) {
    const Place& where = process.where;
    if (const auto can = usable(where.gpu); !can) return can;
    Gpu& gpu = gpus_[where.gpu];
    if (gpu.mig != where.compute_instance.has_value()) return std::unexpected(Refusal::not_supported);
    if (where.compute_instance) {
        const GpuInstance* there = instance(where.gpu, where.gpu_instance.value_or(~0u));
        if (there == nullptr || !there->compute.contains(*where.compute_instance))
            return std::unexpected(Refusal::not_found);
    }
    if (gpu.compute_mode == ComputeMode::prohibited) return std::unexpected(Refusal::prohibited);
    for (Process& there : gpu.processes) {
        if (there.where != where) continue;
        if (there.pid == process.pid) {
            there.kind = process.kind;
            return {};
        }
        // Clients of an MPS server are one process to it: the server.
        if (gpu.compute_mode == ComputeMode::exclusive_process &&
            (there.kind != ProcessKind::mps || process.kind != ProcessKind::mps))
            return std::unexpected(Refusal::prohibited);
    }
    const MemoryUse use = memory(where);
    if (process.context_bytes > use.free()) return std::unexpected(Refusal::no_memory);
    gpu.processes.push_back(process);
    return {};
}

Answer<> Model::set_load(std::uint32_t pid, Place where, std::uint32_t sm_percent, std::uint32_t memory_percent) {
    if (const auto can = usable(where.gpu); !can) return can;
    if (sm_percent > 100 || memory_percent > 100) return std::unexpected(Refusal::invalid);
    for (Process& process : gpus_[where.gpu].processes)
        if (process.pid == pid && process.where == where) {
            process.sm_percent = sm_percent;
            process.memory_percent = memory_percent;
            return {};
        }
    return std::unexpected(Refusal::not_found);
}

void Model::release(Gpu& gpu, const Allocation& allocation) {
    if (!gpu.keeps_residue) gpu.contents.fill(pages_of(allocation), {});
}

void Model::detach(std::uint32_t pid, const Place& where) {
    Gpu& gpu = gpus_[where.gpu];
    std::erase_if(gpu.processes, [&](const Process& process) { return process.pid == pid && process.where == where; });
    std::erase_if(gpu.allocations, [&](const auto& held) {
        if (held.second.pid != pid || held.second.where != where) return false;
        release(gpu, held.second);
        return true;
    });
}

void Model::end(std::uint32_t pid) {
    for (const Gpu& gpu : gpus_)
        for (const Process& process : std::vector{gpu.processes})
            if (process.pid == pid) detach(pid, process.where);
}

// Memory of an instance is a part of the GPU's, at the place of its slices: what one tenant leaves there, the next one
// at the same place would find.
Range Model::memory_of(const Place& where) const {
    const Product& product = *products_[where.gpu];
    if (!where.gpu_instance) {
        return {product.reserved_bytes(), product.memory_bytes() - product.reserved_bytes()};
    }
    const GpuInstance* there = instance(where.gpu, *where.gpu_instance);
    if (there == nullptr) return {};
    const GpuProfile& of = *profile(where.gpu, there->profile_id);
    const std::uint64_t slice = product.memory_bytes() / product.board()->memory_slices / page * page;
    return {there->start * slice, std::min(of.memory_slices * slice, std::uint64_t{of.memory_mib} << 20)};
}

MemoryUse Model::memory(const Place& where) const {
    const Gpu& gpu = gpus_[where.gpu];
    const Product& product = *products_[where.gpu];
    MemoryUse use;
    if (where.gpu_instance) {
        use.total = memory_of(where).size;
    } else {
        use.total = product.memory_bytes();
        use.reserved = product.reserved_bytes();
    }
    for (const Process& process : gpu.processes)
        if (covers(where, process.where)) use.used += process.context_bytes;
    for (const auto& [base, allocation] : gpu.allocations)
        if (covers(where, allocation.where)) use.used += whole_pages(allocation.range.size);
    use.used = std::min(use.used, use.total - use.reserved);
    return use;
}

Answer<std::uint64_t> Model::allocate(std::uint32_t pid, Place where, std::uint64_t bytes) {
    if (const auto can = usable(where.gpu); !can) return std::unexpected(can.error());
    Gpu& gpu = gpus_[where.gpu];
    if (std::ranges::none_of(gpu.processes, [&](const Process& p) { return p.pid == pid && p.where == where; }))
        return std::unexpected(Refusal::not_found);
    if (bytes == 0) return std::unexpected(Refusal::invalid);
    const Range all = memory_of(where);
    if (bytes > memory(where).free() || whole_pages(bytes) > memory(where).free())
        return std::unexpected(Refusal::no_memory);
    // The first hole that is large enough.
    std::uint64_t at = whole_pages(all.begin);
    for (const auto& [base, held] : gpu.allocations) {
        if (held.range.end() <= at) continue;
        if (base >= at + whole_pages(bytes)) break;
        at = pages_of(held).end();
    }
    if (!all.contains({at, bytes})) return std::unexpected(Refusal::no_memory);
    gpu.allocations[at] = {{at, bytes}, pid, where};
    return at;
}

Answer<> Model::free(std::uint32_t pid, std::uint16_t gpu, std::uint64_t base) {
    if (const auto can = usable(gpu); !can) return can;
    const auto found = gpus_[gpu].allocations.find(base);
    if (found == gpus_[gpu].allocations.end() || found->second.pid != pid) return std::unexpected(Refusal::not_found);
    release(gpus_[gpu], found->second);
    gpus_[gpu].allocations.erase(found);
    return {};
}

bool Model::holds(std::uint32_t pid, std::uint16_t gpu, Range range) const {
    auto at = gpus_[gpu].allocations.upper_bound(range.begin);
    if (at == gpus_[gpu].allocations.begin()) return false;
    --at;
    return at->second.pid == pid && at->second.range.contains(range);
}

Answer<> Model::fill(std::uint32_t pid, std::uint16_t gpu, Range range, const Pattern& pattern) {
    if (const auto can = usable(gpu); !can) return can;
    if (!holds(pid, gpu, range)) return std::unexpected(Refusal::invalid);
    gpus_[gpu].contents.fill(range, pattern);
    return {};
}

Answer<> Model::write(std::uint32_t pid, std::uint16_t gpu, std::uint64_t begin, std::string_view bytes) {
    if (const auto can = usable(gpu); !can) return can;
    if (!holds(pid, gpu, {begin, bytes.size()})) return std::unexpected(Refusal::invalid);
    if (!gpus_[gpu].contents.write(begin, bytes)) return std::unexpected(Refusal::no_memory);
    return {};
}

Answer<std::string> Model::read(std::uint32_t pid, std::uint16_t gpu, Range range) const {
    if (const auto can = usable(gpu); !can) return std::unexpected(can.error());
    if (!holds(pid, gpu, range)) return std::unexpected(Refusal::invalid);
    return gpus_[gpu].contents.read(range);
}

Answer<GpuMemory::Tally> Model::compare(std::uint32_t pid, std::uint16_t gpu, Range range,
                                        const Pattern& pattern) const {
    if (const auto can = usable(gpu); !can) return std::unexpected(can.error());
    if (!holds(pid, gpu, range)) return std::unexpected(Refusal::invalid);
    return gpus_[gpu].contents.compare(range, pattern);
}

Load Model::load(std::uint16_t index) const {
    const Product& product = *products_[index];
    Load load;
    for (const Process& process : gpus_[index].processes) {
        load.sm_percent += process.sm_percent;
        load.memory_percent += process.memory_percent;
    }
    load.sm_percent = std::min(load.sm_percent, 100u);
    load.memory_percent = std::min(load.memory_percent, 100u);
    const std::uint32_t limit = gpus_[index].power_limit_mw, idle = std::min(product.power.idle_mw, limit);
    load.power_mw = idle + (limit - idle) / 100 * load.sm_percent;
    // An idle H200 was 37 degrees warm, and its memory 36.
    load.celsius = 37 + load.sm_percent * 2 / 5;
    load.memory_celsius = 36 + load.memory_percent * 2 / 5;
    load.clocks = load.sm_percent > 0 ? product.busiest : product.idle;
    return load;
}

std::uint64_t Model::energy_mj(std::uint16_t gpu, Instant now) const {
    const std::int64_t ms = std::max<std::int64_t>(0, (now - advanced_).ms);
    const std::uint64_t since = advanced_ == Instant{} ? 0 : static_cast<std::uint64_t>(ms) * load(gpu).power_mw / 1000;
    return gpus_[gpu].energy_mj + since;
}

void Model::advance(Instant now) {
    for (std::size_t gpu = 0; gpu < gpus_.size(); ++gpu)
        gpus_[gpu].energy_mj = energy_mj(static_cast<std::uint16_t>(gpu), now);
    advanced_ = std::max(advanced_, now);
}

}  // namespace bulkhead::driver
