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
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bulkhead/shell/http_server.hpp"
#include "bulkhead/shell/places.hpp"
#include "bulkhead/shell/traffic.hpp"

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
          readers{static_cast<std::size_t>(options.readers)} {}

    Result<> listen();
    net::awaitable<void> accept();
    void welcome(tcp::socket socket);
    void complain_of(const error_code& failed);
    net::thread_pool& threads_of(Lane lane);
    void stop();

    // Connections live inside the io_context until it goes; so what they touch in their last moment comes before it.
    Options options;
    HttpDoor& door;
    Log& log;
    std::atomic<std::size_t> connections{0}, streams{0};
    std::atomic<bool> stopping{false};
    Traffic traffic{options.lane_max, options.lane_share_max};
    Places places{{options.connections_max, options.strangers_max, options.strangers_of_one_address_max}};
    std::mutex mutex;
    std::map<Places::Id, Connection*> open;
    net::ssl::context tls{net::ssl::context::tls_server};
    net::io_context io;
    tcp::acceptor acceptor;
    net::thread_pool writers{1}, enrolling{1}, readers, backups{1};
    std::chrono::steady_clock::time_point next_complaint;
    std::vector<std::thread> threads;
    std::uint16_t port = 0;
};

// Its requests, one after another, on a strand of its own: two threads never touch one connection.
class Connection : public std::enable_shared_from_this<Connection> {
public:
    Connection(HttpServer::State& server, tcp::socket socket, Places::Id place, std::string peer)
        : server_{server},
          options_{server.options},
          place_{place},
          stream_{std::move(socket), server.tls},
          peer_{std::move(peer)} {
        ++server_.connections;
        const std::lock_guard lock{server_.mutex};
        server_.open.emplace(place_, this);
    }
    ~Connection() {
        --server_.connections;
        server_.places.leave(place_);
        const std::lock_guard lock{server_.mutex};
        server_.open.erase(place_);
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

    // Its place was given to somebody else. Likewise called under the lock. Who has shown a token in the meantime
    // stays.
    void make_room() {
        net::post(stream_.get_executor(), [weak = weak_from_this()] {
            if (const auto self = weak.lock())
                if (!self->known_) beast::get_lowest_layer(self->stream_).close();
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
    const Places::Id place_;
    beast::ssl_stream<beast::tcp_stream> stream_;
    beast::flat_buffer buffer_;
    std::string peer_;
    bool answering_ = false;
    bool known_ = false;  // has shown a token that is good
};

}  // namespace bulkhead::shell
