#include "bulkhead/hw/nvme/kernel_transport.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <linux/nvme_ioctl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <thread>
#include <utility>

#include "bulkhead/hw/nvme/identify.hpp"
#include "bulkhead/hw/nvme/in_use.hpp"
#include "bulkhead/hw/nvme/sysfs.hpp"

namespace bulkhead::nvme {

namespace {

constexpr std::chrono::seconds comes_back_within{60}, appears_within{15};
constexpr std::chrono::milliseconds look_again{100};
constexpr std::size_t alignment = 4096;

class File {
public:
    File() = default;
    explicit File(int number) : number_{number} {}
    File(File&& other) noexcept : number_{std::exchange(other.number_, -1)} {}
    File& operator=(File&& other) noexcept {
        std::swap(number_, other.number_);
        return *this;
    }
    ~File() {
        if (number_ >= 0) ::close(number_);
    }
    int operator*() const { return number_; }
    explicit operator bool() const { return number_ >= 0; }

private:
    int number_ = -1;
};

std::unexpected<Error> errno_says(Code code, std::string_view doing, std::string remedy) {
    const int error = errno;
    return fail(code, fmt::format("{}: {}", doing, std::strerror(error)), std::move(remedy));
}

struct Freed {
    void operator()(void* memory) const { std::free(memory); }
};
using Aligned = std::unique_ptr<std::uint8_t, Freed>;
Aligned aligned_memory(std::size_t size) {
    return Aligned{
        static_cast<std::uint8_t*>(std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment))};
}

class KernelDrive final : public Transport {
public:
    KernelDrive(Tree tree, Drive drive, File controller)
        : tree_{std::move(tree)}, drive_{std::move(drive)}, controller_{std::move(controller)} {}

    Result<Completion> admin(const Command& command) override {
        nvme_admin_cmd raw{};
        raw.opcode = command.opcode;
        raw.nsid = command.nsid;
        raw.addr = reinterpret_cast<std::uintptr_t>(command.data.data());
        raw.data_len = static_cast<std::uint32_t>(command.data.size());
        raw.cdw10 = command.cdw10;
        raw.cdw11 = command.cdw11;
        raw.timeout_ms = static_cast<std::uint32_t>(command.timeout.count());
        const int answered = ::ioctl(*controller_, NVME_IOCTL_ADMIN_CMD, &raw);
        if (answered < 0)
            return errno_says(errno == EACCES || errno == EPERM ? Code::denied : Code::unavailable,
                              fmt::format("{} ({}) has not answered command {:02X}h", drive_.controller, drive_.serial,
                                          command.opcode),
                              "see dmesg");
        // Do not retry, more: how often something should be tried is the driver's business.
        return Completion{static_cast<std::uint16_t>(answered & 0x7FF), raw.result};
    }

    Result<> rescan() override {
        if (::ioctl(*controller_, NVME_IOCTL_RESCAN) != 0)
            return errno_says(Code::unavailable, drive_.controller + " cannot be scanned for namespaces", "see dmesg");
        return {};
    }

    Result<> fresh() override {
        if (::ioctl(*controller_, NVME_IOCTL_RESET) != 0)
            return errno_says(Code::unavailable, drive_.controller + " cannot be reset", "see dmesg");
        const auto until = std::chrono::steady_clock::now() + comes_back_within;
        while (first_line_of(tree_.sys + "/class/nvme/" + drive_.controller + "/state") != "live") {
            if (std::chrono::steady_clock::now() > until)
                return fail(Code::timeout,
                            fmt::format("{} ({}) does not come back from a reset within {} s", drive_.controller,
                                        drive_.serial, comes_back_within.count()),
                            "see dmesg; take the drive out");
            std::this_thread::sleep_for(look_again);
        }
        if (auto scanned = rescan(); !scanned) return scanned;
        // Whoever looked into one meanwhile has left pages of what was there before.
        for (const auto& [id, file] : held_)
            if (auto dropped = drop_pages(id, file); !dropped) return dropped;
        return {};
    }

    Result<> hold(std::span<const std::uint32_t> namespaces) override {
        for (const std::uint32_t id : namespaces) {
            if (held_.contains(id)) continue;
            const auto block = block_of(id);
            if (!block) return std::unexpected(block.error());
            const std::string path = tree_.dev + "/" + block->name;
            File file{::open(path.c_str(), O_RDWR | O_EXCL | O_DIRECT | O_CLOEXEC)};
            if (!file)
                return errno_says(errno == EBUSY ? Code::conflict : Code::unavailable,
                                  fmt::format("{} (namespace {} of {}) cannot be had alone", path, id, drive_.serial),
                                  "end whoever uses it; `lsblk` and `fuser` may tell");
            struct stat node{};
            if (::fstat(*file, &node) != 0 || !S_ISBLK(node.st_mode) || ::major(node.st_rdev) != block->major ||
                ::minor(node.st_rdev) != block->minor)
                return fail(Code::conflict, fmt::format("{} is another device than sysfs says", path),
                            "see udev's log");
            if (const int said = ::ioctl(*file, NVME_IOCTL_ID); said < 0 || static_cast<std::uint32_t>(said) != id)
                return fail(Code::conflict, fmt::format("{} is namespace {}, not {}", path, said, id),
                            "see udev's log");
            // What a program wrote and the kernel has not: it would come after the erase.
            if (auto dropped = drop_pages(id, file); !dropped) return dropped;
            held_[id] = std::move(file);
        }
        return nobody_beside_us();
    }

