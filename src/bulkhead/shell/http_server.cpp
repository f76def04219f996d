#include "bulkhead/shell/http_server.hpp"

#include <fmt/core.h>
#include <openssl/ssl.h>

#include <algorithm>

#include "bulkhead/shell/http_connection.hpp"

namespace bulkhead::shell {

Result<> HttpServer::State::listen() {
    error_code failed;
    tls.set_options(net::ssl::context::default_workarounds | net::ssl::context::no_compression, failed);
    SSL_CTX_set_min_proto_version(tls.native_handle(), TLS1_2_VERSION);
    SSL_CTX_set_options(tls.native_handle(), SSL_OP_NO_RENEGOTIATION);
    if (!failed) tls.use_certificate_chain(net::buffer(options.certificate), failed);
    if (!failed) tls.use_private_key(net::buffer(options.key), net::ssl::context::pem, failed);
    if (failed)
        return fail(Code::invalid, "the server's certificate or key cannot be used: " + failed.message(),
                    "remove them from the data directory; they are made anew");
    const auto address = net::ip::make_address(options.address, failed);
    if (failed)
        return fail(Code::invalid, fmt::format("\"{}\" is not an address to listen on", options.address), "127.0.0.1");
    const tcp::endpoint endpoint{address, options.port};
    acceptor.open(endpoint.protocol(), failed);
    if (!failed) acceptor.set_option(tcp::acceptor::reuse_address{true}, failed);
    if (!failed) acceptor.bind(endpoint, failed);
    if (!failed) acceptor.listen(512, failed);
    if (failed)
        return fail(Code::unavailable,
                    fmt::format("cannot listen on {}:{}: {}", options.address, options.port, failed.message()),
                    "choose another with --address or --port, or stop what is there");
    port = acceptor.local_endpoint().port();
    return {};
}

net::awaitable<void> HttpServer::State::accept() {
    while (!stopping.load()) {
        // Each connection runs on a strand of its own; two threads never touch one.
        tcp::socket socket{net::make_strand(io)};
        const auto [failed] = co_await acceptor.async_accept(socket, as_pair);
        if (failed == net::error::operation_aborted) co_return;
        if (failed) {
            // Out of file descriptors, mostly: wait for some to come back.
            complain_of(failed);
            net::steady_timer pause{io, std::chrono::milliseconds{100}};
            co_await pause.async_wait(as_pair);
            continue;
        }
        welcome(std::move(socket));
    }
}

namespace {

// Of IPv6 the network: one machine may call itself by any address of its /64.
std::string print_peer(const net::ip::address& address) {
    if (!address.is_v6() || address.to_v6().is_v4_mapped()) return address.to_string();
    auto bytes = address.to_v6().to_bytes();
    std::fill(bytes.begin() + 8, bytes.end(), std::uint8_t{0});
    return net::ip::make_address_v6(bytes).to_string();
}

}  // namespace

void HttpServer::State::welcome(tcp::socket socket) {
    error_code failed;
    const auto remote = socket.remote_endpoint(failed);
    if (failed) return;  // gone already
    std::string peer = print_peer(remote.address());
    const Places::Taken taken = places.take(peer);
    if (!taken.place) return;  // closed by its end
    if (taken.instead) {
        const std::lock_guard lock{mutex};
        if (const auto goes = open.find(*taken.instead); goes != open.end()) goes->second->make_room();
    }
    const auto executor = socket.get_executor();
    auto connection = std::make_shared<Connection>(*this, std::move(socket), *taken.place, std::move(peer));
    net::co_spawn(executor, [connection] { return connection->run(); }, net::detached);
}

// Once in a while: what keeps us from accepting would otherwise fill the disk as well.
void HttpServer::State::complain_of(const error_code& failed) {
    const auto now = std::chrono::steady_clock::now();
    if (now < next_complaint) return;
    next_complaint = now + std::chrono::seconds{10};
    log.error("no connection can be accepted", {{"what", failed.message()},
                                                {"connections", static_cast<std::int64_t>(connections.load())},
                                                {"try", "raise the limit of open files: LimitNOFILE, ulimit -n"}});
}

net::thread_pool& HttpServer::State::threads_of(Lane lane) {
    switch (lane) {
        case Lane::write:
            return writers;
        case Lane::enrol:
            return enrolling;
        case Lane::backup:
            return backups;
        default:
            return readers;
    }
}

void HttpServer::State::stop() {
    if (stopping.exchange(true)) return;
    net::post(io, [this] {
        error_code ignored;
        acceptor.close(ignored);
    });
    const auto close_resting = [this] {
        const std::lock_guard lock{mutex};
        for (const auto& [place, connection] : open) connection->close_soon();
    };
    // Resting connections go at once; whoever is being answered gets a moment.
    for (int i = 0; i < 20 && connections.load() > 0; ++i) {
        close_resting();
        std::this_thread::sleep_for(std::chrono::milliseconds{50});
    }
    for (net::thread_pool* pool : {&writers, &enrolling, &readers, &backups}) pool->join();
    io.stop();
    for (std::thread& thread : threads) thread.join();
}

HttpServer::HttpServer(std::unique_ptr<State> state) : state_{std::move(state)} {}
HttpServer::~HttpServer() { state_->stop(); }

Result<std::unique_ptr<HttpServer>> HttpServer::start(Options options, HttpDoor& door, Log& log) {
    auto state = std::make_unique<State>(std::move(options), door, log);
    if (auto listening = state->listen(); !listening) return std::unexpected(listening.error());
    net::co_spawn(state->io, state->accept(), net::detached);
    State& running = *state;
    for (int i = 0; i < state->options.threads; ++i) state->threads.emplace_back([&running] { running.io.run(); });
    return std::unique_ptr<HttpServer>{new HttpServer{std::move(state)}};
}

std::uint16_t HttpServer::port() const { return state_->port; }
std::size_t HttpServer::connections() const { return state_->connections.load(); }
std::size_t HttpServer::streams() const { return state_->streams.load(); }
void HttpServer::stop() { state_->stop(); }

}  // namespace bulkhead::shell
