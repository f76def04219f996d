// One tenant's machine on one node as a libvirt domain: its own kernel, its devices and nothing that leads anywhere
// else. There is no way here to say a shared folder, a graphics console, a clipboard, a USB redirection, a network of
// the host's, a balloon or a guest agent: a domain that cannot be written cannot be started.
//
// Pure text. Who may have what was decided before; libvirt starts it (`hw/vm`), or whoever reads it.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/base/result.hpp"

namespace bulkhead::render {

enum class Architecture : std::uint8_t { amd64, arm64 };

struct PciAddress {
    unsigned domain = 0, bus = 0, slot = 0, function = 0;
    friend auto operator<=>(const PciAddress&, const PciAddress&) = default;
};
// As the kernel writes them, and as NVML does: 0000:3b:00.0, 00000000:3B:00.0.
Result<PciAddress> parse_pci_address(std::string_view text);
std::string print(const PciAddress& address);  // 0000:3b:00.0

// "0-3,8": which CPUs, each once, in order.
Result<std::vector<unsigned>> parse_cpu_list(std::string_view text);
std::string print_cpu_list(const std::vector<unsigned>& cpus);

struct DomainDisk {
    std::string path;
    bool block = false;  // a whole device of the host; otherwise a file
    bool read_only = false;
    std::string serial;  // what the guest finds it by
};

struct DomainSpec {
    std::string name;  // of the domain; its UUID is made of it and of `node`
    std::string node;
    std::string title;  // for whoever lists domains
    Architecture architecture = Architecture::amd64;
    bool emulated = false;  // by software, where there is no KVM: for tests, and slow

    unsigned vcpus = 1;
    std::vector<unsigned> cpus;   // of the host, beside its GPUs: one for each vCPU where they suffice; empty: unpinned
    std::vector<unsigned> nodes;  // NUMA nodes its memory comes from; empty: anywhere
    bool strictly = true;         // from nowhere else: it does not start where they have too little
    std::int64_t memory_bytes = 0;
    std::int64_t huge_page_bytes = 0;  // 0: ordinary pages

    // One of the two: a kernel that is handed in, or a disk to boot from.
    std::string kernel, initrd, command_line;
    std::string boot_disk;

    std::vector<DomainDisk> disks;
    // Whether disks that are files can be opened past the host's page cache. On tmpfs they are that cache, and go with
    // the file; kernels before 6.6 refuse it there.
    bool direct_files = true;
    std::vector<PciAddress> devices;    // GPUs and virtual functions, whole, bound to vfio-pci before
    std::vector<std::string> mediated;  // UUIDs of mediated devices
    std::string console;                // the file its serial line is written to
    std::string partition = "/machine";
    // Whose process it is, and whose its files are: nobody else's, so that one that breaks out into QEMU meets files of
    // others that it cannot open. 0: the user that libvirt has for all.
    std::uint32_t user = 0;
};

// What a guest finds a namespace of a drive by: the drive's serial number, which a virtio disk has 20 characters for;
// of a drive with several namespaces, the end of it and which one.
std::string disk_serial(std::string_view drive, std::uint32_t nsid, bool only);

std::string domain_uuid(std::string_view node, std::string_view name);
// `invalid`: what no domain can be made of, with all that is wrong.
Result<std::string> libvirt_domain(const DomainSpec& spec);

}  // namespace bulkhead::render
