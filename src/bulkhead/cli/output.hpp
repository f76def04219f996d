// What a workload's command prints, read piece by piece from the server.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>

#include "bulkhead/cli/client.hpp"

namespace bulkhead::cli {

// A tenant's bytes on somebody else's terminal: without what could move its cursor, rename it or answer in its name.
std::string legible(std::string_view bytes);

struct OutputReader {
    std::string workload;
    std::int64_t rank = 0;   // which of its nodes
    bool errors = false;     // its second stream
    bool raw = false;        // every byte as it is
    std::int64_t from = 0;   // how far it was read
    std::int64_t start = 0;  // of which of its starts

    struct Read {
        bool any = false;
        bool over = false;  // the command has ended, and all that is kept was read
    };
    // What there is beyond that, onto `out`; a gap is said on `notes`.
    Result<Read> read(Client& client, std::ostream& out, std::ostream& notes);
};

}  // namespace bulkhead::cli
