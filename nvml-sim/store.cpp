#include "store.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <thread>

#include "node_file.hpp"
#include "topology_file.hpp"

namespace bulkhead::nvml_sim {

namespace {

namespace fs = std::filesystem;

Result<std::string> read_file(const fs::path& path) {
    std::ifstream file{path, std::ios::binary};
    if (!file)
        return fail(Code::not_found, fmt::format("cannot read {}: {}", path.string(), std::strerror(errno)),
                    "make a node with `bulkhead-gpusim new`");
    return std::string{std::istreambuf_iterator<char>{file}, {}};
}

// Whole or not at all: written beside and renamed over.
Result<> write_file(const fs::path& path, std::string_view bytes) {
    const fs::path beside = path.string() + ".new";
    std::ofstream file{beside, std::ios::binary | std::ios::trunc};
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    file.close();
    std::error_code error;
    if (file) fs::rename(beside, path, error);
    if (!file || error)
        return fail(Code::unavailable, fmt::format("cannot write {}", path.string()),
                    "look at the disk and who may write there");
    return {};
}

}  // namespace

Result<> Store::make(const fs::path& directory, const driver::Spec& spec) {
    std::error_code error;
    fs::create_directories(directory, error);
    if (error) return fail(Code::unavailable, fmt::format("cannot make {}: {}", directory.string(), error.message()));
    fs::remove(directory / "state.bin", error);
    if (const auto drawn = write_file(directory / "topology.xml", print_topology(spec)); !drawn) return drawn;
    return write_file(directory / "node.yaml", print_node(spec));
}

Store::Seen Store::look() const {
    struct stat now{};
    if (::stat((directory_ / "state.bin").c_str(), &now) != 0) return {};
    return {now.st_ino, static_cast<std::uint64_t>(now.st_size), now.st_mtim.tv_sec, now.st_mtim.tv_nsec};
}

Result<> Store::refresh() {
    const Seen found = look();
    if (model_ && found == seen_) return {};
    if (found == Seen{}) {
        const auto text = read_file(directory_ / "node.yaml");
        if (!text) return std::unexpected(text.error());
        auto spec = parse_node(*text);
        if (!spec) return std::unexpected(spec.error());
        model_ = std::make_unique<driver::Model>(*std::move(spec));
        model_->advance(now());  // its life begins here: energy counts from now on
        const auto written = write_file(directory_ / "state.bin", model_->to_bytes());
        seen_ = look();
        return written;
    } else {
        const auto bytes = read_file(directory_ / "state.bin");
        if (!bytes) return std::unexpected(bytes.error());
        auto model = driver::Model::from_bytes(*bytes);
        if (!model) return std::unexpected(model.error());
        model_ = std::make_unique<driver::Model>(*std::move(model));
    }
    seen_ = found;
    return {};
}

bool Store::is_administered_by_us() const {
    struct stat facts{};
    return ::geteuid() == 0 || (::stat(directory_.c_str(), &facts) == 0 && facts.st_uid == ::geteuid());
}

// Opened anew for every turn: a lock on a descriptor that a forked child inherited would be held by both. Who may only
// read takes turns too.
Result<Store::Turn> Store::take() {
    const std::string path = directory_ / "lock";
    int lock = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (lock < 0 && (errno == EACCES || errno == EROFS)) lock = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (lock < 0)
        return fail(Code::unavailable, fmt::format("cannot lock {}: {}", directory_.string(), std::strerror(errno)),
                    "make a node with `bulkhead-gpusim new`");
    Turn turn{this, lock};
    while (::flock(lock, LOCK_EX) != 0)
        if (errno != EINTR)
            return fail(Code::unavailable,
                        fmt::format("cannot lock {}: {}", directory_.string(), std::strerror(errno)));
    if (const auto fresh = refresh(); !fresh) return std::unexpected(fresh.error());
    return turn;
}

Result<Store::Meeting> Store::meet(std::string_view call, std::unique_lock<std::mutex>& held) {
    std::uint64_t wait_ms = 0;
    std::optional<std::uint64_t> fail_with, lie;
    auto turn = take();
    if (!turn) return std::unexpected(turn.error());
    const bool reaped = reap(turn->model());
    const std::vector<driver::Fault> faults =
        turn->model().faults().empty() ? std::vector<driver::Fault>{} : turn->model().meet(call);
    if (reaped || !faults.empty())  // who is dead stays so, whoever finds out; a fault must not be met twice
        if (const auto saved = turn->save(); !saved && !faults.empty()) return std::unexpected(saved.error());
    for (const driver::Fault& fault : faults) {
        if (fault.kind == driver::FaultKind::slow) wait_ms += fault.value;
        if (fault.kind == driver::FaultKind::fail) fail_with = fault.value;
        if (fault.kind == driver::FaultKind::lie) lie = fault.value;
    }
    if (wait_ms == 0) return Meeting{std::move(*turn), fail_with, lie};
    {
        const Turn given_back = std::move(*turn);
    }
    held.unlock();
    std::this_thread::sleep_for(std::chrono::milliseconds{wait_ms});
    held.lock();
    auto again = take();
    if (!again) return std::unexpected(again.error());
    return Meeting{std::move(*again), fail_with, lie};
}

Store::Turn::~Turn() {
    if (lock_ >= 0) ::close(lock_);
}

Result<> Store::Turn::save() {
    const auto written = write_file(store_->directory_ / "state.bin", store_->model_->to_bytes());
    store_->seen_ = store_->look();
    return written;
}

Instant now() {
    const auto since = std::chrono::system_clock::now().time_since_epoch();
    return {std::chrono::duration_cast<std::chrono::milliseconds>(since).count()};
}

std::uint64_t start_of_process(std::uint32_t pid) {
    std::ifstream file{fmt::format("/proc/{}/stat", pid)};
    std::string text{std::istreambuf_iterator<char>{file}, {}};
    // The name, in brackets, may hold anything; the state and 18 numbers stand between it and the start.
    const std::size_t name_end = text.rfind(')');
    if (name_end == std::string::npos) return 0;
    std::istringstream rest{text.substr(name_end + 1)};
    std::string field;
    rest >> field;
    if (field == "Z" || field == "X") return 0;  // it has ended, and nobody has asked how
    for (int i = 0; i < 18; ++i) rest >> field;
    std::uint64_t start = 0;
    rest >> start;
    return start;
}

bool reap(driver::Model& model) {
    std::set<std::uint32_t> dead;
    for (std::uint16_t gpu = 0; gpu < model.gpus(); ++gpu)
        for (const driver::Process& process : model.gpu(gpu).processes)
            if (process.started != 0 && start_of_process(process.pid) != process.started) dead.insert(process.pid);
    for (const std::uint32_t pid : dead) model.end(pid);
    return !dead.empty();
}

}  // namespace bulkhead::nvml_sim
