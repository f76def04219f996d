// Conservation: whatever the history, parts sum to the whole, rows to the invoice, and nothing depends on who asks
// when.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

#include "bulkhead/codec/decode.hpp"
#include "bulkhead/codec/print.hpp"
#include "bulkhead/meter/history_test.hpp"
#include "bulkhead/meter/report.hpp"

namespace bulkhead::meter {
namespace {

using testing::HasSubstr;

const Ledger empty_ledger;
const Interval all_of_it{{history_begins.ms - 31 * ms_per_day}, {history_begins.ms + 396 * ms_per_day}};
const Instant much_later{history_begins.ms + 400 * ms_per_day};

struct Charged {
    ChargeKind kind{};
    std::string lease, invoice, text;
    Interval time;
    Wide amount = 0;
    bool covered = false, open = false;
};

std::vector<Charged> charges_of(const Known& known, const Question& question) {
    std::vector<Charged> out;
    const Report whole = report(known, question);
    for_each_charge(known, question, whole, [&](const Charge& charge) {
        out.push_back({charge.kind, charge.entry ? charge.entry->lease : "", charge.invoice,
                       charge.units ? sku_of(*charge.units, charge.kind == ChargeKind::surcharge) : "", charge.time,
                       charge.amount, charge.covered, charge.open});
    });
    return out;
}

// The covered milliseconds of a row, counted the slow way: at every place where anything could change.
std::int64_t covered_ms_by_hand(const UsageRow& row) {
    std::set<std::int64_t> edges{row.from.ms, row.to.ms};
    for (const CoveredTime& time : row.metered->covered)
        for (const std::int64_t edge : {time.from.ms, time.to.value_or(row.to).ms})
            if (edge > row.from.ms && edge < row.to.ms) edges.insert(edge);
    std::int64_t total = 0;
    for (auto at = edges.begin(); std::next(at) != edges.end(); ++at)
        if (std::ranges::any_of(row.metered->covered, [&](const CoveredTime& time) {
                return time.from.ms <= *at && *at < time.to.value_or(row.to).ms;
            }))
            total += *std::next(at) - *at;
    return total;
}

// The price of a unit at a moment, looked up the slow way.
const UnitPrice* price_by_hand(const Pricing& pricing, const Metered& metered, const MeteredUnits& units, Instant at) {
    const PriceList* list = pricing.in_force(at);
    if (list == nullptr) return nullptr;
    for (const bool of_class : {true, false})
        for (const bool shared : {true, false})
            for (const UnitPrice& price : list->prices)
                if (price.model == units.model && price.profile == units.profile && price.shared == shared &&
                    (!shared || units.shared) && price.tenantClass == (of_class ? metered.tenantClass : ""))
                    return &price;
    return nullptr;
}

RC_GTEST_PROP(Meter, parts_sum_to_the_whole_and_the_surcharge_is_for_covered_time_alone, ()) {
    const Pricing pricing = any_pricing();
    const std::vector<UsageRow> rows = any_history(pricing);
    const Ledger ledger = ledger_of(rows);
    const Question question{.window = all_of_it, .now = much_later};
    const auto charges = charges_of({ledger, empty_ledger}, question);
    for (const UsageRow& row : rows) {
        std::int64_t base_ms = 0, covered_ms = 0;
        for (const Charged& charge : charges) {
            if (charge.lease != row.lease) continue;
            RC_ASSERT(charge.time.from >= row.from && charge.time.to <= row.to && charge.time.from < charge.time.to);
            RC_ASSERT(charge.kind != ChargeKind::surcharge || charge.covered);
            if (charge.kind == ChargeKind::usage) base_ms += charge.time.ms();
            if (charge.kind == ChargeKind::usage && charge.covered) covered_ms += charge.time.ms();
        }
        const auto kinds = static_cast<std::int64_t>(row.metered->units.size());
        RC_ASSERT(base_ms == kinds * (row.to - row.from).ms);
        RC_ASSERT(covered_ms == (row.from < row.to ? kinds * covered_ms_by_hand(row) : 0));
    }
}

RC_GTEST_PROP(Meter, every_charge_is_at_the_price_and_rate_in_force_all_the_time, ()) {
    const Pricing pricing = any_pricing();
    const std::vector<UsageRow> rows = any_history(pricing);
    const Ledger ledger = ledger_of(rows);
    const Question question{.window = all_of_it, .now = much_later};
    const Report whole = report({ledger, empty_ledger}, question);
    for_each_charge({ledger, empty_ledger}, question, whole, [&](const Charge& charge) {
        if (charge.kind == ChargeKind::rounding) return;
        const UsageRow& row = *std::ranges::find(rows, charge.entry->lease, &UsageRow::lease);
        for (const Instant at : {charge.time.from, Instant{charge.time.to.ms - 1}}) {
            const UnitPrice* price = price_by_hand(pricing, *row.metered, *charge.units, at);
            RC_ASSERT((price != nullptr) == charge.per_hour.has_value());
            if (price != nullptr) {
                RC_ASSERT(price->perHour == *charge.per_hour);
            }
            if (charge.kind == ChargeKind::surcharge) {
                RC_ASSERT(charge.rate->surchargePercent == pricing.surcharge_percent(at));
            }
        }
        RC_ASSERT(day_of(charge.time.from) == day_of({charge.time.to.ms - 1}));
    });
}

RC_GTEST_PROP(Meter, rows_sum_to_the_lines_and_to_the_invoices_to_the_last_unit, ()) {
    const Pricing pricing = any_pricing();
    const Ledger ledger = ledger_of(any_history(pricing));
    const Question question{.window = all_of_it, .now = much_later, .by_lease = any(0, 1) == 1};
    const Report whole = report({ledger, empty_ledger}, question);
    Wide rows = 0, lines = 0, roundings = 0;
    std::map<std::string, Wide> by_invoice;
    for (const Charged& charge : charges_of({ledger, empty_ledger}, question)) {
        rows += charge.amount;
        by_invoice[charge.invoice] += charge.amount;
        if (charge.kind == ChargeKind::rounding) roundings += charge.amount;
    }
    for (const Line& line : whole.lines) lines += line.total();
    RC_ASSERT(rows == lines + roundings);
    Wide totals = 0;
    for (const auto& [currency, total] : whole.totals) totals += total;
    RC_ASSERT(totals == rows);
    RC_ASSERT(by_invoice[""] == 0);  // every month is over, and what has no price costs nothing
    for (const Invoice& invoice : whole.invoices) {
        RC_ASSERT(by_invoice[invoice.id] == invoice.payable);
        RC_ASSERT(invoice.payable == rounded_to_minor(invoice.payable, invoice.currency));
    }
}

RC_GTEST_PROP(Meter, neither_the_order_of_rows_nor_their_repetition_matters, ()) {
    const Pricing pricing = any_pricing();
    std::vector<UsageRow> rows = any_history(pricing);
    const Ledger once = ledger_of(rows);
    for (std::size_t i = rows.size(); i > 1; --i)
        std::swap(rows[i - 1], rows[static_cast<std::size_t>(any(0, static_cast<std::int64_t>(i) - 1))]);
    Ledger again = ledger_of(rows);
    for (const UsageRow& row : rows) RC_ASSERT(!again.add(row).value());
    const Question question{.window = all_of_it, .now = much_later};
    RC_ASSERT(report_json(report({once, empty_ledger}, question)) ==
              report_json(report({again, empty_ledger}, question)));
    const auto first = charges_of({once, empty_ledger}, question), second = charges_of({again, empty_ledger}, question);
    RC_ASSERT(first.size() == second.size());
    for (std::size_t i = 0; i < first.size(); ++i)
        RC_ASSERT(first[i].amount == second[i].amount && first[i].text == second[i].text &&
                  first[i].lease == second[i].lease);
}

RC_GTEST_PROP(Meter, windows_that_lie_side_by_side_say_together_what_one_says, ()) {
    const Pricing pricing = any_pricing();
    const Ledger ledger = ledger_of(any_history(pricing));
    const Instant middle{history_begins.ms + any(-20, 100) * ms_per_day};
    const auto sum = [&](Interval window) {
        Wide total = 0;
        for (const Line& line : report({ledger, empty_ledger}, {.window = window, .now = much_later}).lines)
            total += line.total();
        return total;
    };
    RC_ASSERT(sum({all_of_it.from, middle}) + sum({middle, all_of_it.to}) == sum(all_of_it));
}

// A running lease is counted up to now. What was said of days that are over stays so, whenever the lease ends.
RC_GTEST_PROP(Meter, what_was_closed_stays_as_it_was_when_the_lease_ends_later, ()) {
    const Pricing pricing = any_pricing();
    const UsageRow ended = any_lease(pricing, 1);
    RC_PRE(ended.to - ended.from > Duration{2});
    const Instant now{ended.from.ms + any(1, (ended.to - ended.from).ms - 1)};
    UsageRow running = ended;
    running.to = now;
    running.rates = rates_for(pricing, *running.metered, running.from, running.to);
    const Ledger open = ledger_of({running}), closed = ledger_of({ended});
    const auto then = charges_of({empty_ledger, open}, {.window = all_of_it, .now = now});
    const auto later = charges_of({closed, empty_ledger}, {.window = all_of_it, .now = much_later});
    for (const Charged& charge : then) {
        if (charge.open || charge.kind == ChargeKind::rounding) continue;
        RC_ASSERT(std::ranges::any_of(later, [&](const Charged& other) {
            return other.time == charge.time && other.amount == charge.amount && other.text == charge.text &&
                   other.kind == charge.kind;
        }));
    }
}

RC_GTEST_PROP(Meter, a_tenant_sees_its_own_rows_and_the_same_ones, ()) {
    const Pricing pricing = any_pricing();
    const std::vector<UsageRow> rows = any_history(pricing);
    std::vector<UsageRow> own;
    std::ranges::copy_if(rows, std::back_inserter(own), [](const UsageRow& row) { return row.tenant == "acme"; });
    const Ledger all = ledger_of(rows), alone = ledger_of(own);
    const Question narrowed{.window = all_of_it, .now = much_later, .tenants = std::set<std::string>{"acme"}};
    RC_ASSERT(report_json(report({all, empty_ledger}, narrowed)) ==
              report_json(report({alone, empty_ledger}, {.window = all_of_it, .now = much_later})));
}

RC_GTEST_PROP(Meter, rows_survive_being_written_down, ()) {
    const UsageRow row = any_lease(any_pricing(), 7);
    RC_ASSERT(from_json<UsageRow>("row", to_compact_json(row)).value() == row);
}

UsageRow whole_gpu(Instant from, Instant to) {
    UsageRow row{.lease = "lease-1",
                 .tenant = "acme",
                 .workload = "train",
                 .gpus = Gpus::whole(1),
                 .from = from,
                 .to = to,
                 .currency = "EUR"};
    row.metered = Metered{.tenantClass = "batch", .units = {{"h100", "", false, Gpus::whole(1)}}};
    row.rates = {{.from = {0}, .list = "first", .surchargePercent = 12, .prices = {{0, {2'400'000'000}}}}};
    return row;
}

const Instant noon{history_begins.ms + ms_per_day / 2};

TEST(Ledger, the_same_row_again_changes_nothing_and_another_under_its_name_is_an_error) {
    Ledger ledger;
    UsageRow row = whole_gpu(noon, noon + Duration::hours(1));
    EXPECT_TRUE(ledger.add(row).value());
    EXPECT_FALSE(ledger.add(row).value());
    row.to = noon + Duration::hours(2);
    const auto again = ledger.add(row);
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().code, Code::conflict);
    EXPECT_THAT(again.error().what, HasSubstr("lease-1"));
    EXPECT_EQ(ledger.entries().size(), 1u);
}

TEST(Ledger, rows_from_before_there_were_prices_are_counted_and_not_billed) {
    const auto old = from_json<UsageRow>(
        "row",
        R"({"lease":"lease-9","tenant":"acme","workload":"w","gpus":1.5,"from":"2027-01-01T00:00:00Z","to":"2027-01-01T01:00:00Z"})");
    ASSERT_TRUE(old) << old.error().what;
    Ledger ledger;
    ASSERT_TRUE(ledger.add(*old));
    const Report said = report({ledger, empty_ledger}, {.window = all_of_it, .now = much_later});
    ASSERT_EQ(said.lines.size(), 1u);
    EXPECT_EQ(said.lines[0].ms, 3'600'000);
    EXPECT_EQ(said.lines[0].unpriced_ms, 3'600'000);
    EXPECT_EQ(said.lines[0].unit_ms, Wide{1500} * 3'600'000 * gpu_unit / 1000);
    EXPECT_TRUE(said.totals.empty());
    ASSERT_EQ(said.findings.size(), 1u);
    EXPECT_THAT(said.findings[0], HasSubstr("without a price"));
}

TEST(Report, a_lease_that_runs_is_open_today_and_closed_yesterday) {
    const Instant from{history_begins.ms + ms_per_day - 3'600'000};
    Ledger open;
    ASSERT_TRUE(open.add(whole_gpu(from, from + Duration::hours(4))));
    const Report said = report({empty_ledger, open}, {.window = all_of_it, .now = from + Duration::hours(4)});
    ASSERT_EQ(said.lines.size(), 1u);
    EXPECT_EQ(said.lines[0].ms, 4 * 3'600'000);
    EXPECT_EQ(said.lines[0].open_ms, 3 * 3'600'000) << "yesterday has been over for longer than the grace";
    EXPECT_TRUE(said.invoices.empty()) << "the month is not over";
}

TEST(Report, a_lease_that_ended_while_the_question_was_asked_is_counted_once) {
    Ledger open, closed;
    ASSERT_TRUE(open.add(whole_gpu(noon, noon + Duration::hours(1))));
    ASSERT_TRUE(closed.add(whole_gpu(noon, noon + Duration::hours(2))));
    const Report said = report({closed, open}, {.window = all_of_it, .now = noon + Duration::hours(2)});
    EXPECT_EQ(said.lines.at(0).ms, 2 * 3'600'000);
    EXPECT_EQ(charges_of({closed, open}, {.window = all_of_it, .now = noon + Duration::hours(2)}).size(), 1u);
}

TEST(Report, a_correction_is_billed_when_it_is_posted_and_says_what_it_corrects) {
    Ledger ledger;
    ASSERT_TRUE(ledger.add(whole_gpu(noon, noon + Duration::hours(1))));
    UsageRow correction = whole_gpu(noon, noon + Duration::hours(1));
    correction.correction = UsageCorrection{.id = "ticket-7",
                                            .amount = {-400'000'000},
                                            .posted = noon + Duration::days(40),
                                            .by = "ops",
                                            .why = "the node was slow"};
    ASSERT_TRUE(ledger.add(correction).value());
    ASSERT_FALSE(ledger.add(correction).value()) << "posted twice";
    const auto month = [&](std::string_view from, std::string_view to) {
        return report({ledger, empty_ledger}, {.window = parse_window(from, to).value(), .now = much_later});
    };
    EXPECT_EQ(print_amount(month("2027-01-01", "2027-02-01").totals["EUR"]), "2.4") << "what was invoiced stays";
    EXPECT_EQ(print_amount(month("2027-02-01", "2027-03-01").totals["EUR"]), "-0.4");
    const Question question{.window = all_of_it, .now = much_later};
    int late = 0;
    for_each_charge({ledger, empty_ledger}, question, report({ledger, empty_ledger}, question),
                    [&](const Charge& charge) { late += charge.late ? 1 : 0; });
    EXPECT_EQ(late, 1);
}

TEST(Report, contradicting_rows_stop_the_invoice_and_not_the_report) {
    Ledger ledger;
    ASSERT_TRUE(ledger.add(whole_gpu(noon, noon + Duration::hours(1))));
    const Question question{.window = all_of_it, .now = much_later};
    EXPECT_EQ(report({ledger, empty_ledger}, question).invoices.size(), 1u);
    const Report doubtful = report({ledger, empty_ledger}, question, {"two rows of lease-1 differ"});
    EXPECT_TRUE(doubtful.invoices.empty());
    EXPECT_EQ(doubtful.lines.size(), 1u);
    EXPECT_THAT(doubtful.findings.back(), HasSubstr("lease-1"));
}

TEST(Report, a_window_is_of_whole_days) {
    EXPECT_TRUE(parse_window("2027-01-01", "2027-02-01"));
    EXPECT_TRUE(parse_window("2027-01-01T00:00:00Z", "2027-01-02"));
    for (const auto& [from, to] : {std::pair{"2027-01-01", "2027-01-01"},
                                   {"2027-02-01", "2027-01-01"},
                                   {"", ""},
                                   {"2027-01-01T01:00:00Z", "2027-01-02"},
                                   {"2027-1-1", "2027-01-02"},
                                   {"yesterday", "today"},
                                   {"1927-01-01", "2027-01-02"},
                                   {"2027-02-30", "2027-03-02"}})
        EXPECT_FALSE(parse_window(from, to)) << from << ' ' << to;
}

TEST(ChargeId, is_the_charges_own) {
    const std::string one = charge_id({"lease-1", "gpu-h100", noon});
    EXPECT_EQ(one, charge_id({"lease-1", "gpu-h100", noon}));
    EXPECT_EQ(one.size(), 32u);
    EXPECT_NE(one, charge_id({"lease-2", "gpu-h100", noon}));
    EXPECT_NE(one, charge_id({"lease-1", "gpu-h100-scm", noon}));
    EXPECT_NE(one, charge_id({"lease-1", "gpu-h100", noon + Duration{1}}));
    EXPECT_NE(one, charge_id({"lease-1", "gpu-h100", noon, "2"}));
    EXPECT_EQ(sku_of({"h100-80gb-sxm5", "3g.40gb", true, {}}, true), "gpu-h100-80gb-sxm5-3g40gb-shared-scm");
}

TEST(Rates, what_has_begun_is_not_changed) {
    Pricing before{.currency = "EUR"};
    before.lists = {{"old", noon, 10, {{"h100", "", false, "", {1}}}},
                    {"next", noon + Duration::days(10), {}, {{"h100", "", false, "", {2}}}}};
    const Instant now = noon + Duration::days(1);
    struct Row {
        std::string_view says;
        void (*change)(Pricing&);
        bool kept;
    };
    for (const Row& row : {
             Row{"the same again", [](Pricing&) {}, true},
             Row{"another order", [](Pricing& p) { std::swap(p.lists[0], p.lists[1]); }, true},
             Row{"what is to come may change", [](Pricing& p) { p.lists[1].prices[0].perHour = {9}; }, true},
             Row{"and go", [](Pricing& p) { p.lists.pop_back(); }, true},
             Row{"a price of today", [](Pricing& p) { p.lists[0].prices[0].perHour = {9}; }, false},
             Row{"the surcharge of today", [](Pricing& p) { p.lists[0].complianceSurchargePercent = 11; }, false},
             Row{"the surcharge of a list to come", [](Pricing& p) { p.complianceSurchargePercent = 50; }, true},
             Row{"a list of the past goes", [](Pricing& p) { p.lists.erase(p.lists.begin()); }, false},
             Row{"a list of the past comes",
                 [](Pricing& p) { p.lists.push_back({"late", noon + Duration{1}, {}, {}}); }, false},
             Row{"when it began", [](Pricing& p) { p.lists[0].validFrom = noon + Duration{1}; }, false},
             Row{"all of it goes", [](Pricing& p) { p = {}; }, false},
             Row{"another currency", [](Pricing& p) { p.currency = "USD"; }, false},
         }) {
        Pricing after = before;
        row.change(after);
        EXPECT_EQ(keeps_the_past(before, after, now).has_value(), row.kept) << row.says;
    }
    EXPECT_TRUE(keeps_the_past({}, before, now)) << "the first prices may reach back: nothing was billed yet";
    Pricing leaning = before;
    leaning.lists[0].complianceSurchargePercent.reset();
    Pricing dearer = leaning;
    dearer.complianceSurchargePercent = 50;
    EXPECT_FALSE(keeps_the_past(leaning, dearer, now)) << "a list of today leans on it";
}

// A day of one lease that kept six GPUs from others for its first half and two for the rest.
std::vector<UsageRow> day_with_exclusivity(const Pricing& pricing) {
    UsageRow own{.lease = "lease-1",
                 .tenant = "acme",
                 .workload = "w",
                 .gpus = Gpus::whole(2),
                 .from = history_begins,
                 .to = history_begins + Duration::hours(10),
                 .metered = Metered{.units = {{"h100", "", false, Gpus::whole(2)}}},
                 .currency = "EUR"};
    own.rates = rates_for(pricing, *own.metered, own.from, own.to);
    std::vector<UsageRow> rows{own};
    for (const std::int64_t part : {1, 2}) {
        GpuLease lease{.metadata = {.name = "lease-1"}, .spec = {.tenant = "acme", .workload = "w"}, .status = {}};
        lease.status = GpuLeaseStatus{.metered = own.metered};
        lease.status->kept = KeptCapacity{.since = history_begins + Duration::hours(part == 1 ? 0 : 5),
                                          .units = {{"h100", "", false, Gpus::whole(part == 1 ? 6 : 2), true}},
                                          .rows = part - 1};
        rows.push_back(kept_row(lease, pricing, history_begins + Duration::hours(part == 1 ? 5 : 10)));
    }
    return rows;
}

Pricing with_exclusive_price(bool priced) {
    Pricing pricing{.currency = "EUR", .lists = {{.name = "first", .validFrom = history_begins, .prices = {}}}};
    pricing.lists[0].prices.push_back({"h100", "", false, "", Money{2'000'000'000}});
    if (priced) pricing.lists[0].prices.push_back({"h100", "", false, "", Money{500'000'000}, true});
    return pricing;
}

TEST(Exclusivity, is_a_line_of_its_own_at_a_price_of_its_own) {
    const Ledger ledger = ledger_of(day_with_exclusivity(with_exclusive_price(true)));
    const Ledger none;
    const Question all{.window = {history_begins, history_begins + Duration::days(2)},
                       .now = history_begins + Duration::days(3),
                       .tenants = {}};
    const Report said = report({ledger, none}, all);
    ASSERT_EQ(said.lines.size(), 2u);
    EXPECT_FALSE(said.lines[0].exclusive);
    EXPECT_EQ(print_amount(said.lines[0].base), "40");
    EXPECT_TRUE(said.lines[1].exclusive);
    EXPECT_EQ(said.lines[1].unit_ms, Wide{8 * 5 * 3'600'000} * gpu_unit);
    EXPECT_EQ(print_amount(said.lines[1].base), "20");
    EXPECT_TRUE(said.findings.empty());
    int kept = 0;
    for_each_charge({ledger, none}, all, said, [&](const Charge& charge) {
        if (charge.kind != ChargeKind::exclusivity) return;
        ++kept;
        EXPECT_EQ(sku_of(*charge.units, false), "gpu-h100-exclusive");
    });
    EXPECT_EQ(kept, 2);
    EXPECT_NE(report_json(said).find("\"exclusive\":true"), std::string::npos);
}

TEST(Exclusivity, without_a_price_of_its_own_is_counted_and_not_billed) {
    const Ledger ledger = ledger_of(day_with_exclusivity(with_exclusive_price(false)));
    const Ledger none;
    const Report said = report({ledger, none}, {.window = {history_begins, history_begins + Duration::days(2)},
                                                .now = history_begins + Duration::days(3),
                                                .tenants = {}});
    ASSERT_EQ(said.lines.size(), 2u);
    EXPECT_EQ(said.lines[1].base, 0);
    ASSERT_EQ(said.findings.size(), 1u);
    EXPECT_NE(said.findings[0].find("without an exclusive price"), std::string::npos) << said.findings[0];
}

TEST(Exclusivity, a_row_that_runs_on_is_not_counted_twice) {
    const Pricing pricing = with_exclusive_price(true);
    std::vector<UsageRow> rows = day_with_exclusivity(pricing);
    const Ledger closed = ledger_of({rows[0], rows[1]});
    const Ledger open = ledger_of({rows[1], rows[2]});
    const Report said = report({closed, open}, {.window = {history_begins, history_begins + Duration::days(2)},
                                                .now = history_begins + Duration::days(3),
                                                .tenants = {}});
    ASSERT_EQ(said.lines.size(), 2u);
    EXPECT_EQ(print_amount(said.lines[1].base), "20");
}

}  // namespace
}  // namespace bulkhead::meter
