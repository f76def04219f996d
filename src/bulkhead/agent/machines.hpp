// Tenants with a kernel of their own on this node: whoever StartTenant gives tier vm. Owns everything of such a tenant
// on the host: its domain, its files, and the devices that went to it by VFIO.
//
// What there is lies in a folder for each machine, written before it is done, so that a new agent finds the machines of
// the one before, and a start that was killed halfway is taken apart like any other. Every call is safe to repeat.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "bulkhead/agent/machine_records.hpp"
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
    std::int64_t huge_page_bytes = std::int64_t{2} << 20;
    vm::VfioSettings vfio;
    Duration look_every{1'000};
};

class Machines {
public:
    // `unavailable`: no libvirt, or neither KVM nor leave to emulate.
    static Result<std::unique_ptr<Machines>> open(MachineSettings settings);
    ~Machines();

    bool are_emulated() const { return emulated_; }
    const vm::Vfio& vfio() const { return vfio_; }
    const std::string& images() const { return settings_.images; }

    // `node` is what this node says of itself. `gives_devices` is false where its GPUs are simulated: there is nothing
    // to give.
    Result<> start(const StartTenant& what, const GpuNodeStatus& node, bool gives_devices);
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
    Result<> give_devices(Key lease, const std::vector<std::string>& devices);
    Result<> wait_until_gone(Key lease, Duration grace) const;
    Result<std::string> take_back(Key lease) const;
    void watch();
    TenantExit exit_of(Key lease) const;

    MachineSettings settings_;
    MachineRecords records_;
    vm::Hypervisor hypervisor_;
    bool emulated_ = false;
    bool direct_ = true;  // whether its files can be read and written past the page cache
    vm::Vfio vfio_;

    std::mutex mutex_;  // guards what follows
    std::set<Key> busy_, ended_;
    std::vector<TenantExit> exits_;
    bool stopping_ = false;
    std::thread watcher_;
};

}  // namespace bulkhead::agent
