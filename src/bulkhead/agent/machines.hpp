// Tenants with a kernel of their own on this node: whoever StartTenant gives tier vm. Owns everything of such a tenant
// on the host: its domain, its files, and the devices that went to it by VFIO.
//
// What there is lies in a folder for each machine, written before it is done, so that a new agent finds the machines of
// the one before, and a start that was killed halfway is taken apart like any other. Every call is safe to repeat.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "bulkhead/agent/drives.hpp"
#include "bulkhead/agent/machine_records.hpp"
#include "bulkhead/agent/machine_users.hpp"
#include "bulkhead/hw/vm/hypervisor.hpp"
#include "bulkhead/hw/vm/machine_files.hpp"
#include "bulkhead/hw/vm/vfio.hpp"
#include "bulkhead/model/node.hpp"
#include "bulkhead/model/output.hpp"
#include "bulkhead/node/operation.hpp"
#include "bulkhead/node/report.hpp"

namespace bulkhead::agent {

struct MachineSettings {
    std::string uri;  // of libvirt; empty: no machines on this node
    std::string library = "libvirt.so.0";
    std::string images = "/var/lib/bulkhead/images";
    std::string folder;           // of all machines; QEMU's user passes through it
    bool allow_emulated = false;  // by software, where there is no KVM: slow, and graded emulated
    // Its memory is huge pages of that size; 0: ordinary ones. -1: of 2 MiB, and ordinary ones where machines are
    // emulated.
    std::int64_t huge_page_kib = -1;
    // Each machine is a user of its own, of this range, so that one that breaks out into QEMU cannot open what is
    // another's. Agents of one host have ranges of their own. 0: all are libvirt's one user.
    std::uint32_t first_user = 900'000, users = 4'096;
    std::string locks = "/run/bulkhead";  // of such ranges, on this host
    std::string kvm = "/dev/kvm";
    std::string nodes = "/dev/bulkhead";  // block devices of machines
    // GPUs are simulated, and PCI devices at the addresses that they tell stand for them: for a lab.
    bool stand_ins = false;
    vm::VfioSettings vfio;
    Duration look_every{1'000};
};

// What of a lease a node has to give.
struct MachineGifts {
    bool devices = false;  // GPUs and functions by VFIO; simulated ones are on no bus
    // Its drives as they are found now. Asked before a machine is made, and once more when it has them open and does
    // nothing yet: as long as a block device is open, its number is no other's.
    std::function<Result<std::vector<LentNamespace>>()> drives;
};

class Machines {
public:
    // `unavailable`: no libvirt, or neither KVM nor leave to emulate.
    static Result<std::unique_ptr<Machines>> open(MachineSettings settings);
    ~Machines();

    bool are_emulated() const { return emulated_; }
    const vm::Vfio& vfio() const { return vfio_; }
    const std::string& images() const { return settings_.images; }

    // Whether machines can be started now; those that there are can be stopped anyway.
    Result<> may_start();
    // `node` is what this node says of itself.
    Result<> start(const StartTenant& what, const GpuNodeStatus& node, const MachineGifts& gifts);
    // Asked to end, then destroyed; seen to be gone; devices taken back; files overwritten. In words, what was done.
    Result<std::string> stop(Key lease, Duration grace);

    bool has(Key lease) const { return records_.has(lease); }
    Result<std::vector<Key>> leases() const { return records_.leases(); }
    Result<OutputPiece> output(const OutputPlace& place) const;
    std::vector<TenantExit> exits();  // of those that ended by themselves, each told once

    const MachineRecords& records() const { return records_; }

private:
    Machines(MachineSettings settings, vm::Hypervisor hypervisor, bool emulated);
    vm::MachineFolder folder_of(Key lease) const { return records_.folder_of(lease); }
    std::string nodes_of(Key lease) const;
    std::int64_t huge_page_bytes() const;
    Result<> make_and_start(const StartTenant& what, const GpuNodeStatus& node, const MachineGifts& gifts);
    Result<std::uint32_t> user_of(Key lease);
    Result<> keep_given(Key lease, const std::vector<std::string>& devices);
    Result<> give_devices(Key lease, const std::vector<std::string>& devices);
    Result<> wait_until_gone(Key lease, Duration grace) const;
    Result<std::string> take_back(Key lease) const;
    void watch();
    TenantExit exit_of(Key lease) const;
    void count_console(Key lease);

    MachineSettings settings_;
    MachineRecords records_;
    vm::Hypervisor hypervisor_;
    bool emulated_ = false;
    bool direct_ = true;  // whether its files can be read and written past the page cache
    vm::Vfio vfio_;

    mutable std::mutex consoles_;  // whoever looks at what a machine printed
    std::mutex giving_;            // whoever looks whose a device is, and writes it down
    std::mutex choosing_;          // whoever is about to choose a user for a machine; guards what follows
    std::vector<container::Fd> user_locks_;
    std::mutex mutex_;  // guards what follows
    std::set<Key> busy_, ended_;
    std::vector<TenantExit> exits_;
    bool stopping_ = false;
    std::thread watcher_;
};

}  // namespace bulkhead::agent
