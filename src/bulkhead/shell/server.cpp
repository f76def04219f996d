#include "bulkhead/shell/server.hpp"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <mutex>
#include <optional>
#include <thread>

#include "bulkhead/audit/tile_reader.hpp"
#include "bulkhead/auth/secret_file.hpp"
#include "bulkhead/auth/validity.hpp"
#include "bulkhead/codec/decode.hpp"
#include "bulkhead/shell/agent_door.hpp"
#include "bulkhead/shell/api.hpp"
#include "bulkhead/shell/bound_people.hpp"
#include "bulkhead/shell/catalog.hpp"
#include "bulkhead/shell/grpc_log.hpp"
#include "bulkhead/shell/http_server.hpp"
#include "bulkhead/shell/issuer.hpp"
#include "bulkhead/shell/key_rotation.hpp"
#include "bulkhead/shell/keys.hpp"
#include "bulkhead/shell/log_publisher.hpp"
#include "bulkhead/shell/loop.hpp"
#include "bulkhead/shell/machine_clock.hpp"
#include "bulkhead/shell/oidc.hpp"

namespace bulkhead::shell {

namespace {

class CatalogFollower final : public Follower {
public:
    explicit CatalogFollower(Catalog& catalog) : catalog_{catalog} {}
    void loaded(const Reign& reign) override { must(catalog_.replace(reign.rows)); }
    void committed(const Batch& batch) override { must(catalog_.feed(batch.rows)); }

private:
    // What the core writes, the core and everyone else can read; the store has checked every byte.
    static void must(const Result<>& done) { invariant(done.has_value(), done ? "" : done.error().what); }
    Catalog& catalog_;
};

class TokenFollower final : public Follower {
public:
    TokenFollower(auth::TokenBook& book, Catalog& catalog, Log& log) : book_{book}, catalog_{catalog}, log_{log} {}
    void loaded(const Reign& reign) override { take(reign.rows); }
    void committed(const Batch& batch) override { take(batch.rows); }

private:
    void take(std::span<const Row> rows) {
        bool any = false;
        for (const Row& row : rows) {
            if (row.table != Table::token) continue;
            any = true;
            if (row.erased) {
                for (const auth::StoredToken& token : book_.list())
                    if (token_row(token).key == row.key) book_.erase(token.id);
                continue;
            }
            auto token = from_json<auth::StoredToken>("a token", row.body);
            Result<> put = token ? book_.put(*std::move(token)) : std::unexpected(token.error());
            if (!put) log_.error("a token cannot be read; it is not good", {{"what", put.error().what}});
        }
        if (any) catalog_.wake();  // watches of a token that was taken back end now
    }
    auth::TokenBook& book_;
    Catalog& catalog_;
    Log& log_;
};

bool is_wildcard(const std::string& address) { return address == "0.0.0.0" || address == "::"; }

bool is_address(const std::string& name) {
    unsigned char buffer[16];
    return inet_pton(AF_INET, name.c_str(), buffer) == 1 || inet_pton(AF_INET6, name.c_str(), buffer) == 1;
}

auth::ServerNames names_for(const ServerOptions& options) {
    auth::ServerNames names{.dns = {"localhost"}, .addresses = {"127.0.0.1", "::1"}};
    const auto add = [](std::vector<std::string>& list, const std::string& one) {
        if (std::ranges::find(list, one) == list.end()) list.push_back(one);
    };
    char host[256] = {};
    if (gethostname(host, sizeof host - 1) == 0 && is_valid(Format::dotted, host)) add(names.dns, host);
    if (!is_wildcard(options.address)) add(names.addresses, options.address);
    for (const std::string& name : options.names) add(is_address(name) ? names.addresses : names.dns, name);
    return names;
}

std::string with_port(const std::string& host, std::uint16_t port) {
    return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port) : fmt::format("[{}]:{}", host, port);
}

}  // namespace

std::string restored_mark(const std::string& data) { return data + "/restored"; }

Result<> mark_restored(const std::string& data) {
    return auth::write_secret(restored_mark(data), "restored from a backup; not every node was heard of yet\n");
}

