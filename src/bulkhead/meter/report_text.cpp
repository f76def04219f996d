// Reports as JSON and as CSV. Amounts are text: a reader that takes them for floating point does so knowingly.
#include <fmt/core.h>

#include "bulkhead/codec/json_writer.hpp"
#include "bulkhead/meter/csv.hpp"
#include "bulkhead/meter/report.hpp"

namespace bulkhead::meter {

std::string report_json(const Report& report) {
    JsonWriter out{JsonLayout::compact};
    out.begin_object();
    out.member("from", print(report.window.from));
    out.member("to", print(report.window.to));
    out.member("asOf", print(report.now));
    out.key("items");
    out.begin_array();
    for (const Line& line : report.lines) {
        out.begin_object();
        out.member("tenant", line.tenant);
        if (!line.tenant_class.empty()) out.member("class", line.tenant_class);
        if (!line.mechanism.empty()) out.member("mechanism", line.mechanism);
        if (!line.model.empty()) out.member("model", line.model);
        if (!line.profile.empty()) out.member("profile", line.profile);
        if (line.shared) out.member("shared", true);
        if (line.exclusive) out.member("exclusive", true);
        if (!line.lease.empty()) out.member("lease", line.lease);
        out.member("leases", line.leases);
        out.member("leaseMs", line.ms);
        out.member("unitMs", print_unit_ms(line.unit_ms));
        out.member("coveredMs", line.covered_ms);
        out.member("degradedMs", line.degraded_ms);
        out.member("unpricedMs", line.unpriced_ms);
        out.member("openMs", line.open_ms);
        out.member("currency", line.currency);
        out.member("base", print_amount(line.base));
        out.member("surcharge", print_amount(line.surcharge));
        out.member("corrections", print_amount(line.corrections));
        out.member("total", print_amount(line.total()));
        out.end_object();
    }
    out.end_array();
    out.key("invoices");
    out.begin_array();
    for (const Invoice& invoice : report.invoices) {
        out.begin_object();
        out.member("id", invoice.id);
        out.member("tenant", invoice.tenant);
        out.member("account", invoice.account);
        out.member("month", print(invoice.month).substr(0, 7));
        out.member("currency", invoice.currency);
        out.member("rows", print_amount(invoice.rows));
        out.member("rounding", print_amount(invoice.rounding()));
        out.member("payable", print_amount(invoice.payable));
        out.end_object();
    }
    out.end_array();
    out.key("totals");
    out.begin_array();
    for (const auto& [currency, amount] : report.totals) {
        out.begin_object();
        out.member("currency", currency);
        out.member("total", print_amount(amount));
        out.end_object();
    }
    out.end_array();
    out.key("findings");
    out.begin_array();
    for (const std::string& finding : report.findings) out.value(finding);
    out.end_array();
    out.end_object();
    return out.take();
}

std::string report_csv(const Report& report) {
    CsvWriter csv;
    for (const char* name :
         {"tenant",   "class",   "mechanism", "model",       "profile",    "shared",     "lease",
          "leases",   "leaseMs", "unitMs",    "coveredMs",   "degradedMs", "unpricedMs", "openMs",
          "currency", "base",    "surcharge", "corrections", "rounding",   "total",      "exclusive"})
        csv.cell(name);
    csv.end_row();
    for (const Line& line : report.lines) {
        for (const std::string& text : {line.tenant, line.tenant_class, line.mechanism, line.model, line.profile})
            csv.cell(text);
        csv.cell(line.shared ? "true" : "false").cell(line.lease);
        for (const std::int64_t number : {line.leases, line.ms}) csv.cell(std::to_string(number));
        csv.cell(print_unit_ms(line.unit_ms));
        for (const std::int64_t number : {line.covered_ms, line.degraded_ms, line.unpriced_ms, line.open_ms})
            csv.cell(std::to_string(number));
        csv.cell(line.currency);
        for (const Wide amount : {line.base, line.surcharge, line.corrections}) csv.cell(print_amount(amount));
        csv.cell("0").cell(print_amount(line.total())).cell(line.exclusive ? "true" : "false").end_row();
    }
    for (const Invoice& invoice : report.invoices) {
        csv.cell(invoice.tenant);
        for (int i = 0; i < 13; ++i) csv.cell("");
        csv.cell(invoice.currency).cell("0").cell("0").cell("0");
        csv.cell(print_amount(invoice.rounding())).cell(print_amount(invoice.rounding())).cell("false").end_row();
    }
    return csv.take();
}

}  // namespace bulkhead::meter
