#include "bulkhead/evidence/log_proof.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

#include "bulkhead/codec/diagnostic.hpp"
#include "bulkhead/evidence/merkle.hpp"

namespace bulkhead::evidence {

namespace {

constexpr std::string_view extra_word = "extra ", index_word = "index ";
constexpr std::size_t most_hashes = 64;  // a tree of 2^64 leaves needs no more

std::unexpected<Error> malformed_proof(std::string what) {
    return fail(Code::invalid, "not a log proof: " + std::move(what),
                fmt::format("lines: {}, index N, hashes in base64, a blank line, the checkpoint", log_proof_version));
}

// The next line, without its end; nothing when there is no whole one.
std::optional<std::string_view> take_line(std::string_view& text) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    return line;
}

std::optional<std::uint64_t> parse_index(std::string_view text) {
    if (text.size() > 1 && text.front() == '0') return std::nullopt;
    std::uint64_t index = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
    return error == std::errc{} && end == text.data() + text.size() ? std::optional{index} : std::nullopt;
}

}  // namespace

std::string print(const LogProof& proof) {
    std::string out = fmt::format("{}\n", log_proof_version);
    if (!proof.extra.empty()) out += fmt::format("{}{}\n", extra_word, to_base64(proof.extra));
    out += fmt::format("{}{}\n", index_word, proof.index);
    for (const Hash& hash : proof.hashes) out += to_base64(bytes_of(hash)) + '\n';
    return out + '\n' + proof.checkpoint;
}

Result<LogProof> parse_log_proof(std::string_view text) {
    auto line = take_line(text);
    if (!line || *line != log_proof_version) return malformed_proof("its first line says something else");
    LogProof proof;
    line = take_line(text);
    if (line && line->starts_with(extra_word)) {
        auto extra = from_base64(line->substr(extra_word.size()));
        if (!extra || extra->empty()) return malformed_proof("what is extra is not base64");
        proof.extra = *std::move(extra);
        line = take_line(text);
    }
    if (!line || !line->starts_with(index_word)) return malformed_proof("no index");
    const auto index = parse_index(line->substr(index_word.size()));
    if (!index) return malformed_proof(fmt::format("\"{}\" is no index", shortened(*line)));
    proof.index = *index;
    while ((line = take_line(text)) && !line->empty()) {
        const auto bytes = from_base64(*line);
        const auto hash = bytes ? hash_from(*bytes) : std::nullopt;
        if (!hash) return malformed_proof(fmt::format("\"{}\" is no hash", shortened(*line)));
        if (proof.hashes.size() == most_hashes) return malformed_proof("more hashes than any tree needs");
        proof.hashes.push_back(*hash);
    }
    if (!line) return malformed_proof("no blank line before the checkpoint");
    const Result<Note> note = parse_note(text);
    if (!note) return malformed_proof(note.error().what);
    if (const auto checkpoint = parse_checkpoint(note->text); !checkpoint)
        return malformed_proof(checkpoint.error().what);
    proof.checkpoint = text;
    return proof;
}

Result<Checkpoint> verify_log_proof(const LogProof& proof, std::string_view entry, const LogKeys& log) {
    Result<Checkpoint> checkpoint = open_checkpoint(proof.checkpoint, log);
    if (!checkpoint) return checkpoint;
    const InclusionClaim claim{proof.index, checkpoint->size, leaf_hash(entry), checkpoint->root};
    if (const Result<> included = verify_inclusion(claim, proof.hashes); !included)
        return std::unexpected(included.error());
    return checkpoint;
}

}  // namespace bulkhead::evidence
