// NVIDIA's Multi-Process Service by its own door: the program nvidia-cuda-mps-control, which is daemon and client in
// one, and a folder of pipes that says which daemon is meant. One daemon for each GPU or MIG instance: a fault of one
// client is told to all clients of a server, and a server over several GPUs would carry it from one to the next.
//
//     auto control = mps::Control::start({.folder = "/run/bulkhead/mps/gpu0", .device = "GPU-..."});
//     control->limit({.thread_percentage = 50, .memory_mib = 40'000});
//     ... clients with control->environment() ...
//     control->stop();      // nothing of it is left, or an error
//
// What it says was seen on a real one, driver 580.159.04 (testdata/mps/).
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bulkhead/base/result.hpp"

namespace bulkhead::mps {

struct Settings {
    std::string program = "nvidia-cuda-mps-control";
    std::string folder;                          // ours alone; pipes and logs are made below it
    std::string device;                          // UUID of the one device it serves
    std::chrono::milliseconds patience{60'000};  // machines that are busy start programs slowly
};

// For servers and clients that come later; clients there are keep what they had.
struct Limits {
    std::optional<unsigned> thread_percentage;  // of the multiprocessors: a ceiling, and no reservation
    std::optional<std::uint64_t> memory_mib;    // of device memory, what the driver takes for a client included
};

enum class ServerState : std::uint8_t { none, active, initializing, fault };

struct Client {
    pid_t server = 0, pid = 0;
    friend bool operator==(const Client&, const Client&) = default;
};

class Control {
public:
    // Starts the daemon, or takes over the one that runs in this folder already.
    static Result<Control> start(Settings settings);
    // The one in this folder, if it runs; whether it answers is another matter.
    static std::optional<Control> adopt(Settings settings);
    bool answers();

    Result<> limit(const Limits& limits);
    Result<> serve(uid_t user);  // a server for that user, before its first client
    Result<std::vector<pid_t>> servers();
    Result<ServerState> state();  // the worst of its servers
    Result<std::vector<Client>> clients();
    Result<> end_client(Client client);
    // Ends daemon and servers, clients or not, by its own command or, when that does not do, by a signal; and looks
    // that they are gone.
    Result<> stop();

    // What a client must have to be one. The daemon's device is the only one its clients see.
    std::vector<std::pair<std::string, std::string>> environment() const;
    pid_t daemon() const { return daemon_; }

private:
    explicit Control(Settings settings) : settings_{std::move(settings)} {}
    Result<std::string> say(const std::string& command);  // what it answers, without the last end of line
    std::string pipes() const { return settings_.folder + "/pipe"; }
    std::string logs() const { return settings_.folder + "/log"; }
    std::vector<std::pair<std::string, std::string>> own_environment() const;
    Result<> keeps(const std::string& server, const Limits& limits);  // "": those that come later

    Settings settings_;
    pid_t daemon_ = 0;
};

// How many clients one device takes at once; an MPS server refuses more.
unsigned clients_max(int capability_major, int cuda_version);

}  // namespace bulkhead::mps
