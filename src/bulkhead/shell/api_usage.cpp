// What was used and what it costs; corrections of it; and the compliance switch.
#include <fmt/core.h>

#include "bulkhead/codec/decode.hpp"
#include "bulkhead/meter/focus.hpp"
#include "bulkhead/shell/api.hpp"
#include "bulkhead/shell/body.hpp"
#include "bulkhead/shell/usage_book.hpp"

namespace bulkhead::shell {

namespace {

constexpr std::size_t most_lines = 100'000;

struct ComplianceBody {
    Compliance mode = Compliance::off;
    std::string why;
    bool dryRun = false;
    static constexpr void describe(auto&& field) {
        field("mode", &ComplianceBody::mode, "off, confidential or dedicated.", Rule{.required = true});
        field("why", &ComplianceBody::why, "Why: the log keeps it.", Rule{.format = Format::line});
        field("dryRun", &ComplianceBody::dryRun, "Say what would change, and change nothing.");
    }
};

struct CorrectionBody {
    std::string id, lease, why;
    Money amount;
    static constexpr void describe(auto&& field) {
        field("id", &CorrectionBody::id, "Your name for it: posted again under it, nothing changes.",
              Rule{.required = true, .format = Format::name});
        field("lease", &CorrectionBody::lease, "The lease whose time was billed.",
              Rule{.required = true, .format = Format::name});
        field("amount", &CorrectionBody::amount, "Added to the bill; negative: taken off it.", Rule{.required = true});
        field("why", &CorrectionBody::why, "Why: the log and the bill keep it.",
              Rule{.required = true, .format = Format::line});
    }
};

Result<FleetPolicy> policy_of(const Catalog& catalog) {
    const auto page = catalog.list(ObjectKind::policy, {.selector = {}, .limit = 1, .after = {}});
    if (page.objects.empty()) return FleetPolicy{};
    return from_json<FleetPolicy>("the stored policy", page.objects.front()->body, own_text);
}

// Leases that run, as if they ended now.
Result<meter::Ledger> running(const Catalog& catalog, const Pricing& pricing, Instant now) {
    meter::Ledger open;
    std::string after;
    for (bool more = true; more;) {
        const auto page = catalog.list(ObjectKind::lease, {.selector = {}, .limit = 1000, .after = after});
        for (const ObjectPtr& object : page.objects) {
            const auto lease = from_json<GpuLease>("a stored lease", object->body, own_text);
            if (!lease) return std::unexpected(lease.error());
            if (!lease->status || lease->status->phase != LeasePhase::active || !lease->status->activeAt) continue;
            if (auto added = open.add(usage_until(*lease, pricing, now)); !added) return std::unexpected(added.error());
            if (const auto kept = kept_until(*lease, pricing, now))
                if (auto added = open.add(*kept); !added) return std::unexpected(added.error());
        }
        more = page.more;
        if (more) after = page.objects.back()->name;
    }
    return open;
}

Response usage_answer(std::string_view format, const meter::Known& known, const meter::Question& question,
                      const meter::Report& report, const std::string& provider) {
    if (report.lines.size() > most_lines)
        return problem(
            Error{Code::exhausted,
                  fmt::format("{} lines are more than one answer holds, which is {}", report.lines.size(), most_lines),
                  "ask for fewer days, or for one tenant"});
    if (format == "csv") return {.content_type = "text/csv; charset=utf-8", .body = meter::report_csv(report)};
    if (format == "focus") {
        auto csv = meter::focus_csv(known, question, report, {.provider = provider});
        if (!csv) return problem(csv.error());
        return {.content_type = "text/csv; charset=utf-8", .body = *std::move(csv)};
    }
    return {.body = meter::report_json(report)};
}

}  // namespace

void Api::usage(const Call& call, const Respond& respond) {
    const auto window = meter::parse_window(call.query("from"), call.query("to"));
    if (!window) return respond(problem(window.error()));
    const std::string_view format = call.query("format"), by = call.query("by");
    if (!format.empty() && format != "json" && format != "csv" && format != "focus")
        return respond(problem(Error{Code::invalid, "there is no such format of usage", "format=json, csv or focus"}));
    if (!by.empty() && by != "lease")
        return respond(problem(Error{Code::invalid, "usage is not told apart by that", "by=lease, or leave it out"}));
    const auto tenant = whose(call, Permission::read_usage);
    if (!tenant) return respond(problem(tenant.error()));
    const auto policy = policy_of(parts_.catalog);
    if (!policy) return respond(problem(policy.error()));
    const meter::Question question{
        .window = *window,
        .now = now(),
        .tenants = tenant->empty() ? std::optional<std::set<std::string>>{} : std::set<std::string>{*tenant},
        .by_lease = by == "lease"};
    // Running leases first: one that ends meanwhile is in both, and counted once.
    const auto open = running(parts_.catalog, policy->spec.pricing, question.now);
    if (!open) return respond(problem(open.error()));
    const std::string provider = policy->metadata.name.empty() ? "bulkhead" : policy->metadata.name;
    Response response;
    parts_.usage.read([&](const meter::Ledger& closed, const std::vector<std::string>& contradictions) {
        const meter::Known known{closed, *open};
        // Rows that contradict each other are the operator's to look into.
        std::vector<std::string> found = contradictions;
        if (!found.empty() && !call.caller.rights.may(Permission::read_usage))
            found = {"the operator is looking into rows of usage; nothing is invoiced before that is done"};
        response = usage_answer(format, known, question, meter::report(known, question, found), provider);
    });
    respond(std::move(response));
}

void Api::correct_usage(const Call& call, const Respond& respond) {
    const auto body = read_body<CorrectionBody>(call.request);
    if (!body) return respond(problem(body.error()));
    std::optional<command::CorrectUsage> wanted;
    parts_.usage.read([&](const meter::Ledger& closed, const std::vector<std::string>&) {
        const meter::Ledger::Entry* entry = closed.find(body->lease);
        if (entry == nullptr) return;
        const meter::Ledger::Terms& terms = closed.terms_of(*entry);
        wanted = command::CorrectUsage{.id = body->id,
                                       .lease = entry->lease,
                                       .tenant = terms.tenant,
                                       .workload = entry->workload,
                                       .tenant_class = terms.tenant_class,
                                       .account = terms.account == terms.tenant ? std::string{} : terms.account,
                                       .from = entry->time.from,
                                       .to = entry->time.to,
                                       .amount = body->amount,
                                       .currency = terms.currency,
                                       .why = body->why};
    });
    if (!wanted)
        return respond(
            problem(Error{Code::not_found, fmt::format("no usage of lease {} is closed", body->lease),
                          "GET /v1/usage?by=lease names leases; one that runs is corrected when it has ended"}));
    if (wanted->currency.empty()) {
        const auto policy = policy_of(parts_.catalog);
        if (policy) wanted->currency = policy->spec.pricing.currency;
    }
    ask(call, *std::move(wanted), respond);
}

void Api::compliance(const Call& call, const Respond& respond) {
    const auto body = read_body<ComplianceBody>(call.request);
    if (!body) return respond(problem(body.error()));
    if (body->why.empty() && !body->dryRun)
        return respond(problem(Error{Code::invalid, "the switch is not turned without a reason",
                                     "say why, or dryRun: true to see what would change"}));
    ask(call,
        command::SetCompliance{
            .tenant = call.path("name"), .mode = body->mode, .why = body->why, .dry_run = body->dryRun},
        respond);
}

}  // namespace bulkhead::shell
