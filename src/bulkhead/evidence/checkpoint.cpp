#include "bulkhead/evidence/checkpoint.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

#include "bulkhead/codec/diagnostic.hpp"

namespace bulkhead::evidence {

namespace {

std::unexpected<Error> malformed_checkpoint(std::string what) {
    return fail(Code::invalid, "not a checkpoint: " + std::move(what),
                "lines: the log's name, its size in decimal, its root in base64");
}

// Decimal without sign, blanks or leading zeros.
std::optional<std::uint64_t> parse_size(std::string_view text) {
    const bool canonical = !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; }) &&
                           (text.size() == 1 || text.front() != '0');
    std::uint64_t size = 0;
    const auto result = std::from_chars(text.data(), text.data() + text.size(), size);
    return canonical && result.ec == std::errc{} ? std::optional{size} : std::nullopt;
}

}  // namespace

std::string print(const Checkpoint& checkpoint) {
    std::string out =
        fmt::format("{}\n{}\n{}\n", checkpoint.origin, checkpoint.size, to_base64(bytes_of(checkpoint.root)));
    for (const std::string& line : checkpoint.extensions) out += line + '\n';
    return out;
}

Result<Checkpoint> parse_checkpoint(std::string_view text) {
    std::vector<std::string_view> lines;
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        if (end == std::string_view::npos) return malformed_checkpoint("its last line does not end");
        if (end == 0) return malformed_checkpoint("it has an empty line");
        lines.push_back(text.substr(0, end));
        text.remove_prefix(end + 1);
    }
    if (lines.size() < 3) return malformed_checkpoint(fmt::format("it has {} lines, not 3", lines.size()));
    const auto size = parse_size(lines[1]);
    if (!size) return malformed_checkpoint(fmt::format("\"{}\" is no size", shortened(lines[1])));
    const auto bytes = from_base64(lines[2]);
    const auto root = bytes ? hash_from(*bytes) : std::nullopt;
    if (!root) return malformed_checkpoint(fmt::format("\"{}\" is no root", shortened(lines[2])));
    return Checkpoint{std::string{lines[0]}, *size, *root, {lines.begin() + 3, lines.end()}};
}

std::string sign_checkpoint(const Checkpoint& checkpoint, const SigningKey& key) {
    return sign_checkpoint(checkpoint, {&key, 1});
}

std::string sign_checkpoint(const Checkpoint& checkpoint, std::span<const SigningKey> keys) {
    Note note{.text = print(checkpoint), .signatures = {}};
    for (const SigningKey& key : keys) sign_note(note, checkpoint.origin, key);
    return print(note);
}

Result<Checkpoint> open_checkpoint(std::string_view note, const LogKeys& log) {
    const Result<Note> parsed = parse_note(note);
    if (!parsed) return std::unexpected(parsed.error());
    Result<Checkpoint> checkpoint = parse_checkpoint(parsed->text);
    // What nobody trusted has signed is not worth describing: whether it is well formed comes second.
    const Result<> verified = log.verify(*parsed, checkpoint ? checkpoint->size : 0);
    if (!verified) return std::unexpected(verified.error());
    if (checkpoint && checkpoint->origin != log.name())
        return fail(Code::denied,
                    fmt::format("a checkpoint of {}, signed by {}", shortened(checkpoint->origin), log.name()),
                    "a log signs under its own name only");
    return checkpoint;
}

}  // namespace bulkhead::evidence
