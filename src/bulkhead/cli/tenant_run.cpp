// `run`: a tenant's command on GPUs of the fleet, in its tier; what it printed and how it ended come back.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <ctime>
#include <memory>
#include <optional>
#include <ostream>

#include "bulkhead/cli/clock.hpp"
#include "bulkhead/cli/door.hpp"
#include "bulkhead/cli/objects.hpp"
#include "bulkhead/cli/output.hpp"
#include "bulkhead/codec/print.hpp"
#include "bulkhead/sched/statement.hpp"

namespace bulkhead::cli {

namespace {

struct RunOptions {
    std::string name, tenant, profile, fraction, memory;
    std::int64_t gpus = 1, cpu = 0;
    std::vector<std::string> command, environment;
    bool keep = false, detach = false, replace = false;
};

Result<GpuWorkload> workload_of(const RunOptions& options) {
    GpuWorkload work;
    work.metadata.name = options.name.empty() ? fmt::format("run-{}", clock_now().ms) : options.name;
    work.spec.tenant = options.tenant;
    work.spec.command = options.command;
    work.spec.environment = options.environment;
    if (!options.profile.empty()) {
        work.spec.gpu.profile = options.profile;
    } else if (!options.fraction.empty()) {
        const auto fraction = parse_gpus(options.fraction);
        if (!fraction) return std::unexpected(fraction.error());
        work.spec.gpu.fraction = *fraction;
    } else {
        work.spec.gpu.count = options.gpus;
        work.spec.gpu.mechanism = Mechanism::whole;  // as the option says: no class's preference shares them
    }
    if (options.cpu > 0) work.spec.cpu = options.cpu;
    if (!options.memory.empty()) {
        const auto memory = parse_byte_size(options.memory);
        if (!memory) return std::unexpected(memory.error());
        work.spec.memory = *memory;
    }
    return work;
}

// Ctrl-C while a command is waited for: asks at the first, cancels at the second. SIGTERM and SIGHUP (the terminal is
// closed) cancel at once. Held back meanwhile, so that no answer of the server is cut short.
class Interrupts {
public:
    Interrupts() {
        sigemptyset(&set_);
        for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set_, signal);
        ::pthread_sigmask(SIG_BLOCK, &set_, &before_);
    }
    ~Interrupts() {
        while (waits_for_one({}) > 0) {  // one that comes now must not end what is to be said last
        }
        ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }
    Interrupts(const Interrupts&) = delete;
    Interrupts& operator=(const Interrupts&) = delete;

    // True: it is to be cancelled.
    bool wait(std::chrono::milliseconds time, const std::string& name, std::ostream& err) {
        using Clock = std::chrono::steady_clock;
        const int signal = waits_for_one(time);
        if (signal == SIGTERM || signal == SIGHUP) {
            cancelled_by_ = signal;
            return true;
        }
        if (signal != SIGINT) {
            if (asked_ && Clock::now() > *asked_ + patience) {
                err << fmt::format("{} goes on\n", name);
                asked_.reset();
            }
            return false;
        }
        if (asked_) return true;
        asked_ = Clock::now();
        err << fmt::format("cancel {}? press Ctrl-C again within {} s to cancel it; otherwise it goes on\n", name,
                           patience.count());
        return false;
    }

    int cancelled_by() const { return cancelled_by_; }

private:
    static constexpr std::chrono::seconds patience{10};

