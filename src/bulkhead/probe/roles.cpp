#include "bulkhead/probe/roles.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <istream>
#include <map>
#include <ostream>
#include <thread>

#include "bulkhead/hw/cuda/everything.hpp"
#include "bulkhead/hw/cuda/memory_kernels.hpp"
#include "bulkhead/hw/cuda/probe_kernels.hpp"
#include "bulkhead/hw/nvml/nvml.hpp"

namespace bulkhead::probe {

namespace {

using cuda::Address, cuda::Context, cuda::Driver, cuda::MemoryKernels, cuda::Pattern, cuda::Piece, cuda::ProbeKernels;
using Clock = std::chrono::steady_clock;

constexpr std::uint32_t mark_word = 0xB01C4EAD;  // improbable, and the same for all parts
constexpr Pattern marks{.mul = {}, .add = {mark_word, mark_word, mark_word, mark_word}};

// Errors end a role: the line that says so is written in one place.
template <class T>
T must(Result<T> result) {
    if (!result) throw result.error();
    if constexpr (!std::is_void_v<T>) return *std::move(result);
}

struct Stage {
    const RoleOptions& options;
    std::istream& in;
    std::ostream& out;

    void say(const std::string& line) const { out << line << std::endl; }
    bool hear(std::string& line) const { return static_cast<bool>(std::getline(in, line)); }
    std::uint64_t bytes(std::size_t word) const {
        const std::uint64_t mib =
            options.words.size() > word ? std::strtoull(options.words[word].c_str(), nullptr, 10) : 0;
        if (mib == 0) throw Error{Code::invalid, "the role wants an amount of memory in MiB", ""};
        return mib << 20;
    }
};

struct Open {
    Driver driver;
    cuda::Device device;
    Context context;
};

Open open(const Stage& stage) {
    auto driver = must(Driver::open(stage.options.cuda));
    const auto devices = must(driver.devices());
    if (devices.empty()) throw Error{Code::not_found, "CUDA shows no device", ""};
    auto context = must(driver.context(0));
    return {std::move(driver), devices.front(), std::move(context)};
}

Piece had(Result<std::optional<Piece>> result) {
    const auto piece = must(std::move(result));
    if (!piece) throw Error{Code::exhausted, "there is not so much memory", ""};
    return *piece;
}

struct Seen {
    std::uint64_t bytes = 0, not_zero = 0, marked = 0;
    std::string line() const { return fmt::format("bytes={} notZero={} marked={}", bytes, not_zero, marked); }
};

// What is in these pieces, whoever wrote it.
Seen look_at(Context& context, const std::vector<Piece>& pieces) {
    const auto kernels = must(MemoryKernels::load(context));
    const Piece tallies = had(context.allocate(cuda::tallies_bytes));
    Seen seen;
    for (const Pattern& pattern : {cuda::zeros, marks}) {
        must(context.set_words(tallies.at, 0, cuda::tallies_bytes / 4));
        for (const Piece& piece : pieces)
            must(kernels.compare(context, piece.at, piece.bytes / cuda::chunk_bytes, pattern, tallies.at));
        const cuda::Tallies found = must(cuda::read_tallies(context, tallies.at));
        seen.bytes = found.words * 4;
        (pattern == marks ? seen.marked : seen.not_zero) =
            4 * (pattern == marks ? found.words - found.words_other : found.words_other);
    }
    must(context.release(tallies.at));
    return seen;
}

// Marks memory; then "free" gives it back with the context alive, the end of the lines ends it properly, and who kills
// it kills it.
void mark(const Stage& stage) {
    Open gpu = open(stage);
    const Piece piece = had(gpu.context.allocate(stage.bytes(1)));
    must(gpu.context.set_words(piece.at, mark_word, piece.bytes / 4));
    must(gpu.context.finish());
    stage.say("ready");
    for (std::string line; stage.hear(line);)
        if (line == "free") {
            must(gpu.context.release(piece.at));
            must(gpu.context.finish());
            stage.say("freed");
        }
}

// Everything but a little, so that the tallies have a place.
void look(const Stage& stage) {
    Open gpu = open(stage);
    const Piece room = had(gpu.context.allocate(4 << 20));
    const auto pieces = must(take_everything(gpu.context));
    must(gpu.context.release(room.at));
    stage.say(look_at(gpu.context, pieces).line());
}

// What one process finds of its own after giving it back.
void within(const Stage& stage) {
    Open gpu = open(stage);
    const std::uint64_t bytes = stage.bytes(1);
    const Piece first = had(gpu.context.allocate(bytes));
    must(gpu.context.set_words(first.at, mark_word, bytes / 4));
    must(gpu.context.release(first.at));
    const Piece second = had(gpu.context.allocate(bytes));
    stage.say("plain " + look_at(gpu.context, {second}).line());
    must(gpu.context.release(second.at));
    const Piece pooled = had(gpu.context.allocate_from_pool(bytes));
    must(gpu.context.set_words(pooled.at, mark_word, bytes / 4));
    must(gpu.context.release_to_pool(pooled.at));
    const Piece again = had(gpu.context.allocate_from_pool(bytes));
    stage.say("pool " + look_at(gpu.context, {again}).line());
    must(gpu.context.release_to_pool(again.at));
}

void mark_chip(const Stage& stage) {
    Open gpu = open(stage);
    const auto kernels = must(ProbeKernels::load(gpu.context, gpu.device.multiprocessors));
    const Piece scratch = had(gpu.context.allocate(4096));
    must(kernels.mark_local(gpu.context, mark_word, scratch.at));
    must(kernels.mark_shared(gpu.context, mark_word));
    must(gpu.context.finish());
    stage.say("ready");
    // Goes on marking until it is told to stop, so that who looks meanwhile looks at warm memory.
    std::atomic<bool> stop = false;
    std::thread listener{[&] {
        for (std::string line; stage.hear(line);) {
        }
        stop = true;
    }};
    while (!stop) {
        must(kernels.mark_shared(gpu.context, mark_word));
        must(kernels.mark_local(gpu.context, mark_word, scratch.at));
        must(gpu.context.finish());
    }
    listener.join();
}

void look_chip(const Stage& stage) {
    Open gpu = open(stage);
    const auto kernels = must(ProbeKernels::load(gpu.context, gpu.device.multiprocessors));
    const Piece tallies = had(gpu.context.allocate(cuda::tallies_bytes));
    for (const bool shared : {true, false}) {
        must(gpu.context.set_words(tallies.at, 0, cuda::tallies_bytes / 4));
        for (int times = 0; times < 50; ++times)
            must(shared ? kernels.look_at_shared(gpu.context, mark_word, tallies.at)
                        : kernels.look_at_local(gpu.context, mark_word, tallies.at));
        std::array<std::uint64_t, 3> found{};
        must(gpu.context.copy_out(std::as_writable_bytes(std::span{found}), tallies.at));
        stage.say(
            fmt::format("{} {}", shared ? "shared" : "local", Seen{found[0] * 4, found[1] * 4, found[2] * 4}.line()));
    }
}

// One piece of work of known size, again and again.
class Work {
public:
    Work(Open& gpu, const std::string& name, bool heavy) : gpu_{gpu}, name_{name} {
        kernels_ = must(ProbeKernels::load(gpu.context, gpu.device.multiprocessors));
        scratch_ = had(gpu.context.allocate(4096)).at;
        if (name == "compute") {
            rounds_ = heavy ? 400'000 : 5'000;
        } else if (name == "memory") {
            piece_ = had(gpu.context.allocate(heavy ? 8ULL << 30 : 256ULL << 20));
        } else if (name == "cache") {
            piece_ = had(gpu.context.allocate(heavy ? 8ULL << 30 : 16ULL << 20));
            rounds_ = heavy ? 1 : 8;
        } else if (name == "copy") {
            piece_ = had(gpu.context.allocate(heavy ? 256ULL << 20 : 4ULL << 20));
            host_ = must(gpu.context.pin(piece_.bytes));
        } else {
            throw Error{Code::invalid, fmt::format("there is no work called \"{}\"", name), ""};
        }
    }
    void once() {
        if (name_ == "compute") {
            must(kernels_.burn(gpu_.context, rounds_, scratch_));
        } else if (name_ == "copy") {
            must(gpu_.context.copy_in(piece_.at, host_));
        } else {
            must(kernels_.stream(gpu_.context, piece_, rounds_, scratch_));
        }
        must(gpu_.context.finish());
    }
    std::uint64_t bytes() const { return name_ == "compute" ? 0 : piece_.bytes * rounds_; }

private:
    Open& gpu_;
    std::string name_;
    ProbeKernels kernels_;
    Address scratch_ = 0;
    Piece piece_;
    std::span<std::byte> host_;
    std::uint32_t rounds_ = 1;
};

// How long its own small piece of work takes, many times: the number an operator's customer feels.
void victim(const Stage& stage) {
    Open gpu = open(stage);
    Work work{gpu, stage.options.words.at(1), false};
    const auto limit = std::chrono::seconds{std::strtol(stage.options.words.at(2).c_str(), nullptr, 10)};
    constexpr std::size_t most = 20'000;
    for (int warm = 0; warm < 20; ++warm) work.once();
    std::vector<std::int64_t> took;
    const auto begun = Clock::now();
    while (took.size() < most && Clock::now() - begun < limit) {
        const auto from = Clock::now();
        work.once();
        took.push_back(std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - from).count());
    }
    const auto all = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begun).count();
    std::ranges::sort(took);
    const auto at = [&](std::size_t thousandths) {
        return took[std::min(took.size() - 1, took.size() * thousandths / 1000)];
    };
    const auto rate = work.bytes() * took.size() / static_cast<std::uint64_t>(std::max<std::int64_t>(1, all / 1'000));
    stage.say(fmt::format("count={} p50={} p99={} p999={} most={} mbPerS={}", took.size(), at(500), at(990), at(999),
                          took.back(), rate));
}

void hog(const Stage& stage) {
    Open gpu = open(stage);
    Work work{gpu, stage.options.words.at(1), true};
    work.once();
    stage.say("ready");
    std::atomic<bool> stop = false;
    std::thread listener{[&] {
        for (std::string line; stage.hear(line);) {
        }
        stop = true;
    }};
    std::uint64_t times = 0;
    while (!stop) {
        work.once();
        ++times;
    }
    listener.join();
    stage.say(fmt::format("times={}", times));
}

// What this process can learn about others on the GPU: asked once for each line it hears.
void observe(const Stage& stage) {
    Open gpu = open(stage);
    const auto nvml = must(nvml::Nvml::open(stage.options.nvml));
    for (std::string line; stage.hear(line);) {
        const auto memory = must(gpu.context.memory());
        const auto processes = nvml.processes(gpu.device.uuid);
        const auto load = nvml.load(gpu.device.uuid);
        std::size_t others = 0;
        std::uint64_t bytes = 0;
        const auto self =
            static_cast<std::uint32_t>(std::strtoul(line.c_str(), nullptr, 10));  // ours, as the kernel counts
        if (processes)
            for (const nvml::Process& process : *processes)
                if (process.pid != self) {
                    ++others;
                    bytes += process.bytes.value_or(0);
                }
        stage.say(fmt::format(
            "free={} processes={} processBytes={} powerMw={} gpuPercent={} memoryPercent={} smMhz={}", memory.free,
            processes ? static_cast<std::int64_t>(others) : -1, bytes,
            load ? static_cast<std::int64_t>(load->power_mw) : -1, load ? static_cast<int>(load->gpu_percent) : -1,
            load ? static_cast<int>(load->memory_percent) : -1, load ? static_cast<int>(load->sm_mhz) : -1));
    }
}

}  // namespace

int play(const RoleOptions& options, std::istream& in, std::ostream& out) {
    const Stage stage{options, in, out};
    const std::map<std::string, void (*)(const Stage&)> roles{
        {"mark", mark},           {"look", look},     {"within", within}, {"mark-chip", mark_chip},
        {"look-chip", look_chip}, {"victim", victim}, {"hog", hog},       {"observe", observe}};
    try {
        const auto role = roles.find(options.words.empty() ? "" : options.words.front());
        if (role == roles.end()) throw Error{Code::invalid, "there is no such role", ""};
        role->second(stage);
        return 0;
    } catch (const Error& error) {
        stage.say("error: " + error.what);
        return 1;
    }
}

}  // namespace bulkhead::probe
