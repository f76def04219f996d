#include "bulkhead/cli/oidc_arguments.hpp"

#include <filesystem>

namespace bulkhead::cli {

void add_oidc(Command command, shell::OidcOptions& oidc) {
    const Option issuer = command
                              .add_option("--oidc-issuer", oidc.issuer,
                                          "The identity provider whose tokens are believed, as it calls itself.")
                              .type_name("URL");
    command
        .add_option("--oidc-audience", oidc.audience,
                    "That tokens must be for; its client roles are read. Default: bulkhead.")
        .type_name("NAME")
        .needs(issuer);
    command.add_option("--oidc-client", oidc.client, "That people log in with. Default: bulkhead-cli.")
        .type_name("NAME")
        .needs(issuer);
    command.add_option("--oidc-scopes", oidc.scopes, "That they ask for. Default: openid.")
        .type_name("NAMES")
        .needs(issuer);
    command.add_option("--oidc-ca", oidc.ca_file, "Vouches for the provider. Default: the machine's authorities.")
        .type_name("FILE")
        .needs(issuer);
}

std::vector<std::string> oidc_arguments(const shell::OidcOptions& oidc) {
    if (oidc.issuer.empty()) return {};
    std::vector<std::string> out{"--oidc-issuer", oidc.issuer, "--oidc-audience", oidc.audience,
                                 "--oidc-client", oidc.client, "--oidc-scopes",   oidc.scopes};
    if (!oidc.ca_file.empty()) {
        out.emplace_back("--oidc-ca");
        out.push_back(std::filesystem::absolute(oidc.ca_file).string());
    }
    return out;
}

}  // namespace bulkhead::cli
