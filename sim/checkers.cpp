#include "sim/checkers.hpp"

#include <fmt/core.h>
#include <openssl/evp.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <memory>

namespace bulkhead::sim {

namespace json = boost::json;

namespace {

std::string text(const json::object& object, std::string_view key) {
    const json::value* found = object.if_contains(key);
    return found != nullptr && found->is_string() ? std::string{found->as_string()} : std::string{};
}
std::int64_t number(const json::object& object, std::string_view key, std::int64_t otherwise) {
    const json::value* found = object.if_contains(key);
    if (found == nullptr) return otherwise;
    if (found->is_int64()) return found->as_int64();
    if (found->is_double()) return static_cast<std::int64_t>(found->as_double());
    return otherwise;
}
// GPUs are printed as decimal numbers: 0.125, 8.
std::int64_t thousandths(const json::object& object, std::string_view key) {
    const json::value* found = object.if_contains(key);
    if (found == nullptr) return 0;
    return std::llround(found->to_number<double>() * 1000);
}

// "2026-11-15T09:00:00.250Z", read by hand so that no reader of ours is trusted.
std::int64_t instant(const std::string& text) {
    if (text.size() < 20) return -1;
    const auto part = [&](std::size_t at, std::size_t size) { return std::stoll(text.substr(at, size)); };
    const std::int64_t year = part(0, 4), month = part(5, 2), day = part(8, 2);
    const std::int64_t y = month <= 2 ? year - 1 : year, era = y / 400, of_era = y - era * 400;
    const std::int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    const std::int64_t days = era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
    std::int64_t ms = (((days * 24 + part(11, 2)) * 60 + part(14, 2)) * 60 + part(17, 2)) * 1000;
    if (text.size() > 20 && text[19] == '.') {
        std::string digits = text.substr(20, text.size() - 21);
        digits.resize(3, '0');
        ms += std::stoll(digits);
    }
    return ms;
}

Hash digest(std::initializer_list<std::string_view> parts) {
    Hash hash{};
    EVP_MD_CTX* context = EVP_MD_CTX_new();
    EVP_DigestInit_ex(context, EVP_sha256(), nullptr);
    for (const std::string_view part : parts) EVP_DigestUpdate(context, part.data(), part.size());
    EVP_DigestFinal_ex(context, hash.data(), nullptr);
    EVP_MD_CTX_free(context);
    return hash;
}

std::string unit_name(std::string_view kind, std::int64_t device, std::int64_t slice) {
    return fmt::format("{}/{}/{}", kind, device, slice);
}

bool overlap(const GpuPart& a, const GpuPart& b) {
    return a.gpu == b.gpu && a.start < b.start + b.size && b.start < a.start + a.size;
}

}  // namespace

Checkers::Checkers(const std::vector<TenantFacts>& tenants) {
    for (const TenantFacts& tenant : tenants) tenants_[tenant.name] = tenant;
}

void Checkers::say(std::string_view what) const {
    if (!trace_.empty() && what.find(trace_) != std::string_view::npos)
        fmt::print("{:>12.3f}  {}\n", static_cast<double>(now_) / 1000, what);
}

void Checkers::violate(int invariant, std::string what) {
    if (violations_.size() < 20) violations_.push_back({invariant, now_, std::move(what)});
}

bool Checkers::distrusting(const std::string& a, const std::string& b) const {
    if (a == b) return false;
    const auto x = tenants_.find(a), y = tenants_.find(b);
    if (x == tenants_.end() || y == tenants_.end()) return true;
    return x->second.domain.empty() || x->second.domain != y->second.domain;
}

void Checkers::check_quota(const std::string& tenant) {
    const auto facts = tenants_.find(tenant);
    if (facts == tenants_.end() || facts->second.hard_limit < 0) return;
    std::int64_t held = 0;
    for (const auto& [key, lease] : leases_)
        if (lease.tenant == tenant && (lease.phase == "preparing" || lease.phase == "active")) held += lease.gpus;
    if (held > facts->second.hard_limit)
        violate(6,
                fmt::format("{} holds {} thousandths of GPUs of at most {}", tenant, held, facts->second.hard_limit));
}

void Checkers::committed(const Batch& batch) {
    std::map<std::string, int> lease_records;  // "name/kind"
    int wiped_units = 0;
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
        if (kind == "leased" || kind == "lease-active" || kind == "lease-ending" || kind == "lease-closed")
            ++lease_records[fmt::format("{}/{}", lease, kind)];
        if (kind == "wiped") {
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
                violate(2, fmt::format("{} {} was wiped without a signed statement", node, unit));
            else if (text(json::parse(text(evidence->as_object(), "statement")).as_object(), "result") != "verified")
                violate(2, fmt::format("{} {} counts as wiped, and its node says otherwise", node, unit));
            for (std::int64_t slice = first; slice <= last; ++slice) {
                wiped_since_[node].insert(unit_name(name, device, slice));
                ++wiped_units;
            }
            if (name == "host") kernel_users_[node].clear();
        }
    }
    check_rows(batch, lease_records, wiped_units);
}

