// The journal on disk: appended and synced, its torn end cut off when it is opened, rewritten beside itself and renamed
// when it has grown. One process at a time: the file is locked.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "bulkhead/base/result.hpp"
#include "bulkhead/node/journal.hpp"

namespace bulkhead::agent {

class JournalFile {
public:
    struct Opened;
    // Made when it is not there. `unavailable` while another process has it, `corrupt` when its middle is damaged.
    static Result<Opened> open(const std::filesystem::path& path);

    JournalFile(JournalFile&& other) noexcept;
    JournalFile& operator=(JournalFile&& other) noexcept;
    ~JournalFile();

    // Durable when it returns without an error. After an error nobody knows what is on disk: open it anew.
    Result<> append(std::span<const JournalRecord> records);
    // The same, with only these records.
    Result<> replace(std::span<const JournalRecord> records);
    std::size_t bytes() const { return bytes_; }

private:
    JournalFile() = default;
    std::filesystem::path path_;
    int file_ = -1;
    int lock_ = -1;
    std::uint64_t sequence_ = 0;
    std::size_t bytes_ = 0;
};

struct JournalFile::Opened {
    JournalFile file;
    std::vector<JournalRecord> records;
    std::size_t dropped_bytes = 0;  // of an append that a crash cut short
};

}  // namespace bulkhead::agent
