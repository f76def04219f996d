#include "bulkhead/cli/door.hpp"

#include <fmt/core.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <ostream>

#include "bulkhead/auth/secret_file.hpp"
#include "bulkhead/cli/input.hpp"
#include "bulkhead/cli/login_file.hpp"
#include "bulkhead/codec/decode.hpp"
#include "bulkhead/codec/print.hpp"

namespace bulkhead::cli {

namespace {

namespace fs = std::filesystem;

struct ContextFile {
    std::string server, tokenFile, ca;
    static constexpr void describe(auto&& field) {
        field("server", &ContextFile::server, "Where the server is.", Rule{.required = true});
        field("tokenFile", &ContextFile::tokenFile, "The file that holds the token.");
        field("ca", &ContextFile::ca, "The certificate that vouches for the server.");
    }
};

std::string from_environment(const char* name) {
    const char* const value = std::getenv(name);
    return value == nullptr ? std::string{} : std::string{value};
}

void take(std::string& into, std::string from) {
    if (into.empty()) into = std::move(from);
}

DoorOptions with_environment(DoorOptions options) {
    take(options.server, from_environment("BULKHEAD_SERVER"));
    take(options.token_file, from_environment("BULKHEAD_TOKEN_FILE"));
    take(options.ca_file, from_environment("BULKHEAD_CA"));
    return options;
}

// The login, where no other token is asked for: its tokens are shown only to the server they were given for.
Result<std::optional<Login>> login_for(const DoorOptions& options) {
    if (!options.token_file.empty()) return std::nullopt;
    auto login = read_login();
    if (login && *login && !options.server.empty() && options.server != (*login)->server) return std::nullopt;
    return login;
}

Result<DoorOptions> filled_in(DoorOptions options) {
    if (!options.server.empty() && !options.token_file.empty() && !options.ca_file.empty()) return options;
    const std::string path = context_path();
    std::error_code ignored;
    if (fs::exists(path, ignored)) {
        const auto text = auth::read_secret(path);
        if (!text) return std::unexpected(text.error());
        auto known = from_json<ContextFile>(path, *text);
        if (!known) return std::unexpected(known.error());
        // A token is shown only to the server it was written down for.
        if (options.server.empty() || options.server == known->server) {
            take(options.server, known->server);
            take(options.token_file, known->tokenFile);
            take(options.ca_file, known->ca);
        }
    }
    if (options.server.empty())
        return fail(Code::not_found, "which server?",
                    "`bulkhead up` starts one and writes it down; or say --server, --token-file and --ca");
    return options;
}

Result<Client> open_door(const DoorOptions& options, std::string token) {
    Door door{.server = options.server, .token = std::move(token)};
    if (!options.ca_file.empty()) {
        auto ca = read_file(options.ca_file);
        if (!ca) return std::unexpected(ca.error());
        door.ca_pem = *std::move(ca);
    }
    return Client::open(std::move(door));
}

}  // namespace

std::shared_ptr<DoorOptions> add_door(Command command) {
    auto options = std::make_shared<DoorOptions>();
    command.add_option("--server", options->server, "The server. Default: $BULKHEAD_SERVER, else what `up` wrote down.")
        .type_name("URL");
    command
        .add_option("--token-file", options->token_file,
                    "Holds the token. Default: $BULKHEAD_TOKEN_FILE, else the login, else likewise.")
        .type_name("FILE");
    command.add_option("--ca", options->ca_file, "Vouches for the server. Default: $BULKHEAD_CA, else likewise.")
        .type_name("FILE");
    return options;
}

Result<Client> connect(const DoorOptions& options) {
    DoorOptions wanted = with_environment(options);
    const auto login = login_for(wanted);
    if (!login) return std::unexpected(login.error());
    if (*login) {
        auto token = fresh_token(**login);
        if (!token) return std::unexpected(token.error());
        take(wanted.server, (*login)->server);
        take(wanted.ca_file, (*login)->ca);
        return open_door(wanted, *std::move(token));
    }
    const auto known = filled_in(std::move(wanted));
    if (!known) return std::unexpected(known.error());
    if (known->token_file.empty()) return open_door(*known, {});
    const auto token = auth::read_secret(known->token_file);
    if (!token) return std::unexpected(token.error());
    return open_door(*known, token->substr(0, token->find_first_of("\r\n")));
}

Result<DoorOptions> door_without_token(DoorOptions options) {
    options = with_environment(std::move(options));
    options.token_file.clear();
    // Whoever logs in again means the server they were logged in to; a file that cannot be read says nothing.
    if (const auto login = login_for(options); login && *login) {
        take(options.server, (*login)->server);
        take(options.ca_file, (*login)->ca);
        return options;
    }
    auto known = filled_in(std::move(options));
    if (known) known->token_file.clear();
    return known;
}

Result<Client> connect_as_stranger(const DoorOptions& options) { return open_door(options, {}); }

std::string context_path() {
    if (std::string path = from_environment("BULKHEAD_CONTEXT"); !path.empty()) return path;
    std::string config = from_environment("XDG_CONFIG_HOME");
    if (config.empty()) config = from_environment("HOME") + "/.config";
    return config + "/bulkhead/context";
}

std::optional<std::string> other_context(const DoorOptions& options) {
    const auto text = auth::read_secret(context_path());
    if (!text) {
        if (text.error().code == Code::not_found) return std::nullopt;
        return context_path();  // whatever it is, it is not ours to replace
    }
    const auto known = from_json<ContextFile>(context_path(), *text);
    if (!known) return context_path();
    // The same fleet may be at another port today.
    if (known->server == options.server || known->tokenFile == options.token_file) return std::nullopt;
    return known->server;
}

Result<> write_context(const DoorOptions& options) {
    const std::string path = context_path();
    std::error_code failed;
    fs::create_directories(fs::path{path}.parent_path(), failed);
    if (failed)
        return fail(Code::unavailable, fmt::format("{}: {}", fs::path{path}.parent_path().string(), failed.message()),
                    "set BULKHEAD_CONTEXT to a file that can be written");
    return auth::write_secret(
        path, to_json(ContextFile{.server = options.server, .tokenFile = options.token_file, .ca = options.ca_file}));
}

int status_of(Code code) {
    switch (code) {
        case Code::invalid:
            return bad_input;
        case Code::denied:
            return no_entry;
        case Code::conflict:
            return refused;
        default:
            return could_not;
    }
}

int report(Context& context, const Error& error) { return complain(context, status_of(error.code), error); }

}  // namespace bulkhead::cli
