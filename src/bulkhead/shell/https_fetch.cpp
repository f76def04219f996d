#include "bulkhead/shell/https_fetch.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <charconv>
#include <chrono>
#include <optional>

#include "bulkhead/codec/diagnostic.hpp"

namespace bulkhead::shell {

namespace {

namespace asio = boost::asio;
namespace beast_http = boost::beast::http;
using boost::system::error_code;
using TlsStream = boost::beast::ssl_stream<boost::beast::tcp_stream>;
using AnswerParser = beast_http::response_parser<beast_http::string_body>;

std::unexpected<Error> bad_url(std::string_view url) {
    return fail(Code::invalid, fmt::format("\"{}\" is not an address that is asked here", shortened(url)),
                "https://HOST[:PORT]/PATH, without a name, a password or a fragment");
}

std::string plain_type(std::string_view header) {
    header = header.substr(0, header.find(';'));
    while (header.ends_with(' ') || header.ends_with('\t')) header.remove_suffix(1);
    std::string out{header};
    std::ranges::transform(out, out.begin(),
                           [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    return out;
}

// What went wrong, and while doing what.
struct Failure {
    std::string_view doing;
    error_code error;
};

asio::awaitable<std::optional<Failure>> converse(asio::ssl::context& tls, const HttpsAddress& to,
                                                 const beast_http::request<beast_http::string_body>& request,
                                                 AnswerParser& parser) {
    const auto executor = co_await asio::this_coro::executor;
    error_code failed;
    auto noted = asio::redirect_error(asio::use_awaitable, failed);
    asio::ip::tcp::resolver resolver{executor};
    const auto found = co_await resolver.async_resolve(to.host, std::to_string(to.port), noted);
    if (failed) co_return Failure{"cannot find", failed};
    TlsStream stream{executor, tls};
    co_await boost::beast::get_lowest_layer(stream).async_connect(found, noted);
    if (failed) co_return Failure{"cannot reach", failed};
    error_code no_number;
    asio::ip::make_address(to.host, no_number);
    std::string name = to.host;
    // What the macro SSL_set_tlsext_host_name says, without its cast.
    if (no_number)
        SSL_ctrl(stream.native_handle(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, name.data());
    stream.set_verify_callback(asio::ssl::host_name_verification(to.host));
    co_await stream.async_handshake(asio::ssl::stream_base::client, noted);
    if (failed) co_return Failure{"cannot trust", failed};
    co_await beast_http::async_write(stream, request, noted);
    if (failed) co_return Failure{"cannot ask", failed};
    boost::beast::flat_buffer buffer;
    co_await beast_http::async_read(stream, buffer, parser, noted);
    if (failed) co_return Failure{"no proper answer from", failed};
    co_return std::nullopt;
}

}  // namespace

Result<HttpsAddress> parse_https(std::string_view url) {
    const std::string_view whole = url;
    constexpr std::string_view scheme = "https://";
    constexpr std::size_t longest = 2048;
    const auto seen = [](char c) {
        return c > 0x20 && c < 0x7f && std::string_view{"\"<>\\^`{|}#@"}.find(c) == std::string_view::npos;
    };
    if (!url.starts_with(scheme) || url.size() > longest || !std::ranges::all_of(url, seen)) return bad_url(whole);
    url.remove_prefix(scheme.size());
    const std::size_t path = std::min(url.find_first_of("/?"), url.size());
    HttpsAddress out{.target = std::string{url.substr(path)}};
    if (!out.target.starts_with('/')) out.target.insert(0, "/");
    std::string_view place = url.substr(0, path), port;
    if (place.starts_with('[')) {
        const std::size_t end = place.find(']');
        if (end == place.npos) return bad_url(whole);
        out.host = place.substr(1, end - 1);
        port = place.substr(end + 1);
    } else {
        const std::size_t colon = std::min(place.find(':'), place.size());
        out.host = place.substr(0, colon);
        port = place.substr(colon);
    }
    if (out.host.empty()) return bad_url(whole);
    if (port.empty()) return out;
    if (!port.starts_with(':')) return bad_url(whole);
    port.remove_prefix(1);
    const auto read = std::from_chars(port.data(), port.data() + port.size(), out.port);
    if (read.ec != std::errc{} || read.ptr != port.data() + port.size() || out.port == 0) return bad_url(whole);
    return out;
}

struct HttpsFetch::State {
    asio::ssl::context tls{asio::ssl::context::tls_client};
};

HttpsFetch::HttpsFetch(std::unique_ptr<State> state) : state_{std::move(state)} {}
HttpsFetch::HttpsFetch(HttpsFetch&&) noexcept = default;
HttpsFetch& HttpsFetch::operator=(HttpsFetch&&) noexcept = default;
HttpsFetch::~HttpsFetch() = default;

Result<HttpsFetch> HttpsFetch::open(const std::string& ca_file) {
    auto state = std::make_unique<State>();
    error_code failed;
    SSL_CTX_set_min_proto_version(state->tls.native_handle(), TLS1_2_VERSION);
    static_cast<void>(state->tls.set_verify_mode(asio::ssl::verify_peer, failed));
    if (ca_file.empty())
        static_cast<void>(state->tls.set_default_verify_paths(failed));
    else
        static_cast<void>(state->tls.load_verify_file(ca_file, failed));
    if (failed)
        return fail(Code::invalid, fmt::format("{}: no certificates can be read there: {}", ca_file, failed.message()),
                    "name a file of certificates in PEM with --oidc-ca");
    return HttpsFetch{std::move(state)};
}

Result<Answered> HttpsFetch::ask(const Question& question, const std::stop_token& stop) {
    const auto to = parse_https(question.url);
    if (!to) return std::unexpected(to.error());
    beast_http::request<beast_http::string_body> request;
    request.method(question.form.empty() ? beast_http::verb::get : beast_http::verb::post);
    request.target(to->target);
    request.version(11);
    const bool is_v6 = to->host.find(':') != std::string::npos;
    const std::string host = is_v6 ? fmt::format("[{}]", to->host) : to->host;
    request.set(beast_http::field::host, to->port == 443 ? host : fmt::format("{}:{}", host, to->port));
    request.set(beast_http::field::user_agent, "bulkhead");
    request.set(beast_http::field::accept, "application/json");
    request.set(beast_http::field::connection, "close");
    if (!question.form.empty()) request.set(beast_http::field::content_type, "application/x-www-form-urlencoded");
    request.body() = question.form;
    request.prepare_payload();
    AnswerParser parser;
    parser.body_limit(question.bytes_max);

    // What is still under way when the time is over, or somebody says stop, ends with the context.
    bool over = false;
    std::optional<Failure> failure;
    asio::io_context io{1};
    const std::stop_callback on_stop{stop, [&io] { io.stop(); }};
    asio::co_spawn(io, converse(state_->tls, *to, request, parser),
                   [&](const std::exception_ptr& thrown, std::optional<Failure> said) {
                       over = !thrown;
                       failure = said;
                   });
    io.run_for(std::chrono::milliseconds{question.within.ms});
    const std::string place = fmt::format("{}:{}", to->host, to->port);
    if (!over && stop.stop_requested()) return fail(Code::unavailable, fmt::format("stopped asking {}", place));
    if (!over)
        return fail(Code::timeout, fmt::format("{} did not answer within {}", place, print(question.within)),
                    "is it up, and reachable from here?");
    if (failure) {
        const bool of_tls = failure->doing == "cannot trust";
        return fail(Code::unavailable, fmt::format("{} {}: {}", failure->doing, place, failure->error.message()),
                    of_tls ? "it is not the server that the authorities of --oidc-ca vouch for, or speaks no TLS"
                           : "is it up, and reachable from here?");
    }
    auto& message = parser.get();
    const auto type = message[beast_http::field::content_type];
    return Answered{.status = static_cast<int>(message.result_int()),
                    .content_type = plain_type({type.data(), type.size()}),
                    .body = std::move(message.body())};
}

Result<std::string> HttpsFetch::json(const Question& question, const std::stop_token& stop) {
    auto answer = ask(question, stop);
    if (!answer) return std::unexpected(answer.error());
    if (answer->status != 200)
        return fail(Code::unavailable, fmt::format("{} answered {}", shortened(question.url), answer->status),
                    answer->status / 100 == 3 ? "redirects are not followed: configure the address it should be" : "");
    if (!answer->is_json())
        return fail(Code::unavailable, fmt::format("{} answered with \"{}\", which is not JSON",
                                                   shortened(question.url), shortened(answer->content_type)));
    return std::move(answer->body);
}

void add_to_form(std::string& form, std::string_view name, std::string_view value) {
    const auto append = [&](std::string_view text) {
        for (const char c : text) {
            const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                               std::string_view{"-._~"}.find(c) != std::string_view::npos;
            if (plain)
                form += c;
            else
                form += fmt::format("%{:02X}", static_cast<unsigned char>(c));
        }
    };
    if (!form.empty()) form += '&';
    append(name);
    form += '=';
    append(value);
}

}  // namespace bulkhead::shell
