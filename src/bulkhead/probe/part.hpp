// One side of a probe: a child process that is told what to do in lines, and answers in lines.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "bulkhead/base/result.hpp"
#include "bulkhead/probe/finding.hpp"

namespace bulkhead::probe {

using Environment = std::vector<std::pair<std::string, std::string>>;

class Part {
public:
    // `role` and its words, as roles.hpp has them. As nobody: without root's rights, where we have them.
    static Result<Part> start(const Options& options, const std::vector<std::string>& role,
                              const Environment& environment = {}, bool as_nobody = false);
    Part(Part&& other) noexcept;
    Part& operator=(Part&& other) noexcept;
    ~Part();  // killed, when it still lives

    Result<std::string> hear(std::chrono::milliseconds patience = std::chrono::seconds{60});  // the next line
    Result<> say(const std::string& line);
    Result<std::string> ask(const std::string& line) {
        if (const auto said = say(line); !said) return std::unexpected(said.error());
        return hear();
    }
    Result<> end();  // no more lines for it; waits until it is gone
    void kill();     // at once, and waits
    pid_t pid() const { return pid_; }

private:
    Part() = default;
    pid_t pid_ = -1;
    int to_ = -1, from_ = -1;
    std::string heard_, role_;
};

// Of a line "a=1 b=2": the number by its name, or an error that quotes the line.
Result<std::int64_t> number_in(const std::string& line, std::string_view name);

}  // namespace bulkhead::probe
