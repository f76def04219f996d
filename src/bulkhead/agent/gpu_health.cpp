// The watch over the GPUs: Xids as they come, counters of memory errors and remapped rows now and then.
#include "bulkhead/agent/gpu_health.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>

#include "bulkhead/agent/gpu_hardware.hpp"

namespace bulkhead::agent {

namespace {

struct Meaning {
    std::uint64_t xid;
    Concern concern;
};

constexpr Meaning meanings[] = {
    {8, Concern::note},     // a channel timed out
    {11, Concern::note},    // a command stream that makes no sense
    {13, Concern::note},    // an exception in a kernel: an address, an instruction
    {31, Concern::note},    // a page fault
    {43, Concern::note},    // a channel was stopped after an error of its program
    {45, Concern::note},    // its channels are cleaned up: it was killed, or another Xid says why
    {68, Concern::note},    // an exception of the video decoder
    {69, Concern::note},    // an exception of the graphics engine's class
    {109, Concern::note},   // a context switch timed out
    {63, Concern::drain},   // a row is to be remapped, or a page retired, at the next reset
    {92, Concern::drain},   // many errors that ECC corrects: a sign of what comes
    {94, Concern::drain},   // an error that ECC could not correct hit one program, and was contained there
    {154, Concern::drain},  // the driver says that some recovery is due; the Xid before it says of what
};

std::uint16_t number_of(const nvml::Gpu& gpu) { return static_cast<std::uint16_t>(gpu.index); }

// What two looks in a row agree on is told once.
bool is_news(std::map<std::uint16_t, std::string>& told, std::uint16_t gpu, const std::string& why) {
    return std::exchange(told[gpu], why) != why;
}

}  // namespace

Concern concern_of(std::uint64_t xid) {
    const auto* const found = std::ranges::find(meanings, xid, &Meaning::xid);
    return found != std::end(meanings) ? found->concern : Concern::quarantine;
}

// A driver that cannot tell says so elsewhere, when it is asked for something that matters.
std::vector<FaultReport> GpuHardware::look_at_health(std::map<std::uint16_t, std::string>& told) const {
    std::vector<FaultReport> faults;
    for (const nvml::Gpu& gpu : gpus_->all()) {
        if (gpu.lost || is_in_machine(gpu)) continue;
        const auto health = nvml_.health(gpu.uuid);
        if (!health) continue;
        const std::string why = health->unfit().value_or("");
        if (is_news(told, number_of(gpu), why) && !why.empty())
            faults.push_back({UnitKind::memory, number_of(gpu), why, !health->broken()});
    }
    return faults;
}

void GpuHardware::watch_for_errors() {
    std::set<std::uint16_t> lost;
    std::map<std::uint16_t, std::string> told;
    auto next_look = std::chrono::steady_clock::now();
    while (true) {
        {
            const std::scoped_lock lock{mutex_};
            if (stopping_) return;
        }
        const auto xid = watch_ ? watch_->wait(250) : Result<std::optional<nvml::Xid>>{std::optional<nvml::Xid>{}};
        if (!watch_ || !xid) std::this_thread::sleep_for(std::chrono::milliseconds{250});
        std::vector<FaultReport> faults;
        bool stock = false;
        if (xid && *xid) {
            const std::scoped_lock lock{mutex_};
            Xids& of = xids_[(*xid)->uuid];
            of.last = (*xid)->number;
            ++of.count;
        }
        if (const auto concern = xid && *xid ? concern_of((*xid)->number) : Concern::note; concern != Concern::note)
            for (const nvml::Gpu& gpu : gpus_->all())
                if (gpu.uuid == (*xid)->uuid)
                    faults.push_back({UnitKind::memory, number_of(gpu), fmt::format("Xid {}", (*xid)->number),
                                      concern == Concern::drain});
        const auto now = std::chrono::steady_clock::now();
        const bool due = now >= next_look;
        if (!xid || *xid || due)  // not every GPU says something before it goes
            if (const auto all = nvml_.gpus()) {
                gpus_->see(*all);
                for (const nvml::Gpu& gpu : gpus_->all()) {
                    const bool there = std::ranges::any_of(
                        *all, [&](const nvml::Gpu& one) { return !one.lost && one.uuid == gpu.uuid; });
                    if (there) lost.erase(number_of(gpu));
                    if (!there && !is_in_machine(gpu) && lost.insert(number_of(gpu)).second)
                        faults.push_back({UnitKind::memory, number_of(gpu), "it has fallen off the bus"});
                }
            }
        if (due) {
            look_for_machines();  // libvirt may have come up since
            reach_functions();    // and whoever had the NIC may be gone
            std::ranges::move(look_at_health(told), std::back_inserter(faults));
            stock = drives_->take_in_new();
            std::ranges::move(drives_->look(), std::back_inserter(faults));
            next_look = now + std::chrono::milliseconds{settings_.health_every.ms};
        }
        if (faults.empty() && !stock) continue;
        const std::scoped_lock lock{mutex_};
        news_.stock_changed = news_.stock_changed || stock;
        std::ranges::move(faults, std::back_inserter(news_.faults));
    }
}

}  // namespace bulkhead::agent
