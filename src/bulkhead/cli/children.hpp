// Processes that `up` starts and stops: this same program, with other arguments, each with a log of its own.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "bulkhead/base/result.hpp"

namespace bulkhead::cli {

class Children {
public:
    Children() = default;
    ~Children() { stop(); }
    Children(const Children&) = delete;
    Children& operator=(const Children&) = delete;

    // `environment`: NAME=value, besides what this process has.
    Result<> start(const std::string& name, std::vector<std::string> arguments, const std::string& log,
                   std::vector<std::string> environment = {});
    void stop(const std::string& name);  // this one, at once
    // The name of one that has ended since the last call; empty: all live.
    std::string ended();
    // "server" goes last, so that the others are not told that it is gone. Whoever does not go in time is killed.
    void stop();

private:
    std::map<pid_t, std::string> running_;
};

}  // namespace bulkhead::cli
