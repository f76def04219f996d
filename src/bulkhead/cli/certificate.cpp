// `certificate` and `verify`: proofs of wipes as they leave the server, and their checking without the server.
#include <fmt/core.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <memory>
#include <ostream>

#include "bulkhead/cli/audit_commands.hpp"
#include "bulkhead/cli/door.hpp"
#include "bulkhead/cli/input.hpp"
#include "bulkhead/cli/log_source.hpp"
#include "bulkhead/cli/objects.hpp"
#include "bulkhead/evidence/certificate_list.hpp"

namespace bulkhead::cli {

namespace {

constexpr int only_of_a_lab = 5;
constexpr int only_in_part = 6;

struct CertificateOptions {
    std::string lease, node, file, key, keys, tenant;
    bool pseudonymous = false, accept_lab = false, whole_lease = false;
};

Result<evidence::CertificateList> page_of(Client& client, const std::string& target, std::string& body) {
    auto reply = client.get(target);
    if (!reply) return std::unexpected(reply.error());
    body = std::move(reply->body);
    return evidence::read_certificates("the server's answer", body);
}

// All pages of it as one list.
Result<evidence::CertificateList> all_of(Client& client, const std::string& target, std::string& body) {
    auto list = page_of(client, target, body);
    if (!list || !list->next) return list;
    while (list->next) {
        std::string more;
        auto page = page_of(client, fmt::format("{}&from={}", target, *list->next), more);
        if (!page) return page;
        if (page->certificates.empty() || (page->next && *page->next >= *list->next))
            return fail(Code::corrupt, "the server's next page of certificates leads nowhere", "ask again");
        std::ranges::move(page->certificates, std::back_inserter(list->certificates));
        list->next = page->next;
    }
    body = print(*list);
    return list;
}

// What the server says is not wiped: the file shows it too, to whoever has the log's key.
void say_what_is_not_wiped(std::ostream& out, const evidence::CertificateList& list) {
    for (const evidence::Unwiped& one : list.unwiped)
        out << fmt::format("  not wiped: {} {}, {}{}{}\n", one.node, one.unit, one.state, one.why.empty() ? "" : ": ",
                           wrapped(one.why, 4));
}

int certificate(const CertificateOptions& options, const DoorOptions& door, Context& context) {
    if (options.lease.empty() == options.node.empty()) {
        context.err << "a certificate is about one lease or one node\n  try: --lease NAME, or --node NAME\n";
        return bad_input;
    }
    auto client = connect(door);
    if (!client) return report(context, client.error());
    std::string target = options.lease.empty() ? "/v1/certificates?node=" + percent_encoded(options.node)
                                               : "/v1/certificates?lease=" + percent_encoded(options.lease);
    if (options.pseudonymous) target += "&pseudonymous=true";
    std::string body;
    const auto list = all_of(*client, target, body);
    if (!list) return report(context, list.error());
    const int status = list->unwiped.empty() ? done : only_in_part;
    if (options.file.empty()) {
        context.out << body;
        say_what_is_not_wiped(context.err, *list);
        return status;
    }
    std::ofstream file{options.file, std::ios::binary};
    file << body;
    file.flush();
    if (!file)
        return report(context,
                      {Code::unavailable, fmt::format("{} cannot be written", options.file), "choose another place"});
    const bool of_lab = std::ranges::any_of(list->certificates, [](const auto& one) { return !!one.lab; });
    context.out << fmt::format("{}\n  check it anywhere: bulkhead verify {} --key KEY{}\n", options.file, options.file,
                               of_lab ? " --accept-lab\n  no hardware did this: it is signed with the lab's key" : "");
    say_what_is_not_wiped(context.out, *list);
    if (!options.lease.empty() && !list->consists)
        context.out << "  what the lease consisted of is not on record: it is from before that was\n";
    return status;
}

// What all the certificates of a lease come to; `label` where that is the whole of it.
int account(const evidence::LeaseAccount& of, const std::string& label, Context& context) {
    const std::string count =
        of.known ? fmt::format("{} of {} units of lease {}\n", of.wiped, of.units, of.lease)
                 : fmt::format("{} wipes of lease {}, of a number that is not on record\n", of.wiped, of.lease);
    const bool none = of.wiped == 0 && of.units > 0;
    context.out << (of.whole() ? label
                    : none     ? painted("NOT PROVEN", red, context.colour)
                               : painted("PARTLY PROVEN", yellow, context.colour))
                << ": " << count;
    for (const std::string& line : of.not_wiped) context.out << "  - not shown: " << wrapped(line, 15) << '\n';
    return of.whole() ? done : none ? refused : only_in_part;
}

int verify(const CertificateOptions& options, Context& context) {
    const auto key = read_keys(options.key, options.keys);
    if (!key) return report(context, key.error());
    const auto text = read_file(options.file);
    if (!text) return report(context, text.error());
    const auto list = evidence::read_certificates(options.file, *text);
    if (!list) return report(context, list.error());
    const bool of_lease = list->version == evidence::lease_certificates_version;
    if (list->certificates.empty() && !of_lease)
        return report(context, {Code::invalid, "there is no certificate in this file", ""});
    const evidence::CheckedList checked = evidence::verify_certificates(
        *list, *key,
        {.tenant = options.tenant, .lease = options.lease, .node = options.node, .accept_lab = options.accept_lab});
    bool any_refused = false, any_of_lab = false;
    const auto refuse = [&](const Error& error) {
        context.out << painted("NOT PROVEN", red, context.colour) << "  " << error.what << '\n';
        if (!error.remedy.empty()) context.out << "  try: " << error.remedy << '\n';
        any_refused = true;
    };
    const auto label = [&](bool of_lab) {
        return !of_lab              ? painted("PROVEN", green, context.colour)
               : options.accept_lab ? painted("PROVEN IN A LAB", yellow, context.colour)
                                    : painted("LAB ONLY, NOT HARDWARE", yellow, context.colour);
    };
    for (const auto& verified : checked.certificates) {
        if (!verified) {
            refuse(verified.error());
            continue;
        }
        any_of_lab = any_of_lab || verified->of_lab;
        context.out << label(verified->of_lab)
                    << fmt::format("  entry {} of {}, size {}\n", verified->index, verified->checkpoint.origin,
                                   verified->checkpoint.size);
        for (const std::string& line : verified->proven) context.out << "  + " << wrapped(line, 4) << '\n';
        for (const std::string& line : verified->not_proven)
            context.out << "  - not shown: " << wrapped(line, 15) << '\n';
    }
    for (const Error& error : checked.refused) refuse(error);
    if (any_refused) return refused;
    if (checked.lease) {
        if (const int status = account(*checked.lease, label(any_of_lab), context); status != done) return status;
    } else if (options.whole_lease) {
        context.out << painted("PARTLY PROVEN", yellow, context.colour)
                    << ": what is above, and not that it is all of a lease: this file does not say what one consisted "
                       "of\n  try: ask the server for it again, with certificate --lease\n";
        return only_in_part;
    } else if (std::ranges::any_of(checked.certificates, [](const auto& one) { return !one->record.lease.empty(); })) {
        context.out << "  - not shown: what else the lease had: this file does not say what it consisted of\n";
    }
    if (!any_of_lab || options.accept_lab) return done;
    context.out << "  try: --accept-lab, if a lab's evidence is what you want\n";
    return only_of_a_lab;
}

}  // namespace

void add_certificate(Command program, Context& context) {
    Command command = program.add_subcommand("certificate", "Proof that what a lease or node left behind was wiped.");
    auto options = std::make_shared<CertificateOptions>();
    auto door = add_door(command);
    command.add_option("--lease", options->lease, "The lease: all of what it had.").type_name("NAME");
    command.add_option("--node", options->node, "The node: its newest wipes, and tests of its fences.")
        .type_name("NAME");
    command.add_option("-o,--output", options->file, "Into this file. Default: standard output.").type_name("FILE");
    command.add_flag("--pseudonymous", options->pseudonymous,
                     "Tenants by their pseudonyms alone: to be handed on to others.");
    command.footer(
        "Exit status:\n  0  here it is\n  1  there is none, or no answer\n"
        "  6  here it is, and something of the lease is not wiped: each is named, with the reason");
    command.callback([options, door, &context] { context.status = certificate(*options, *door, context); });
}

void add_verify(Command program, Context& context) {
    Command command = program.add_subcommand("verify", "Check a certificate, without any server.");
    auto options = std::make_shared<CertificateOptions>();
    command.add_option("file", options->file, "The certificate.").required().type_name("FILE");
    command.add_option("--key", options->key, "The log's verifier key, or a file that holds it.")
        .required()
        .type_name("KEY");
    command.add_option("--keys", options->keys, "The history of the log's keys, if it has had others.")
        .type_name("FILE");
    command.add_option("--tenant", options->tenant, "It must be about this tenant.").type_name("NAME");
    command.add_option("--lease", options->lease, "It must be about this lease.").type_name("NAME");
    command.add_option("--node", options->node, "It must be about this node.").type_name("NAME");
    command.add_flag("--accept-lab", options->accept_lab,
                     "Evidence of simulated or emulated devices will do, which a server signs with its lab's key.");
    command.add_flag("--whole-lease", options->whole_lease,
                     "It must show all of a lease: a file that does not say what the lease consisted of will not do.");
    command.footer(
        "Exit status:\n  0  proven; of a lease, all of what it had\n  2  not a certificate\n"
        "  3  not proven, with the reason\n"
        "  5  sound, but of a lab: simulated or emulated, not about hardware (0 with --accept-lab)\n"
        "  6  proven in part: of something that the lease had no wipe is shown; each is named, with the reason");
    command.callback([options, &context] { context.status = verify(*options, context); });
}

}  // namespace bulkhead::cli