    int waits_for_one(std::chrono::milliseconds time) const {  // which; not positive: none came
        const timespec moment{.tv_sec = time.count() / 1000, .tv_nsec = (time.count() % 1000) * 1'000'000};
        return ::sigtimedwait(&set_, nullptr, &moment);
    }
    sigset_t set_{}, before_{};
    int cancelled_by_ = SIGINT;
    std::optional<std::chrono::steady_clock::time_point> asked_;
};

Result<GpuWorkload> read_workload(Client& client, const std::string& name) {
    const auto reply = client.get(target_of("workloads", name));
    if (!reply) return std::unexpected(reply.error());
    const auto object = read_object(reply->body);
    if (!object) return std::unexpected(object.error());
    const auto* work = std::get_if<GpuWorkload>(&*object);
    if (work == nullptr || !work->status) return fail(Code::corrupt, "the server answered with something else", "");
    return *work;
}

struct Outcome {
    GpuWorkloadStatus status = {};
    bool cancelled = false;
    bool runs_nowhere = false;  // it waits, and no node that may serve it runs commands
};

// Its output as it comes, until it has ended; why it waits is said once for each reason.
Result<Outcome> outcome(Client& client, const std::string& name, Interrupts& interrupts, Context& context) {
    std::string said;
    OutputReader out{.workload = name}, err{.workload = name, .errors = true};
    // One piece of each stream at a time, so that Ctrl-C is seen while a command prints without end. True: there was
    // some, and there may be more.
    const auto print_a_piece = [&]() -> Result<bool> {
        bool any = false;
        for (OutputReader* reader : {&out, &err}) {
            const auto read = reader->read(client, reader->errors ? context.err : context.out, context.err);
            // A node that is away is no end: the work goes on, and so does its output when it is back.
            if (!read && (read.error().code == Code::unavailable || read.error().code == Code::timeout ||
                          read.error().code == Code::exhausted))
                continue;
            if (!read) return std::unexpected(read.error());
            any = any || (read->any && !read->over);
        }
        return any;
    };
    while (true) {
        const auto work = read_workload(client, name);
        if (!work) return std::unexpected(work.error());
        const GpuWorkloadStatus& status = *work->status;
        bool prints = false;
        if (status.phase == WorkloadPhase::running || status.exitStatus) {
            const auto printed = print_a_piece();
            // One that never started has printed nothing, and has no lease to ask for it.
            if (!printed && !status.is_over()) return std::unexpected(printed.error());
            prints = printed && *printed;
        }
        if (prints) {
            if (interrupts.wait({}, name, context.err)) return Outcome{.status = status, .cancelled = true};
            continue;
        }
        if (status.phase == WorkloadPhase::finished || status.phase == WorkloadPhase::failed)
            return Outcome{.status = status};
        if (status.phase == WorkloadPhase::pending && std::ranges::any_of(status.reasons, [](const std::string& says) {
                return sched::code_of(says) == "wait.no-commands";
            }))
            return Outcome{.status = status, .runs_nowhere = true};
        std::string now{word(status.phase)};
        if (!status.reasons.empty()) now += ": " + status.reasons.front();
        if (now != said) context.err << fmt::format("{} is {}\n", name, now);
        said = std::move(now);
        if (interrupts.wait(std::chrono::milliseconds{200}, name, context.err))
            return Outcome{.status = status, .cancelled = true};
    }
}

// Refuses a name that a workload has already: `run` neither waits for another run's work nor changes it.
Result<> make_room(Client& client, const std::string& name, bool replace, Interrupts& interrupts, Context& context) {
    const auto work = read_workload(client, name);
    if (!work) return work.error().code == Code::not_found ? Result<>{} : std::unexpected(work.error());
    const bool over = work->status->phase == WorkloadPhase::finished || work->status->phase == WorkloadPhase::failed;
    if (!over)
        return fail(Code::conflict,
                    fmt::format("GpuWorkload {} is there already, and is {}", name, word(work->status->phase)),
                    fmt::format("follow it with bulkhead logs -f {0}, cancel it with bulkhead delete workload {0}, or "
                                "choose another --name",
                                work->metadata.name));
    if (!replace)
        return fail(Code::conflict,
                    fmt::format("GpuWorkload {} is there already, and has {}", name, word(work->status->phase)),
                    fmt::format("--replace deletes it and runs anew; or choose another --name; bulkhead logs {} shows "
                                "what it printed",
                                work->metadata.name));
    if (const auto gone = client.ask({.method = "DELETE", .target = target_of("workloads", name)}); !gone)
        return std::unexpected(gone.error());
    while (read_workload(client, name))
        if (interrupts.wait(std::chrono::milliseconds{200}, name, context.err))
            return fail(Code::conflict, fmt::format("stopped waiting for {} to be deleted", name), "run it again");
    return {};
}

// Nodes that are models take work and run nothing: a command on them would never end.
Result<> some_node_runs_commands(Client& client) {
    const auto me = client.get("/v1/whoami");
    const auto who = me ? read_answer(*me) : Result<Document>{std::unexpected(me.error())};
    if (!who) return std::unexpected(who.error());
    if (text_at(*who->root, "runsCommands") != "false") return {};
    return fail(Code::unavailable, "no node of this fleet can run a command: all of them are models of nodes",
                "add a node with GPUs, or a simulated one: bulkhead up --driver-node, as root; bulkhead apply -f "
                "tries placement on models");
}

void say_why_it_failed(const std::string& name, const WorkFailure& failure, bool kept, Context& context) {
    context.err << fmt::format("{} failed ({}{}), attempt {}: {}\n", name, word(failure.reason),
                               failure.node.empty() ? "" : " on " + failure.node, failure.attempt, failure.says);
    // `bulkhead logs`, the next step of what ended by itself, works only while the workload is there.
    const bool by_itself = failure.reason == FailureReason::exited || failure.reason == FailureReason::killed;
    if (by_itself && !kept)
        context.err << "  try: change the command; with --keep its workload stays, to look at it later\n";
    else if (!failure.next.empty())
        context.err << "  try: " << failure.next << '\n';
}

// What a command prints is its tenant's to read. Who runs the fleet may make a key for that as long as the tenant has
// no admin of its own; the tenant sees it.
class OutputKey {
public:
    OutputKey(Client& client, const std::string& tenant) : maker_{client} {
        const auto me = client.get("/v1/whoami");
        const auto who = me ? read_answer(*me) : Result<Document>{std::unexpected(me.error())};
        if (!who || who->root->find("tenants") == nullptr) return;
        if (who->root->find("tenants")->find(tenant) != nullptr) return;  // one of the tenant's own needs none
        const auto made = client.post(
            "/v1/tokens",
            fmt::format(R"({{"role":"tenant-user","tenant":"{}","subject":"bulkhead run","name":"bulkhead run",)"
                        R"("scope":["read-tenant","read-output"],"validFor":"24h"}})",
                        tenant));
        const auto read = made ? read_answer(*made) : Result<Document>{std::unexpected(made.error())};
        if (!read) {
            refused_ = read.error();
            return;
        }
        id_ = text_at(*read->root, "id");
        if (auto other = client.with_token(text_at(*read->root, "token"))) reader_.emplace(*std::move(other));
    }
    ~OutputKey() {
        if (!id_.empty()) static_cast<void>(maker_.ask({.method = "DELETE", .target = "/v1/tokens/" + id_}));
    }
    OutputKey(const OutputKey&) = delete;
    OutputKey& operator=(const OutputKey&) = delete;
    Client& client() { return reader_ ? *reader_ : maker_; }
    // Why what the command prints could not be read; none: it can be.
    const std::optional<Error>& refused() const { return refused_; }

private:
    Client& maker_;
    std::optional<Error> refused_;
    std::string id_;
    std::optional<Client> reader_;
};

int run_command(const RunOptions& options, const DoorOptions& door, Context& context) {
    const auto work = workload_of(options);
    if (!work) return report(context, work.error());
    auto client = connect(door);
    if (!client) return report(context, client.error());
    if (const auto can = some_node_runs_commands(*client); !can) return report(context, can.error());
    const std::string name = fmt::format("{}/{}", work->spec.tenant, work->metadata.name);
    Interrupts interrupts;
    if (!options.name.empty())
        if (const auto room = make_room(*client, name, options.replace, interrupts, context); !room)
            return report(context, room.error());
    std::optional<OutputKey> key;
    if (!options.detach) {
        key.emplace(*client, work->spec.tenant);
        if (key->refused() && key->refused()->code == Code::denied)
            return report(context,
                          {key->refused()->code,
                           fmt::format("what the work of {} prints cannot be read with this token: {}",
                                       work->spec.tenant, key->refused()->what),
                           fmt::format("run it with a token of tenant {}, or --detach and read its status only",
                                       work->spec.tenant)});
    }
    const auto applied = client->post("/v1/apply", to_compact_json(*work));
    if (!applied) return report(context, applied.error());
    if (options.detach) {
        context.out << work->metadata.name << '\n';
        context.err << fmt::format(
            "{0} is submitted; bulkhead logs -f {0} follows it, bulkhead delete workload {0} "
            "cancels it\n",
            work->metadata.name);
        return done;
    }
    const auto ended = outcome(key->client(), name, interrupts, context);
    if (!ended) {
        const int status = report(context, ended.error());
        context.err << fmt::format(
            "{0} goes on: bulkhead logs -f {1} follows it, bulkhead delete workload {1} ends it\n", name,
            work->metadata.name);
        return status;
    }
    if (ended->runs_nowhere) {
        static_cast<void>(client->ask({.method = "DELETE", .target = target_of("workloads", name)}));
        return report(
            context, {Code::unavailable, fmt::format("{} cannot run: {}", name, fmt::join(ended->status.reasons, "; ")),
                      "bulkhead fleet shows the nodes and which of them run commands; with --detach it waits, and "
                      "bulkhead explain says why each node cannot serve it"});
    }
    if (ended->cancelled || !options.keep)
        if (const auto deleted = client->ask({.method = "DELETE", .target = target_of("workloads", name)}); !deleted)
            return report(context, deleted.error());
    const GpuWorkloadStatus& status = ended->status;
    if (ended->cancelled) {
        context.err << fmt::format("{} is cancelled{}\n", name,
                                   status.lease.empty() ? "" : "; its GPUs are wiped and free again soon");
        return 128 + interrupts.cancelled_by();
    }
    if (status.phase == WorkloadPhase::failed && status.failure)
        say_why_it_failed(name, *status.failure, options.keep, context);
    if (status.exitStatus) return static_cast<int>(*status.exitStatus);
    return status.phase == WorkloadPhase::failed ? could_not : done;
}

}  // namespace

