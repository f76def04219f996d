#include "bulkhead/hw/cuda/scrub.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <iterator>
#include <utility>
#include <vector>

#include "bulkhead/hw/cuda/everything.hpp"
#include "bulkhead/hw/cuda/memory_kernels.hpp"
#include "bulkhead/hw/cuda/pattern.hpp"

namespace bulkhead::cuda {

namespace {

class Stopwatch {
public:
    double lap() {
        const auto now = std::chrono::steady_clock::now();
        return std::chrono::duration<double, std::milli>(now - std::exchange(begun_, now)).count();
    }

private:
    std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
};

// What one pattern covers.
struct Run {
    Address at = 0;
    std::uint64_t chunks = 0;
    Pattern pattern;
};

// `before`: of so many runs the key has made patterns already.
std::vector<Run> runs_of(const std::vector<Piece>& pieces, std::array<std::uint32_t, 4> key, std::size_t before = 0) {
    std::vector<Run> runs;
    for (const Piece& piece : pieces)
        for (std::uint64_t done = 0; done < piece.bytes / chunk_bytes;) {
            const std::uint64_t chunks = std::min(piece.bytes / chunk_bytes - done, run_chunks_max);
            runs.push_back({piece.at + done * chunk_bytes, chunks, keyed(key, before + runs.size())});
            done += chunks;
        }
    return runs;
}

class Scrub {
public:
    Scrub(const Driver& driver, Context context, const ScrubOptions& options)
        : driver_{driver}, context_{std::move(context)}, options_{options} {}

    Result<ScrubReport> run(ScrubReport report, Stopwatch& watch) {
        report_ = std::move(report);
        const auto ended = steps(watch);
        if (!ended) return std::unexpected(ended.error());
        return std::move(report_);
    }

private:
    Result<> steps(Stopwatch& watch) {
        const auto before = context_.memory();
        if (!before) return std::unexpected(before.error());
        report_.bytes_total = before->total;
        if (const auto small = context_.shrink(); !small) return small;
        report_.context_ms += watch.lap();
        if (auto kernels = MemoryKernels::load(context_); kernels) {
            kernels_ = *kernels;
        } else {
            return std::unexpected(kernels.error());
        }
        report_.module_ms = watch.lap();
        if (const auto taken = take(before->total - before->free); !taken) return taken;
        report_.allocation_ms = watch.lap();
        if (options_.survey)
            if (const auto seen = survey(); !seen) return seen;
        report_.survey_ms = watch.lap();
        if (const auto burnt = burn_in(); !burnt || !report_.why_not.empty()) return burnt;
        if (const auto written = overwrite(); !written) return written;
        report_.overwrite_ms = watch.lap();
        if (const auto read = verify(); !read) return read;
        report_.verify_ms = watch.lap();
        if (report_.verified && place_)
            if (const auto done = hand_over(); !done) return done;
        report_.handover_ms = watch.lap();
        return {};
    }

    // `context_bytes`: what a new context takes. So much is set apart where the next one will be made.
    Result<> take(std::uint64_t context_bytes) {
        constexpr std::uint64_t more = 64 << 20, place_max = std::uint64_t{2} << 30;
        const std::uint64_t place =
            (std::min(context_bytes + more, place_max) + page_bytes - 1) / page_bytes * page_bytes;
        auto pieces = hold_with_place(place);
        if (!pieces) {
            report_.why_context_stays = pieces.error().what;
            held_.clear();
            place_.reset();
            pieces = take_everything(context_);
        }
        if (!pieces) return std::unexpected(pieces.error());
        if (pieces->empty())
            return fail(Code::exhausted,
                        fmt::format("{} has no memory left to wipe: others have all of it", report_.device.uuid),
                        "stop whoever uses it (`nvidia-smi` lists processes), and wipe again");
        report_.pieces = pieces->size();
        for (const Piece& piece : *pieces) report_.bytes_reached += piece.bytes;
        use(*std::move(pieces));
        runs_ = runs_of(pieces_, options_.key);
        const auto after = context_.memory();
        if (!after) return std::unexpected(after.error());
        report_.bytes_left = after->free;
        return {};
    }

