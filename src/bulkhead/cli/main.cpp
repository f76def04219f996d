#include <unistd.h>

#include <cstdlib>
#include <iostream>

#include "bulkhead/cli/command.hpp"
#include "bulkhead/wire/tls_memory.hpp"

int main(int argc, char** argv) {
    bulkhead::wire::keep_tls_buffers_apart();  // where it cannot be done, a connection costs more memory, and that is
                                               // all
    const bool colour = isatty(STDOUT_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr;
    return bulkhead::cli::run(argc, argv, std::cout, std::cerr, colour);
}
