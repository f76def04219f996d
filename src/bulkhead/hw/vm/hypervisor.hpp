// libvirt, as far as tenants' machines need it: start one from its description, look, ask it to go, take it away, and
// see that it is gone. By `dlopen` of libvirt.so.0, so that a node without libvirt runs everything else.
//
//     auto hypervisor = vm::Hypervisor::open({.uri = "qemu:///system"});
//     auto started = hypervisor->start(xml);        // transient: what is not running does not exist
//
// With qemu:///system a daemon keeps machines while agents come and go. qemu:///embed?root=DIR is the same driver
// inside this process, for tests: no daemon, and no machine outlives it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/base/result.hpp"

namespace bulkhead::vm {

struct HypervisorSettings {
    std::string library = "libvirt.so.0";
    std::string uri = "qemu:///system";
};

// Of a transient domain; one that has ended is `absent` sooner or later.
enum class MachineState : std::uint8_t { absent, running, paused, ending, ended, crashed };

class Hypervisor {
public:
    // `unavailable`: there is no libvirt, or it does not answer.
    static Result<Hypervisor> open(HypervisorSettings settings);

    std::string version() const;  // "libvirt 9.0.0, QEMU 7.2.22"
    // Whether it can run machines of this kind by the processor itself; otherwise only by software.
    Result<bool> has_kvm() const;

    // `conflict`: one of that name runs already. It has all of its devices and disks open, and does nothing yet, until
    // `resume`: what it got can be looked at before it can.
    Result<> start_paused(const std::string& xml);
    Result<> resume(const std::string& name) const;
    Result<> start(const std::string& xml);
    Result<MachineState> look(const std::string& name) const;
    Result<std::vector<std::string>> running(std::string_view prefix) const;  // names that begin so, sorted
    Result<> ask_to_end(const std::string& name) const;                       // ACPI; the guest may not listen
    Result<> destroy(const std::string& name) const;                          // not being there is fine

private:
    Result<> create(const std::string& xml, unsigned how) const;
    struct Line;
    explicit Hypervisor(std::shared_ptr<Line> line) : line_{std::move(line)} {}
    std::shared_ptr<Line> line_;
};

}  // namespace bulkhead::vm
