// One connection of the HTTP server, and what the connections of a server share. Only http_server.cpp and
// http_connection.cpp include this: Asio and Beast cost a minute to compile.
#pragma once

#include <atomic>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_set>
#include <utility>

#include "bulkhead/shell/http_server.hpp"
#include "bulkhead/shell/places.hpp"
#include "bulkhead/shell/tls_line.hpp"
#include "bulkhead/shell/traffic.hpp"

namespace bulkhead::shell {

namespace beast = boost::beast;
namespace http = beast::http;
using tcp = net::ip::tcp;

inline std::chrono::milliseconds in_ms(Duration duration) { return std::chrono::milliseconds{duration.ms}; }

class Connection;

// A thread and the connections that live on it, from their first byte to their last: nothing of a connection is ever
// touched by two threads.
struct HttpWorker {
    std::unordered_set<Connection*> connections;
    net::io_context io{1};  // connections that are left end with it
    std::thread thread;

    Awaitable<void> sweep();  // hangs up on whoever took too long
};

struct HttpServer::State {
    State(Options options_, HttpDoor& door_, Log& log_)
        : options{std::move(options_)},
          door{door_},
          log{log_},
          workers(static_cast<std::size_t>(options.threads)),
          acceptor{workers.front().io.get_executor()},
          readers{static_cast<std::size_t>(options.readers)} {}

    Result<> listen();
    Awaitable<void> accept();
    void welcome(HttpWorker& worker, Socket socket);
    void complain_of(const error_code& failed);
    net::thread_pool& threads_of(Lane lane);
    void stop();

    struct FreeContext {
        void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
    };

    // Connections live inside the workers until these go; so what they touch in their last moment comes before them.
    Options options;
    HttpDoor& door;
    Log& log;
    std::atomic<std::size_t> connections{0}, streams{0};
    std::atomic<bool> stopping{false};
    Traffic traffic{options.lane_max, options.lane_share_max};
    Places places{{options.connections_max, options.strangers_max, options.strangers_of_one_address_max}};
    std::mutex mutex;
    std::map<Places::Id, Connection*> open;
    std::unique_ptr<SSL_CTX, FreeContext> tls;
    std::deque<HttpWorker> workers;
    std::size_t next_worker = 0;
    net::basic_socket_acceptor<tcp, Executor> acceptor;
    net::thread_pool writers{1}, enrolling{1}, readers, backups{1};
    std::chrono::steady_clock::time_point next_complaint;
    std::uint16_t port = 0;
};

// Its requests, one after another, on the thread of its worker.
class Connection : public std::enable_shared_from_this<Connection> {
public:
    Connection(HttpServer::State& server, HttpWorker& worker, Socket socket, Places::Id place, std::string peer)
        : server_{server},
          worker_{worker},
          options_{server.options},
          place_{place},
          line_{std::move(socket), *server.tls},
          peer_{std::move(peer)} {
        ++server_.connections;
        const std::lock_guard lock{server_.mutex};
        server_.open.emplace(place_, this);
    }
    ~Connection() {
        --server_.connections;
        server_.places.leave(place_);
        worker_.connections.erase(this);
        const std::lock_guard lock{server_.mutex};
        server_.open.erase(place_);
    }
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    Awaitable<void> run();
    TlsLine& line() { return line_; }

    // Called while the server's list is locked, so that this is still here.
    void close_soon() {
        net::post(line_.executor(), [weak = weak_from_this()] {
            if (const auto self = weak.lock())
                if (!self->answering_) self->line_.stop_waiting();  // it says good-bye by itself
        });
    }

    // Its place was given to somebody else. Likewise called under the lock. Who has shown a token in the meantime
    // stays.
    void make_room() {
        net::post(line_.executor(), [weak = weak_from_this()] {
            if (const auto self = weak.lock())
                if (!self->known_) self->line_.hang_up();
        });
    }

private:
    enum class Next : std::uint8_t { keep, close };
    using Parser = http::request_parser<http::string_body>;

    Awaitable<bool> read_more(std::size_t at_most);
    Awaitable<error_code> parse(Parser& parser, std::size_t at_most);
    Awaitable<Next> one_request();
    Awaitable<Response> answer(const Admission& admission, Request request);
    Awaitable<Next> send(Response response, bool head_only, bool keep_alive);
    Awaitable<Next> send_file(Response response, bool keep_alive);
    Awaitable<Next> send_feed(Response response);
    Awaitable<Next> refuse(const Error& error, int status);
    void expire(Duration within) { line_.expire_after(in_ms(within)); }

    HttpServer::State& server_;
    HttpWorker& worker_;
    const HttpServer::Options& options_;
    const Places::Id place_;
    TlsLine line_;
    beast::flat_buffer buffer_;
    std::string outgoing_;  // kept, so that its room is not asked for anew by every answer
    std::string peer_;
    bool answering_ = false;
    bool known_ = false;  // has shown a token that is good
};

}  // namespace bulkhead::shell
