// The API as the command line sees it: one HTTPS connection, one question at a time, everything with a limit. An answer
// that says no becomes an Error with the server's own words and remedy.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bulkhead/base/quantity.hpp"
#include "bulkhead/base/result.hpp"
#include "bulkhead/codec/document.hpp"

namespace bulkhead::cli {

// Where the server is, and how we prove who we are.
struct Door {
    std::string server;  // "https://127.0.0.1:7443"
    std::string token;   // the token itself
    std::string ca_pem;  // what vouches for the server; empty: the machine's own authorities
};

struct Reply {
    int status = 0;
    std::string body;
    std::string etag;
    std::string content_type;
    std::string note;                // what it says besides; empty: nothing
    bool wants_other_token = false;  // it says no to whoever asks, not to what is asked
};

class Client {
public:
    static Result<Client> open(Door door);
    Result<Client> with_token(std::string token) const;  // the same server, as somebody else
    Client(Client&&) noexcept;
    Client& operator=(Client&&) noexcept;
    ~Client();

    struct Request {
        std::string method = "GET";
        std::string target;  // "/v1/nodes?limit=5"
        std::string body;
        std::string content_type = "application/json";
        std::vector<std::pair<std::string, std::string>> headers;
        Duration limit{30'000};
    };
    // Any answer of the server, also one that says no.
    Result<Reply> send(const Request& request);
    // Only a yes; a problem becomes its error. `findings` of a refusal are part of the error's text.
    Result<Reply> ask(const Request& request);
    Result<Reply> get(std::string target) { return ask({.target = std::move(target)}); }
    Result<Reply> post(std::string target, std::string body) {
        return ask({.method = "POST", .target = std::move(target), .body = std::move(body)});
    }

    struct Event {
        std::string id, type, data;
    };
    // Server-sent events until `each` says stop (false) or the server ends the stream.
    Result<> watch(std::string target, const std::string& last_id, const std::function<bool(const Event&)>& each);
    // The body into a file (mode 0600, whole or not there); gives its size.
    Result<std::int64_t> download(const Request& request, const std::string& path);

private:
    struct State;
    explicit Client(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

// What the answer of a server says when it is no. `denied` only where another token would help: what is refused for
// itself is a `conflict`, whoever asks.
Error error_of(const Reply& reply);

// The answer as a tree; `corrupt` when it is none.
Result<Document> read_answer(const Reply& reply);

// A member that is no list and no map; empty without one.
std::string text_at(const Node& node, std::string_view name);

}  // namespace bulkhead::cli
