// What each route does: reads come from the catalog, writes go through the commit loop, evidence comes from the log. It
// decides who may ask; what is allowed is the core's to decide.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "bulkhead/auth/token.hpp"
#include "bulkhead/shell/agent_door.hpp"
#include "bulkhead/shell/bound_people.hpp"
#include "bulkhead/shell/catalog.hpp"
#include "bulkhead/shell/certificates.hpp"
#include "bulkhead/shell/history_book.hpp"
#include "bulkhead/shell/http_server.hpp"
#include "bulkhead/shell/issuer.hpp"
#include "bulkhead/shell/log.hpp"
#include "bulkhead/shell/loop.hpp"
#include "bulkhead/shell/metrics.hpp"
#include "bulkhead/shell/oidc.hpp"
#include "bulkhead/shell/rate.hpp"
#include "bulkhead/shell/routes.hpp"
#include "bulkhead/shell/usage_book.hpp"

namespace bulkhead::shell {

class KeyRotation;
class LogProofs;

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
        UsageBook& usage;
        HistoryBook& history;
        LogProofs& proofs;
        KeyRotation& rotation;
    };
    struct Settings {
        Issuer issuer;
        std::string agents_host;  // empty: the name by which the agent reached us
        std::uint16_t agents_port = 0;
        std::string tiles;                          // directory
        std::vector<std::string> bootstrap_tokens;  // their ids: their texts are in files that every start reads
        store::Options store;                       // what is backed up
        std::string scratch;                        // directory for backups under way
        Rate rate;                                  // per token
        Rate stranger_rate{100, 400};               // per address, without a valid token
        std::function<Instant()> clock;             // empty: the machine's
        std::function<std::size_t()> agents;        // how many are connected
        Oidc* oidc = nullptr;                       // null: there is no identity provider
        const BoundPeople* people = nullptr;        // with it: who is bound to what
        std::vector<std::pair<std::string, Instant>> certificate_ends = {};  // of our own
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
    void nccl(const Call& call, const Respond& respond);
    void queue(const Call& call, const Respond& respond);
    void drain(const Call& call, const Respond& respond);
    void undrain(const Call& call, const Respond& respond);
    void repair(const Call& call, const Respond& respond);
    void test_fabric(const Call& call, const Respond& respond);
    void revoke(const Call& call, const Respond& respond);
    void freeze(const Call& call, const Respond& respond);
    void thaw(const Call& call, const Respond& respond);
    void hold(const Call& call, const Respond& respond);
    void unhold(const Call& call, const Respond& respond);

    void who_am_i(const Call& call, const Respond& respond);
    void break_glass(const Call& call, const Respond& respond);
    void compliance(const Call& call, const Respond& respond);
    void usage(const Call& call, const Respond& respond);
    void history(const Call& call, const Respond& respond);
    void correct_usage(const Call& call, const Respond& respond);

    void list_tokens(const Call& call, const Respond& respond);
    void create_token(const Call& call, const Respond& respond);
    void create_enrolment_token(const Call& call, const Respond& respond);
    void delete_token(const Call& call, const Respond& respond);
    void enrol(const Call& call, const Respond& respond);

    void log_checkpoint(const Call& call, const Respond& respond);
    void log_key(const Call& call, const Respond& respond);
    void log_tile(const Call& call, const Respond& respond);
    void log_proof(const Call& call, const Respond& respond);
    void log_consistency(const Call& call, const Respond& respond);
    void log_keys(const Call& call, const Respond& respond);
    void rotate_log_key(const Call& call, const Respond& respond);
    void log_records(const Call& call, const Respond& respond);
    void certificates(const Call& call, const Respond& respond);
    void backup(const Call& call, const Respond& respond);

    void healthz(const Call& call, const Respond& respond);
    void readyz(const Call& call, const Respond& respond);
    void metrics(const Call& call, const Respond& respond);
    void tenant_metrics(const Call& call, const Respond& respond);
    void openapi(const Call& call, const Respond& respond);
    void login_with(const Call& call, const Respond& respond);

private:
    // Whose token it is: one of ours, or an identity provider's.
    std::expected<auth::Caller, Response> holder_of(std::string_view token);
    bool still_bound(const auth::Caller& caller) const;
    using What = decltype(Command::what);
    using Parameters = std::map<std::string, std::string, std::less<>>;
    static std::optional<Response> not_through(const auth::Caller& caller, const Route& route,
                                               const Parameters& parameters);
    void note_denial(const auth::Caller& caller, const Route& route);
    void note_login(const auth::Caller& caller);
    void proceed(const Admission& admission, const Request& request, const Respond& respond);
    // Through the loop, and the answer's body back as it is.
    void ask(const Call& call, What what, const Respond& respond);
    // The same, and then the object as it now is.
    void change(const Call& call, What what, ObjectKind kind, std::string name, const Respond& respond,
                std::string tenant = {});
    static Asker asker(const Call& call) { return {call.caller.actor(), call.caller.rights}; }
    // In whose view the caller asks: empty for everything, which only some may see.
    Result<std::string> whose(const Call& call, Permission permission) const;
    // An object that the caller may read; what is somebody else's is as if it were not there.
    Result<ObjectPtr> readable(const Call& call, ObjectKind kind, const std::string& name, Permission permission) const;
    static bool reads_content(const Call& call, const std::string& tenant) {
        return call.caller.rights.may(Permission::read_output, tenant);
    }
    void apply_all(const Call& call, bool dry_run, const Respond& respond);
    Result<> names_are_new(std::span<const AnyObject> objects);
    void watch(const Call& call, ObjectKind kind, std::string name, const Respond& respond);
    void keep_token(const Call& call, const auth::MintedToken& token, const Respond& respond);
    void serve_tile(const std::string& path, std::string content_type, const Respond& respond);
    // For what goes on after the request: whether whoever asked would still be let in.
    bool still(const auth::Caller& caller) const;
    Instant now() const { return settings_.clock(); }

    Parts parts_;
    Settings settings_;
    RateLimiter rate_, strangers_, denials_{{1, 5}};
    std::string openapi_;
    std::mutex logins_mutex_;
    std::set<std::string> logins_;  // tokens of an identity provider that are on record
    std::deque<std::string> logins_in_order_;
    std::mutex enrolling_mutex_;
    std::set<std::string> enrolling_;
    std::atomic<bool> backing_up_{false};
};

// Backups that a server that is no more was taking. Only before the doors are open.
void remove_unfinished_backups(const std::string& scratch);

// A refusal that another token would turn into a yes.
Response not_the_role(Response no);

// A token as a row, under a key made of its id.
Row token_row(const auth::StoredToken& token);

// A query that is true or false; absent: false.
Result<bool> truth_of(const Call& call, std::string_view name);

}  // namespace bulkhead::shell
