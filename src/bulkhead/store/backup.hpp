// A copy of one moment, taken in small steps while commits go on: it holds on to the state at its start, on a
// connection of its own, so it can run on any thread or between commits, and always comes to an end. (The write-ahead
// log cannot be emptied meanwhile: do not let one lie about unfinished.) The copy is written beside its target,
// verified, synced, and only then takes the name: a target that is there is whole.
#pragma once

#include <memory>
#include <string>

#include "bulkhead/store/store.hpp"

namespace bulkhead::store {

class Backup {
public:
    struct Progress {
        std::int64_t pages = 0, pages_left = 0;
        bool done = false;  // verified and in place
    };

    // Of the database at source.path into `target`, on the same VFS. A target that exists is replaced at the end.
    static Result<Backup> start(const Options& source, std::string target);
    // Of a finished file that nobody writes, such as another backup; verified before anything is copied.
    static Result<Backup> start_from_copy(const Options& source, std::string target);
    Backup(Backup&&) noexcept;
    Backup& operator=(Backup&&) noexcept;
    ~Backup();  // before it is done: leaves nothing behind

    Result<Progress> step(int pages = 256);
    Result<Position> finish();  // all the steps that are left
    Position position() const;  // what the copy holds

private:
    struct State;
    explicit Backup(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace bulkhead::store
