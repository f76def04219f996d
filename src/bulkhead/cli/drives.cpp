// `drives`: the NVMe drives of the machine one stands at: what they are, who uses them, and how each would be erased.
// Sends nothing that changes anything.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <ostream>

#include "bulkhead/agent/drive_lock.hpp"
#include "bulkhead/cli/door.hpp"
#include "bulkhead/cli/mig.hpp"
#include "bulkhead/codec/json_writer.hpp"
#include "bulkhead/hw/nvme/erase.hpp"
#include "bulkhead/hw/nvme/in_use.hpp"
#include "bulkhead/hw/nvme/kernel_transport.hpp"
#include "bulkhead/hw/nvme/virtual_machine.hpp"

namespace bulkhead::cli {

namespace {

struct DrivesCommand {
    std::string folder, methods = print(ErasePolicy{});
    bool json = false;
};

struct DriveLook {
    nvme::Drive drive;
    std::vector<std::string> users;
    bool taken = false;          // by an agent, or by somebody who erases it
    bool users_unknown = false;  // nobody was seen, and not everybody could be
    std::string method;          // empty: `why` says why not
    std::string why, remedy;
    std::string claim;
    std::vector<SkippedMethod> skipped;
};

// What the machine runs from is asked too: it is only looked at.
DriveLook look_at_drive(const nvme::Tree& tree, const nvme::Drive& drive, const ErasePolicy& policy, bool here) {
    DriveLook look{.drive = drive, .users = nvme::users_of(tree, drive)};
    look.users_unknown = look.users.empty() && !nvme::sees_all_processes(tree);
    look.taken = here && agent::is_drive_taken(std::string{agent::drive_locks}, drive.serial);
    if (!here) {
        look.why = "not asked: this is another machine's description";
        return look;
    }
    auto opened = nvme::open_drive(tree, drive);
    const auto facts = opened ? nvme::look_at(**opened) : std::unexpected(opened.error());
    if (!facts) {
        look.why = facts.error().what;
        look.remedy = facts.error().remedy;
        return look;
    }
    if (auto plan = plan_erase(facts->claims, policy)) {
        look.method = word(plan->method);
        look.claim = claim_of(plan->method);
        look.skipped = std::move(plan->skipped);
    } else {
        look.why = plan.error().why;
        look.remedy = plan.error().remedy;
        look.skipped = plan.error().skipped;
    }
    return look;
}

void print_drives(std::ostream& out, const std::vector<DriveLook>& looks,
                  const std::vector<nvme::AbsentDriver>& without, const std::string& machine) {
    std::vector<std::vector<std::string>> rows{
        {"SERIAL", "MODEL", "FIRMWARE", "SIZE", "NAMESPACES", "NOW", "ERASED BY"}};
    for (const DriveLook& look : looks)
        rows.push_back({look.drive.serial, look.drive.model, look.drive.firmware,
                        print(ByteSize{static_cast<std::int64_t>(look.drive.bytes())}),
                        std::to_string(look.drive.namespaces.size()),
                        look.drive.is_system  ? "the machine's own"
                        : !look.users.empty() ? "in use"
                        : look.taken          ? "an agent's"
                        : look.users_unknown  ? "unknown"
                                              : "free",
                        look.method.empty() ? "-" : look.method});
    out << aligned(rows);
    for (const DriveLook& look : looks) {
        out << fmt::format("\n{} ({}, {}){}\n", look.drive.serial, look.drive.controller, look.drive.address,
                           look.drive.grade() == Grade::silicon ? "" : fmt::format(", {}", word(look.drive.grade())));
        for (const std::string& user : look.users) out << fmt::format("  {}\n", user);
        if (look.taken) out << "  an agent has it for tenants, or somebody erases it\n";
        if (!look.claim.empty()) out << fmt::format("  {} may claim: {}\n", look.method, look.claim);
        if (!look.why.empty())
            out << fmt::format("  would not be erased: {}{}\n", look.why,
                               look.remedy.empty() ? "" : "; " + look.remedy);
        for (const SkippedMethod& one : look.skipped)
            out << fmt::format("  not by {}: {}\n", word(one.method), one.why);
    }
    if (!machine.empty())
        out << fmt::format("\nthis machine is virtual ({}): whoever runs it can show it any drive\n", machine);
    for (const nvme::AbsentDriver& one : without)
        out << fmt::format("\nan NVMe controller at {} is {}: its drive cannot be asked\n", one.address,
                           one.driver.empty() ? "no driver's" : "bound to " + one.driver);
}

void print_drives_json(std::ostream& out, const std::vector<DriveLook>& looks,
                       const std::vector<nvme::AbsentDriver>& without, const std::string& machine) {
    JsonWriter json;
    json.begin_object();
    json.member("virtualMachine", machine);
    json.key("drives");
    json.begin_array();
    for (const DriveLook& look : looks) {
        json.begin_object();
        json.member("serial", look.drive.serial);
        json.member("model", look.drive.model);
        json.member("firmware", look.drive.firmware);
        json.member("controller", look.drive.controller);
        json.member("address", look.drive.address);
        json.member("bytes", static_cast<std::int64_t>(look.drive.bytes()));
        json.member("system", look.drive.is_system);
        json.member("grade", word(look.drive.grade()));
        json.key("namespaces");
        json.begin_array();
        for (const nvme::NamespaceBlock& one : look.drive.namespaces) {
            json.begin_object();
            json.member("id", std::int64_t{one.nsid});
            json.member("device", one.device.name);
            json.member("bytes", static_cast<std::int64_t>(one.bytes));
            json.member("wwid", one.wwid);
            json.end_object();
        }
        json.end_array();
        json.key("users");
        json.begin_array();
        for (const std::string& user : look.users) json.value(user);
        json.end_array();
        json.member("usersUnknown", look.users_unknown);
        json.member("taken", look.taken);
        json.member("method", look.method);
        json.member("claim", look.claim);
        json.member("why", look.why);
        json.key("skipped");
        json.begin_array();
        for (const SkippedMethod& one : look.skipped) json.value(fmt::format("{}: {}", word(one.method), one.why));
        json.end_array();
        json.end_object();
    }
    json.end_array();
    json.key("withoutDriver");
    json.begin_array();
    for (const nvme::AbsentDriver& one : without) {
        json.begin_object();
        json.member("address", one.address);
        json.member("driver", one.driver);
        json.end_object();
    }
    json.end_array();
    json.end_object();
    out << json.take();
}

int run_drives(const DrivesCommand& options, Context& context) {
    const auto policy = parse_erase_policy(options.methods);
    if (!policy)
        return report(context, Error{Code::invalid, fmt::format("\"{}\" is no list of methods", options.methods),
                                     "each once, with commas between: sanitize-crypto, format-crypto, sanitize-block, "
                                     "format-erase, sanitize-overwrite, host-zeroes"});
    nvme::Tree tree;
    if (!options.folder.empty()) tree = {options.folder + "/sys", options.folder + "/proc", options.folder + "/dev"};
    const auto found = nvme::discover(tree);
    if (!found) return report(context, found.error());
    std::vector<DriveLook> looks;
    for (const nvme::Drive& drive : found->drives)
        looks.push_back(look_at_drive(tree, drive, *policy, options.folder.empty()));
    const std::string machine = nvme::virtual_machine(tree);
    if (options.json)
        print_drives_json(context.out, looks, found->without, machine);
    else if (looks.empty() && found->without.empty())
        context.out << "this machine has no NVMe drive\n";
    else
        print_drives(context.out, looks, found->without, machine);
    if (std::ranges::any_of(looks, &DriveLook::users_unknown))
        return report(context, Error{Code::denied, "who uses these drives is not shown to this user", "run as root"});
    return done;
}

}  // namespace

void add_drives(Command program, Context& context) {
    Command command =
        program.add_subcommand("drives", "The NVMe drives of this machine: who uses them, how each would be erased.");
    auto options = std::make_shared<DrivesCommand>();
    command.description(
        "The NVMe drives of this machine: who uses them, and how each would be erased.\n\n"
        "Asks every drive what it can do, which takes root, and says which method an erase would use, what may be\n"
        "claimed after it, and why not by a stronger one. Changes nothing. Where it is not shown who uses a drive, it "
        "says\nso and ends with an error.");
    command.add_option("--erase", options->methods, "By which methods drives may be erased, in this order.")
        .type_name("METHODS");
    command
        .add_option("--sysfs", options->folder,
                    "Read DIR/sys and DIR/proc, a description of some machine, instead of this one's.")
        .type_name("DIR");
    command.add_flag("--json", options->json, "As JSON.");
    command.footer(
        "Examples:\n"
        "  bulkhead drives                                  what is here\n"
        "  bulkhead drives --erase format-crypto,format-erase   by what would these be erased?\n"
        "  bulkhead drives --json | jq -r '.drives[].serial'    names for `bulkhead agent --tenant-drive`");
    command.callback([options, &context] { context.status = run_drives(*options, context); });
}

}  // namespace bulkhead::cli
