// The lines between servers and agents: what is lost, late, twice or out of order on the way, and who notices.
#include <algorithm>

#include "sim/world_state.hpp"

namespace bulkhead::sim {

void World::to_agent(std::uint32_t index, std::uint64_t session, Saying what) {
    const auto found = servers_[index].sessions.find(session);
    if (found == servers_[index].sessions.end()) return;
    send({index, found->second.agent, false, session, ++found->second.sent, std::move(what)});
}

void World::to_server(std::uint32_t agent, Saying what) {
    Agent& from = agents_[agent];
    send({from.server, agent, true, from.session, ++from.sent, std::move(what)});
}

void World::send(Message message) {
    const Mishaps& mishaps = spec_.mishaps;
    const bool calm = is_calm();
    if (agents_[message.agent].cut_off) return;
    std::int64_t delay = rng_.between(1, 5);
    if (!calm) {
        if (mishaps.lost != 0 && rng_.chance(mishaps.lost)) return fault("message lost");
        if (mishaps.delayed != 0 && rng_.chance(mishaps.delayed)) {
            fault("message delayed");
            delay += rng_.between(100, 15'000);
        }
        if (mishaps.duplicated != 0 && rng_.chance(mishaps.duplicated)) {
            fault("message duplicated");
            at(delay + rng_.between(0, 20'000), Happening::message, 0, messages_.put(message));
        }
    }
    // A stream keeps its order unless something below it fails.
    std::int64_t& earliest = message.to_server ? up_[message.agent] : down_[message.agent];
    const bool reorder = !calm && mishaps.reordered != 0 && rng_.chance(mishaps.reordered);
    if (reorder)
        fault("message reordered");
    else
        earliest = std::max(earliest, now_ + delay);
    at((reorder ? now_ + delay : earliest) - now_, Happening::message, 0, messages_.put(std::move(message)));
}

void World::deliver(Message message) {
    if (agents_[message.agent].cut_off) return;
    if (message.to_server)
        deliver_to_server(std::move(message));
    else
        deliver_to_agent(std::move(message));
}

void World::deliver_to_agent(Message message) {
    Agent& agent = agents_[message.agent];
    if (!agent.executor || agent.session != message.session || message.sequence <= agent.received) return;
    if (message.sequence != agent.received + 1) return reconnect(message.agent, "gap");
    agent.received = message.sequence;
    agent.heard_at = now_;
    if (const WelcomeMessage* welcome = std::get_if<WelcomeMessage>(&message.what)) {
        Outcome outcome = agent.executor->on_welcome(welcome->epoch);
        if (!outcome.ignored.empty()) {
            checkers_.probe("an agent refused an old epoch");
            return reconnect(message.agent, "old");
        }
        agent.welcomed = true;
        if (!carry(message.agent, std::move(outcome))) return;
        for (Report& report : agent.executor->unacknowledged()) to_server(message.agent, std::move(report));
    } else if (const Order* order = std::get_if<Order>(&message.what)) {
        Outcome outcome = agent.executor->on_order(agent_time(), *order);
        if (!outcome.ignored.empty()) checkers_.probe("an order was ignored");
        carry(message.agent, std::move(outcome));
    } else if (const AckMessage* ack = std::get_if<AckMessage>(&message.what)) {
        carry(message.agent, agent.executor->on_ack(ack->number));
    } else if (std::holds_alternative<CloseMessage>(message.what)) {
        reconnect(message.agent, "closed");
    }
}

void World::deliver_to_server(Message message) {
    Server& server = servers_[message.server];
    if (!server.core) return;
    const std::string& node = agents_[message.agent].name;
    if (std::holds_alternative<Hello>(message.what)) {
        if (server.sessions.contains(message.session)) return;
        server.sessions[message.session] = {.agent = message.agent, .received = message.sequence};
        server.inbox.emplace_back(AgentHello{node, message.session, std::get<Hello>(std::move(message.what))});
        return wake(message.server);
    }
    const auto session = server.sessions.find(message.session);
    if (session == server.sessions.end() || message.sequence <= session->second.received) return;
    if (message.sequence != session->second.received + 1) {
        server.sessions.erase(session);
        server.inbox.emplace_back(AgentGone{node, message.session});
        return wake(message.server);
    }
    session->second.received = message.sequence;
    if (Report* report = std::get_if<Report>(&message.what)) checkers_.reported(node, *report);
    if (Report* report = std::get_if<Report>(&message.what))
        server.inbox.emplace_back(AgentReport{node, message.session, std::move(*report)});
    else
        server.inbox.emplace_back(AgentHeartbeat{node, message.session});
    wake(message.server);
}

void World::reconnect(std::uint32_t index, std::string_view) {
    Agent& agent = agents_[index];
    agent.session = 0;
    agent.welcomed = false;
    agent.opened_at = now_ + rng_.between(0, 5000) - 5000;
}

}  // namespace bulkhead::sim
