// libvirt's QEMU driver inside the test's own process, and a boot image: what it takes to start a real machine on any
// computer, by software. In a mount namespace of the test's own, because the driver looks for its user in /etc/passwd
// and takes /dev/kvm for usable when it sees it.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <linux/kvm.h>
#include <pwd.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "bulkhead/hw/program/program.hpp"

namespace bulkhead::vm {

#if defined(__aarch64__)
inline constexpr const char* qemu_here = "/usr/bin/qemu-system-aarch64";
#else
inline constexpr const char* qemu_here = "/usr/bin/qemu-system-x86_64";
#endif

class Embedded {
public:
    Embedded() : folder_{std::filesystem::temp_directory_path() / fmt::format("bulkhead-vm-{}", ::getpid())} {}
    ~Embedded() {
        std::error_code ignored;
        for (const std::string& place : covered_) ::umount2(place.c_str(), MNT_DETACH);
        // libvirt's driver stays in this process with the folders it made, for the next test that asks for it.
        for (std::filesystem::directory_iterator at{folder_, ignored}, end; !ignored && at != end;
             at.increment(ignored))
            if (at->path().filename() != "libvirt") {
                std::error_code left;
                std::filesystem::remove_all(at->path(), left);
            }
        static const AtExit last{folder_};
        if (lock_ >= 0) ::close(lock_);
    }
    Embedded(const Embedded&) = delete;
    Embedded& operator=(const Embedded&) = delete;

    enum class Kvm : std::uint8_t { hidden, shown };
    // Nothing: it is ready. Otherwise why no machine can be started here. Shown, KVM is a node of the test's own, with
    // the mode that a host gives it.
    std::optional<std::string> prepare(Kvm kvm = Kvm::hidden) {
        if (::geteuid() != 0) return "only root can give a machine its files";
        if (::access(qemu_here, X_OK) != 0) return fmt::format("there is no {}", qemu_here);
        // One machine at a time on this computer: two that are all software lose ticks, and take turns for minutes.
        lock_ = ::open((std::filesystem::temp_directory_path() / "bulkhead-vm-tests.lock").c_str(),
                       O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (lock_ < 0 || ::flock(lock_, LOCK_EX) != 0) return "no lock for machines can be had";
        end_orphans();
        const auto made = program::run({BULKHEAD_SOURCE_DIR "/scripts/tenant-image.sh", images() + "/default"},
                                       {{"PATH", "/usr/sbin:/usr/bin:/sbin:/bin"}}, "", std::chrono::minutes{3});
        if (!made || made->status != 0) return "no boot image: " + (made ? made->output : made.error().what);
        if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
            return "no mount namespace of its own can be had";
        std::filesystem::create_directories(folder_ / "libvirt/etc");
        ::chmod(folder_.c_str(), 0711);
        std::ofstream conf{folder_ / "libvirt/etc/qemu.conf"};
        conf << "stdio_handler = \"file\"\nnamespaces = []\n";
        if (::getpwnam("libvirt-qemu") == nullptr) {
            add_line("/etc/passwd", fmt::format("libvirt-qemu:x:{0}:{0}::/nonexistent:/usr/sbin/nologin\n", user_id));
            add_line("/etc/group", fmt::format("libvirt-qemu:x:{}:\n", user_id));
            if (::getpwnam("libvirt-qemu") == nullptr) return "no user libvirt-qemu can be shown to libvirt";
        }
        if (kvm == Kvm::shown) {
            const int handle = ::open("/dev/kvm", O_RDWR | O_CLOEXEC);
            struct stat found{};
            const bool works =
                handle >= 0 && ::fstat(handle, &found) == 0 && ::ioctl(handle, KVM_GET_API_VERSION, 0) > 0;
            if (handle >= 0) ::close(handle);
            if (!works) return "there is no KVM here";
            ::unlink(own_kvm().c_str());
            if (::mknod(own_kvm().c_str(), S_IFCHR | 0600, found.st_rdev) != 0) return "no device node can be made";
            cover("/dev/kvm", own_kvm());
        } else if (::access("/dev/kvm", F_OK) == 0) {
            std::ofstream{folder_ / "no-kvm"};
            ::chmod((folder_ / "no-kvm").c_str(), 0);
            cover("/dev/kvm", folder_ / "no-kvm");
        }
        return std::nullopt;
    }
    std::string uri() const { return fmt::format("qemu:///embed?root={}", (folder_ / "libvirt").string()); }
    // One for all tests of a build, because it takes a mirror to make.
    static std::string images() { return BULKHEAD_SOURCE_DIR "/build/tenant-images"; }
    std::filesystem::path folder() const { return folder_; }
    std::string own_kvm() const { return folder_ / "kvm"; }

private:
    struct AtExit {
        std::filesystem::path folder;
        ~AtExit() {
            std::error_code ignored;
            std::filesystem::remove_all(folder, ignored);
        }
    };
    static constexpr unsigned user_id = 64055;
    // Machines of tests that were killed: QEMU's words name a folder of a test whose process is gone. The lock is ours.
    static void end_orphans() {
        std::error_code failed;
        const std::string mark = (std::filesystem::temp_directory_path() / "bulkhead-vm-").string();
        for (std::filesystem::directory_iterator at{"/proc", failed}, end; !failed && at != end; at.increment(failed)) {
            const int process = std::atoi(at->path().filename().c_str());
            std::ifstream file{at->path() / "cmdline"};
            const std::string words{std::istreambuf_iterator<char>{file}, {}};
            const std::size_t found = words.find(mark);
            if (process <= 0 || !words.starts_with(qemu_here) || found == std::string::npos) continue;
            const int owner = std::atoi(words.c_str() + found + mark.size());
            if (owner > 0 && ::kill(owner, 0) != 0 && errno == ESRCH) ::kill(process, SIGKILL);
        }
    }
    void cover(const std::string& place, const std::filesystem::path& with) {
        if (::mount(with.c_str(), place.c_str(), nullptr, MS_BIND, nullptr) == 0) covered_.push_back(place);
    }
    void add_line(const std::string& place, const std::string& line) {
        const auto copy = folder_ / std::filesystem::path{place}.filename();
        std::filesystem::copy_file(place, copy, std::filesystem::copy_options::overwrite_existing);
        std::ofstream{copy, std::ios::app} << line;
        cover(place, copy);
    }

    std::filesystem::path folder_;
    std::vector<std::string> covered_;
    int lock_ = -1;
};

}  // namespace bulkhead::vm
