#include "bulkhead/shell/http_server.hpp"

#include <fmt/core.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <csignal>

#include "bulkhead/shell/http_connection.hpp"

namespace bulkhead::shell {

namespace {

std::string tls_errors() {
    std::string text;
    while (const unsigned long code = ERR_get_error()) {
        char line[256];
        ERR_error_string_n(code, line, sizeof line);
        text += (text.empty() ? "" : "; ") + std::string{line};
    }
    return text;
}

// The certificate, then what vouches for it.
bool use_chain(SSL_CTX& context, const std::string& pem) {
    const std::unique_ptr<BIO, decltype(&BIO_free)> bio{BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())),
                                                        BIO_free};
    using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
    const auto next = [&] { return Certificate{PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr), X509_free}; };
    const Certificate own = next();
    if (!own || SSL_CTX_use_certificate(&context, own.get()) != 1) return false;
    while (const Certificate voucher = next())
        if (SSL_CTX_add1_chain_cert(&context, voucher.get()) != 1) return false;
    const bool at_the_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;  // and not at a damaged one
    if (at_the_end) ERR_clear_error();
    return at_the_end;
}

bool use_key(SSL_CTX& context, const std::string& pem) {
    const std::unique_ptr<BIO, decltype(&BIO_free)> bio{BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())),
                                                        BIO_free};
    const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key{
        PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr), EVP_PKEY_free};
    return key && SSL_CTX_use_PrivateKey(&context, key.get()) == 1 && SSL_CTX_check_private_key(&context) == 1;
}

}  // namespace

Result<> HttpServer::State::listen() {
    ERR_clear_error();
    tls.reset(SSL_CTX_new(TLS_server_method()));
    if (!tls) return fail(Code::unavailable, "TLS cannot be set up: " + tls_errors(), "check the OpenSSL library");
    SSL_CTX_set_min_proto_version(tls.get(), TLS1_2_VERSION);
    SSL_CTX_set_options(tls.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    if (!use_chain(*tls, options.certificate) || !use_key(*tls, options.key))
        return fail(Code::invalid, "the server's certificate or key cannot be used: " + tls_errors(),
                    "remove them from the data directory; they are made anew");
    error_code failed;
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

Awaitable<void> HttpServer::State::accept() {
    while (!stopping.load()) {
        HttpWorker& worker = workers[next_worker++ % workers.size()];
        Socket socket{worker.io.get_executor()};
        const auto [failed] = co_await acceptor.async_accept(socket, as_pair);
        if (failed == net::error::operation_aborted) co_return;
        if (failed) {
            // Out of file descriptors, mostly: wait for some to come back.
            complain_of(failed);
            Timer pause{acceptor.get_executor(), std::chrono::milliseconds{100}};
            co_await pause.async_wait(as_pair);
            continue;
        }
        welcome(worker, std::move(socket));
    }
}

Awaitable<void> HttpWorker::sweep() {
    for (Timer pause{io.get_executor()};;) {
        pause.expires_after(std::chrono::milliseconds{100});
        co_await pause.async_wait(as_pair);
        const auto now = TlsLine::Clock::now();
        for (Connection* connection : connections)
            if (connection->line().expired(now)) connection->line().hang_up();
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

void HttpServer::State::welcome(HttpWorker& worker, Socket socket) {
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
    auto connection = std::make_shared<Connection>(*this, worker, std::move(socket), *taken.place, std::move(peer));
    // Handed over whole: its end belongs to its worker's thread, and this is another's.
    net::co_spawn(
        worker.io.get_executor(), [connection = std::move(connection)] { return connection->run(); }, net::detached);
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
    net::post(acceptor.get_executor(), [this] {
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
    for (HttpWorker& worker : workers) worker.io.stop();
    for (HttpWorker& worker : workers) worker.thread.join();
}

namespace {

// OpenSSL writes to sockets as to files: one that the other side has closed would end the process.
void block_sigpipe() {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

}  // namespace

HttpServer::HttpServer(std::unique_ptr<State> state) : state_{std::move(state)} {}
HttpServer::~HttpServer() { state_->stop(); }

Result<std::unique_ptr<HttpServer>> HttpServer::start(Options options, HttpDoor& door, Log& log) {
    auto state = std::make_unique<State>(std::move(options), door, log);
    if (auto listening = state->listen(); !listening) return std::unexpected(listening.error());
    net::co_spawn(state->acceptor.get_executor(), state->accept(), net::detached);
    for (HttpWorker& worker : state->workers) {
        net::co_spawn(worker.io.get_executor(), worker.sweep(), net::detached);
        worker.thread = std::thread{[&worker] {
            block_sigpipe();
            worker.io.run();
        }};
    }
    return std::unique_ptr<HttpServer>{new HttpServer{std::move(state)}};
}

std::uint16_t HttpServer::port() const { return state_->port; }
std::size_t HttpServer::connections() const { return state_->connections.load(); }
std::size_t HttpServer::streams() const { return state_->streams.load(); }
void HttpServer::stop() { state_->stop(); }

}  // namespace bulkhead::shell
