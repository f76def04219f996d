// A line that is written over itself, for who watches; nothing in a pipe.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <ostream>
#include <string>

#include "bulkhead/cli/command.hpp"

namespace bulkhead::cli {

class Progress {
public:
    Progress(Context& context, std::size_t all)
        : err_{context.err}, shown_{context.colour && isatty(STDERR_FILENO) != 0}, all_{all} {}
    ~Progress() {
        if (shown_) err_ << "\r\033[K" << std::flush;
    }
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    void step(std::string_view what) { to(done_ + 1, what); }
    void to(std::size_t now, std::string_view what) {
        done_ = now;
        if (!shown_) return;
        constexpr std::size_t cells = 30;
        const std::size_t full = cells * done_ / all_;
        err_ << fmt::format("\r\033[K[{}{}] {}/{} {}", std::string(full, '#'), std::string(cells - full, '.'), done_,
                            all_, what)
             << std::flush;
    }

private:
    std::ostream& err_;
    const bool shown_;
    const std::size_t all_;
    std::size_t done_ = 0;
};

}  // namespace bulkhead::cli
