// The smallest domain that boots an image, for tests of what runs domains; what render/ writes is tried by the agent's
// own.
#pragma once

#include <fmt/format.h>

#include <csignal>
#include <string>

#include "bulkhead/hw/vm/embedded_test.hpp"
#include "bulkhead/hw/vm/machine_files.hpp"
#include "bulkhead/hw/vm/presence.hpp"

namespace bulkhead::vm {

inline std::string plain_domain(const std::string& name, const MachineFolder& folder) {
    const bool arm = std::string_view{qemu_here}.ends_with("aarch64");
    return fmt::format(
        "<domain type='qemu'><name>{}</name><memory unit='MiB'>256</memory><vcpu>1</vcpu>"
        "<os><type arch='{}' machine='{}'>hvm</type><kernel>{}</kernel><initrd>{}</initrd><cmdline>console={} "
        "quiet no_timer_check</cmdline></os>"
        "{}<on_poweroff>destroy</on_poweroff><on_reboot>destroy</on_reboot><on_crash>destroy</on_crash><devices>"
        "<disk type='file' device='disk'><driver name='qemu' type='raw'/><source file='{}'/><target dev='vda' "
        "bus='virtio'/><readonly/><serial>{}</serial></disk>"
        "<serial type='file'><source path='{}' append='on'/></serial><memballoon model='none'/></devices></domain>",
        name, arm ? "aarch64" : "x86_64", arm ? "virt" : "q35", folder.kernel(), folder.initrd(),
        arm ? "ttyAMA0" : "ttyS0",
        arm ? "<cpu mode='custom' match='exact'><model fallback='forbid'>cortex-a57</model></cpu>"
            : "<features><acpi/></features>",
        folder.seed(), seed_serial, folder.console());
}

// Of a test that ends early: its machine goes with it.
class EndOfMachine {
public:
    explicit EndOfMachine(std::string machine) : machine_{std::move(machine)} {}
    EndOfMachine(const EndOfMachine&) = delete;
    EndOfMachine& operator=(const EndOfMachine&) = delete;
    ~EndOfMachine() {
        if (const auto left = presence_of(machine_))
            for (const pid_t process : left->processes) ::kill(process, SIGKILL);
    }

private:
    std::string machine_;
};

}  // namespace bulkhead::vm
