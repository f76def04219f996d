// A fleet that is up: the program's own processes, their files, and what they say to whoever asks.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "bulkhead/base/result.hpp"
#include "bulkhead/cli/said_test.hpp"

namespace bulkhead::cli {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

inline bool within(std::chrono::milliseconds limit, const std::function<bool()>& holds) {
    const auto until = std::chrono::steady_clock::now() + limit;
    while (std::chrono::steady_clock::now() < until) {
        if (holds()) return true;
        std::this_thread::sleep_for(std::chrono::milliseconds{50});
    }
    return holds();
}

class Fleet {
public:
    Fleet() {
        std::string pattern = std::filesystem::temp_directory_path() / "bulkhead-live-XXXXXX";
        invariant(mkdtemp(pattern.data()) != nullptr, "a scratch folder can be made");
        folder_ = pattern;
        ::setenv("BULKHEAD_CONTEXT", (folder_ / "context").c_str(), 1);
    }
    ~Fleet() {
        stop(SIGKILL);
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
        ::unsetenv("BULKHEAD_CONTEXT");
    }
    Fleet(const Fleet&) = delete;
    Fleet& operator=(const Fleet&) = delete;

    void start() {
        std::filesystem::remove(folder_ / "up.out");
        up_ = spawn({"up", "--nodes", "2", "--gpus", "2", "--data", data().string(), "--port", "0", "--agent-port", "0",
                     "--time", "5"},
                    folder_ / "up.out");
        ASSERT_TRUE(within(std::chrono::seconds{40},
                           [&] { return slurp(folder_ / "up.out").find("Ctrl-C") != std::string::npos; }))
            << slurp(folder_ / "up.out") << slurp(data() / "server.log");
    }
    int stop(int signal) {
        if (up_ <= 0) return -1;
        ::kill(up_, signal);
        int status = 0;
        ::waitpid(up_, &status, 0);
        up_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }
    std::filesystem::path data() const { return folder_ / "data"; }

    struct Said {
        int status = 0;
        std::string out;
    };
    Said say(const std::vector<std::string>& words) const {
        const pid_t child = spawn(words, folder_ / "said");
        int status = 0;
        ::waitpid(child, &status, 0);
        return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, slurp(folder_ / "said")};
    }
    // Processes of this fleet, by their command lines.
    std::vector<pid_t> processes(const std::string& command) const {
        std::vector<pid_t> out;
        std::error_code ignored;
        for (const auto& entry : std::filesystem::directory_iterator{"/proc", ignored}) {
            const std::string line = slurp(entry.path() / "cmdline");
            if (line.find('\0' + command + '\0') != std::string::npos &&
                line.find(data().string()) != std::string::npos)
                out.push_back(std::stoi(entry.path().filename().string()));
        }
        return out;
    }
    std::filesystem::path folder() const { return folder_; }

    // Goes on until it is killed or ends by itself; wait for it.
    static pid_t spawn(const std::vector<std::string>& words, const std::filesystem::path& output) {
        std::vector<std::string> all{BULKHEAD_PROGRAM};
        all.insert(all.end(), words.begin(), words.end());
        std::vector<char*> argv;
        for (std::string& word : all) argv.push_back(word.data());
        argv.push_back(nullptr);
        const pid_t child = ::fork();
        if (child != 0) return child;
        const int file = ::open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        ::dup2(file, STDOUT_FILENO);
        ::dup2(file, STDERR_FILENO);
        ::execv(argv[0], argv.data());
        ::_exit(127);
    }

private:
    std::filesystem::path folder_;
    pid_t up_ = -1;
};

inline std::string word_after(const std::string& text, const std::string& mark) {
    const std::size_t at = text.find(mark);
    if (at == std::string::npos) return {};
    const std::size_t begin = text.find_first_not_of(' ', at + mark.size());
    return text.substr(begin, text.find_first_of(" \n", begin) - begin);
}

}  // namespace bulkhead::cli
