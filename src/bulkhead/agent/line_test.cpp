// What is left to the half of an agent that speaks to a network, asked from inside: in a child, which never gets it
// back.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "bulkhead/agent/line_account.hpp"
#include "bulkhead/agent/line_calls.hpp"
#include "bulkhead/hw/container/durable.hpp"

namespace bulkhead::agent {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// What the child says; it must not use the test's own words, which nobody would hear.
std::string said_under_the_filter(const std::function<std::string()>& ask) {
    auto pipe = container::make_pipe();
    if (!pipe) return "no pipe";
    const pid_t child = ::fork();
    if (child == 0) {
        const auto filtered = filter_line_calls();
        const std::string said = filtered ? ask() : filtered.error().what;
        const bool heard = ::write(*pipe->write, said.data(), said.size()) == static_cast<ssize_t>(said.size());
        ::_exit(heard ? 0 : 1);
    }
    pipe->write.close();
    std::string said;
    char piece = 0;
    while (::read(*pipe->read, &piece, 1) == 1) said += piece;
    int status = 0;
    ::waitpid(child, &status, 0);
    if (status != 0) said += fmt::format("(ended with {})", status);
    return said;
}

TEST(LineCalls, what_would_lead_out_is_not_there) {
    struct Row {
        std::string_view says;
        long call;
        long first = 0;
    };
    const Row rows[] = {
        {"runs a program", SYS_execve},
        {"runs a program by descriptor", SYS_execveat},
        {"starts a process", SYS_clone, SIGCHLD},
        {"starts a process, in the new way", SYS_clone3},
        {"makes a user namespace", SYS_clone, 0x10000000},
        {"looks into a process", SYS_ptrace},
        {"reads another's memory", SYS_process_vm_readv},
        {"writes another's memory", SYS_process_vm_writev},
        {"takes another's descriptor", SYS_pidfd_getfd},
        {"holds another process", SYS_pidfd_open},
        {"signals another", SYS_kill},
        {"mounts", SYS_mount},
        {"mounts, in the new way", SYS_move_mount},
        {"changes its root", SYS_chroot},
        {"pivots its root", SYS_pivot_root},
        {"joins a namespace", SYS_setns},
        {"leaves its namespaces", SYS_unshare},
        {"loads a program into the kernel", SYS_bpf},
        {"loads a kernel", SYS_kexec_load},
        {"loads a module", SYS_init_module},
        {"loads a module from a file", SYS_finit_module},
        {"unloads a module", SYS_delete_module},
        {"reads keyrings", SYS_keyctl},
        {"adds to keyrings", SYS_add_key},
        {"counts the machine's events", SYS_perf_event_open},
        {"handles page faults", SYS_userfaultfd},
        {"opens a ring", SYS_io_uring_setup},
        {"opens files past their paths", SYS_open_by_handle_at},
        {"becomes another user", SYS_setuid},
        {"becomes another user in every way", SYS_setresuid},
        {"becomes another group", SYS_setgid},
        {"joins groups", SYS_setgroups},
        {"takes capabilities", SYS_capset},
        {"changes an owner", SYS_fchownat},
        {"changes a mode", SYS_fchmodat},
        {"makes a device", SYS_mknodat},
        {"waits for callers", SYS_listen},
        {"takes calls", SYS_accept4},
        {"opens a packet socket", SYS_socket, AF_PACKET},
        {"opens a crypto socket", SYS_socket, AF_ALG},
        {"opens a VM's socket", SYS_socket, AF_VSOCK},
        {"sets the clock", SYS_clock_settime},
        {"restarts the machine", SYS_reboot},
        {"reads the kernel's log", SYS_syslog},
        {"does any odd thing", SYS_prctl, 38},
    };
    const std::string said = said_under_the_filter([&] {
        std::string wrong;
        for (const Row& row : rows) {
            errno = 0;
            if (::syscall(row.call, row.first, 0L, 0L, 0L, 0L, 0L) != -1 || errno != ENOSYS)
                wrong += fmt::format("it {}: {}\n", row.says, errno);
        }
        return wrong + "asked";
    });
    EXPECT_EQ(said, "asked");
}

TEST(LineCalls, what_an_agent_does_goes_on) {
    const std::string path = fs::temp_directory_path() / fmt::format("bulkhead-line-{}", ::getpid());
    const std::string said = said_under_the_filter([&] {
        std::string did;
        std::thread{[&] { did += "a thread, "; }}.join();
        std::ofstream{path} << "x";
        if (fs::exists(path) && fs::remove(path)) did += "a file, ";
        for (const int family : {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK})
            if (const container::Fd line{::socket(family, SOCK_STREAM, 0)}; line || errno != ENOSYS)
                did += "a socket, ";
        if (const container::Fd line{::socket(AF_NETLINK, SOCK_RAW, 0)}; line) did += "routes";
        addrinfo* found = nullptr;
        if (::getaddrinfo("localhost", "443", nullptr, &found) == 0) did += ", a name";
        return did;
    });
    EXPECT_EQ(said, "a thread, a file, a socket, a socket, a socket, a socket, routes, a name");
}

TEST(LineAccount, is_never_root_nor_a_tenant) {
    const auto usual = line_account("", 1'000'000);
    ASSERT_TRUE(usual);
    EXPECT_NE(usual->ids.user, 0u);
    EXPECT_LT(usual->ids.user, 1'000'000u);
    EXPECT_EQ(line_account("1234", 1'000'000)->ids.user, 1234u);
    for (const char* wrong : {"root", "0", "1000000", "4294967295", "there-is-no-such-user", "12x", "-1"})
        EXPECT_FALSE(line_account(wrong, 1'000'000)) << wrong;
}

class LineFolder : public testing::Test {
protected:
    void SetUp() override {
        if (::geteuid() != 0) GTEST_SKIP() << "only root hands files over";
        std::string pattern = fs::temp_directory_path() / "bulkhead-line-XXXXXX";
        folder_ = ::mkdtemp(pattern.data());
    }
    void TearDown() override {
        if (!folder_.empty()) fs::remove_all(folder_);
    }
    static uid_t owner(const std::string& path) {
        struct stat facts{};
        return ::lstat(path.c_str(), &facts) == 0 ? facts.st_uid : static_cast<uid_t>(-1);
    }
    std::string folder_;
    const container::UserAndGroup user_{4242, 4242};
};

TEST_F(LineFolder, is_the_users_below_one_that_stays_roots) {
    ASSERT_TRUE(make_line_folder(folder_ + "/node", user_));
    EXPECT_EQ(owner(folder_ + "/node"), 0u);
    EXPECT_EQ(owner(folder_ + "/node/line"), 4242u);
    EXPECT_TRUE(make_line_folder(folder_ + "/node", user_)) << "again is fine";
    const auto other = make_line_folder(folder_ + "/node", {4243, 4243});
    ASSERT_FALSE(other);
    EXPECT_THAT(other.error().remedy, HasSubstr("chown -R 4243:4243"));
}

TEST_F(LineFolder, takes_over_what_an_agent_that_was_all_root_kept) {
    for (const char* name : {"node.json", "tls.pem", "journal", "journal.lock", "gpus", "tenant-ids"})
        std::ofstream{folder_ + "/" + name} << name;
    ASSERT_TRUE(make_line_folder(folder_, user_));
    for (const char* name : {"node.json", "tls.pem", "journal", "journal.lock"}) {
        EXPECT_EQ(owner(folder_ + "/line/" + name), 4242u) << name;
        EXPECT_FALSE(fs::exists(folder_ + "/" + name)) << name;
    }
    for (const char* name : {"gpus", "tenant-ids"}) EXPECT_EQ(owner(folder_ + "/" + name), 0u) << name;
}

TEST_F(LineFolder, gives_nothing_away_that_the_user_could_have_put_there) {
    ASSERT_TRUE(make_line_folder(folder_, user_));
    std::ofstream{folder_ + "/roots"} << "own";
    fs::create_hard_link(folder_ + "/roots", folder_ + "/line/journal");
    ASSERT_TRUE(make_line_folder(folder_, user_));
    EXPECT_EQ(owner(folder_ + "/roots"), 0u);
}

TEST_F(LineFolder, is_refused_where_others_could_put_files_in_roots_way) {
    ASSERT_EQ(::chown(folder_.c_str(), 4242, 4242), 0);
    const auto made = make_line_folder(folder_, user_);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, Code::denied);
    fs::remove_all(folder_);
    fs::create_directory(folder_);
    fs::permissions(folder_, fs::perms::all);
    EXPECT_FALSE(make_line_folder(folder_, user_)) << "anybody may write there";
}

