// `erase-drive`: one drive, by whoever stands at the machine, before it leaves the house. What a fleet's drives need is
// done by their agent, which signs it; this signs nothing.
#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <ostream>

#include "bulkhead/agent/drives.hpp"
#include "bulkhead/cli/door.hpp"

namespace bulkhead::cli {

namespace {

struct EraseDriveCommand {
    std::string serial, methods = print(ErasePolicy{});
    std::size_t samples = nvme::EraseSettings{}.samples;
    bool yes = false;
};

// Numbers of drives are kept in a folder; here they are worth nothing afterwards.
class FolderForNow {
public:
    FolderForNow() {
        std::string name = (std::filesystem::temp_directory_path() / "bulkhead-erase-XXXXXX").string();
        if (::mkdtemp(name.data()) != nullptr) path_ = name;
    }
    FolderForNow(const FolderForNow&) = delete;
    FolderForNow& operator=(const FolderForNow&) = delete;
    ~FolderForNow() {
        std::error_code ignored;
        if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
    }
    const std::string& path() const { return path_; }

private:
    std::string path_;
};

int run_erase_drive(const EraseDriveCommand& options, Context& context) {
    const auto policy = parse_erase_policy(options.methods);
    if (!policy)
        return report(context, Error{Code::invalid, fmt::format("\"{}\" is no list of methods", options.methods),
                                     "see `bulkhead erase-drive --help`"});
    if (!options.yes)
        return report(context, Error{Code::invalid, fmt::format("everything on {} would be gone", options.serial),
                                     "look with `bulkhead drives`, and say --yes"});
    // One drive by its own number: what stands for several is for agents.
    if (options.serial.starts_with("model:") || options.serial.starts_with('@'))
        return report(context, Error{Code::invalid, fmt::format("\"{}\" is no serial number", options.serial),
                                     "name one drive; `bulkhead drives` lists them"});
    std::uint64_t seed = 0;
    if (::getrandom(&seed, sizeof seed, 0) != static_cast<ssize_t>(sizeof seed))
        return report(context, Error{Code::unavailable, "the system gives no random numbers", ""});
    const FolderForNow folder;
    if (folder.path().empty())
        return report(context,
                      Error{Code::unavailable,
                            fmt::format("no folder can be made in {}", std::filesystem::temp_directory_path().string()),
                            "see TMPDIR, and whether the disk is full"});
    agent::DriveSettings settings;
    settings.tenant = {options.serial};
    settings.erase = {.policy = *policy, .samples = options.samples};
    settings.folder = folder.path();
    const auto drives = agent::Drives::open(settings);
    if (!drives) return report(context, drives.error());
    if ((*drives)->inventory().size() != 1)
        return report(context, Error{Code::not_found, fmt::format("no drive here is {}", options.serial),
                                     "`bulkhead drives` lists them"});
    const OperationResult wiped = (*drives)->wipe({UnitKind::drive, 0, 0, 1});
    const auto line = [&](std::string_view name, const std::string& text) {
        if (!text.empty()) context.out << fmt::format("  {:<10}{}\n", name, text);
    };
    context.out << fmt::format("{} {} {}\n", wiped.device_identity, wiped.model, wiped.firmware);
    line("method", wiped.method);
    for (const std::string& skipped : wiped.skipped) line("not by", skipped);
    line("sent", wiped.command);
    line("answered", wiped.status);
    if (!wiped.ok) {
        line(wiped.untouched ? "refused" : "failed", wiped.why);
        return refused;
    }
    const OperationResult read = (*drives)->verify({UnitKind::drive, 0, 0, 1, seed});
    line("read back", read.samples);
    if (!read.ok) {
        line("failed", read.why);
        return refused;
    }
    line("digest", read.digest);
    line("claim", wiped.claim);
    line("grade", std::string{word(wiped.grade.value_or(Grade::assumed))});
    return done;
}

}  // namespace

void add_erase_drive(Command program, Context& context) {
    Command command = program.add_subcommand("erase-drive", "Erase one NVMe drive of this machine, and read it back.");
    auto options = std::make_shared<EraseDriveCommand>();
    command.description(
        "Erase one NVMe drive of this machine, and read it back.\n\n"
        "For a drive that leaves the house. By the first allowed method that the drive claims to have; a method that "
        "fails\nis not replaced by a weaker one. Refuses a drive that somebody uses or an agent has, and what the "
        "machine runs "
        "from. "
        "Signs nothing:\ndrives of a fleet are wiped by their agent, which does.");
    command.add_option("--serial", options->serial, "Its serial number; `bulkhead drives` lists them.")
        .required()
        .type_name("SERIAL");
    command.add_option("--erase", options->methods, "By which methods, in this order.").type_name("METHODS");
    command.add_option("--drive-samples", options->samples, "Random places to read before and after. Default: 2000.")
        .within(2, 1'000'000)
        .type_name("COUNT");
    command.add_flag("--yes", options->yes, "Everything on it may go.");
    command.footer(
        "Exit status:\n"
        "  0  erased, and read back\n"
        "  1  could not be tried\n"
        "  2  an argument is wrong, or --yes is missing\n"
        "  3  refused, failed, or not empty afterwards");
    command.callback([options, &context] { context.status = run_erase_drive(*options, context); });
}

}  // namespace bulkhead::cli
