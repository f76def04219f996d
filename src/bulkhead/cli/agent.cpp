// `agent`: one node's side, on a model of a node until there is hardware under it.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <ostream>

#include "bulkhead/agent/enrol.hpp"
#include "bulkhead/agent/link.hpp"
#include "bulkhead/agent/model_hardware.hpp"
#include "bulkhead/agent/renewal.hpp"
#include "bulkhead/agent/runner.hpp"
#include "bulkhead/auth/secret_file.hpp"
#include "bulkhead/cli/door.hpp"
#include "bulkhead/cli/input.hpp"
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
    NodeModelSpec model;
    std::int64_t speed = 1000;
    bool enrol_only = false;
};

Instant clock_now() {
    using namespace std::chrono;
    return {duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count()};
}

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

Result<agent::Identity> identity_of(const AgentOptions& options) {
    auto known = agent::load_identity(options.folder);
    // Only a machine that is no node yet is enrolled; one whose files are damaged, or that others could read, is told
    // so.
    std::error_code ignored;
    if (known || known.error().code != Code::not_found || fs::exists(options.folder + "/node.json", ignored))
        return known;
    agent::EnrolOptions wish{.server = {.address = options.server, .ca_fingerprint = options.ca_fingerprint},
                             .name = options.name,
                             .token = options.token,
                             .spec = {.site = options.site, .zone = options.zone, .rack = options.rack},
                             .folder = options.folder};
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
    return agent::enrol(wish);
}

// The one loop of an agent: what the link hears goes to the runner, what the runner reports goes to the link.
class Agent {
public:
    Agent(std::unique_ptr<agent::Link> link, agent::Renewal renewal, shell::Log& log)
        : link_{std::move(link)}, renewal_{std::move(renewal)}, log_{log} {}

    void deliver(const Report& report) {
        if (!welcome_) return;  // said again after the next welcome
        if (const auto sent = link_->report(report); !sent)
            log_.error("a report cannot be sent", {{"what", sent.error().what}});
    }

    Result<> run(agent::Runner& runner) {
        while (!asked_to_stop()) {
            for (const agent::Link::Event& event : link_->wait(patience(runner))) {
                const auto done = std::visit([&](const auto& what) { return on(runner, what); }, event);
                if (!done) return done;
            }
            if (welcome_) renew_when_due();
            if (auto polled = runner.poll(clock_now()); !polled) return polled;
            for (const std::string& note : runner.take_notes()) log_.info("note", {{"what", note}});
        }
        return {};
    }

private:
    static bool asked_to_stop() {
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGINT);
        sigaddset(&set, SIGTERM);
        const timespec now{};
        return sigtimedwait(&set, nullptr, &now) > 0;
    }

    static std::chrono::milliseconds patience(const agent::Runner& runner) {
        constexpr std::int64_t longest = 250;  // how long a signal may have to wait
        const auto due = runner.next_due();
        if (!due) return std::chrono::milliseconds{longest};
        return std::chrono::milliseconds{std::clamp<std::int64_t>(due->ms - clock_now().ms, 0, longest)};
    }

    Result<> on(agent::Runner& runner, const agent::Link::Connected&) {
        auto hello = runner.hello();
        if (!hello) return std::unexpected(hello.error());
        const auto said = link_->hello(*hello);
        // The line was lost again at once: the next events say so, and the next attempt is under way.
        if (!said && said.error().code == Code::unavailable) return {};
        return said;
    }
    Result<> on(agent::Runner& runner, const agent::Link::Welcome& welcome) {
        if (auto taken = runner.welcome(clock_now(), welcome.epoch); !taken) {
            if (taken.error().code != Code::conflict) return taken;
            link_->reconnect(taken.error().what);
            return {};
        }
        log_.info("welcome", {{"epoch", welcome.epoch}, {"session", static_cast<std::int64_t>(welcome.session)}});
        welcome_ = true;
        for (const Report& report : runner.unacknowledged()) deliver(report);
        return {};
    }
    Result<> on(agent::Runner& runner, const agent::Link::OrderArrived& arrived) {
        return runner.handle(clock_now(), arrived.order);
    }
    Result<> on(agent::Runner& runner, const agent::Link::Acked& acked) { return runner.acknowledge(acked.number); }
    // Whatever goes wrong with a new certificate, the old one is good for a while yet, and the session goes on.
    void renew_when_due() {
        const auto request = renewal_.request(clock_now());
        if (!request) return not_renewed(request.error().what);
        if (!*request) return;
        if (const auto sent = link_->renew(**request); !sent) not_renewed(sent.error().what);
    }
    void not_renewed(std::string_view why) {
        log_.warning("the certificate is not renewed", {{"why", why}, {"ends", print(renewal_.ends())}});
    }
    Result<> on(agent::Runner&, const agent::Link::NotRenewed& refusal) {
        not_renewed(refusal.why);
        return {};
    }
    Result<> on(agent::Runner&, const agent::Link::Renewed& answer) {
        auto renewed = renewal_.accept(answer.certificate, clock_now());
        if (!renewed) {
            not_renewed(renewed.error().what);
            return {};
        }
        log_.info("the certificate is renewed", {{"ends", print(renewal_.ends())}});
        link_->set_identity(std::move(renewed->certificate), std::move(renewed->key));
        link_->reconnect("the certificate was renewed");  // proves it, and ends the old one
        return {};
    }
    Result<> on(agent::Runner&, const agent::Link::Lost& lost) {
        welcome_ = false;
        log_.warning("the line is down", {{"why", lost.why}, {"next_ms", lost.next_attempt_in.ms}});
        return {};
    }

    std::unique_ptr<agent::Link> link_;
    agent::Renewal renewal_;
    shell::Log& log_;
    bool welcome_ = false;
};