TEST_F(LineFolder, is_refused_below_folders_that_others_could_exchange) {
    const std::string above = folder_ + "/above", node = above + "/between/node";
    struct Row {
        std::string_view says;
        uid_t user;
        gid_t group;
        unsigned mode;
        std::string_view refused;  // with these words; none: it is fine
    };
    const Row rows[] = {
        {"root's alone", 0, 0, 0755, ""},
        {"somebody else's", 4242, 0, 0755, "belongs to user 4242"},
        {"sticky, and somebody else's", 4242, 0, 01777, "belongs to user 4242"},
        {"anybody writes there", 0, 0, 0777, "is writable for others (mode 0777"},
        {"sticky, as /tmp is", 0, 0, 01777, ""},
        {"a group writes there", 0, 4242, 0775, "is writable for others (mode 0775, group 4242)"},
        {"root's own group writes there", 0, 0, 0775, ""},
    };
    for (const Row& row : rows) {
        SCOPED_TRACE(row.says);
        fs::remove_all(above);
        fs::create_directories(above + "/between");
        ASSERT_EQ(::chown(above.c_str(), row.user, row.group), 0);
        ASSERT_EQ(::chmod(above.c_str(), row.mode), 0);
        const auto made = make_line_folder(node, user_);
        EXPECT_EQ(made.has_value(), row.refused.empty());
        if (made) continue;
        EXPECT_EQ(made.error().code, Code::denied);
        EXPECT_THAT(made.error().what, HasSubstr(above + ", on the way to " + node));
        EXPECT_THAT(made.error().what, HasSubstr(std::string{row.refused}));
        EXPECT_THAT(made.error().remedy, HasSubstr(above));
        EXPECT_FALSE(fs::exists(node)) << "nothing was made";
    }
}

