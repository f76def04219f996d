// What hangs on `bulkhead render`: one file for each thing a lease can become.
#pragma once

#include "bulkhead/cli/command.hpp"

namespace bulkhead::cli {

void add_render_libvirt(Command render, Context& context);

}  // namespace bulkhead::cli
