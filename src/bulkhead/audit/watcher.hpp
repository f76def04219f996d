// Somebody who remembers: holds each checkpoint of a log against the one before, and every new entry against what was
// signed. One such watcher who is not the operator is enough to catch a history that was rewritten.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "bulkhead/audit/files.hpp"
#include "bulkhead/evidence/checkpoint.hpp"
#include "bulkhead/model/describe.hpp"
#include "bulkhead/model/terms.hpp"

namespace bulkhead::audit {

inline constexpr std::string_view watch_version = "bulkhead.dev/audit-watch/v1";

// What a watcher must not forget.
struct WatchState {
    std::string version{watch_version};
    std::string key;         // the newest verifier key that is trusted
    std::string checkpoint;  // the newest signed note that was found good; empty: none yet

    static constexpr void describe(auto&& field) {
        field("version", &WatchState::version, "The form.", Rule{.required = true, .format = Format::line});
        field("key", &WatchState::key, "The verifier key that is trusted.",
              Rule{.required = true, .format = Format::line});
        field("checkpoint", &WatchState::checkpoint, "The newest checkpoint that was found good.");
    }
    friend bool operator==(const WatchState&, const WatchState&) = default;
};

std::string print(const WatchState& state);
Result<WatchState> read_watch_state(std::string_view json);

// What is wrong with a log. Everything else that keeps a watcher from looking is an error like any other.
enum class Tampering : std::uint8_t { fork, rollback, edit, truncation, signature };
constexpr auto words(Tampering) {
    return std::to_array<Words>({"fork", "rollback", "edit", "truncation", "signature"});
}

struct Watched {
    WatchState state;  // to be kept, before the next look
    std::uint64_t size = 0, before = 0;
    bool key_changed = false;
    std::optional<Tampering> tampering;  // then the state is the one from before, and this is why:
    std::string what;
    std::string note;  // the checkpoint that was looked at
};

// One look at the log, through whatever gives its files (a directory, or a server): "checkpoint", tiles, and "keys",
// the history of keys, when a checkpoint is signed by one that is not known. Of what is older than the last look it
// reads the few tiles that lead to the root; an auditor's pass (TileReader::verify_all) reads all.
Result<Watched> watch_once(const std::shared_ptr<const Files>& log, const WatchState& state);

}  // namespace bulkhead::audit
