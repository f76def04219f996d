// Process 1 of a tenant of the process tier, and what it does before and after the tenant's own command runs. It builds
// the tenant's world, waits for the keeper's word, starts the command, reaps orphans, and ends when the command ends or
// the keeper is gone; the kernel then ends whatever is left in its pid namespace.
#pragma once

#include <sys/types.h>

#include <string>

#include "bulkhead/base/result.hpp"
#include "bulkhead/hw/container/cgroup.hpp"
#include "bulkhead/hw/container/durable.hpp"
#include "bulkhead/hw/container/spec.hpp"

namespace bulkhead::container {

// The keeper's ends of the lines to process 1.
struct FirstProcess {
    pid_t pid = 0;
    Fd lifeline;  // write: one byte says go; closed, however that came about, says end
    Fd news;  // read: 'w' when the world stands and it waits, then nothing and the end (the command runs), or a Refusal
    Fd status;  // read: what waitpid said of the command, as an int
};

// `news` carries, besides 'w': 'e', then what and remedy, parted by a NUL byte; 'x' instead of 'e' where the
// tenant's program itself cannot be executed.
std::string refusal_line(const Error& error);
Error refusal_of(std::string_view line);
// As a shell says that a program could not be executed; 0: it is not the program.
inline constexpr int not_executable_status = 126, not_found_status = 127;
int status_of_program(std::string_view line);

// Becomes the command, in /job, with that environment and nothing else's. Returns when it cannot, and why: not_found
// and denied are about the program.
Error run_command(const std::vector<std::string>& command, const Environment& environment);

struct Streams {
    int out = -1, err = -1;  // what the tenant writes to
};
Result<FirstProcess> start_first_process(const TenantSpec& spec, const LeaseCgroup& group, const std::string& scratch,
                                         Streams streams);

}  // namespace bulkhead::container
