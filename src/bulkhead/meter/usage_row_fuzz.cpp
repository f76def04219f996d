// Whatever the bytes: amounts and windows are read exactly or refused, and a row that can be read can be billed.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "bulkhead/codec/decode.hpp"
#include "bulkhead/codec/print.hpp"
#include "bulkhead/meter/focus.hpp"

using namespace bulkhead;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text{reinterpret_cast<const char*>(data), size};
    if (const auto money = parse_money(text)) {
        const auto again = parse_money(print(*money));
        invariant(again && *again == *money, "an amount that is printed is the amount");
    }
    const std::size_t half = text.find(' ');
    if (half != std::string_view::npos)
        if (const auto window = meter::parse_window(text.substr(0, half), text.substr(half + 1)))
            invariant(window->from < window->to && meter::day_of(window->from) == window->from, "whole days");
    const auto row = from_json<UsageRow>("fuzz", text);
    if (!row) return 0;
    invariant(from_json<UsageRow>("again", to_compact_json(*row)).value() == *row, "a row that is written is the row");
    // A span of years would be cut into as many days; time of that length is another target's.
    if (row->to < row->from || row->to - row->from > Duration::days(1000)) return 0;
    meter::Ledger closed;
    const meter::Ledger open;
    invariant(closed.add(*row).value() && !closed.add(*row).value(), "the same row again changes nothing");
    const Instant day = meter::day_of(row->from);
    const meter::Question question{.window = {day, {day.ms + 1001 * meter::ms_per_day}}, .now = row->to};
    const meter::Report report = meter::report({closed, open}, question);
    meter::Wide rows = 0, totals = 0;
    meter::for_each_charge({closed, open}, question, report,
                           [&](const meter::Charge& charge) { rows += charge.amount; });
    for (const auto& [currency, amount] : report.totals) totals += amount;
    invariant(rows == totals, "rows sum to the total");
    (void)meter::report_json(report);
    (void)meter::focus_csv({closed, open}, question, report, {"fleet"});
    return 0;
}
