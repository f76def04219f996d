// What a backup needs of files and SQLite's VFS does not offer: to take a name only when finished. On the machine's own
// files that is rename and a sync of the directory; on any other VFS it is asked for by a file control of our own.
#pragma once

#include <string>

#include "bulkhead/base/result.hpp"

namespace bulkhead::store {

// sqlite3_file_control on an open main file, with the new name as `const char*`: rename it, durably, over whatever has
// that name. A VFS that does not know it answers SQLITE_NOTFOUND.
inline constexpr int rename_file_control = 0x42480001;

struct Place {
    std::string path, vfs;
};

bool exists(const Place& file);
// The file and what SQLite may have left beside it.
Result<> remove_database(const Place& file);
// What SQLite may have left beside it: a log that outlives its database would be replayed into the next one.
Result<> remove_leftovers(const Place& file);
// On the disk under its new name when it returns.
Result<> move_into_place(const Place& from, const std::string& to);

}  // namespace bulkhead::store
