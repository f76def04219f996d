// With libvirt's daemon, as a node has it: it is restarted under an agent, and the machines go on.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <thread>

#include "bulkhead/hw/vm/console.hpp"
#include "bulkhead/hw/vm/embedded_test.hpp"
#include "bulkhead/hw/vm/hypervisor.hpp"
#include "bulkhead/hw/vm/machine_files.hpp"
#include "bulkhead/hw/vm/plain_domain_test.hpp"
#include "bulkhead/hw/vm/presence.hpp"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BULKHEAD_NO_XDR  // its stand-ins for XDR call what the C library no longer has; libvirt's wire is made of them
#endif
#endif

namespace bulkhead::vm {

namespace {

constexpr const char *libvirtd = "/usr/sbin/libvirtd", *virtlogd = "/usr/sbin/virtlogd";

bool sooner_or_later(const std::function<bool()>& holds) {
    for (const auto until = std::chrono::steady_clock::now() + std::chrono::minutes{2};
         std::chrono::steady_clock::now() < until;) {
        if (holds()) return true;
        std::this_thread::sleep_for(std::chrono::milliseconds{50});
    }
    return false;
}

// Privileged, with its usual places, which are this test's alone: the namespace's own /run, /var/lib and /var/cache.
class Daemon {
public:
    explicit Daemon(std::filesystem::path folder) : folder_{std::move(folder)} {}
    ~Daemon() {
        end();
        if (writer_ > 0) {
            ::kill(writer_, SIGKILL);
            ::waitpid(writer_, nullptr, 0);
        }
        for (const std::string& place : covered_) ::umount2(place.c_str(), MNT_DETACH);
    }
    Daemon(const Daemon&) = delete;
    Daemon& operator=(const Daemon&) = delete;

