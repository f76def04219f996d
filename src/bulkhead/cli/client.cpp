#include "bulkhead/cli/client.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <optional>

#include "bulkhead/codec/document.hpp"
#include "bulkhead/shell/http.hpp"

namespace bulkhead::cli {

namespace net = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using tcp = net::ip::tcp;
using boost::system::error_code;
using Stream = beast::ssl_stream<beast::tcp_stream>;
using Clock = std::chrono::steady_clock;

namespace {

constexpr std::uint16_t usual_port = 7443;
constexpr std::uint64_t most_body = 256u << 20;

struct Place {
    std::string host;
    std::uint16_t port = usual_port;
};

Result<Place> parse_place(std::string_view url) {
    const auto wrong = [&] {
        return fail(Code::invalid, fmt::format("\"{}\" is not the address of a server", url), "https://127.0.0.1:7443");
    };
    if (url.starts_with("https://"))
        url.remove_prefix(8);
    else if (url.find("://") != url.npos)
        return wrong();
    while (url.ends_with('/')) url.remove_suffix(1);
    Place place;
    std::string_view port;
    if (url.starts_with('[')) {
        const std::size_t end = url.find(']');
        if (end == url.npos) return wrong();
        place.host = url.substr(1, end - 1);
        port = url.substr(end + 1);
    } else {
        const std::size_t colon = std::min(url.find(':'), url.size());
        place.host = url.substr(0, colon);
        port = url.substr(colon);
    }
    if (place.host.empty() || place.host.find('/') != place.host.npos) return wrong();
    if (port.empty()) return place;
    port.remove_prefix(1);
    const auto read = std::from_chars(port.data(), port.data() + port.size(), place.port);
    if (read.ec != std::errc{} || read.ptr != port.data() + port.size() || place.port == 0) return wrong();
    return place;
}

std::string text_of(beast::string_view view) { return {view.data(), view.size()}; }

}  // namespace

struct Client::State {
    Door door;
    Place place;
    net::io_context io;
    net::ssl::context tls{net::ssl::context::tls_client};
    std::optional<Stream> stream;
    beast::flat_buffer buffer;
    Clock::time_point used;

    // One operation to its end; `start` is given the handler that takes the error.
    template <class Start>
    error_code run(Duration within, Start start) {
        error_code out = net::error::would_block;
        beast::get_lowest_layer(*stream).expires_after(std::chrono::milliseconds{within.ms});
        start([&out](error_code error, auto&&...) { out = error; });
        io.restart();
        io.run();
        return out;
    }

    Error lost(const error_code& error, std::string_view doing) const {
        const bool late = error == beast::error::timeout;
        std::string what = fmt::format("{} {}:{}: {}", doing, place.host, place.port, error.message());
        std::string remedy = "is it running? `bulkhead up` starts one, `bulkhead serve` too";
        if (error.category() == net::error::get_ssl_category())
            remedy = "the server is not the one that --ca vouches for, or speaks no TLS";
        return {late ? Code::timeout : Code::unavailable, std::move(what), std::move(remedy)};
    }

