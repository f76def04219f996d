// One question to somebody else's HTTPS server: an identity provider. TLS is verified, the whole question has one
// deadline, the answer has a size, and nobody is sent elsewhere: a redirect is an answer like any other, and not
// followed. There is no plain HTTP.
#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "bulkhead/base/quantity.hpp"
#include "bulkhead/base/result.hpp"

namespace bulkhead::shell {

struct HttpsAddress {
    std::string host;
    std::uint16_t port = 443;
    std::string target;  // path and query; "/" at least
    friend bool operator==(const HttpsAddress&, const HttpsAddress&) = default;
};
// Refused: other schemes, names and passwords, fragments, blanks and control characters.
Result<HttpsAddress> parse_https(std::string_view url);

struct Question {
    std::string url;
    std::string form;  // application/x-www-form-urlencoded; empty: GET, else POST
    Duration within{10'000};
    std::size_t bytes_max = 256 << 10;
};
struct Answered {
    int status = 0;
    std::string content_type;  // in lower case, without parameters
    std::string body;
    bool is_json() const { return content_type == "application/json" || content_type.ends_with("+json"); }
};

class HttpsFetch {
public:
    // `ca_file`: who vouches for servers; empty: the machine's own authorities.
    static Result<HttpsFetch> open(const std::string& ca_file);
    HttpsFetch(HttpsFetch&&) noexcept;
    HttpsFetch& operator=(HttpsFetch&&) noexcept;
    ~HttpsFetch();

    // One thread at a time.
    Result<Answered> ask(const Question& question, const std::stop_token& stop = {});
    // 200 and JSON, or an error that says what came instead.
    Result<std::string> json(const Question& question, const std::stop_token& stop = {});

private:
    struct State;
    explicit HttpsFetch(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

// "a=b" with everything escaped that needs it, and '&' before it when it is not the first.
void add_to_form(std::string& form, std::string_view name, std::string_view value);

}  // namespace bulkhead::shell
