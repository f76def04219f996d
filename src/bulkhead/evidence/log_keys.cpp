#include "bulkhead/evidence/log_keys.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace bulkhead::evidence {

LogKeys::LogKeys(std::vector<Term> terms) : terms_{std::move(terms)} {
    invariant(!terms_.empty(), "a log has a key");
    for (const Term& term : terms_) invariant(term.key.name == name(), "the keys of a log have its name");
}

Result<> LogKeys::verify(const Note& note, std::uint64_t size) const {
    std::vector<VerifierKey> keys;
    keys.reserve(terms_.size());
    for (const Term& term : terms_) keys.push_back(term.key);
    if (Result<> known = verify_note(note, keys); !known) return known;
    const auto has_signed = [&](const Term& term) {
        return std::ranges::any_of(note.signatures, [&](const NoteSignature& by) {
            return by.name == term.key.name && by.key_id == note_key_id(term.key);
        });
    };
    std::uint64_t most = 0;
    for (const Term& term : terms_)
        if (has_signed(term)) most = std::max(most, term.most);
    if (size <= most) return {};
    return fail(Code::denied,
                fmt::format("the key that signed for {} leaves was replaced when the log had {}", size, most),
                "the newer key must have signed this; whoever still has the older one may be lying");
}

}  // namespace bulkhead::evidence