    Result<std::vector<Piece>> hold_with_place(std::uint64_t place) {
        if (!context_.can_hold())
            return fail(Code::unavailable, "this driver has no memory that outlives a context", "");
        auto held = context_.hold(place);
        if (!held) return std::unexpected(held.error());
        if (!*held) return fail(Code::exhausted, fmt::format("no {} bytes are free for a second context", place), "");
        place_ = *std::move(held);
        return hold();
    }

    // All there is, and the place for the next context.
    Result<std::vector<Piece>> hold() {
        auto held = hold_everything(context_);
        if (!held) return std::unexpected(held.error());
        std::vector<Piece> pieces;
        for (const Holding& holding : *held) pieces.push_back(holding.piece());
        if (place_) pieces.push_back(place_->piece());
        std::ranges::sort(pieces, std::greater{}, &Piece::bytes);
        std::ranges::move(*held, std::back_inserter(held_));
        return pieces;
    }

    // Tallies live at the very end of the smallest piece, and are wiped last: memory of their own would be memory that
    // nobody wipes.
    void use(std::vector<Piece> pieces) {
        pieces_ = std::move(pieces);
        pieces_.back().bytes -= tallies_bytes;
        tallies_ = pieces_.back().at + pieces_.back().bytes;
        if (pieces_.back().bytes == 0) pieces_.pop_back();
    }

    // Our own context lies on memory that nobody in it can reach. A second one is made in a place that was wiped; the
    // first ends, and what it lay on can be had. All else stays held meanwhile, so that the two cannot have lain on the
    // same memory. Where there can be no second one, what was wiped is wiped, and the report says what was not, and
    // why.
    Result<> hand_over() {
        place_.reset();
        const auto freed = context_.memory();
        if (!freed) return std::unexpected(freed.error());
        auto second = next_context();
        if (!second) {
            report_.why_context_stays = second.error().what;
            return {};
        }
        const auto beside = second->memory();
        context_ = *std::move(second);  // the first is gone
        if (!beside) return std::unexpected(beside.error());
        auto pieces = hold();
        if (!pieces) return std::unexpected(pieces.error());
        const auto left = context_.memory();
        if (!left) return std::unexpected(left.error());
        if (pieces->empty()) {
            report_.why_context_stays = "nothing came free when the first context ended";
            return {};
        }
        runs_before_ = runs_.size();
        use(*std::move(pieces));
        runs_ = runs_of(pieces_, options_.key, runs_before_);

        const ScrubReport first = std::exchange(report_, blank(report_));
        if (const auto burnt = burn_in(); !burnt) return burnt;
        report_.burn_in_passes = std::min(report_.burn_in_passes, first.burn_in_passes);
        if (report_.why_not.empty()) {
            if (const auto written = overwrite(); !written) return written;
            if (const auto read = verify(); !read) return read;
        }
        if (!report_.verified) report_.why_not = "of what our own context had lain on, " + report_.why_not;
        report_.overwrite.bytes += first.overwrite.bytes;
        report_.overwrite.ms += first.overwrite.ms;
        report_.verify.bytes += first.verify.bytes;
        report_.verify.ms += first.verify.ms;
        report_.words_read += first.words_read;
        report_.sum_read += first.sum_read;
        report_.sum_expected += first.sum_expected;
        // What is held now, and what the second context lies on: of the place that was wiped, as far as it does not lie
        // on what had been left over.
        const std::uint64_t lies_on = freed->free - std::min(freed->free, beside->free);
        report_.bytes_reached = lies_on - std::min(lies_on, first.bytes_left);
        for (const Holding& holding : held_) report_.bytes_reached += holding.piece().bytes;
        report_.bytes_left = left->free;
        return {};
    }

