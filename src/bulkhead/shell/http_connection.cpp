#include "bulkhead/shell/http_connection.hpp"

#include <fmt/core.h>
#include <netinet/tcp.h>

#include <optional>

namespace bulkhead::shell {

namespace {

using Clock = std::chrono::steady_clock;

// A thing that becomes ready once or many times, told from any thread, waited for on the connection's own.
class Signal : public std::enable_shared_from_this<Signal> {
public:
    explicit Signal(const net::any_io_executor& executor) : executor_{executor}, timer_{executor} {}

    void give() {
        net::post(executor_, [self = shared_from_this()] {
            self->given_ = true;
            self->timer_.cancel();
        });
    }
    // False: it took too long.
    net::awaitable<bool> wait(std::chrono::milliseconds at_most) {
        if (!given_) {
            timer_.expires_after(at_most);
            co_await timer_.async_wait(as_pair);
        }
        co_return std::exchange(given_, false);
    }

private:
    net::any_io_executor executor_;
    net::steady_timer timer_;
    bool given_ = false;
};

struct Pending {  // an answer that may come from another thread
    std::mutex mutex;
    std::optional<Response> response;
    Traffic::Turn turn;  // until it is answered, or nobody is left who could: also when it was given up on here
};

std::string text_of(beast::string_view view) { return {view.data(), view.size()}; }

std::optional<Method> method_of(http::verb verb) {
    switch (verb) {
        case http::verb::get:
            return Method::get;
        case http::verb::head:
            return Method::head;
        case http::verb::post:
            return Method::post;
        case http::verb::put:
            return Method::put;
        case http::verb::delete_:
            return Method::erase;
        default:
            return std::nullopt;
    }
}

template <class Message>
void set_headers(Message& message, const Response& response, bool keep_alive) {
    message.version(11);
    message.result(static_cast<unsigned>(response.status));
    message.set(http::field::content_type, response.content_type);
    message.set(http::field::cache_control, "no-store");
    message.set("X-Content-Type-Options", "nosniff");
    for (const auto& [name, value] : response.headers) message.set(name, value);
    message.keep_alive(keep_alive);
}

Error too_large(std::string_view what, std::size_t most) {
    return {Code::invalid, fmt::format("the {} is larger than what is read here", what),
            fmt::format("at most {} bytes", most)};
}

}  // namespace

net::awaitable<void> Connection::run() {
    const auto self = shared_from_this();
    auto& socket = beast::get_lowest_layer(stream_).socket();
    error_code ignored;
    socket.set_option(tcp::no_delay{true}, ignored);
    // What was sent and never acknowledged ends the connection, whatever the other side's machine has become.
    const int patience_ms = 60'000;
    ::setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_USER_TIMEOUT, &patience_ms, sizeof patience_ms);

