#include "bulkhead/agent/link.hpp"

#include <fmt/format.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <algorithm>
#include <random>
#include <utility>

#include "bulkhead/agent/link_stream.hpp"
#include "bulkhead/base/rng.hpp"
#include "bulkhead/wire/message.hpp"

namespace bulkhead::agent {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

enum class Phase : std::uint8_t {
    idle,        // until the next attempt
    connecting,  // the stream has begun
    admitted,    // hello is due, or said
    welcome,
};

std::uint64_t seed_of_the_machine() {
    std::random_device device;
    return (std::uint64_t{device()} << 32) | device();
}

}  // namespace

struct Link::State {
    explicit State(const Options& given) : options(given), rng(given.seed != 0 ? given.seed : seed_of_the_machine()) {}

    void drive(Clock::time_point now, std::vector<Event>& events);
    Clock::time_point next_action() const;
    void begin_attempt(Clock::time_point now);
    void hear(Inbox::Item&& item, Clock::time_point now, std::vector<Event>& events);
    void hear(wire::ControlMessage&& message, Clock::time_point now, std::vector<Event>& events);
    void lose(Code code, std::string why, Clock::time_point now, std::vector<Event>& events);
    Result<> send(const wire::AgentMessage& message);
    Result<> beat();
    Duration retry_delay();

    Options options;
    Measure measure;
    Rng rng;
    std::shared_ptr<Inbox> inbox = std::make_shared<Inbox>();

    Phase phase = Phase::idle;
    std::uint64_t attempt = 0;
    std::shared_ptr<LinkStream> stream;
    Clock::time_point next_attempt = Clock::now();
    Clock::time_point connect_by{};
    bool said_hello = false, asked_to_renew = false;
    milliseconds heartbeat_every{};
    Clock::time_point next_heartbeat{};
    std::int64_t orders_heard = 0;
    int failures = 0;         // since the last welcome
    int timeouts = 0;         // among them: the server did not get as far as us
    milliseconds patience{};  // of the attempt under way
    std::string told_to_go;   // what the server said last
    std::string give_up_why;  // the owner wants to begin anew
};

void Link::State::begin_attempt(Clock::time_point now) {
    // Who gives up while the server works through its line begins again at the end of it, and the line never gets
    // shorter: so the next attempt waits twice as long. Not longer: a server that died in mid-handshake says nothing.
    patience = milliseconds{options.connect_within.ms << std::min(timeouts, 1)};
    grpc::SslCredentialsOptions tls;
    tls.pem_root_certs = options.ca;
    tls.pem_cert_chain = options.certificate;
    tls.pem_private_key = options.key;
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(static_cast<int>(wire::written_bytes_max));
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // gRPC's own back-off would count beside ours
    arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, static_cast<int>(patience.count()));  // nor its own patience
    arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);  // no environment variable leads this line elsewhere
    arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
    arguments.SetInt(GRPC_ARG_ENABLE_CHANNELZ, 0);
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, static_cast<int>(options.quiet_max.ms * 2 / 3));
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, static_cast<int>(options.quiet_max.ms / 3));
    if (!options.server_name.empty()) arguments.SetSslTargetNameOverride(options.server_name);
    auto channel = grpc::CreateCustomChannel(options.address, grpc::SslCredentials(tls), arguments);
    phase = Phase::connecting;
    said_hello = asked_to_renew = false;
    orders_heard = 0;
    told_to_go.clear();
    connect_by = now + patience;
    stream = LinkStream::begin(std::move(channel), ++attempt, inbox);
}

Duration Link::State::retry_delay() {
    const std::int64_t span =
        std::min(options.retry_max.ms, options.retry_min.ms << std::min(failures, 20));  // doubles each time
    return {rng.between(0, std::max<std::int64_t>(span, 1))};
}

void Link::State::lose(Code code, std::string why, Clock::time_point now, std::vector<Event>& events) {
    if (stream) stream->end(code, why);  // its own last word will be of an older attempt, and is not heard
    stream.reset();
    ++attempt;
    if (code == Code::denied) failures = 20;  // we are not wanted: ask seldom
    if (code == Code::timeout) ++timeouts;
    const Duration delay = retry_delay();
    ++failures;
    phase = Phase::idle;
    next_attempt = now + milliseconds{delay.ms};
    events.push_back(Lost{code, std::move(why), delay});
}

