// A client that can misbehave: raw bytes over TLS, written with OpenSSL alone, so that it shares nothing with the
// server.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "bulkhead/base/result.hpp"

namespace bulkhead::shell {

struct Heard {
    int status = 0;
    std::map<std::string, std::string> headers;  // names in lower case
    std::string body;
};

class Probe {
public:
    // `ca`: what must vouch for the server; empty: nobody looks.
    explicit Probe(std::uint16_t port, const std::string& ca = {}, bool with_tls = true) {
        std::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes without MSG_NOSIGNAL
        socket_ = ::socket(AF_INET, SOCK_STREAM, 0);
        const timeval patience{.tv_sec = 10, .tv_usec = 0};
        setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(port);
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        connected_ = ::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
        if (!connected_ || !with_tls) return;
        context_.reset(SSL_CTX_new(TLS_client_method()));
        if (!ca.empty()) {
            const std::unique_ptr<BIO, decltype(&BIO_free)> bio{BIO_new_mem_buf(ca.data(), static_cast<int>(ca.size())),
                                                                BIO_free};
            X509* certificate = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr);
            X509_STORE_add_cert(SSL_CTX_get_cert_store(context_.get()), certificate);
            X509_free(certificate);
            SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
        }
        tls_.reset(SSL_new(context_.get()));
        SSL_set_fd(tls_.get(), socket_);
        connected_ = SSL_connect(tls_.get()) == 1;
    }
    ~Probe() {
        tls_.reset();
        ::close(socket_);
    }
    Probe(const Probe&) = delete;
    Probe& operator=(const Probe&) = delete;

    bool connected() const { return connected_; }

    bool send(std::string_view bytes) {
        if (!tls_)
            return ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
        return SSL_write(tls_.get(), bytes.data(), static_cast<int>(bytes.size())) == static_cast<int>(bytes.size());
    }

    // Some bytes; nothing when the other side has closed or said nothing for ten seconds.
    std::string some() {
        char buffer[16384];
        const auto got = tls_ ? SSL_read(tls_.get(), buffer, sizeof buffer)
                              : static_cast<int>(::recv(socket_, buffer, sizeof buffer, 0));
        return got > 0 ? std::string(buffer, static_cast<std::size_t>(got)) : std::string{};
    }
    // Reads until `text` is there.
    bool read_until(std::string_view text) {
        while (unread_.find(text) == std::string::npos) {
            const std::string more = some();
            if (more.empty()) return false;
            unread_ += more;
        }
        return true;
    }
    std::string& unread() { return unread_; }

    // Whether the server hangs up within the time.
    bool closed_within(std::chrono::milliseconds limit) {
        const auto until = std::chrono::steady_clock::now() + limit;
        while (std::chrono::steady_clock::now() < until) {
            const timeval moment{.tv_sec = 0, .tv_usec = 100'000};
            setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &moment, sizeof moment);
            char buffer[4096];
            const auto got =
                ::recv(socket_, buffer, sizeof buffer, 0);  // below TLS: its goodbye is bytes, then the end
            if (got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK)) return true;
        }
        return false;
    }

    // One answer with a Content-Length.
    std::optional<Heard> hear(bool head_only = false) {
        if (!read_until("\r\n\r\n")) return std::nullopt;
        Heard heard;
        const std::size_t end = unread_.find("\r\n\r\n");
        std::string head = unread_.substr(0, end + 2);
        unread_.erase(0, end + 4);
        heard.status = std::stoi(head.substr(9, 3));
        for (std::size_t at = head.find("\r\n") + 2; at < head.size();) {
            const std::size_t line_end = head.find("\r\n", at), colon = head.find(": ", at);
            std::string name = head.substr(at, colon - at);
            for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
            heard.headers[name] = head.substr(colon + 2, line_end - colon - 2);
            at = line_end + 2;
        }
        if (head_only || heard.status == 304 || heard.status == 100) return heard;
        const std::size_t length =
            heard.headers.contains("content-length") ? std::stoul(heard.headers["content-length"]) : 0;
        while (unread_.size() < length) {
            const std::string more = some();
            if (more.empty()) return std::nullopt;
            unread_ += more;
        }
        heard.body = unread_.substr(0, length);
        unread_.erase(0, length);
        return heard;
    }

    std::optional<Heard> ask(const std::string& method, const std::string& target, const std::string& body = {},
                             const std::string& headers = {}) {
        std::string text = method + " " + target + " HTTP/1.1\r\nHost: localhost\r\n" + headers;
        if (!body.empty() || method == "POST" || method == "PUT")
            text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
        if (!send(text + "\r\n" + body)) return std::nullopt;
        return hear(method == "HEAD");
    }

private:
    struct Free {
        void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
        void operator()(SSL* tls) const { SSL_free(tls); }
    };
    int socket_ = -1;
    std::unique_ptr<SSL_CTX, Free> context_;
    std::unique_ptr<SSL, Free> tls_;
    bool connected_ = false;
    std::string unread_;
};

}  // namespace bulkhead::shell
