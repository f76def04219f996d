// The log, read from another thread than the one that commits: a connection of its own, which sees whole commits only
// and never keeps the writer waiting. Reads are short, so that the write-ahead log can be emptied between them.
#pragma once

#include <memory>

#include "bulkhead/store/store.hpp"

namespace bulkhead::store {

class Reader {
public:
    // Of a database that some Store has made; nothing is created, migrated or checked here.
    static Result<Reader> open(const Options& options);
    Reader(Reader&&) noexcept;
    Reader& operator=(Reader&&) noexcept;
    ~Reader();

    Result<Position> position() const;
    // From `first` on, at most `count`; fewer at the end of the log. A single one that is not there is `not_found`.
    Result<std::vector<Leaf>> leaves(std::int64_t first, std::int64_t count) const;
    Result<Leaf> leaf(std::int64_t index) const;

private:
    struct State;
    explicit Reader(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace bulkhead::store
