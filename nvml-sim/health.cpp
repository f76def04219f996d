// ECC, remapped rows, field values and events.
#include <chrono>
#include <thread>

#include "exports.hpp"
#include "session.hpp"

namespace bulkhead::nvml {

namespace {

// All that a data-center driver can report but the two bits that mean nothing here.
constexpr std::uint64_t events_supported = 0xFF9F;
constexpr auto look_again = std::chrono::milliseconds{20};

std::uint64_t bit_of(driver::EventKind kind) {
    switch (kind) {
        case driver::EventKind::xid:
            return event_xid;
        case driver::EventKind::single_bit:
            return event_single_bit_ecc;
        case driver::EventKind::double_bit:
            return event_double_bit_ecc;
        case driver::EventKind::mig_change:
            return event_mig_config;
    }
    return 0;
}

std::uint64_t errors(const driver::Health& health, MemoryErrorType type, EccCounter counter) {
    const bool lifetime = counter == EccCounter::lifetime;
    if (type == MemoryErrorType::corrected) return lifetime ? health.corrected_lifetime : health.corrected;
    return lifetime ? health.uncorrected_lifetime : health.uncorrected;
}

// The next event that a set waits for, taken out of it.
std::optional<driver::Event> next_event(const driver::Model& model, EventSetObject& set) {
    for (const driver::Event& event : model.events()) {
        if (event.number <= set.seen) continue;
        set.seen = event.number;
        const auto wanted = set.types.find(event.where.gpu);
        if (wanted != set.types.end() && (wanted->second & bit_of(event.kind)) != 0) return event;
    }
    return std::nullopt;
}

Return wait_for(std::string_view call, EventSet set, EventData* data, std::uint32_t timeout_ms) {
    if (data == nullptr) return Return::invalid_argument;
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::milliseconds{timeout_ms};
    for (;;) {
        const Return result = Session::get().answer(call, Session::Access::read, [&](const driver::Model& model) {
            EventSetObject* held = Session::get().find(set);
            if (held == nullptr) return Return::invalid_argument;
            const auto event = next_event(model, *held);
            if (!event) return Return::timeout;
            *data = {Session::get().device(event->where.gpu), bit_of(event->kind), event->data,
                     event->where.gpu_instance.value_or(no_instance),
                     event->where.compute_instance.value_or(no_instance)};
            return Return::success;
        });
        if (result != Return::timeout || std::chrono::steady_clock::now() >= give_up) return result;
        std::this_thread::sleep_for(
            std::min<std::chrono::steady_clock::duration>(look_again, give_up - std::chrono::steady_clock::now()));
    }
}

struct Told {
    ValueType type{};
    std::int64_t value{};
};
constexpr Told u32(std::uint64_t value) { return {ValueType::u32, static_cast<std::int64_t>(value)}; }
constexpr Told u64(std::uint64_t value) { return {ValueType::u64, static_cast<std::int64_t>(value)}; }
constexpr Told i32(std::int64_t value) { return {ValueType::i32, value}; }

std::optional<Told> field(const driver::Model& model, std::uint16_t gpu, std::uint32_t id) {
    const driver::Gpu& state = model.gpu(gpu);
    const driver::Product& product = model.product(gpu);
    const driver::Health& health = state.health;
    switch (static_cast<Field>(id)) {
        case Field::ecc_current:
        case Field::ecc_pending:
            return u64(product.ecc ? 1 : 0);
        case Field::ecc_corrected_since_reset:
            return u64(health.corrected);
        case Field::ecc_uncorrected_since_reset:
            return u64(health.uncorrected);
        case Field::ecc_corrected_lifetime:
            return u64(health.corrected_lifetime);
        case Field::ecc_uncorrected_lifetime:
            return u64(health.uncorrected_lifetime);
        case Field::memory_temperature:
            return u32(model.load(gpu).memory_celsius);
        case Field::total_energy:
        case Field::energy:
            return u64(model.energy_mj(gpu, now()));
        case Field::pcie_replay_counter:
            return u32(0);
        case Field::remapped_correctable:
            return u64(health.remapped_corrected);
        case Field::remapped_uncorrectable:
            return u64(health.remapped_uncorrected);
        case Field::remapped_pending:
            return u64(health.remap_pending ? 1 : 0);
        case Field::remapped_failure:
            return u64(health.remap_failed ? 1 : 0);
        case Field::resetless_mig_supported:
            return u32(product.board() != nullptr && product.switches_mig_without_reset() ? 1 : 0);
        case Field::mig_mode_independent_query:
            return u32(1);
        case Field::power_average:
        case Field::power_instant:
            return u32(model.load(gpu).power_mw);
        case Field::power_min_limit:
            return u32(product.power.min_mw);
        case Field::power_max_limit:
            return u32(product.power.max_mw);
        case Field::power_default_limit:
            return u32(product.power.normal_mw);
        case Field::power_current_limit:
        case Field::power_requested_limit:
            return u32(state.power_limit_mw);
        // Degrees left until each limit, counted from the GPU's own: negative ones lie beyond it.
        case Field::shutdown_t_limit:
            return i32(static_cast<std::int64_t>(product.hottest.gpu_c) - product.hottest.shutdown_c);
        case Field::slowdown_t_limit:
            return i32(static_cast<std::int64_t>(product.hottest.gpu_c) - product.hottest.slowdown_c);
        case Field::memory_max_t_limit:
        case Field::gpu_max_t_limit:
            return i32(0);
        case Field::reset_status:
        case Field::drain_and_reset_status:
            return u32(0);
        case Field::gpu_recovery_action:
            return u32(health.remap_pending ? 1 : 0);  // 1: reset
        case Field::nvlink_link_count:
            if (model.spec().fabric != driver::Fabric::nvlink || product.links.nvlinks == 0) return std::nullopt;
            return u32(product.links.nvlinks);
        case Field::nvlink_speed_mbps_common:
            if (model.spec().fabric != driver::Fabric::nvlink || product.links.nvlinks == 0) return std::nullopt;
            return u32(product.links.nvlink_mbps);
        default:
            break;
    }
    // Counters of what never happens here: why clocks were held back, and errors and traffic of PCIe.
    if ((id >= 74 && id <= 81) || (id >= 269 && id <= 271)) return u64(0);
    if (id == 95 || id == 169 || (id >= 173 && id <= 183) || id == 197 || id == 198 || id == 228 || id == 229)
        return u32(0);
    if (id == 147) return Told{ValueType::real, 0};  // links to switches
    return std::nullopt;
}

// Ids that driver 580 does not know; the others it knows and has no answer for on this board.
constexpr bool unknown_field(std::uint32_t id) { return id == 0 || id == 274 || (id >= 289 && id <= 293) || id >= 296; }

void tell(FieldValue& into, const std::optional<Told>& told) {
    into.timestamp_us = now().ms * 1000;
    into.latency_us = 0;
    into.result = told ? Return::success : unknown_field(into.field) ? Return::invalid_argument : Return::not_supported;
    if (!told) return;
    into.type = told->type;
    into.value.u64 = 0;
    switch (told->type) {
        case ValueType::u64:
            into.value.u64 = static_cast<std::uint64_t>(told->value);
            break;
        case ValueType::i32:
            into.value.i32 = static_cast<std::int32_t>(told->value);
            break;
        default:
            into.value.u32 = static_cast<std::uint32_t>(told->value);
    }
}

Return retired_pages(std::string_view call, Device device, std::uint32_t* count) {
    return ask_gpu(call, device, [&](const driver::Model& model, std::uint16_t gpu) {
        if (model.product(gpu).remap_banks > 0)
            return Return::not_supported;  // memory with spare rows retires no pages
        return put(count, 0u);
    });
}

}  // namespace

extern "C" {

Return nvmlDeviceGetEccMode(Device device, Feature* current, Feature* pending) {
    return ask_gpu("nvmlDeviceGetEccMode", device, [&](const driver::Model& model, std::uint16_t gpu) {
        if (current == nullptr || pending == nullptr) return Return::invalid_argument;
        if (!model.product(gpu).ecc) return Return::not_supported;
        *pending = Feature::enabled;
        return put(current, Feature::enabled);
    });
}
Return nvmlDeviceGetDefaultEccMode(Device device, Feature* mode) {
    return ask_gpu("nvmlDeviceGetDefaultEccMode", device, [&](const driver::Model& model, std::uint16_t gpu) {
        return model.product(gpu).ecc ? put(mode, Feature::enabled) : Return::not_supported;
    });
}
Return nvmlDeviceGetTotalEccErrors(Device device, MemoryErrorType type, EccCounter counter, std::uint64_t* count) {
    return ask_gpu("nvmlDeviceGetTotalEccErrors", device, [&](const driver::Model& model, std::uint16_t gpu) {
        if (type > MemoryErrorType::uncorrected || counter > EccCounter::lifetime) return Return::invalid_argument;
        return put(count, errors(model.gpu(gpu).health, type, counter));
    });
}
Return nvmlDeviceGetMemoryErrorCounter(Device device, MemoryErrorType type, EccCounter counter, MemoryLocation where,
                                       std::uint64_t* count) {
    return ask_gpu("nvmlDeviceGetMemoryErrorCounter", device, [&](const driver::Model& model, std::uint16_t gpu) {
        if (type > MemoryErrorType::uncorrected || counter > EccCounter::lifetime || where > MemoryLocation::sram)
            return Return::invalid_argument;
        // Since Ampere only two places are told apart; the model's errors are all of DRAM.
        if (where != MemoryLocation::dram && where != MemoryLocation::sram) return Return::not_supported;
        return put(count, where == MemoryLocation::dram ? errors(model.gpu(gpu).health, type, counter) : 0);
    });
}
Return nvmlDeviceClearEccErrorCounts(Device device, EccCounter counter) {
    return change_gpu("nvmlDeviceClearEccErrorCounts", device, [&](driver::Model& model, std::uint16_t gpu) {
        if (counter > EccCounter::lifetime) return Return::invalid_argument;
        model.clear_errors(gpu, counter == EccCounter::lifetime);
        return Return::success;
    });
}

Return nvmlDeviceGetRetiredPages(Device device, PageRetirementCause, std::uint32_t* count, std::uint64_t*) {
    return retired_pages("nvmlDeviceGetRetiredPages", device, count);
}
Return nvmlDeviceGetRetiredPages_v2(Device device, PageRetirementCause, std::uint32_t* count, std::uint64_t*,
                                    std::uint64_t*) {
    return retired_pages("nvmlDeviceGetRetiredPages_v2", device, count);
}
Return nvmlDeviceGetRetiredPagesPendingStatus(Device device, Feature* pending) {
    return ask_gpu(
        "nvmlDeviceGetRetiredPagesPendingStatus", device, [&](const driver::Model& model, std::uint16_t gpu) {
            return model.product(gpu).remap_banks > 0 ? Return::not_supported : put(pending, Feature::disabled);
        });
}
Return nvmlDeviceGetRemappedRows(Device device, std::uint32_t* corrected, std::uint32_t* uncorrected,
                                 std::uint32_t* pending, std::uint32_t* failed) {
    return ask_gpu("nvmlDeviceGetRemappedRows", device, [&](const driver::Model& model, std::uint16_t gpu) {
        if (corrected == nullptr || uncorrected == nullptr || pending == nullptr || failed == nullptr)
            return Return::invalid_argument;
        if (model.product(gpu).remap_banks == 0) return Return::not_supported;
        const driver::Health& health = model.gpu(gpu).health;
        *uncorrected = health.remapped_uncorrected;
        *pending = health.remap_pending ? 1 : 0;
        *failed = health.remap_failed ? 1 : 0;
        return put(corrected, health.remapped_corrected);
    });
}
Return nvmlDeviceGetRowRemapperHistogram(Device device, RowRemapperHistogram* banks) {
    return ask_gpu("nvmlDeviceGetRowRemapperHistogram", device, [&](const driver::Model& model, std::uint16_t gpu) {
        if (banks == nullptr) return Return::invalid_argument;
        const std::uint32_t all = model.product(gpu).remap_banks;
        if (all == 0) return Return::not_supported;
        const driver::Health& health = model.gpu(gpu).health;
        const std::uint32_t touched = std::min(all, health.remapped_corrected + health.remapped_uncorrected),
                            spent = health.remap_failed && touched > 0 ? 1 : 0;
        *banks = {.max = all - touched, .high = touched - spent, .none = spent};
        return Return::success;
    });
}

Return nvmlDeviceGetFieldValues(Device device, std::int32_t count, FieldValue* values) {
    return ask("nvmlDeviceGetFieldValues", device, [&](const driver::Model& model, const Target& target) {
        if (values == nullptr || count < 1) return Return::invalid_argument;
        for (std::int32_t i = 0; i < count; ++i) tell(values[i], field(model, target.gpu(), values[i].field));
        return Return::success;
    });
}

Return nvmlDeviceGetSupportedEventTypes(Device device, std::uint64_t* types) {
    return ask_gpu("nvmlDeviceGetSupportedEventTypes", device,
                   [&](const driver::Model&, std::uint16_t) { return put(types, events_supported); });
}
Return nvmlEventSetCreate(EventSet* set) {
    return Session::get().answer("nvmlEventSetCreate", Session::Access::read, [&](const driver::Model& model) {
        if (set == nullptr) return Return::invalid_argument;
        *set = Session::get().make_event_set();
        (*set)->seen = model.last_event();
        return Return::success;
    });
}
Return nvmlDeviceRegisterEvents(Device device, std::uint64_t types, EventSet set) {
    return ask_gpu("nvmlDeviceRegisterEvents", device, [&](const driver::Model&, std::uint16_t gpu) {
        EventSetObject* held = Session::get().find(set);
        if (held == nullptr) return Return::invalid_argument;
        if ((types & ~events_supported) != 0) return Return::not_supported;
        held->types[gpu] |= types;
        return Return::success;
    });
}
Return nvmlEventSetWait(EventSet set, EventData* data, std::uint32_t timeout_ms) {
    return wait_for("nvmlEventSetWait", set, data, timeout_ms);
}
Return nvmlEventSetWait_v2(EventSet set, EventData* data, std::uint32_t timeout_ms) {
    return wait_for("nvmlEventSetWait_v2", set, data, timeout_ms);
}
Return nvmlEventSetFree(EventSet set) {
    return Session::get().answer("nvmlEventSetFree", Session::Access::read, [&](const driver::Model&) {
        return Session::get().drop(set) ? Return::success : Return::invalid_argument;
    });
}

}  // extern "C"

}  // namespace bulkhead::nvml
