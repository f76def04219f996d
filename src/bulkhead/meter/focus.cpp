#include "bulkhead/meter/focus.hpp"

#include <fmt/core.h>

#include <array>

#include "bulkhead/codec/json_writer.hpp"
#include "bulkhead/meter/csv.hpp"

namespace bulkhead::meter {

namespace {

// What a column says of a charge; an empty text is null.
struct FocusColumn {
    std::string_view name;
    std::string (*says)(const Charge& charge, const FocusWords& words);
};

bool is_metered(const Charge& charge) {
    return charge.kind == ChargeKind::usage || charge.kind == ChargeKind::surcharge ||
           charge.kind == ChargeKind::exclusivity;
}
bool is_surcharge(const Charge& charge) { return charge.kind == ChargeKind::surcharge; }
std::string_view thing(const Charge& charge) { return charge.units->profile.empty() ? "GPU" : "Slice"; }

std::string amount(const Charge& charge, const FocusWords&) { return print_amount(charge.amount); }

Wide unit_ms(const Charge& charge) { return Wide{charge.time.ms()} * charge.units->units.units; }

// Hours of units to nine decimals; what is billed is computed from milliseconds, not from this.
std::string pricing_quantity(const Charge& charge, const FocusWords&) {
    if (!is_metered(charge)) return {};
    return print_decimal(round_half_even(unit_ms(charge) * 1'000'000'000, base_denominator), 9);
}

std::string unit_price(const Charge& charge, const FocusWords&) {
    if (!is_metered(charge) || !charge.per_hour) return {};
    if (!is_surcharge(charge)) return print(*charge.per_hour);
    return print_decimal(Wide{charge.per_hour->nano} * charge.rate->surchargePercent, 11);
}

std::string sku(const Charge& charge) { return is_metered(charge) ? sku_of(*charge.units, is_surcharge(charge)) : ""; }

std::string description(const Charge& charge, const FocusWords&) {
    switch (charge.kind) {
        case ChargeKind::usage:
            return fmt::format("{} of {}{}{}{} for {}", print_decimal(charge.units->units), charge.units->model,
                               charge.units->profile.empty() ? "" : " ", charge.units->profile,
                               charge.units->shared ? ", shared" : "", charge.entry->workload);
        case ChargeKind::exclusivity:
            return fmt::format("{} of {} kept from others and not leased, by the isolation request of {}",
                               print_decimal(charge.units->units), charge.units->model, charge.entry->workload);
        case ChargeKind::surcharge:
            return fmt::format("Security & Compliance Mode, {} % of the base price, for {}",
                               charge.rate->surchargePercent, charge.entry->workload);
        case ChargeKind::correction:
            return fmt::format("correction {}: {}", charge.entry->correction->id, charge.entry->correction->why);
        case ChargeKind::rounding:
            return "rounding of the invoice to what can be paid";
    }
    return {};
}

std::string price_details(const Charge& charge, const FocusWords&) {
    if (!is_metered(charge)) return {};
    JsonWriter out{JsonLayout::compact};
    out.begin_object();
    if (is_surcharge(charge)) {
        out.member("x_SurchargeBasis", sku_of(*charge.units, false));
        out.member("x_SurchargeRate", print_decimal(charge.rate->surchargePercent, 2));
    } else {
        if (charge.units->profile.empty())
            out.member("GpuCount", 1);
        else
            out.member("x_MigProfile", charge.units->profile);
        if (charge.units->shared) out.member("x_Shared", true);
        if (charge.units->exclusive) out.member("x_Exclusive", true);
    }
    out.end_object();
    return out.take();
}

std::string charge_name(const Charge& charge, const FocusWords&) {
    switch (charge.kind) {
        case ChargeKind::usage:
        case ChargeKind::exclusivity:
        case ChargeKind::surcharge:
            return charge_id({charge.entry->lease, sku(charge), charge.time.from});
        case ChargeKind::correction:
            return charge_id(
                {charge.entry->lease, "correction", charge.entry->time.from, charge.entry->correction->id});
        case ChargeKind::rounding:
            return charge_id({charge.invoice, "rounding", charge.time.from});
    }
    return {};
}

std::string nothing(const Charge&, const FocusWords&) { return {}; }
std::string provider(const Charge&, const FocusWords& words) { return words.provider; }

constexpr std::array focus_columns{
    FocusColumn{"BilledCost", amount},
    FocusColumn{"BillingAccountId", [](const Charge& c, const FocusWords&) { return c.terms->account; }},
    FocusColumn{"BillingAccountName", [](const Charge& c, const FocusWords&) { return c.terms->account; }},
    FocusColumn{"BillingCurrency",
                [](const Charge& c, const FocusWords&) {
                    return c.terms->currency.empty() ? std::string{"XXX"} : c.terms->currency;
                }},
    FocusColumn{"BillingPeriodStart", [](const Charge& c, const FocusWords&) { return print(c.month); }},
    FocusColumn{"BillingPeriodEnd", [](const Charge& c, const FocusWords&) { return print(next_month(c.month)); }},
    FocusColumn{"ChargeCategory",
                [](const Charge& c, const FocusWords&) -> std::string {
                    return c.kind == ChargeKind::rounding ? "Adjustment" : "Usage";
                }},
    FocusColumn{"ChargeClass",
                [](const Charge& c, const FocusWords&) -> std::string { return c.late ? "Correction" : ""; }},
    FocusColumn{"ChargeDescription", description},
    FocusColumn{
        "ChargeFrequency",
        [](const Charge& c, const FocusWords&) -> std::string { return is_metered(c) ? "Usage-Based" : "One-Time"; }},
    FocusColumn{"ChargePeriodStart", [](const Charge& c, const FocusWords&) { return print(c.time.from); }},
    FocusColumn{"ChargePeriodEnd", [](const Charge& c, const FocusWords&) { return print(c.time.to); }},
    FocusColumn{"ConsumedQuantity",
                [](const Charge& c, const FocusWords&) {
                    return is_metered(c) ? print_unit_seconds(unit_ms(c)) : std::string{};
                }},
    FocusColumn{"ConsumedUnit",
                [](const Charge& c, const FocusWords&) {
                    return is_metered(c) ? fmt::format("{}-Seconds", thing(c)) : std::string{};
                }},
    FocusColumn{"ContractedCost", amount},
    FocusColumn{"ContractedUnitPrice", unit_price},
    FocusColumn{"EffectiveCost", amount},
    FocusColumn{"InvoiceId", [](const Charge& c, const FocusWords&) { return c.invoice; }},
    FocusColumn{"InvoiceIssuerName", provider},
    FocusColumn{"ListCost", amount},
    FocusColumn{"ListUnitPrice", unit_price},
    FocusColumn{"PricingCategory",
                [](const Charge& c, const FocusWords&) -> std::string { return is_metered(c) ? "Standard" : ""; }},
    FocusColumn{"PricingQuantity", pricing_quantity},
    FocusColumn{"PricingUnit",
                [](const Charge& c, const FocusWords&) {
                    return is_metered(c) ? fmt::format("{}-Hours", thing(c)) : std::string{};
                }},
    FocusColumn{"ProviderName", provider},
    FocusColumn{"PublisherName", provider},
    FocusColumn{"RegionId", nothing},
    FocusColumn{"ResourceId", [](const Charge& c, const FocusWords&) { return c.entry ? c.entry->lease : ""; }},
    FocusColumn{"ResourceName", [](const Charge& c, const FocusWords&) { return c.entry ? c.entry->workload : ""; }},
    FocusColumn{"ResourceType",
                [](const Charge& c, const FocusWords&) -> std::string { return c.entry ? "GPU lease" : ""; }},
    FocusColumn{"ServiceCategory", [](const Charge&, const FocusWords&) -> std::string { return "Compute"; }},
    FocusColumn{"ServiceName", [](const Charge&, const FocusWords&) -> std::string { return "GPU slices"; }},
    FocusColumn{"ServiceSubcategory",
                [](const Charge&, const FocusWords&) -> std::string { return "Other (Compute)"; }},
    FocusColumn{"SkuId", [](const Charge& c, const FocusWords&) { return sku(c); }},
    FocusColumn{"SkuMeter",
                [](const Charge& c, const FocusWords&) -> std::string {
                    if (!is_metered(c)) return {};
                    if (is_surcharge(c)) return "Security & Compliance Mode";
                    if (c.units->exclusive) return "GPU exclusivity";
                    return c.units->profile.empty() ? "GPU time" : "GPU slice time";
                }},
    FocusColumn{"SkuPriceDetails", price_details},
    FocusColumn{"SkuPriceId",
                [](const Charge& c, const FocusWords&) {
                    return is_metered(c) && c.per_hour ? sku(c) + "@" + c.rate->list : std::string{};
                }},
    FocusColumn{"SubAccountId", [](const Charge& c, const FocusWords&) { return c.terms->tenant; }},
    FocusColumn{"SubAccountName", [](const Charge& c, const FocusWords&) { return c.terms->tenant; }},
    FocusColumn{"SubAccountType", [](const Charge&, const FocusWords&) -> std::string { return "Tenant"; }},
    FocusColumn{"Tags", nothing},
    FocusColumn{"x_ChargeId", charge_name},
    FocusColumn{"x_ChargeKind", [](const Charge& c, const FocusWords&) { return std::string{word(c.kind)}; }},
    FocusColumn{"x_Class", [](const Charge& c, const FocusWords&) { return c.terms->tenant_class; }},
    FocusColumn{"x_Compliance",
                [](const Charge& c, const FocusWords&) -> std::string {
                    if (!c.units || c.terms->compliance == Compliance::off) return {};
                    return c.covered ? "covered" : "degraded";
                }},
    FocusColumn{"x_EvidenceLeaf",
                [](const Charge& c, const FocusWords&) {
                    return c.entry && c.entry->leaf >= 0 ? std::to_string(c.entry->leaf) : std::string{};
                }},
    FocusColumn{"x_LeaseId", [](const Charge& c, const FocusWords&) { return c.entry ? c.entry->lease : ""; }},
    FocusColumn{
        "x_LeaseMs",
        [](const Charge& c, const FocusWords&) { return is_metered(c) ? std::to_string(c.time.ms()) : std::string{}; }},
    FocusColumn{"x_Mechanism",
                [](const Charge& c, const FocusWords&) {
                    return c.units && c.terms->known_mechanism ? std::string{word(c.terms->mechanism)} : std::string{};
                }},
    FocusColumn{"x_Open", [](const Charge& c, const FocusWords&) -> std::string { return c.open ? "true" : "false"; }},
};

}  // namespace

Result<std::string> focus_csv(const Known& known, const Question& question, const Report& report,
                              const FocusWords& words) {
    CsvWriter csv;
    for (const FocusColumn& column : focus_columns) csv.cell(column.name);
    csv.end_row();
    std::size_t rows = 0;
    for_each_charge(known, question, report, [&](const Charge& charge) {
        if (++rows > words.most_rows) return;
        for (const FocusColumn& column : focus_columns) csv.cell(column.says(charge, words));
        csv.end_row();
    });
    if (rows > words.most_rows)
        return fail(Code::exhausted,
                    fmt::format("{} charges are more than one answer holds, which is {}", rows, words.most_rows),
                    "ask for fewer days, or one tenant at a time");
    return csv.take();
}

}  // namespace bulkhead::meter