    Result<> connect();
    Result<> write(const Request& request);
    Result<> open_for(const Request& request);
};

Result<> Client::State::connect() {
    buffer.clear();
    stream.emplace(io, tls);
    tcp::resolver resolver{io};
    error_code failed;
    const auto found = resolver.resolve(place.host, std::to_string(place.port), failed);
    if (failed) return std::unexpected(lost(failed, "cannot find"));
    failed = run(Duration{5'000}, [&](auto done) { beast::get_lowest_layer(*stream).async_connect(found, done); });
    if (failed) return std::unexpected(lost(failed, "cannot reach"));
    error_code ignored;
    net::ip::make_address(place.host, ignored);
    // A name, not a number. What the macro SSL_set_tlsext_host_name says, without its cast.
    if (ignored)
        SSL_ctrl(stream->native_handle(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, place.host.data());
    stream->set_verify_callback(net::ssl::host_name_verification(place.host));
    failed = run(Duration{5'000}, [&](auto done) { stream->async_handshake(net::ssl::stream_base::client, done); });
    if (failed) {
        stream.reset();
        return std::unexpected(lost(failed, "cannot trust"));
    }
    return {};
}

Result<> Client::State::write(const Request& request) {
    http::request<http::string_body> message;
    message.method_string(request.method);
    message.target(request.target);
    message.version(11);
    message.set(http::field::host, fmt::format("{}:{}", place.host, place.port));
    message.set(http::field::user_agent, "bulkhead-cli");
    if (!door.token.empty()) message.set(http::field::authorization, "Bearer " + door.token);
    if (!request.body.empty()) message.set(http::field::content_type, request.content_type);
    for (const auto& [name, value] : request.headers) message.set(name, value);
    message.body() = request.body;
    message.prepare_payload();
    const error_code failed = run(request.limit, [&](auto done) { http::async_write(*stream, message, done); });
    if (failed) return std::unexpected(lost(failed, "cannot send to"));
    return {};
}

// A connection that has rested may be gone without our knowing; a new one costs two milliseconds.
Result<> Client::State::open_for(const Request& request) {
    if (!stream || Clock::now() - used > std::chrono::seconds{5})
        if (auto connected = connect(); !connected) return connected;
    return write(request);
}

Client::Client(std::unique_ptr<State> state) : state_{std::move(state)} {}
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;
Client::~Client() = default;

Result<Client> Client::with_token(std::string token) const {
    Door door = state_->door;
    door.token = std::move(token);
    return open(std::move(door));
}

Result<Client> Client::open(Door door) {
    auto place = parse_place(door.server);
    if (!place) return std::unexpected(place.error());
    auto state = std::make_unique<State>();
    state->place = *std::move(place);
    error_code failed;
    SSL_CTX_set_min_proto_version(state->tls.native_handle(), TLS1_2_VERSION);
    static_cast<void>(state->tls.set_verify_mode(net::ssl::verify_peer, failed));
    if (door.ca_pem.empty())
        static_cast<void>(state->tls.set_default_verify_paths(failed));
    else
        static_cast<void>(state->tls.add_certificate_authority(net::buffer(door.ca_pem), failed));
    if (failed) return fail(Code::invalid, "the CA is not a certificate: " + failed.message(), "check --ca");
    state->door = std::move(door);
    return Client{std::move(state)};
}

Result<Reply> Client::send(const Request& request) {
    State& state = *state_;
    if (auto written = state.open_for(request); !written) {
        state.stream.reset();
        return std::unexpected(written.error());
    }
    http::response_parser<http::string_body> parser;
    parser.body_limit(most_body);
    if (request.method == "HEAD") parser.skip(true);
    const error_code failed =
        state.run(request.limit, [&](auto done) { http::async_read(*state.stream, state.buffer, parser, done); });
    if (failed) {
        state.stream.reset();
        return std::unexpected(state.lost(failed, "no answer from"));
    }
    state.used = Clock::now();
    if (!parser.keep_alive()) state.stream.reset();
    auto& message = parser.get();
    return Reply{.status = static_cast<int>(message.result_int()),
                 .body = std::move(message.body()),
                 .etag = text_of(message[http::field::etag]),
                 .content_type = text_of(message[http::field::content_type]),
                 .note = text_of(message["Bulkhead-Note"]),
                 .wants_other_token = message.count(http::field::www_authenticate) > 0};
}

Result<Reply> Client::ask(const Request& request) {
    auto reply = send(request);
    if (reply && reply->status >= 400) return std::unexpected(error_of(*reply));
    return reply;
}

namespace {

// One event out of the text so far; nothing until it is whole.
std::optional<Client::Event> take_event(std::string& text) {
    for (;;) {
        const std::size_t end = text.find("\n\n");
        if (end == text.npos) return std::nullopt;
        const std::string block = text.substr(0, end + 1);
        text.erase(0, end + 2);
        Client::Event event;
        for (std::size_t at = 0; at < block.size();) {
            const std::size_t stop = block.find('\n', at);
            const std::string_view line = std::string_view{block}.substr(at, stop - at);
            at = stop + 1;
            if (line.starts_with("id: ")) event.id = line.substr(4);
            if (line.starts_with("event: ")) event.type = line.substr(7);
            if (line.starts_with("data: ")) event.data += line.substr(6);
        }
        if (!event.type.empty() || !event.id.empty()) return event;
    }
}

}  // namespace

Result<> Client::watch(std::string target, const std::string& last_id, const std::function<bool(const Event&)>& each) {
    State& state = *state_;
    constexpr Duration pulse{45'000};  // the server gives a sign of life every 15 s
    Request request{.target = std::move(target), .limit = pulse};
    if (!last_id.empty()) request.headers.emplace_back("Last-Event-ID", last_id);
    state.stream.reset();
    if (auto written = state.open_for(request); !written) return written;
    http::response_parser<http::buffer_body> parser;
    parser.body_limit(boost::none);
    error_code failed =
        state.run(pulse, [&](auto done) { http::async_read_header(*state.stream, state.buffer, parser, done); });
    if (failed) return std::unexpected(state.lost(failed, "no answer from"));
    Reply refusal{.status = static_cast<int>(parser.get().result_int()),
                  .wants_other_token = parser.get().count(http::field::www_authenticate) > 0};
    std::string text;
    char piece[16 << 10];
    while (!parser.is_done()) {
        parser.get().body().data = piece;
        parser.get().body().size = sizeof piece;
        failed = state.run(pulse, [&](auto done) { http::async_read_some(*state.stream, state.buffer, parser, done); });
        if (failed == http::error::need_buffer) failed = {};
        if (failed) return std::unexpected(state.lost(failed, "lost the connection to"));
        text.append(piece, sizeof piece - parser.get().body().size);
        if (refusal.status >= 400) continue;
        while (const auto event = take_event(text))
            if (!each(*event)) {
                state.stream.reset();
                return {};
            }
    }
    state.stream.reset();
    refusal.body = std::move(text);
    if (refusal.status >= 400) return std::unexpected(error_of(refusal));
    return {};
}

Result<std::int64_t> Client::download(const Request& request, const std::string& path) {
    State& state = *state_;
    state.stream.reset();
    if (auto written = state.open_for(request); !written) return std::unexpected(written.error());
    http::response_parser<http::buffer_body> parser;
    parser.body_limit(boost::none);
    error_code failed = state.run(
        request.limit, [&](auto done) { http::async_read_header(*state.stream, state.buffer, parser, done); });
    if (failed) return std::unexpected(state.lost(failed, "no answer from"));
    Reply refusal{.status = static_cast<int>(parser.get().result_int()),
                  .wants_other_token = parser.get().count(http::field::www_authenticate) > 0};
    const std::string beside = path + ".part";
    const int file =
        refusal.status >= 400 ? -1 : ::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0 && refusal.status < 400)
        return fail(Code::unavailable, fmt::format("{} cannot be written", beside), "choose another place");
    const auto give_up = [&](const Error& why) {
        if (file >= 0) ::close(file);
        std::remove(beside.c_str());
        state.stream.reset();
        return std::unexpected(why);
    };
    std::int64_t bytes = 0;
    std::vector<char> piece(64 << 10);
    while (!parser.is_done()) {
        parser.get().body().data = piece.data();
        parser.get().body().size = piece.size();
        failed = state.run(Duration{30'000},
                           [&](auto done) { http::async_read_some(*state.stream, state.buffer, parser, done); });
        if (failed == http::error::need_buffer) failed = {};
        if (failed) return give_up(state.lost(failed, "lost the connection to"));
        const std::size_t got = piece.size() - parser.get().body().size;
        if (file < 0) {
            refusal.body.append(piece.data(), got);
            continue;
        }
        if (::write(file, piece.data(), got) != static_cast<ssize_t>(got))
            return give_up(
                {Code::exhausted, fmt::format("{} cannot be written: is the disk full?", beside), "make room"});
        bytes += static_cast<std::int64_t>(got);
    }
    if (file < 0) return std::unexpected(error_of(refusal));
    state.stream.reset();
    const bool synced = ::fsync(file) == 0;
    ::close(file);
    if (!synced || std::rename(beside.c_str(), path.c_str()) != 0) {
        std::remove(beside.c_str());
        return fail(Code::unavailable, fmt::format("{} cannot be written", path), "choose another place");
    }
    return bytes;
}

Result<Document> read_answer(const Reply& reply) {
    ReadText read = read_documents("the server's answer", reply.body, own_text);
    if (read.errors.empty() && read.documents.size() == 1) return std::move(read.documents.front());
    return fail(Code::corrupt,
                read.errors.empty() ? "the server's answer says nothing"
                                    : "the server's answer cannot be read: " + print(read.errors.front()),
                "are server and command of the same version?");
}

std::string text_at(const Node& node, std::string_view name) {
    const Node* found = node.find(name);
    return found != nullptr && found->type == Node::Type::scalar ? found->text : std::string{};
}

Error error_of(const Reply& reply) {
    const auto read = read_answer(reply);
    const auto member = [&](std::string_view name) -> std::string {
        return read && read->root->type == Node::Type::map ? text_at(*read->root, name) : std::string{};
    };
    auto code = shell::code_from(member("code"));
    if (code == Code::denied && !reply.wants_other_token) code = Code::conflict;
    std::string detail = member("detail");
    if (!code || detail.empty())
        return {Code::unavailable,
                fmt::format("the server answered {}, and not in a way this program knows", reply.status),
                "is --server the address of a Bulkhead server?"};
    return {*code, std::move(detail), member("remedy")};
}

}  // namespace bulkhead::cli