struct Server::State {
    State(ServerOptions options_, Log& log_)
        : options{std::move(options_)},
          log{log_},
          catalog{machine_clock().ms},
          catalog_follower{catalog},
          token_follower{tokens, catalog, log},
          people{[this] { catalog.wake(); }},
          agent_door{registry, Duration{options.silent_after.ms / 3}, log} {}

    Result<> start();
    Result<bool> take_in_what_a_backup_lost(store::Store& store, const audit::Publisher& publisher);
    void stop();

    ServerOptions options;
    Log& log;
    std::optional<ServerKeys> keys;
    std::string tiles;
    evidence::VerifierKey verifier;

    // In the order in which they need each other.
    auth::TokenBook tokens;
    Catalog catalog;
    CatalogFollower catalog_follower;
    TokenFollower token_follower;
    BoundPeople people;
    UsageBook usage;
    HistoryBook history;
    NodeRegistry registry;
    AgentDoor agent_door;
    Metrics metrics;
    std::unique_ptr<LogPublisher> publisher;
    std::unique_ptr<Certificates> certificates;
    std::unique_ptr<LogProofs> proofs;
    std::unique_ptr<Loop> loop;
    std::unique_ptr<KeyRotation> rotation;
    GrpcLog grpc_log{log};
    std::unique_ptr<wire::AgentServer> agents;
    std::unique_ptr<Oidc> oidc;  // null: there is no identity provider
    std::unique_ptr<Api> api;
    std::unique_ptr<HttpServer> http;

    std::mutex mutex;
    std::optional<Error> fenced;
    bool stopped = false;
};

// A log that has published more than the store knows: the store is a backup. The entries others hold stay in the log,
// without their payloads.
Result<bool> Server::State::take_in_what_a_backup_lost(store::Store& store, const audit::Publisher& published) {
    const auto position = store.position();
    if (!position) return std::unexpected(position.error());
    const std::uint64_t size = published.published();
    if (std::cmp_greater_equal(position->log_size, size)) return false;
    const auto reader = audit::TileReader::open(tiles);
    if (!reader) return std::unexpected(reader.error());
    std::vector<Hash> lost;
    for (auto index = static_cast<std::uint64_t>(position->log_size); index < size; ++index) {
        const auto entry = reader->entry(index, size);
        if (!entry) return std::unexpected(entry.error());
        const auto hash = hash_from(*entry);
        if (!hash) return fail(Code::corrupt, fmt::format("entry {} of the published log is no hash", index), "");
        lost.push_back(*hash);
    }
    if (auto marked = mark_restored(options.data); !marked) return std::unexpected(marked.error());
    if (auto imported = store.import_lost_leaves(position->log_size, lost); !imported)
        return std::unexpected(imported.error());
    log.warning("the store is older than the published log: it goes on as restored from a backup",
                {{"store", position->log_size}, {"log", static_cast<std::int64_t>(size)}});
    return true;
}

namespace {

// Each connection and each agent is a file; what is usual for a shell, 1024, is little for a server.
void raise_file_limit(Log& log) {
    constexpr rlim_t enough = 4096;
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    const rlim_t before = std::exchange(limit.rlim_cur, limit.rlim_max);
    const bool raised = before == limit.rlim_max || ::setrlimit(RLIMIT_NOFILE, &limit) == 0;
    const rlim_t now = raised ? limit.rlim_max : before;
    if (now < enough)
        log.warning("few files may be open at once",
                    {{"limit", static_cast<std::int64_t>(now)}, {"try", "LimitNOFILE=65536, or ulimit -Hn"}});
}

}  // namespace

