// What a part of a probe does, in its own process: one role, told by lines on standard input, answering by lines on
// standard output. `mark MIB`, `look`, `within MIB`, `mark-chip`, `look-chip`, `victim WORK SECONDS`, `hog WORK`,
// `observe`.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace bulkhead::probe {

struct RoleOptions {
    std::string cuda = "libcuda.so.1", nvml = "libnvidia-ml.so.1";
    std::vector<std::string> words;
};

// 0, or 1 after a line "error: ...".
int play(const RoleOptions& options, std::istream& in, std::ostream& out);

}  // namespace bulkhead::probe
