#include <unistd.h>

#include <cstdlib>
#include <iostream>

#include "bulkhead/cli/command.hpp"

int main(int argc, char** argv) {
    const bool colour = isatty(STDOUT_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr;
    return bulkhead::cli::run(argc, argv, std::cout, std::cerr, colour);
}
