// The identity provider as the server sees it: its keys, fetched by one thread of its own, and who its tokens name. The
// threads that read requests never wait for it: they are answered from the last good keys, or told to ask again.
//
// Keys are fetched again every few minutes, and at once when a token names one that is not known; but never more often
// than the cool-down says, however many strange tokens arrive. While the provider is down the last good keys stay, up
// to an age: then nobody is believed, because a key may have been withdrawn for a reason. Without keys nobody is,
// either.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <expected>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>

#include "bulkhead/auth/identity.hpp"
#include "bulkhead/auth/jwt.hpp"
#include "bulkhead/base/hash.hpp"
#include "bulkhead/base/quantity.hpp"
#include "bulkhead/base/result.hpp"
#include "bulkhead/shell/https_fetch.hpp"
#include "bulkhead/shell/log.hpp"
#include "bulkhead/shell/oidc_options.hpp"

namespace bulkhead::shell {

class Oidc {
public:
    static Result<std::unique_ptr<Oidc>> start(OidcOptions options, Log& log);
    ~Oidc();

    using Person = std::shared_ptr<const auth::Identity>;
    struct Refusal {
        Error error;        // `denied`, or `unavailable` when there are no keys to check with
        bool soon = false;  // keys are on their way: it is worth asking again in a moment
    };
    std::expected<Person, Refusal> identify(std::string_view token, Instant now);

    // Names a token in logs without giving it away; no token of ours is called so.
    static bool is_name(std::string_view token_id) { return token_id.starts_with("oidc-"); }
    // Who came in with the token of that name, while it is good; null: not any more, or not known.
    Person known(const std::string& token_id, Instant now) const;

    const OidcOptions& options() const { return options_; }

    struct Figures {
        std::int64_t fetches = 0, failures = 0;     // of keys
        std::int64_t verified = 0, remembered = 0;  // checks in full, and by memory
        std::int64_t refused = 0;
        std::size_t keys = 0;
    };
    Figures figures() const;

private:
    using Steady = std::chrono::steady_clock;
    struct Known {  // a token that was verified, by its hash
        Hash hash{};
        Person person;
    };

    Oidc(OidcOptions options, HttpsFetch fetch, Log& log);
    void run(const std::stop_token& stop);
    Result<auth::KeySet> fetch_keys(const std::stop_token& stop);
    void take(auth::KeySet keys);
    void note_failure(const Error& why);
    bool ask_for_keys();                               // locked; whether some are on their way
    Person remembered(const Hash& hash, Instant now);  // locked; null: not known
    void remember(const Hash& hash, Person person);    // locked
    void forget_old_keys();                            // locked
    std::unexpected<Refusal> refuse(Error why, bool soon);

    const OidcOptions options_;
    const auth::Expectations expected_;
    HttpsFetch fetch_;
    Log& log_;

    mutable std::mutex mutex_;
    std::condition_variable_any changed_;
    std::shared_ptr<const auth::KeySet> keys_;
    std::uint64_t generation_ = 0;  // of the keys: what was verified with others is not remembered
    Steady::time_point keys_at_, asked_at_, complained_at_;
    bool wanted_ = false, fetching_ = false, ever_asked_ = false;
    std::string complaint_;
    std::list<Known> recent_;  // the latest first
    std::unordered_map<std::string, std::list<Known>::iterator> by_name_;
    Figures figures_;
    Steady::time_point told_at_;
    std::int64_t untold_ = 0;

    std::jthread thread_;  // last: it uses the rest
};

}  // namespace bulkhead::shell