    Result<> read(std::uint32_t nsid, std::uint64_t offset, std::span<std::uint8_t> into) override {
        const auto file = held_.find(nsid);
        if (file == held_.end()) return not_held(nsid);
        const Aligned memory = aligned_memory(into.size());
        const ssize_t got = ::pread(*file->second, memory.get(), into.size(), static_cast<off_t>(offset));
        if (got < 0)
            return errno_says(Code::unavailable, fmt::format("byte {} of namespace {}", offset, nsid), "see dmesg");
        if (static_cast<std::size_t>(got) != into.size())
            return fail(Code::unavailable, fmt::format("namespace {} ends at byte {}", nsid, offset), "");
        std::copy_n(memory.get(), into.size(), into.begin());
        return {};
    }

    Result<> write(std::uint32_t nsid, std::uint64_t offset, std::span<const std::uint8_t> from) override {
        const auto file = held_.find(nsid);
        if (file == held_.end()) return not_held(nsid);
        const Aligned memory = aligned_memory(from.size());
        std::ranges::copy(from, memory.get());
        const ssize_t put = ::pwrite(*file->second, memory.get(), from.size(), static_cast<off_t>(offset));
        if (put < 0 || static_cast<std::size_t>(put) != from.size())
            return errno_says(Code::unavailable, fmt::format("byte {} of namespace {} cannot be written", offset, nsid),
                              "see dmesg");
        return {};
    }

    Result<> flush(std::uint32_t nsid) override {
        const auto file = held_.find(nsid);
        if (file == held_.end()) return not_held(nsid);
        if (::fdatasync(*file->second) != 0)
            return errno_says(Code::unavailable, fmt::format("namespace {} cannot be flushed", nsid), "see dmesg");
        return {};
    }

private:
    static Result<> drop_pages(std::uint32_t nsid, const File& file) {
        if (::ioctl(*file, BLKFLSBUF, 0) == 0) return {};
        return errno_says(Code::unavailable,
                          fmt::format("what the kernel remembers of namespace {} cannot be dropped", nsid), "");
    }
    // Who came between the look and the hold, and who opens without asking to be alone. udev does, for a moment.
    Result<> nobody_beside_us() const {
        const std::string ourselves = fmt::format(" is open in process {} (", ::getpid());
        for (const auto until = std::chrono::steady_clock::now() + appears_within;;) {
            const auto now = discover(tree_);  // with what was attached since
            if (!now) return std::unexpected(now.error());
            std::vector<std::string> users;
            for (const Drive& one : now->drives)
                if (one.serial == drive_.serial) std::ranges::move(users_of(tree_, one), std::back_inserter(users));
            std::erase_if(users, [&](const std::string& user) { return user.find(ourselves) != std::string::npos; });
            if (users.empty()) return {};
            if (std::chrono::steady_clock::now() > until)
                return fail(Code::conflict, fmt::format("{} is in use: {}", drive_.serial, fmt::join(users, "; ")),
                            "end that; it may be no drive for tenants");
            std::this_thread::sleep_for(look_again);
        }
    }
    static std::unexpected<Error> not_held(std::uint32_t nsid) {
        return fail(Code::invalid, fmt::format("namespace {} is not held", nsid), "this is a fault of the agent");
    }
    // Names may have changed since it was found; one that was just attached takes a moment.
    Result<BlockDevice> block_of(std::uint32_t id) const {
        for (const auto until = std::chrono::steady_clock::now() + appears_within;;) {
            const auto now = discover(tree_);
            if (!now) return std::unexpected(now.error());
            for (const Drive& one : now->drives)
                if (one.serial == drive_.serial && one.controller == drive_.controller)
                    for (const NamespaceBlock& block : one.namespaces)
                        if (block.nsid == id) return block.device;
            if (std::chrono::steady_clock::now() > until)
                return fail(Code::not_found, fmt::format("namespace {} of {} has no block device", id, drive_.serial),
                            "see dmesg, and whether nvme_core.multipath hides it");
            std::this_thread::sleep_for(look_again);
        }
    }

    Tree tree_;
    Drive drive_;
    File controller_;
    std::map<std::uint32_t, File> held_;
};

}  // namespace

Result<std::unique_ptr<Transport>> open_drive(const Tree& tree, const Drive& drive) {
    const std::string path = tree.dev + "/" + drive.controller;
    File node{::open(path.c_str(), O_RDWR | O_CLOEXEC)};
    if (!node)
        return errno_says(errno == EACCES || errno == EPERM ? Code::denied : Code::unavailable,
                          fmt::format("{} cannot be opened", path), "run as root");
    auto opened = std::make_unique<KernelDrive>(tree, drive, std::move(node));
    std::array<std::uint8_t, identify_bytes> page{};
    const auto answered = opened->admin({.opcode = 0x06, .cdw10 = cns::controller, .data = page});
    if (!answered) return std::unexpected(answered.error());
    const auto said = parse_controller(page);
    if (!said) return std::unexpected(said.error());
    if (answered->status != 0 || said->serial != drive.serial)
        return fail(Code::conflict, fmt::format("{} is {} and no longer {}", path, said->serial, drive.serial),
                    "look again: names were given out anew");
    return opened;
}

}  // namespace bulkhead::nvme
