// `up`: a whole fleet on one machine: the server and a few agents as processes of their own. On the GPUs of this
// machine, where there are some and we may use them; simulated otherwise.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <ostream>
#include <sstream>
#include <utility>

#include "bulkhead/agent/line_account.hpp"
#include "bulkhead/auth/secret_file.hpp"
#include "bulkhead/cli/children.hpp"
#include "bulkhead/cli/door.hpp"
#include "bulkhead/cli/first_steps.hpp"
#include "bulkhead/cli/objects.hpp"
#include "bulkhead/cli/oidc_arguments.hpp"
#include "bulkhead/cli/self.hpp"
#include "bulkhead/codec/document.hpp"
#include "bulkhead/hw/nvml/nvml.hpp"
#include "bulkhead/hw/program/program.hpp"

namespace bulkhead::cli {

namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

struct UpOptions {
    int nodes = 3, gpus = 8, drives = 2;
    std::int64_t time = 20;
    std::string model = "h100-80gb-sxm5", data;
    std::uint16_t port = 7443, agent_port = 7444;
    bool no_context = false, simulated = false, driver_node = false;
    shell::OidcOptions oidc;
    std::vector<nvml::Gpu> real;  // GPUs of this machine; then it is the one node, and nothing is simulated
};

// What the driver shows, where there is one and we may use it.
std::vector<nvml::Gpu> gpus_here() {
    const auto nvml = nvml::Nvml::open("libnvidia-ml.so.1");
    if (!nvml || nvml->is_simulated()) return {};
    const auto gpus = nvml->gpus();
    return gpus ? *gpus : std::vector<nvml::Gpu>{};
}

std::string default_data() {
    const char* const data = std::getenv("XDG_DATA_HOME");
    if (data != nullptr && *data != '\0') return std::string{data} + "/bulkhead";
    const char* const home = std::getenv("HOME");
    return std::string{home == nullptr ? "." : home} + "/.local/share/bulkhead";
}

// As a person can type it here.
std::string this_program() {
    const char* const path = std::getenv("PATH");
    std::istringstream folders{path == nullptr ? "" : path};
    std::error_code failed;
    const fs::path self = self_path();
    for (std::string folder; std::getline(folders, folder, ':');)
        if (fs::equivalent(fs::path{folder} / "bulkhead", self, failed)) return "bulkhead";
    const std::string near = fs::relative(self, failed).string();
    return near.empty() || near.starts_with("..") ? self.string() : near;
}

std::string line_of(const std::string& path, int number) {
    std::ifstream file{path};
    std::string line;
    for (int i = 0; i < number; ++i)
        if (!std::getline(file, line)) return {};
    return line;
}

sigset_t stop_signals() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    return set;
}

// True when a signal came within the time.
bool told_to_stop(std::chrono::milliseconds within) {
    const sigset_t set = stop_signals();
    const timespec moment{.tv_sec = within.count() / 1000, .tv_nsec = (within.count() % 1000) * 1'000'000};
    return sigtimedwait(&set, nullptr, &moment) > 0;
}

// The parts of a node on a simulated driver; they lie beside this program, built or installed.
struct SimulatedDriver {
    std::string libraries, maker;
};
Result<SimulatedDriver> simulated_driver() {
    if (::geteuid() != 0)
        return fail(Code::denied, "it takes root to start containers", "run it as root, or in a container as root");
    const fs::path folder = self_path().parent_path();
    const std::string maker = (folder / "bulkhead-gpusim").string();
    std::error_code failed;
    for (const fs::path& place :
         {folder / "../dev/nvml-sim/lib", folder / "../nvml-sim/lib", folder / "../lib/bulkhead/nvml-sim"})
        if (fs::exists(place / "libnvidia-ml.so.1", failed) && fs::exists(maker, failed))
            return SimulatedDriver{fs::canonical(place, failed).string(), maker};
    return fail(Code::not_found, fmt::format("there is no simulated driver beside {}", folder.string()),
                "make build makes it");
}

// A node nobody knows starts dirty: its first leases wait until it was wiped once.
bool is_being_wiped(const GpuNode& node) {
    for (const NodeGpus& gpu : node.status.gpus)
        for (const GpuSlice& slice : gpu.slices)
            if (slice.state == CleanState::sanitizing) return true;
    // A host that cannot be rebooted to a known image stays as it is.
    const bool reboots = std::ranges::any_of(node.status.capabilities, [](const DetectedCapability& found) {
        return found.name == Capability::verified_reboot;
    });
    return reboots && node.status.host && node.status.host->state == CleanState::sanitizing;
}

class Up {
public:
    Up(UpOptions options, Context& context) : options_{std::move(options)}, context_{context} {}

