// `serve`: the control plane in the foreground.
#include <fmt/core.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <ostream>

#include "bulkhead/auth/secret_file.hpp"
#include "bulkhead/cli/door.hpp"
#include "bulkhead/cli/oidc_arguments.hpp"
#include "bulkhead/shell/keys.hpp"
#include "bulkhead/shell/server.hpp"
#include "bulkhead/store/store.hpp"

namespace bulkhead::cli {

namespace {

struct ServeOptions {
    shell::ServerOptions server;
    std::string restore, certificates_last;
};

int serve(const ServeOptions& options, Context& context) {
    shell::Server::hold_signals();
    shell::ServerOptions wanted = options.server;
    if (!options.certificates_last.empty()) {
        const auto lasts = parse_duration(options.certificates_last);
        if (!lasts) return report(context, lasts.error());
        wanted.node_certificate_lasts = *lasts;
    }
    if (!options.restore.empty()) {
        if (auto made = shell::make_directory(wanted.data); !made) return report(context, made.error());
        const bool marked_before = std::filesystem::exists(shell::restored_mark(wanted.data));
        if (auto marked = shell::mark_restored(wanted.data); !marked) return report(context, marked.error());
        const auto copied = store::Store::copy_from(options.restore, {.path = wanted.data + "/bulkhead.db"});
        if (!copied && !marked_before) std::filesystem::remove(shell::restored_mark(wanted.data));
        if (!copied) return report(context, copied.error());
    }
    shell::Log log;
    auto server = shell::Server::start(wanted, log);
    if (!server) return report(context, server.error());
    // For whoever starts us with any free port.
    const auto told = auth::write_secret(wanted.data + "/address",
                                         fmt::format("{}\n{}\n", (*server)->url(), (*server)->agent_port()));
    if (!told) return report(context, told.error());
    context.out << fmt::format(
                       "{}\n  token   {} (beside it: security.token, auditor.token)\n  ca      {}\n"
                       "  log key {}\n",
                       (*server)->url(), (*server)->token_file(), (*server)->ca_file(), (*server)->verifier_key())
                << std::flush;
    const auto ended = (*server)->wait();
    (*server)->stop();
    if (!ended) return report(context, ended.error());
    return done;
}

}  // namespace

void add_serve(Command program, Context& context) {
    Command command = program.add_subcommand("serve", "Run the control plane.");
    auto options = std::make_shared<ServeOptions>();
    shell::ServerOptions& server = options->server;
    command.description(
        "Run the control plane.\n\n"
        "HTTPS for people and programs, gRPC for agents, one store, one audit log.\n\n"
        "The first start makes a certificate authority, the log's key and an administrator's token below DIR/keys; "
        "keep\n"
        "that folder as safe as the store, and apart from its backups.");
    command.add_option("--data", server.data, "Where everything is kept.").required().type_name("DIR");
    command.add_option("--address", server.address, "To listen on. Default: 127.0.0.1.").type_name("ADDRESS");
    command.add_option("--port", server.port, "HTTPS; 0: any free one. Default: 7443.").type_name("PORT");
    command.add_option("--agent-port", server.agent_port, "gRPC; 0: any free one. Default: 7444.").type_name("PORT");
    command.add_option("--name", server.names, "A name or address under which clients and agents reach it.")
        .type_name("NAME");
    command.add_option("--log-origin", server.log_origin, "The audit log's name, for life. Default: a random one.")
        .type_name("NAME");
    command
        .add_option("--node-certificates-last", options->certificates_last,
                    "How long; nodes renew them by themselves when a third is left. Default: 365d.")
        .type_name("DURATION");
    command
        .add_option("--requests-per-second", server.requests_per_second,
                    "Of one token, and twice as many at once. Default: 200.")
        .type_name("N")
        .within(1, 1'000'000);
    add_oidc(command, server.oidc);
    command.add_flag(
        "--simulated-fleet", server.simulated_fleet,
        "Take the word of simulated nodes for what would need evidence of silicon. Everything says simulated.");
    command
        .add_option(
            "--restore", options->restore,
            "Begin with this backup; there must be no store yet. Nothing is leased before every node was heard of.")
        .type_name("FILE");
    command.callback([options, &context] { context.status = serve(*options, context); });
}

}  // namespace bulkhead::cli
