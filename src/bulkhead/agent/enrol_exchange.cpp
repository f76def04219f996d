// The HTTPS half of enrol.hpp: one POST and its answer, to a server that proves to be the fleet's.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <chrono>
#include <exception>
#include <optional>

#include "bulkhead/agent/enrol.hpp"
#include "bulkhead/auth/ca.hpp"
#include "bulkhead/base/hash.hpp"
#include "bulkhead/codec/document.hpp"

namespace bulkhead::agent {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;

struct HostAndPort {
    std::string host, port;
};

Result<HostAndPort> parse_place(std::string_view text) {
    const auto wrong = [&] {
        return fail(Code::invalid, fmt::format("\"{}\" is not an address", text.substr(0, 128)),
                    "write https://control.example:7443");
    };
    if (text.starts_with("http://"))
        return fail(Code::invalid, "a token is not shown to a server that cannot prove who it is", "use https://");
    if (text.starts_with("https://")) text.remove_prefix(8);
    if (text.ends_with('/')) text.remove_suffix(1);
    HostAndPort place{.host = std::string{text}, .port = "443"};
    const std::size_t bracket = text.find(']'), colon = text.rfind(':');
    if (colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket)) {
        place.host = text.substr(0, colon);
        place.port = text.substr(colon + 1);
    }
    if (place.host.starts_with('[')) {
        if (!place.host.ends_with(']')) return wrong();
        place.host = place.host.substr(1, place.host.size() - 2);
    }
    const bool digits = place.port.find_first_not_of("0123456789") == std::string::npos;
    if (place.host.empty() || place.port.empty() || place.port.size() > 5 || !digits ||
        place.host.find_first_of("/@ ") != std::string::npos)
        return wrong();
    return place;
}

bool is_address(const std::string& host) {
    unsigned char bytes[16];
    return ::inet_pton(AF_INET, host.c_str(), bytes) == 1 || ::inet_pton(AF_INET6, host.c_str(), bytes) == 1;
}

// With a fingerprint alone: the CA is the certificate of that fingerprint in the chain the server shows, and from there
// on everything is verified as if it had been given as a file.
int verify_with_pinned_ca(X509_STORE_CTX* context, void* fingerprint) {
    const STACK_OF(X509)* shown = X509_STORE_CTX_get0_untrusted(context);
    for (int i = 0; i < sk_X509_num(shown); ++i) {
        X509* candidate = sk_X509_value(shown, i);
        std::uint8_t digest[32];
        unsigned size = 0;
        if (X509_digest(candidate, EVP_sha256(), digest, &size) != 1 || X509_check_ca(candidate) != 1) continue;
        if (to_hex(bytes_of({digest, size})) != *static_cast<const std::string*>(fingerprint)) continue;
        STACK_OF(X509)* trusted = sk_X509_new_null();
        if (trusted == nullptr || sk_X509_push(trusted, candidate) == 0) return 0;
        X509_STORE_CTX_set0_trusted_stack(context, trusted);
        const int verdict = X509_verify_cert(context);
        X509_STORE_CTX_set0_trusted_stack(context, nullptr);
        sk_X509_free(trusted);
        return verdict;
    }
    X509_STORE_CTX_set_error(context, X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN);
    return 0;
}

Result<> trust(asio::ssl::context& tls, const EnrolmentServer& server, std::string& fingerprint) {
    SSL_CTX_set_min_proto_version(tls.native_handle(), TLS1_2_VERSION);
    tls.set_verify_mode(asio::ssl::verify_peer);
    if (server.ca.empty() == server.ca_fingerprint.empty())
        return fail(Code::invalid,
                    "the server is known by its CA's certificate or by its fingerprint: give one of them");
    if (!server.ca.empty()) {
        if (auto readable = auth::fingerprint(server.ca); !readable) return std::unexpected(readable.error());
        tls.add_certificate_authority(asio::buffer(server.ca));
        return {};
    }
    const auto bytes = from_hex(server.ca_fingerprint);
    if (!bytes || bytes->size() != 32) return fail(Code::invalid, "a CA's fingerprint is 64 hex digits: its SHA-256");
    fingerprint = to_hex(*bytes);
    SSL_CTX_set_cert_verify_callback(tls.native_handle(), verify_with_pinned_ca, &fingerprint);
    return {};
}

