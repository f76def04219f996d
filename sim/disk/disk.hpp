// A disk that can lose power, fill up and fail, in memory, under the real SQLite: register it, hand its name to a Store
// as `vfs`, and everything SQLite asks of the machine (files, locks, shared memory, time) comes from here. What was
// written and not yet synced may survive a crash or not, in any subset, down to the 512-byte sector; what was synced
// survives. Nothing here is random but what is drawn from the Rng handed in, so a run can be repeated.
//
// One Disk and its databases belong to one thread; several Disks may live side by side. Close every database before
// its Disk goes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/base/quantity.hpp"
#include "bulkhead/base/rng.hpp"

namespace bulkhead::sim {

class Disk {
public:
    Disk();
    ~Disk();
    Disk(const Disk&) = delete;
    Disk& operator=(const Disk&) = delete;

    const std::string& vfs() const;  // the name to open databases with

    // The power goes and comes back: open handles are dead (every call on them fails), locks and shared memory are
    // gone, each change not yet synced is kept, dropped or torn. Faults below are healed, except a full disk.
    void crash(Rng& rng);
    // Only the processes die: handles, locks and shared memory are gone, everything written is still there.
    void kill_processes();
    // Every change of the disk is one boundary: a write, a truncation, a sync, a file made, deleted or renamed.
    std::uint64_t writes() const;
    // The power goes during boundary `n` (counted as writes() does, from the disk's beginning; the first is 1): it and
    // every call after it fail until crash() is called, which may keep a part of that write.
    void crash_at_write(std::uint64_t n);
    bool power_lost() const;  // that moment has come

    // Faults, until healed.
    void fill();                               // nothing grows any more
    void leave_free(std::uint64_t bytes);      // so much may still grow
    void read_only(bool on = true);            // as after a remount: what is open can no longer write
    void fail_writes(std::uint64_t after);     // I/O error on each write after so many more
    void fail_reads(std::uint64_t after = 0);  // I/O error on each read after so many more
    // A sync that fails: the writes it was for stay unsynced, or (as Linux does) count as clean and never arrive,
    // although reading shows them until the power goes.
    enum class SyncFault : std::uint8_t { none, keeps, loses };
    void fail_sync(SyncFault fault = SyncFault::keeps);
    void heal();  // all of the above, and room without end

    // Files as they read now. `put` is durable at once.
    bool exists(std::string_view path) const;
    std::vector<std::string> files() const;  // sorted
    std::uint64_t size(std::string_view path) const;
    std::string snapshot(std::string_view path) const;        // empty when there is none
    void put(std::string_view path, std::string contents);    // an old backup, a damaged file; nobody may have it open
    void remove(std::string_view path);                       // durable at once
    void flip_bit(std::string_view path, std::uint64_t bit);  // rot: durable at once, under whoever has it open

    void set_clock(Instant now);  // what SQLite reads as the time; else it stands still
    // SQLite salts its write-ahead log from a generator of the whole process; seeded, the very bytes repeat.
    static void seed_sqlite(std::uint32_t seed);

    struct State;

private:
    std::unique_ptr<State> state_;
};

}  // namespace bulkhead::sim