TEST_F(LineFolder, is_refused_behind_links_that_others_could_turn) {
    const std::string open = folder_ + "/open", node = folder_ + "/link/node";
    fs::create_directories(folder_ + "/real");
    fs::create_directory(open);
    fs::permissions(open, fs::perms::all);
    fs::create_directory_symlink("real", folder_ + "/link");
    EXPECT_TRUE(make_line_folder(node, user_)) << "a link of root's among root's";
    fs::remove(folder_ + "/link");
    // The way leads through a folder where anybody can exchange the second link.
    fs::create_directory_symlink("../real", open + "/second");
    fs::create_directory_symlink(open + "/second", folder_ + "/link");
    const auto behind = make_line_folder(node, user_);
    ASSERT_FALSE(behind);
    EXPECT_THAT(behind.error().what, HasSubstr(open + ", on the way to"));
    fs::permissions(open, fs::perms::all | fs::perms::sticky_bit);
    EXPECT_TRUE(make_line_folder(node, user_)) << "not where only its owner can";
    ASSERT_EQ(::lchown((open + "/second").c_str(), 4242, 4242), 0);
    EXPECT_FALSE(make_line_folder(node, user_)) << "and its owner is somebody else";
    fs::remove(folder_ + "/link");
    fs::create_directory_symlink("link", folder_ + "/link");
    EXPECT_FALSE(make_line_folder(node, user_)) << "a link to itself leads nowhere";
}

}  // namespace
}  // namespace bulkhead::agent
