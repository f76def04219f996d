// What this thread has used: CPU time, memory, instructions.
#pragma once

#include <cstdint>
#include <optional>

namespace bulkhead::replay {

std::int64_t thread_cpu_ns();
std::int64_t resident_bytes();  // of the process; 0: the system does not say

// Instructions of this thread in user mode, where the machine counts them.
class InstructionCounter {
public:
    InstructionCounter();
    ~InstructionCounter();
    InstructionCounter(const InstructionCounter&) = delete;
    InstructionCounter& operator=(const InstructionCounter&) = delete;

    std::optional<std::int64_t> read() const;

private:
    int file_ = -1;
};

}  // namespace bulkhead::replay