    // Consoles are written by QEMU itself; or, as by default, by virtlogd, here in pieces of so many bytes, which are
    // all kept: nothing is lost on whoever reads slowly.
    std::optional<std::string> prepare(std::optional<int> piece_bytes = {}) {
        for (const char* place : {"/run", "/var/lib", "/var/cache", "/etc/libvirt"}) {
            if (::mount("tmpfs", place, "tmpfs", 0, "mode=0755") != 0)
                return fmt::format("{} cannot be covered", place);
            covered_.emplace_back(place);
        }
        std::ofstream{"/etc/libvirt/qemu.conf"}
            << fmt::format("stdio_handler = \"{}\"\nnamespaces = []\n", piece_bytes ? "logd" : "file");
        if (piece_bytes) {
            std::ofstream{folder_ / "virtlogd.conf"} << fmt::format("max_size = {}\nmax_backups = 20\n", *piece_bytes);
            writer_ = run(virtlogd, "virtlogd");
            if (writer_ <= 0 || !sooner_or_later([] { return std::filesystem::exists("/run/libvirt/virtlogd-sock"); }))
                return "virtlogd does not start: " + log("virtlogd");
        }
        std::ofstream{folder_ / "libvirtd.conf"}
            << fmt::format("unix_sock_dir = \"{}\"\nauth_unix_rw = \"none\"\n", folder_.string());
        return std::nullopt;
    }
    bool begin() {
        std::filesystem::remove(folder_ / "libvirt-sock");
        process_ = run(libvirtd, "libvirtd");
        return process_ > 0 && sooner_or_later([&] { return std::filesystem::exists(folder_ / "libvirt-sock"); });
    }
    void end() {
        if (process_ <= 0) return;
        ::kill(process_, SIGKILL);  // not even a good-bye
        ::waitpid(process_, nullptr, 0);
        process_ = 0;
    }
    std::string uri() const { return fmt::format("qemu+unix:///system?socket={}/libvirt-sock", folder_.string()); }
    std::string log(const std::string& of = "libvirtd") const {
        std::ifstream file{folder_ / (of + ".log")};
        return {std::istreambuf_iterator<char>{file}, {}};
    }

private:
    pid_t run(const char* program, const std::string& name) const {
        const auto file = [&](const char* ending) { return (folder_ / (name + ending)).string(); };
        const std::string config = file(".conf"), output = file(".log"), pid = file(".pid");
        const pid_t process = ::fork();
        if (process != 0) return process;
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        const int to = ::open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
        ::dup2(to, 1);
        ::dup2(to, 2);
        ::execl(program, program, "--config", config.c_str(), "--pid-file", pid.c_str(), nullptr);
        ::_exit(127);
    }
    std::filesystem::path folder_;
    std::vector<std::string> covered_;
    pid_t process_ = 0, writer_ = 0;
};

}  // namespace

TEST(Hypervisor, a_daemon_that_was_restarted_is_reached_anew_and_its_machines_ran_on) {
#ifdef BULKHEAD_NO_XDR
    GTEST_SKIP() << "the address sanitizer breaks libvirt's own wire";
#endif
    if (::access(libvirtd, X_OK) != 0) GTEST_SKIP() << "there is no " << libvirtd;
    Embedded here;
    if (const auto why = here.prepare()) GTEST_SKIP() << *why;
    Daemon daemon{here.folder()};
    if (const auto why = daemon.prepare()) GTEST_SKIP() << *why;
    ASSERT_TRUE(daemon.begin()) << daemon.log();
    auto hypervisor = Hypervisor::open({.uri = daemon.uri()});
    if (!hypervisor) GTEST_SKIP() << hypervisor.error().what << "\n" << daemon.log();

    const auto image = find_image(Embedded::images(), "default");
    ASSERT_TRUE(image) << image.error().what;
    const MachineFolder folder{here.folder() / "machine"};
    ASSERT_TRUE(make_machine(folder, *image, {.words = {"sleep", "1000"}, .environment = {}}));
    const std::string name = fmt::format("bh-daemon-{}", ::getpid());
    const EndOfMachine cleanup{name};
    const auto started = hypervisor->start(plain_domain(name, folder));
    ASSERT_TRUE(started) << started.error().what << "\n" << daemon.log();
    EXPECT_EQ(*hypervisor->look(name), MachineState::running);
    const auto before = presence_of(name);
    ASSERT_TRUE(before && before->any());

    daemon.end();
    EXPECT_TRUE(sooner_or_later([&] { return !hypervisor->look(name); }));
    for (int i = 0; i < 5; ++i) {
        const auto unseen = hypervisor->look(name);
        ASSERT_FALSE(unseen) << "what nobody can look at is not absent";
        EXPECT_EQ(unseen.error().code, Code::unavailable) << unseen.error().what;
    }
    EXPECT_FALSE(hypervisor->destroy(name)) << "nor gone";
    EXPECT_EQ(presence_of(name)->processes, before->processes);

    ASSERT_TRUE(daemon.begin()) << daemon.log();
    EXPECT_TRUE(sooner_or_later([&] {
        const auto state = hypervisor->look(name);
        return state && *state == MachineState::running;
    })) << daemon.log();
    EXPECT_EQ(presence_of(name)->processes, before->processes) << "the same one";
    EXPECT_EQ(hypervisor->running(name)->size(), 1U);
    ASSERT_TRUE(hypervisor->destroy(name));
    EXPECT_EQ(*hypervisor->look(name), MachineState::absent);
    EXPECT_TRUE(sooner_or_later([&] { return !presence_of(name)->any(); }));
}

// As a node has it: the file is renamed under whoever reads it, and the last line may be in the one before.
TEST(Console, that_virtlogd_writes_in_pieces_is_one_stream) {
#ifdef BULKHEAD_NO_XDR
    GTEST_SKIP() << "the address sanitizer breaks libvirt's own wire";
#endif
    for (const char* program : {libvirtd, virtlogd})
        if (::access(program, X_OK) != 0) GTEST_SKIP() << "there is no " << program;
    Embedded here;
    if (const auto why = here.prepare()) GTEST_SKIP() << *why;
    Daemon daemon{here.folder()};
    if (const auto why = daemon.prepare(8192)) GTEST_SKIP() << *why;
    ASSERT_TRUE(daemon.begin()) << daemon.log();
    auto hypervisor = Hypervisor::open({.uri = daemon.uri()});
    if (!hypervisor) GTEST_SKIP() << hypervisor.error().what << "\n" << daemon.log();
    const auto image = find_image(Embedded::images(), "default");
    ASSERT_TRUE(image) << image.error().what;
    const MachineFolder folder{here.folder() / "machine"};
    ASSERT_TRUE(make_machine(folder, *image,
                             {.words = {"sh", "-c", "i=1000; while [ $i -lt 5000 ]; do echo line $i; i=$((i+1)); done"},
                              .environment = {}}));
    const std::string name = fmt::format("bh-console-{}", ::getpid());
    const EndOfMachine cleanup{name};
    const auto started = hypervisor->start(plain_domain(name, folder));
    ASSERT_TRUE(started) << started.error().what << "\n" << daemon.log();
    std::string printed;
    const auto follow = [&] {
        const auto text = Console{folder.console()}.read(std::ssize(printed), 1 << 20);
        ASSERT_TRUE(text) << text.error().what;
        ASSERT_EQ(text->from, std::ssize(printed)) << "nothing was missed";
        printed += text->bytes;
    };
    EXPECT_TRUE(sooner_or_later([&] {
        follow();
        return printed.contains("bulkhead-exit: 0") || HasFatalFailure();
    })) << printed;
    EXPECT_TRUE(std::filesystem::exists(folder.console() + ".2")) << "it was in several pieces";
    std::string all;
    for (int i = 1000; i < 5000; ++i) all += fmt::format("line {}\r\n", i);
    EXPECT_TRUE(printed.contains(all)) << printed;
    EXPECT_TRUE(sooner_or_later([&] { return *hypervisor->look(name) == MachineState::absent; }));
    follow();
    const auto end = Console{folder.console()}.tail(4096);
    ASSERT_TRUE(end);
    EXPECT_EQ(end->from + std::ssize(end->bytes), std::ssize(printed));
    EXPECT_TRUE(end->bytes.contains("bulkhead-exit: 0")) << end->bytes;
    // Of a start over nothing is left of the one before.
    ASSERT_TRUE(make_machine(folder, *image, {.words = {"true"}, .environment = {}}));
    EXPECT_EQ(Console{folder.console()}.read(0, 100).value(), ConsoleText{});
}

}  // namespace bulkhead::vm
