// The keeper: parent of one lease's processes, a program of its own (`bulkhead-tenant`) that outlives the agent. It
// starts what the record says, copies what the tenant prints into bounded files, writes down how it ended, and ends.
#pragma once

#include <string>
#include <vector>

#include "bulkhead/base/result.hpp"

namespace bulkhead::container {

// Descriptors it is born with, besides the first three.
constexpr int lock_fd = 3;   // the lease's lock, held
constexpr int ready_fd = 4;  // closed when the tenant runs or has failed, so that who waits can look

struct KeeperPlace {
    std::string directory;      // of the lease
    std::string cgroup_parent;  // "bulkhead"
    std::string runtime;        // for the container tier: "/usr/bin/crun"
};
int keep(const KeeperPlace& place);  // the program's exit status: 0 when the outcome is written

class LeaseCgroup;
class Fd;
// A program of ours, with these words, in the keeper's room of the lease's control group before its first instruction
// of its own; nobody's child. Gives the descriptor that ends when it is ready, or has ended.
Result<Fd> start_beside(std::vector<std::string> words, const LeaseCgroup& group, Fd lock);

}  // namespace bulkhead::container
