// Runs a program to its end and hands back what it said. No shell in between: arguments are arguments.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "bulkhead/base/result.hpp"

namespace bulkhead::program {

struct Ran {
    int status = 0;      // as a shell would say it: 128 + signal for one that was killed
    std::string output;  // of stdout and stderr together, up to a megabyte
};

// `timeout` when it does not end in time: it is killed.
Result<Ran> run(const std::vector<std::string>& command,
                const std::vector<std::pair<std::string, std::string>>& environment, const std::string& input,
                std::chrono::milliseconds patience);

// The same, of one that must not be met by whoever comes after us: it is killed when the thread that called this ends,
// and it keeps `lock` open until it is gone, so that who waits for that lock waits for it too. -1: nobody does.
Result<Ran> run_tied(const std::vector<std::string>& command, int lock, std::chrono::milliseconds patience);

}  // namespace bulkhead::program
