// `agent-hands`: the privileged half of an agent, which starts it. Not for people: it speaks on a line that only the
// agent can give it, and everything else it knows is on this command line.
#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <memory>
#include <ostream>
#include <thread>

#include "bulkhead/agent/drive_rules.hpp"
#include "bulkhead/agent/gpu_hardware.hpp"
#include "bulkhead/agent/hands.hpp"
#include "bulkhead/cli/door.hpp"
#include "bulkhead/cli/self.hpp"

namespace bulkhead::cli {

namespace {

// An init system that stops a service signals every process of it; the agent is the one to listen, and then closes the
// line. Caught rather than ignored: what is ignored stays ignored in whatever is started from here, tenants among it.
void leave_signals_to_the_agent() {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, [](int) {});
    std::signal(SIGPIPE, SIG_IGN);
}

bool is_closed(int line) {
    pollfd watched{line, 0, 0};
    return ::poll(&watched, 1, 0) > 0 && (watched.revents & (POLLHUP | POLLERR)) != 0;
}

// One at a time: those of an agent that was killed finish what they had begun, and the next wait for that, as long as
// somebody waits for them. When hands are killed themselves, whoever wiped or reset a GPU for them holds the lock until
// he is gone: a process that is killed takes its time to give a GPU's memory back.
Result<container::Fd> only_hands_of(const std::string& folder, Context& context) {
    const std::string path = folder + "/hands.lock";
    auto lock = container::open_file(path, O_RDWR | O_CREAT | O_NOFOLLOW);
    if (!lock) return lock;
    if (::flock(**lock, LOCK_EX | LOCK_NB) == 0) return lock;
    context.err << "the hands of an earlier agent are still at work; waiting for them to finish\n" << std::flush;
    while (::flock(**lock, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EINTR && errno != EWOULDBLOCK) return container::cannot("lock", path);
        if (is_closed(agent::Hands::line_number))
            return fail(Code::unavailable, "the agent that these hands were for has ended", "start it again");
        std::this_thread::sleep_for(std::chrono::milliseconds{100});
    }
    return lock;
}

Result<std::unique_ptr<agent::GpuHardware>> open_gpus(agent::GpuHardwareSettings settings) {
    const std::filesystem::path self = self_path();
    settings.scrub = {self.string(), "scrub"};
    settings.tenant_program = (self.parent_path() / "bulkhead-tenant").string();
    return agent::GpuHardware::open(std::move(settings));
}

int run_hands(agent::GpuHardwareSettings settings, Context& context) {
    leave_signals_to_the_agent();
    ::umask(
        022);  // tenants pass through folders made here, whatever a service manager set; what is secret says so itself
    if (::fcntl(agent::Hands::line_number, F_SETFD, FD_CLOEXEC) != 0)
        return report(context, Error{Code::invalid, "nobody has given these hands a line",
                                     "`bulkhead agent --hardware gpu` starts them"});
    agent::HandsLine line{container::Fd{agent::Hands::line_number}};
    if (!settings.nics.empty())
        if (auto ready = agent::Functions::prepare_host(); !ready) settings.no_functions = ready.error();
    // Where there is no right to it, there are no tenants to start either; wipes alone are done all the same.
    const bool has_network = ::unshare(CLONE_NEWNET) != 0;
    const auto lock = only_hands_of(settings.folder, context);
    if (lock) settings.lock = **lock;
    auto hardware = lock ? open_gpus(std::move(settings)) : std::unexpected(lock.error());
    if (!hardware) {
        agent::explain_no_hands(line, hardware.error());
        return could_not;
    }
    if (const auto why = (*hardware)->why_no_functions())
        context.err << fmt::format("no virtual functions for tenants: {}; {}\n", why->what, why->remedy) << std::flush;
    const auto served = agent::serve_hands(line, **hardware, has_network);
    line.close();
    if (!served) return report(context, served.error());
    return done;
}

}  // namespace

void add_agent_hands(Command program, Context& context) {
    Command command = program.add_subcommand("agent-hands", "The half of an agent that works on hardware.").hidden();
    auto settings = std::make_shared<agent::GpuHardwareSettings>();
    settings->drives.udev = agent::udev_rules_of_this_boot;
    command.add_option("--data", settings->folder, "The agent's folder.").required().type_name("DIR");
    command.add_option("--nvml", settings->nvml, "NVML's library.").type_name("LIBRARY");
    command.add_option("--cuda", settings->cuda, "The CUDA driver's.").type_name("LIBRARY");
    command.add_option("--mps", settings->mps, "The MPS control program.").type_name("PROGRAM");
    command.add_option("--runtime", settings->runtime, "The OCI runtime.").type_name("PROGRAM");
    command.add_option("--nvidia-smi", settings->smi, "Resets GPUs, sets time slices.").type_name("PROGRAM");
    command.add_option("--time-slice", settings->time_slice, "How long a turn is.").type_name("LENGTH");
    command.add_flag("--allow-gpu-reset", settings->allow_gpu_reset, "Reset them at all.");
    command.add_option("--libvirt", settings->machines.uri, "Where machines run.").type_name("URI");
    command.add_option("--vm-images", settings->machines.images, "What they boot.").type_name("DIR");
    command.add_flag("--allow-emulated-vms", settings->machines.allow_emulated, "By software too.");
    command.add_flag("--vm-stand-ins", settings->machines.stand_ins, "Devices stand for simulated GPUs.");
    command.add_option("--vm-users", settings->machines.first_user, "Machines' users.").type_name("UID");
    command.add_option("--vm-huge-pages", settings->machines.huge_page_kib, "Their pages.").type_name("KIB");
    command.add_option("--burn-in", settings->burn_in_passes, "Passes before a GPU returns.").type_name("PASSES");
    command.add_option("--tenant-drive", settings->drives.tenant, "A drive for tenants.").type_name("SERIAL");
    auto methods = std::make_shared<std::string>(print(settings->drives.erase.policy));
    command.add_option("--erase", *methods, "How drives may be erased.").type_name("METHODS");
    command.add_option("--drive-samples", settings->drives.erase.samples, "Places to read.").type_name("COUNT");
    command.add_option("--tenant-nic", settings->nics, "NICs whose functions tenants may have.")
        .type_name("PCI[=COUNT]");
    command.add_option("--nft", settings->functions.nft, "The nftables program.").type_name("PROGRAM");
    command.add_flag("--soft-roce", settings->functions.soft_roce, "RDMA in software on each function.");
    auto no_test = std::make_shared<bool>(false);
    command.add_flag("--no-fabric-selftest", *no_test, "Do not attack the fences.");
    command.add_option("--selftest-vlan", settings->test_vlan, "Where they are attacked.")
        .within(1, 4093)
        .type_name("VLAN");
    auto grace_seconds = std::make_shared<std::int64_t>(settings->grace.ms / 1000);
    command.add_option("--grace", *grace_seconds, "Between SIGTERM and SIGKILL.").type_name("SECONDS");
    command.callback([settings, grace_seconds, methods, no_test, &context] {
        const auto policy = parse_erase_policy(*methods);
        if (!policy) {
            context.status = report(context, Error{Code::invalid, fmt::format("\"{}\" is no list of methods", *methods),
                                                   "see `bulkhead agent --help`"});
            return;
        }
        settings->drives.erase.policy = *policy;
        settings->test_fabric = !*no_test;
        settings->grace = Duration{*grace_seconds * 1000};
        context.status = run_hands(*settings, context);
    });
}

}  // namespace bulkhead::cli
