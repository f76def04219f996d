// Whether somebody has asked this program to end. For programs that hold signals (shell::Server::hold_signals) and look
// for them when they have time.
#pragma once

#include <csignal>
#include <ctime>

namespace bulkhead::cli {

// Takes the signal: it is told once.
inline bool asked_to_stop() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    const timespec now{};
    return sigtimedwait(&set, nullptr, &now) > 0;
}

}  // namespace bulkhead::cli
