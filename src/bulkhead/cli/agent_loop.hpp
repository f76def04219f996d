// The one loop of an agent: what the link hears goes to the runner, what the runner reports goes to the link.
#pragma once

#include <chrono>
#include <memory>
#include <string_view>

#include "bulkhead/agent/link.hpp"
#include "bulkhead/agent/renewal.hpp"
#include "bulkhead/agent/runner.hpp"
#include "bulkhead/shell/log.hpp"

namespace bulkhead::cli {

class AgentLoop {
public:
    AgentLoop(std::unique_ptr<agent::Link> link, agent::Renewal renewal, shell::Log& log)
        : link_{std::move(link)}, renewal_{std::move(renewal)}, log_{log} {}

    void deliver(const Report& report);
    // Until a signal asks to stop, or the runner cannot go on.
    Result<> run(agent::Runner& runner);

private:
    Result<> on(agent::Runner& runner, const agent::Link::Connected&);
    Result<> on(agent::Runner& runner, const agent::Link::Welcome& welcome);
    Result<> on(agent::Runner& runner, const agent::Link::OrderArrived& arrived);
    Result<> on(agent::Runner& runner, const agent::Link::Acked& acked);
    Result<> on(agent::Runner& runner, const agent::Link::OutputWanted& wanted);
    Result<> on(agent::Runner& runner, const agent::Link::NotRenewed& refusal);
    Result<> on(agent::Runner& runner, const agent::Link::Renewed& answer);
    Result<> on(agent::Runner& runner, const agent::Link::Lost& lost);
    void renew_when_due();
    void not_renewed(std::string_view why);

    std::unique_ptr<agent::Link> link_;
    agent::Renewal renewal_;
    shell::Log& log_;
    bool welcome_ = false;
};

}  // namespace bulkhead::cli
