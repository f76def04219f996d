#include "session.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace bulkhead::nvml {

namespace {

bool has_device(const driver::Model& model, std::uint16_t gpu) { return gpu < model.gpus(); }

template <class Handle, class Objects>
bool is_one_of(Handle handle, const Objects& objects) {
    return std::ranges::any_of(objects, [&](const auto& object) { return object.get() == handle; });
}

}  // namespace

Session& Session::get() {
    static auto* session = new Session;  // never destroyed: a client may call from its own last destructors
    return *session;
}

std::optional<std::uint64_t>& Session::lie() {
    thread_local std::optional<std::uint64_t> told;
    return told;
}

Return code(driver::Refusal refusal) {
    switch (refusal) {
        case driver::Refusal::invalid:
            return Return::invalid_argument;
        case driver::Refusal::not_supported:
        case driver::Refusal::prohibited:
            return Return::not_supported;
        case driver::Refusal::not_found:
            return Return::not_found;
        case driver::Refusal::in_use:
            return Return::in_use;
        case driver::Refusal::no_room:
            return Return::insufficient_resources;
        case driver::Refusal::no_memory:
            return Return::memory;
        case driver::Refusal::reset_required:
            return Return::reset_required;
        case driver::Refusal::lost:
            return Return::gpu_is_lost;
    }
    return Return::unknown;
}

Return Session::init(std::uint32_t flags) {
    if ((flags & ~(init_no_gpus | init_no_attach | init_force)) != 0) return Return::invalid_argument;
    const std::scoped_lock held{mutex_};
    if (users_ == 0) {
        const char* directory = std::getenv("BULKHEAD_SIM_NODE");
        if (directory == nullptr || *directory == '\0') return Return::driver_not_loaded;
        auto store = std::make_shared<nvml_sim::Store>(directory);
        const auto turn = store->take();
        if (!turn)
            return turn.error().code == Code::corrupt || turn.error().code == Code::invalid ? Return::unknown
                                                                                            : Return::driver_not_loaded;
        store_ = std::move(store);
    }
    ++users_;
    return Return::success;
}

Return Session::shutdown() {
    const std::scoped_lock held{mutex_};
    if (users_ == 0) return Return::uninitialized;
    if (--users_ > 0) return Return::success;
    store_.reset();
    // The next node may be another. Handles of GPUs stay good, as clients expect of them; those of what was cut do not.
    std::erase_if(devices_, [](const auto& object) { return !object->mig.empty(); });
    instances_.clear();
    computes_.clear();
    event_sets_.clear();
    return Return::success;
}

Return Session::answer(std::string_view call, Access access, const std::function<Return(driver::Model&)>& work) {
    std::unique_lock held{mutex_};
    if (users_ == 0) return Return::uninitialized;
    const std::shared_ptr<nvml_sim::Store> store = store_;  // whoever is slow may be the last
    auto met = store->meet(call, held);
    if (!met) return Return::unknown;
    if (met->fail) return static_cast<Return>(*met->fail);
    // Whatever changes something is root's alone; that this is looked at before anything else is assumed.
    if (access == Access::change && !store->is_administered_by_us()) return Return::no_permission;
    if (access == Access::change && met->lie) return Return::success;  // it only says so
    if (access == Access::change) met->turn.model().advance(now());
    lie() = met->lie;
    const Return result = work(met->turn.model());
    lie().reset();
    if (access == Access::change && !met->turn.save()) return Return::unknown;
    return result;
}

Device Session::device(std::uint16_t gpu) { return mig(gpu, {}); }

Device Session::mig(std::uint16_t gpu, const std::string& uuid) {
    for (const auto& object : devices_)
        if (object->gpu == gpu && object->mig == uuid) return object.get();
    return devices_.emplace_back(std::make_unique<DeviceObject>(gpu, uuid)).get();
}

GpuInstance Session::instance(const driver::GpuInstance& there, std::uint16_t gpu) {
    for (const auto& object : instances_)
        if (object->gpu == gpu && object->born == there.born) return object.get();
    return instances_.emplace_back(std::make_unique<GpuInstanceObject>(gpu, there.id, there.born)).get();
}