void Checkers::check_rows(const Batch& batch, const std::map<std::string, int>& lease_records, int wiped_units) {
    std::map<std::int64_t, LeaseSeen> before;
    std::set<std::string> tenants;
    int became_available = 0;
    std::map<std::string, std::set<std::string>> now_available;
    for (const Row& row : batch.rows) {
        if (row.table == Table::lease) {
            if (!before.contains(row.key)) before[row.key] = leases_[row.key];
            if (row.erased) {
                leases_[row.key].phase = "closed";
            } else {
                const json::object object = json::parse(row.body).as_object();
                const json::object& spec = object.at("spec").as_object();
                const json::object& status = object.at("status").as_object();
                LeaseSeen lease;
                lease.name = text(object.at("metadata").as_object(), "name");
                lease.tenant = text(spec, "tenant");
                lease.phase = text(status, "phase");
                if (lease.phase.empty()) lease.phase = "active";  // the default is not written
                lease.gpus = thousandths(status, "gpus");
                lease.active_at = instant(text(status, "activeAt"));
                lease.ended_at = instant(text(status, "endedAt"));
                for (const json::value& value : spec.at("slices").as_array()) {
                    const json::object& slice = value.as_object();
                    lease.nodes.insert(text(slice, "node"));
                    lease.pieces.push_back({text(slice, "node"), number(slice, "gpu", 0), number(slice, "start", 0),
                                            number(slice, "share", 1000), text(slice, "profile")});
                }
                leases_[row.key] = lease;
                tenants.insert(lease.tenant);
            }
        } else if (row.table == Table::usage && !row.erased) {
            const json::object usage = json::parse(row.body).as_object();
            usage_seen_[text(usage, "lease")] +=
                thousandths(usage, "gpus") * (instant(text(usage, "to")) - instant(text(usage, "from")));
        } else if (row.table == Table::gate) {
            const std::string id = fmt::format("{}", row.key);
            std::set<std::string> slices;
            if (!row.erased) {
                std::int64_t slice = 0;
                const json::value gate = json::parse(row.body);
                for (const json::value& value : gate.as_object().at("runs").as_array()) {
                    const json::object& run = value.as_object();
                    for (std::int64_t i = 0; i < number(run, "count", 1); ++i, ++slice)
                        if (text(run, "state") == "available") slices.insert(std::to_string(slice));
                }
            }
            for (const std::string& slice : slices)
                if (!available_[id].contains(slice)) ++became_available;
            available_[id] = std::move(slices);
        }
        if (row.table == Table::workload && !row.erased) {
            const std::size_t at = row.body.find("\"name\":\"") + 8;
            durable_names_.insert(row.body.substr(at, row.body.find('"', at) - at));
        }
        if (row.erased)
            rows_.erase({row.table, row.key});
        else
            rows_[{row.table, row.key}] = row.body;
    }
    // Fewer is fine: what was wiped may have been promised again in the same batch.
    if (became_available > wiped_units)
        violate(2, fmt::format("{} units became available by {} verified wipes", became_available, wiped_units));

    for (const auto& [key, old] : before) {
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
        if (from < 1 && (lease.phase == "preparing" || lease.phase == "active")) {
            for (const auto& [other_key, other] : leases_) {
                if (other_key == key || (other.phase != "preparing" && other.phase != "active")) continue;
                for (const LeaseSeen::Piece& a : lease.pieces)
                    for (const LeaseSeen::Piece& b : other.pieces)
                        if (a.node == b.node && a.gpu == b.gpu && a.start == b.start &&
                            (a.share == 1000 || b.share == 1000))
                            violate(1, fmt::format("leases {} and {} both hold {}/gpu{} from slice {}", name,
                                                   other.name, a.node, a.gpu, a.start));
            }
        }
        if (lease.phase == "closed") leases_.erase(key);
    }
    for (const std::string& tenant : tenants) check_quota(tenant);
}

