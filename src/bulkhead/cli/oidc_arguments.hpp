// The identity provider on a command line: of `serve`, and of `up`, which hands it on.
#pragma once

#include <string>
#include <vector>

#include "bulkhead/cli/arguments.hpp"
#include "bulkhead/shell/oidc_options.hpp"

namespace bulkhead::cli {

void add_oidc(Command command, shell::OidcOptions& oidc);
// As words of a command line again; none without an issuer.
std::vector<std::string> oidc_arguments(const shell::OidcOptions& oidc);

}  // namespace bulkhead::cli
