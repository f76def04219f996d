// Runs are cut where a new one begins or ends, and neighbours that go on with the same pattern grow together.
#include "bulkhead/node/driver_memory.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace bulkhead::driver {

namespace {

char byte_of(const GpuMemory::Run& run, std::uint64_t offset) {
    return run.bytes.empty() ? run.pattern.byte(run.phase + offset) : run.bytes[offset];
}

GpuMemory::Run part(const GpuMemory::Run& run, std::uint64_t from, std::uint64_t size) {
    if (!run.bytes.empty()) return {.size = size, .pattern = {}, .phase = 0, .bytes = run.bytes.substr(from, size)};
    const std::uint64_t phase = run.phase + from;
    return {.size = size,
            .pattern = run.pattern,
            .phase = run.pattern.repeats() ? phase % Pattern::chunk : phase,
            .bytes = {}};
}

bool goes_on(const GpuMemory::Run& left, const GpuMemory::Run& right) {
    if (!left.bytes.empty() || !right.bytes.empty() || left.pattern != right.pattern) return false;
    const std::uint64_t next = left.phase + left.size;
    return left.pattern.repeats() ? next % Pattern::chunk == right.phase % Pattern::chunk : next == right.phase;
}

}  // namespace

void GpuMemory::cut_out(Range range) {
    if (range.size == 0) return;
    auto at = runs_.upper_bound(range.begin);
    if (at != runs_.begin()) --at;
    while (at != runs_.end() && at->first < range.end()) {
        const std::uint64_t begin = at->first, end = begin + at->second.size;
        if (end <= range.begin) {
            ++at;
            continue;
        }
        const Run old = std::move(at->second);
        at = runs_.erase(at);
        if (begin < range.begin) runs_.emplace(begin, part(old, 0, range.begin - begin));
        if (end > range.end()) at = runs_.emplace(range.end(), part(old, range.end() - begin, end - range.end())).first;
    }
}

void GpuMemory::put(std::uint64_t begin, Run run) {
    auto next = runs_.lower_bound(begin);
    if (next != runs_.end() && next->first == begin + run.size && goes_on(run, next->second)) {
        run.size += next->second.size;
        next = runs_.erase(next);
    }
    if (next != runs_.begin()) {
        const auto before = std::prev(next);
        if (before->first + before->second.size == begin && goes_on(before->second, run)) {
            before->second.size += run.size;
            return;
        }
    }
    runs_.emplace_hint(next, begin, std::move(run));
}

void GpuMemory::fill(Range range, const Pattern& pattern) {
    cut_out(range);
    if (range.size > 0 && pattern != Pattern{})
        put(range.begin, {.size = range.size, .pattern = pattern, .phase = 0, .bytes = {}});
}

bool GpuMemory::write(std::uint64_t begin, std::string_view bytes) {
    if (bytes.empty()) return true;
    // Most of what is copied in is one value over and over; then it is a run like any other.
    std::uint32_t word = 0;
    for (std::size_t i = 0; i < std::min<std::size_t>(4, bytes.size()); ++i)
        word |= std::uint32_t{static_cast<std::uint8_t>(bytes[i])} << (8 * i);
    bool uniform = true;
    for (std::size_t i = 4; i < bytes.size() && uniform; ++i) uniform = bytes[i] == bytes[i - 4];
    if (uniform && bytes.size() >= 4) {
        fill({begin, bytes.size()}, Pattern::of_word(word));
        return true;
    }
    if (bytes.size() > explicit_bytes_max - std::min(explicit_bytes_max, explicit_bytes())) return false;
    cut_out({begin, bytes.size()});
    put(begin, {.size = bytes.size(), .pattern = {}, .phase = 0, .bytes = std::string{bytes}});
    return true;
}

std::string GpuMemory::read(Range range) const {
    std::string out(range.size, '\0');
    auto at = runs_.upper_bound(range.begin);
    if (at != runs_.begin()) --at;
    for (; at != runs_.end() && at->first < range.end(); ++at) {
        const auto& [begin, run] = *at;
        const std::uint64_t from = std::max(begin, range.begin), to = std::min(begin + run.size, range.end());
        for (std::uint64_t byte = from; byte < to; ++byte) out[byte - range.begin] = byte_of(run, byte - begin);
    }
    return out;
}

// Run by run where the chunks of both fall together, which is everywhere but at edges that nobody aligned; there, and
// in explicit bytes, chunk by chunk.
GpuMemory::Tally GpuMemory::compare(Range range, const Pattern& wanted) const {
    constexpr std::uint64_t chunk = Pattern::chunk;
    const std::uint64_t end = range.begin + range.size / chunk * chunk;
    Tally tally{.words = (end - range.begin) / 4};
    const auto add = [&](const Pattern& found, std::uint64_t at, std::uint64_t chunks) {
        tally.others += 4 * chunks - words_in_common(found, wanted.from((at - range.begin) / chunk), chunks);
        tally.sum += sum_of_words(found, chunks);
    };
    for (std::uint64_t at = range.begin; at < end;) {
        auto run = runs_.upper_bound(at);
        std::uint64_t stop = run == runs_.end() ? end : std::min(run->first, end);
        const bool inside = run != runs_.begin() && std::prev(run)->first + std::prev(run)->second.size > at;
        if (inside) {
            --run;
            stop = std::min(run->first + run->second.size, end);
        }
        const std::uint64_t chunks = (stop - at) / chunk, offset = inside ? run->second.phase + at - run->first : 0;
        const bool together = !inside || (run->second.bytes.empty() && offset % chunk == 0);
        if (chunks > 0 && together) {
            add(inside ? run->second.pattern.from(offset / chunk) : Pattern{}, at, chunks);
            at += chunks * chunk;
            continue;
        }
        const std::string bytes = read({at, chunk});
        Pattern found;
        for (unsigned i = 0; i < chunk; ++i)
            found.add[i / 4] |= std::uint32_t{static_cast<std::uint8_t>(bytes[i])} << i % 4 * 8;
        add(found, at, 1);
        at += chunk;
    }
    return tally;
}

GpuMemory GpuMemory::of(std::map<std::uint64_t, Run> runs) {
    GpuMemory memory;
    memory.runs_ = std::move(runs);
    return memory;
}

// For bytes that somebody else wrote: runs in order, apart, within the GPU.
bool GpuMemory::is_sound(std::uint64_t capacity) const {
    std::uint64_t free_from = 0;
    for (const auto& [begin, run] : runs_) {
        if (begin < free_from || begin > capacity || run.size == 0 || run.size > capacity - begin) return false;
        if (!run.bytes.empty() && run.bytes.size() != run.size) return false;
        free_from = begin + run.size;
    }
    return explicit_bytes() <= explicit_bytes_max;
}

std::size_t GpuMemory::explicit_bytes() const {
    std::size_t sum = 0;
    for (const auto& [begin, run] : runs_) sum += run.bytes.size();
    return sum;
}

}  // namespace bulkhead::driver