void Link::State::hear(wire::ControlMessage&& message, Clock::time_point now, std::vector<Event>& events) {
    if (auto* welcome = std::get_if<wire::Welcome>(&message)) {
        if (phase != Phase::admitted || !said_hello)
            return lose(Code::corrupt, "the server said welcome out of turn", now, events);
        phase = Phase::welcome;
        failures = timeouts = 0;
        heartbeat_every = milliseconds{welcome->heartbeat_every.ms};
        next_heartbeat = now + heartbeat_every;
        events.push_back(Welcome{welcome->epoch, welcome->session});
    } else if (auto* order = std::get_if<wire::NumberedOrder>(&message)) {
        if (phase != Phase::welcome || order->sequence != orders_heard + 1)
            return lose(Code::corrupt,
                        fmt::format("order {} came where {} was due", order->sequence,
                                    phase == Phase::welcome ? fmt::format("order {}", orders_heard + 1) : "a welcome"),
                        now, events);
        ++orders_heard;
        events.push_back(OrderArrived{std::move(order->order)});
    } else if (const auto* acknowledged = std::get_if<wire::Acknowledged>(&message)) {
        if (phase != Phase::welcome)
            return lose(Code::corrupt, "the server acknowledged before its welcome", now, events);
        events.push_back(Acked{acknowledged->number});
    } else if (auto* renewed = std::get_if<wire::Renewed>(&message)) {
        if (!std::exchange(asked_to_renew, false))
            return lose(Code::corrupt, "the server sent a certificate that nobody asked for", now, events);
        events.push_back(Renewed{std::move(renewed->certificate)});
    } else if (const auto* wanted = std::get_if<wire::OutputWanted>(&message)) {
        events.push_back(OutputWanted{wanted->request, wanted->place});
    } else if (auto* refusal = std::get_if<wire::NotRenewed>(&message)) {
        if (!std::exchange(asked_to_renew, false))
            return lose(Code::corrupt, "the server refused a certificate that nobody asked for", now, events);
        events.push_back(NotRenewed{std::move(refusal->why)});
    } else {
        told_to_go = std::move(std::get<wire::GoAway>(message).why);  // the stream ends now, with a code
    }
}

void Link::State::hear(Inbox::Item&& item, Clock::time_point now, std::vector<Event>& events) {
    if (item.attempt != attempt) return;
    if (std::holds_alternative<Admitted>(item.what)) {
        phase = Phase::admitted;
        events.push_back(Connected{});
    } else if (auto* ended = std::get_if<Ended>(&item.what)) {
        lose(ended->code, told_to_go.empty() ? std::move(ended->why) : std::move(told_to_go), now, events);
    } else {
        hear(std::move(std::get<wire::ControlMessage>(item.what)), now, events);
    }
}

// What is due by the clock.
void Link::State::drive(Clock::time_point now, std::vector<Event>& events) {
    if (!give_up_why.empty() && phase != Phase::idle)
        lose(Code::unavailable, std::exchange(give_up_why, {}), now, events);
    give_up_why.clear();
    if (phase == Phase::connecting && now >= connect_by)
        lose(Code::timeout,
             fmt::format("{} did not answer within {}", options.address, print(Duration{patience.count()})), now,
             events);
    if (phase == Phase::idle && now >= next_attempt) begin_attempt(now);
    if (phase == Phase::welcome && now >= next_heartbeat) {
        // Late ones are not made up for: one says all.
        next_heartbeat = now + heartbeat_every;
        if (auto sent = beat(); !sent) lose(sent.error().code, sent.error().what, now, events);
    }
}

// That the node lives is more than how it is.
Result<> Link::State::beat() {
    if (measure) {
        auto sent = send(wire::Heartbeat{measure()});
        if (sent || sent.error().code != Code::invalid) return sent;
    }
    return send(wire::Heartbeat{});
}

Clock::time_point Link::State::next_action() const {
    switch (phase) {
        case Phase::idle:
            return next_attempt;
        case Phase::connecting:
            return connect_by;
        case Phase::welcome:
            return next_heartbeat;
        case Phase::admitted:
            break;
    }
    return Clock::time_point::max();
}

Result<> Link::State::send(const wire::AgentMessage& message) {
    auto bytes = wire::encode(message);
    if (!bytes) return std::unexpected(bytes.error());
    if (!stream->send(std::move(*bytes)))
        return fail(Code::exhausted, fmt::format("{} does not read what it is sent", options.address));
    return {};
}

