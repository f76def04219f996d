#include "bulkhead/node/journal.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "bulkhead/base/hash.hpp"
#include "bulkhead/node/archive_node.hpp"

namespace bulkhead {

namespace archive {

void fields(auto& a, Of<journal::AgentStarted> auto& v) { a(v.boot); }
void fields(auto& a, Of<journal::BootSeen> auto& v) { a(v.boot); }
void fields(auto& a, Of<journal::EpochSeen> auto& v) { a(v.epoch); }
void fields(auto& a, Of<journal::LeaseTaken> auto& v) { a(v.order); }
void fields(auto& a, Of<journal::LeaseRefused> auto& v) { a(v.lease); }
void fields(auto& a, Of<journal::LeaseStarting> auto& v) { a(v.lease); }
void fields(auto& a, Of<journal::LeaseMoved> auto& v) {
    a(v.lease, v.phase, v.why);
    a.since(7, v.fault);
}
void fields(auto& a, Of<journal::LeaseSaved> auto& v) { a(v.lease, v.saved); }
void fields(auto& a, Of<journal::ReleaseTaken> auto& v) { a(v.order); }
void fields(auto& a, Of<journal::WipeTaken> auto& v) { a(v.task); }
void fields(auto& a, Of<journal::WipeBegan> auto& v) { a(v.ticket, v.at, v.second_pass); }
void fields(auto& a, Of<journal::WipeAnswered> auto& v) { a(v.report, v.attempted); }
void fields(auto& a, Of<journal::DeviceFaulty> auto& v) { a(v.device, v.why); }
void fields(auto& a, Of<journal::ReportMade> auto& v) { a(v.report); }
void fields(auto& a, Of<journal::Acknowledged> auto& v) { a(v.number); }
void fields(auto& a, Of<journal::WipeReset> auto& v) { a(v.ticket); }
void fields(auto& a, Of<journal::DeviceDraining> auto& v) { a(v.device, v.why); }
void fields(auto& a, Of<journal::Everything> auto& v) { a(v.ledger); }

}  // namespace archive

namespace {

using namespace journal;

constexpr std::int64_t lives_max = 1 << 30;  // it is the upper half of operation numbers

void close(Ledger& ledger, Key lease, PartPhase phase) {
    ledger.leases.erase(lease);
    ledger.closed[lease] = phase;
    while (ledger.closed.size() > Ledger::closed_max) {
        ledger.closed_up_to = std::max(ledger.closed_up_to, ledger.closed.begin()->first);
        ledger.closed.erase(ledger.closed.begin());
    }
}

WipeTask task_of(const WipeReport& report) {
    return {.kind = report.kind,
            .device = report.device,
            .start = report.start,
            .size = report.size,
            .ticket = report.ticket};
}

struct Applying {
    Ledger& ledger;

