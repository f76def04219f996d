// What a machine is told when it boots: a read-only disk of its own, a tar archive with one file, `run`, a script for
// any POSIX shell that sets the variables and becomes the command. Whatever init an image has, it can read that; a
// machine with a network would ask a metadata server, and ours has no network but the one that was leased.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bulkhead::vm {

// What the guest finds the disk by: /dev/disk/by-id/virtio-bulkhead-seed.
inline constexpr std::string_view seed_serial = "bulkhead-seed";

// In single quotes, so that a shell takes it for one word, whatever is in it.
std::string shell_word(std::string_view text);

struct Seed {
    std::vector<std::string> words;        // the command; none: the machine runs until it is stopped
    std::vector<std::string> environment;  // NAME=value; what is no name for a shell is left out
};
std::string seed_script(const Seed& seed);
std::string seed_disk(const Seed& seed);  // whole 4 KiB blocks

}  // namespace bulkhead::vm
