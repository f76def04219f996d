#include "bulkhead/evidence/fabric_statement.hpp"

#include <fmt/format.h>

#include <set>

#include "bulkhead/base/hash.hpp"
#include "bulkhead/evidence/text.hpp"

namespace bulkhead::evidence {

namespace {

constexpr std::size_t attempts_max = 64, attempt_name_bytes_max = 64;

std::vector<std::string> names_that(const std::vector<FabricAttempt>& attempts, AttemptEnd end) {
    std::vector<std::string> names;
    for (const FabricAttempt& attempt : attempts)
        if (attempt.end == end) names.push_back(attempt.name);
    return names;
}

// "forged-mac": names go into contracts, and say nothing there.
bool is_name_of_attempt(std::string_view name) {
    return !name.empty() && name.size() <= attempt_name_bytes_max &&
           name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string_view::npos;
}

}  // namespace

std::string fabric_statement_text(const FabricStatement& statement) { return compact_text(statement); }

Result<FabricStatement> read_fabric_statement(std::string_view text) {
    auto statement = read_text<FabricStatement>("fabric statement", text);
    if (!statement) return statement;
    std::set<std::string_view> names;
    for (const FabricAttempt& attempt : statement->attempts)
        if (!is_name_of_attempt(attempt.name) || !names.insert(attempt.name).second)
            return fail(Code::invalid, "an attempt of the fabric statement has no name of its own",
                        "the agent that made it is at fault");
    if (statement->attempts.size() > attempts_max)
        return fail(Code::invalid,
                    fmt::format("the fabric statement has {} attempts; at most {} are known",
                                statement->attempts.size(), attempts_max),
                    "the agent that made it is at fault");
    if (statement->ended < statement->began)
        return fail(Code::invalid, "the fabric statement contradicts itself: the test ended before it began",
                    "see the node's clock");
    return statement;
}

FabricVerdict verdict_on(FabricFence fence, bool honest_passes, const std::vector<FabricAttempt>& attempts) {
    using enum FabricFound;
    if (!honest_passes)
        return {unproven, "honest traffic does not arrive either, so that nothing was stopped by a fence"};
    const std::vector<std::string> through = names_that(attempts, AttemptEnd::got_through),
                                   stopped = names_that(attempts, AttemptEnd::stopped),
                                   unclear = names_that(attempts, AttemptEnd::unclear);
    if (!unclear.empty() && (through.empty() || fence == FabricFence::off))
        return {unproven, fmt::format("these failed, and not by a fence: {}", fmt::join(unclear, ", "))};
    if (through.empty() && stopped.empty()) return {unproven, "nothing was tried"};
    if (fence == FabricFence::off) {
        if (stopped.empty()) return {closed, "with the fence off every attempt gets through, as it must"};
        return {unproven, fmt::format("with the fence off these are stopped all the same, by something else: {}",
                                      fmt::join(stopped, ", "))};
    }
    if (!through.empty()) return {open, fmt::format("these get through: {}", fmt::join(through, ", "))};
    return {closed, fmt::format("all {} attempts were stopped", stopped.size())};
}

NodeFabricTest summary_of(const FabricStatement& statement, std::string_view text) {
    FabricVerdict verdict = verdict_on(statement.fence, statement.honest_passes, statement.attempts);
    // What got through got through, however far the test came; nothing is closed by one that broke off.
    if (!statement.why.empty() && verdict.found != FabricFound::open) verdict = {FabricFound::unproven, statement.why};
    NodeFabricTest test{.nic = statement.nic, .fence = statement.fence, .found = verdict.found};
    test.grade = statement.grade;
    test.at = statement.ended;
    test.stopped = names_that(statement.attempts, AttemptEnd::stopped);
    test.through = names_that(statement.attempts, AttemptEnd::got_through);
    test.unclear = names_that(statement.attempts, AttemptEnd::unclear);
    test.untried = names_that(statement.attempts, AttemptEnd::not_tried);
    if (test.found == FabricFound::unproven) test.why = std::move(verdict.why);
    test.boot = statement.boot;
    test.ticket = statement.ticket;
    test.digest = to_hex(bytes_of(sha256(text)));
    return test;
}

}  // namespace bulkhead::evidence