    int run() {
        const sigset_t set = stop_signals();
        ::sigprocmask(SIG_BLOCK, &set, nullptr);
        if (options_.data.empty()) options_.data = default_data();
        if (!options_.simulated) options_.real = gpus_here();
        if (::geteuid() != 0) left_alone_ = std::exchange(options_.real, {}).size();
        if (!options_.real.empty()) options_.nodes = 1;
        if (auto made = make_folders(); !made) return report(context_, made.error());
        if (auto started = start(); !started) {
            children_.stop();
            if (stopping_) return done;
            report(context_, started.error());
            return could_not;
        }
        tell();
        return stay();
    }

private:
    std::string path(const std::string& name) const { return options_.data + "/" + name; }
    FleetShape shape() const {
        if (options_.real.empty()) return {options_.nodes, options_.gpus, options_.model};
        return {1, static_cast<int>(options_.real.size()), {}, true};
    }
    std::string node_name(int index) const { return fmt::format("node-{:02}", index); }

    // A directory of ours is nobody else's; one that was there keeps the mode that somebody gave it.
    Result<> make_folders() {
        std::error_code failed;
        options_.data = fs::absolute(options_.data, failed).lexically_normal().string();
        if (options_.data.ends_with('/')) options_.data.pop_back();
        const bool made = fs::create_directories(options_.data, failed);
        if (made && !failed) fs::permissions(options_.data, fs::perms::owner_all, failed);
        if (!failed) fs::create_directories(options_.data + "/nodes", failed);
        if (failed)
            return fail(Code::unavailable, fmt::format("{}: {}", options_.data, failed.message()),
                        "choose another with --data");
        return {};
    }

    Result<> start() {
        // Nodes that were enrolled know the port of the last time.
        const std::string before = line_of(path("address"), 2);
        const std::string agent_port =
            options_.agent_port == 0 && !before.empty() ? before : std::to_string(options_.agent_port);
        std::remove(path("address").c_str());
        std::vector<std::string> serve{
            "serve", "--data", options_.data, "--port", std::to_string(options_.port), "--agent-port", agent_port};
        if (options_.real.empty()) serve.emplace_back("--simulated-fleet");
        for (std::string& word : oidc_arguments(options_.oidc)) serve.push_back(std::move(word));
        auto server = children_.start("server", std::move(serve), path("server.log"));
        if (!server) return std::unexpected(server.error());
        if (auto ready = wait_for("the server", 30s, [&] { return fs::exists(path("address")); }); !ready) return ready;
        door_ = {.server = line_of(path("address"), 1),
                 .token_file = path("keys/admin.token"),
                 .ca_file = path("keys/ca.crt")};
        auto client = connect(door_);
        if (!client) return std::unexpected(client.error());
        client_.emplace(*std::move(client));
        if (auto made = make_policy(); !made) return made;
        for (int i = 1; i <= options_.nodes; ++i)
            if (auto started = start_agent(i); !started) return started;
        if (auto ready = wait_for("the nodes", 60s, [&] { return ready_nodes() >= options_.nodes; }); !ready)
            return ready;
        if (options_.driver_node && options_.real.empty()) return add_driver_node();
        return {};
    }

    // One more node, on a simulated driver, which runs commands. Where that cannot be, the fleet does without.
    Result<> add_driver_node() {
        const std::string name = driver_node();
        auto started = start_driver_node();
        if (started) started = wait_for(name, 60s, [&] { return ready_nodes() > options_.nodes; });
        if (started || stopping_) return started;
        children_.stop(name);
        left_out_ = fmt::format("{}: {}", started.error().what, started.error().remedy);
        return {};
    }
    std::string driver_node() const { return node_name(options_.nodes + 1); }
    Result<> start_driver_node() {
        const auto driver = simulated_driver();
        if (!driver) return std::unexpected(driver.error());
        const std::string gpus = path("nodes/" + driver_node() + ".gpus");
        if (!fs::exists(gpus)) {
            const auto made = program::run({driver->maker, "new", gpus, "--gpus", "2 x h200-141gb"}, {}, "", 30s);
            if (!made) return std::unexpected(made.error());
            if (made->status != 0)
                return fail(Code::unavailable, fmt::format("{} made no GPUs: {}", driver->maker, made->output),
                            "remove " + gpus);
        }
        return start_agent(options_.nodes + 1, {"LD_LIBRARY_PATH=" + driver->libraries, "BULKHEAD_SIM_NODE=" + gpus});
    }

    Result<> wait_for(std::string_view what, std::chrono::seconds limit, const std::function<bool()>& holds) {
        const auto until = Clock::now() + limit;
        while (Clock::now() < until) {
            if (holds()) return {};
            if (const std::string name = children_.ended(); !name.empty())
                return fail(Code::unavailable, fmt::format("{} has ended: {}", name, last_words(name)),
                            fmt::format("read {}", log_of(name)));
            if (told_to_stop(50ms)) {
                stopping_ = true;
                return fail(Code::unavailable, "stopped", "");
            }
        }
        return fail(Code::timeout, fmt::format("{} did not get ready within {} s", what, limit.count()),
                    fmt::format("read {}", path("server.log")));
    }

