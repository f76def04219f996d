// Which system calls the half of an agent that speaks to a network may make: what gRPC, TLS, the journal and threads
// take, and nothing else. It starts no process and runs no program, listens on no socket, sees into no other process,
// changes neither its user nor what paths mean. What is not listed is answered "not implemented".
#pragma once

#include "bulkhead/base/result.hpp"

namespace bulkhead::agent {

// Sets no_new_privs and loads the filter, of the calling thread and all it starts; it is never lifted.
Result<> filter_line_calls();

}  // namespace bulkhead::agent
