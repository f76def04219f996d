// `render`: leases as files that other programs read.
#include "bulkhead/cli/render.hpp"

namespace bulkhead::cli {

void add_render(Command program, Context& context) {
    Command command = program.add_subcommand("render", "A lease as a file that another program reads.");
    command.require_subcommand();
    add_render_libvirt(command, context);
}

}  // namespace bulkhead::cli
