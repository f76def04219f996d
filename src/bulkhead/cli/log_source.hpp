// A published log as the commands reach it: a directory, or a server that serves the same files to everybody.
#pragma once

#include <memory>
#include <string>

#include "bulkhead/audit/files.hpp"
#include "bulkhead/cli/client.hpp"
#include "bulkhead/evidence/log_keys.hpp"

namespace bulkhead::cli {

// "checkpoint", "tile/...", and "keys", the history of the log's keys.
std::shared_ptr<const audit::Files> log_of_server(Client client);
// `keys`: a file with that history; empty: there is none.
Result<std::shared_ptr<const audit::Files>> log_of_directory(const std::string& directory, const std::string& keys);

// The key itself, or a file that holds it.
Result<evidence::VerifierKey> read_key(const std::string& given);
// The same, and with a file of the log's key history every key it has had, each for its time.
Result<evidence::LogKeys> read_keys(const std::string& given, const std::string& history);

}  // namespace bulkhead::cli
