// What hangs on `bulkhead audit` and has a file of its own.
#pragma once

#include "bulkhead/cli/command.hpp"

namespace bulkhead::cli {

// What an audit found is not what was signed.
inline constexpr int tampered_with = 1;

void add_audit_watch(Command audit, Context& context);
void add_audit_export(Command audit, Context& context);
void add_audit_rotate_key(Command audit, Context& context);

}  // namespace bulkhead::cli
