#include "bulkhead/cli/agent_loop.hpp"

#include <algorithm>

#include "bulkhead/cli/clock.hpp"
#include "bulkhead/cli/stop_signal.hpp"

namespace bulkhead::cli {

namespace {

std::chrono::milliseconds patience(const agent::Runner& runner) {
    constexpr std::int64_t longest = 250;  // how long a signal may have to wait
    const auto due = runner.next_due();
    if (!due) return std::chrono::milliseconds{longest};
    return std::chrono::milliseconds{std::clamp<std::int64_t>(due->ms - clock_now().ms, 0, longest)};
}

}  // namespace

void AgentLoop::deliver(const Report& report) {
    if (!welcome_) return;  // said again after the next welcome
    if (const auto sent = link_->report(report); !sent)
        log_.error("a report cannot be sent", {{"what", sent.error().what}});
}

Result<> AgentLoop::run(agent::Runner& runner) {
    link_->measure_with([&runner]() -> std::optional<Telemetry> {
        auto newest = runner.telemetry();
        return newest ? *std::move(newest) : std::nullopt;
    });
    while (!asked_to_stop()) {
        for (const agent::Link::Event& event : link_->wait(patience(runner))) {
            const auto heard = std::visit([&](const auto& what) { return on(runner, what); }, event);
            if (!heard) return heard;
        }
        if (welcome_) renew_when_due();
        if (auto polled = runner.poll(clock_now()); !polled) return polled;
        for (const std::string& note : runner.take_notes()) log_.info("note", {{"what", note}});
        // What a node has is said in its hello, and nowhere else. A session that is about to be open may have told
        // less: it is asked again once it is.
        if (welcome_ && runner.has_other_stock()) {
            welcome_ = false;
            link_->reconnect("this node has other devices than it said");
        }
    }
    return {};
}

Result<> AgentLoop::on(agent::Runner& runner, const agent::Link::Connected&) {
    auto hello = runner.hello();
    if (!hello) return std::unexpected(hello.error());
    const auto said = link_->hello(*hello);
    // The line was lost again at once: the next events say so, and the next attempt is under way.
    if (!said && said.error().code == Code::unavailable) return {};
    return said;
}

Result<> AgentLoop::on(agent::Runner& runner, const agent::Link::Welcome& welcome) {
    if (auto taken = runner.welcome(clock_now(), welcome.epoch); !taken) {
        if (taken.error().code != Code::conflict) return taken;
        link_->reconnect(taken.error().what);
        return {};
    }
    log_.info("welcome", {{"epoch", welcome.epoch}, {"session", static_cast<std::int64_t>(welcome.session)}});
    welcome_ = true;
    for (const Report& report : runner.unacknowledged()) deliver(report);
    return {};
}

Result<> AgentLoop::on(agent::Runner& runner, const agent::Link::OrderArrived& arrived) {
    return runner.handle(clock_now(), arrived.order);
}

Result<> AgentLoop::on(agent::Runner& runner, const agent::Link::Acked& acked) {
    return runner.acknowledge(acked.number);
}

// Whoever asked hears why there is none; only hands that are gone end the agent.
Result<> AgentLoop::on(agent::Runner& runner, const agent::Link::OutputWanted& wanted) {
    const auto piece = runner.output(wanted.place);
    if (!piece && piece.error().code == Code::unavailable) return std::unexpected(piece.error());
    if (const auto sent = link_->output(wanted.request, piece); !sent)
        log_.error("output cannot be sent", {{"what", sent.error().what}});
    return {};
}

// Whatever goes wrong with a new certificate, the old one is good for a while yet, and the session goes on.
void AgentLoop::renew_when_due() {
    const auto request = renewal_.request(clock_now());
    if (!request) return not_renewed(request.error().what);
    if (!*request) return;
    if (const auto sent = link_->renew(**request); !sent) not_renewed(sent.error().what);
}

void AgentLoop::not_renewed(std::string_view why) {
    log_.warning("the certificate is not renewed", {{"why", why}, {"ends", print(renewal_.ends())}});
}

Result<> AgentLoop::on(agent::Runner&, const agent::Link::NotRenewed& refusal) {
    not_renewed(refusal.why);
    return {};
}

Result<> AgentLoop::on(agent::Runner&, const agent::Link::Renewed& answer) {
    auto renewed = renewal_.accept(answer.certificate, clock_now());
    if (!renewed) {
        not_renewed(renewed.error().what);
        return {};
    }
    log_.info("the certificate is renewed", {{"ends", print(renewal_.ends())}});
    link_->set_identity(std::move(renewed->certificate), std::move(renewed->key));
    link_->reconnect("the certificate was renewed");  // proves it, and ends the old one
    return {};
}

Result<> AgentLoop::on(agent::Runner&, const agent::Link::Lost& lost) {
    welcome_ = false;
    log_.warning("the line is down", {{"why", lost.why}, {"next_ms", lost.next_attempt_in.ms}});
    return {};
}

}  // namespace bulkhead::cli
