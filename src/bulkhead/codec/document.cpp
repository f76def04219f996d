#include "bulkhead/codec/document.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "bulkhead/codec/tree_builder.hpp"
#include "bulkhead/codec/unicode.hpp"

namespace bulkhead {

namespace {

constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";

Place place_at(std::string_view text, std::size_t offset) {
    const std::string_view before = text.substr(0, offset);
    const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0: the first line
    return {static_cast<int>(std::ranges::count(before, '\n')) + 1, static_cast<int>(offset - line_start) + 1};
}

// yaml-cpp scans a whole flow collection, and a whole line, before it reports the first event; each mark it meets costs
// it up to three tokens of about 90 bytes. These bounds keep a small hostile file from taking gigabytes.
constexpr std::size_t most_collection_marks = 250'000;
constexpr std::size_t most_scalar_marks = 1'500'000;

// What yaml-cpp would misread or choke on, found before it sees the text.
void check_yaml(std::string_view text) {
    std::size_t collection_marks = 0, scalar_marks = 0;
    for (std::size_t at = 0; at < text.size();) {
        const auto refuse = [&](std::string what, std::string remedy) {
            throw Unreadable{place_at(text, at), std::move(what), std::move(remedy)};
        };
        const Rune rune = front_rune(text.substr(at)).value_or(Rune{0, 1});  // it is UTF-8: that was checked
        const bool line_end = rune.value == '\n' || (rune.value == '\r' && text.substr(at).starts_with("\r\n"));
        if (!line_end && rune.value != '\t' && !is_visible_in_yaml(rune.value))
            refuse(fmt::format("the invisible character U+{:04X}", static_cast<std::uint32_t>(rune.value)),
                   fmt::format("remove it, or write it as \"\\u{:04x}\" in double quotes",
                               static_cast<std::uint32_t>(rune.value)));
        if (rune.value == '%' && (at == 0 || text[at - 1] == '\n') && !text.substr(at).starts_with("%YAML 1."))
            refuse("YAML directives are not read", "remove the line");
        if (rune.value < 0x80) {
            const char mark = static_cast<char>(rune.value);
            if (std::string_view{"[{,&*!"}.contains(mark)) ++collection_marks;
            if (std::string_view{":?\"'"}.contains(mark)) ++scalar_marks;
            if (collection_marks > most_collection_marks || scalar_marks > most_scalar_marks)
                refuse("too many brackets, commas and quotes for one file", "split the file, or write it as JSON");
        }
        at += rune.bytes;
    }
}

// A line that begins with --- starts a document and ... ends one, wherever it stands: YAML forbids both inside any
// scalar. Cutting here first means that one broken document does not hide the errors of the next.
std::vector<Chunk> documents_of(std::string_view text, int first_column) {
    std::vector<Chunk> chunks;
    const auto is_marker = [](std::string_view line, std::string_view marker) {
        return line.starts_with(marker) && (line.size() == 3 || line[3] == ' ' || line[3] == '\t' || line[3] == '\r');
    };
    std::size_t begin = 0;
    int begin_line = 1, line_number = 1;
    for (std::size_t at = 0; at < text.size(); ++line_number) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        const std::size_t next = std::min(end + 1, text.size());
        const std::string_view line = text.substr(at, end - at);
        if (is_marker(line, "---") && at > begin) {
            chunks.push_back({text.substr(begin, at - begin), begin_line, begin == 0 ? first_column : 1});
            begin = at, begin_line = line_number;
        } else if (is_marker(line, "...")) {
            chunks.push_back({text.substr(begin, next - begin), begin_line, begin == 0 ? first_column : 1});
            begin = next, begin_line = line_number + 1;
        }
        at = next;
    }
    if (begin < text.size()) chunks.push_back({text.substr(begin), begin_line, begin == 0 ? first_column : 1});
    return chunks;
}

}  // namespace

ReadText read_documents(std::string_view file, std::string_view text, const Limits& limits) {
    ReadText out;
    const auto refuse = [&](Place at, std::string what, std::string remedy) {
        out.errors.push_back({{std::string{file}, at.line, at.column}, std::move(what), std::move(remedy)});
    };
    if (text.size() > limits.bytes) {
        refuse({}, fmt::format("{} bytes of text; at most {} are read", text.size(), limits.bytes), "split the file");
        return out;
    }
    if (const std::size_t at = first_invalid_utf8(text); at != std::string_view::npos) {
        refuse(place_at(text, at), "this byte is not UTF-8", "save the file as UTF-8");
        return out;
    }
    int first_column = 1;
    if (text.starts_with(byte_order_mark)) {
        text.remove_prefix(byte_order_mark.size());
        first_column += static_cast<int>(byte_order_mark.size());
    }
    const std::size_t first = text.find_first_not_of(" \t\r\n");
    if (first == std::string_view::npos) return out;

    const bool json = text[first] == '{' || text[first] == '[';
    std::vector<Chunk> chunks;
    try {
        if (!json) check_yaml(text);
        chunks = json ? std::vector{Chunk{text, 1, first_column}} : documents_of(text, first_column);
    } catch (const Unreadable& limit) {
        refuse(limit.at, limit.what, limit.remedy);
    }
    if (chunks.size() > limits.documents) {
        refuse({chunks[limits.documents].first_line, 1}, fmt::format("more than {} documents", limits.documents),
               "split the file");
        chunks.resize(limits.documents);
    }
    Allowance left{limits};
    for (const Chunk& chunk : chunks) {
        Document document;
        TreeBuilder builder{file, limits, left, document, out.errors};
        try {
            json ? read_json(chunk, builder) : read_yaml(chunk, builder);
        } catch (const Unreadable& limit) {
            builder.complain(limit.at, limit.what, limit.remedy);
            document.root = nullptr;
            if (limit.ends_file) break;
        }
        if (document.root && document.root->type != Node::Type::null) out.documents.push_back(std::move(document));
    }
    return out;
}

}  // namespace bulkhead
