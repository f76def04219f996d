// `scrub`: wipe a GPU's memory and prove it, without a control plane. An agent has its wipes done by this same command.
#include <fmt/format.h>
#include <openssl/rand.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <memory>
#include <ostream>

#include "bulkhead/agent/enrol.hpp"
#include "bulkhead/agent/gpu_scrub.hpp"
#include "bulkhead/agent/line_account.hpp"
#include "bulkhead/cli/clock.hpp"
#include "bulkhead/cli/door.hpp"
#include "bulkhead/cli/terminal.hpp"
#include "bulkhead/codec/json_writer.hpp"
#include "bulkhead/evidence/statement.hpp"

namespace bulkhead::cli {

namespace {

struct ScrubCommand {
    agent::GpuScrubOptions wipe;
    std::string folder, output = "table";
    bool no_survey = false, self_test = false, skip_overwrite = false;
};

struct Signer {
    std::string node;
    evidence::SigningKey key;
    bool enrolled = false;  // otherwise the key was made for this run, and proves that nothing was changed since
};

Result<Signer> signer_of(const ScrubCommand& command) {
    if (!command.folder.empty()) {
        std::error_code ignored;
        if (std::filesystem::exists(agent::line_folder(command.folder), ignored))
            return fail(Code::denied,
                        fmt::format("the key in {} is its agent's user's alone", agent::line_folder(command.folder)),
                        "have the agent wipe, which signs as the node; or leave --data out");
        const auto identity = agent::load_identity(command.folder);
        if (!identity) return std::unexpected(identity.error());
        auto key = evidence::SigningKey::from_seed(identity->evidence_seed);
        if (!key) return std::unexpected(key.error());
        return Signer{identity->name, *std::move(key), true};
    }
    std::string seed(32, '\0');
    if (RAND_bytes(reinterpret_cast<unsigned char*>(seed.data()), static_cast<int>(seed.size())) != 1)
        return fail(Code::unavailable, "the operating system gives no random bytes",
                    "see whether /dev/urandom can be read");
    auto key = evidence::SigningKey::from_seed(seed);
    if (!key) return std::unexpected(key.error());
    std::array<char, 256> host{};
    ::gethostname(host.data(), host.size() - 1);
    return Signer{host.data(), *std::move(key), false};
}

evidence::WipeStatement statement_of(const agent::GpuScrub& scrub, const Signer& signer, Instant ended) {
    return {.node = signer.node,
            .device = scrub.device,
            .model = scrub.model,
            .unit = "memory",
            .method = scrub.burn_in_passes == 0
                          ? "overwrite, every byte read back"
                          : fmt::format("overwrite, every byte read back, burn-in of {} passes and a computation",
                                        scrub.burn_in_passes),
            .began = {ended.ms - scrub.times.total / 1000},
            .ended = ended,
            .bytes = scrub.bytes_reached,
            .bytes_verified = scrub.bytes_verified,
            .bytes_found = scrub.bytes_found,
            .bytes_unreachable = scrub.bytes_unreachable(),
            .unreachable = scrub.unreachable(),
            .digest = scrub.digest,
            .result = scrub.verified ? evidence::WipeResult::verified : evidence::WipeResult::failed,
            .grade = scrub.simulated ? Grade::simulated : Grade::silicon,
            .agent_version = "0.1.0",
            .driver = scrub.driver};
}

double rate(std::int64_t bytes, std::int64_t microseconds) {
    return microseconds > 0 ? static_cast<double>(bytes) / 1e6 / static_cast<double>(microseconds) : 0;  // TB/s
}

std::string gib(std::int64_t bytes) { return fmt::format("{:.3f} GiB", static_cast<double>(bytes) / (1 << 30)); }
std::string mib(std::int64_t bytes) { return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20)); }
std::string ms(std::int64_t microseconds) { return fmt::format("{:.1f} ms", static_cast<double>(microseconds) / 1e3); }

void print_table_of(const agent::GpuScrub& scrub, const evidence::SignedEvidence& evidence, const Signer& signer,
                    Context& context) {
    const auto line = [&](std::string_view name, const std::string& text) {
        context.out << fmt::format("  {:<14}{}\n", name, text);
    };
    const auto pass = [&](std::string_view name, std::int64_t gpu_us, std::int64_t wall_us) {
        line(name, fmt::format("{:>10}  {:.2f} TB/s  ({} with what the host does around it)", ms(gpu_us),
                               rate(scrub.bytes_reached, gpu_us), ms(wall_us)));
    };
    context.out << painted(scrub.verified ? "verified" : "not verified", scrub.verified ? green : red, context.colour)
                << fmt::format(": {} {}{}\n", scrub.model, scrub.device,
                               scrub.simulated ? ", a simulated GPU" : fmt::format(", driver {}", scrub.driver));
    if (!scrub.verified) line("because", scrub.why_not);
    line("wiped", fmt::format("{} of {} in {} pieces, every byte read back", gib(scrub.bytes_reached),
                              gib(scrub.bytes_total), scrub.pieces));
    if (scrub.burn_in_passes > 0)
        line("burn-in", fmt::format("{} passes before, each with other contents, and a computation that the host knew",
                                    scrub.burn_in_passes));
    line("out of reach",
         fmt::format("{}: driver and firmware {}, our own context {}, other programs {}, no piece to be had {}",
                     mib(scrub.bytes_unreachable()), mib(scrub.bytes_reserved), mib(scrub.bytes_context),
                     mib(scrub.bytes_others), mib(scrub.bytes_left)));
    if (!scrub.why_context_stays.empty()) line("", "our own context: " + scrub.why_context_stays);
    if (scrub.bytes_found)
        line("found before", *scrub.bytes_found == 0 ? "nothing but zeros: the driver had cleared it"
                                                     : fmt::format("{} bytes that were not zero", *scrub.bytes_found));
    if (scrub.bytes_found) pass("look", scrub.survey_gpu_us, scrub.times.survey);
    pass("overwrite", scrub.overwrite_gpu_us, scrub.times.overwrite);
    pass("verify", scrub.verify_gpu_us, scrub.times.verify);
    line("wall clock",
         fmt::format(
             "{}: start {}, libraries {}, context {}, kernels {}, allocation {}, look {}, overwrite {}, verify {}, "
             "handover {}",
             ms(scrub.times.total), ms(scrub.times.start), ms(scrub.times.driver), ms(scrub.times.context),
             ms(scrub.times.module), ms(scrub.times.allocation), ms(scrub.times.survey), ms(scrub.times.overwrite),
             ms(scrub.times.verify), ms(scrub.times.handover)));
    line("digest", scrub.digest);
    line("signed", fmt::format("key {}{}", evidence.key,
                               signer.enrolled ? fmt::format(" of node {}", signer.node)
                                               : ", made for this run: it proves only that nothing was changed since"));
}

