#include "bulkhead/shell/oidc.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "bulkhead/auth/discovery.hpp"
#include "bulkhead/codec/diagnostic.hpp"

namespace bulkhead::shell {

namespace {

std::chrono::milliseconds as_ms(Duration duration) { return std::chrono::milliseconds{duration.ms}; }

std::string name_of_token(const Hash& hash) { return "oidc-" + to_hex(bytes_of(hash)).substr(0, 16); }

bool same_keys(const auth::KeySet& a, const auth::KeySet& b) {
    return std::ranges::equal(a.keys, b.keys, [](const auth::VerifyKey& one, const auth::VerifyKey& other) {
        return one.id == other.id && one.only == other.only && one.fingerprint == other.fingerprint;
    });
}

auth::Expectations expectations_of(const OidcOptions& options) {
    return {.issuer = options.issuer, .audience = options.audience};
}

}  // namespace

Result<> check(const OidcOptions& options) {
    const auto address = parse_https(options.issuer);
    if (!address) return std::unexpected(address.error());
    if (options.issuer.find('?') != std::string::npos)
        return fail(Code::invalid, fmt::format("the issuer \"{}\" has a query", shortened(options.issuer)),
                    "write it as the provider's description does");
    for (const std::string& name : {options.audience, options.client})
        if (name.empty() || auth::displayed(name) != name || name.find_first_of(" \"\\") != std::string::npos)
            return fail(Code::invalid, fmt::format("\"{}\" is no client or audience", shortened(name)),
                        "write it as the provider does");
    return check(expectations_of(options));
}

Oidc::Oidc(OidcOptions options, HttpsFetch fetch, Log& log)
    : options_{std::move(options)}, expected_{expectations_of(options_)}, fetch_{std::move(fetch)}, log_{log} {}

Oidc::~Oidc() = default;

Result<std::unique_ptr<Oidc>> Oidc::start(OidcOptions options, Log& log) {
    if (auto valid = check(options); !valid) return std::unexpected(valid.error());
    auto fetch = HttpsFetch::open(options.ca_file);
    if (!fetch) return std::unexpected(fetch.error());
    std::unique_ptr<Oidc> oidc{new Oidc{std::move(options), *std::move(fetch), log}};
    // The provider need not be up: the fleet runs without it, and whoever has a token of ours comes in.
    oidc->fetching_ = true;
    oidc->thread_ = std::jthread{[self = oidc.get()](const std::stop_token& stop) { self->run(stop); }};
    return oidc;
}

Result<auth::KeySet> Oidc::fetch_keys(const std::stop_token& stop) {
    const auto said = fetch_.json({.url = auth::discovery_address(options_.issuer),
                                   .within = options_.fetch_within,
                                   .bytes_max = auth::discovery_bytes_max},
                                  stop);
    if (!said) return std::unexpected(said.error());
    const auto provider = auth::read_discovery(*said, options_.issuer);
    if (!provider) return std::unexpected(provider.error());
    const auto keys = fetch_.json(
        {.url = provider->keys, .within = options_.fetch_within, .bytes_max = auth::key_set_bytes_max}, stop);
    if (!keys) return std::unexpected(keys.error());
    return auth::read_key_set(*keys);
}

void Oidc::run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
        {
            const std::lock_guard lock{mutex_};
            fetching_ = true;
            wanted_ = false;
            asked_at_ = Steady::now();
            ever_asked_ = true;
            ++figures_.fetches;
        }
        auto keys = fetch_keys(stop);
        if (stop.stop_requested()) return;
        const bool good = keys.has_value();
        if (good)
            take(*std::move(keys));
        else
            note_failure(keys.error());
        std::unique_lock lock{mutex_};
        fetching_ = false;
        changed_.wait_for(lock, stop, as_ms(good ? options_.refresh : options_.retry), [this] { return wanted_; });
    }
}

void Oidc::take(auth::KeySet keys) {
    std::string names, left_out;
    for (const auth::VerifyKey& key : keys.keys) names += (names.empty() ? "" : ", ") + shortened(key.id);
    for (const std::string& why : keys.left_out) left_out += (left_out.empty() ? "" : "; ") + why;
    bool changed = false;
    {
        const std::lock_guard lock{mutex_};
        keys_at_ = Steady::now();
        figures_.keys = keys.keys.size();
        complaint_.clear();
        changed = !keys_ || !same_keys(*keys_, keys);
        if (changed) {
            keys_ = std::make_shared<const auth::KeySet>(std::move(keys));
            ++generation_;
            // Whoever came in with a key that is gone does not stay in.
            recent_.clear();
            by_name_.clear();
        }
    }
    if (changed)
        log_.info("the identity provider's keys",
                  {{"issuer", options_.issuer}, {"keys", names}, {"left-out", left_out}});
}

