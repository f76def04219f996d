// The OCI runtime (crun, or runc): a program others wrote, called with a bundle. Its processes are children of the
// keeper and sit in the lease's control group; its words on failure become ours.
#pragma once

#include <sys/types.h>

#include <string>

#include "bulkhead/base/result.hpp"
#include "bulkhead/hw/container/first_process.hpp"
#include "bulkhead/hw/container/lease_files.hpp"
#include "bulkhead/hw/container/oci.hpp"

namespace bulkhead::container {

// The bundle as it lies on disk: config.json and, where no image was given, a root to mount the host's programs on.
Result<> write_bundle(const TenantSpec& spec, const LeaseFiles& files, const std::string& cgroup);

// Beside it: the checkpoint command, as a process like the tenant's own.
Result<> write_hook(const TenantSpec& spec, const LeaseFiles& files);

// Of what a program printed: where it says why it failed.
std::string last_line(std::string text);

// Reads the words of crun or runc: 126 or 127 where they refuse the program itself, 0 for any other failure. They
// have one status for every failure, so their words are looked at.
int status_of_refused_program(std::string_view words);

class Runtime {
public:
    struct Where {
        std::string program;
        // A tree the runtime must not see: crun refuses machines that have controllers in both versions, even when it
        // is to leave control groups alone. Empty: it may see all.
        std::string hidden_tree;
    };
    Runtime(Where where, const LeaseFiles& files, LeaseKey lease);

    // "crun version 1.8.1"; refused when it is not one of the two we know how to talk to.
    Result<std::string> version() const;
    // The container's first process, which waits; the caller is its parent from then on.
    // The runtime itself enters the tenant's room before it makes anything: crun is told to leave control groups alone,
    // so that ours are the only limits, the same in both tiers and with every layout of trees.
    Result<pid_t> create(Streams streams, const LeaseCgroup& group) const;
    Result<> start() const;
    // The hook that `write_hook` wrote down, in the running container, to its end: how it ended, as a shell says it.
    Result<int> run_hook(Streams streams, const LeaseCgroup& group) const;
    Result<> remove() const;  // with whatever is left of it; not being there is fine

private:
    struct Said {
        int status = 0;
        std::string words;
    };
    struct Around {  // what a call of the runtime has around it
        Streams streams;
        std::vector<Fd> doors;
    };
    Result<Said> call(std::vector<std::string> words, const Around& around) const;
    Result<> ask(std::vector<std::string> words, const Around& around) const;

    std::string program_, hidden_tree_;
    std::string directory_, bundle_;
    std::string name_;
};

}  // namespace bulkhead::container