void print_json_of(const agent::GpuScrub& scrub, const evidence::SignedEvidence& evidence, const Signer& signer,
                   Context& context) {
    JsonWriter json{JsonLayout::compact};
    json.begin_object();
    json.key("scrub");
    json.number(agent::scrub_text(scrub));
    json.key("evidence");
    json.begin_object();
    json.member("statement", evidence.statement);
    json.member("key", evidence.key);
    json.member("signature", evidence.signature);
    json.member("publicKey", evidence::print(signer.key.public_key()));
    json.end_object();
    json.end_object();
    context.out << json.take() << '\n';
}

int run_scrub(ScrubCommand command, Context& context) {
    const auto signer = signer_of(command);
    if (!signer) return report(context, signer.error());
    command.wipe.survey = !command.no_survey;
    command.wipe.mishap = {.skip_overwrite = command.skip_overwrite, .plant_marker = command.self_test};
    auto scrub = agent::scrub_gpu(command.wipe);
    if (!scrub) return report(context, scrub.error());
    const auto evidence =
        evidence::sign_statement(signer->key, evidence::statement_text(statement_of(*scrub, *signer, clock_now())));
    if (command.output == "report") {
        context.out << agent::scrub_text(*scrub) << '\n';
    } else if (command.output == "json") {
        print_json_of(*scrub, evidence, *signer, context);
    } else {
        print_table_of(*scrub, evidence, *signer, context);
    }
    if (!command.self_test) return scrub->verified ? done : refused;
    // Sixteen bytes were planted after the overwrite: a verifier worth its name finds these and nothing else.
    const bool found = !scrub->verified && scrub->bytes_other == 16;
    context.err << (found ? "self-test passed: 16 planted bytes were found, and the wipe was refused\n"
                          : "self-test FAILED: 16 bytes were planted and not found\n");
    return found ? done : could_not;
}

}  // namespace

void add_scrub(Command program, Context& context) {
    Command command = program.add_subcommand("scrub", "Wipe the memory of a GPU or MIG instance, and prove it.");
    auto options = std::make_shared<ScrubCommand>();
    command.description(
        "Wipe the memory of a GPU, or of a MIG instance, and prove it.\n\n"
        "Takes all memory that can be had, largest pieces first; looks at what was there; overwrites it with a "
        "pattern\n"
        "that is different at every place and in every run; reads every byte back. Says what it could not reach, and\n"
        "why. Nothing else may run on it: who does is counted, and the wipe is then not verified.");
    command.add_option("--gpu", options->wipe.gpu, "An index as nvidia-smi counts, a GPU- UUID or a MIG- UUID.")
        .required()
        .type_name("GPU");
    command.add_option("--data", options->folder, "An agent's folder: sign as that node. Default: a key of this run.")
        .type_name("DIR");
    command.add_option("--cuda", options->wipe.cuda, "The CUDA driver's library. Default: libcuda.so.1.")
        .type_name("LIBRARY");
    command.add_option("--nvml", options->wipe.nvml, "NVML's. Default: libnvidia-ml.so.1.").type_name("LIBRARY");
    command
        .add_option("--burn-in", options->wipe.burn_in,
                    "So many passes before, each with other contents, and a computation: what a GPU must pass that was "
                    "out of use.")
        .within(0, 1000)
        .type_name("PASSES");
    command.add_flag("--no-look", options->no_survey, "Do not look at what was there before.");
    command.add_flag("--self-test", options->self_test,
                     "Plant 16 bytes after the overwrite: the verification must find them.");
    command.add_flag("--skip-overwrite", options->skip_overwrite,
                     "Overwrite nothing: the verification must then fail. For tests of whoever relies on it.");
    command
        .add_option("-o,--output", options->output,
                    "table, json with the signed statement, or report: the figures alone. Default: table.")
        .one_of({"table", "json", "report"})
        .type_name("FORMAT");
    command.footer(
        "Examples:\n"
        "  bulkhead scrub --gpu 0                        the first GPU\n"
        "  bulkhead scrub --gpu MIG-... -o json          one instance; its neighbours go on working\n"
        "  bulkhead scrub --gpu 0 --self-test            does the verifier find what it should?\n\n"
        "Exit status:\n"
        "  0  wiped, and verified\n"
        "  1  it could not be tried\n"
        "  3  it is not verified, and why");
    command.callback([options, &context] { context.status = run_scrub(*options, context); });
}

}  // namespace bulkhead::cli