void Checkers::recovered(const std::map<std::pair<Table, std::int64_t>, std::string>& rows,
                         const std::vector<Hash>& entries) {
    for (const auto& [key, body] : rows_) {
        const auto found = rows.find(key);
        if (found == rows.end())
            violate(4, fmt::format("row {} of {} was durable and is gone", key.second, word(key.first)));
        else if (found->second != body)
            violate(4, fmt::format("row {} of {} is not what was durable", key.second, word(key.first)));
    }
    for (const auto& [key, body] : rows)
        if (!rows_.contains(key))
            violate(4, fmt::format("row {} of {} was never acknowledged as durable", key.second, word(key.first)));
    if (entries.size() != entries_.size() || !std::ranges::equal(entries, entries_))
        violate(8, fmt::format("the log had {} leaves and has {} now, or others", entries_.size(), entries.size()));
    // What callers were told.
    std::set<std::string> there;
    for (const auto& [key, body] : rows)
        if (key.first == Table::workload) {
            const json::object object = json::parse(body).as_object();
            const json::value* status = object.if_contains("status");
            const bool deleting = status != nullptr && status->as_object().contains("deleting");
            const std::string name = text(object.at("metadata").as_object(), "name");
            if (!deleting) there.insert(name);
            if (refused_.contains(name)) violate(4, fmt::format("{} was refused and is there", name));
        }
    for (const auto& [name, exists] : workloads_)
        if (exists != there.contains(name))
            violate(4, fmt::format("{} was acknowledged as {}, and is {}", name, exists ? "created" : "deleted",
                                   exists ? "gone" : "there"));
    probe("recovered");
}

std::shared_ptr<const Checkers::Memory> Checkers::remember() const {
    return std::make_shared<const Memory>(
        Memory{rows_, leases_, usage_expected_, usage_seen_, workloads_, available_, entries_.size()});
}

void Checkers::restored(const Memory& memory) {
    rows_ = memory.rows;
    leases_ = memory.leases;
    usage_expected_ = memory.usage_expected;
    usage_seen_ = memory.usage_seen;
    workloads_ = memory.workloads;
    available_ = memory.available;
    probe("restored from a backup");
    if (!trace_.empty()) fmt::print("{:>12.3f}  restored from a backup\n", static_cast<double>(now_) / 1000);
}

void Checkers::acknowledged_create(const std::string& workload) {
    workloads_[workload] = true;
    if (!durable_names_.contains(workload))
        violate(4, fmt::format("{} was acknowledged before it was durable", workload));
}
void Checkers::acknowledged_delete(const std::string& workload) { workloads_[workload] = false; }
void Checkers::refused(const std::string& workload) { refused_.insert(workload); }

