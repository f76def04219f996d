#include "bulkhead/evidence/commitment.hpp"

#include <fmt/core.h>

namespace bulkhead::evidence {

Hash commit_to(std::string_view salt, std::string_view payload) {
    invariant(salt.size() == salt_size, "a salt has 16 bytes");
    return sha256({salt, payload});
}

Result<> open_commitment(const Hash& entry, std::string_view salt, std::string_view payload) {
    if (salt.size() != salt_size)
        return fail(Code::invalid, fmt::format("the salt has {} bytes, not 16", salt.size()), "ask for the leaf again");
    if (const Hash committed = commit_to(salt, payload); committed != entry)
        return fail(Code::corrupt,
                    fmt::format("salt and payload give entry {}, and the log has {}", to_hex(bytes_of(committed)),
                                to_hex(bytes_of(entry))),
                    "the payload or the salt is not the one that was logged");
    return {};
}

}  // namespace bulkhead::evidence
