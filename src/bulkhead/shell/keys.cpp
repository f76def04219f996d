#include "bulkhead/shell/keys.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <openssl/rand.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>

#include "bulkhead/auth/secret_file.hpp"
#include "bulkhead/base/hash.hpp"
#include "bulkhead/evidence/lab_key.hpp"
#include "bulkhead/shell/log_key_files.hpp"

namespace bulkhead::shell {

namespace {

constexpr Duration ca_lasts = Duration::days(3650), server_lasts = Duration::days(365),
                   renew_before = Duration::days(30);
constexpr Duration client_skew{-300'000};  // clients whose clocks are a little behind

Result<std::string> random_bytes(std::size_t count) {
    std::string bytes(count, '\0');
    if (RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(count)) != 1)
        return fail(Code::unavailable, "the operating system gives no random bytes", "");
    return bytes;
}

bool exists(const std::string& path) {
    std::error_code ignored;
    return std::filesystem::exists(path, ignored);
}

// What is in the file; when there is none, what `make` makes, written first.
template <class Make>
Result<std::string> kept(const std::string& path, Make&& make) {
    if (exists(path)) return auth::read_secret(path);
    Result<std::string> made = make();
    if (!made) return made;
    if (auto written = auth::write_secret(path, *made); !written) return std::unexpected(written.error());
    return made;
}

// Two files that make sense only together. `later`: what is written right after them, so that without it the first
// start was cut short, and nobody has relied on the half that is there.
Result<> check_both(const std::string& one, const std::string& other, const std::string& later,
                    const std::string& remedy) {
    if (exists(one) == exists(other) || !exists(later)) return {};
    const std::string& here = exists(one) ? one : other;
    const std::string& lost = exists(one) ? other : one;
    return fail(Code::corrupt, fmt::format("{} is here, and {} is not", here, lost), remedy);
}

Result<auth::KeyPair> open_ca(const std::string& directory, Instant now) {
    const std::string key = directory + "/ca.key", certificate = directory + "/ca.crt";
    const auto both = check_both(key, certificate, directory + "/server.pem",
                                 "put it back from a copy of this folder (the certificate is also the last one in "
                                 "server.pem, and every agent keeps it); or remove both, and enrol every node again");
    if (!both) return std::unexpected(both.error());
    if (!exists(key) || !exists(certificate)) {
        auto made = auth::create_ca("Bulkhead fleet CA", {now + client_skew, now + ca_lasts});
        if (!made) return made;
        if (auto written = auth::write_secret(key, made->key); !written) return std::unexpected(written.error());
        if (auto written = auth::write_secret(certificate, made->certificate); !written)
            return std::unexpected(written.error());
        return made;
    }
    auto key_text = auth::read_secret(key);
    if (!key_text) return std::unexpected(key_text.error());
    auto certificate_text = auth::read_secret(certificate);
    if (!certificate_text) return std::unexpected(certificate_text.error());
    auth::KeyPair pair{*std::move(key_text), *std::move(certificate_text)};
    if (const auto fits = auth::check_pair(pair); !fits)
        return fail(Code::corrupt, fmt::format("{} and {}: {}", key, certificate, fits.error().what),
                    "put both back from one copy of this folder");
    return pair;
}

// A certificate and its authority's, one after the other, as clients get to see them.
bool is_chain_of(const auth::KeyPair& ca, const std::string& chain) {
    if (!chain.ends_with(ca.certificate)) return false;
    return auth::check_issued(ca.certificate, chain.substr(0, chain.size() - ca.certificate.size())).has_value();
}

// Issued anew when it runs out soon, or the names or the authority have changed; nobody pins it, the CA is what is
// trusted.
Result<auth::KeyPair> open_server(const std::string& directory, const auth::KeyPair& ca, const auth::ServerNames& names,
                                  Instant now) {
    const std::string path = directory + "/server.pem", about = directory + "/server.names";
    const std::string wanted = fmt::format("{} {}", fmt::join(names.dns, ","), fmt::join(names.addresses, ","));
    if (exists(path) && exists(about)) {
        const auto pem = auth::read_secret(path), told = auth::read_secret(about);
        if (pem && told) {
            const std::size_t blank = told->find(' ');
            std::int64_t until = 0;
            std::from_chars(told->data(), told->data() + std::min(blank, told->size()), until);
            const std::size_t split = pem->find("-----BEGIN CERTIFICATE");
            if (blank != told->npos && told->substr(blank + 1) == wanted && until > (now + renew_before).ms &&
                split != pem->npos && is_chain_of(ca, pem->substr(split)))
                return auth::KeyPair{pem->substr(0, split), pem->substr(split)};
        }
    }
    const Instant until = now + server_lasts;
    auto issued = auth::issue_server(ca, names, {now + client_skew, until});
    if (!issued) return issued;
    issued->certificate += ca.certificate;
    if (auto written = auth::write_secret(path, issued->key + issued->certificate); !written)
        return std::unexpected(written.error());
    if (auto written = auth::write_secret(about, fmt::format("{} {}", until.ms, wanted)); !written)
        return std::unexpected(written.error());
    return issued;
}

// The key that what no hardware did is certified with. Losing it costs nothing: the next start makes another, and the
// log's key introduces that one; certificates bring the introduction of theirs along.
Result<evidence::SigningKey> open_lab(const std::string& directory, const std::string& log_origin) {
    const auto seed = kept(directory + "/lab.seed", [] { return random_bytes(32); });
    if (!seed) return std::unexpected(seed.error());
    auto key = evidence::SigningKey::from_seed(*seed);
    if (!key)
        return fail(Code::corrupt, fmt::format("{}/lab.seed holds no key: {}", directory, key.error().what),
                    "remove it; another is made");
    const std::string verifier = print(evidence::VerifierKey{evidence::lab_name(log_origin), key->public_key()}) + "\n";
    const std::string told = directory + "/lab.vkey";
    if (const auto there = exists(told) ? auth::read_secret(told) : Result<std::string>{}; !there || *there != verifier)
        if (auto written = auth::write_secret(told, verifier); !written) return std::unexpected(written.error());
    return key;
}

// The text in the file, or a new one; who it is for is filled in by the caller.
Result<auth::StoredToken> bootstrap_token(const std::string& file) {
    const auto token = kept(file, []() -> Result<std::string> { return auth::new_token() + "\n"; });
    if (!token) return std::unexpected(token.error());
    const auto hash = auth::hash_of_token(std::string_view{*token}.substr(0, token->find('\n')));
    if (!hash) return fail(Code::invalid, file + " does not hold a token", "remove it; a new one is made");
    const std::string digits = to_hex(bytes_of(*hash));
    return auth::StoredToken{.id = digits.substr(0, 16), .hash = digits, .purpose = auth::TokenPurpose::api};
}

}  // namespace

Result<> make_directory(const std::string& path) {
    if (::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return {};
    return fail(Code::unavailable, fmt::format("{} cannot be made: {}", path, std::strerror(errno)),
                "make its parent directory, or choose another with --data");
}

Result<ServerKeys> open_keys(const ServerKeysWish& wish) {
    if (auto made = make_directory(wish.directory); !made) return std::unexpected(made.error());
    auto ca = open_ca(wish.directory, wish.now);
    if (!ca) return std::unexpected(ca.error());
    auto server = open_server(wish.directory, *ca, wish.names, wish.now);
    if (!server) return std::unexpected(server.error());
    const auto both = check_both(wish.directory + "/log.seed", wish.directory + "/log.origin",
                                 wish.directory + "/log.vkey", "put it back from a copy of this folder");
    if (!both) return std::unexpected(both.error());
    if (auto forward = LogKeyFiles{wish.directory}.roll_forward(); !forward) return std::unexpected(forward.error());
    const auto seed = kept(wish.directory + "/log.seed", [] { return random_bytes(32); });
    if (!seed) return std::unexpected(seed.error());
    auto log = evidence::SigningKey::from_seed(*seed);
    if (!log) return std::unexpected(log.error());
    const auto origin = kept(wish.directory + "/log.origin", [&]() -> Result<std::string> {
        if (!wish.log_origin.empty()) return wish.log_origin;
        const auto name = random_bytes(6);
        if (!name) return name;
        return "bulkhead/" + to_hex(*name);
    });
    if (!origin) return std::unexpected(origin.error());
    if (!wish.log_origin.empty() && *origin != wish.log_origin)
        return fail(Code::conflict, fmt::format("this log is called {}, not {}", *origin, wish.log_origin),
                    "a log keeps its name for life; leave the option out");
    // For whoever checks the log: not a secret, but of no use to others either.
    const std::string verifier = print(evidence::VerifierKey{*origin, log->public_key()}) + "\n";
    const auto told = kept(wish.directory + "/log.vkey", [&]() -> Result<std::string> { return verifier; });
    if (!told) return std::unexpected(told.error());
    if (*told != verifier)
        return fail(Code::corrupt,
                    fmt::format("{0}/log.vkey, which others trust, is not of {0}/log.seed", wish.directory),
                    "put both back from one copy of this folder");
    auto lab = open_lab(wish.directory, *origin);
    if (!lab) return std::unexpected(lab.error());
    // One for each of the duties that nobody holds together.
    struct Duty {
        std::string_view file, subject;
        Role role{};
    };
    std::vector<auth::StoredToken> bootstrap;
    for (const Duty& duty : {Duty{"admin.token", "admin", Role::platform_admin},
                             Duty{"security.token", "security-admin", Role::security_admin},
                             Duty{"auditor.token", "auditor", Role::auditor}}) {
        auto token = bootstrap_token(fmt::format("{}/{}", wish.directory, duty.file));
        if (!token) return std::unexpected(token.error());
        token->role = duty.role;
        token->subject = duty.subject;
        token->createdAt = wish.now;
        bootstrap.push_back(*std::move(token));
    }
    return ServerKeys{.ca = *std::move(ca),
                      .server = *std::move(server),
                      .log = *std::move(log),
                      .log_origin = *origin,
                      .lab = *std::move(lab),
                      .bootstrap = std::move(bootstrap),
                      .token_file = wish.directory + "/admin.token",
                      .ca_file = wish.directory + "/ca.crt"};
}

}  // namespace bulkhead::shell
