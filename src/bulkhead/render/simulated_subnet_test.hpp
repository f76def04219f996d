// An InfiniBand subnet with nobody's hardware: ibsim plays one switch with a port of each given GUID behind it, the
// real OpenSM sweeps it once, and smpquery reads the tables that OpenSM wrote, as it would read them of adapters.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <thread>
#include <vector>

namespace bulkhead::render {

class SimulatedSubnet {
public:
    // Empty, or what is not installed.
    static std::string missing() {
        for (const char* program : {"/usr/bin/ibsim", "/usr/sbin/opensm", "/usr/sbin/smpquery"})
            if (::access(program, X_OK) != 0) return std::string{program} + " is not installed";
        return preload().empty() ? "libumad2sim.so is not installed" : "";
    }

    // The subnet manager has a port of its own, the switch's first; these GUIDs are behind its second and so on.
    explicit SimulatedSubnet(std::vector<std::uint64_t> guids) : guids_{std::move(guids)} {
        std::string pattern = std::filesystem::temp_directory_path() / "bulkhead-subnet-XXXXXX";
        EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
        folder_ = pattern;
        // A port's GUID is its adapter's and one more.
        std::string ends, links = "[1] \"manager\"[1]\n";
        for (std::size_t i = 0; i < guids_.size(); ++i) {
            links += fmt::format("[{}] \"p{}\"[1]\n", i + 2, i);
            ends += fmt::format("caguid={:#018x}\nHca 1 \"p{}\"\n[1] \"leaf\"[{}]\n\n", guids_[i] - 1, i, i + 2);
        }
        std::ofstream{folder_ / "topology"} << fmt::format(
            "switchguid=0x0000000000a00000\nSwitch {} \"leaf\"\n{}\ncaguid=0x0000000000b00000\nHca 1 \"manager\"\n"
            "[1] \"leaf\"[1]\n\n{}",
            guids_.size() + 2, links, ends);
        start();
    }
    ~SimulatedSubnet() {
        if (simulator_ > 0) {
            ::kill(simulator_, SIGKILL);
            ::waitpid(simulator_, nullptr, 0);
        }
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
    }
    SimulatedSubnet(const SimulatedSubnet&) = delete;
    SimulatedSubnet& operator=(const SimulatedSubnet&) = delete;

    // OpenSM reads the file, sets up the subnet and goes. What it said, with its log of this time.
    std::string sweep(const std::string& partitions) const {
        std::ofstream{folder_ / "partitions.conf"} << partitions;
        return sweep_as_it_is();
    }
    std::string sweep_without_the_file() const {
        EXPECT_TRUE(std::filesystem::remove(folder_ / "partitions.conf"));
        return sweep_as_it_is();
    }

    // Of an adapter's port; of the switch's port before it, which is where foreign packets are dropped; of the
    // manager's.
    std::vector<std::uint16_t> keys(std::size_t port) const { return read_keys(fmt::format("0,1,{}", port + 2)); }
    std::vector<std::uint16_t> keys_before(std::size_t port) const {
        return read_keys(fmt::format("0,1 {}", port + 2));
    }
    std::vector<std::uint16_t> managers_keys() const { return read_keys("0"); }
    // What the adapter itself answers, so that no test is about ports of another name.
    std::uint64_t guid(std::size_t port) const {
        const Said said = say(fmt::format("timeout 20 /usr/sbin/smpquery -D nodeinfo 0,1,{}", port + 2));
        std::smatch found;
        if (!std::regex_search(said.out, found, std::regex{R"(PortGuid:\.*(0x[0-9a-f]{16}))"})) return 0;
        return std::stoull(found[1], nullptr, 16);
    }
    std::size_t size() const { return guids_.size(); }

private:
    struct Said {
        int status = -1;
        std::string out;
    };

    std::string sweep_as_it_is() const {
        const std::string own = folder_.string();
        const Said said = say(fmt::format(
            "OSM_CACHE_DIR={0} OSM_TMP_DIR={0} timeout 60 /usr/sbin/opensm --once -F /dev/null -e -f {0}/opensm.log "
            "-P {0}/partitions.conf",
            own));
        std::ifstream log{folder_ / "opensm.log"};
        const std::string all = said.out + std::string{std::istreambuf_iterator<char>{log}, {}};
        EXPECT_EQ(said.status, 0) << all;
        EXPECT_NE(all.find("SUBNET UP"), std::string::npos) << all;
        return all;
    }

    static std::string preload() {
        std::error_code failed;
        for (std::filesystem::directory_iterator at{"/usr/lib", failed}, end; !failed && at != end;
             at.increment(failed))
            if (const auto path = at->path() / "umad2sim" / "libumad2sim.so"; std::filesystem::exists(path))
                return path;
        return "";
    }

    // By the simulator's library in place of /dev/infiniband; seen from the manager's port. The shell itself is
    // without. The library makes a tree of /sys where it is started, and leaves it if it is killed.
    Said say(const std::string& command) const {
        FILE* const pipe =
            ::popen(fmt::format("env -C {} IBSIM_SOCKNAME={} SIM_HOST=manager LD_PRELOAD={} {} 2>&1 </dev/null",
                                folder_.string(), name(), preload(), command)
                        .c_str(),
                    "r");
        Said said;
        for (char piece[512]; std::fgets(piece, sizeof piece, pipe) != nullptr;) said.out += piece;
        const int status = ::pclose(pipe);
        said.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        return said;
    }

    std::vector<std::uint16_t> read_keys(const std::string& path) const {
        const Said said = say("timeout 20 /usr/sbin/smpquery -D pkeys " + path);
        EXPECT_EQ(said.status, 0) << said.out;
        std::vector<std::uint16_t> out;
        const std::regex key{"0x([0-9a-f]{4})\\b"};
        for (std::sregex_iterator it{said.out.begin(), said.out.end(), key}, end; it != end; ++it)
            if (const auto value = std::stoul((*it)[1], nullptr, 16); value != 0)
                out.push_back(static_cast<std::uint16_t>(value));
        return out;
    }

    // The name of the simulator's socket, in the abstract name space: the folder's, which is nobody else's.
    std::string name() const { return folder_.filename(); }

    void start() {
        const std::string topology = folder_ / "topology", log = folder_ / "ibsim.log", socket = name();
        simulator_ = ::fork();
        if (simulator_ == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            const int file = ::open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
            ::dup2(file, STDOUT_FILENO);
            ::dup2(file, STDERR_FILENO);
            ::setenv("IBSIM_SOCKNAME", socket.c_str(), 1);
            ::execl("/usr/bin/ibsim", "ibsim", "--start", "--no-console", topology.c_str(), nullptr);
            ::_exit(127);
        }
        const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{30};
        while (say("timeout 20 /usr/sbin/smpquery -D nodeinfo 0").status != 0) {
            ASSERT_LT(std::chrono::steady_clock::now(), until) << "ibsim does not answer";
            std::this_thread::sleep_for(std::chrono::milliseconds{20});
        }
    }

    std::vector<std::uint64_t> guids_;
    std::filesystem::path folder_;
    pid_t simulator_ = -1;
};

}  // namespace bulkhead::render
