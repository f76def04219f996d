// The whole model as bytes, so that it outlives the process that works on it.
#include "bulkhead/base/hash.hpp"
#include "bulkhead/node/archive_node.hpp"
#include "bulkhead/node/model.hpp"

namespace bulkhead {

namespace archive {

void fields(auto& a, Of<InstalledVersion> auto& v) { a(v.component, v.version); }
void fields(auto& a, Of<NodeModelSpec> auto& v) {
    a(v.node, v.gpu_model, v.gpus, v.drives, v.drive_size, v.functions, v.capabilities, v.versions, v.cpu, v.memory,
      v.nvlink, v.confidential_mode);
}
void fields(auto& a, Of<ModelFaults> auto& v) { a(v.fail, v.lie, v.hang); }
void fields(auto& a, Of<StartTenant> auto& v) {
    a(v.lease, v.tier, v.gpus, v.drives, v.functions, v.tenant, v.mechanism, v.program, v.ports);
}
void fields(auto& a, Of<NodeModel::Instance> auto& v) { a(v.profile, v.start, v.size); }

}  // namespace archive

namespace {

constexpr std::string_view model_magic = "BHM4";

}  // namespace

// Private parts are walked here, where they may be named.
template <class Archive, class Self>
void NodeModel::walk(Archive& archive, Self& self) {
    archive(self.spec_);
    auto gpus = self.gpus_.size(), drives = self.drives_.size(), functions = self.functions_.size(),
         tenants = self.tenants_.size();
    archive(gpus, drives, functions, tenants);
    if constexpr (!std::is_const_v<Self>) {
        // The rest of the bytes must bear this out; each takes at least one.
        if (archive.failed() || gpus != self.spec_.gpus || drives != self.spec_.drives ||
            functions != self.spec_.functions || !archive.has(gpus + drives + functions) || !archive.has(tenants))
            return archive.fail();
        self.gpus_.resize(gpus);
        self.drives_.resize(drives);
        self.functions_.resize(functions);
        for (; tenants > 0 && !archive.failed(); --tenants) {
            Tenant tenant;
            archive(tenant.what);
            self.tenants_[tenant.what.lease] = std::move(tenant);
        }
    } else {
        for (const auto& [lease, tenant] : self.tenants_) archive(tenant.what);
    }
    for (auto& gpu : self.gpus_) archive(gpu.lost, gpu.mig, gpu.instances, gpu.contents);
    for (auto& drive : self.drives_) archive(drive.attached, drive.contents);
    for (auto& function : self.functions_) archive(function.attached, function.addresses);
    archive(self.ran_on_kernel_, self.host_contents_, self.boots_, self.image_good_, self.slowness_, self.faults_,
            self.fail_starts_, self.fail_stops_, self.hang_starts_, self.hang_stops_);
}

std::string NodeModel::to_bytes() const {
    archive::Writer writer;
    walk(writer, *this);
    const std::string payload = writer.take();
    const Hash hash = sha256(payload);
    std::string bytes{model_magic};
    bytes += bytes_of(hash);
    bytes += payload;
    return bytes;
}

Result<NodeModel> NodeModel::from_bytes(std::string_view bytes) {
    const auto damaged = [](std::string what) {
        return fail(Code::corrupt, std::move(what), "remove the file: the model then begins anew, with dirty hardware");
    };
    if (!bytes.starts_with(model_magic)) return damaged("this is no node model, or one of another version");
    bytes.remove_prefix(model_magic.size());
    const std::size_t hash_bytes = sizeof(Hash);
    if (bytes.size() < hash_bytes) return damaged("the node model is cut short");
    const std::string_view payload = bytes.substr(hash_bytes);
    const Hash hash = sha256(payload);
    if (bytes.substr(0, hash_bytes) != bytes_of(hash)) return damaged("the node model does not fit its checksum");
    NodeModel model{NodeModelSpec{.gpus = 0}};
    archive::Reader reader{payload};
    walk(reader, model);
    if (reader.failed() || !reader.at_end() || !model.is_sound()) return damaged("the node model cannot be read");
    return model;
}

// What the checksum cannot promise when someone else wrote the bytes.
bool NodeModel::is_sound() const {
    for (const Gpu& gpu : gpus_) {
        if (gpu.contents.size() != slices_per_gpu()) return false;
        for (const Instance& there : gpu.instances)
            if (!is_profile(there) || unsigned{there.start} + there.size > slices_per_gpu()) return false;
    }
    for (const auto& [lease, tenant] : tenants_)
        for (const GpuPart& part : tenant.what.gpus)
            if (part.gpu >= gpus_.size()) return false;
    return slowness_ >= 0 && slowness_ <= 1'000'000'000;
}

bool NodeModel::is_profile(const Instance& instance) const {
    const gpu::Board* known = board();
    if (known == nullptr) return false;
    for (const gpu::Profile& profile : known->profiles)
        if (profile.name == instance.profile) return profile.memory_slices == instance.size;
    return false;
}

}  // namespace bulkhead