    expire(options_.handshake_within);
    const auto [failed] = co_await stream_.async_handshake(net::ssl::stream_base::server, as_pair);
    if (failed) co_return;
    while (!server_.stopping.load()) {
        if (!co_await wait_for_a_byte()) break;
        answering_ = true;
        const Next next = co_await one_request();
        answering_ = false;
        if (next == Next::close) break;
    }
    expire(Duration{2'000});
    co_await stream_.async_shutdown(as_pair);
}

// Between requests a connection may rest; once something arrives, the header has its own, shorter time.
net::awaitable<bool> Connection::wait_for_a_byte() {
    if (buffer_.size() > 0) co_return true;
    expire(known_ ? options_.idle : options_.header_within);  // a stranger may not rest here
    const auto [failed, bytes] = co_await stream_.async_read_some(buffer_.prepare(4096), as_pair);
    if (failed) co_return false;
    buffer_.commit(bytes);
    co_return true;
}

// The last word on this connection: what is not read cannot be told from the next request.
net::awaitable<Connection::Next> Connection::refuse(const Error& error, int status) {
    server_.door.note(nullptr, status, 0);
    return send(problem(error, status), false, false);
}

net::awaitable<Connection::Next> Connection::one_request() {
    const auto began = Clock::now();
    const auto spent = [&] {
        return std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - began).count();
    };
    http::request_parser<http::string_body> parser;
    parser.header_limit(static_cast<std::uint32_t>(options_.header_bytes_max));
    parser.body_limit(options_.body_bytes_max);
    expire(options_.header_within);
    const auto [bad_header, header_bytes] = co_await http::async_read_header(stream_, buffer_, parser, as_pair);
    if (bad_header) {
        Error why;
        int status = 0;
        if (bad_header == http::error::header_limit) {
            why = too_large("header", options_.header_bytes_max);
            status = 431;
        } else if (bad_header == http::error::body_limit) {
            why = too_large("body", options_.body_bytes_max);
            status = 413;
        } else if (bad_header.category() == http::make_error_code(http::error::bad_method).category() &&
                   bad_header != http::error::end_of_stream && bad_header != http::error::partial_message) {
            why = {Code::invalid, "this is not HTTP as it is spoken here: " + bad_header.message(), "speak HTTP/1.1"};
            status = 400;
        }
        if (status == 0) co_return Next::close;  // gone, or too slow
        co_return co_await refuse(why, status);
    }

    const auto& message = parser.get();
    if (const auto hosts = message.count(http::field::host); hosts > 1 || (hosts == 0 && message.version() >= 11)) {
        Error why{Code::invalid, "a request of HTTP/1.1 names its host once", "send one Host header"};
        co_return co_await refuse(why, 400);
    }
    const auto header = [&](http::field name) { return text_of(message[name]); };
    const auto method = method_of(message.method());
    if (!method) {
        server_.door.note(nullptr, 405, spent());
        Response no =
            problem(Error{Code::invalid, "this method is not served here", "GET, HEAD, POST, PUT or DELETE"}, 405);
        no.headers.emplace_back("Allow", "GET, HEAD, POST, PUT, DELETE");
        co_return co_await send(std::move(no), false, false);
    }
    auto target = parse_target(std::string_view{message.target().data(), message.target().size()});
    if (!target) co_return co_await refuse(target.error(), 400);
    Request request{.head = {.method = *method,
                             .target = *std::move(target),
                             .authorization = header(http::field::authorization),
                             .content_type = header(http::field::content_type),
                             .accept = header(http::field::accept),
                             .if_match = header(http::field::if_match),
                             .if_none_match = header(http::field::if_none_match),
                             .last_event_id = text_of(message["Last-Event-ID"]),
                             .host = header(http::field::host),
                             .peer = peer_}};
    const bool head_only = *method == Method::head, keep_alive = message.keep_alive();

    auto admission = server_.door.admit(request.head);
    const bool has_body = !parser.is_done();
    if (!admission) {
        server_.door.note(nullptr, admission.error().status, spent());
        // With a body still unread, the refusal is the last word.
        co_return co_await send(std::move(admission.error()), head_only, keep_alive && !has_body);
    }
    // Only a token makes an acquaintance: whoever may ask how we are is still a stranger.
    if (!known_ && !admission->caller.token_id.empty()) {
        known_ = true;
        server_.places.show_token(place_);
    }
    if (parser.content_length() && *parser.content_length() > admission->body_max) {
        Error why = too_large("body", admission->body_max);
        co_return co_await refuse(why, 413);
    }
    if (has_body) {
        parser.body_limit(admission->body_max);
        expire(options_.body_within);
        if (beast::iequals(message[http::field::expect], "100-continue")) {
            http::response<http::empty_body> go_on{http::status::continue_, 11};
            const auto [failed, bytes] = co_await http::async_write(stream_, go_on, as_pair);
            if (failed) co_return Next::close;
        }
        const auto [failed, bytes] = co_await http::async_read(stream_, buffer_, parser, as_pair);
        if (failed == http::error::body_limit) {
            Error why = too_large("body", admission->body_max);
            co_return co_await refuse(why, 413);
        }
        if (failed) co_return Next::close;
        request.body = std::move(parser.get().body());
    }
    // No deadline on the socket while the answer is being made; the answer has its own.
    beast::get_lowest_layer(stream_).expires_never();
    server_.places.answering(place_, true);
    Response response = co_await answer(*admission, std::move(request));
    server_.places.answering(place_, false);
    server_.door.note(&*admission, response.status, spent());
    co_return co_await send(std::move(response), head_only, keep_alive && !server_.stopping.load());
}

net::awaitable<Response> Connection::answer(const Admission& admission, Request request) {
    const auto signal = std::make_shared<Signal>(stream_.get_executor());
    const auto pending = std::make_shared<Pending>();
    if (admission.lane != Lane::quick) {
        auto entered = server_.traffic.enter(admission.lane, admission.caller);
        if (!entered) co_return problem(entered.error());
        pending->turn = *std::move(entered);
    }
    const Respond respond = [signal, pending](Response response) {
        {
            const std::lock_guard lock{pending->mutex};
            pending->response = std::move(response);
            pending->turn.reset();
        }
        signal->give();
    };
    if (admission.lane == Lane::quick) {
        server_.door.handle(admission, std::move(request), respond);
    } else {
        net::post(server_.threads_of(admission.lane),
                  [&door = server_.door, admission, request = std::move(request), respond]() mutable {
                      door.handle(admission, std::move(request), respond);
                  });
    }
    const auto taken = [&] {
        const std::lock_guard lock{pending->mutex};
        return std::exchange(pending->response, std::nullopt);
    };
    std::optional<Response> response = taken();
    for (bool patient = true; !response && patient;) {
        const bool given = co_await signal->wait(in_ms(options_.answer_within));
        patient = given || (admission.lane == Lane::backup && !server_.stopping.load());
        response = taken();
    }
    if (!response)
        co_return problem(Error{Code::timeout, "the answer took too long; whether it was done is not known",
                                "look at the object, then ask again"});
    co_return *std::move(response);
}

net::awaitable<Connection::Next> Connection::send(Response response, bool head_only, bool keep_alive) {
    if (response.feed && !head_only) co_return co_await send_feed(std::move(response));
    if (response.file && !head_only) co_return co_await send_file(std::move(response), keep_alive);
    const std::string_view text = response.text();
    expire(options_.write_within);
    const bool bodiless = head_only || response.status == 204 || response.status == 304;
    if (bodiless) {
        http::response<http::empty_body> message;
        set_headers(message, response, keep_alive);
        if (response.status == 200 && !response.feed) message.content_length(text.size());
        const auto [failed, bytes] = co_await http::async_write(stream_, message, as_pair);
        co_return failed || !keep_alive ? Next::close : Next::keep;
    }
    http::response<http::span_body<const char>> message;
    set_headers(message, response, keep_alive);
    message.body() = {text.data(), text.size()};
    message.content_length(text.size());
    const auto [failed, bytes] = co_await http::async_write(stream_, message, as_pair);
    co_return failed || !keep_alive ? Next::close : Next::keep;
}

net::awaitable<Connection::Next> Connection::send_file(Response response, bool keep_alive) {
    error_code failed;
    http::response<http::file_body> message;
    message.body().open(response.file->path().c_str(), beast::file_mode::scan, failed);
    if (failed) {
        Response sorry = problem(Error{Code::unavailable, "the file cannot be read: " + failed.message(), ""});
        co_return co_await send(std::move(sorry), false, false);
    }
    set_headers(message, response, keep_alive);
    message.prepare_payload();
    http::response_serializer<http::file_body> serializer{message};
    while (!serializer.is_done()) {
        expire(options_.write_within);
        const auto [broken, bytes] = co_await http::async_write_some(stream_, serializer, as_pair);
        if (broken) co_return Next::close;
    }
    co_return keep_alive ? Next::keep : Next::close;
}

net::awaitable<Connection::Next> Connection::send_feed(Response response) {
    struct Counted {
        std::atomic<std::size_t>& count;
        std::size_t before = count.fetch_add(1);
        ~Counted() { --count; }
    } const counted{server_.streams};
    if (counted.before >= options_.streams_max) {
        Response sorry = problem(Error{Code::exhausted, "too many watches are open", "close one, or ask again later"});
        co_return co_await send(std::move(sorry), false, false);
    }

    const auto feed = std::move(response.feed);
    const auto signal = std::make_shared<Signal>(stream_.get_executor());
    feed->on_ready([signal] { signal->give(); });
    http::response<http::empty_body> message;
    set_headers(message, response, false);
    message.chunked(true);
    http::response_serializer<http::empty_body> serializer{message};
    expire(options_.write_within);
    const auto [failed, bytes] = co_await http::async_write_header(stream_, serializer, as_pair);
    if (failed) co_return Next::close;
    while (!server_.stopping.load()) {
        const std::optional<std::string> text = feed->next();
        if (!text) break;
        if (text->empty()) {
            if (co_await signal->wait(in_ms(options_.stream_pulse))) continue;
        }
        const std::string_view piece = text->empty() ? std::string_view{": still here\n\n"} : std::string_view{*text};
        expire(options_.write_within);
        const auto [broken, sent] = co_await net::async_write(stream_, http::make_chunk(net::buffer(piece)), as_pair);
        if (broken) co_return Next::close;
    }
    expire(options_.write_within);
    co_await net::async_write(stream_, http::make_chunk_last(), as_pair);
    co_return Next::close;
}

}  // namespace bulkhead::shell
