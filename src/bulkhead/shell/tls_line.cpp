#include "bulkhead/shell/tls_line.hpp"

#include <netinet/tcp.h>
#include <openssl/err.h>
#include <sys/socket.h>

#include <algorithm>

namespace bulkhead::shell {

namespace {
constexpr std::chrono::milliseconds turn{1};
}

TlsLine::TlsLine(Socket socket, SSL_CTX& context) : socket_{std::move(socket)}, tls_{SSL_new(&context)} {
    error_code ignored;
    socket_.non_blocking(true, ignored);
    socket_.set_option(net::ip::tcp::no_delay{true}, ignored);
    // What was sent and never acknowledged ends the connection, whatever the other side's machine has become.
    const int patience_ms = 60'000;
    ::setsockopt(socket_.native_handle(), IPPROTO_TCP, TCP_USER_TIMEOUT, &patience_ms, sizeof patience_ms);
    if (!tls_) return;
    SSL_set_fd(tls_.get(), socket_.native_handle());
    SSL_set_accept_state(tls_.get());
    SSL_set_read_ahead(tls_.get(), 1);  // one call for a record, not one for its first five bytes and one for the rest
    SSL_set_mode(tls_.get(), SSL_MODE_ENABLE_PARTIAL_WRITE);
}

void TlsLine::hang_up() {
    // Not closed here: its number could become another connection's while OpenSSL still holds it.
    error_code ignored;
    socket_.shutdown(Socket::shutdown_both, ignored);
    socket_.cancel(ignored);
}

void TlsLine::stop_waiting() {
    error_code ignored;
    socket_.cancel(ignored);
}

Awaitable<bool> TlsLine::take_turns() {
    if (Clock::now() < turn_ends_) co_return true;
    co_await net::post(executor(), net::use_awaitable_t<Executor>{});
    turn_ends_ = Clock::now() + turn;
    co_return !expired(Clock::now());
}

Awaitable<bool> TlsLine::wait_after(int outcome) {
    const int wanted = SSL_get_error(tls_.get(), outcome);
    if (wanted != SSL_ERROR_WANT_READ && wanted != SSL_ERROR_WANT_WRITE) co_return false;
    const auto [failed] =
        co_await socket_.async_wait(wanted == SSL_ERROR_WANT_READ ? Socket::wait_read : Socket::wait_write, as_pair);
    turn_ends_ = Clock::now() + turn;
    co_return !failed;
}

Awaitable<bool> TlsLine::shake_hands() {
    if (!tls_) co_return false;
    for (;;) {
        ERR_clear_error();
        const int outcome = SSL_do_handshake(tls_.get());
        if (outcome == 1) co_return true;
        if (!co_await wait_after(outcome)) co_return false;
    }
}

Awaitable<std::size_t> TlsLine::read_some(std::span<char> into) {
    for (;;) {
        if (!co_await take_turns()) co_return 0;
        ERR_clear_error();
        std::size_t got = 0;
        const int outcome = SSL_read_ex(tls_.get(), into.data(), into.size(), &got);
        if (outcome == 1) co_return got;
        if (!co_await wait_after(outcome)) co_return 0;
    }
}

Awaitable<bool> TlsLine::write(std::string_view bytes) {
    while (!bytes.empty()) {
        if (!co_await take_turns()) co_return false;
        ERR_clear_error();
        std::size_t sent = 0;
        const int outcome = SSL_write_ex(tls_.get(), bytes.data(), bytes.size(), &sent);
        if (outcome == 1)
            bytes.remove_prefix(sent);
        else if (!co_await wait_after(outcome))
            co_return false;
    }
    co_return true;
}

Awaitable<void> TlsLine::close() {
    ERR_clear_error();
    SSL_shutdown(tls_.get());
    error_code failed;
    socket_.shutdown(Socket::shutdown_send, failed);
    char unread[4096];
    for (std::size_t taken = 0; !failed && taken < (1 << 20);) {
        const auto [gone] = co_await socket_.async_wait(Socket::wait_read, as_pair);
        if (gone) break;
        taken += std::max<std::size_t>(1, socket_.read_some(net::buffer(unread), failed));
        if (failed == net::error::would_block) failed = {};
    }
}

}  // namespace bulkhead::shell
