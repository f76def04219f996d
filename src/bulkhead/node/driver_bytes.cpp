// The whole model as bytes, so that processes can hand it to each other and it outlives them.
#include <algorithm>

#include "bulkhead/node/archive.hpp"
#include "bulkhead/node/driver_model.hpp"

namespace bulkhead {

namespace archive {

void fields(auto& a, Of<driver::GpuSpec> auto& v) {
    a(v.product, v.uuid, v.serial, v.pci_domain, v.pci_bus, v.pci_device, v.minor);
}
void fields(auto& a, Of<driver::Spec> auto& v) {
    a(v.node, v.gpus, v.driver, v.vbios, v.cuda, v.fabric, v.gpus_per_socket, v.cpu_protection, v.confidential,
      v.passed_through, v.keeps_residue);
}
void fields(auto& a, Of<driver::Range> auto& v) { a(v.begin, v.size); }
void fields(auto& a, Of<driver::Place> auto& v) { a(v.gpu, v.gpu_instance, v.compute_instance); }
void fields(auto& a, Of<driver::ComputeInstance> auto& v) { a(v.id, v.profile, v.start, v.index, v.uuid); }
void fields(auto& a, Of<driver::GpuInstance> auto& v) { a(v.id, v.profile_id, v.start, v.born, v.compute); }
void fields(auto& a, Of<driver::Process> auto& v) {
    a(v.pid, v.started, v.where, v.kind, v.context_bytes, v.sm_percent, v.memory_percent);
}
void fields(auto& a, Of<driver::Allocation> auto& v) { a(v.range, v.pid, v.where); }
void fields(auto& a, Of<driver::Health> auto& v) {
    a(v.corrected, v.uncorrected, v.corrected_lifetime, v.uncorrected_lifetime, v.remapped_corrected,
      v.remapped_uncorrected, v.remap_pending, v.remap_failed);
}
void fields(auto& a, Of<driver::Event> auto& v) { a(v.number, v.kind, v.where, v.data); }
void fields(auto& a, Of<driver::Fault> auto& v) { a(v.call, v.kind, v.value, v.times); }
void fields(auto& a, Of<driver::GpuMemory::Run> auto& v) {
    for (auto* words : {&v.pattern.mul, &v.pattern.add}) a((*words)[0], (*words)[1], (*words)[2], (*words)[3]);
    a(v.size, v.phase, v.bytes);
}
void fields(auto& a, Of<driver::GpuMemory> auto& v) {
    if constexpr (std::is_const_v<std::remove_reference_t<decltype(v)>>) {
        a(v.all());
    } else {
        auto runs = v.all();
        a(runs);
        v = driver::GpuMemory::of(std::move(runs));
    }
}
void fields(auto& a, Of<driver::Gpu> auto& v) {
    a(v.mig, v.mig_pending, v.instances, v.processes, v.allocations, v.contents, v.health, v.compute_mode,
      v.persistence, v.timeslice, v.power_limit_mw, v.energy_mj, v.lost, v.keeps_residue, v.stuck);
}

}  // namespace archive

namespace driver {

namespace {

constexpr std::string_view driver_magic = "BHG2";

}  // namespace

template <class Archive, class Self>
void Model::walk(Archive& archive, Self& self) {
    archive(self.spec_, self.gpus_, self.events_, self.faults_, self.next_event_, self.next_born_, self.advanced_,
            self.boots_, self.ready_);
}

std::string Model::to_bytes() const {
    archive::Writer writer;
    walk(writer, *this);
    return std::string{driver_magic} + writer.take();
}

Result<Model> Model::from_bytes(std::string_view bytes) {
    const auto damaged = [](std::string what) {
        return fail(Code::corrupt, std::move(what), "remove the file: the node then begins anew");
    };
    if (!bytes.starts_with(driver_magic))
        return damaged("this is no state of a simulated driver, or one of another version");
    archive::Reader reader{bytes.substr(driver_magic.size())};
    Model model{Spec{}};
    walk(reader, model);
    if (reader.failed() || !reader.at_end()) return damaged("the state of the simulated driver cannot be read");
    const auto exists = [](const GpuSpec& gpu) { return find_product(gpu.product).has_value(); };
    if (model.gpus_.size() > gpus_max || model.gpus_.size() != model.spec_.gpus.size() ||
        !std::ranges::all_of(model.spec_.gpus, exists))
        return damaged("the state of the simulated driver names GPUs that do not exist");
    model.look_up_products();
    if (!model.is_sound()) return damaged("the state of the simulated driver contradicts itself");
    return model;
}

// What nothing else promises when somebody else wrote the bytes.
bool Model::is_sound() const {
    for (std::size_t index = 0; index < gpus_.size(); ++index) {
        const auto i = static_cast<std::uint16_t>(index);
        const Gpu& gpu = gpus_[index];
        if (!gpu.contents.is_sound(products_[i]->memory_bytes())) return false;
        if ((gpu.mig || gpu.mig_pending || !gpu.instances.empty()) && products_[i]->board() == nullptr) return false;
        for (const auto& [id, there] : gpu.instances) {
            if (there.id != id || profile(i, there.profile_id) == nullptr ||
                !profile(i, there.profile_id)->starts.contains(there.start))
                return false;
            for (const auto& [compute_id, compute] : there.compute)
                if (compute.id != compute_id || !compute_profile(i, id, compute.profile) || compute.start > 8)
                    return false;
        }
        for (const Process& process : gpu.processes)
            if (process.where.gpu != i || process.sm_percent > 100 || process.memory_percent > 100 ||
                process.context_bytes > products_[i]->memory_bytes())
                return false;
        const Range all{0, products_[i]->memory_bytes()};
        for (const auto& [base, held] : gpu.allocations)
            if (held.range.begin != base || held.where.gpu != i || !all.contains(held.range)) return false;
        if (gpu.power_limit_mw > 10'000'000) return false;
    }
    for (const Event& event : events_)
        if (event.where.gpu >= gpus_.size()) return false;
    return true;
}

}  // namespace driver

}  // namespace bulkhead
