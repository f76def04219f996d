#include "bulkhead/evidence/note.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "bulkhead/base/hash.hpp"
#include "bulkhead/codec/diagnostic.hpp"
#include "bulkhead/codec/unicode.hpp"

namespace bulkhead::evidence {

namespace {

constexpr std::string_view dash = "\xe2\x80\x94 ";  // an em dash and a space begin a signature line
constexpr char ed25519 = 1;                         // the type byte of the only kind of key we use
constexpr std::size_t id_size = 4;

bool is_space(char32_t rune) {
    return rune == ' ' || (rune >= 0x09 && rune <= 0x0d) || rune == 0x85 || rune == 0xa0 || rune == 0x1680 ||
           (rune >= 0x2000 && rune <= 0x200a) || rune == 0x2028 || rune == 0x2029 || rune == 0x202f || rune == 0x205f ||
           rune == 0x3000;
}

bool is_note_text(std::string_view text) {
    return first_invalid_utf8(text) == std::string_view::npos &&
           std::ranges::none_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20 && c != '\n'; });
}

std::string big_endian(std::uint32_t id) {
    std::string bytes;
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(id >> shift & 255);
    return bytes;
}

std::uint32_t from_big_endian(std::string_view bytes) {
    std::uint32_t id = 0;
    for (const char c : bytes.substr(0, id_size)) id = id << 8 | static_cast<std::uint8_t>(c);
    return id;
}

std::optional<NoteSignature> parse_signature(std::string_view line) {
    if (!line.starts_with(dash)) return std::nullopt;
    line.remove_prefix(dash.size());
    const std::size_t space = line.find(' ');
    if (space == std::string_view::npos || !is_key_name(line.substr(0, space))) return std::nullopt;
    const auto bytes = from_base64(line.substr(space + 1));
    if (!bytes || bytes->size() <= id_size) return std::nullopt;
    return NoteSignature{std::string{line.substr(0, space)}, from_big_endian(*bytes), bytes->substr(id_size)};
}

std::unexpected<Error> malformed_note(std::string what) {
    return fail(Code::invalid, "not a signed note: " + std::move(what),
                "a note is text, a blank line, and lines of the form \"\u2014 name base64\"");
}

}  // namespace

bool is_key_name(std::string_view name) {
    if (name.empty()) return false;
    while (!name.empty()) {
        const auto rune = front_rune(name);
        if (!rune || rune->value < 0x20 || rune->value == '+' || is_space(rune->value)) return false;
        name.remove_prefix(rune->bytes);
    }
    return true;
}

std::uint32_t note_key_id(const VerifierKey& key) {
    const std::string_view type{&ed25519, 1};
    return from_big_endian(bytes_of(sha256({key.name, "\n", type, bytes_of(key.key.bytes)})));
}

std::string print(const VerifierKey& key) {
    const std::string bytes = ed25519 + std::string{bytes_of(key.key.bytes)};
    return fmt::format("{}+{:08x}+{}", key.name, note_key_id(key), to_base64(bytes));
}

Result<VerifierKey> parse_verifier_key(std::string_view text) {
    const auto wrong = [&](std::string_view what) {
        return fail(Code::invalid, fmt::format("\"{}\" is no verifier key: {}", shortened(text), what),
                    "name+id+key, as the log's operator publishes it");
    };
    const std::size_t first = text.find('+');
    const std::size_t second = first == std::string_view::npos ? first : text.find('+', first + 1);
    if (second == std::string_view::npos) return wrong("it has not three parts joined by '+'");
    const std::string_view name = text.substr(0, first), id = text.substr(first + 1, second - first - 1);
    if (!is_key_name(name)) return wrong("its name has spaces or is empty");
    const auto bytes = from_base64(text.substr(second + 1));
    if (!bytes || bytes->empty()) return wrong("its key is not base64");
    if (bytes->front() != ed25519) return wrong("it is not of type Ed25519");
    const auto key = hash_from(std::string_view{*bytes}.substr(1));
    if (!key) return wrong("its key has not 32 bytes");
    VerifierKey made{std::string{name}, {*key}};
    if (id != fmt::format("{:08x}", note_key_id(made))) return wrong("its id does not belong to its name and key");
    return made;
}

std::string print(const Note& note) {
    std::string out = note.text + '\n';
    for (const NoteSignature& by : note.signatures)
        out += fmt::format("{}{} {}\n", dash, by.name, to_base64(big_endian(by.key_id) + by.signature));
    return out;
}

Result<Note> parse_note(std::string_view bytes, const NoteLimits& limits) {
    if (bytes.size() > limits.bytes)
        return malformed_note(fmt::format("{} bytes, and at most {} are read", bytes.size(), limits.bytes));
    if (!is_note_text(bytes)) return malformed_note("it has bytes that are no UTF-8, or control characters");
    const std::size_t blank = bytes.rfind("\n\n");
    if (blank == std::string_view::npos) return malformed_note("no blank line before signatures");
    if (!bytes.ends_with('\n')) return malformed_note("its last line does not end");

    Note note{.text = std::string{bytes.substr(0, blank + 1)}, .signatures = {}};
    std::string_view rest = bytes.substr(blank + 2);
    if (rest.empty()) return malformed_note("no signature");
    while (!rest.empty()) {
        const std::size_t end = rest.find('\n');
        auto signature = parse_signature(rest.substr(0, end));
        if (!signature) return malformed_note(fmt::format("\"{}\" is no signature", shortened(rest.substr(0, end))));
        if (note.signatures.size() == limits.signatures)
            return malformed_note(fmt::format("more than {} signatures", limits.signatures));
        note.signatures.push_back(std::move(*signature));
        rest.remove_prefix(end + 1);
    }
    return note;
}

void sign_note(Note& note, std::string_view name, const SigningKey& key) {
    invariant(is_key_name(name), "a note is signed under a name without spaces or '+'");
    invariant(note.text.ends_with('\n') && is_note_text(note.text), "a note's text is lines of UTF-8");
    const VerifierKey verifier{std::string{name}, key.public_key()};
    note.signatures.push_back({verifier.name, note_key_id(verifier), key.sign(note.text)});
}

Result<> verify_note(const Note& note, std::span<const VerifierKey> trusted) {
    bool known = false;
    for (const NoteSignature& by : note.signatures)
        for (const VerifierKey& key : trusted) {
            if (by.name != key.name || by.key_id != note_key_id(key)) continue;
            if (!verify(key.key, note.text, by.signature))
                return fail(Code::corrupt, fmt::format("the signature of {} does not fit the note's text", by.name),
                            "the text or the signature was changed; get the note again from its source");
            known = true;
        }
    if (known) return {};
    std::string names;
    for (const NoteSignature& by : note.signatures) names += fmt::format(" {}+{:08x}", shortened(by.name), by.key_id);
    return fail(Code::denied, "no key that is trusted here has signed the note; it names" + names,
                "check the verifier key you were given");
}

}  // namespace bulkhead::evidence