void Oidc::note_failure(const Error& why) {
    bool tell = false;
    {
        const std::lock_guard lock{mutex_};
        ++figures_.failures;
        const auto now = Steady::now();
        tell = why.what != complaint_ || now - complained_at_ > std::chrono::minutes{5};
        if (tell) {
            complaint_ = why.what;
            complained_at_ = now;
        }
    }
    if (tell)
        log_.warning("the identity provider's keys cannot be read",
                     {{"issuer", options_.issuer}, {"what", why.what}, {"try", why.remedy}});
}

bool Oidc::ask_for_keys() {
    if (fetching_ || wanted_) return true;
    if (ever_asked_ && Steady::now() - asked_at_ < as_ms(options_.cool_down)) return false;
    wanted_ = true;
    changed_.notify_all();
    return true;
}

void Oidc::forget_old_keys() {
    if (!keys_ || Steady::now() - keys_at_ < as_ms(options_.keys_last)) return;
    keys_.reset();
    figures_.keys = 0;
    ++generation_;
    recent_.clear();
    by_name_.clear();
}

Oidc::Person Oidc::remembered(const Hash& hash, Instant now) {
    const auto found = by_name_.find(name_of_token(hash));
    if (found == by_name_.end() || found->second->hash != hash) return nullptr;
    if (found->second->person->expires <= now) {
        recent_.erase(found->second);
        by_name_.erase(found);
        return nullptr;
    }
    recent_.splice(recent_.begin(), recent_, found->second);
    return found->second->person;
}

void Oidc::remember(const Hash& hash, Person person) {
    if (by_name_.contains(person->token_id)) return;
    recent_.push_front({hash, std::move(person)});
    by_name_.emplace(recent_.front().person->token_id, recent_.begin());
    if (recent_.size() <= options_.remembered_max) return;
    by_name_.erase(recent_.back().person->token_id);
    recent_.pop_back();
}

Oidc::Person Oidc::known(const std::string& token_id, Instant now) const {
    const std::lock_guard lock{mutex_};
    const auto found = by_name_.find(token_id);
    if (found == by_name_.end() || found->second->person->expires <= now) return nullptr;
    return found->second->person;
}

// Why goes to the log, for whoever runs this, and not to whoever asks; a line a second at most.
std::unexpected<Oidc::Refusal> Oidc::refuse(Error why, bool soon) {
    std::int64_t others = 0;
    bool tell = false;
    {
        const std::lock_guard lock{mutex_};
        if (!soon) ++figures_.refused;
        const auto now = Steady::now();
        tell = !soon && now - told_at_ > std::chrono::seconds{1};
        if (tell) {
            told_at_ = now;
            others = std::exchange(untold_, 0);
        } else if (!soon) {
            ++untold_;
        }
    }
    if (tell) log_.info("a token of the identity provider was refused", {{"why", why.what}, {"others", others}});
    return std::unexpected(Refusal{std::move(why), soon});
}

std::expected<Oidc::Person, Oidc::Refusal> Oidc::identify(std::string_view token, Instant now) {
    if (token.size() > auth::token_bytes_max) return refuse({Code::denied, "the token is too long", ""}, false);
    const Hash hash = sha256(token);
    std::shared_ptr<const auth::KeySet> keys;
    std::uint64_t generation = 0;
    bool soon = false;
    {
        const std::lock_guard lock{mutex_};
        forget_old_keys();
        if (Person known = remembered(hash, now)) {
            ++figures_.remembered;
            return known;
        }
        keys = keys_;
        generation = generation_;
        if (!keys) soon = ask_for_keys();
    }
    if (!keys)
        return refuse({Code::unavailable, "the identity provider's keys are not known",
                       "ask again in a moment, or with a token of this fleet; the server's log says why"},
                      soon);
    const auto claims = auth::verify_token(token, *keys, expected_, now);
    if (!claims) {
        if (claims.error().code == Code::not_found) {
            const std::lock_guard lock{mutex_};
            soon = generation != generation_ || ask_for_keys();
        }
        return refuse(claims.error(), soon);
    }
    auto person = auth::read_identity(*claims, options_.audience);
    if (!person) return refuse(person.error(), false);
    person->token_id = name_of_token(hash);
    auto out = std::make_shared<const auth::Identity>(*std::move(person));
    const std::lock_guard lock{mutex_};
    ++figures_.verified;
    if (generation == generation_) remember(hash, out);
    return out;
}

Oidc::Figures Oidc::figures() const {
    const std::lock_guard lock{mutex_};
    return figures_;
}

}  // namespace bulkhead::shell