Result<> Server::State::start() {
    raise_file_limit(log);
    if (auto made = make_directory(options.data); !made) return made;
    if (!options.oidc.issuer.empty()) {
        auto provider = Oidc::start(options.oidc, log);
        if (!provider) return std::unexpected(provider.error());
        oidc = *std::move(provider);
    }
    auto opened = open_keys({options.data + "/keys", names_for(options), options.log_origin, machine_clock()});
    if (!opened) return std::unexpected(opened.error());
    keys.emplace(*std::move(opened));
    const auto issuer = Issuer::make(keys->ca, options.node_certificate_lasts);
    if (!issuer) return std::unexpected(issuer.error());
    for (const auth::StoredToken& token : keys->bootstrap)
        if (auto put = tokens.put(token); !put) return put;
    tiles = options.data + "/tiles";
    const store::Options store_options{.path = options.data + "/bulkhead.db",
                                       .sync = options.sync ? store::Sync::full : store::Sync::off};

    // Holds the directory: a second server on the same data stops here, before it could take over by mistake.
    auto log_tiles = audit::Publisher::open(tiles, keys->log_origin, keys->log);
    if (!log_tiles) return std::unexpected(log_tiles.error());
    verifier = log_tiles->verifier_key();
    auto store = store::Store::open(store_options);
    if (!store) return std::unexpected(store.error());
    const auto lost = take_in_what_a_backup_lost(*store, *log_tiles);
    if (!lost) return std::unexpected(lost.error());

    // A change of the log's key that was cut short: until it is settled, both sign.
    const LogKeyFiles key_files{options.data + "/keys"};
    auto next_key = key_files.next();
    if (!next_key) return std::unexpected(next_key.error());
    if (*next_key) log_tiles->cosign((*next_key)->key);
    publisher = std::make_unique<LogPublisher>(*std::move(log_tiles), store_options, log);
    certificates = std::make_unique<Certificates>(
        store_options, tiles, Certificates::Signers{keys->log_origin, keys->log, keys->lab}, store->secret());
    if (*next_key) certificates->introduce_lab_by((*next_key)->key);
    Loop::Settings settings{.store = store_options, .tick = options.tick};
    settings.core.silent_after = options.silent_after;
    settings.core.lost_after = options.lost_after;
    settings.core.simulated_fleet = options.simulated_fleet;
    settings.core.restored = *lost || std::filesystem::exists(restored_mark(options.data));
    settings.on_fenced = [this](const Error& error) {
        const std::lock_guard lock{mutex};
        fenced = error;
    };
    auto started = Loop::start(std::move(settings),
                               {&usage, &history, &catalog_follower, &token_follower, &people, &registry,
                                &metrics.ledger(), publisher.get(), &agent_door},
                               log, *std::move(store));
    if (!started) return std::unexpected(started.error());
    loop = *std::move(started);
    std::filesystem::remove(restored_mark(options.data));  // the store remembers it from here on
    publisher->start();
    auto opened_proofs = LogProofs::open(tiles, verifier);
    if (!opened_proofs) return std::unexpected(opened_proofs.error());
    proofs = std::make_unique<LogProofs>(*std::move(opened_proofs));
    auto changes =
        KeyRotation::open(key_files, verifier, *std::move(next_key), {*publisher, *certificates, *proofs, *loop, log});
    if (!changes) return std::unexpected(changes.error());
    rotation = *std::move(changes);
    // A disk that refuses keeps the doors closed no longer than it must: both keys go on signing.
    if (const auto settled = rotation->resume(); !settled)
        log.error("the change of the log's key is not settled",
                  {{"what", settled.error().what}, {"try", settled.error().remedy}});
    for (const auth::StoredToken& token : keys->bootstrap)
        if (!tokens.in_force(token.id, machine_clock()))
            log.warning("a token in a file was taken back",
                        {{"role", word(token.role)},
                         {"folder", options.data + "/keys"},
                         {"try", "remove the file and start again: a new one is made"}});

    auto grpc = wire::AgentServer::start({.address = with_port(options.address, options.agent_port),
                                          .ca = keys->ca.certificate,
                                          .certificate = keys->server.certificate,
                                          .key = keys->server.key},
                                         agent_door);
    if (!grpc) return std::unexpected(grpc.error());
    agents = *std::move(grpc);
    agent_door.open(*loop, *agents, *issuer);

    Api::Settings api_settings{.issuer = *issuer,
                               .agents_port = agents->port(),
                               .tiles = tiles,
                               .store = store_options,
                               .scratch = options.data,
                               .rate = {options.requests_per_second, 2 * options.requests_per_second},
                               .agents = [this] { return agents->sessions(); },
                               .oidc = oidc.get(),
                               .people = &people};
    for (const auth::StoredToken& token : keys->bootstrap) api_settings.bootstrap_tokens.push_back(token.id);
    for (const auto& [name, pem] :
         {std::pair{"ca", keys->ca.certificate}, std::pair{"server", keys->server.certificate}})
        if (const auto until = auth::good_until(pem)) api_settings.certificate_ends.emplace_back(name, *until);
    if (!options.names.empty())
        api_settings.agents_host = options.names.front();
    else if (!is_wildcard(options.address))
        api_settings.agents_host =
            options.address.find(':') == std::string::npos ? options.address : fmt::format("[{}]", options.address);
    api = std::make_unique<Api>(
        Api::Parts{catalog, *loop, tokens, *certificates, metrics, agent_door, log, usage, history, *proofs, *rotation},
        std::move(api_settings));
    remove_unfinished_backups(options.data);
    auto https = HttpServer::start({.address = options.address,
                                    .port = options.port,
                                    .certificate = keys->server.certificate,
                                    .key = keys->server.key},
                                   *api, log);
    if (!https) return std::unexpected(https.error());
    http = *std::move(https);
    log.info("the doors are open", {{"https", with_port(options.address, http->port())},
                                    {"agents", with_port(options.address, agents->port())},
                                    {"log", print(rotation->key())}});
    return {};
}

