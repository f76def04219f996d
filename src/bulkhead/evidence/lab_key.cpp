#include "bulkhead/evidence/lab_key.hpp"

#include <fmt/core.h>

#include "bulkhead/codec/diagnostic.hpp"

namespace bulkhead::evidence {

namespace {

constexpr std::string_view introduction_version = "bulkhead.dev/lab-key/v1\n";

}  // namespace

std::string lab_name(std::string_view log) { return std::string{log} + "/lab"; }

Note introduced(const VerifierKey& lab) {
    return {.text = std::string{introduction_version} + print(lab) + '\n', .signatures = {}};
}

Result<VerifierKey> introduced_in(const Note& introduction) {
    std::string_view text = introduction.text;
    if (!text.starts_with(introduction_version) || !text.ends_with('\n'))
        return fail(Code::invalid, fmt::format("\"{}\" introduces no lab's key", shortened(text)),
                    "get the certificate again");
    text.remove_prefix(introduction_version.size());
    if (!text.empty()) text.remove_suffix(1);
    return parse_verifier_key(text);
}

std::string signed_by_lab(std::string_view checkpoint_text, std::string_view log, const SigningKey& lab) {
    Note note{.text = std::string{checkpoint_text}, .signatures = {}};
    sign_note(note, lab_name(log), lab);
    return print(note);
}

Result<LabCheckpoint> open_lab_checkpoint(std::string_view note, std::string_view introduction, const LogKeys& log) {
    const Result<Note> signed_note = parse_note(note), introducing = parse_note(introduction);
    if (!signed_note || !introducing) return std::unexpected(signed_note ? introducing.error() : signed_note.error());
    Result<Checkpoint> checkpoint = parse_checkpoint(signed_note->text);
    // By the log's key of that time: one that was replaced introduces nobody any more.
    if (const Result<> known = log.verify(*introducing, checkpoint ? checkpoint->size : 0); !known)
        return fail(known.error().code, "the lab's key: " + known.error().what, known.error().remedy);
    Result<VerifierKey> lab = introduced_in(*introducing);
    if (!lab) return std::unexpected(lab.error());
    if (lab->name != lab_name(log.name()))
        return fail(Code::denied,
                    fmt::format("a lab's key of the name {}, introduced by {}", shortened(lab->name), log.name()),
                    "a log's lab has the log's name followed by /lab");
    if (const Result<> verified = verify_note(*signed_note, {&*lab, 1}); !verified)
        return std::unexpected(verified.error());
    if (!checkpoint) return std::unexpected(checkpoint.error());
    if (checkpoint->origin != log.name())
        return fail(
            Code::denied,
            fmt::format("a checkpoint of {}, signed by the lab of {}", shortened(checkpoint->origin), log.name()),
            "a log's lab signs for that log only");
    return LabCheckpoint{*std::move(checkpoint), *std::move(lab)};
}

}  // namespace bulkhead::evidence