int run_agent(AgentOptions options, Context& context) {
    shell::Server::hold_signals();
    if (auto made = shell::make_directory(options.folder); !made) return report(context, made.error());
    const auto identity = identity_of(options);
    if (!identity) return report(context, identity.error());
    if (options.enrol_only) {
        context.out << fmt::format("this machine is node {} of {}\n", identity->name, identity->agents);
        return done;
    }
    const auto key = evidence::SigningKey::from_seed(identity->evidence_seed);
    if (!key) return report(context, key.error());
    furnish(options.model, identity->name);
    auto hardware = agent::ModelHardware::open(options.folder + "/model", options.model, options.speed);
    if (!hardware) return report(context, hardware.error());
    auto link = agent::Link::open(
        {.address = identity->agents, .ca = identity->ca, .certificate = identity->certificate, .key = identity->key});
    if (!link) return report(context, link.error());
    shell::Log log;
    auto renewal = agent::Renewal::of(*identity, options.folder);
    if (!renewal) return report(context, renewal.error());
    Agent node{*std::move(link), *std::move(renewal), log};
    auto runner = agent::Runner::open(
        {.identity = {.node = identity->name}, .journal = options.folder + "/journal"}, *key, *std::move(hardware),
        [&node](const Report& report) { node.deliver(report); }, clock_now());
    if (!runner) return report(context, runner.error());
    log.info("the agent runs", {{"node", identity->name},
                                {"server", identity->agents},
                                {"gpus", std::int64_t{options.model.gpus}},
                                {"model", options.model.gpu_model}});
    const auto ended = node.run(**runner);
    if (!ended) return report(context, ended.error());
    return done;
}

}  // namespace

void add_agent(Command program, Context& context) {
    Command command = program.add_subcommand("agent", "Run a node's agent, on a model of a node.");
    auto options = std::make_shared<AgentOptions>();
    command.description(
        "Run a node's agent, on a model of a node.\n\n"
        "The first start enrols the machine with a one-time token and keeps its keys below DIR; later\n"
        "starts need only --data.\n\n"
        "There is no GPU behind it yet: a model of a node, in a file, stands in, and everything it states says "
        "simulated.");
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
    command
        .add_option("--time", options->speed,
                    "How much of the modelled time things take, in thousandths. Default: 1000.")
        .within(0, 100'000)
        .type_name("THOUSANDTHS");
    command.callback([options, &context] { context.status = run_agent(*options, context); });
}

}  // namespace bulkhead::cli