Result<std::unique_ptr<Link>> Link::open(const Options& options) {
    if (options.address.empty() || options.ca.empty() || options.certificate.empty() || options.key.empty())
        return fail(Code::invalid, "a link needs an address, a CA, a certificate and its key", "enrol the node first");
    if (options.retry_min.ms < 1 || options.retry_max < options.retry_min || options.connect_within.ms < 1 ||
        options.quiet_max.ms < 3)
        return fail(Code::invalid, "a link's times are positive, and retry_max is not below retry_min");
    return std::unique_ptr<Link>{new Link{std::make_unique<State>(options)}};
}

Link::Link(std::unique_ptr<State> state) : state_(std::move(state)) {}

Link::~Link() {
    if (state_->stream) state_->stream->end(Code::unavailable, "the agent is stopping");
    std::vector<std::shared_ptr<LinkStream>> finished;  // destroyed without the lock
    std::unique_lock lock{state_->inbox->mutex};
    state_->inbox->changed.wait(lock, [&] { return state_->inbox->streams == 0; });
    finished.swap(state_->inbox->finished);
}

std::vector<Link::Event> Link::wait(milliseconds timeout) {
    State& state = *state_;
    Inbox& inbox = *state.inbox;
    const auto deadline = Clock::now() + timeout;
    std::vector<Event> events;
    for (;;) {
        state.drive(Clock::now(), events);
        std::vector<Inbox::Item> items;
        std::vector<std::shared_ptr<LinkStream>> finished;
        bool woken = false;
        std::uint64_t paused = 0;
        {
            std::unique_lock lock{inbox.mutex};
            if (events.empty())
                inbox.changed.wait_until(lock, std::min(deadline, state.next_action()),
                                         [&] { return !inbox.items.empty() || inbox.woken; });
            items.swap(inbox.items);
            finished.swap(inbox.finished);
            woken = std::exchange(inbox.woken, false);
            paused = std::exchange(inbox.paused, 0);
        }
        const auto now = Clock::now();
        for (Inbox::Item& item : items) state.hear(std::move(item), now, events);
        if (state.stream && paused == state.attempt) state.stream->read_on();
        if (!events.empty() || woken || now >= deadline) return events;
    }
}

void Link::wake() {
    {
        const std::lock_guard lock{state_->inbox->mutex};
        state_->inbox->woken = true;
    }
    state_->inbox->changed.notify_all();
}

Result<> Link::hello(const Hello& hello) {
    if (state_->phase != Phase::admitted || state_->said_hello)
        return fail(Code::unavailable, "hello is said once, after Connected");
    auto sent = state_->send(hello);
    state_->said_hello = sent.has_value();
    return sent;
}

Result<> Link::report(const Report& report) {
    if (state_->phase != Phase::welcome) return fail(Code::unavailable, "no session is open to report to");
    auto sent = state_->send(report);
    if (!sent && sent.error().code == Code::exhausted) state_->give_up_why = sent.error().what;
    return sent;
}

Result<> Link::renew(const std::string& request) {
    if (state_->phase != Phase::welcome) return fail(Code::unavailable, "no session is open to renew in");
    if (state_->asked_to_renew) return fail(Code::conflict, "a certificate was asked for already");
    auto sent = state_->send(wire::RenewalRequest{request});
    if (!sent && sent.error().code == Code::exhausted) state_->give_up_why = sent.error().what;
    state_->asked_to_renew = sent.has_value();
    return sent;
}

Result<> Link::output(std::uint64_t request, const Result<OutputPiece>& piece) {
    if (state_->phase != Phase::welcome) return fail(Code::unavailable, "no session is open to answer in");
    // When the line is full, it is dropped: whoever waits for it asks again, and reports go first.
    return state_->send(piece ? wire::Output{request, *piece, {}} : wire::Output{request, {}, piece.error().what});
}

void Link::measure_with(Measure measure) { state_->measure = std::move(measure); }

void Link::set_identity(std::string certificate, std::string key) {
    state_->options.certificate = std::move(certificate);
    state_->options.key = std::move(key);
}

void Link::reconnect(std::string why) { state_->give_up_why = why.empty() ? "the agent begins anew" : std::move(why); }

}  // namespace bulkhead::agent
