// A tree as sysfs has it, with somebody behind it who does what the kernel does.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "bulkhead/hw/vm/vfio.hpp"

namespace bulkhead::vm {

// A tree as sysfs has it, with somebody behind it who does what the kernel does when one of its files is written: files
// that act are pipes, and a thread reads them.
class SysfsTree {
public:
    SysfsTree() : root_{std::filesystem::temp_directory_path() / fmt::format("bulkhead-sysfs-{}", ::getpid())} {
        const std::scoped_lock lock{mutex_};
        std::filesystem::remove_all(root_);
        for (const char* driver : {"nvidia", "vfio-pci"}) std::filesystem::create_directories(drivers() / driver);
        std::filesystem::create_directories(root_ / "bus/pci/devices");
        std::filesystem::create_directories(root_ / "kernel/iommu_groups");
        add_pipe(root_ / "bus/pci/drivers_probe", [this](const std::string& device) { probe(device); });
        for (const char* driver : {"nvidia", "vfio-pci"})
            add_pipe(drivers() / driver / "unbind", [this](const std::string& device) {
                if (!stubborn) std::filesystem::remove(devices() / device / "driver");
            });
    }
    ~SysfsTree() {
        stopping_ = true;
        kernel_.join();
        for (auto& [path, pipe] : pipes_) ::close(pipe.handle);
        std::filesystem::remove_all(root_);
    }
    void add(const std::string& device, int group, const std::string& type = "0x030200") {
        const std::filesystem::path at = devices() / device;
        std::filesystem::create_directories(at);
        std::ofstream{at / "class"} << type << "\n";
        std::ofstream{at / "driver_override"} << "(null)\n";
        std::ofstream{at / "reset_method"} << "flr bus\n";
        const std::filesystem::path members = root_ / "kernel/iommu_groups" / std::to_string(group) / "devices";
        std::filesystem::create_directories(members);
        std::filesystem::create_directory_symlink(at, members / device);
        if (group >= 0) std::filesystem::create_directory_symlink(members.parent_path(), at / "iommu_group");
        const std::scoped_lock lock{mutex_};
        add_pipe(at / "reset", [this, device](const std::string&) { resets_.insert(device); });
        bind(device, "nvidia");
    }
    void offer_resets(const std::string& device, const std::string& methods) {
        std::ofstream{devices() / device / "reset_method"} << methods << "\n";
    }
    // As a virtual function is: its physical one has said that no driver is found for it.
    void make_function(const std::string& device) {
        std::filesystem::create_directory_symlink(devices(), devices() / device / "physfn");
        const std::scoped_lock lock{mutex_};
        functions_.insert(device);
    }
    VfioSettings settings() const { return {.sysfs = root_, .patience = std::chrono::seconds{20}}; }

    std::atomic<bool> stubborn = false;  // drivers do not let go
    bool was_reset(const std::string& device) {
        const std::scoped_lock lock{mutex_};
        return resets_.contains(device);
    }
    void forget_reset_of(const std::string& device) {
        const std::scoped_lock lock{mutex_};
        resets_.erase(device);
    }
    bool saw_reset_of(const std::string& device) {
        for (int i = 0; i < 2000; ++i) {
            {
                const std::scoped_lock lock{mutex_};
                if (resets_.contains(device)) return true;
            }
            std::this_thread::sleep_for(std::chrono::milliseconds{1});
        }
        return false;
    }

private:
    struct Pipe {
        int handle = -1;
        std::function<void(const std::string&)> act;
    };
    std::filesystem::path devices() const { return root_ / "bus/pci/devices"; }
    std::filesystem::path drivers() const { return root_ / "bus/pci/drivers"; }
    void add_pipe(const std::filesystem::path& path, std::function<void(const std::string&)> act) {
        ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
        pipes_[path] = {::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC), std::move(act)};
    }
    void bind(const std::string& device, const std::string& driver) {
        std::filesystem::remove(devices() / device / "driver");
        std::filesystem::create_directory_symlink(drivers() / driver, devices() / device / "driver");
    }
    void probe(const std::string& device) {
        std::ifstream file{devices() / device / "driver_override"};
        std::string wanted;
        std::getline(file, wanted);
        if (std::filesystem::exists(devices() / device / "driver")) return;
        const bool prefers_none = wanted.empty() || wanted.starts_with("(null)");
        if (prefers_none && functions_.contains(device)) return;
        bind(device, prefers_none ? "nvidia" : wanted.substr(0, wanted.find('(')));
    }
    void serve() {
        while (!stopping_) {
            {
                const std::scoped_lock lock{mutex_};
                for (auto& [path, pipe] : pipes_) {
                    char text[128];
                    const ssize_t got = ::read(pipe.handle, text, sizeof text);
                    if (got > 0) pipe.act({text, static_cast<std::size_t>(got)});
                }
            }
            std::this_thread::sleep_for(std::chrono::milliseconds{1});
        }
    }

    std::filesystem::path root_;
    std::mutex mutex_;
    std::set<std::string> resets_, functions_;
    std::map<std::string, Pipe> pipes_;
    std::atomic<bool> stopping_ = false;
    std::thread kernel_{[this] { serve(); }};
};

}  // namespace bulkhead::vm
