#include "bulkhead/shell/http.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "bulkhead/codec/diagnostic.hpp"
#include "bulkhead/codec/json_writer.hpp"
#include "bulkhead/codec/unicode.hpp"

namespace bulkhead::shell {

namespace {

constexpr std::size_t most_segments = 16, most_parameters = 16, most_bytes = 8 << 10;

int hex_value(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

// Nothing: an escape that is none, or something no name or value of ours can hold.
std::optional<std::string> decoded(std::string_view text, bool plus_is_blank) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        char c = text[i];
        if (c == '%') {
            if (i + 2 >= text.size()) return std::nullopt;
            const int high = hex_value(text[i + 1]), low = hex_value(text[i + 2]);
            if (high < 0 || low < 0) return std::nullopt;
            c = static_cast<char>(high * 16 + low);
            i += 2;
        } else if (c == '+' && plus_is_blank) {
            c = ' ';
        }
        const auto byte = static_cast<unsigned char>(c);
        if (byte < 0x20 || byte == 0x7f) return std::nullopt;
        out += c;
    }
    if (first_invalid_utf8(out) != std::string::npos) return std::nullopt;
    return out;
}

std::unexpected<Error> bad_target(std::string_view target) {
    return fail(Code::invalid, fmt::format("\"{}\" is not a path of this server", shortened(target)),
                "GET /openapi.json lists them");
}

struct CodeRow {
    Code code{};
    std::string_view word;
    int status = 0;
    std::string_view title;
};
// The one table from codes to HTTP.
constexpr CodeRow table[] = {
    {Code::invalid, "invalid", 400, "The request is not valid"},
    {Code::not_found, "not-found", 404, "There is no such thing"},
    {Code::conflict, "conflict", 409, "It is not in a state that allows this"},
    {Code::denied, "denied", 403, "Not allowed"},
    {Code::exhausted, "exhausted", 429, "Too much at once"},
    {Code::unavailable, "unavailable", 503, "Not now"},
    {Code::timeout, "timeout", 504, "It took too long"},
    {Code::corrupt, "corrupt", 500, "Something stored is damaged"},
};
const CodeRow& row_of(Code code) { return table[static_cast<std::size_t>(code)]; }
static_assert(std::ranges::all_of(table,
                                  [](const CodeRow& row) { return &row - table == static_cast<int>(row.code); }));

}  // namespace

Result<Target> parse_target(std::string_view target) {
    Target out;
    if (target.size() > most_bytes || !target.starts_with('/')) return bad_target(target);
    const std::string_view whole = target;
    const std::size_t mark = std::min(target.find('?'), target.size());
    std::string_view path = target.substr(0, mark);
    std::string_view query = target.substr(std::min(mark + 1, target.size()));
    while (!path.empty()) {
        path.remove_prefix(1);  // the '/'
        const std::size_t end = std::min(path.find('/'), path.size());
        const auto segment = decoded(path.substr(0, end), false);
        const bool last = end == path.size();
        if (!segment || *segment == "." || *segment == ".." || segment->find('/') != segment->npos ||
            (segment->empty() && !(last && out.segments.empty())) || out.segments.size() == most_segments)
            return bad_target(whole);
        out.path += '/' + *segment;
        if (!segment->empty()) out.segments.push_back(*segment);
        path.remove_prefix(end);
    }
    while (!query.empty()) {
        const std::size_t end = std::min(query.find('&'), query.size());
        const std::string_view pair = query.substr(0, end);
        query.remove_prefix(std::min(end + 1, query.size()));
        if (pair.empty()) continue;
        const std::size_t equals = std::min(pair.find('='), pair.size());
        auto name = decoded(pair.substr(0, equals), true);
        auto value = decoded(pair.substr(std::min(equals + 1, pair.size())), true);
        if (!name || !value || out.query.size() == most_parameters) return bad_target(whole);
        if (!out.query.emplace(*std::move(name), *std::move(value)).second)
            return fail(Code::invalid, fmt::format("the parameter of \"{}\" is given twice", shortened(pair)),
                        "give it once");
    }
    return out;
}

int http_status(Code code) { return row_of(code).status; }
std::string_view word_of(Code code) { return row_of(code).word; }

std::optional<Code> code_from(std::string_view word) {
    for (const CodeRow& row : table)
        if (row.word == word) return row.code;
    return std::nullopt;
}

std::vector<ProblemFinding> problem_findings(const std::vector<Finding>& findings) {
    std::vector<ProblemFinding> out;
    out.reserve(findings.size());
    for (const Finding& finding : findings)
        out.push_back({.kind = std::string{finding.kind},
                       .name = finding.name,
                       .occurrence = finding.occurrence,
                       .pointer = finding.path,
                       .what = finding.what,
                       .remedy = finding.remedy});
    return out;
}

Response problem(const Problem& problem) {
    const CodeRow& row = row_of(problem.error.code);
    Response response{.status = problem.status == 0 ? row.status : problem.status,
                      .content_type = "application/problem+json"};
    JsonWriter json{JsonLayout::compact};
    json.begin_object();
    json.member("type", fmt::format("urn:bulkhead:problem:{}", row.word));
    json.member("title", row.title);
    json.member("status", response.status);
    json.member("code", row.word);
    json.member("detail", problem.error.what);
    if (!problem.error.remedy.empty()) json.member("remedy", problem.error.remedy);
    if (!problem.findings.empty()) {
        json.key("findings");
        json.begin_array();
        for (const ProblemFinding& finding : problem.findings) {
            json.begin_object();
            if (!finding.kind.empty()) json.member("kind", finding.kind);
            if (!finding.name.empty()) json.member("name", finding.name);
            if (finding.occurrence != 0) json.member("occurrence", static_cast<std::int64_t>(finding.occurrence));
            if (!finding.pointer.empty()) json.member("pointer", finding.pointer);
            if (finding.line != 0) {
                json.member("line", finding.line);
                json.member("column", finding.column);
            }
            json.member("what", finding.what);
            if (!finding.remedy.empty()) json.member("remedy", finding.remedy);
            json.end_object();
        }
        json.end_array();
    }
    if (!problem.refusal.empty()) {
        json.key("refusal");
        json.number(problem.refusal);  // JSON already
    }
    json.end_object();
    response.body = json.take();
    if (response.status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
    if (response.status == 429) response.headers.emplace_back("Retry-After", "1");
    if (response.status == 503) response.headers.emplace_back("Retry-After", "2");
    return response;
}

}  // namespace bulkhead::shell
