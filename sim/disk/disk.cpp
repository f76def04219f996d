#include "sim/disk/disk.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <set>

#include "bulkhead/base/result.hpp"
#include "sim/disk/state.hpp"

namespace bulkhead::sim {

namespace {

void enact(Names& names, const Naming& naming) {
    if (naming.kind == Naming::Kind::made)
        names[naming.name] = naming.file;
    else
        names.erase(naming.name);
    if (naming.kind == Naming::Kind::renamed) names[naming.to] = naming.file;
}

std::string new_name() {
    static std::atomic<unsigned> count{0};
    return fmt::format("bulkhead-disk-{}", ++count);
}

}  // namespace

Power Disk::State::boundary() {
    if (power_lost) return Power::off;
    ++writes;
    if (!crash_at || writes < *crash_at) return Power::on;
    power_lost = true;
    return Power::going;
}

void Disk::State::change(Naming naming) {
    enact(names, naming);
    unsynced_namings.push_back(std::move(naming));
}

void Disk::State::sync_names() {
    for (const Naming& naming : unsynced_namings) enact(durable_names, naming);
    unsynced_namings.clear();
}

std::shared_ptr<File> Disk::State::find(std::string_view path) const {
    const auto found = names.find(path);
    return found == names.end() ? nullptr : found->second;
}

// New files with the same images: dead handles keep the old ones, with their locks and memory.
void Disk::State::lose_handles() {
    ++generation;
    std::map<const File*, std::shared_ptr<File>> anew;
    const auto renew = [&](std::shared_ptr<File>& file) {
        std::shared_ptr<File>& fresh = anew[file.get()];
        if (!fresh) {
            fresh = std::make_shared<File>();
            fresh->image = file->image;
        }
        file = fresh;
    };
    for (auto& [path, file] : names) renew(file);
    for (auto& [path, file] : durable_names) renew(file);
    for (Naming& naming : unsynced_namings) renew(naming.file);
}

Disk::Disk() : state_(std::make_unique<State>()) {
    State& state = *state_;
    state.name = new_name();
    sqlite3_vfs& vfs = state.vfs;
    fill_in(vfs);
    vfs.zName = state.name.c_str();
    vfs.pAppData = &state;
    invariant(sqlite3_vfs_register(&vfs, 0) == SQLITE_OK, "SQLite takes another VFS");
}

Disk::~Disk() {
    invariant(state_->open_handles == 0, "every database is closed before its disk goes");
    sqlite3_vfs_unregister(&state_->vfs);
}

const std::string& Disk::vfs() const { return state_->name; }

void Disk::crash(Rng& rng) {
    State& state = *state_;
    constexpr std::array moods{Mood::drops, Mood::keeps, Mood::mixes, Mood::mixes};
    const Mood mood = moods[rng.below(moods.size())];

    Names left = state.durable_names;
    std::set<std::string, std::less<>> undecided;  // names of which an earlier change was lost
    for (const Naming& naming : state.unsynced_namings) {
        const bool survives = mood == Mood::keeps || (mood == Mood::mixes && rng.chance(500));
        if (survives && !undecided.contains(naming.name) && !undecided.contains(naming.to)) {
            enact(left, naming);
            continue;
        }
        undecided.insert(naming.name);
        if (naming.kind == Naming::Kind::renamed) undecided.insert(naming.to);
    }
    for (auto& [path, file] : left) {
        auto survivor = std::make_shared<File>();
        survivor->image = Image{file->image.after_power_cut(rng, mood)};
        file = std::move(survivor);
    }
    state.names = left;
    state.durable_names = std::move(left);
    state.unsynced_namings.clear();
    ++state.generation;
    state.power_lost = false;
    state.crash_at.reset();
    state.read_only = false;
    state.writes_left.reset();
    state.reads_left.reset();
    state.sync_fault = SyncFault::none;
}

void Disk::kill_processes() { state_->lose_handles(); }

std::uint64_t Disk::writes() const { return state_->writes; }
void Disk::crash_at_write(std::uint64_t n) { state_->crash_at = n; }
bool Disk::power_lost() const { return state_->power_lost; }

void Disk::fill() { state_->room = 0; }
void Disk::leave_free(std::uint64_t bytes) { state_->room = bytes; }
void Disk::read_only(bool on) { state_->read_only = on; }
void Disk::fail_writes(std::uint64_t after) { state_->writes_left = after; }
void Disk::fail_reads(std::uint64_t after) { state_->reads_left = after; }
void Disk::fail_sync(SyncFault fault) { state_->sync_fault = fault; }

void Disk::heal() {
    state_->room.reset();
    state_->writes_left.reset();
    state_->reads_left.reset();
    state_->read_only = false;
    state_->sync_fault = SyncFault::none;
}

bool Disk::exists(std::string_view path) const { return state_->find(path) != nullptr; }

std::vector<std::string> Disk::files() const {
    std::vector<std::string> all;
    for (const auto& [path, file] : state_->names) all.push_back(path);
    return all;
}

std::uint64_t Disk::size(std::string_view path) const {
    const auto file = state_->find(path);
    return file ? file->image.now().size() : 0;
}

std::string Disk::snapshot(std::string_view path) const {
    const auto file = state_->find(path);
    return file ? file->image.now() : std::string{};
}

void Disk::put(std::string_view path, std::string contents) {
    const auto old = state_->find(path);
    invariant(!old || std::ranges::none_of(old->handles, [](const Handle* handle) { return !handle->dead(); }),
              "nobody has the file open");
    auto file = std::make_shared<File>();
    file->image = Image{std::move(contents)};
    state_->change({Naming::Kind::made, std::string{path}, {}, std::move(file)});
    state_->sync_names();
}

void Disk::remove(std::string_view path) {
    const auto file = state_->find(path);
    if (!file) return;
    state_->change({Naming::Kind::removed, std::string{path}, {}, file});
    state_->sync_names();
}

void Disk::flip_bit(std::string_view path, std::uint64_t bit) {
    if (const auto file = state_->find(path)) file->image.flip_bit(bit);
}

void Disk::set_clock(Instant now) { state_->clock = now; }

void Disk::seed_sqlite(std::uint32_t seed) {
    // 0 would mean: seed from the machine again.
    sqlite3_test_control(SQLITE_TESTCTRL_PRNG_SEED, static_cast<int>(std::max(seed, 1u)), nullptr);
}

}  // namespace bulkhead::sim
