// One process's use of the library: how often it said nvmlInit, which node it looks at, and the handles it was given.
// Every exported call is one `answer(...)`: it holds the library's one lock (NVML may be called from any thread), acts
// on the newest state of the node, and meets the faults that were ordered for it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/hw/nvml/abi.hpp"
#include "bulkhead/node/driver_model.hpp"
#include "store.hpp"

namespace bulkhead::nvml {

// What the handles point to. A handle stays allocated as long as the library; whether what it names still exists is
// asked at every call.
struct DeviceObject {
    std::uint16_t gpu = 0;
    std::string mig;  // the UUID of a MIG device; empty: the whole GPU
};
struct GpuInstanceObject {
    std::uint16_t gpu = 0;
    std::uint32_t id = 0;
    std::uint64_t born = 0;
};
struct ComputeInstanceObject {
    std::uint16_t gpu = 0;
    std::uint32_t instance = 0, id = 0;
    std::string uuid;
};
struct EventSetObject {
    std::map<std::uint16_t, std::uint64_t> types;  // by GPU
    std::uint64_t seen = 0;                        // events up to this number are not for this set
};

// A device as it is now.
struct Target {
    driver::Place where;
    std::optional<driver::Model::MigDevice> mig;
    std::uint16_t gpu() const { return where.gpu; }
};

template <class T>
using Found = std::expected<T, Return>;

Return code(driver::Refusal refusal);
template <class T>
Return code(const driver::Answer<T>& answer) {
    return answer ? Return::success : code(answer.error());
}

class Session {
public:
    static Session& get();

    Return init(std::uint32_t flags);
    Return shutdown();

    enum class Access : std::uint8_t { read, change };
    Return answer(std::string_view call, Access access, const std::function<Return(driver::Model&)>& work);

    // Handles: the same thing always has the same one.
    Device device(std::uint16_t gpu);
    Device mig(std::uint16_t gpu, const std::string& uuid);
    GpuInstance instance(const driver::GpuInstance& there, std::uint16_t gpu);
    ComputeInstance compute(std::uint16_t gpu, std::uint32_t instance, const driver::ComputeInstance& there);
    EventSet make_event_set();
    bool drop(EventSet set);
    EventSetObject* find(EventSet set);
    Found<Target> find(const driver::Model& model, Device device) const;
    Found<Target> find_gpu(const driver::Model& model, Device device) const;  // a MIG device is an invalid argument
    Found<const GpuInstanceObject*> find(const driver::Model& model, GpuInstance handle) const;
    Found<const ComputeInstanceObject*> find(const driver::Model& model, ComputeInstance handle) const;

    // What the present call should tell instead of the truth. Used by `put`.
    static std::optional<std::uint64_t>& lie();

private:
    std::mutex mutex_;
    std::uint32_t users_ = 0;
    std::shared_ptr<nvml_sim::Store> store_;
    std::vector<std::unique_ptr<DeviceObject>> devices_;
    std::vector<std::unique_ptr<GpuInstanceObject>> instances_;
    std::vector<std::unique_ptr<ComputeInstanceObject>> computes_;
    std::vector<std::unique_ptr<EventSetObject>> event_sets_;
};

// Tells one number, or the lie that was ordered for this call.
template <class Out, class In>
Return put(Out* out, In value) {
    if (out == nullptr) return Return::invalid_argument;
    *out = static_cast<Out>(value);
    if (auto& lie = Session::lie(); lie) *out = static_cast<Out>(*std::exchange(lie, std::nullopt));
    return Return::success;
}
Return put_text(char* out, std::uint32_t length, std::string_view text);
template <std::size_t N>
void copy_text(std::array<char, N>& out, std::string_view text) {
    out.fill('\0');
    for (std::size_t i = 0; i < text.size() && i + 1 < N; ++i) out[i] = text[i];
}

// Lists: NVML tells how many there are when there is no room, and takes no array at all as the question how many.
template <class T>
Return put_list(std::uint32_t* count, T* out, const std::vector<T>& list) {
    if (count == nullptr) return Return::invalid_argument;
    const std::uint32_t room = *count;
    *count = static_cast<std::uint32_t>(list.size());
    if (list.empty()) return Return::success;
    if (room < list.size()) return Return::insufficient_size;
    if (out == nullptr) return Return::invalid_argument;
    std::copy(list.begin(), list.end(), out);
    return Return::success;
}

// The shapes that most calls have.
Return ask(std::string_view call, Device device,
           const std::function<Return(const driver::Model&, const Target&)>& work);
Return ask_gpu(std::string_view call, Device device,
               const std::function<Return(const driver::Model&, std::uint16_t)>& work);
Return change_gpu(std::string_view call, Device device,
                  const std::function<Return(driver::Model&, std::uint16_t)>& work);

using nvml_sim::now;

}  // namespace bulkhead::nvml
