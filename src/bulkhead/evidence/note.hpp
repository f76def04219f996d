// Signed notes (c2sp.org/signed-note): a text, a blank line, and who signed it. The text must be ignored until a
// trusted key has been found among the signatures and has verified.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/evidence/signing.hpp"

namespace bulkhead::evidence {

// Who signs, as others are told to trust it: "log.example/fleet+9b4781e1+ASFS+NGb...". The id is derived from the rest.
struct VerifierKey {
    std::string name;
    PublicKey key;
    friend bool operator==(const VerifierKey&, const VerifierKey&) = default;
};

std::uint32_t note_key_id(const VerifierKey& key);
std::string print(const VerifierKey& key);
Result<VerifierKey> parse_verifier_key(std::string_view text);
// Not empty, UTF-8, no spaces, no '+': what can stand in a signature line.
bool is_key_name(std::string_view name);

struct NoteSignature {
    std::string name;
    std::uint32_t key_id = 0;
    std::string signature;
    friend bool operator==(const NoteSignature&, const NoteSignature&) = default;
};

struct Note {
    std::string text;  // ends in a newline
    std::vector<NoteSignature> signatures;
    friend bool operator==(const Note&, const Note&) = default;
};

struct NoteLimits {
    std::size_t bytes = 1 << 20;
    std::size_t signatures = 100;  // the format asks for at least 16
};

std::string print(const Note& note);
Result<Note> parse_note(std::string_view bytes, const NoteLimits& limits = {});

// The text with one signature more. The text must be one that parse_note would accept, the name a key name.
void sign_note(Note& note, std::string_view name, const SigningKey& key);

// Signatures of keys not given here are ignored. Refused when none of the given keys has signed, or when a signature in
// the name of one of them does not verify.
Result<> verify_note(const Note& note, std::span<const VerifierKey> trusted);

}  // namespace bulkhead::evidence
