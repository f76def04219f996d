// Which server a command talks to, and as whom: what the person says, else the environment, else the login, else what
// `bulkhead up` wrote down.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "bulkhead/cli/client.hpp"
#include "bulkhead/cli/command.hpp"

namespace bulkhead::cli {

struct DoorOptions {
    std::string server, token_file, ca_file;
};

// --server, --token-file and --ca on a command.
std::shared_ptr<DoorOptions> add_door(Command command);
Result<Client> connect(const DoorOptions& options);
// For those who have no token yet.
Result<DoorOptions> door_without_token(DoorOptions options);
Result<Client> connect_as_stranger(const DoorOptions& options);

// $BULKHEAD_CONTEXT, or bulkhead/context below $XDG_CONFIG_HOME or ~/.config.
std::string context_path();
Result<> write_context(const DoorOptions& options);
// The server of a context that is there already and speaks of another fleet; nothing when there is none.
std::optional<std::string> other_context(const DoorOptions& options);

// Prints what is wrong and what to try; the status that goes with the error's code.
int report(Context& context, const Error& error);
int status_of(Code code);

}  // namespace bulkhead::cli