void Checkers::ordered(const std::string& node, const Order& order) {
    if (const Prepare* prepare = std::get_if<Prepare>(&order.what)) {
        Promised& promised = promised_[prepare->lease];
        promised.tenant = prepare->tenant;
        promised.mechanism = prepare->mechanism;
        for (const GpuPart& part : prepare->gpus) promised.shares = promised.shares || part.share < 1000;
        if (const auto lease = leases_.find(prepare->lease); lease != leases_.end())
            promised.nodes = lease->second.nodes;
        promised.nodes.insert(node);
    }
}

void Checkers::prepared(const std::string& node, Key lease) { promised_[lease].prepared.insert(node); }

void Checkers::check_start(const std::string& node, const NodeModel& model, const StartTenant& start) {
    const Promised& mine = promised_[start.lease];
    const auto use = [&](std::string_view kind, UnitKind unit, std::uint16_t device, std::uint8_t slice, bool shared) {
        const std::string name = unit_name(kind, device, slice);
        const std::uint64_t contents = model.read({unit, device, slice});
        if (contents != 0 && contents != static_cast<std::uint64_t>(start.lease) && !shared)
            violate(2, fmt::format("{} {} holds bytes of {} when lease {} starts", node, name, contents, start.lease));
        if (!wiped_since_[node].contains(name) && !shared && contents != static_cast<std::uint64_t>(start.lease))
            violate(2, fmt::format("{} {} is given to lease {} without evidence since its last use", node, name,
                                   start.lease));
        wiped_since_[node].erase(name);
    };
    for (const auto& [key, other] : running_[node]) {
        if (key == start.lease) continue;
        for (const GpuPart& a : start.gpus)
            for (const GpuPart& b : other.gpus) {
                if (overlap(a, b)) {
                    if (a.share == 1000 || b.share == 1000)
                        violate(1, fmt::format("{} gpu{} is used by leases {} and {}", node, a.gpu, start.lease, key));
                    else if (distrusting(mine.tenant, other.tenant))
                        violate(3, fmt::format("{} and {} share the memory of {} gpu{}", mine.tenant, other.tenant,
                                               node, a.gpu));
                } else if (a.gpu == b.gpu && distrusting(mine.tenant, other.tenant) &&
                           mine.mechanism != Mechanism::mig_vgpu) {
                    violate(3, fmt::format("{} and {} share {} gpu{}", mine.tenant, other.tenant, node, a.gpu));
                }
            }
        for (const std::uint16_t drive : start.drives)
            if (std::ranges::find(other.drives, drive) != other.drives.end())
                violate(1, fmt::format("{} drive{} is used twice", node, drive));
        for (const std::uint16_t function : start.functions)
            if (std::ranges::find(other.functions, function) != other.functions.end())
                violate(1, fmt::format("{} vf{} is used twice", node, function));
        if (distrusting(mine.tenant, other.tenant) && (start.tier < Tier::vm || other.tier < Tier::vm))
            violate(3, fmt::format("{} and {} are on {} at once, one of them on its kernel", mine.tenant, other.tenant,
                                   node));
    }
    // Whoever shares memory takes it over from those it shares with: they trust each other, and it is wiped when the
    // last of them has gone.
    const auto shared = [&](const GpuPart& part) {
        if (part.share == 1000) return false;
        for (const auto& [key, other] : running_[node])
            if (key != start.lease &&
                std::ranges::any_of(other.gpus, [&](const GpuPart& theirs) { return overlap(part, theirs); }))
                return true;
        const auto before = promised_.find(static_cast<Key>(model.read({UnitKind::memory, part.gpu, part.start})));
        return before != promised_.end() && before->first != start.lease && before->second.shares &&
               !distrusting(mine.tenant, before->second.tenant);
    };
    for (const GpuPart& part : start.gpus)
        for (std::uint8_t slice = part.start; slice < part.start + part.size; ++slice)
            use("memory", UnitKind::memory, part.gpu, slice, shared(part));
    for (const std::uint16_t drive : start.drives) use("drive", UnitKind::drive, drive, 0, false);
    for (const std::uint16_t function : start.functions) use("vf", UnitKind::vf, function, 0, false);
    if (start.tier < Tier::vm) {
        for (const std::string& user : kernel_users_[node])
            if (distrusting(mine.tenant, user))
                violate(2, fmt::format("{} runs on the kernel of {} after {}, without a verified reboot between",
                                       mine.tenant, node, user));
        kernel_users_[node].insert(mine.tenant);
    }
    if (!std::ranges::includes(mine.prepared, mine.nodes))
        violate(5, fmt::format("lease {} starts on {} while {} of its {} nodes are ready", start.lease, node,
                               mine.prepared.size(), mine.nodes.size()));
    if (mine.nodes.size() > 1) probe("a gang over several nodes started");
    if (std::ranges::any_of(start.gpus, shared)) probe("a shared GPU");
}

