// What became durable: each change of a row against the log entries of its batch, and each wipe against what its node
// signed.
#include <fmt/core.h>

#include <algorithm>
#include <cstdio>

#include "sim/checkers.hpp"
#include "sim/reading.hpp"

namespace bulkhead::sim {

namespace json = boost::json;

void Checkers::committed(const Batch& batch) {
    std::map<std::string, int> lease_records;  // "name/kind"
    std::set<std::string> wiped;               // "node/kind/device/slice"
    leased_beside_.clear();
    for (const Leaf& leaf : batch.leaves) {
        if (leaf.index != std::ssize(entries_))
            violate(8, fmt::format("leaf {} follows {} leaves", leaf.index, entries_.size()));
        if (digest({leaf.salt, leaf.payload}) != leaf.entry)
            violate(8, fmt::format("leaf {} does not commit to its payload", leaf.index));
        entries_.push_back(leaf.entry);
        say(leaf.payload);
        const json::value parsed = json::parse(leaf.payload);
        const json::object& record = parsed.as_object();
        const std::string kind = text(record, "kind"), lease = text(record, "lease");
        probe("record " + kind);
        if (calm_ && said_in_calm_.size() < 4) said_in_calm_.push_back(leaf.payload.substr(0, 300));
        if (calm_ && leaf.payload.contains("no answer within")) given_up_at_ = now_;
        if (calm_ && kind == "lease-ending") follow_growth(record);
        if (kind == "leased" || kind == "lease-active" || kind == "lease-ending" || kind == "lease-closed")
            ++lease_records[fmt::format("{}/{}", lease, kind)];
        if (kind == "leased" && !leased_names_.insert(lease).second)
            violate(8, fmt::format("{} names two leases", lease));
        if (kind == "wiped") check_wipe(record, wiped);
        if (kind == "node-fenced" || kind == "node-returned") read_silence(record);
        if (kind == "draining" || kind == "drain-over" || kind == "leased") read_drain(record);
    }
    check_rows(batch, lease_records, wiped);
    if (now_ - followed_at_ >= 1000) {
        followed_at_ = now_;
        follow_guarantees();
        follow_limits();
    }
}

// A gang grows when it has run long enough for that, which may be hours after the last input. Once: a second growth
// without new input is a cycle.
void Checkers::follow_growth(const json::object& record) {
    if (!text(record.at("detail").as_object(), "why").starts_with("grows: ")) return;
    grew_at_ = now_;
    probe("a gang grew in the calm");
    if (const std::string work = text(record, "object"); !grown_in_calm_.insert(work).second)
        violate(7, fmt::format("{} grew twice although nothing was asked and nothing broke", work));
}

// A wipe counts by what its node signed: about this unit, as verified, and for once.
void Checkers::check_wipe(const json::object& record, std::set<std::string>& wiped) {
    const std::string unit = text(record, "unit"), node = text(record, "node");
    std::int64_t device = 0, first = 0, last = 0;
    std::string name = "host";
    if (unit.starts_with("gpu")) {
        name = "memory";
        std::sscanf(unit.c_str(), "gpu%ld/slices %ld-%ld", &device, &first, &last);
    } else if (unit.starts_with("drive")) {
        name = "drive";
        std::sscanf(unit.c_str(), "drive%ld", &device);
    } else if (unit.starts_with("vf")) {
        name = "vf";
        std::sscanf(unit.c_str(), "vf%ld", &device);
    }
    const json::value* evidence = record.if_contains("evidence");
    if (evidence == nullptr || !evidence->is_object())
        return violate(2, fmt::format("{} {} was wiped without a signed statement", node, unit));
    const json::value parsed = json::parse(text(evidence->as_object(), "statement"));
    const json::object& statement = parsed.as_object();
    if (text(statement, "result") != "verified" || text(statement, "node") != node || text(statement, "unit") != unit)
        violate(2, fmt::format("{} {} counts as wiped, and its node says otherwise", node, unit));
    if (text(statement, "lease") != text(record, "lease"))
        violate(2, fmt::format("{} {} was wiped after {}, and its node says after {}", node, unit,
                               text(record, "lease"), text(statement, "lease")));
    // One entry for each tenant whose dirt it was; they follow each other.
    const std::string signature = text(evidence->as_object(), "signature");
    const auto [seen, fresh] = signatures_.try_emplace(signature, entries_.size());
    if (!fresh && entries_.size() - seen->second > statement.at("tenants").as_array().size())
        violate(2, fmt::format("{} {}: a statement counts a second time", node, unit));
    for (std::int64_t slice = first; slice <= last; ++slice) {
        wiped.insert(fmt::format("{}/{}", node, unit_name(name, device, slice)));
        wiped_since_[node].insert(unit_name(name, device, slice));
    }
    if (name == "host") kernel_users_[node].clear();
}

std::string Checkers::node_named(std::int64_t key) const {
    const auto row = rows_.find({Table::node, key});
    return row == rows_.end() ? std::string{}
                              : text(json::parse(row->second).as_object().at("metadata").as_object(), "name");
}

void Checkers::check_gate(const Row& row, const std::set<std::string>& wiped) {
    std::vector<std::string> now;
    if (!row.erased) {
        const json::value parsed = json::parse(row.body);
        const json::object& gate = parsed.as_object();
        if (!gate_names_.contains(row.key))
            gate_names_[row.key] = fmt::format("{}/{}/{}", node_named(number(gate, "node", 0)), text(gate, "kind"),
                                               number(gate, "device", 0));
        for (const json::value& value : gate.at("runs").as_array())
            now.insert(now.end(), static_cast<std::size_t>(number(value.as_object(), "count", 1)),
                       text(value.as_object(), "state"));
    }
    std::vector<std::string>& before = gates_[row.key];
    for (std::size_t i = 0; i < now.size(); ++i) {
        const std::string name = fmt::format("{}/{}", gate_names_[row.key], i);
        const std::string was = i < before.size() ? before[i] : "";
        // What was wiped may have been promised again in the same batch; it was never anything but wiped between.
        if ((now[i] == "available" || now[i] == "reserved") && was != now[i] && was != "available" &&
            !wiped.contains(name))
            violate(2, fmt::format("{} became {} without a verified wipe of its own", name, now[i]));
        if (was == "held" && wiped.contains(name)) violate(2, fmt::format("{} was wiped under a legal hold", name));
    }
    before = std::move(now);
}

void Checkers::check_rows(const Batch& batch, const std::map<std::string, int>& lease_records,
                          const std::set<std::string>& wiped) {
    std::map<std::int64_t, LeaseSeen> before;
    std::set<std::string> tenants;
    // Nodes first: the rows of their devices name them by key.
    for (const Row& row : batch.rows)
        if (row.table == Table::node && !row.erased) {
            rows_[{row.table, row.key}] = row.body;
            read_fences(row);
            read_node(row);
        }
    for (const Row& row : batch.rows) {
        if (row.table == Table::lease) {
            if (!before.contains(row.key)) before[row.key] = leases_[row.key];
            if (row.erased) {
                leases_[row.key].phase = "closed";
            } else {
                const bool fresh = leases_[row.key].phase.empty();
                leases_[row.key] = lease_in(row.body);
                if (fresh) check_mode(leases_[row.key]);
                tenants.insert(leases_[row.key].tenant);
            }
        } else if (row.table == Table::usage && !row.erased) {
            check_usage(json::parse(row.body).as_object());
        } else if (row.table == Table::tenant && !row.erased) {
            read_switch(row);
            read_limit(row);
        } else if (row.table == Table::gate) {
            check_gate(row, wiped);
        }
        if (row.table == Table::workload) {
            say(row.body);
            read_work(row);
        }
        if (row.table == Table::node && row.erased) read_node(row);
        if (row.table == Table::workload && !row.erased) {
            const std::size_t at = row.body.find("\"name\":\"") + 8;
            durable_names_.insert(row.body.substr(at, row.body.find('"', at) - at));
        }
        if (row.erased)
            rows_.erase({row.table, row.key});
        else
            rows_[{row.table, row.key}] = row.body;
    }
    for (const auto& [key, old] : before) {
        check_change(key, old, lease_records);
        if (leases_[key].phase == "closed") leases_.erase(key);
    }
    for (const std::string& tenant : tenants) check_quota(tenant);
}

Checkers::LeaseSeen Checkers::lease_in(const std::string& body) {
    const json::object object = json::parse(body).as_object();
    const json::object& spec = object.at("spec").as_object();
    const json::object& status = object.at("status").as_object();
    LeaseSeen lease;
    lease.name = text(object.at("metadata").as_object(), "name");
    lease.tenant = text(spec, "tenant");
    lease.phase = text(status, "phase");
    if (lease.phase.empty()) lease.phase = "active";  // the default is not written
    lease.gpus = gpu_units(status, "gpus");
    lease.mechanism = text(spec, "mechanism");
    lease.tasks = number(spec, "tasks", 1);
    lease.compliance = "off";
    if (const json::value* metered = status.if_contains("metered"))
        if (const std::string mode = text(metered->as_object(), "compliance"); !mode.empty()) lease.compliance = mode;
    lease.active_at = instant(text(status, "activeAt"));
    lease.ended_at = instant(text(status, "endedAt"));
    for (const json::value& value : spec.at("slices").as_array()) {
        const json::object& slice = value.as_object();
        lease.nodes.insert(text(slice, "node"));
        lease.pieces.push_back({text(slice, "node"), number(slice, "gpu", 0), number(slice, "start", 0),
                                number(slice, "share", 1000), text(slice, "profile")});
    }
    return lease;
}

void Checkers::check_change(std::int64_t key, const LeaseSeen& old, const std::map<std::string, int>& lease_records) {
    const LeaseSeen& lease = leases_[key];
    // How many entries each change must have left: a batch may hold several changes of one lease.
    const std::vector<std::string> order{"", "preparing", "active", "ending", "closed"};
    const std::vector<std::string> record{"", "leased", "lease-active", "lease-ending", "lease-closed"};
    const auto from = std::ranges::find(order, old.phase) - order.begin(),
               to = std::ranges::find(order, lease.phase) - order.begin();
    const std::string& name = lease.name.empty() ? old.name : lease.name;
    for (std::ptrdiff_t step = 1; step < std::ssize(order); ++step) {
        const auto found = lease_records.find(name + "/" + record[static_cast<std::size_t>(step)]);
        const int entries = found == lease_records.end() ? 0 : found->second;
        const bool passed = step > from && step <= to;
        const bool may_skip = step == 2 && lease.active_at < 0 && old.active_at < 0;  // ended before it was active
        if (passed && entries != 1 && !(may_skip && entries == 0))
            violate(8, fmt::format("lease {} became {} with {} log entries", name,
                                   order[static_cast<std::size_t>(step)], entries));
        if (!passed && entries != 0)
            violate(8, fmt::format("lease {} has an entry for {} and did not change so", name,
                                   order[static_cast<std::size_t>(step)]));
    }
    if (from < 3 && to >= 3 && lease.active_at >= 0)
        usage_expected_[name] += lease.gpus * (lease.ended_at - lease.active_at);
    if (to >= 3 && usage_expected_[name] != usage_seen_[name])
        violate(8, fmt::format("lease {} was held for {} and its usage says {}", name, usage_expected_[name],
                               usage_seen_[name]));
    if (from < 1 && (lease.phase == "preparing" || lease.phase == "active")) check_overlap(key, lease);
    if (from < 1) {
        check_drains(lease);
        check_lent(lease);
        check_clients(lease);
    }
}

void Checkers::check_overlap(std::int64_t key, const LeaseSeen& lease) {
    for (const auto& [other_key, other] : leases_) {
        if (other_key == key || (other.phase != "preparing" && other.phase != "active")) continue;
        for (const LeaseSeen::Piece& a : lease.pieces)
            for (const LeaseSeen::Piece& b : other.pieces)
                if (a.node == b.node && a.gpu == b.gpu && a.start == b.start && (a.share == 1000 || b.share == 1000))
                    violate(1, fmt::format("leases {} and {} both hold {}/gpu{} from slice {}", lease.name, other.name,
                                           a.node, a.gpu, a.start));
    }
}

void Checkers::check_quota(const std::string& tenant) {
    const auto facts = tenants_.find(tenant);
    if (facts == tenants_.end() || facts->second.hard_limit < 0) return;
    std::int64_t held = 0;
    for (const auto& [key, lease] : leases_)
        if (lease.tenant == tenant && (lease.phase == "preparing" || lease.phase == "active")) held += lease.gpus;
    if (held > facts->second.hard_limit)
        violate(6, fmt::format("{} holds {} of 1/21,000 GPU of at most {}", tenant, held, facts->second.hard_limit));
}

}  // namespace bulkhead::sim
