#include "process.hpp"

#include <unistd.h>

#include <charconv>
#include <cstdlib>

namespace bulkhead::cuda_sim {

namespace {

constexpr std::uint64_t context_bytes = std::uint64_t{512} << 20;  // about what one takes of an H200

std::optional<Visible> find_device(const driver::Model& model, std::string_view name) {
    std::uint16_t index = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
    const bool is_number = error == std::errc{} && end == name.data() + name.size();
    for (std::uint16_t gpu = 0; gpu < model.gpus(); ++gpu) {
        const std::string& uuid = model.spec().gpus[gpu].uuid;
        // A beginning of a UUID names it too, and must say at least that it is one.
        if (is_number ? index != gpu : !(name.starts_with("GPU-") && uuid.starts_with(name))) continue;
        if (!model.gpu(gpu).mig) return Visible{{.gpu = gpu}, uuid};
        const auto first = model.mig_device(gpu, 0);
        return first ? std::optional{Visible{first->where, first->compute->uuid}} : std::nullopt;
    }
    const auto mig = model.mig_device_by_uuid(name);
    return mig ? std::optional{Visible{mig->where, mig->compute->uuid}} : std::nullopt;
}

// A client of an MPS server is one from its first call on, where there is a server to be a client of.
bool is_client() {
    const char* const pipes = std::getenv("CUDA_MPS_PIPE_DIRECTORY");
    return pipes != nullptr && ::access((std::string{pipes} + "/control").c_str(), F_OK) == 0;
}

}  // namespace

std::vector<Visible> visible_devices(const driver::Model& model, std::optional<std::string_view> wanted) {
    std::vector<Visible> found;
    if (!wanted) {
        std::optional<Visible> mig;
        for (std::uint16_t gpu = 0; gpu < model.gpus(); ++gpu) {
            const auto device = find_device(model, model.spec().gpus[gpu].uuid);
            if (device && !device->where.gpu_instance) found.push_back(*device);
            if (device && device->where.gpu_instance && !mig) mig = device;
        }
        if (found.empty() && mig) found.push_back(*mig);
        return found;
    }
    for (std::string_view left = *wanted; !left.empty();) {
        const std::size_t comma = left.find(',');
        const auto device = find_device(model, left.substr(0, comma));
        if (!device) break;
        if (device->where.gpu_instance) return found.empty() ? std::vector{*device} : found;
        found.push_back(*device);
        left = comma == std::string_view::npos ? std::string_view{} : left.substr(comma + 1);
    }
    return found;
}

Process& Process::get() {
    static auto* process = new Process;  // never destroyed: a client may call from its own last destructors
    return *process;
}

Context*& Process::current() {
    thread_local Context* context = nullptr;
    return context;
}

std::uint32_t my_pid() { return static_cast<std::uint32_t>(::getpid()); }

int code(driver::Refusal refusal) {
    switch (refusal) {
        case driver::Refusal::invalid:
            return invalid_value;
        case driver::Refusal::not_found:
            return invalid_value;
        case driver::Refusal::no_memory:
        case driver::Refusal::no_room:
            return out_of_memory;
        case driver::Refusal::in_use:
        case driver::Refusal::prohibited:
            return device_unavailable;
        case driver::Refusal::not_supported:
            return not_supported;
        case driver::Refusal::reset_required:
        case driver::Refusal::lost:
            return unknown;
    }
    return unknown;
}

int Process::init() {
    std::unique_lock held{mutex_};
    if (store_) return success;
    const char* directory = std::getenv("BULKHEAD_SIM_NODE");
    if (directory == nullptr || *directory == '\0') return no_device;
    auto store = std::make_shared<nvml_sim::Store>(directory);
    auto turn = store->take();
    if (!turn) return no_device;
    const char* wanted = std::getenv("CUDA_VISIBLE_DEVICES");
    devices_ =
        visible_devices(turn->model(), wanted == nullptr ? std::nullopt : std::optional<std::string_view>{wanted});
    if (devices_.empty()) return no_device;
    store_ = std::move(store);
    return success;
}

int Process::answer(std::string_view call, bool changes, const std::function<int(driver::Model&)>& work) {
    std::unique_lock held{mutex_};
    if (!store_) return not_initialized;
    auto met = store_->meet(call, held);
    if (!met) return unknown;
    if (met->fail) return static_cast<int>(*met->fail);
    if (changes && met->lie) return success;  // it only says so
    if (changes) met->turn.model().advance(nvml_sim::now());
    const int result = work(met->turn.model());
    if (changes && !met->turn.save()) return unknown;
    return result;
}

int Process::in_context(std::string_view call, bool changes,
                        const std::function<int(driver::Model&, const Visible&)>& work) {
    return answer(call, changes, [&](driver::Model& model) {
        const Context* context = one_of(contexts, current());
        if (context == nullptr) return static_cast<int>(invalid_context);
        const Visible& device = devices_[context->ordinal];
        if (model.gpu(device.where.gpu).lost) return static_cast<int>(unknown);
        return work(model, device);
    });
}

const Visible* Process::device(int ordinal) const {
    return ordinal >= 0 && static_cast<std::size_t>(ordinal) < devices_.size()
               ? &devices_[static_cast<std::size_t>(ordinal)]
               : nullptr;
}

int Process::attach(driver::Model& model, const Visible& device) {
    return code(model.attach({.pid = my_pid(),
                              .started = nvml_sim::start_of_process(my_pid()),
                              .where = device.where,
                              .kind = is_client() ? driver::ProcessKind::mps : driver::ProcessKind::compute}));
}

// What a context takes is memory like any other, only that nobody can get at it: what was there before stays there.
int Process::enter(driver::Model& model, Context context, Handle* out) {
    const Visible& device = devices_[context.ordinal];
    if (const int attached = attach(model, device); attached != success) return attached;
    const auto base = model.allocate(my_pid(), device.where, context_bytes);
    if (!base) {
        detach_if_nothing_is_there(model, context.ordinal);
        return code(base);
    }
    context.base = *base;
    *out = contexts.emplace_back(std::make_unique<Context>(std::move(context))).get();
    return success;
}

void Process::leave(driver::Model& model, Context* context) {
    const std::size_t ordinal = context->ordinal;
    const std::uint16_t gpu = devices_[ordinal].where.gpu;
    for (const std::uint64_t base : context->own) (void)model.free(my_pid(), gpu, base);
    (void)model.free(my_pid(), gpu, context->base);
    std::erase_if(modules, [&](const auto& module) { return module->of == context; });
    std::erase_if(functions, [&](const auto& function) { return function->of == context; });
    drop(contexts, context);
    detach_if_nothing_is_there(model, ordinal);
}

void Process::detach_if_nothing_is_there(driver::Model& model, std::size_t ordinal) {
    for (const auto& context : contexts)
        if (context->ordinal == ordinal) return;
    for (const auto& [handle, memory] : physical)
        if (memory.ordinal == ordinal) return;
    model.detach(my_pid(), devices_[ordinal].where);
}

}  // namespace bulkhead::cuda_sim
