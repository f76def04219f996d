// What each route does: reads come from the catalog, writes go through the commit loop, evidence comes from the log. It
// decides who may ask; what is allowed is the core's to decide.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "bulkhead/auth/token.hpp"
#include "bulkhead/shell/agent_door.hpp"
#include "bulkhead/shell/catalog.hpp"
#include "bulkhead/shell/certificates.hpp"
#include "bulkhead/shell/http_server.hpp"
#include "bulkhead/shell/issuer.hpp"
#include "bulkhead/shell/log.hpp"
#include "bulkhead/shell/loop.hpp"
#include "bulkhead/shell/metrics.hpp"
#include "bulkhead/shell/rate.hpp"
#include "bulkhead/shell/routes.hpp"

namespace bulkhead::shell {

class Api final : public HttpDoor {
public:
    struct Parts {  // all outlive the Api
        Catalog& catalog;
        Loop& loop;
        auth::TokenBook& tokens;
        Certificates& certificates;
        Metrics& metrics;
        AgentDoor& agents;
        Log& log;
    };
    struct Settings {
        Issuer issuer;
        std::string agents_host;  // empty: the name by which the agent reached us
        std::uint16_t agents_port = 0;
        std::string tiles;                    // directory
        std::string verifier_key;             // of the log
        std::string bootstrap_token;          // its id: its text is in a file that every start reads
        store::Options store;                 // what is backed up
        std::string scratch;                  // directory for backups under way
        Rate rate;                            // per token
        Rate stranger_rate{100, 400};         // per address, without a valid token
        std::function<Instant()> clock;       // empty: the machine's
        std::function<std::size_t()> agents;  // how many are connected
    };
    Api(Parts parts, Settings settings);
    ~Api() override;

    std::expected<Admission, Response> admit(const Head& head) override;
    void handle(const Admission& admission, Request request, Respond respond) override;
    void note(const Admission* admission, int status, std::int64_t microseconds) override;

    // One for each row of the table.
    void list(const Call& call, const Respond& respond);
    void get(const Call& call, const Respond& respond);
    void create(const Call& call, const Respond& respond);
    void replace(const Call& call, const Respond& respond);
    void remove(const Call& call, const Respond& respond);
    void apply(const Call& call, const Respond& respond);
    void what_if(const Call& call, const Respond& respond);
    void snapshot(const Call& call, const Respond& respond);

    void explain(const Call& call, const Respond& respond);
    void output(const Call& call, const Respond& respond);
    void queue(const Call& call, const Respond& respond);
    void drain(const Call& call, const Respond& respond);
    void undrain(const Call& call, const Respond& respond);
    void repair(const Call& call, const Respond& respond);
    void revoke(const Call& call, const Respond& respond);
    void freeze(const Call& call, const Respond& respond);
    void thaw(const Call& call, const Respond& respond);
    void hold(const Call& call, const Respond& respond);
    void unhold(const Call& call, const Respond& respond);

    void list_tokens(const Call& call, const Respond& respond);
    void create_token(const Call& call, const Respond& respond);
    void create_enrolment_token(const Call& call, const Respond& respond);
    void delete_token(const Call& call, const Respond& respond);
    void enrol(const Call& call, const Respond& respond);

    void log_checkpoint(const Call& call, const Respond& respond);
    void log_key(const Call& call, const Respond& respond);
    void log_tile(const Call& call, const Respond& respond);
    void log_records(const Call& call, const Respond& respond);
    void certificates(const Call& call, const Respond& respond);
    void backup(const Call& call, const Respond& respond);

    void healthz(const Call& call, const Respond& respond);
    void readyz(const Call& call, const Respond& respond);
    void metrics(const Call& call, const Respond& respond);
    void openapi(const Call& call, const Respond& respond);

private:
    using What = decltype(Command::what);
    // Through the loop, and the answer's body back as it is.
    void ask(const Call& call, What what, const Respond& respond);
    // The same, and then the object as it now is.
    void change(const Call& call, What what, ObjectKind kind, std::string name, const Respond& respond);
    void apply_all(const Call& call, bool dry_run, const Respond& respond);
    void watch(const Call& call, ObjectKind kind, std::string name, const Respond& respond);
    void keep_token(const Call& call, const auth::MintedToken& token, const Respond& respond);
    void serve_tile(const std::string& path, std::string content_type, const Respond& respond);
    Instant now() const { return settings_.clock(); }

    Parts parts_;
    Settings settings_;
    RateLimiter rate_, strangers_;
    std::string openapi_;
    std::mutex enrolling_mutex_;
    std::set<std::string> enrolling_;
    std::atomic<bool> backing_up_{false};
};

// Backups that a server that is no more was taking. Only before the doors are open.
void remove_unfinished_backups(const std::string& scratch);

// A token as a row, under a key made of its id.
Row token_row(const auth::StoredToken& token);

}  // namespace bulkhead::shell
