#include "bulkhead/agent/journal_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "bulkhead/agent/disk.hpp"

namespace bulkhead::agent {

namespace {

// Beside the journal, not the journal itself: that file is replaced when it is rewritten.
Result<int> locked(const std::filesystem::path& journal) {
    const std::string path = journal.string() + ".lock";
    const int lock = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (lock < 0) return disk_error("open", path);
    if (::flock(lock, LOCK_EX | LOCK_NB) == 0) return lock;
    const bool taken = errno == EWOULDBLOCK;
    const std::unexpected<Error> why = disk_error("lock", path);
    ::close(lock);
    if (taken)
        return fail(Code::unavailable, "another agent has the journal " + journal.string(),
                    "one agent for each node: stop the other one first");
    return why;
}

}  // namespace

JournalFile::JournalFile(JournalFile&& other) noexcept
    : path_{std::move(other.path_)},
      file_{std::exchange(other.file_, -1)},
      lock_{std::exchange(other.lock_, -1)},
      sequence_{other.sequence_},
      bytes_{other.bytes_} {}

JournalFile& JournalFile::operator=(JournalFile&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(file_, other.file_);
    std::swap(lock_, other.lock_);
    std::swap(sequence_, other.sequence_);
    std::swap(bytes_, other.bytes_);
    return *this;
}

JournalFile::~JournalFile() {
    if (file_ >= 0) ::close(file_);
    if (lock_ >= 0) ::close(lock_);
}

Result<JournalFile::Opened> JournalFile::open(const std::filesystem::path& path) {
    JournalFile journal;
    journal.path_ = path;
    const auto lock = locked(path);
    if (!lock) return std::unexpected(lock.error());
    journal.lock_ = *lock;
    journal.file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (journal.file_ < 0) return disk_error("open", path);
    if (const auto synced = sync_directory(path); !synced) return std::unexpected(synced.error());

    const auto bytes = read_all(journal.file_, path);
    if (!bytes) return std::unexpected(bytes.error());
    auto read = read_journal(*bytes);
    if (!read) {
        read.error().what = path.string() + ": " + read.error().what;
        return std::unexpected(read.error());
    }
    journal.sequence_ = read->next_sequence;
    journal.bytes_ = read->sound_bytes;
    if (read->dropped_bytes > 0) {
        // Gone from the disk before anything is appended behind it.
        if (::ftruncate(journal.file_, static_cast<off_t>(read->sound_bytes)) != 0 || ::fsync(journal.file_) != 0)
            return disk_error("cut the torn end of", path);
    }
    return Opened{std::move(journal), std::move(read->records), read->dropped_bytes};
}

Result<> JournalFile::append(std::span<const JournalRecord> records) {
    if (records.empty()) return {};
    const std::string frame = journal_frame(sequence_, records);
    if (const auto written = write_at(file_, bytes_, frame, path_); !written) return written;
    if (::fdatasync(file_) != 0) return disk_error("sync", path_);
    ++sequence_;
    bytes_ += frame.size();
    return {};
}

Result<> JournalFile::replace(std::span<const JournalRecord> records) {
    const std::string frame = journal_frame(sequence_, records);
    const std::filesystem::path beside = path_.string() + ".new";
    const int fresh = ::open(beside.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fresh < 0) return disk_error("open", beside);
    Result<> done = write_at(fresh, 0, frame, beside);
    if (done && ::fsync(fresh) != 0) done = disk_error("sync", beside);
    if (done && ::rename(beside.c_str(), path_.c_str()) != 0) done = disk_error("rename", beside);
    if (done) done = sync_directory(path_);
    if (!done) {
        ::close(fresh);
        return done;
    }
    ::close(std::exchange(file_, fresh));
    ++sequence_;
    bytes_ = frame.size();
    return {};
}

}  // namespace bulkhead::agent