Result<> expect_name(SSL* tls, const std::string& host) {
    X509_VERIFY_PARAM* wanted = SSL_get0_param(tls);
    const bool set = is_address(host) ? X509_VERIFY_PARAM_set1_ip_asc(wanted, host.c_str()) == 1
                                      : X509_VERIFY_PARAM_set1_host(wanted, host.c_str(), host.size()) == 1 &&
                                            SSL_ctrl(tls, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                                                     const_cast<char*>(host.c_str())) == 1;
    if (!set) return fail(Code::invalid, fmt::format("\"{}\" cannot be a server's name", host));
    return {};
}

using Stream = beast::ssl_stream<beast::tcp_stream>;
using Answer = http::response<http::string_body>;

asio::awaitable<Answer> exchange(Stream& stream, const HostAndPort& place, const std::string& body) {
    asio::ip::tcp::resolver resolver{co_await asio::this_coro::executor};
    const auto found = co_await resolver.async_resolve(place.host, place.port, asio::use_awaitable);
    co_await beast::get_lowest_layer(stream).async_connect(found, asio::use_awaitable);
    co_await stream.async_handshake(asio::ssl::stream_base::client, asio::use_awaitable);
    http::request<http::string_body> request{http::verb::post, std::string{auth::enrolment_path}, 11};
    request.set(http::field::host, place.host);
    request.set(http::field::content_type, "application/json");
    request.set(http::field::connection, "close");
    request.body() = body;
    request.prepare_payload();
    co_await http::async_write(stream, request, asio::use_awaitable);
    beast::flat_buffer buffer{auth::enrolment_bytes_max};
    http::response_parser<http::string_body> parser;
    parser.body_limit(auth::enrolment_bytes_max);
    co_await http::async_read(stream, buffer, parser, asio::use_awaitable);
    co_return parser.release();  // the rest of the farewell is of no interest: the answer is whole
}

Code code_of(http::status status) {
    switch (status) {
        case http::status::unauthorized:
        case http::status::forbidden:
            return Code::denied;
        case http::status::not_found:
            return Code::not_found;
        case http::status::conflict:
        case http::status::precondition_failed:
            return Code::conflict;
        case http::status::too_many_requests:
            return Code::exhausted;
        default:
            return http::to_status_class(status) == http::status_class::client_error ? Code::invalid
                                                                                     : Code::unavailable;
    }
}

// problem+json says why in "detail"; anything else is shown by its number alone.
std::string reason_in(const Answer& answer) {
    const ReadText text = read_documents("answer", answer.body(), {.bytes = auth::enrolment_bytes_max, .depth = 8});
    if (!answer.body().starts_with('{') || text.documents.size() != 1 || !text.errors.empty()) return {};
    const Node* detail = text.documents.front().root->find("detail");
    return detail != nullptr && detail->quoted ? ": " + shortened(detail->text) : std::string{};
}

}  // namespace

Result<auth::EnrolmentAnswer> ask_for_enrolment(const EnrolmentServer& server, const auth::EnrolmentRequest& request) {
    const auto place = parse_place(server.address);
    if (!place) return std::unexpected(place.error());
    asio::ssl::context tls{asio::ssl::context::tls_client};
    std::string fingerprint;
    if (auto trusted = trust(tls, server, fingerprint); !trusted) return std::unexpected(trusted.error());

    const std::string body = print(request);
    asio::io_context io;
    Stream stream{io, tls};
    if (auto named = expect_name(stream.native_handle(), place->host); !named) return std::unexpected(named.error());
    std::optional<Answer> answer;
    std::string broke;
    asio::co_spawn(io, exchange(stream, *place, body), [&](const std::exception_ptr& thrown, Answer got) {
        if (!thrown) {
            answer = std::move(got);
            return;
        }
        try {
            std::rethrow_exception(thrown);
        } catch (const std::exception& error) {
            broke = error.what();
        }
    });
    io.run_for(std::chrono::milliseconds{server.within.ms});
    if (!answer && broke.empty())
        return fail(Code::timeout, fmt::format("{} did not answer within {}", server.address, print(server.within)));
    if (!answer) {
        const long verdict = SSL_get_verify_result(stream.native_handle());
        if (verdict != X509_V_OK)
            return fail(Code::denied,
                        fmt::format("{} does not prove to be the fleet's control plane: {}", server.address,
                                    X509_verify_cert_error_string(verdict)),
                        "compare the CA's fingerprint with the one shown on the server");
        return fail(Code::unavailable, fmt::format("{} cannot be asked: {}", server.address, broke));
    }
    if (answer->result() != http::status::ok && answer->result() != http::status::created)
        return fail(code_of(answer->result()), fmt::format("{} refused the enrolment with {}{}", server.address,
                                                           answer->result_int(), reason_in(*answer)));
    return auth::read_enrolment_answer(answer->body());
}

}  // namespace bulkhead::agent
