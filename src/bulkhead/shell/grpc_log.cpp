#include "bulkhead/shell/grpc_log.hpp"

#include <grpc/support/log.h>

#include <chrono>
#include <mutex>
#include <string_view>
#include <utility>

namespace bulkhead::shell {

namespace {

using Clock = std::chrono::steady_clock;

// Its hook is a plain function, so that what it needs cannot be handed in.
struct {
    std::mutex mutex;
    Log* log = nullptr;
    Clock::time_point next;
    std::int64_t left_out = 0;
} hook;

void take(gpr_log_func_args* line) {
    if (line->severity < GPR_LOG_SEVERITY_ERROR) return;
    constexpr std::chrono::seconds pause{10};
    const std::lock_guard lock{hook.mutex};
    if (hook.log == nullptr) return;
    if (Clock::now() < hook.next) {
        ++hook.left_out;
        return;
    }
    hook.next = Clock::now() + pause;
    hook.log->warning("grpc",
                      {{"what", std::string_view{line->message}}, {"left_out", std::exchange(hook.left_out, 0)}});
}

}  // namespace

GrpcLog::GrpcLog(Log& log) : log_{log} {
    {
        const std::lock_guard lock{hook.mutex};
        hook.log = &log;
    }
    gpr_set_log_function(&take);
}

GrpcLog::~GrpcLog() {
    const std::lock_guard lock{hook.mutex};
    if (hook.log == &log_) hook.log = nullptr;
}

}  // namespace bulkhead::shell