    void operator()(const AgentStarted& record) const {
        if (ledger.lives < lives_max) ++ledger.lives;
        ledger.boot = record.boot;
    }
    void operator()(const BootSeen& record) const { ledger.boot = record.boot; }
    void operator()(const EpochSeen& record) const { ledger.epoch = std::max(ledger.epoch, record.epoch); }
    void operator()(const LeaseTaken& record) const {
        ledger.leases[record.order.lease] = {.order = record.order, .phase = PartPhase::preparing};
        for (const UnitId unit : units_of(record.order)) ledger.units[unit].clean = false;
        for (const FabricPort& port : record.order.ports) ledger.ports[port.function] = {record.order.tenant, port};
        if (record.order.tier < Tier::vm) ledger.host_tenants.insert(record.order.tenant);
    }
    void operator()(const LeaseRefused& record) const { close(ledger, record.lease, PartPhase::refused); }
    void operator()(const LeaseStarting& record) const {
        if (const auto lease = ledger.leases.find(record.lease); lease != ledger.leases.end())
            lease->second.starting = true;
    }
    void operator()(const LeaseMoved& record) const {
        if (record.phase == PartPhase::stopped) return close(ledger, record.lease, PartPhase::stopped);
        const auto lease = ledger.leases.find(record.lease);
        if (lease == ledger.leases.end()) return;
        lease->second.phase = record.phase;
        lease->second.why = record.why;
        lease->second.fault = record.fault;
        lease->second.starting = false;
        lease->second.release.reset();
    }
    void operator()(const LeaseSaved& record) const {
        if (const auto lease = ledger.leases.find(record.lease); lease != ledger.leases.end())
            lease->second.saved = record.saved;
    }
    void operator()(const ReleaseTaken& record) const {
        const Release& order = record.order;
        const auto [lease, unknown] = ledger.leases.try_emplace(order.lease);
        if (unknown) {
            // Whoever wrote the order knows more of it than we do: it is stopped to be sure, and gone then.
            lease->second.order = {.lease = order.lease, .tier = Tier::vm};
            lease->second.phase = PartPhase::failed;
            lease->second.why = "this node does not know the lease";
        }
        std::optional<Release>& release = lease->second.release;
        if (!release) {
            release = order;
            return;
        }
        for (const WipeTask& wipe : order.wipes)
            if (std::ranges::find(release->wipes, wipe.ticket, &WipeTask::ticket) == release->wipes.end())
                release->wipes.push_back(wipe);
    }
    void operator()(const WipeTaken& record) const {
        ledger.wipes[record.task.ticket] = {.task = record.task};
        for (const UnitId unit : units_of(record.task)) ledger.units[unit].clean = false;
    }
    void operator()(const WipeBegan& record) const {
        const auto wipe = ledger.wipes.find(record.ticket);
        if (wipe == ledger.wipes.end()) return;
        if (!wipe->second.begun) wipe->second.began = record.at;
        wipe->second.begun = true;
        wipe->second.boot = ledger.boot;
        wipe->second.second_pass = wipe->second.second_pass || record.second_pass;
    }
    void operator()(const WipeAnswered& record) const {
        const WipeReport& report = record.report;
        const auto wipe = ledger.wipes.find(report.ticket);
        const bool burnt_in = wipe != ledger.wipes.end() && wipe->second.task.burn_in;
        ledger.wipes.erase(report.ticket);
        for (const UnitId id : units_of(task_of(report))) {
            Ledger::Unit& unit = ledger.units[id];
            if (report.ticket < unit.ticket) continue;
            unit.ticket = report.ticket;
            if (record.attempted) unit.clean = report.verified;
            if (id.kind == UnitKind::vf && unit.clean) ledger.ports.erase(id.device);
        }
        ledger.answered[report.ticket] = report;
        std::erase_if(ledger.answered, [&](const auto& entry) {
            const auto units = units_of(task_of(entry.second));
            return std::ranges::none_of(units, [&](UnitId id) { return ledger.units[id].ticket == entry.first; });
        });
        const DeviceId device{report.kind, report.device};
        if (report.verified) ledger.faulty.erase(device);
        // The part of a GPU that was burnt in says nothing of the rest, which somebody may still be on.
        const bool all_clean = std::ranges::all_of(ledger.units, [&](const auto& entry) {
            return DeviceId{entry.first.kind, entry.first.device} != device || entry.second.clean;
        });
        if (report.verified && burnt_in && all_clean) ledger.draining.erase(device);
        if (report.kind != UnitKind::host || !record.attempted) return;
        if (report.verified)
            ledger.host_tenants.clear();
        else
            ledger.faulty[device] = report.why;
    }
    void operator()(const DeviceFaulty& record) const {
        ledger.faulty[record.device] = record.why;
        for (auto& [id, unit] : ledger.units)
            if (DeviceId{id.kind, id.device} == record.device) unit.clean = false;
    }
    void operator()(const WipeReset& record) const {
        if (const auto wipe = ledger.wipes.find(record.ticket); wipe != ledger.wipes.end()) wipe->second.reset = true;
    }
    void operator()(const DeviceDraining& record) const { ledger.draining[record.device] = record.why; }
    void operator()(const ReportMade& record) const {
        ledger.reports = std::max(ledger.reports, record.report.number);
        ledger.unacknowledged[record.report.number] = record.report;
    }
    void operator()(const Acknowledged& record) const {
        auto& open = ledger.unacknowledged;
        open.erase(open.begin(), open.upper_bound(record.number));
    }
    void operator()(const Everything& record) const { ledger = record.ledger; }
};

// A frame: magic with the version, length of the payload, sequence, check, payload. Fixed width, little end first.
// Versions from 2 on are still read: each lacks what came with the next.
constexpr std::string_view magic = "BHJ7", any_magic = "BHJ";
constexpr unsigned oldest_version = 2, newest_version = 7;
constexpr std::size_t check_bytes = 8, head_bytes = 4 + 4 + 8 + check_bytes;
constexpr std::size_t payload_bytes_max = std::size_t{64} << 20;

void put_fixed(std::string& out, std::uint64_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
}
std::uint64_t get_fixed(std::string_view bytes) {
    std::uint64_t value = 0;
    for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<std::uint8_t>(bytes[i]);
    return value;
}
std::string check_of(std::string_view head, std::string_view payload) {
    const Hash hash = sha256({head, payload});
    return std::string{bytes_of(hash).substr(0, check_bytes)};
}

struct Frame {
    unsigned version = newest_version;
    std::uint64_t sequence = 0;
    std::string_view payload;
    std::size_t bytes = 0;
};
std::optional<Frame> sound_frame(std::string_view bytes) {
    if (bytes.size() < head_bytes || !bytes.starts_with(any_magic)) return std::nullopt;
    const auto version = static_cast<unsigned>(bytes[any_magic.size()] - '0');
    if (version < oldest_version || version > newest_version) return std::nullopt;
    const std::uint64_t size = get_fixed(bytes.substr(4, 4));
    if (size > payload_bytes_max || bytes.size() - head_bytes < size) return std::nullopt;
    const std::string_view head = bytes.substr(0, head_bytes - check_bytes), payload = bytes.substr(head_bytes, size);
    if (bytes.substr(head.size(), check_bytes) != check_of(head, payload)) return std::nullopt;
    return Frame{version, get_fixed(bytes.substr(8, 8)), payload, head_bytes + size};
}

std::optional<char> other_version(std::string_view bytes) {
    if (bytes.size() < magic.size() || !bytes.starts_with(any_magic)) return std::nullopt;
    const char version = bytes[3];
    const bool known = version >= '0' + char{oldest_version} && version <= '0' + char{newest_version};
    return !known && version >= '1' && version <= '9' ? std::optional{version} : std::nullopt;
}

// Whether any frame beyond this point is sound: then what is damaged here was once synced.
std::optional<std::size_t> sound_frame_beyond(std::string_view bytes, std::size_t from) {
    for (std::size_t at = bytes.find(any_magic, from); at != bytes.npos; at = bytes.find(any_magic, at + 1))
        if (sound_frame(bytes.substr(at))) return at;
    return std::nullopt;
}

std::unexpected<Error> damaged(std::size_t at, const std::string& what) {
    return fail(Code::corrupt, fmt::format("the node's journal is damaged at byte {}: {}", at, what),
                "move the journal aside and start the agent anew: everything on the node then counts as dirty and is "
                "wiped before it is used");
}

}  // namespace

void play_back(Ledger& ledger, const JournalRecord& record) { std::visit(Applying{ledger}, record); }

std::string journal_frame(std::uint64_t sequence, std::span<const JournalRecord> records) {
    archive::Writer writer;
    writer(records.size());
    for (const JournalRecord& record : records) writer(record);
    const std::string payload = writer.take();
    invariant(payload.size() <= payload_bytes_max, "one append to the journal stays below 64 MiB");
    std::string frame{magic};
    put_fixed(frame, payload.size(), 4);
    put_fixed(frame, sequence, 8);
    frame += check_of(frame, payload);
    frame += payload;
    return frame;
}

Result<ReadJournal> read_journal(std::string_view bytes) {
    ReadJournal read;
    while (read.sound_bytes < bytes.size()) {
        const std::size_t at = read.sound_bytes;
        const std::string_view rest = bytes.substr(at);
        const std::optional<Frame> frame = sound_frame(rest);
        if (!frame) {
            if (const auto version = other_version(rest))
                return damaged(at, fmt::format("version {} of the format is not known here", *version));
            if (const auto beyond = sound_frame_beyond(bytes, at + 1))
                return damaged(at, fmt::format("a sound record follows at byte {}, so this is no torn end", *beyond));
            read.dropped_bytes = rest.size();
            break;
        }
        if (at > 0 && frame->sequence != read.next_sequence)
            return damaged(at, fmt::format("record {} where {} is due", frame->sequence, read.next_sequence));
        archive::Reader reader{frame->payload, frame->version};
        std::uint64_t count = 0;
        reader(count);
        for (; count > 0 && !reader.failed(); --count) reader(read.records.emplace_back());
        if (reader.failed() || !reader.at_end())
            return damaged(at, "the record is whole, but says something this version does not know");
        read.next_sequence = frame->sequence + 1;
        read.sound_bytes += frame->bytes;
    }
    return read;
}

}  // namespace bulkhead
