// `login` and `logout`: tokens of the server's identity provider, in a file of one's own.
#include <fmt/core.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <ostream>
#include <thread>

#include "bulkhead/auth/jwt.hpp"
#include "bulkhead/cli/clock.hpp"
#include "bulkhead/cli/command.hpp"
#include "bulkhead/cli/device_login.hpp"
#include "bulkhead/cli/door.hpp"
#include "bulkhead/cli/login_file.hpp"

namespace bulkhead::cli {

namespace {

struct LoginOptions {
    DoorOptions door;
    std::string provider_ca;
};

struct LoginWith {
    std::string issuer, client, scopes;
};

// The server says which provider it believes; TLS says that it is the server.
Result<LoginWith> ask_server(const DoorOptions& door) {
    auto client = connect_as_stranger(door);
    if (!client) return std::unexpected(client.error());
    const auto reply = client->get("/v1/login");
    if (!reply) return std::unexpected(reply.error());
    const auto answer = read_answer(*reply);
    if (!answer) return std::unexpected(answer.error());
    const Node& root = *answer->root;
    LoginWith out{text_at(root, "issuer"), text_at(root, "clientId"), text_at(root, "scopes")};
    if (out.issuer.empty() || out.client.empty())
        return fail(Code::corrupt, "the server does not say whom to log in with",
                    "are server and command of one version?");
    return out;
}

std::string absolute(const std::string& path) {
    std::error_code failed;
    return path.empty() ? path : std::filesystem::absolute(path, failed).string();
}

void show_code(Context& context, const LoginWith& with, const auth::DeviceCode& code) {
    context.out << fmt::format("Open   {}\nEnter  {}\n", code.page, code.user_code);
    if (!code.page_with_code.empty()) context.out << fmt::format("Or both at once: {}\n", code.page_with_code);
    context.out << fmt::format(
                       "\nThe page must be {}'s and name the client \"{}\". Enter only a code that you asked for\n"
                       "yourself: whoever sends you one wants to log in as you. Waiting.\n",
                       auth::displayed(with.issuer), auth::displayed(with.client))
                << std::flush;
}

int login(const LoginOptions& options, Context& context) {
    auto door = door_without_token(options.door);
    if (!door) return report(context, door.error());
    const auto with = ask_server(*door);
    if (!with) return report(context, with.error());
    const std::string provider_ca = absolute(options.provider_ca);
    auto fetch = shell::HttpsFetch::open(provider_ca);
    if (!fetch) return report(context, fetch.error());
    auto done_with =
        log_in({.issuer = with->issuer,
                .client = with->client,
                .scopes = with->scopes,
                .show = [&](const auth::DeviceCode& code) { show_code(context, *with, code); },
                .pause = [](Duration time) { std::this_thread::sleep_for(std::chrono::milliseconds{time.ms}); }},
               *fetch);
    if (!done_with) return report(context, done_with.error());
    const Login kept{.server = door->server,
                     .ca = absolute(door->ca_file),
                     .issuer = with->issuer,
                     .providerCa = provider_ca,
                     .clientId = with->client,
                     .tokenEndpoint = done_with->provider.token,
                     .revocationEndpoint = done_with->provider.revocation,
                     .accessToken = std::move(done_with->tokens.access),
                     .refreshToken = std::move(done_with->tokens.refresh),
                     .expiresAt = clock_now() + done_with->tokens.lasts};
    if (auto written = write_login(kept); !written) return report(context, written.error());
    context.out << fmt::format(
        "Logged in to {}.{}\nThe tokens are in {}, for your eyes only; `bulkhead logout` removes them.\n", kept.server,
        kept.refreshToken.empty() ? fmt::format(" Until {}.", print(kept.expiresAt)) : "", login_path());
    return done;
}

// RFC 7009: the provider forgets as well. That it cannot be told is no reason to keep the file.
Result<> take_back(const Login& kept) {
    if (kept.revocationEndpoint.empty()) return {};
    auto fetch = shell::HttpsFetch::open(kept.providerCa);
    if (!fetch) return std::unexpected(fetch.error());
    shell::Question question{.url = kept.revocationEndpoint};
    shell::add_to_form(question.form, "token", kept.refreshToken.empty() ? kept.accessToken : kept.refreshToken);
    shell::add_to_form(question.form, "client_id", kept.clientId);
    const auto said = fetch->ask(question);
    if (!said) return std::unexpected(said.error());
    if (said->status != 200)
        return fail(Code::unavailable, fmt::format("the provider answered {}", said->status),
                    "end the session on its page");
    return {};
}

int logout(Context& context) {
    const auto kept = read_login();
    const auto removed = remove_login();  // first: whatever is said elsewhere, it is gone here
    if (!removed) return report(context, removed.error());
    context.out << (*removed ? "Logged out.\n" : "Nobody was logged in.\n");
    if (!kept || !*kept) return done;
    if (const auto told = take_back(**kept); !told)
        context.err << fmt::format("{} could not be told, and its tokens end by themselves: {}\n", (*kept)->issuer,
                                   told.error().what);
    return done;
}

}  // namespace

void add_login(Command program, Context& context) {
    Command command = program.add_subcommand("login", "Log in with the server's identity provider.");
    command.description(
        "Log in with the server's identity provider.\n\n"
        "Shows an address and a code. Open the one in any browser, on any machine, and enter the other there. What "
        "comes\n"
        "back is kept in a file of mode 0600 and renewed by itself; other commands use it when they are given no "
        "token.\n\n"
        "  bulkhead login --server https://control.example:7443\n"
        "  bulkhead get workloads\n"
        "  bulkhead logout");
    auto options = std::make_shared<LoginOptions>();
    command.add_option("--server", options->door.server, "The server. Default: $BULKHEAD_SERVER, else the last one.")
        .type_name("URL");
    command.add_option("--ca", options->door.ca_file, "Vouches for the server. Default: $BULKHEAD_CA, else likewise.")
        .type_name("FILE");
    command
        .add_option("--oidc-ca", options->provider_ca,
                    "Vouches for the identity provider. Default: the machine's authorities.")
        .type_name("FILE");
    command.callback([options, &context] { context.status = login(*options, context); });
    program.add_subcommand("logout", "Forget the login, here and at the provider.").callback([&context] {
        context.status = logout(context);
    });
}

}  // namespace bulkhead::cli