ComputeInstance Session::compute(std::uint16_t gpu, std::uint32_t instance, const driver::ComputeInstance& there) {
    for (const auto& object : computes_)
        if (object->uuid == there.uuid) return object.get();
    return computes_.emplace_back(std::make_unique<ComputeInstanceObject>(gpu, instance, there.id, there.uuid)).get();
}

EventSet Session::make_event_set() { return event_sets_.emplace_back(std::make_unique<EventSetObject>()).get(); }

bool Session::drop(EventSet set) {
    return std::erase_if(event_sets_, [&](const auto& object) { return object.get() == set; }) > 0;
}

EventSetObject* Session::find(EventSet set) { return is_one_of(set, event_sets_) ? set : nullptr; }

Found<Target> Session::find(const driver::Model& model, Device device) const {
    if (!is_one_of(device, devices_) || !has_device(model, device->gpu))
        return std::unexpected(Return::invalid_argument);
    if (model.gpu(device->gpu).lost) return std::unexpected(Return::gpu_is_lost);
    if (device->mig.empty()) return Target{{.gpu = device->gpu}, {}};
    const auto there = model.mig_device_by_uuid(device->mig);
    if (!there) return std::unexpected(Return::invalid_argument);  // it is gone, and its handle with it
    return Target{there->where, there};
}

Found<Target> Session::find_gpu(const driver::Model& model, Device device) const {
    auto target = find(model, device);
    if (target && target->mig) return std::unexpected(Return::invalid_argument);
    return target;
}

Found<const GpuInstanceObject*> Session::find(const driver::Model& model, GpuInstance handle) const {
    if (!is_one_of(handle, instances_) || !has_device(model, handle->gpu))
        return std::unexpected(Return::invalid_argument);
    if (model.gpu(handle->gpu).lost) return std::unexpected(Return::gpu_is_lost);
    const driver::GpuInstance* there = model.instance(handle->gpu, handle->id);
    if (there == nullptr || there->born != handle->born) return std::unexpected(Return::invalid_argument);
    return handle;
}

Found<const ComputeInstanceObject*> Session::find(const driver::Model& model, ComputeInstance handle) const {
    if (!is_one_of(handle, computes_) || !has_device(model, handle->gpu))
        return std::unexpected(Return::invalid_argument);
    if (model.gpu(handle->gpu).lost) return std::unexpected(Return::gpu_is_lost);
    if (!model.mig_device_by_uuid(handle->uuid)) return std::unexpected(Return::invalid_argument);
    return handle;
}

Return put_text(char* out, std::uint32_t length, std::string_view text) {
    if (out == nullptr) return Return::invalid_argument;
    if (length < text.size() + 1) return Return::insufficient_size;
    std::copy(text.begin(), text.end(), out);
    out[text.size()] = '\0';
    return Return::success;
}

Return ask(std::string_view call, Device device,
           const std::function<Return(const driver::Model&, const Target&)>& work) {
    Session& session = Session::get();
    return session.answer(call, Session::Access::read, [&](const driver::Model& model) {
        const auto target = session.find(model, device);
        return target ? work(model, *target) : target.error();
    });
}

Return ask_gpu(std::string_view call, Device device,
               const std::function<Return(const driver::Model&, std::uint16_t)>& work) {
    Session& session = Session::get();
    return session.answer(call, Session::Access::read, [&](const driver::Model& model) {
        const auto target = session.find_gpu(model, device);
        return target ? work(model, target->gpu()) : target.error();
    });
}

Return change_gpu(std::string_view call, Device device,
                  const std::function<Return(driver::Model&, std::uint16_t)>& work) {
    Session& session = Session::get();
    return session.answer(call, Session::Access::change, [&](driver::Model& model) {
        const auto target = session.find_gpu(model, device);
        return target ? work(model, target->gpu()) : target.error();
    });
}

}  // namespace bulkhead::nvml