    std::string log_of(const std::string& name) const {
        return name == "server" ? path("server.log") : path("nodes/" + name + ".log");
    }
    // Why a child ended: what it said to people, which stands before what to try, rather than its log's last line.
    std::string last_words(const std::string& name) const {
        std::ifstream file{log_of(name)};
        std::string line, before, last, reason;
        while (std::getline(file, line)) {
            if (line.starts_with("  try: ")) reason = before;
            if (line.starts_with("at=")) reason.clear();
            if (!line.empty()) last = line;
            before = line;
        }
        return !reason.empty() ? reason : !last.empty() ? last : "without a word";
    }

    Result<> make_policy() {
        const auto listed = list_all(*client_, {ObjectKind::policy, {}});
        if (!listed) return std::unexpected(listed.error());
        if (!listed->objects.policies.empty()) return {};
        const auto reply = client_->ask({.method = "POST",
                                         .target = "/v1/apply",
                                         .body = first_policy(shape()),
                                         .content_type = "application/yaml"});
        if (!reply) return std::unexpected(reply.error());
        return {};
    }

    // With an environment of its own: on a simulated driver.
    Result<> start_agent(int index, std::vector<std::string> environment = {}) {
        const std::string name = node_name(index), folder = path("nodes/" + name);
        std::vector<std::string> arguments{"agent", "--data", folder, "--name", name};
        const bool is_model = options_.real.empty() && environment.empty();
        if (is_model) {
            for (const std::string& more :
                 {std::string{"--model"}, options_.model, std::string{"--gpus"}, std::to_string(options_.gpus),
                  std::string{"--drives"}, std::to_string(options_.drives), std::string{"--time"},
                  std::to_string(options_.time)})
                arguments.push_back(more);
        } else {
            arguments.insert(arguments.end(), {"--hardware", "gpu"});
        }
        if (!fs::exists((is_model ? folder : agent::line_folder(folder)) + "/node.json") &&
            !fs::exists(folder + "/node.json")) {
            const auto reply = client_->post("/v1/tokens/enrolment", fmt::format(R"({{"node":"{}"}})", name));
            if (!reply) return std::unexpected(reply.error());
            const auto read = read_answer(*reply);
            if (!read) return std::unexpected(read.error());
            const Node* token = read->root->find("token");
            if (token == nullptr) return fail(Code::corrupt, "the server gave no token", "");
            if (auto kept = auth::write_secret(path("nodes/" + name + ".token"), token->text); !kept) return kept;
            for (const std::string& more : {std::string{"--server"}, door_.server, std::string{"--ca"}, door_.ca_file,
                                            std::string{"--token-file"}, path("nodes/" + name + ".token")})
                arguments.push_back(more);
        }
        const auto child = children_.start(name, std::move(arguments), log_of(name), std::move(environment));
        if (!child) return std::unexpected(child.error());
        return {};
    }

    int ready_nodes() {
        const auto listed = list_all(*client_, {ObjectKind::node, {}});
        if (!listed) return 0;
        int ready = 0;
        for (const GpuNode& node : listed->objects.nodes)
            ready += node.status.phase == NodePhase::ready && !is_being_wiped(node) ? 1 : 0;
        return ready;
    }

