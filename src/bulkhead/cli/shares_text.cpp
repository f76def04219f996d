#include "bulkhead/cli/shares_text.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <ostream>
#include <vector>

#include "bulkhead/cli/ruled.hpp"
#include "bulkhead/codec/json_writer.hpp"

namespace bulkhead::cli {

namespace {

using sched::Fraction;

// By depth, as far as a terminal has room.
std::string indented(const std::string& name, std::size_t depth) {
    constexpr std::size_t deepest = 24;
    return std::string(std::min(depth, deepest), ' ') + name;
}

void print_division(std::ostream& out, const SharesAnswer& answer) {
    Ruled table{{"Tenant", "Guarantee", "Limit", "Weight", "Priority", "Request", "Share"}, 1};
    const sched::Forest forest = sched::forest_of(std::span<const sched::Queue>{sched::queues_of(answer.cluster)});
    for (const sched::Visit visit : sched::reading_order(forest)) {
        const sched::ClusterTenant& tenant = answer.cluster.tenants[visit.at];
        const sched::QueueShare& due = answer.division.queues[visit.at];
        table.add({indented(tenant.name, visit.depth), print(tenant.guarantee),
                   tenant.limit ? print(*tenant.limit) : "-", std::to_string(tenant.weight),
                   std::to_string(tenant.overQuotaPriority), print(due.request), print(due.share)});
        if (!forest.is_leaf(visit.at) && tenant.request > Gpus{})
            table.add(
                {indented("(its own work)", visit.depth + 1), "", "", "", "", print(tenant.request), print(due.own)});
    }
    table.add({"(unallocated)", "", "", "", "", "", print(answer.division.unallocated)});
    table.print(out);
}

void print_fair_tree(std::ostream& out, const sched::FairTable& fair) {
    Ruled table{
        {"Account", "User", "RawShares", "NormShares", "RawUsage", "NormUsage", "EffectvUsage", "FairShare", "LevelFS"},
        2};
    const auto of_all = [&](std::int64_t usage) {
        return print(fair.tree.usage == 0
                         ? Fraction{}
                         : Fraction{static_cast<sched::Wide>(usage), static_cast<sched::Wide>(fair.tree.usage)});
    };
    table.add({"root", "", "", "", std::to_string(fair.tree.usage), of_all(fair.tree.usage), "", "", ""});
    for (std::size_t i = 0; i < fair.rows.size(); ++i) {
        const sched::FairRow& row = fair.rows[i];
        const sched::Standing& standing = fair.tree.standings[i];
        table.add({indented(row.account, row.depth + 1), row.user, std::to_string(row.shares),
                   print(standing.norm_shares), std::to_string(standing.usage), of_all(standing.usage),
                   print(standing.effective_usage), standing.rank ? print(fair.tree.factor(i)) : "",
                   print(standing.level)});
    }
    table.print(out);
}

void write_number(JsonWriter& json, std::string_view name, const Fraction& value) {
    json.key(name);
    if (value.is_infinite())
        json.value("inf");
    else
        json.number(print(value));
}

void write_division(JsonWriter& json, const SharesAnswer& answer) {
    json.key("shares");
    json.begin_object();
    for (std::size_t i = 0; i < answer.cluster.tenants.size(); ++i) {
        const sched::ClusterTenant& tenant = answer.cluster.tenants[i];
        const sched::QueueShare& due = answer.division.queues[i];
        json.key(tenant.name);
        json.begin_object();
        if (!tenant.parent.empty()) json.member("parent", tenant.parent);
        json.member("guarantee", tenant.guarantee);
        if (tenant.limit) json.member("limit", *tenant.limit);
        json.member("weight", tenant.weight);
        json.member("overQuotaPriority", tenant.overQuotaPriority);
        json.member("request", due.request);
        json.member("share", due.share);
        json.member("own", due.own);
        json.end_object();
    }
    json.end_object();
    json.member("gpus", answer.cluster.all_gpus());
    json.member("unallocated", answer.division.unallocated);
}

void write_fair_tree(JsonWriter& json, const sched::FairTable& fair) {
    json.key("fairTree");
    json.begin_array();
    for (std::size_t i = 0; i < fair.rows.size(); ++i) {
        const sched::FairRow& row = fair.rows[i];
        const sched::Standing& standing = fair.tree.standings[i];
        json.begin_object();
        json.member("account", row.account);
        json.member("user", row.user);
        json.member("rawShares", row.shares);
        write_number(json, "normShares", standing.norm_shares);
        json.member("rawUsage", standing.usage);
        write_number(json, "effectiveUsage", standing.effective_usage);
        write_number(json, "levelFs", standing.level);
        if (standing.rank) {
            json.member("rank", *standing.rank);
            write_number(json, "fairShare", fair.tree.factor(i));
        }
        json.end_object();
    }
    json.end_array();
}

}  // namespace

void print_shares(std::ostream& out, const SharesAnswer& answer) {
    out << fmt::format("{} GPUs\n\n", print(answer.cluster.all_gpus()));
    print_division(out, answer);
    out << '\n';
    print_fair_tree(out, answer.fair);
}

std::string shares_json(const SharesAnswer& answer) {
    JsonWriter json;
    json.begin_object();
    write_division(json, answer);
    write_fair_tree(json, answer.fair);
    json.end_object();
    return json.take();
}

}  // namespace bulkhead::cli
