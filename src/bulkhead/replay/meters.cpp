#include "bulkhead/replay/meters.hpp"

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>
#include <fstream>

namespace bulkhead::replay {

std::int64_t thread_cpu_ns() {
    timespec at{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
    return std::int64_t{at.tv_sec} * 1'000'000'000 + at.tv_nsec;
}

std::int64_t resident_bytes() {
    std::ifstream file{"/proc/self/statm"};
    std::int64_t size = 0, resident = 0;
    file >> size >> resident;
    return file ? resident * ::sysconf(_SC_PAGESIZE) : 0;
}

InstructionCounter::InstructionCounter() {
    perf_event_attr wanted{};
    wanted.size = sizeof wanted;
    wanted.type = PERF_TYPE_HARDWARE;
    wanted.config = PERF_COUNT_HW_INSTRUCTIONS;
    wanted.exclude_kernel = 1;
    wanted.exclude_hv = 1;
    file_ = static_cast<int>(::syscall(SYS_perf_event_open, &wanted, 0, -1, -1, 0));
}

InstructionCounter::~InstructionCounter() {
    if (file_ >= 0) ::close(file_);
}

std::optional<std::int64_t> InstructionCounter::read() const {
    std::int64_t count = 0;
    if (file_ < 0 || ::read(file_, &count, sizeof count) != sizeof count) return std::nullopt;
    return count;
}

}  // namespace bulkhead::replay
