// The drives of a node that tenants may have: which they are, who uses them, how they are erased and read back. Only
// drives that the command line of this half names are tenants' drives; what the machine itself runs from never is.
//
// What is clean and what is leased is known by a drive's number, and the kernel gives out names anew at every boot. So
// the numbers are the node's own, kept in its folder: a serial number keeps the one it had first, and a drive that is
// gone leaves its place empty and is a fault. One that is named by its serial and comes later gets the next number, and
// is wiped before anybody has it, as at a start; one that comes back has the number it had.
//
// As long as this lives, no other agent has these drives, and nobody erases one by hand (drive_lock.hpp).
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bulkhead/agent/drive_lock.hpp"
#include "bulkhead/hw/container/spec.hpp"
#include "bulkhead/hw/nvme/erase.hpp"
#include "bulkhead/hw/nvme/kernel_transport.hpp"
#include "bulkhead/model/node.hpp"
#include "bulkhead/node/operation.hpp"
#include "bulkhead/node/report.hpp"

namespace bulkhead::agent {

struct DriveSettings {
    // Serial numbers; or "model:GLOB", for all of a kind; or "@FILE" with one of either on each line. None: no drive is
    // a tenant's.
    std::vector<std::string> tenant;
    nvme::EraseSettings erase;
    std::string folder;  // the agent's own
    std::string locks{drive_locks};
    std::string udev;  // where rules for this boot are written (drive_rules.hpp); empty: nowhere
    nvme::Tree tree;
    std::function<Result<std::unique_ptr<nvme::Transport>>(const nvme::Tree&, const nvme::Drive&)> open =
        nvme::open_drive;
    nvme::EraseClock clock;
};

// One namespace of a drive that is lent, as it is found now: whose it is, and the block device it has.
struct LentNamespace {
    std::size_t drive = 0;  // the how manieth of those that were asked for
    std::string serial;
    std::uint32_t nsid = 1;
    bool only = true;  // the drive has no other
    unsigned major = 0, minor = 0;
    std::string name() const;  // drive0n1
    friend bool operator==(const LentNamespace&, const LentNamespace&) = default;
};

class Drives {
public:
    static Result<std::unique_ptr<Drives>> open(DriveSettings settings);

    std::vector<NodeDrive> inventory() const;  // by their numbers
    std::optional<Grade> grade() const;        // the weakest of those that are here; none: there is none

    OperationResult attach(const AttachDrive& what);
    OperationResult detach(const DetachDrive& what);
    // Remembers what is there, erases, and holds every namespace until `verify` has read them.
    OperationResult wipe(const Wipe& what);
    OperationResult verify(const Verify& what);
    // Block devices of whole namespaces: /dev/drive0n1 for the first of these drives. Never what commands can be sent
    // to the drive by.
    Result<std::vector<container::DeviceNode>> nodes(std::span<const std::uint16_t> drives) const;
    // Drives that are named by their serial number and were not here before, once two looks have seen the same: a drive
    // that the kernel is still asking about is not yet what it will be. A whole kind (model:GLOB) is taken in at a
    // start alone: who plugs a drive in to save what is on it must not lose it within seconds. True: there is one more.
    // One that somebody else holds, or whose number cannot be kept, is tried again at the next look.
    bool take_in_new();
    Result<std::vector<LentNamespace>> lent(std::span<const std::uint16_t> drives) const;
    // What is wrong with a drive and was not so at the last look.
    std::vector<FaultReport> look();
    // What is under way is given up, as soon as the drive's command in hand is answered.
    void stop() { stopping_ = true; }

private:
    struct Place {
        std::string serial;
        std::int64_t bytes = 0;  // as it was when last seen
    };
    struct Wiped {  // between a wipe and its verification
        std::unique_ptr<nvme::Transport> transport;
        nvme::Erasure erasure;
    };
    Drives(DriveSettings settings, std::vector<Place> places, std::vector<container::Fd> locks)
        : settings_{std::move(settings)}, places_{std::move(places)}, locks_{std::move(locks)} {
        settings_.clock.stop = [this] { return stopping_.load(); };
    }
    static Result<std::vector<Place>> read_places(const std::string& path);
    static Result<> keep_places(const std::string& folder, std::span<const Place> places);
    static Result<> tell_udev(const DriveSettings& settings, std::span<const Place> places);
    std::optional<std::string> serial_of(std::uint16_t number) const;
    std::size_t count() const;
    Result<nvme::Drive> find(std::uint16_t number) const;
    Result<> wait_until_free(const nvme::Drive& drive) const;

    DriveSettings settings_;
    mutable std::mutex places_mutex_;  // guards the two that follow; they only grow
    std::vector<Place> places_;
    std::vector<container::Fd> locks_;
    std::map<std::string, std::uint64_t> newcomers_;  // seen at the last look, with their bytes; the looker's alone
    std::atomic<bool> stopping_ = false;
    std::mutex mutex_;  // guards what follows
    std::map<std::uint16_t, Wiped> wiped_;
    std::map<std::uint16_t, std::string> told_;
};

// Whether the list names it; what it is besides is for others to say.
bool is_tenant_drive(const nvme::Drive& drive, std::span<const std::string> list);
// What an operator reads of a drive that failed is one line: what, and what helps.
std::string with_remedy(const Error& error);
// With files in it replaced by their lines.
Result<std::vector<std::string>> expand_drive_list(std::span<const std::string> list);

}  // namespace bulkhead::agent
