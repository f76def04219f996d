// Runs of workloads that have ended: who, when, where, how, and how much of GPUs.
#include <charconv>

#include "bulkhead/codec/print.hpp"
#include "bulkhead/shell/api.hpp"
#include "bulkhead/shell/history_book.hpp"

namespace bulkhead::shell {

namespace {

constexpr std::size_t most_history_rows = 10'000;

Result<HistoryQuestion> history_question(std::string_view since, std::string_view until, std::string_view state,
                                         std::string_view limit) {
    HistoryQuestion question;
    for (const auto& [text, into] : {std::pair{since, &question.since}, {until, &question.until}}) {
        if (text.empty()) continue;
        const auto at = parse_instant(text);
        if (!at) return std::unexpected(at.error());
        *into = *at;
    }
    if (!state.empty()) {
        for (std::size_t i = 0; i < words(HistoryState{}).size(); ++i)
            if (words(HistoryState{})[i] == state) question.state = static_cast<HistoryState>(i);
        if (!question.state)
            return fail(Code::invalid, "no run of a workload ends in that state",
                        "state=finished, failed, interrupted or cancelled");
    }
    if (!limit.empty()) {
        std::size_t wanted = 0;
        const auto read = std::from_chars(limit.data(), limit.data() + limit.size(), wanted);
        if (read.ec != std::errc{} || read.ptr != limit.data() + limit.size() || wanted == 0 ||
            wanted > most_history_rows)
            return fail(Code::invalid, "the limit of a history is 1 to 10000", "limit=1000, which is the default");
        question.limit = wanted;
    }
    return question;
}

}  // namespace

void Api::history(const Call& call, const Respond& respond) {
    auto question =
        history_question(call.query("since"), call.query("until"), call.query("state"), call.query("limit"));
    if (!question) return respond(problem(question.error()));
    const auto tenant = whose(call, Permission::read_tenant);
    if (!tenant) return respond(problem(tenant.error()));
    question->tenant = *tenant;
    question->workload = std::string{call.query("workload")};
    const HistoryAnswer answer = parts_.history.ask(*question);
    JsonWriter out{JsonLayout::compact};
    out.begin_object();
    out.key("items");
    out.begin_array();
    for (const HistoryRow& row : answer.rows) write(out, row);
    out.end_array();
    out.member("more", answer.more);
    out.end_object();
    respond({.body = out.take()});
}

}  // namespace bulkhead::shell