    Result<Context> next_context() {
        auto second = driver_.context(options_.ordinal);
        if (!second) return second;
        if (const auto small = second->shrink(); !small) return std::unexpected(small.error());
        const auto kernels = MemoryKernels::load(*second);
        if (!kernels) return std::unexpected(kernels.error());
        kernels_ = *kernels;
        return second;
    }

    // As if nothing had been written and read back yet.
    static ScrubReport blank(ScrubReport report) {
        report.overwrite = report.verify = {};
        report.words_read = report.sum_read = report.sum_expected = 0;
        report.burn_in_passes = 0;
        report.verified = false;
        return report;
    }

    Result<Tallies> compare(bool with_zeros, Pass& pass) {
        if (const auto cleared = context_.set_words(tallies_, 0, tallies_bytes / 4); !cleared)
            return std::unexpected(cleared.error());
        const auto begun = context_.mark();
        if (!begun) return std::unexpected(begun.error());
        pass.bytes = 0;
        for (const Run& run : runs_) {
            const auto started =
                kernels_.compare(context_, run.at, run.chunks, with_zeros ? zeros : run.pattern, tallies_);
            if (!started) return std::unexpected(started.error());
            pass.bytes += run.chunks * chunk_bytes;
        }
        const auto ended = context_.mark();
        if (!ended) return std::unexpected(ended.error());
        const auto ms = context_.ms_between(*begun, *ended);
        if (!ms) return std::unexpected(ms.error());
        pass.ms = *ms;
        return read_tallies(context_, tallies_);
    }

    Result<> survey() {
        // Where the tallies will be: by the host, before they are.
        std::array<std::uint32_t, tallies_bytes / 4> words{};
        if (const auto copied = context_.copy_out(std::as_writable_bytes(std::span{words}), tallies_); !copied)
            return copied;
        const auto tallies = compare(true, report_.survey);
        if (!tallies) return std::unexpected(tallies.error());
        const auto other = static_cast<std::uint64_t>(std::ranges::count_if(words, std::identity{}));
        report_.bytes_found = (tallies->words_other + other) * 4;
        return {};
    }

    // What it finds wrong is in `why_not`, and nothing more is tried. The passes leave nothing in the report but that.
    Result<> burn_in() {
        const ScrubReport before = report_;
        for (const std::array<std::uint32_t, 4>& key : options_.burn_in) {
            runs_ = runs_of(pieces_, key);
            if (const auto written = overwrite(); !written) return written;
            if (const auto read = verify(); !read) return read;
            if (report_.verified) {
                const std::size_t passes = report_.burn_in_passes + 1;
                report_ = before;
                report_.burn_in_passes = passes;
                continue;
            }
            report_.why_not = fmt::format("pass {} of {} of the burn-in: {}", report_.burn_in_passes + 1,
                                          options_.burn_in.size(), report_.why_not);
            return {};
        }
        runs_ = runs_of(pieces_, options_.key, runs_before_);
        return options_.burn_in.empty() ? Result<>{} : reckon();
    }

    // Every thread computes the same, and the compare that finds other words knows what that is.
    Result<> reckon() {
        constexpr std::uint64_t words_max = 16 << 20;  // far more threads than any GPU runs at once
        constexpr std::uint32_t rounds = 4096;
        const Run& run = runs_.front();
        const std::uint64_t chunks = std::min(run.chunks, words_max * 4 / chunk_bytes);
        const std::uint32_t seed = options_.key[0];
        if (const auto begun = kernels_.reckon(context_, run.at, chunks * (chunk_bytes / 4), seed, rounds); !begun)
            return begun;
        if (const auto cleared = context_.set_words(tallies_, 0, tallies_bytes / 4); !cleared) return cleared;
        const std::uint32_t word = reckoned(seed, rounds);
        const Pattern wanted{.mul = {}, .add = {word, word, word, word}};
        if (const auto begun = kernels_.compare(context_, run.at, chunks, wanted, tallies_); !begun) return begun;
        const auto tallies = read_tallies(context_, tallies_);
        if (!tallies) return std::unexpected(tallies.error());
        if (tallies->words != chunks * (chunk_bytes / 4) || tallies->words_other != 0)
            report_.why_not = fmt::format("{} of {} threads computed something else than the host",
                                          tallies->words_other, chunks * (chunk_bytes / 4));
        return {};
    }

