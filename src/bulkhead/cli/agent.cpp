// `agent`: one node's side, on its GPUs or on a model of a node.
#include <fmt/core.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <ostream>

#include "bulkhead/agent/enrol.hpp"
#include "bulkhead/agent/gpu_hardware.hpp"
#include "bulkhead/agent/hands.hpp"
#include "bulkhead/agent/line_account.hpp"
#include "bulkhead/agent/line_calls.hpp"
#include "bulkhead/agent/model_hardware.hpp"
#include "bulkhead/auth/secret_file.hpp"
#include "bulkhead/cli/agent_loop.hpp"
#include "bulkhead/cli/clock.hpp"
#include "bulkhead/cli/door.hpp"
#include "bulkhead/cli/input.hpp"
#include "bulkhead/cli/stop_signal.hpp"
#include "bulkhead/gpu/amd.hpp"
#include "bulkhead/gpu/board.hpp"
#include "bulkhead/shell/keys.hpp"
#include "bulkhead/shell/log.hpp"
#include "bulkhead/shell/server.hpp"

namespace bulkhead::cli {

namespace {

namespace fs = std::filesystem;

struct AgentOptions {
    std::string server, ca_file, ca_fingerprint, token, token_file, name, site = "local", zone, rack, folder;
    NodeModelSpec model{.functions = 8};
    std::int64_t speed = 1000;
    std::string hardware = "model", user;
    agent::GpuHardwareSettings gpu;
    std::int64_t grace_seconds = 10;
    std::string erase = print(ErasePolicy{});
    bool enrol_only = false;
    bool no_fabric_selftest = false;
};

// What a usual machine with these GPUs can do, so that a simulated one is worth asking.
void furnish(NodeModelSpec& spec, const std::string& name) {
    spec.node = name;
    spec.capabilities = {Capability::time_slicing, Capability::virtual_machines, Capability::iommu_groups,
                         Capability::verified_reboot, Capability::rdma};
    const bool amd = gpu::find_amd_board(spec.gpu_model).has_value();
    if (amd) spec.capabilities.push_back(Capability::amd_partition);
    if (const auto board = gpu::find_board(spec.gpu_model); !amd && board) {
        spec.capabilities.push_back(Capability::mps);
        if ((*board)->memory_slices > 1) spec.capabilities.push_back(Capability::mig);
    }
    if (spec.gpu_model.find("sxm") != std::string::npos) {
        spec.nvlink = NvLink::fabric;
        spec.capabilities.push_back(Capability::nvlink_partition);
    }
    if (spec.drives > 0) spec.capabilities.push_back(Capability::local_nvme);
    spec.versions = {{Component::driver, "580.159.04"}, {Component::container_toolkit, "1.19.1"}};
}

// What enrolling takes, read while files of root's can be; nothing when the machine is a node already.
Result<std::optional<agent::EnrolOptions>> enrolment_of(const AgentOptions& options, const std::string& folder) {
    std::error_code ignored;
    if (fs::exists(folder + "/node.json", ignored)) return std::nullopt;
    agent::EnrolOptions wish{.server = {.address = options.server, .ca_fingerprint = options.ca_fingerprint},
                             .name = options.name,
                             .token = options.token,
                             .spec = {.site = options.site, .zone = options.zone, .rack = options.rack}};
    if (!options.ca_file.empty()) {
        auto ca = read_file(options.ca_file);
        if (!ca) return std::unexpected(ca.error());
        wish.server.ca = *std::move(ca);
    }
    if (!options.token_file.empty()) {
        auto token = auth::read_secret(options.token_file);
        if (!token) return std::unexpected(token.error());
        wish.token = token->substr(0, token->find_first_of("\r\n"));
    }
    if (wish.token.empty() || wish.server.address.empty() || wish.name.empty())
        return fail(Code::invalid, "this machine is no node yet, and enrolling it takes --server, --name and a token",
                    "`bulkhead token node NAME` makes one");
    return wish;
}

// Only a machine that is no node yet is enrolled; one whose files are damaged, or that others could read, is told so.
Result<agent::Identity> identity_of(const std::string& folder, std::optional<agent::EnrolOptions> wish) {
    if (!wish) return agent::load_identity(folder);
    wish->folder = folder;
    return agent::enrol(*wish);
}

// As whom and where the half that speaks to the network works, and who works for it.
struct Standing {
    agent::LineAccount account;
    std::string folder;                   // of identity and journal
    std::unique_ptr<agent::Hands> hands;  // none: a model
    bool was_stopped = false;             // while it waited for hands
};

// Started before anything here has a thread or a socket. They are this very program, whatever lies at its path now.
Result<std::unique_ptr<agent::Hands>> start_hands(const AgentOptions& options) {
    const agent::GpuHardwareSettings& gpu = options.gpu;
    std::vector<std::string> words{"/proc/self/exe", "agent-hands",
                                   "--data",         options.folder,
                                   "--nvml",         gpu.nvml,
                                   "--cuda",         gpu.cuda,
                                   "--mps",          gpu.mps,
                                   "--runtime",      gpu.runtime,
                                   "--nvidia-smi",   gpu.smi,
                                   "--burn-in",      std::to_string(gpu.burn_in_passes),
                                   "--grace",        std::to_string(options.grace_seconds)};
    if (!gpu.machines.uri.empty())
        words.insert(words.end(), {"--libvirt", gpu.machines.uri, "--vm-images", gpu.machines.images});
    if (gpu.machines.allow_emulated) words.emplace_back("--allow-emulated-vms");
    if (gpu.machines.stand_ins) words.emplace_back("--vm-stand-ins");
    words.insert(words.end(), {"--vm-users", std::to_string(gpu.machines.first_user)});
    words.insert(words.end(), {"--vm-huge-pages", std::to_string(gpu.machines.huge_page_kib)});
    if (gpu.allow_gpu_reset) words.emplace_back("--allow-gpu-reset");
    for (const std::string& drive : gpu.drives.tenant) words.insert(words.end(), {"--tenant-drive", drive});
    words.insert(words.end(), {"--erase", options.erase, "--drive-samples", std::to_string(gpu.drives.erase.samples)});
    for (const std::string& nic : gpu.nics) words.insert(words.end(), {"--tenant-nic", nic});
    words.insert(words.end(), {"--nft", gpu.functions.nft});
    if (gpu.functions.soft_roce) words.emplace_back("--soft-roce");
    if (options.no_fabric_selftest) words.emplace_back("--no-fabric-selftest");
    words.insert(words.end(), {"--selftest-vlan", std::to_string(gpu.test_vlan)});
    if (!gpu.time_slice.empty()) words.insert(words.end(), {"--time-slice", gpu.time_slice});
    return agent::Hands::start(words, asked_to_stop);
}

Result<Standing> stand(AgentOptions& options) {
    Standing standing{.account = {.ids = {::geteuid(), ::getegid()}, .name = std::to_string(::geteuid())},
                      .folder = options.folder,
                      .hands = nullptr};
    if (options.hardware != "gpu") {
        if (auto made = shell::make_directory(options.folder); !made) return std::unexpected(made.error());
        return standing;
    }
    if (::geteuid() == 0) {
        auto account = agent::line_account(options.user, options.gpu.first_id);
        if (!account) return std::unexpected(account.error());
        standing.account = *std::move(account);
    }
    std::error_code failed;
    options.folder = fs::absolute(options.folder, failed).lexically_normal().string();
    if (options.folder.ends_with('/')) options.folder.pop_back();
    if (auto made = agent::make_line_folder(options.folder, standing.account.ids); !made)
        return std::unexpected(made.error());
    standing.folder = agent::line_folder(options.folder);
    if (options.enrol_only) return standing;
    if (!parse_erase_policy(options.erase))
        return fail(Code::invalid, fmt::format("--erase \"{}\" is no list of methods", options.erase),
                    "each once, with commas between: sanitize-crypto, format-crypto, sanitize-block, format-erase, "
                    "sanitize-overwrite, host-zeroes");
    if (!agent::are_machine_users(options.gpu.machines.first_user))
        return fail(Code::invalid,
                    fmt::format("--vm-users {}: below {} are the host's own accounts", options.gpu.machines.first_user,
                                agent::machine_users_least),
                    "0 for libvirt's one user, or a range that is nobody's, as 900000");
    auto hands = start_hands(options);
    if (!hands) return std::unexpected(hands.error());
    standing.hands = *std::move(hands);
    standing.was_stopped = !standing.hands;
    return standing;
}

// What faces the network has nothing that it does not need. Its folder may lie below folders that are root's alone, so
// it stays in it.
Result<> give_up_rights(Standing& standing) {
    if (standing.account.ids.user != ::geteuid()) {
        if (::chdir(standing.folder.c_str()) != 0)
            return fail(Code::unavailable, fmt::format("{} cannot be entered", standing.folder), "check its mode");
        standing.folder = ".";
        int at_its_end =
            0;  // a signal that the kernel sends when whoever started us ends; it forgets that with the user
        ::prctl(PR_GET_PDEATHSIG, &at_its_end, 0, 0, 0);
        if (auto less = container::give_up_root(standing.account.ids); !less) return less;
        if (at_its_end != 0) ::prctl(PR_SET_PDEATHSIG, at_its_end, 0, 0, 0);
    }
    return agent::filter_line_calls();
}

// GPUs behind our hands, or a model in a file.
Result<std::unique_ptr<agent::Hardware>> hardware_of(AgentOptions& options, Standing& standing,
                                                     const std::string& name) {
    if (standing.hands) return std::unique_ptr<agent::Hardware>{std::move(standing.hands)};
    furnish(options.model, name);
    auto opened = agent::ModelHardware::open(options.folder + "/model", options.model, options.speed);
    if (!opened) return std::unexpected(opened.error());
    return std::unique_ptr<agent::Hardware>{*std::move(opened)};
}

int run_agent(AgentOptions options, Context& context) {
    shell::Server::hold_signals();
    auto standing = stand(options);
    if (!standing) return report(context, standing.error());
    if (standing->was_stopped) return done;
    const std::string where = standing->folder;
    auto wish = enrolment_of(options, where);
    if (!wish) return report(context, wish.error());
    if (auto less = give_up_rights(*standing); !less) return report(context, less.error());
    const auto identity = identity_of(standing->folder, *std::move(wish));
    if (!identity) return report(context, identity.error());
    if (options.enrol_only) {
        context.out << fmt::format("this machine is node {} of {}\n", identity->name, identity->agents);
        return done;
    }
    const auto key = evidence::SigningKey::from_seed(identity->evidence_seed);
    if (!key) return report(context, key.error());
    const std::string_view hands = !standing->hands                  ? "none"
                                   : standing->hands->have_network() ? "with a network"
                                                                     : "without a network";
    auto hardware = hardware_of(options, *standing, identity->name);
    if (!hardware) return report(context, hardware.error());
    const std::string_view grade = word((*hardware)->grade());
    auto link = agent::Link::open(
        {.address = identity->agents, .ca = identity->ca, .certificate = identity->certificate, .key = identity->key});
    if (!link) return report(context, link.error());
    shell::Log log;
    auto renewal = agent::Renewal::of(*identity, standing->folder);
    if (!renewal) return report(context, renewal.error());
    AgentLoop node{*std::move(link), *std::move(renewal), log};
    auto runner = agent::Runner::open(
        {.identity = {.node = identity->name, .gpu_reset = options.gpu.allow_gpu_reset},
         .journal = standing->folder + "/journal"},
        *key, *std::move(hardware), [&node](const Report& report) { node.deliver(report); }, clock_now());
    if (!runner) return report(context, runner.error());
    log.info("the agent runs", {{"node", identity->name},
                                {"server", identity->agents},
                                {"hardware", options.hardware},
                                {"grade", grade},
                                {"user", standing->account.name},
                                {"confined", standing->account.ids.user == 0 ? "system calls" : "yes"},
                                {"hands", hands},
                                {"folder", where}});
    const auto ended = node.run(**runner);
    if (!ended) return report(context, ended.error());
    return done;
}

}  // namespace

void add_agent(Command program, Context& context) {
    Command command = program.add_subcommand("agent", "Run a node's agent, on its GPUs or on a model of a node.");
    auto options = std::make_shared<AgentOptions>();
    command.description(
        "Run a node's agent, on its GPUs or on a model of a node.\n\n"
        "The first start enrols the machine with a one-time token and keeps its keys below DIR; later\n"
        "starts need only --data.\n\n"
        "--hardware gpu works on what NVML shows, and is started as root: a process of its own, with no network, cuts\n"
        "GPUs, runs tenants' commands in the process and container tiers, and wipes what they leave; the one that "
        "speaks\nto the control plane gives root up first. Otherwise a model of a node, in a file, stands in, and "
        "everything it\nstates says simulated.");
    command.add_option("--hardware", options->hardware, "gpu or model. Default: model.")
        .one_of({"gpu", "model"})
        .type_name("WHICH");
    command
        .add_option("--user", options->user,
                    "With gpu, as whom to speak to the network: a name or a number. Default: bulkhead where there is "
                    "such a user, otherwise the number 999999.")
        .type_name("USER");
    command.add_option("--nvml", options->gpu.nvml, "NVML's library. Default: libnvidia-ml.so.1.").type_name("LIBRARY");
    command.add_option("--cuda", options->gpu.cuda, "The CUDA driver's. Default: libcuda.so.1.").type_name("LIBRARY");
    command.add_option("--mps", options->gpu.mps, "The MPS control program. Default: nvidia-cuda-mps-control.")
        .type_name("PROGRAM");
    command
        .add_option(
            "--time-slice", options->gpu.time_slice,
            "How long a turn is on GPUs that are shared by turns: default, short, medium or long. Default: as it "
            "is.")
        .one_of({"default", "short", "medium", "long"})
        .type_name("LENGTH");
    command
        .add_option(
            "--tenant-nic", options->gpu.nics,
            "A NIC whose virtual functions tenants may have, by the PCI address of its physical one; with =COUNT "
            "so many\nare made, where there are none. No other NIC is ever touched.")
        .type_name("PCI[=COUNT]");
    command
        .add_option("--nft", options->gpu.functions.nft, "The nftables program, for guards of functions. Default: nft.")
        .type_name("PROGRAM");
    command.add_flag("--soft-roce", options->gpu.functions.soft_roce,
                     "Give each function an RDMA device in software: for machines whose NICs have none.");
    command.add_flag("--no-fabric-selftest", options->no_fabric_selftest,
                     "Do not attack the fences of these NICs when the agent starts, nor when somebody asks.");
    command
        .add_option("--selftest-vlan", options->gpu.test_vlan,
                    "In which VLAN they are attacked: this and the next must be nobody's, so keep them out of the "
                    "fleet's fabric.\nDefault: 3900.")
        .within(1, 4093)
        .type_name("VLAN");
    command
        .add_option("--nvidia-smi", options->gpu.smi,
                    "Resets GPUs and sets time slices, where that is wanted. Default: nvidia-smi.")
        .type_name("PROGRAM");
    command.add_flag(
        "--allow-gpu-reset", options->gpu.allow_gpu_reset,
        "Reset a GPU that nobody is on when wiping it twice has not helped. It disturbs whatever is joined "
        "to it\nby NVLink; without this it is quarantined at once.");
    command
        .add_option("--burn-in", options->gpu.burn_in_passes,
                    "Passes of overwriting and reading back before a GPU returns from quarantine. Default: 8.")
        .within(1, 1000)
        .type_name("PASSES");
    command
        .add_option("--grace", options->grace_seconds,
                    "Seconds between SIGTERM and SIGKILL, for whoever can hear the first. Default: 10.")
        .within(0, 180)
        .type_name("SECONDS");
    command
        .add_option(
            "--tenant-drive", options->gpu.drives.tenant,
            "An NVMe drive that tenants may have, by its serial number (`bulkhead drives` lists them); "
            "model:GLOB for\nall of a model, @FILE for a list. Once for each. All others are left alone, and "
            "so is what the machine runs from.\nOne named by its serial number may be plugged in later; models are "
            "looked for at the start.")
        .type_name("SERIAL");
    command
        .add_option("--erase", options->erase,
                    "By which methods drives may be erased, the first that a drive has. Default:\n"
                    "sanitize-crypto,format-crypto,sanitize-block,format-erase; also: sanitize-overwrite, host-zeroes.")
        .type_name("METHODS");
    command
        .add_option("--drive-samples", options->gpu.drives.erase.samples,
                    "At how many random places each namespace is read before and after. Default: 2000.")
        .within(2, 1'000'000)
        .type_name("COUNT");
    command.add_option("--runtime", options->gpu.runtime, "The OCI runtime. Default: /usr/bin/crun.")
        .type_name("PROGRAM");
    command
        .add_option("--libvirt", options->gpu.machines.uri,
                    "Run tenants of the vm tier by libvirt: qemu:///system. Default: no such tier.")
        .type_name("URI");
    command
        .add_option(
            "--vm-images", options->gpu.machines.images,
            "What machines may boot: NAME/kernel and NAME/initrd, or NAME/disk. Default: /var/lib/bulkhead/images.")
        .type_name("DIR");
    command.add_flag("--allow-emulated-vms", options->gpu.machines.allow_emulated,
                     "Run machines by software where there is no KVM: slow, and graded emulated.");
    command
        .add_option("--vm-users", options->gpu.machines.first_user,
                    "Machines run as users of their own, 4096 from this number on; agents of one host need ranges of "
                    "their own. 0: all as libvirt's one user. Default: 900000.")
        .within(0, 990'000)  // above are the agent's own and tenants'
        .type_name("UID");
    command
        .add_option(
            "--vm-huge-pages", options->gpu.machines.huge_page_kib,
            "Size of the huge pages that machines' memory is made of, in KiB; 0: ordinary pages. Default: 2048, "
            "and 0 where machines are emulated.")
        .within(-1, std::int64_t{1} << 24)
        .type_name("KIB");
    command.add_flag(
        "--vm-stand-ins", options->gpu.machines.stand_ins,
        "With simulated GPUs: PCI devices at their addresses stand for them and go to machines. For a lab.");
    command.add_option("--data", options->folder, "Where identity, journal and model are kept.")
        .required()
        .type_name("DIR");
    command.add_option("--server", options->server, "The control plane, for enrolling.").type_name("URL");
    command.add_option("--ca", options->ca_file, "The fleet's CA certificate.").type_name("FILE");
    command.add_option("--ca-fingerprint", options->ca_fingerprint, "Or its SHA-256, hex.").type_name("HEX");
    command.add_option("--token", options->token, "The one-time token. Better: --token-file, which `ps` does not show.")
        .type_name("TOKEN");
    command.add_option("--token-file", options->token_file, "A file of mode 0600 that holds it.").type_name("FILE");
    command.add_option("--name", options->name, "The node's name.").type_name("NODE");
    command.add_flag("--enrol-only", options->enrol_only,
                     "Enrol, unless this machine is a node already, and end: for whoever starts it later.");
    command.add_option("--site", options->site, "The site it stands at. Default: local.").type_name("SITE");
    command.add_option("--zone", options->zone, "Its zone.").type_name("ZONE");
    command.add_option("--rack", options->rack, "Its rack.").type_name("RACK");
    command.add_option("--model", options->model.gpu_model, "The GPU model. Default: h100-80gb-sxm5.")
        .type_name("MODEL");
    command.add_option("--gpus", options->model.gpus, "How many. Default: 8.").within(1, 16).type_name("COUNT");
    command.add_option("--drives", options->model.drives, "Drives for tenants. Default: 0.")
        .within(0, 64)
        .type_name("COUNT");
    command.add_option("--functions", options->model.functions, "Virtual functions of NICs for tenants. Default: 8.")
        .within(0, 256)
        .type_name("COUNT");
    command
        .add_option("--time", options->speed,
                    "How much of the modelled time things take, in thousandths. Default: 1000.")
        .within(0, 100'000)
        .type_name("THOUSANDTHS");
    command.callback([options, &context] { context.status = run_agent(*options, context); });
}

}  // namespace bulkhead::cli
