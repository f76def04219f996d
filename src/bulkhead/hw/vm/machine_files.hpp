// The files of one tenant's machine: a folder by its lease with the disk it boots from, its seed and its console. Made
// from an image that is only ever read; overwritten before they are removed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bulkhead/base/result.hpp"
#include "bulkhead/hw/vm/seed.hpp"

namespace bulkhead::vm {

// What a node admits as a boot image: DIR/NAME/kernel with DIR/NAME/initrd, or DIR/NAME/disk, a raw disk.
struct Image {
    std::string name;
    std::string kernel, initrd, disk;  // paths; a kernel or a disk
    std::string command_line;          // of DIR/NAME/cmdline, where there is one
};
Result<std::vector<std::string>> image_names(const std::string& folder);  // sorted
// `not_found`, with those there are. A name is one step of a path and leads nowhere else; files others than root could
// have written are refused.
Result<Image> find_image(const std::string& folder, const std::string& name);

struct MachineFolder {
    std::string path;
    std::string kernel() const { return path + "/kernel"; }
    std::string initrd() const { return path + "/initrd"; }
    std::string disk() const { return path + "/disk"; }
    std::string seed() const { return path + "/seed"; }
    std::string console() const { return path + "/console"; }
    std::string domain() const { return path + "/domain.xml"; }
};

// Safe to repeat. All of the image is copied: libvirt makes whatever it is given QEMU's user's own, and a machine that
// broke out into QEMU must not be able to write what the next one boots.
Result<> make_machine(const MachineFolder& folder, const Image& image, const Seed& seed);

struct MachineWipe {
    std::int64_t bytes = 0;       // overwritten in files
    std::int64_t huge_bytes = 0;  // of huge pages that were left in files, given back to the kernel, which clears them
};
// Overwrites the disk and the seed, reads both back, and removes them; the rest stays until `remove_machine`.
Result<MachineWipe> wipe_machine(const MachineFolder& folder);
Result<> remove_machine(const MachineFolder& folder);

// Files of huge pages that a machine of that name left behind: below every hugetlbfs that `mounts` (as /proc/mounts is)
// lists. Their pages go back to the kernel, which clears each before anybody sees it again.
Result<std::int64_t> free_huge_pages(const std::string& mounts, const std::string& machine);

}  // namespace bulkhead::vm
