// A simulated node on disk, shared by every process that uses it: node.yaml says what it is made of, state.bin what has
// happened to it since. Whoever acts on the node holds the lock, reads the state if somebody else changed it, and
// writes it whole when it has changed it. A node whose state is missing begins anew from node.yaml.
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "bulkhead/base/result.hpp"
#include "bulkhead/node/driver_model.hpp"

namespace bulkhead::nvml_sim {

class Store {
public:
    explicit Store(std::filesystem::path directory) : directory_{std::move(directory)} {}

    // The node while the lock is held; what is not saved is forgotten.
    class Turn {
    public:
        Turn(Turn&& other) noexcept : store_{other.store_}, lock_{std::exchange(other.lock_, -1)} {}
        Turn& operator=(Turn&&) = delete;
        ~Turn();
        driver::Model& model() { return *store_->model_; }
        Result<> save();

    private:
        friend class Store;
        Turn(Store* store, int lock) : store_{store}, lock_{lock} {}
        Store* store_;
        int lock_;
    };
    Result<Turn> take();

    // A turn as a call of a library gets it: the dead are gone, and the faults that were ordered for the call are used
    // up.
    struct Meeting {
        Turn turn;
        std::optional<std::uint64_t> fail;  // answer this and do nothing
        std::optional<std::uint64_t> lie;   // tell this, or only say that something was done
    };
    // `held` is the library's own lock; a call that was ordered to be slow gives it and the node back while it waits.
    Result<Meeting> meet(std::string_view call, std::unique_lock<std::mutex>& held);

    // Whether this process is the node's root: root, or whose folder it is, who could write there whatever he wants.
    bool is_administered_by_us() const;

    static Result<> make(const std::filesystem::path& directory, const driver::Spec& spec);

private:
    struct Seen {  // what tells one state of a file from the next
        std::uint64_t inode = 0, size = 0;
        std::int64_t seconds = 0, nanoseconds = 0;
        friend bool operator==(const Seen&, const Seen&) = default;
    };
    Result<> refresh();
    Seen look() const;

    std::filesystem::path directory_;
    std::unique_ptr<driver::Model> model_;
    Seen seen_;
};

Instant now();

// When a process began, in ticks since boot; 0 when there is none. Tells a process from a later one with the same pid.
std::uint64_t start_of_process(std::uint32_t pid);

// Ends what processes held that are no more. Returns whether there were any.
bool reap(driver::Model& model);

}  // namespace bulkhead::nvml_sim
