// The node's memory across crashes: records, each durable before anything it allows leaves the node. Bytes are frames,
// one for each append; an append is there whole or not at all.
//
// A frame that was cut short by a crash can only be the last, because each is synced before the next is written. So
// damage at the end is dropped, and said; damage before a sound frame is an error, because what was lost there may be
// that a tenant touched something.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "bulkhead/base/result.hpp"
#include "bulkhead/node/ledger.hpp"

namespace bulkhead {

namespace journal {

struct AgentStarted {  // a process took up this journal, in this boot of the host
    std::string boot;
    friend bool operator==(const AgentStarted&, const AgentStarted&) = default;
};
struct BootSeen {  // the host was restarted under a living agent
    std::string boot;
    friend bool operator==(const BootSeen&, const BootSeen&) = default;
};
struct EpochSeen {
    std::int64_t epoch = 0;
    friend bool operator==(const EpochSeen&, const EpochSeen&) = default;
};
struct LeaseTaken {  // the gate let it in: from here on its units are dirty
    Prepare order;
    friend bool operator==(const LeaseTaken&, const LeaseTaken&) = default;
};
struct LeaseRefused {
    Key lease = 0;
    friend bool operator==(const LeaseRefused&, const LeaseRefused&) = default;
};
struct LeaseStarting {
    Key lease = 0;
    friend bool operator==(const LeaseStarting&, const LeaseStarting&) = default;
};
struct LeaseMoved {  // to prepared, running, failed or stopped
    Key lease = 0;
    PartPhase phase{};
    std::string why;
    PartFault fault = PartFault::none;  // of failed
    friend bool operator==(const LeaseMoved&, const LeaseMoved&) = default;
};
struct LeaseSaved {  // its code is stopped
    Key lease = 0;
    Saved saved;
    friend bool operator==(const LeaseSaved&, const LeaseSaved&) = default;
};
struct ReleaseTaken {
    Release order;
    friend bool operator==(const ReleaseTaken&, const ReleaseTaken&) = default;
};
struct WipeTaken {
    WipeTask task;
    friend bool operator==(const WipeTaken&, const WipeTaken&) = default;
};
struct WipeBegan {
    Key ticket = 0;
    Instant at;
    bool second_pass = false;
    friend bool operator==(const WipeBegan&, const WipeBegan&) = default;
};
struct WipeAnswered {
    WipeReport report;
    bool attempted = false;  // hardware was touched; otherwise it was refused
    friend bool operator==(const WipeAnswered&, const WipeAnswered&) = default;
};
struct DeviceFaulty {
    DeviceId device;
    std::string why;
    friend bool operator==(const DeviceFaulty&, const DeviceFaulty&) = default;
};
struct ReportMade {
    Report report;
    friend bool operator==(const ReportMade&, const ReportMade&) = default;
};
struct Acknowledged {  // reports up to this number
    std::int64_t number = 0;
    friend bool operator==(const Acknowledged&, const Acknowledged&) = default;
};
struct Everything {  // forget what came before: this is the sum of it
    Ledger ledger;
    friend bool operator==(const Everything&, const Everything&) = default;
};
struct WipeReset {  // about to reset the GPU for this wipe
    Key ticket = 0;
    friend bool operator==(const WipeReset&, const WipeReset&) = default;
};
struct DeviceDraining {
    DeviceId device;
    std::string why;
    friend bool operator==(const DeviceDraining&, const DeviceDraining&) = default;
};

}  // namespace journal

// On disk by position in this list: append, never reorder.
using JournalRecord =
    std::variant<journal::AgentStarted, journal::BootSeen, journal::EpochSeen, journal::LeaseTaken,
                 journal::LeaseRefused, journal::LeaseStarting, journal::LeaseMoved, journal::ReleaseTaken,
                 journal::WipeTaken, journal::WipeBegan, journal::WipeAnswered, journal::DeviceFaulty,
                 journal::ReportMade, journal::Acknowledged, journal::Everything, journal::WipeReset,
                 journal::DeviceDraining, journal::LeaseSaved>;

// Total: a record that does not fit what is known changes nothing that it does not name.
void play_back(Ledger& ledger, const JournalRecord& record);

// One append. Sequences count up by one from frame to frame; the first of a journal may be any.
std::string journal_frame(std::uint64_t sequence, std::span<const JournalRecord> records);

struct ReadJournal {
    std::vector<JournalRecord> records;
    std::uint64_t next_sequence = 0;
    std::size_t sound_bytes = 0;    // what to keep of the file
    std::size_t dropped_bytes = 0;  // a frame that a crash cut short; nothing it would have allowed has happened
};
Result<ReadJournal> read_journal(std::string_view bytes);

}  // namespace bulkhead
