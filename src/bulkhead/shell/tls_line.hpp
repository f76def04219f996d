// One TLS connection as coroutines see it. OpenSSL reads and writes the socket itself; only when the socket would block
// is anything waited for, so that a request that has arrived is read, and an answer that fits is sent, without a
// detour. Lives on one thread. Its deadline is looked at by whoever sweeps (HttpWorker), a few times a second: a
// timer for each read and write would cost more than the reading and writing.
#pragma once

#include <openssl/ssl.h>

#include <boost/asio.hpp>
#include <chrono>
#include <memory>
#include <span>
#include <string_view>

namespace bulkhead::shell {

namespace net = boost::asio;
using boost::system::error_code;
// The executor's own type, not any executor: it is copied at every step of every coroutine.
using Executor = net::io_context::executor_type;
template <class T>
using Awaitable = net::awaitable<T, Executor>;
using Socket = net::basic_stream_socket<net::ip::tcp, Executor>;
using Timer =
    net::basic_waitable_timer<std::chrono::steady_clock, net::wait_traits<std::chrono::steady_clock>, Executor>;
inline constexpr auto as_pair = net::as_tuple(net::use_awaitable_t<Executor>{});

class TlsLine {
public:
    using Clock = std::chrono::steady_clock;

    TlsLine(Socket socket, SSL_CTX& context);

    // False, or nothing read: the other side is gone, speaks something else, or took too long.
    Awaitable<bool> shake_hands();
    Awaitable<std::size_t> read_some(std::span<char> into);
    Awaitable<bool> write(std::string_view bytes);
    // Says good-bye, and reads on for a moment what is still on its way: whoever is cut off while sending may never see
    // the answer that explains why.
    Awaitable<void> close();

    void expire_after(std::chrono::milliseconds within) { deadline_ = Clock::now() + within; }
    void never_expire() { deadline_ = Clock::time_point::max(); }
    bool expired(Clock::time_point now) const { return now >= deadline_; }
    void hang_up();  // at once; whoever waits on the line hears that it is gone

    // Lets the others of this thread have their turn when this line has gone on long enough without waiting for
    // anything; who always has more to say, or always takes what is sent, would otherwise keep the thread. False: time
    // is up.
    Awaitable<bool> take_turns();

    void stop_waiting();  // for a byte; nothing else changes
    Executor executor() { return socket_.get_executor(); }

private:
    // What OpenSSL wants before it can go on. False: there is no going on.
    Awaitable<bool> wait_after(int outcome);

    struct Free {
        void operator()(SSL* tls) const { SSL_free(tls); }
    };
    Socket socket_;
    std::unique_ptr<SSL, Free> tls_;
    Clock::time_point deadline_ = Clock::time_point::max();
    Clock::time_point turn_ends_{};
};

}  // namespace bulkhead::shell