    Result<> overwrite() {
        const auto begun = context_.mark();
        if (!begun) return std::unexpected(begun.error());
        for (const Run& run : runs_) {
            if (options_.mishap.skip_overwrite) break;
            if (const auto started = kernels_.fill(context_, run.at, run.chunks, run.pattern); !started) return started;
            report_.overwrite.bytes += run.chunks * chunk_bytes;
        }
        const auto ended = context_.mark();
        if (!ended) return std::unexpected(ended.error());
        const auto ms = context_.ms_between(*begun, *ended);
        if (!ms) return std::unexpected(ms.error());
        report_.overwrite.ms = *ms;
        if (!options_.mishap.plant_marker) return {};
        constexpr std::array<std::uint32_t, 4> marker{0xBAD0BAD0, 0xBAD1BAD1, 0xBAD2BAD2, 0xBAD3BAD3};
        const Run& run = runs_.front();
        return context_.copy_in(run.at + run.chunks / 2 * chunk_bytes, std::as_bytes(std::span{marker}));
    }

    Result<> verify() {
        const auto tallies = compare(false, report_.verify);
        if (!tallies) return std::unexpected(tallies.error());
        report_.words_read = tallies->words;
        report_.bytes_other = tallies->words_other * 4;
        report_.sum_read = tallies->sum;
        for (const Run& run : runs_) report_.sum_expected += sum_of(run.pattern, run.chunks);
        // The tallies' own place: by the host, every byte.
        std::array<std::byte, tallies_bytes> last{};
        if (const auto cleared = context_.set_words(tallies_, 0, tallies_bytes / 4); !cleared) return cleared;
        std::ranges::fill(last, std::byte{0xFF});
        if (const auto copied = context_.copy_out(last, tallies_); !copied) return copied;
        for (const std::byte byte : last) report_.bytes_other += byte != std::byte{} ? 1 : 0;
        judge();
        return {};
    }

    void judge() {
        const std::uint64_t words = report_.verify.bytes / 4;
        if (report_.bytes_other != 0) {
            report_.why_not = fmt::format("{} bytes differ from what was written", report_.bytes_other);
        } else if (report_.words_read != words) {
            report_.why_not = fmt::format("{} words were read back of {}", report_.words_read, words);
        } else if (report_.sum_read != report_.sum_expected) {
            report_.why_not =
                fmt::format("what was read adds up to {:016x}, not {:016x}", report_.sum_read, report_.sum_expected);
        } else {
            report_.verified = true;
        }
    }

    const Driver& driver_;
    Context context_;
    std::vector<Holding> held_;     // given back before the context is
    std::optional<Holding> place_;  // of the second context, as long as there is none
    ScrubOptions options_;
    MemoryKernels kernels_;
    ScrubReport report_;
    std::vector<Piece> pieces_;
    std::vector<Run> runs_;
    std::size_t runs_before_ = 0;  // that the key has made patterns for already
    Address tallies_ = 0;
};

}  // namespace

Result<ScrubReport> scrub(const Driver& driver, const ScrubOptions& options) {
    Stopwatch watch;
    const auto devices = driver.devices();
    if (!devices) return std::unexpected(devices.error());
    const auto device = std::ranges::find(*devices, options.ordinal, &Device::ordinal);
    if (device == devices->end())
        return fail(Code::not_found,
                    fmt::format("CUDA shows no device {}; it shows {}", options.ordinal, devices->size()),
                    "`nvidia-smi -L` lists GPUs; CUDA_VISIBLE_DEVICES may hide some");
    auto context = driver.context(options.ordinal);
    if (!context) return std::unexpected(context.error());
    ScrubReport report{.device = *device};
    report.context_ms = watch.lap();
    return Scrub{driver, std::move(*context), options}.run(std::move(report), watch);
}

}  // namespace bulkhead::cuda