// Doors first, then the loop, which answers whoever still waits; the log's publisher has the last word.
void Server::State::stop() {
    {
        const std::lock_guard lock{mutex};
        if (std::exchange(stopped, true)) return;
    }
    if (http) http->stop();
    if (loop) loop->stop();
    agents.reset();  // after the loop, which sends through it
    if (publisher) publisher->stop();
    http.reset();
    api.reset();
    rotation.reset();
    loop.reset();
    log.info("stopped");
}

Server::Server(std::unique_ptr<State> state) : state_{std::move(state)} {}
Server::~Server() { state_->stop(); }

Result<std::unique_ptr<Server>> Server::start(ServerOptions options, Log& log) {
    // The allocator's fast bins are emptied all at once whenever somebody asks for a large block, and every request
    // does. Without them a submit costs about a tenth less.
    mallopt(M_MXFAST, 0);
    auto state = std::make_unique<State>(std::move(options), log);
    if (auto started = state->start(); !started) {
        state->stop();
        return std::unexpected(started.error());
    }
    return std::unique_ptr<Server>{new Server{std::move(state)}};
}

std::uint16_t Server::port() const { return state_->http->port(); }
std::uint16_t Server::agent_port() const { return state_->agents->port(); }
std::string Server::url() const {
    const std::string& address = state_->options.address;
    return "https://" + with_port(is_wildcard(address) ? "127.0.0.1" : address, port());
}
std::string Server::token_file() const { return state_->keys->token_file; }
std::string Server::ca_file() const { return state_->keys->ca_file; }
std::string Server::verifier_key() const { return print(state_->rotation->key()); }
std::string Server::tiles() const { return state_->tiles; }

namespace {

sigset_t stop_signals() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    return set;
}

}  // namespace

void Server::hold_signals() {
    const sigset_t set = stop_signals();
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
    std::signal(SIGPIPE, SIG_IGN);
}

Result<> Server::wait() {
    const sigset_t set = stop_signals();
    for (;;) {
        const timespec moment{.tv_sec = 0, .tv_nsec = 200'000'000};
        if (sigtimedwait(&set, nullptr, &moment) > 0) return {};
        const std::lock_guard lock{state_->mutex};
        if (state_->fenced) return std::unexpected(*state_->fenced);
        if (state_->stopped) return {};
    }
}

void Server::stop() { state_->stop(); }

}  // namespace bulkhead::shell
