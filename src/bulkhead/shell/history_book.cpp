#include "bulkhead/shell/history_book.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "bulkhead/codec/decode.hpp"

namespace bulkhead::shell {

namespace {
bool is_history(const Row& row) { return row.table == Table::history; }

bool matches(const HistoryQuestion& question, const HistoryRow& row) {
    return (question.tenant.empty() || row.tenant == question.tenant) &&
           (question.workload.empty() || row.workload == question.workload) &&
           (!question.since || row.endedAt >= *question.since) && (!question.until || row.endedAt < *question.until) &&
           (!question.state || row.state == *question.state);
}
}  // namespace

void HistoryBook::loaded(const Reign& reign) {
    const std::lock_guard lock{arriving_mutex_};
    arrived_.clear();
    anew_ = true;
    std::ranges::copy_if(reign.rows, std::back_inserter(arrived_), is_history);
}

void HistoryBook::committed(const Batch& batch) {
    if (std::ranges::none_of(batch.rows, is_history)) return;
    const std::lock_guard lock{arriving_mutex_};
    std::ranges::copy_if(batch.rows, std::back_inserter(arrived_), is_history);
}

void HistoryBook::take_in_what_came() {
    std::vector<Row> rows;
    bool anew = false;
    {
        const std::lock_guard lock{arriving_mutex_};
        rows.swap(arrived_);
        anew = std::exchange(anew_, false);
    }
    if (anew) rows_.clear();
    for (const Row& row : rows) {
        if (row.erased) {
            rows_.erase(row.key);
            continue;
        }
        // The core has read it before: a row that does not read keeps the server from starting.
        if (auto read = from_json<HistoryRow>(fmt::format("history row {}", row.key), row.body, own_text))
            rows_.insert_or_assign(row.key, *std::move(read));
    }
}

HistoryAnswer HistoryBook::ask(const HistoryQuestion& question) {
    const std::lock_guard lock{reading_};
    take_in_what_came();
    HistoryAnswer answer;
    for (auto row = rows_.rbegin(); row != rows_.rend(); ++row) {
        if (!matches(question, row->second)) continue;
        if (answer.rows.size() == question.limit) {
            answer.more = true;
            break;
        }
        answer.rows.push_back(row->second);
    }
    std::ranges::reverse(answer.rows);
    std::ranges::stable_sort(answer.rows, {}, &HistoryRow::endedAt);
    return answer;
}

}  // namespace bulkhead::shell
