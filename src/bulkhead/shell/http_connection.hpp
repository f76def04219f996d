// One connection of the HTTP server, and what the connections of a server share. Only http_server.cpp and
// http_connection.cpp include this: Beast costs a minute to compile.
#pragma once

#include <atomic>
#include <boost/asio.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <chrono>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bulkhead/shell/http_server.hpp"

namespace bulkhead::shell {

namespace net = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using tcp = net::ip::tcp;
using boost::system::error_code;

constexpr auto as_pair = net::as_tuple(net::use_awaitable);

inline std::chrono::milliseconds in_ms(Duration duration) { return std::chrono::milliseconds{duration.ms}; }

class Connection;

struct HttpServer::State {
    State(Options options_, HttpDoor& door_, Log& log_)
        : options{std::move(options_)},
          door{door_},
          log{log_},
          io{options.threads},
          acceptor{io},
          workers{static_cast<std::size_t>(options.workers)} {}

    Result<> listen();
    net::awaitable<void> accept();
    void stop();

    // Connections live inside the io_context until it goes; so what they touch in their last moment comes before it.
    Options options;
    HttpDoor& door;
    Log& log;
    std::atomic<std::size_t> connections{0}, streams{0}, slow{0};
    std::atomic<bool> stopping{false};
    std::mutex mutex;
    std::set<Connection*> open;
    net::ssl::context tls{net::ssl::context::tls_server};
    net::io_context io;
    tcp::acceptor acceptor;
    net::thread_pool workers;
    std::vector<std::thread> threads;
    std::uint16_t port = 0;
};

// Its requests, one after another, on a strand of its own: two threads never touch one connection.
class Connection : public std::enable_shared_from_this<Connection> {
public:
    Connection(HttpServer::State& server, tcp::socket socket)
        : server_{server}, options_{server.options}, stream_{std::move(socket), server.tls} {
        ++server_.connections;
        const std::lock_guard lock{server_.mutex};
        server_.open.insert(this);
    }
    ~Connection() {
        --server_.connections;
        const std::lock_guard lock{server_.mutex};
        server_.open.erase(this);
    }
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    net::awaitable<void> run();

    // Called while the server's list is locked, so that this is still here.
    void close_soon() {
        net::post(stream_.get_executor(), [weak = weak_from_this()] {
            if (const auto self = weak.lock())
                if (!self->answering_) beast::get_lowest_layer(self->stream_).cancel();
        });
    }

private:
    enum class Next : std::uint8_t { keep, close };

    net::awaitable<bool> wait_for_a_byte();
    net::awaitable<Next> one_request();
    net::awaitable<Response> answer(const Admission& admission, Request request);
    net::awaitable<Next> send(Response response, bool head_only, bool keep_alive);
    net::awaitable<Next> send_file(Response response, bool keep_alive);
    net::awaitable<Next> send_feed(Response response);
    net::awaitable<Next> refuse(const Error& error, int status);
    void expire(Duration within) { beast::get_lowest_layer(stream_).expires_after(in_ms(within)); }

    HttpServer::State& server_;
    const HttpServer::Options& options_;
    beast::ssl_stream<beast::tcp_stream> stream_;
    beast::flat_buffer buffer_;
    std::string peer_;
    bool answering_ = false;
    bool admitted_ = false;  // has asked something that it may ask
};

}  // namespace bulkhead::shell
