#include "bulkhead/agent/fabric_selftest.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <thread>

#include "bulkhead/evidence/text.hpp"
#include "bulkhead/hw/container/confine.hpp"
#include "bulkhead/hw/container/durable.hpp"
#include "bulkhead/hw/rdma/frames.hpp"

namespace bulkhead::agent {

namespace {

using rdma::Frame;
using std::chrono::milliseconds;

constexpr container::UserAndGroup nobody_in_particular{999'998, 999'998};  // no account, and no tenant's
constexpr milliseconds honest_patience{15'000};  // links of NICs take seconds to come up; who hears it goes on at once
constexpr milliseconds link_patience{5'000};     // for a frame on a link that is up
constexpr milliseconds foreign_patience{1'000};  // where no honest frame can follow
constexpr int copies = 16;                       // of each frame that a guard shall have counted
constexpr std::string_view foreign_tried = "an honest frame to another tenant's port";
const rdma::Mac forged_mac{{0x02, 0xba, 0xd0, 0, 0, 0x01}};
const rdma::Prefix forged_address{false, {10, 255, 0, 77}, 24};

rdma::Mark fresh_mark() {
    rdma::Mark mark{};
    (void)!::getrandom(mark.data(), mark.size(), 0);
    return mark;
}

class Attacker {
public:
    Attacker(FabricRig& rig, FabricFence fence, rdma::Nft nft, rdma::RawLink out, rdma::RawLink in)
        : rig_{rig}, fence_{fence}, nft_{std::move(nft)}, out_{std::move(out)}, in_{std::move(in)} {}

    Frame honest() {
        return {.from = rig_.left().mac,
                .to = rig_.right().mac,
                .source = rig_.left().address,
                .target = rig_.right().address,
                .vlan = std::nullopt,
                .mark = fresh_mark()};
    }
    // Sent again and again while it may be that the link is coming up.
    Result<bool> passes(milliseconds patience, int each = 1) {
        const auto until = std::chrono::steady_clock::now() + patience;
        do {
            const Frame frame = honest();
            for (int copy = 0; copy < each; ++copy)
                if (auto sent = out_.send(frame); !sent) return std::unexpected(sent.error());
            if (in_.hears(frame.mark, milliseconds{200})) return true;
        } while (std::chrono::steady_clock::now() < until);
        return false;
    }

    Result<FabricAttempt> forge(std::string name, std::string tried, const std::function<void(Frame&)>& spoil) {
        Frame frame = honest();
        spoil(frame);
        const auto before = drops();
        in_.forget();
        for (int copy = 0; copy < copies; ++copy)
            if (auto sent = out_.send(frame); !sent) return std::unexpected(sent.error());
        const Frame after = honest();
        if (auto sent = out_.send(after); !sent) return std::unexpected(sent.error());
        FabricAttempt attempt{std::move(name), std::move(tried), AttemptEnd::stopped, {}};
        // In the order they were sent: whichever comes first tells.
        switch (in_.hears_first(frame.mark, after.mark, link_patience)) {
            case rdma::RawLink::Heard::first:
                attempt.end = AttemptEnd::got_through;
                break;
            case rdma::RawLink::Heard::second:
                attempt.by = stopped_by(before);
                break;
            case rdma::RawLink::Heard::neither:
                attempt.end = AttemptEnd::unclear;
                attempt.by = "nobody can say: the honest frame behind it did not arrive either";
                break;
        }
        return attempt;
    }

    // At ends that were taken away and given anew.
    Result<> open_again() {
        auto out = rdma::RawLink::open(rig_.left().space, rig_.left().link);
        if (!out) return std::unexpected(out.error());
        out_ = std::move(*out);
        auto in = rdma::RawLink::open(rig_.right().space, rig_.right().link);
        if (!in) return std::unexpected(in.error());
        in_ = std::move(*in);
        return {};
    }

    Result<FabricAttempt> speak_to_another_tenant() {
        FabricAttempt attempt{
            std::string{attempt_on_another_tenant}, std::string{foreign_tried}, AttemptEnd::stopped, {}};
        if (auto ok = rig_.put(1, 1); !ok) return std::unexpected(ok.error());
        if (auto ok = open_again(); !ok) return std::unexpected(ok.error());
        if (auto ok = wait_for_link(rig_.right()); !ok) return std::unexpected(ok.error());
        const auto before = drops();
        const auto through = passes(fence_ == FabricFence::off ? honest_patience : foreign_patience, copies);
        if (!through) return std::unexpected(through.error());
        if (*through) {
            attempt.end = AttemptEnd::got_through;
            return attempt;
        }
        attempt.by = stopped_by(before);
        // Nothing honest can follow it. But its own tenant must reach that same end, which nobody has touched since.
        if (auto ok = rig_.put(0, 1); !ok) return std::unexpected(ok.error());
        if (auto ok = open_again(); !ok) return std::unexpected(ok.error());
        const auto is_alive = passes(honest_patience);
        if (!is_alive) return std::unexpected(is_alive.error());
        if (!*is_alive) {
            attempt.end = AttemptEnd::unclear;
            attempt.by = "nobody can say: its own tenant does not reach that end either";
        }
        return attempt;
    }

private:
    static Result<> wait_for_link(const RigEnd& end) {
        const auto until = std::chrono::steady_clock::now() + honest_patience;
        auto links = rdma::Links::open(end.space);
        if (!links) return std::unexpected(links.error());
        for (;;) {
            const auto seen = links->link(end.link);
            if (!seen) return std::unexpected(seen.error());
            if (seen->has_carrier || std::chrono::steady_clock::now() > until) return {};
            std::this_thread::sleep_for(milliseconds{20});
        }
    }
    std::map<std::string, std::int64_t> drops() const {
        std::map<std::string, std::int64_t> all;
        for (const RigGuard& guard : rig_.guards())
            if (const auto counts = nft_.dropped(*guard.space, guard.table))
                for (const auto& [name, count] : *counts) all[guard.table + ": " + name] = count;
        return all;
    }
    // The kernels at both ends say a word of their own now and then; whatever counted most counted ours.
    std::string stopped_by(const std::map<std::string, std::int64_t>& before) const {
        std::int64_t most = 0;
        std::string by =
            rig_.has_nic() ? "the NIC: its check of sources or its VLAN" : "nobody says: no guard counted it";
        for (const auto& [name, count] : drops()) {
            const auto at = before.find(name);
            const std::int64_t more = count - (at == before.end() ? 0 : at->second);
            if (more <= most) continue;
            most = more;
            by = fmt::format("the guard {} (nftables, counted)", name);
        }
        return by;
    }

    FabricRig& rig_;
    FabricFence fence_;
    rdma::Nft nft_;
    rdma::RawLink out_, in_;
};

// In the attacker's namespace, as a process of a tenant; with all of root's rights where the fence is off. What it
// returns is an error number, 0 for what it was allowed.
Result<int> as_tenant(const rdma::Space& space, bool confined, const std::function<int()>& attempt) {
    int error = 0;
    auto ran = space.run([&]() -> Result<> {
        auto line = container::make_pipe();
        if (!line) return std::unexpected(line.error());
        const pid_t child = ::fork();
        if (child < 0) return container::cannot("start", "an attacker");
        if (child == 0) {
            int found = confined && !container::give_up_root(nobody_in_particular) ? -1 : attempt();
            (void)!::write(*line->write, &found, sizeof found);
            ::_exit(0);
        }
        line->write.close();
        const ssize_t got = ::read(*line->read, &error, sizeof error);
        ::waitpid(child, nullptr, 0);
        if (got != sizeof error || error < 0)
            return fail(Code::unavailable,
                        "an attempt could not be made: its process died, or its program is not there",
                        "see dmesg, and that nft is on the PATH");
        return {};
    });
    if (!ran) return std::unexpected(ran.error());
    return error;
}

int opens(int family, int type, int protocol) {
    const container::Fd socket{::socket(family, type | SOCK_CLOEXEC, protocol)};
    return socket ? 0 : errno;
}

int tells_the_kernel(const rdma::Request& request) {
    auto line = rdma::NetlinkLine::open_here(rdma::NetlinkLine::Family::route);
    if (!line) return EPROTONOSUPPORT;
    if (line->ask(request, "play the attacker")) return 0;
    return line->last_error() == 0 ? EIO : line->last_error();
}

// EPERM only if the program says so itself: it fails of other things, too.
int runs(const std::vector<std::string>& command) {
    auto words = container::make_pipe();
    if (!words) return EIO;
    const pid_t child = ::fork();
    if (child == 0) {
        const container::Fd nothing{::open("/dev/null", O_RDWR)};
        for (const int fd : {0, 1}) ::dup2(*nothing, fd);
        ::dup2(*words->write, 2);
        ::setenv("LC_ALL", "C", 1);
        std::vector<std::string> texts = command;
        std::vector<char*> arguments;
        arguments.reserve(texts.size() + 1);
        for (std::string& text : texts) arguments.push_back(text.data());
        arguments.push_back(nullptr);
        ::execvp(arguments[0], arguments.data());
        ::_exit(127);
    }
    words->write.close();
    std::string said;
    std::array<char, 512> piece{};
    for (ssize_t got = 0; (got = ::read(*words->read, piece.data(), piece.size())) > 0;)
        said.append(piece.data(), static_cast<std::size_t>(got));
    int status = 0;
    ::waitpid(child, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) == 127) return -1;  // it was not tried at all
    if (WEXITSTATUS(status) == 0) return 0;
    return said.contains("not permitted") ? EPERM : EIO;
}

struct ProcessAttempt {
    std::string name, tried;
    std::function<int()> run;
    std::string not_tried;  // why
    std::string fence = "the kernel, without the capability";
};

std::vector<ProcessAttempt> process_attempts(FabricRig& rig, int link, const std::string& nft) {
    std::vector<ProcessAttempt> all{
        {"raw-packet-socket",
         "a socket for frames of its own making",
         [] { return opens(AF_PACKET, SOCK_RAW, 0); },
         {}},
        {"raw-ip-socket",
         "a socket for IP packets of its own making",
         [] { return opens(AF_INET, SOCK_RAW, IPPROTO_RAW); },
         {}},
        {"change-mac",
         "another MAC for its own link",
         [=] { return tells_the_kernel(rdma::set_link_mac(link, forged_mac)); },
         {}},
        {"add-address",
         "another address, and so another GID, for its own link",
         [=] { return tells_the_kernel(rdma::add_address(link, forged_address)); },
         {}},
        {"foreign-namespace",
         "into its neighbour's network namespace, by a descriptor of it",
         [space = rig.right().space.descriptor()] { return ::setns(space, CLONE_NEWNET) == 0 ? 0 : errno; },
         {}},
    };
    ProcessAttempt guard{"remove-guard", "its guard's table, deleted", {}, "there is no guard"};
    for (const RigGuard& of : rig.guards()) {
        if (of.space == &rig.left().space) {
            guard.not_tried.clear();
            guard.run = [nft, table = of.table] { return runs({nft, "delete", "table", "netdev", table}); };
            break;
        }
        guard.not_tried = "the guard is in another namespace than the tenant";
    }
    all.push_back(std::move(guard));
    ProcessAttempt verbs{
        "foreign-uverbs", "its neighbour's RDMA device, opened by its file", {}, "the neighbour has no RDMA device"};
    if (!rig.right().verbs.empty()) {
        verbs.not_tried.clear();
        verbs.run = [path = rig.right().verbs.front().path] {
            const container::Fd file{::open(path.c_str(), O_RDWR | O_CLOEXEC)};
            return file ? 0 : errno;
        };
    }
    verbs.fence = "the kernel, RDMA devices being kept to their namespaces";
    all.push_back(std::move(verbs));
    return all;
}

Result<FabricAttempt> carry_out(const ProcessAttempt& what, FabricRig& rig, FabricFence fence) {
    FabricAttempt attempt{what.name, what.tried, AttemptEnd::not_tried, what.not_tried};
    if (fence == FabricFence::off && what.name == "foreign-uverbs" && attempt.by.empty())
        attempt.by = "the kernel keeps RDMA devices to their namespaces on the whole machine: that fence is never off";
    if (fence == FabricFence::nic) attempt.by = "the tenant is root in its own kernel there";
    if (!attempt.by.empty()) return attempt;
    const auto error = as_tenant(rig.left().space, fence == FabricFence::on, what.run);
    if (!error) return std::unexpected(error.error());
    // Only a right that is missing is a fence; whatever else stands in the way is gone on another day.
    attempt.end = *error == 0 ? AttemptEnd::got_through : *error == EPERM ? AttemptEnd::stopped : AttemptEnd::unclear;
    if (*error != 0)
        attempt.by =
            fmt::format("{}: {}", *error == EPERM ? what.fence : "it failed, by no fence", std::strerror(*error));
    return attempt;
}

std::string host_name() {
    std::array<char, 256> name{};
    return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

Result<> go_on(const TestGivenUp& given_up) {
    if (!given_up || !given_up()) return {};
    return fail(Code::timeout, "the test was given up", "ask again when its functions are free");
}

struct Forgery {
    const char *name, *tried;
    std::function<void(Frame&)> spoil;
};

std::vector<Forgery> forgeries_for(const FabricRig& rig) {
    std::vector<Forgery> all{
        {"forged-mac", "a RoCE packet from another MAC", [](Frame& frame) { frame.from = forged_mac; }},
        {"forged-gid", "a RoCE packet from another address, which is another GID",
         [](Frame& frame) { frame.source = forged_address; }},
        {"forged-arp", "an ARP request that claims another address",
         [](Frame& frame) {
             frame.kind = Frame::Kind::arp;
             frame.source = forged_address;
         }},
    };
    // A NIC that tags frames itself lets none of a VLAN through that it was not told of, fence or no fence.
    if (!rig.has_nic())
        all.push_back({"vlan-hop", "a frame tagged for another VLAN", [](Frame& frame) { frame.vlan = 99; }});
    return all;
}

// False: the link is dead, and nothing more is learned on it.
Result<bool> send_forgeries(Attacker& attacker, const std::vector<Forgery>& all, std::vector<FabricAttempt>& attempts,
                            const TestGivenUp& given_up) {
    for (const Forgery& forgery : all) {
        if (auto ok = go_on(given_up); !ok) return std::unexpected(ok.error());
        auto attempt = attacker.forge(forgery.name, forgery.tried, forgery.spoil);
        if (!attempt) return std::unexpected(attempt.error());
        attempts.push_back(std::move(*attempt));
        if (attempts.back().end == AttemptEnd::unclear) return false;
    }
    return true;
}

Result<> make_attempts(Attacker& attacker, FabricRig& rig, rdma::Links& links, const rdma::LinkSeen& link,
                       const std::vector<Forgery>& forgeries, const std::vector<ProcessAttempt>& processes,
                       FabricReport& report, const TestGivenUp& given_up) {
    const auto is_alive = send_forgeries(attacker, forgeries, report.attempts, given_up);
    if (!is_alive) return std::unexpected(is_alive.error());
    for (const ProcessAttempt& what : processes) {
        if (auto ok = go_on(given_up); !ok) return ok;
        auto attempt = carry_out(what, rig, report.fence);
        if (!attempt) return std::unexpected(attempt.error());
        // Whatever it changed is as before for the next.
        if (attempt->end == AttemptEnd::got_through && attempt->name == "change-mac")
            (void)links.set_mac(link.index, rig.left().mac);
        if (attempt->end == AttemptEnd::got_through && attempt->name == "add-address")
            (void)links.remove(link.index, forged_address);
        report.attempts.push_back(std::move(*attempt));
    }
    if (!*is_alive) return {};
    if (auto ok = go_on(given_up); !ok) return ok;
    auto foreign = attacker.speak_to_another_tenant();
    if (!foreign) return std::unexpected(foreign.error());
    report.attempts.push_back(std::move(*foreign));
    return {};
}

}  // namespace

Result<> test_fabric(FabricRig& rig, FabricFence fence, const std::string& nft, Instant now,
                     const TestGivenUp& given_up, FabricReport& report) {
    report = {.host = host_name(), .between = rig.what(), .fence = fence, .at = now, .grade = rig.grade()};
    auto links = rdma::Links::open(rig.left().space);
    if (!links) return std::unexpected(links.error());
    const auto link = links->link(rig.left().link);
    if (!link) return std::unexpected(link.error());
    auto out = rdma::RawLink::open(rig.left().space, rig.left().link);
    if (!out) return std::unexpected(out.error());
    auto in = rdma::RawLink::open(rig.right().space, rig.right().link);
    if (!in) return std::unexpected(in.error());
    Attacker attacker{rig, fence, rdma::Nft{nft}, std::move(*out), std::move(*in)};
    const auto passes = attacker.passes(honest_patience);
    if (!passes) return std::unexpected(passes.error());
    report.honest_passes = *passes;
    if (!*passes) return {};
    const std::vector<Forgery> forgeries = forgeries_for(rig);
    const std::vector<ProcessAttempt> processes = process_attempts(rig, link->index, nft);
    auto made = make_attempts(attacker, rig, *links, *link, forgeries, processes, report, given_up);
    // What was not reached is named: nobody shall take it for stopped, nor for something that does not exist.
    const auto name_it = [&](std::string_view name, std::string_view tried) {
        if (std::ranges::find(report.attempts, name, &FabricAttempt::name) == report.attempts.end())
            report.attempts.push_back({std::string{name}, std::string{tried}, AttemptEnd::not_tried,
                                       made ? "the link was dead by then" : "the test broke off before"});
    };
    for (const Forgery& forgery : forgeries) name_it(forgery.name, forgery.tried);
    for (const ProcessAttempt& process : processes) name_it(process.name, process.tried);
    name_it(attempt_on_another_tenant, foreign_tried);
    return made;
}

Result<FabricReport> test_fabric(FabricRig& rig, FabricFence fence, const std::string& nft, Instant now,
                                 const TestGivenUp& given_up) {
    FabricReport report;
    if (auto made = test_fabric(rig, fence, nft, now, given_up, report); !made) return std::unexpected(made.error());
    return report;
}

FabricVerdict verdict_of(const FabricReport& report) {
    return evidence::verdict_on(report.fence, report.honest_passes, report.attempts);
}

std::string fabric_report_text(const FabricReport& report) { return evidence::compact_text(report); }

Result<FabricReport> read_fabric_report(std::string_view text) {
    return evidence::read_text<FabricReport>("fabric report", text);
}

}  // namespace bulkhead::agent