namespace {

std::string described(const std::string& node, const Operation& operation) {
    if (const auto* start = std::get_if<StartTenant>(&operation.what)) {
        std::string text = fmt::format("{} starts lease {} tier {} on", node, start->lease, word(start->tier));
        for (const GpuPart& gpu : start->gpus)
            text += fmt::format(" gpu{}[{}+{}]x{}", gpu.gpu, gpu.start, gpu.size, gpu.share);
        return text;
    }
    if (const auto* stop = std::get_if<StopTenant>(&operation.what))
        return fmt::format("{} stops lease {}", node, stop->lease);
    if (const auto* wipe = std::get_if<Wipe>(&operation.what))
        return fmt::format("{} wipes {} {} [{}+{}]", node, word(wipe->kind), wipe->device, wipe->start, wipe->size);
    return {};
}

}  // namespace

void Checkers::begun(const std::string& node, const NodeModel& model, const Operation& operation) {
    if (!trace_.empty()) say(described(node, operation));
    if (const StartTenant* start = std::get_if<StartTenant>(&operation.what)) {
        const bool again = running_[node].contains(start->lease);
        if (!again) check_start(node, model, *start);
        running_[node][start->lease] = {
            start->lease, promised_[start->lease].tenant, start->tier, start->gpus, start->drives, start->functions};
    }
}

void Checkers::ended(const std::string& node, const Operation& operation, bool ok) {
    if (const StopTenant* stop = std::get_if<StopTenant>(&operation.what); stop != nullptr && ok)
        running_[node].erase(stop->lease);
    if (const Wipe* wipe = std::get_if<Wipe>(&operation.what); wipe != nullptr && ok && wipe->kind == UnitKind::host)
        running_[node].clear();
}

void Checkers::host_crashed(const std::string& node) {
    say(node + " crashes");
    running_[node].clear();
}

void Checkers::calm_began() {
    calm_ = true;
    calm_from_ = entries_.size();
    calm_since_ = now_;
}

void Checkers::finished() {
    // With no input and no faults there is nothing to do, sooner or later.
    if (entries_.size() != calm_from_) {
        std::string what = fmt::format("{} entries were logged although nothing was asked and nothing broke",
                                       entries_.size() - calm_from_);
        for (const std::string& payload : said_in_calm_) what += "\n    " + payload;
        violate(7, std::move(what));
    }
    for (const auto& [lease, expected] : usage_expected_)
        if (usage_seen_[lease] != expected)
            violate(8, fmt::format("usage of {} is {}, not {}", lease, usage_seen_[lease], expected));
}

std::string Checkers::summary() const {
    std::string lines;
    for (const auto& [name, count] : probes_) lines += fmt::format("  {:<44}{:>10}\n", name, count);
    return lines;
}

}  // namespace bulkhead::sim