void add_run(Command program, Context& context) {
    Command command = program.add_subcommand("run", "Run a tenant's command on GPUs of the fleet, in its tier.");
    auto options = std::make_shared<RunOptions>();
    const auto door = add_door(command);
    command.description(
        "Run a tenant's command on GPUs of the fleet, in its tier, and wait for it.\n\n"
        "The command becomes a GpuWorkload like any other: judged, queued, leased, isolated. What it prints is "
        "printed\nhere as it comes, its status is ours, and what it used is wiped. Ctrl-C asks; a second one cancels "
        "it, and so do SIGTERM and the end of the terminal.");
    command.add_option("--tenant", options->tenant, "Whose work it is.").required().type_name("TENANT");
    command.add_option("--name", options->name, "The workload's name. Default: run-TIME.").type_name("NAME");
    const Option gpus =
        command.add_option("--gpus", options->gpus, "Whole GPUs. Default: 1.").within(1, 1024).type_name("COUNT");
    const Option profile =
        command.add_option("--profile", options->profile, "Or a slice: 1g.18gb.").type_name("PROFILE").excludes(gpus);
    command.add_option("--fraction", options->fraction, "Or a fraction of one: 0.5.")
        .type_name("FRACTION")
        .excludes(gpus)
        .excludes(profile);
    command.add_option("--cpu", options->cpu, "CPU cores.").within(1, 4096).type_name("COUNT");
    command.add_option("--memory", options->memory, "Host memory: 16Gi.").type_name("SIZE");
    command.add_option("--env", options->environment, "A variable for it: NAME=value. May be repeated.")
        .one_value_each()
        .type_name("NAME=VALUE");
    command.add_flag("--keep", options->keep, "Keep the workload when it has ended, to look at later.");
    command.add_flag("--detach", options->detach, "Print the workload's name and do not wait for it; it is kept.");
    command.add_flag("--replace", options->replace,
                     "With --name: delete a workload of that name that has ended first.");
    command.add_option("COMMAND", options->command, "The program by its path or name, and its arguments, after --.")
        .required()
        .type_name("");
    command.footer(
        "Examples:\n"
        "  bulkhead run --tenant vision -- nvidia-smi -L\n"
        "  bulkhead run --tenant speech --profile 1g.18gb --cpu 4 --memory 16Gi -- python3 train.py\n\n"
        "Exit status: the command's own; 130 when it was cancelled by Ctrl-C; 126 or 127 when the program cannot be\n"
        "executed; 1 to 4 as everywhere when it did not come to that.");
    command.callback([options, door, &context] { context.status = run_command(*options, *door, context); });
}

}  // namespace bulkhead::cli