    void tell() {
        const std::string steps = path("first-steps.yaml"), refusal = path("refused.yaml");
        std::ofstream{steps} << first_steps(shape());
        std::ofstream{refusal} << refused_steps(shape());
        bool written = false;
        if (!options_.no_context) {
            if (const auto other = other_context(door_)) {
                context_.out << fmt::format(
                    "{} speaks of another fleet, {}, and is kept.\n"
                    "To have commands ask this one by themselves, remove it, or set BULKHEAD_CONTEXT to another "
                    "file.\n\n",
                    context_path(), *other);
            } else {
                const auto kept = write_context(door_);
                if (!kept) report(context_, kept.error());
                written = kept.has_value();
            }
        }
        const std::string how = written ? ""
                                        : fmt::format(" --server {} --token-file {} --ca {}", door_.server,
                                                      door_.token_file, door_.ca_file);
        const std::string what =
            options_.real.empty()
                ? fmt::format(
                      "A fleet of {} nodes with {} x {} each, simulated: there is no GPU behind it, and everything it "
                      "states says so.{}",
                      options_.nodes, options_.gpus, options_.model,
                      left_alone_ == 0
                          ? ""
                          : fmt::format("\nThe {} GPUs of this machine are left alone: they take root.", left_alone_))
                : fmt::format(
                      "This machine as a fleet of one node, with {} x {}: real GPUs, which are wiped before and after "
                      "every lease.",
                      options_.real.size(), options_.real.front().name);
        context_.out
            << fmt::format(
                   "{}{}\n\n"
                   "  server  {}\n  token   {} (beside it: security.token, auditor.token)\n  ca      {}\n  log key {}\n"
                   "  logs    {}\n\n"
                   "{} things to try, in another terminal:\n",
                   what, about_commands(), door_.server, door_.token_file, door_.ca_file, path("keys/log.vkey"),
                   path("server.log"), runs_commands() && options_.real.empty() ? "Four" : "Three")
            << fmt::format("  {0} apply -f {1}{2} && {0} fleet{2}\n  {0} apply -f {3}{2}\n", this_program(), steps, how,
                           refusal)
            << (runs_commands() && options_.real.empty()
                    ? fmt::format("  {} run --tenant guest --cpu 1 --memory 1Gi{} -- bulkhead-gpus\n", this_program(),
                                  how)
                    : "")
            << fmt::format(fmt::runtime(options_.real.empty()
                                            ? "  {0} delete workloads pretrain{1} && {0} get nodes --watch{1}\n"
                                            : "  {0} run --tenant vision --memory 2Gi{1} -- nvidia-smi -L\n"),
                           this_program(), how)
            << fmt::format("\nCtrl-C stops all of it; what it knows stays in {}.\n", options_.data) << std::flush;
    }

    bool runs_commands() const { return !options_.real.empty() || (options_.driver_node && left_out_.empty()); }
    std::string about_commands() const {
        if (!options_.real.empty()) return {};
        if (runs_commands())
            return fmt::format(
                "\n{} has 2 GPUs of a simulated driver and runs commands in containers; the others are models.",
                driver_node());
        return left_out_.empty() ? std::string{} : fmt::format("\nLeft out: a node that runs commands. {}", left_out_);
    }

    // An agent that ends is started again, as an init system would; without the server there is nothing to do.
    int stay() {
        for (;;) {
            if (told_to_stop(500ms)) break;
            const std::string name = children_.ended();
            if (name.empty()) continue;
            context_.err << fmt::format("{} has ended: {}\n", name, last_words(name));
            if (name == "server") {
                children_.stop();
                return could_not;
            }
            if (told_to_stop(1000ms)) break;
            for (int i = 1; i <= options_.nodes; ++i)
                if (node_name(i) == name)
                    if (const auto again = start_agent(i); !again) report(context_, again.error());
            if (name == driver_node())
                if (const auto again = start_driver_node(); !again) report(context_, again.error());
        }
        context_.out << "stopping\n" << std::flush;
        children_.stop();
        return done;
    }

    std::string left_out_;        // why there is no node on a simulated driver, where one was wanted
    std::size_t left_alone_ = 0;  // GPUs of this machine that somebody with fewer rights cannot use
    UpOptions options_;
    Context& context_;
    Children children_;
    DoorOptions door_;
    std::optional<Client> client_;
    bool stopping_ = false;
};

}  // namespace

void add_up(Command program, Context& context) {
    Command command =
        program.add_subcommand("up", "A whole fleet on this machine: server and nodes, on its GPUs or simulated.");
    auto options = std::make_shared<UpOptions>();
    command.add_option("--nodes", options->nodes, "How many nodes. Default: 3.").within(1, 64).type_name("COUNT");
    command.add_option("--gpus", options->gpus, "GPUs of each. Default: 8.").within(1, 16).type_name("COUNT");
    command.add_option("--drives", options->drives, "Drives of each. Default: 2.").within(0, 64).type_name("COUNT");
    command.add_option("--model", options->model, "Their model. Default: h100-80gb-sxm5.").type_name("MODEL");
    command.add_option("--data", options->data, "Where everything is kept. Default: ~/.local/share/bulkhead.")
        .type_name("DIR");
    command.add_option("--port", options->port, "HTTPS; 0: any free one. Default: 7443.").type_name("PORT");
    command.add_option("--agent-port", options->agent_port, "gRPC; 0: any free one. Default: 7444.").type_name("PORT");
    command
        .add_option("--time", options->time, "How much of the modelled time things take, in thousandths. Default: 20.")
        .within(0, 100'000)
        .type_name("THOUSANDTHS");
    add_oidc(command, options->oidc);
    command.add_flag("--simulated", options->simulated, "Simulate, even where there are GPUs.");
    command.add_flag("--driver-node", options->driver_node,
                     "One more node, with 2 GPUs of a simulated driver, which runs commands in containers; as root.");
    command.add_flag("--no-context", options->no_context, "Do not write down server and token for other commands.");
    command.callback([options, &context] { context.status = Up{*options, context}.run(); });
}

}  // namespace bulkhead::cli
