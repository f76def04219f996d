// Requests and answers as the routes see them: plain values, no sockets, so that every route can be tried and fuzzed
// without a network. http_server.cpp is the one place that speaks HTTP.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bulkhead/base/result.hpp"
#include "bulkhead/model/consistency.hpp"

namespace bulkhead::shell {

enum class Method : std::uint8_t { get, head, post, put, erase };
constexpr auto words(Method) { return std::to_array<std::string_view>({"GET", "HEAD", "POST", "PUT", "DELETE"}); }

struct Target {
    std::string path;                   // decoded: "/v1/nodes/hgx-01"
    std::vector<std::string> segments;  // of the path
    std::map<std::string, std::string, std::less<>> query;
};
// Refused: what is not a path, escapes that are none, control characters, "." and "..", a name given twice.
Result<Target> parse_target(std::string_view target);

// What a request says before its body: enough to refuse it unread.
struct Head {
    Method method{};
    Target target;
    std::string authorization, content_type, accept, if_match, if_none_match, last_event_id, host;
    std::string peer;  // the caller's address; of IPv6, its network
};

struct Request {
    Head head;
    std::string body;
};

// A stream of text that goes on: server-sent events.
class Feed {
public:
    virtual ~Feed() = default;
    // What is due, or "" when nothing is; no value: the stream is over.
    virtual std::optional<std::string> next() = 0;
    // `ready` is called, by any thread, when next() may have more. Set once, before the first next().
    virtual void on_ready(std::function<void()> ready) = 0;
};

// A file that goes away with the last who hold it, whether or not it was ever sent.
class TemporaryFile {
public:
    explicit TemporaryFile(std::string path) : path_{std::move(path)} {}
    ~TemporaryFile() { std::remove(path_.c_str()); }
    TemporaryFile(const TemporaryFile&) = delete;
    TemporaryFile& operator=(const TemporaryFile&) = delete;
    const std::string& path() const { return path_; }

private:
    std::string path_;
};

struct Response {
    int status = 200;
    std::string content_type = "application/json";
    std::vector<std::pair<std::string, std::string>> headers;
    std::string body;
    std::shared_ptr<const std::string> shared;  // instead of the body: text that others hold as well
    std::shared_ptr<Feed> feed;                 // instead of the body
    std::shared_ptr<const TemporaryFile> file;  // instead of the body
    bool ask_again = false;                     // of a refusal: in a moment the door may know more

    std::string_view text() const { return shared ? std::string_view{*shared} : std::string_view{body}; }
};

using Respond = std::function<void(Response)>;  // once; by any thread

// ---- no, with reasons: RFC 9457 ----

int http_status(Code code);
std::string_view word_of(Code code);  // "not-found"
std::optional<Code> code_from(std::string_view word);

// One place that must change.
struct ProblemFinding {
    std::string kind, name;
    std::size_t occurrence = 0;
    std::string pointer;       // JSON Pointer into the object
    int line = 0, column = 0;  // in the body; 0: not known
    std::string what, remedy;
};
std::vector<ProblemFinding> problem_findings(const std::vector<Finding>& findings);

struct Problem {
    Error error;
    std::vector<ProblemFinding> findings;
    std::string refusal;  // JSON: why policy said no, and the nearest request that it would accept
    int status = 0;       // 0: what the code's row in the table says
};
Response problem(const Problem& problem);
inline Response problem(const Error& error, int status = 0) {
    return problem(Problem{.error = error, .status = status});
}

}  // namespace bulkhead::shell
