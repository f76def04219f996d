// What a tenant can see and do, asked from inside, in both tiers.
#include <fcntl.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <fstream>
#include <regex>
#include <thread>

#include "bulkhead/hw/container/device_filter.hpp"
#include "bulkhead/hw/container/node_test.hpp"
#include "bulkhead/hw/container/system_calls.hpp"

namespace bulkhead::container {

namespace {

class Inside : public Node, public testing::WithParamInterface<Tier> {
protected:
    void SetUp() override {
        Node::SetUp();
        if (GetParam() == Tier::container && ::access(places.runtime.c_str(), X_OK) != 0)
            GTEST_SKIP() << places.runtime << " is not installed";
    }
    TenantSpec wanted(LeaseKey lease, std::string script) {
        TenantSpec spec = Node::spec(lease, std::move(script));
        spec.tier = GetParam();
        return spec;
    }
    std::string asked(std::string script) {
        Tenants tenants = opened();
        return output_of(tenants, wanted(++lease_, std::move(script)));
    }
    LeaseKey lease_ = 0;
};

INSTANTIATE_TEST_SUITE_P(InBothTiers, Inside, testing::Values(Tier::process, Tier::container), [](const auto& tier) {
    return std::string{words(tier.param)[static_cast<std::size_t>(tier.param)]};
});

TEST_P(Inside, there_are_its_devices_and_no_others) {
    Tenants tenants = opened();
    TenantSpec spec = wanted(1, "");
    spec.devices = {leased()};
    // Asked of each, for a directory may say something else of what is mounted over it.
    const std::string list =
        "for f in $(find /dev | sort); do [ -h $f ] || [ ! -c $f -a ! -b $f ] || printf '%s ' $f; done;";
    spec.command.back() = list + fmt::format("exec 3<>{} && echo open", device);
    // The runtimes' specification puts a tty into every container; without a terminal it leads nowhere.
    EXPECT_EQ(output_of(tenants, spec),
              fmt::format("{} /dev/full /dev/null /dev/random {}/dev/urandom /dev/zero open\n", device,
                          GetParam() == Tier::process ? "" : "/dev/tty "));
    const std::string without = output_of(tenants, wanted(2, fmt::format("exec 3<>{} && echo open", device)));
    EXPECT_FALSE(without.contains("open\n")) << without;
    EXPECT_FALSE(output_of(tenants, wanted(3, "exec 3<>/dev/tty && echo open")).contains("open\n"));
    struct stat null{};
    ASSERT_EQ(::stat("/dev/null", &null), 0);
    EXPECT_EQ(null.st_uid, 0u) << "the host's nodes stay the host's";
}

TEST_P(Inside, a_leased_device_is_told_to_other_runtimes_while_the_lease_lasts) {
    Tenants tenants = opened();
    TenantSpec spec = wanted(1, "echo");
    spec.devices = {leased()};
    ASSERT_TRUE(tenants.start(spec));
    end_of(tenants, 1);
    const std::string file = places.cdi + "/bulkhead.dev-gpu_lease-1.json";
    EXPECT_EQ(std::filesystem::exists(file), GetParam() == Tier::container) << "no runtime starts processes";
    ASSERT_TRUE(eventually([&] { return tenants.stopped(1).value(); }));
    ASSERT_TRUE(tenants.remove(1));
    EXPECT_FALSE(std::filesystem::exists(file));
}

TEST_P(Inside, the_hosts_processes_are_not_there) {
    const std::string said =
        asked(fmt::format("ls /proc | grep -c '^[0-9]'; ls -d /proc/{} 2>&1; kill -0 {} 2>&1", ::getpid(), ::getpid()));
    EXPECT_LT(std::stoi(said), 6) << said;
    EXPECT_TRUE(said.contains("No such file")) << said;
    EXPECT_TRUE(said.contains("No such process")) << said;
}

TEST_P(Inside, the_system_cannot_be_written) {
    const std::string said = asked(
        "for f in /usr/bin/x /etc/x /x /lib/x /proc/sys/kernel/core_pattern /sys/kernel/x /etc/passwd /dev/x /run/x; do"
        " (echo y > $f) 2>/dev/null && echo \"$f can be written\"; done; mkdir /dev/own 2>/dev/null; echo asked");
    EXPECT_EQ(said, "asked\n");
}

TEST_P(Inside, work_and_temporary_files_are_its_own) {
    const std::string mark = fmt::format("/tmp/bulkhead-mark-{}", ::getpid());
    const std::string said =
        asked(fmt::format("echo a > {0} && echo b > /job/f && cat {0} /job/f; pwd; ls /tmp | wc -l", mark));
    EXPECT_EQ(said, "a\nb\n/job\n1\n");
    EXPECT_FALSE(std::filesystem::exists(mark));
}

TEST_P(Inside, another_leases_files_are_out_of_reach) {
    const std::string secret = places.directory + "/secret";
    TenantSpec owner = wanted(9, "cat /job/key");
    std::filesystem::create_directory(secret);
    std::ofstream{secret + "/key"} << "swordfish\n";
    ASSERT_EQ(::chown(secret.c_str(), owner.ids.first, owner.ids.first), 0);
    ASSERT_EQ(::chmod(secret.c_str(), 0700), 0);
    owner.work_dir = secret;
    Tenants tenants = opened();
    EXPECT_EQ(output_of(tenants, owner), "swordfish\n");
    const std::string said = asked(fmt::format(
        "cat {0}/key; ls {1}; cat {1}/lease-9/log/stdout.0; ls /proc/[0-9]*/root{0}", secret, places.directory));
    EXPECT_FALSE(said.contains("swordfish")) << said;
    // And were it in view, by a mistake in a mount, it would be another user's.
    TenantSpec careless = wanted(8, "cat /opt/key; ls /opt");
    careless.mounts = {{secret, "/opt"}};
    EXPECT_FALSE(output_of(tenants, careless).contains("swordfish"));
}

TEST_P(Inside, mounts_it_was_given_are_there_and_read_only) {
    const std::string data = places.directory + "/data";
    std::filesystem::create_directory(data);
    std::ofstream{data + "/set"} << "numbers\n";
    Tenants tenants = opened();
    TenantSpec spec = wanted(1, "cat /opt/data/set; echo x > /opt/data/set || echo refused");
    spec.mounts = {{data, "/opt/data"}};
    EXPECT_TRUE(std::regex_search(output_of(tenants, spec), std::regex{"^numbers\nrefused\n"}));
}

TEST_P(Inside, what_is_hidden_is_empty_and_the_rest_is_there) {
    Tenants tenants = opened();
    TenantSpec spec =
        wanted(1, "wc -c < /usr/bin/perl; /usr/bin/perl -e 'print 1'; test -s /usr/bin/env && echo there");
    spec.hidden = {"/usr/bin/perl", "/usr/bin/nobody-has-this"};
    const std::string said = output_of(tenants, spec);
    EXPECT_TRUE(said.starts_with("0\nthere\n")) << said;
    EXPECT_GT(std::filesystem::file_size("/usr/bin/perl"), 0u) << "the host's is the host's";
}

TEST_P(Inside, no_privilege_is_left) {
    const std::string said = asked(
        "cat /proc/self/status; ulimit -c; ls /proc/self/fd | tr '\\n' ' '; cat /proc/self/sessionid >/dev/null; "
        "hostname");
    for (const char* line : {"CapInh:\t0000000000000000", "CapPrm:\t0000000000000000", "CapEff:\t0000000000000000",
                             "CapBnd:\t0000000000000000", "CapAmb:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"})
        EXPECT_TRUE(said.contains(line)) << line << " in " << said;
    EXPECT_TRUE(said.contains("\n0\n0 1 2 3 ")) << "no core files, no descriptors of ours: " << said;
    EXPECT_TRUE(said.contains("lease-1"));
    if (GetParam() == Tier::process) {
        EXPECT_TRUE(said.contains(fmt::format("Uid:\t{0}\t{0}\t{0}\t{0}", first_id(1)))) << said;
    }
}

TEST_P(Inside, the_user_is_the_leases_own_outside) {
    Tenants tenants = opened();
    const TenantSpec spec = wanted(1, "echo up; sleep 1000");
    ASSERT_TRUE(tenants.start(spec));
    ASSERT_TRUE(eventually([&] { return said(tenants, 1) == "up\n"; }));
    const auto inside = LeaseCgroup{*find_hierarchies(), places.cgroup_parent, 1}.processes(Room::tenant).value();
    ASSERT_FALSE(inside.empty());
    for (const pid_t pid : inside) {
        const auto text = read_whole(fmt::format("/proc/{}/status", pid));
        if (!text) continue;
        EXPECT_TRUE(text->contains(fmt::format("Uid:\t{0}\t{0}\t{0}\t{0}", spec.ids.first))) << *text;
    }
}

TEST_P(Inside, the_environment_is_what_the_spec_says_and_nothing_more) {
    ::setenv("BULKHEAD_SECRET_OF_THE_AGENT", "swordfish", 1);
    Tenants tenants = opened();
    TenantSpec spec = wanted(1, "");
    spec.command = {"/usr/bin/env"};
    spec.environment = {{"A", "1"}, {"B", "x=y z"}};
    const std::string said = output_of(tenants, spec);
    ::unsetenv("BULKHEAD_SECRET_OF_THE_AGENT");
    EXPECT_TRUE(said.starts_with("A=1\nB=x=y z\n")) << said;
    EXPECT_FALSE(said.contains("swordfish"));
    EXPECT_LE(std::ranges::count(said, '\n'), 3) << "a runtime may add HOME: " << said;
}

TEST_P(Inside, there_is_no_network_but_its_own_loopback) {
    const std::string said = asked("ls /sys/class/net; cat /proc/net/dev | tail -n +3 | wc -l");
    EXPECT_EQ(said, "lo\n1\n");
}

TEST_P(Inside, the_hosts_network_is_there_when_the_spec_says_so) {
    Tenants tenants = opened();
    TenantSpec spec = wanted(1, "readlink /proc/self/ns/net");
    spec.network = Network::host;
    EXPECT_EQ(output_of(tenants, spec), std::filesystem::read_symlink("/proc/self/ns/net").string() + "\n");
}

// A network namespace that a file keeps, with its sysfs beside it, as an agent prepares one.
class PreparedNetwork {
public:
    explicit PreparedNetwork(std::string path) : path_{std::move(path)} {
        {
            const Fd place{::open(path_.c_str(), O_RDONLY | O_CREAT | O_CLOEXEC, 0444)};
        }
        ::mkdir((path_ + ".sys").c_str(), 0755);
        std::thread{[this] {
            is_made_ = ::unshare(CLONE_NEWNET) == 0 &&
                       ::mount("/proc/thread-self/ns/net", path_.c_str(), nullptr, MS_BIND, nullptr) == 0 &&
                       ::mount("sysfs", (path_ + ".sys").c_str(), "sysfs", MS_RDONLY, nullptr) == 0;
        }}.join();
    }
    ~PreparedNetwork() {
        ::umount2((path_ + ".sys").c_str(), MNT_DETACH);
        ::umount2(path_.c_str(), MNT_DETACH);
    }
    PreparedNetwork(const PreparedNetwork&) = delete;
    PreparedNetwork& operator=(const PreparedNetwork&) = delete;
    bool is_made() const { return is_made_; }
    const std::string& path() const { return path_; }
    std::string name() const {
        struct stat seen{};
        return ::stat(path_.c_str(), &seen) == 0 ? fmt::format("net:[{}]", seen.st_ino) : std::string{};
    }

private:
    std::string path_;
    bool is_made_ = false;
};

TEST_P(Inside, a_prepared_network_is_entered_with_its_devices_and_cannot_be_changed) {
    const PreparedNetwork network{places.directory + "/net-1"};
    ASSERT_TRUE(network.is_made());
    Tenants tenants = opened();
    TenantSpec spec = wanted(1,
                             "readlink /proc/self/ns/net; ls /sys/class/net; "
                             "grep -h CapEff /proc/self/status | tr -d '\\t'; "
                             "(echo 1 > /proc/sys/net/ipv4/ip_forward) 2>/dev/null && echo changed");
    spec.network = Network::prepared;
    spec.network_space = network.path();
    EXPECT_EQ(output_of(tenants, spec), network.name() + "\nlo\nCapEff:0000000000000000\n");
}

TEST_P(Inside, a_network_that_is_gone_starts_nobody) {
    Tenants tenants = opened();
    TenantSpec spec = wanted(1, "echo up");
    spec.network = Network::prepared;
    spec.network_space = places.directory + "/nowhere";
    const std::string said = output_of(tenants, spec);
    EXPECT_TRUE(said.starts_with("refused: ") && said.contains("/nowhere")) << said;
}

TEST_P(Inside, system_calls_that_lead_out_are_refused) {
    struct Row {
        const char* name;
        long number, first;
        int error;
    };
    const Row rows[] = {
        {"unshare", SYS_unshare, 0x1000'0000, EPERM},
        {"mount", SYS_mount, 0, EPERM},
        {"ptrace", SYS_ptrace, 0, EPERM},
        {"bpf", SYS_bpf, 0, EPERM},
        {"keyctl", SYS_keyctl, 0, EPERM},
        {"userfaultfd", SYS_userfaultfd, 1, EPERM},
        {"perf", SYS_perf_event_open, 0, EPERM},
        {"kexec", SYS_kexec_load, 0, EPERM},
        {"module", SYS_init_module, 0, EPERM},
        {"setns", SYS_setns, 0, EPERM},
        {"clone3", SYS_clone3, 0, ENOSYS},
        {"io_uring", SYS_io_uring_setup, 1, ENOSYS},
        {"handles", SYS_open_by_handle_at, 0, EPERM},
        {"clone", SYS_clone, 0x1000'0011, ENOSYS},
        {"packets", SYS_socket, 17, ENOSYS},
        {"crypto", SYS_socket, 38, ENOSYS},
        {"vsock", SYS_socket, 40, ENOSYS},
        {"later ones", 462, 0, ENOSYS},
    };
    std::string script, expected;
    for (const Row& row : rows) {
        script +=
            fmt::format("syscall({}, {}, 0, 0, 0, 0); print '{} ', $!+0, \"\\n\"; ", row.number, row.first, row.name);
        expected += fmt::format("{} {}\n", row.name, row.error);
    }
    Tenants tenants = opened();
    TenantSpec spec = wanted(1, "");
    spec.command = {"/usr/bin/perl", "-e", script};
    EXPECT_EQ(output_of(tenants, spec), expected);
}

TEST_P(Inside, memory_ends_at_the_limit) {
    Tenants tenants = opened();
    TenantSpec spec = wanted(1, "");
    spec.command = {"/usr/bin/perl", "-e", "my @x; push @x, 'a' x (4 << 20) while 1"};
    spec.limits.memory_bytes = 64 << 20;
    ASSERT_TRUE(tenants.start(spec));
    const Look seen = end_of(tenants, 1);
    EXPECT_EQ(seen.exit.signal, SIGKILL);
    EXPECT_GE(seen.exit.memory_kills, 1);
}

TEST_P(Inside, a_fork_bomb_stays_within_its_walls) {
    Tenants tenants = opened();
    // A shell ends when it cannot fork, so that one of its own forks until then, and the first stays.
    ASSERT_TRUE(tenants.start(wanted(1, "trap '' TERM; ( while true; do sleep 1000 & done ); exec sleep 1000")));
    const LeaseCgroup group{*find_hierarchies(), places.cgroup_parent, 1};
    ASSERT_TRUE(eventually([&] { return group.processes(Room::tenant)->size() >= 20; }));
    const std::string count = find_hierarchies()->of("pids") + "/" + group.name(Room::tenant) + "/pids.current";
    for (int i = 0; i < 200; ++i) ASSERT_LE(std::stoi(read_whole(count).value()), 64);
    ASSERT_TRUE(tenants.begin_stop(1, Duration{0}));
    EXPECT_TRUE(eventually([&] { return tenants.stopped(1).value_or(false); }));
}

class Image : public Node {
protected:
    void SetUp() override {
        Node::SetUp();
        if (::access(places.runtime.c_str(), X_OK) != 0) GTEST_SKIP() << places.runtime << " is not installed";
        image = places.directory + "/image";
        for (const char* name : {"", "/proc", "/sys", "/dev", "/tmp", "/job", "/usr"})
            std::filesystem::create_directory(image + name);
        for (const char* name : {"bin", "lib", "lib64"})
            std::filesystem::create_symlink(fmt::format("usr/{}", name), image + "/" + name);
        std::ofstream{image + "/marker"} << "an image\n";
    }
    TenantSpec with_image(LeaseKey lease, std::string script) {
        TenantSpec spec = Node::spec(lease, std::move(script));
        spec.tier = Tier::container;
        spec.rootfs = image;
        spec.mounts = {{"/usr", "/usr"}};
        return spec;
    }
    std::string image;
};

TEST_F(Image, a_container_sees_its_own_and_cannot_write_it) {
    Tenants tenants = opened();
    EXPECT_EQ(
        output_of(tenants,
                  with_image(1, "cat /marker; ls /etc 2>/dev/null; (echo x > /marker) 2>/dev/null || echo refused")),
        "an image\nrefused\n");
}

TEST_F(Image, links_where_we_would_mount_are_refused) {
    Tenants tenants = opened();
    std::filesystem::remove(image + "/job");
    std::filesystem::create_symlink("/etc", image + "/job");
    const Result<> linked = tenants.start(with_image(1, "echo"));
    ASSERT_FALSE(linked);
    EXPECT_TRUE(linked.error().what.contains("/job")) << words_of(linked.error());
    std::filesystem::remove(image + "/job");
    EXPECT_FALSE(tenants.start(with_image(2, "echo"))) << "and so is nothing at all";
    EXPECT_FALSE(std::filesystem::exists(image + "/job")) << "nothing is made in an image";
}

TEST_F(Image, a_runtime_that_is_none_is_named) {
    places.runtime = "/usr/bin/true";
    Tenants tenants = opened();
    const Result<> started = tenants.start(with_image(1, "echo"));
    ASSERT_FALSE(started);
    EXPECT_TRUE(started.error().what.contains("/usr/bin/true")) << words_of(started.error());
}

// The walls by themselves, without the view of /dev that hides what is behind them.
class DeviceWall : public Node, public testing::WithParamInterface<bool> {};
INSTANTIATE_TEST_SUITE_P(OfBothVersions, DeviceWall, testing::Values(false, true),
                         [](const auto& v2) { return v2.param ? "version2" : "version1"; });

TEST_P(DeviceWall, root_itself_opens_only_what_was_leased) {
    Hierarchies trees = find_hierarchies().value();
    if (GetParam() && trees.v2.empty()) GTEST_SKIP() << "no cgroup2 here";
    if (!GetParam() && !trees.v1.contains("devices")) GTEST_SKIP() << "no devices controller here";
    if (GetParam()) trees.v1.erase("devices");
    const LeaseCgroup group{trees, places.cgroup_parent, 1};
    const DeviceNode leased{"/dev/fuse", 'c', 10, 229};
    for (int again = 0; again < 2; ++again) {  // a start that is repeated makes it anew
        const Result<> made = group.create(spec(1, "").limits, std::span{&leased, 1});
        ASSERT_TRUE(made) << words_of(made.error());
    }
    const std::vector<Fd> doors = group.doors(Room::tenant).value();
    const pid_t child = ::fork();
    if (child == 0) {
        for (const Fd& door : doors)
            if (::write(*door, "0", 1) != 1) ::_exit(99);
        int wrong = 0;
        if (::access("/dev/fuse", F_OK) == 0 && ::open("/dev/fuse", O_RDWR) < 0) wrong |= 1;
        if (::open("/dev/null", O_RDWR) < 0) wrong |= 2;
        if (::access("/dev/kmsg", F_OK) == 0 && (::open("/dev/kmsg", O_RDONLY) >= 0 || errno != EPERM)) wrong |= 4;
        ::_exit(wrong);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(WEXITSTATUS(status), 0);
    EXPECT_TRUE(group.remove());
}

TEST(DeviceProgram, is_five_instructions_for_each_device) {
    EXPECT_EQ(device_program({}).size(), 6u);
    EXPECT_EQ(device_program(common_devices()).size(), 6u + 5 * 5);
}

TEST(SystemCalls, nothing_is_both_allowed_and_denied) {
    const std::vector<std::string> allowed = allowed_calls();
    EXPECT_GT(allowed.size(), 250u);
    for (const Denied& call : denied_calls())
        EXPECT_FALSE(std::ranges::binary_search(allowed, std::string{call.name})) << call.name;
    for (const char* needed :
         {"read", "execve", "futex", "mmap", "ioctl", "set_mempolicy", "mbind", "pidfd_getfd", "process_vm_readv"})
        EXPECT_TRUE(std::ranges::binary_search(allowed, std::string{needed})) << needed;
}

}  // namespace

}  // namespace bulkhead::container
