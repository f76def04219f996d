#include "bulkhead/shell/http_connection.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>

namespace bulkhead::shell {

namespace {

using Clock = std::chrono::steady_clock;

// A thing that becomes ready once or many times, told from any thread, waited for on the connection's own.
class Signal : public std::enable_shared_from_this<Signal> {
public:
    explicit Signal(const Executor& executor) : executor_{executor}, timer_{executor} {}

    void give() {
        net::post(executor_, [self = shared_from_this()] {
            self->given_ = true;
            self->timer_.cancel();
        });
    }
    // False: it took too long.
    Awaitable<bool> wait(std::chrono::milliseconds at_most) {
        if (!given_) {
            timer_.expires_after(at_most);
            co_await timer_.async_wait(as_pair);
        }
        co_return std::exchange(given_, false);
    }

private:
    Executor executor_;
    Timer timer_;
    bool given_ = false;
};

// An answer that may come from another thread.
class Pending {
public:
    explicit Pending(Traffic::Turn turn) : turn_{std::move(turn)} {}

    void respond(Response response) {
        std::shared_ptr<Signal> waiting;
        {
            const std::lock_guard lock{mutex_};
            response_ = std::move(response);
            turn_.reset();
            waiting = std::exchange(waiting_, nullptr);
        }
        if (waiting) waiting->give();
    }
    std::optional<Response> take() {
        const std::lock_guard lock{mutex_};
        return std::exchange(response_, std::nullopt);
    }
    // The answer if it is here already; otherwise the signal is given when it comes.
    std::optional<Response> take_or_tell(const std::shared_ptr<Signal>& signal) {
        const std::lock_guard lock{mutex_};
        if (!response_) waiting_ = signal;
        return std::exchange(response_, std::nullopt);
    }

private:
    std::mutex mutex_;
    std::optional<Response> response_;
    std::shared_ptr<Signal> waiting_;
    Traffic::Turn turn_;  // until it is answered, or nobody is left who could: also when it was given up on here
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

// Everything up to the empty line, which the caller adds with what says where the body ends.
void write_head(std::string& out, const Response& response, bool keep_alive) {
    const auto reason = http::obsolete_reason(http::int_to_status(static_cast<unsigned>(response.status)));
    fmt::format_to(std::back_inserter(out), "HTTP/1.1 {} {}\r\n", response.status,
                   std::string_view{reason.data(), reason.size()});
    const auto header = [&](std::string_view name, std::string_view value) {
        out.append(name).append(": ").append(value).append("\r\n");
    };
    if (!keep_alive) header("Connection", "close");
    header("Content-Type", response.content_type);
    header("Cache-Control", "no-store");
    header("X-Content-Type-Options", "nosniff");
    for (const auto& [name, value] : response.headers) header(name, value);
}

void end_head_with_length(std::string& out, std::uint64_t length) {
    fmt::format_to(std::back_inserter(out), "Content-Length: {}\r\n\r\n", length);
}

Error too_large(std::string_view what, std::size_t most) {
    return {Code::invalid, fmt::format("the {} is larger than what is read here", what),
            fmt::format("at most {} bytes", most)};
}

}  // namespace

Awaitable<void> Connection::run() {
    const auto self = shared_from_this();
    worker_.connections.insert(this);
    expire(options_.handshake_within);
    if (!co_await line_.shake_hands()) co_return;
    while (!server_.stopping.load()) {
        // Between requests a connection may rest; once something arrives, the header has its own, shorter time. A
        // stranger may not rest here.
        expire(known_ ? options_.idle : options_.header_within);
        if (buffer_.size() == 0 && !co_await read_more(4096)) break;
        answering_ = true;
        const Next next = co_await one_request();
        answering_ = false;
        if (next == Next::close) break;
        // What one large request needed is not kept for the next small one.
        constexpr std::size_t kept = 16 << 10;
        if (buffer_.capacity() > kept && buffer_.size() == 0) buffer_ = {};
        if (outgoing_.capacity() > kept) std::string{}.swap(outgoing_);
    }
    expire(Duration{2'000});
    co_await line_.close();
}

Awaitable<bool> Connection::read_more(std::size_t at_most) {
    const auto room = buffer_.prepare(at_most);
    const std::size_t got = co_await line_.read_some({static_cast<char*>(room.data()), room.size()});
    buffer_.commit(got);
    co_return got > 0;
}

// Until the parser has its header, or, when it is eager, all of the message.
Awaitable<error_code> Connection::parse(Parser& parser, std::size_t at_most) {
    for (;;) {
        error_code failed;
        if (buffer_.size() > 0) buffer_.consume(parser.put(buffer_.data(), failed));
        if (failed && failed != http::error::need_more) co_return failed;
        // Headers have their limit, and of a body what is not a header is consumed at once: but not an endless
        // extension of a chunk, or an endless trailer.
        if (failed && buffer_.size() > options_.header_bytes_max) co_return make_error_code(http::error::header_limit);
        if (!failed && (parser.is_done() || (!parser.eager() && parser.is_header_done()))) co_return error_code{};
        if (!co_await read_more(at_most)) co_return make_error_code(http::error::partial_message);
    }
}

// The last word on this connection: what is not read cannot be told from the next request.
Awaitable<Connection::Next> Connection::refuse(const Error& error, int status) {
    server_.door.note(nullptr, status, 0);
    return send(problem(error, status), false, false);
}

Awaitable<Connection::Next> Connection::one_request() {
    const auto began = Clock::now();
    const auto spent = [&] {
        return std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - began).count();
    };
    Parser parser;
    parser.header_limit(static_cast<std::uint32_t>(options_.header_bytes_max));
    parser.body_limit(options_.body_bytes_max);
    expire(options_.header_within);
    if (const error_code bad_header = co_await parse(parser, 4096)) {
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
    if (message.count(http::field::transfer_encoding) > 0 && !message.chunked()) {
        Error why{Code::invalid, "this transfer coding is not known here", "chunked, or a Content-Length"};
        co_return co_await refuse(why, 400);  // where its body ends cannot be told
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
    // What the door has to fetch first: this connection waits for it, and the thread goes on with others.
    for (int times = 0; !admission && admission.error().ask_again && times < 40 && !server_.stopping.load(); ++times) {
        Timer pause{line_.executor(), std::chrono::milliseconds{50}};
        co_await pause.async_wait(as_pair);
        admission = server_.door.admit(request.head);
    }
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
            if (!co_await line_.write("HTTP/1.1 100 Continue\r\n\r\n")) co_return Next::close;
        }
        parser.eager(true);
        const error_code failed = co_await parse(parser, 64 << 10);
        if (failed == http::error::body_limit) {
            Error why = too_large("body", admission->body_max);
            co_return co_await refuse(why, 413);
        }
        if (failed == http::error::header_limit) {
            Error why = too_large("trailer, or extension of a chunk,", options_.header_bytes_max);
            co_return co_await refuse(why, 431);
        }
        if (failed) co_return Next::close;
        request.body = std::move(parser.get().body());
    }
    // No deadline on the socket while the answer is being made; the answer has its own.
    line_.never_expire();
    server_.places.answering(place_, true);
    Response response = co_await answer(*admission, std::move(request));
    server_.places.answering(place_, false);
    server_.door.note(&*admission, response.status, spent());
    co_return co_await send(std::move(response), head_only, keep_alive && !server_.stopping.load());
}

Awaitable<Response> Connection::answer(const Admission& admission, Request request) {
    Traffic::Turn turn;
    if (admission.lane != Lane::quick) {
        auto entered = server_.traffic.enter(admission.lane, admission.caller);
        if (!entered) co_return problem(entered.error());
        turn = *std::move(entered);
    }
    const auto pending = std::make_shared<Pending>(std::move(turn));
    const Respond respond = [pending](Response response) { pending->respond(std::move(response)); };
    if (admission.lane == Lane::quick) {
        server_.door.handle(admission, std::move(request), respond);
        if (auto response = pending->take()) co_return *std::move(response);
    } else {
        net::post(server_.threads_of(admission.lane),
                  [&door = server_.door, admission, request = std::move(request), respond]() mutable {
                      door.handle(admission, std::move(request), respond);
                  });
    }
    const auto signal = std::make_shared<Signal>(line_.executor());
    std::optional<Response> response = pending->take_or_tell(signal);
    for (bool patient = true; !response && patient;) {
        const bool given = co_await signal->wait(in_ms(options_.answer_within));
        patient = given || (admission.lane == Lane::backup && !server_.stopping.load());
        response = pending->take();
    }
    if (!response)
        co_return problem(Error{Code::timeout, "the answer took too long; whether it was done is not known",
                                "look at the object, then ask again"});
    co_return *std::move(response);
}

Awaitable<Connection::Next> Connection::send(Response response, bool head_only, bool keep_alive) {
    if (response.feed && !head_only) co_return co_await send_feed(std::move(response));
    if (response.file && !head_only) co_return co_await send_file(std::move(response), keep_alive);
    constexpr std::size_t small = 64 << 10;  // such a body is copied behind its head, and both are one write
    const std::string_view text = response.text();
    const bool bodiless = head_only || response.status == 204 || response.status == 304;
    outgoing_.clear();
    write_head(outgoing_, response, keep_alive);
    if (bodiless && (response.status != 200 || response.feed))
        outgoing_ += "\r\n";
    else
        end_head_with_length(outgoing_, text.size());
    expire(options_.write_within);
    bool sent = false;
    if (bodiless || text.size() <= small) {
        if (!bodiless) outgoing_ += text;
        sent = co_await line_.write(outgoing_);
    } else {
        sent = co_await line_.write(outgoing_) && co_await line_.write(text);
    }
    co_return sent&& keep_alive ? Next::keep : Next::close;
}

Awaitable<Connection::Next> Connection::send_file(Response response, bool keep_alive) {
    std::ifstream file{response.file->path(), std::ios::binary | std::ios::ate};
    const auto size = file.tellg();
    if (!file || size < 0) {
        Response sorry = problem(Error{Code::unavailable, "the file cannot be read", "ask again"});
        co_return co_await send(std::move(sorry), false, false);
    }
    file.seekg(0);
    outgoing_.clear();
    write_head(outgoing_, response, keep_alive);
    auto left = static_cast<std::uint64_t>(size);
    end_head_with_length(outgoing_, left);
    expire(options_.write_within);
    if (!co_await line_.write(outgoing_)) co_return Next::close;
    std::string piece;
    while (left > 0) {
        piece.resize(std::min<std::uint64_t>(left, 64 << 10));
        // Shorter than it was: the caller finds out, because the connection ends before the length is reached.
        if (!file.read(piece.data(), static_cast<std::streamsize>(piece.size()))) co_return Next::close;
        expire(options_.write_within);
        if (!co_await line_.write(piece)) co_return Next::close;
        left -= piece.size();
    }
    co_return keep_alive ? Next::keep : Next::close;
}

Awaitable<Connection::Next> Connection::send_feed(Response response) {
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
    const auto signal = std::make_shared<Signal>(line_.executor());
    feed->on_ready([signal] { signal->give(); });
    outgoing_.clear();
    write_head(outgoing_, response, false);
    outgoing_ += "Transfer-Encoding: chunked\r\n\r\n";
    expire(options_.write_within);
    if (!co_await line_.write(outgoing_)) co_return Next::close;
    while (!server_.stopping.load()) {
        const std::optional<std::string> text = feed->next();
        if (!text) break;
        if (text->empty()) {
            line_.never_expire();
            if (co_await signal->wait(in_ms(options_.stream_pulse))) continue;
        }
        const std::string_view piece = text->empty() ? std::string_view{": still here\n\n"} : std::string_view{*text};
        expire(options_.write_within);
        if (!co_await line_.write(fmt::format("{:x}\r\n{}\r\n", piece.size(), piece))) co_return Next::close;
    }
    expire(options_.write_within);
    co_await line_.write("0\r\n\r\n");
    co_return Next::close;
}

}  // namespace bulkhead::shell
