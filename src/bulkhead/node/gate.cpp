#include "bulkhead/node/gate.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "bulkhead/gpu/mps.hpp"

namespace bulkhead {

namespace {

// No board has more; it bounds what an order can make us look at.
constexpr unsigned slices_max = 64;

std::string name(UnitId unit) { return unit_text(unit.kind, unit.device, unit.slice); }

class Asking {
public:
    Asking(const Ledger& ledger, const Prepare& order) : ledger_{ledger}, order_{order} {}

    std::vector<std::string> take(const GateRules& rules) {
        ask_form();
        if (!found_.empty()) return std::move(found_);
        ask_host(rules);
        for (const GpuPart& part : order_.gpus) ask_part(part);
        for (const std::uint16_t drive : order_.drives) ask_whole({UnitKind::drive, drive, 0});
        for (const std::uint16_t function : order_.functions) ask_whole({UnitKind::vf, function, 0});
        return std::move(found_);
    }

private:
    void object(std::string why) { found_.push_back(std::move(why)); }

    void ask_form() {
        if (order_.lease <= 0) object(fmt::format("{} is no key of a lease", order_.lease));
        for (const GpuPart& part : order_.gpus) {
            if (part.size == 0 || unsigned{part.start} + part.size > slices_max)
                object(fmt::format("gpu{} has no slices {}+{}", part.gpu, part.start, part.size));
            if (part.share < 1 || part.share > 1000)
                object(fmt::format("a share of {} thousandths of gpu{}", part.share, part.gpu));
        }
        std::set<UnitId> named;
        for (const UnitId unit : units_of(order_))
            if (!named.insert(unit).second) object(fmt::format("{} is named twice", name(unit)));
    }

    void ask_host(const GateRules& rules) {
        const UnitId host{UnitKind::host, 0, 0};
        // A reboot takes everything with it, whatever the tier.
        for (const Key ticket : ledger_.wipes_of(host)) object(fmt::format("wipe {} of the host is ordered", ticket));
        if (order_.tier >= Tier::vm) return;
        ask_faults({UnitKind::host, 0});
        const auto known = ledger_.units.find(host);
        if (rules.host_must_be_known && (known == ledger_.units.end() || known->second.ticket == 0))
            object("the host was never rebooted to a measured image under a ticket");
    }

    void ask_part(const GpuPart& part) {
        ask_faults({UnitKind::memory, part.gpu});
        const WipeTask all{UnitKind::memory, part.gpu, part.start, part.size};
        std::set<Key> holders;
        for (const UnitId unit : units_of(all)) {
            ask_wipes(unit);
            for (const Key key : ledger_.holders(unit)) holders.insert(key);
        }
        if (!holders.empty()) return ask_sharers(part, holders);
        for (const UnitId unit : units_of(all)) ask_clean(unit);
    }

    // Memory that others use may be joined by whoever takes a share of the very same instance; it is as dirty as they
    // made it, and who may share with whom is not the node's to know.
    void ask_sharers(const GpuPart& part, const std::set<Key>& holders) {
        const auto same_instance = [&](const GpuPart& other) {
            return other.gpu == part.gpu && other.start == part.start && other.size == part.size &&
                   other.profile == part.profile && other.share < 1000;
        };
        const std::string place = print_units({UnitKind::memory, part.gpu, part.start, part.size});
        std::int64_t taken = part.share;
        bool staying = false;
        for (const Key key : holders) {
            const Ledger::Lease& lease = ledger_.leases.at(key);
            const auto shared = std::ranges::find_if(lease.order.gpus, same_instance);
            if (part.share >= 1000 || shared == lease.order.gpus.end())
                return object(fmt::format("{} is in use by lease {}", place, key));
            taken += shared->share;
            staying = staying || (!lease.release && lease.phase != PartPhase::failed);
        }
        if (taken > 1000) object(fmt::format("{} would be shared out to {} thousandths", place, taken));
        const bool mps = order_.mechanism == Mechanism::mps || order_.mechanism == Mechanism::mps_in_mig;
        if (mps && std::ssize(holders) >= gpu::mps_clients)
            object(fmt::format("{} has {} leases, and its MPS server takes {} clients", place, holders.size(),
                               gpu::mps_clients));
        if (!staying) object(fmt::format("{} is being given up by lease {}", place, *holders.begin()));
    }

    void ask_whole(UnitId unit) {
        ask_faults({unit.kind, unit.device});
        ask_wipes(unit);
        const std::vector<Key> holders = ledger_.holders(unit);
        for (const Key key : holders) object(fmt::format("{} is in use by lease {}", name(unit), key));
        if (holders.empty()) ask_clean(unit);
    }

    void ask_faults(DeviceId device) {
        if (const auto fault = ledger_.faulty.find(device); fault != ledger_.faulty.end())
            object(fmt::format("{} is faulty: {}", print(device), fault->second));
        if (const auto why = ledger_.draining.find(device); why != ledger_.draining.end())
            object(fmt::format("{} is drained: {}", print(device), why->second));
    }
    void ask_wipes(UnitId unit) {
        for (const Key ticket : ledger_.wipes_of(unit))
            object(fmt::format("wipe {} of {} is ordered", ticket, name(unit)));
    }
    void ask_clean(UnitId unit) {
        if (!ledger_.clean(unit))
            object(fmt::format("{} is {}", name(unit),
                               ledger_.units.contains(unit) ? "dirty: not wiped since it was last handed out"
                                                            : "unknown here, and so dirty"));
    }

    const Ledger& ledger_;
    const Prepare& order_;
    std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> objections(const Ledger& ledger, const Prepare& order, const GateRules& rules) {
    return Asking{ledger, order}.take(rules);
}

std::string joined(const std::vector<std::string>& objections) {
    constexpr std::size_t said_max = 8;
    std::string text;
    for (std::size_t i = 0; i < objections.size() && i < said_max; ++i) {
        if (i > 0) text += "; ";
        text += objections[i];
    }
    if (objections.size() > said_max) text += fmt::format("; and {} more", objections.size() - said_max);
    return text;
}

bool well_formed(const WipeTask& task) {
    if (task.ticket <= 0) return false;
    if (task.kind == UnitKind::memory) return task.size > 0 && unsigned{task.start} + task.size <= slices_max;
    return task.kind != UnitKind::host || task.device == 0;
}

}  // namespace bulkhead
