// What a server answers to whoever wants to see what a workload's command prints.
#pragma once

#include <cstdint>
#include <string>

#include "bulkhead/model/describe.hpp"

namespace bulkhead {

struct CommandOutput {
    std::int64_t from = 0;
    std::string bytes;
    bool over = false;
    std::int64_t start = 0;

    static constexpr void describe(auto&& field) {
        field("from", &CommandOutput::from, "The first byte's number, counted from its start.");
        field("bytes", &CommandOutput::bytes, "What it printed from there on, base64; empty: nothing further yet.");
        field("over", &CommandOutput::over, "The command has ended, and prints no more.");
        field("start", &CommandOutput::start, "Which of its starts printed it: each counts its bytes anew.");
    }
    friend bool operator==(const CommandOutput&, const CommandOutput&) = default;
};

}  // namespace bulkhead
