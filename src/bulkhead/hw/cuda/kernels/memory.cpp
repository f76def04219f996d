// What runs on the GPU: overwrite memory with a pattern, and compare memory with a pattern. Compiled to PTX by clang
// (no CUDA toolkit), for the oldest architecture we serve; the driver translates it for the GPU at hand.
//
// Memory is taken in chunks of 16 bytes, the widest store every GPU has. Word j of chunk i is mul[j] * i + add[j],
// modulo 2^32: different at every place, so that two addresses which are the same memory, or a store that never
// arrived, show; and its sum has a closed form, so that the host can tell what a compare that really read everything
// must have added up.
//
// One block does one tile and ends. Blocks that loop over the memory were 2 to 6 % slower on an H200: neighbours in
// time are then not neighbours in memory (docs/measurements/).
using Word = unsigned;
using Count = unsigned long long;
using Chunk = Word __attribute__((ext_vector_type(4)));
using Memory = __attribute__((address_space(1))) Chunk*;  // global memory, known as such: no generic loads and stores

#define KERNEL extern "C" __attribute__((nvptx_kernel))

namespace {

constexpr unsigned warp = 32, warps_max = 32, whole_warp = 0xFFFFFFFF;
constexpr unsigned tally_slots = 64, tally_slot_counts = 8;
constexpr unsigned chunks_each = 8;  // of a compare, in flight at once in each thread

inline unsigned thread() { return __nvvm_read_ptx_sreg_tid_x(); }
inline unsigned threads() { return __nvvm_read_ptx_sreg_ntid_x(); }
inline unsigned block() { return __nvvm_read_ptx_sreg_ctaid_x(); }

inline Chunk expected(Count chunk, Chunk mul, Chunk add) { return static_cast<Word>(chunk) * mul + add; }

// Streaming: nothing is read twice. Volatile: what is compared was read, whatever a compiler knows about the fill.
inline Chunk load(Memory from) {
    Chunk chunk;
    asm volatile("ld.global.cs.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(chunk.x), "=r"(chunk.y), "=r"(chunk.z), "=r"(chunk.w)
                 : "l"(from));
    return chunk;
}

// One instruction where an addition of 64 bits takes two: half of what a compare does besides reading.
inline void add_up(Count& sum, Word word) { asm("mad.wide.u32 %0, %1, 1, %0;" : "+l"(sum) : "r"(word)); }

inline Count sum_of_warp(Count mine) {
    for (unsigned distance = warp / 2; distance > 0; distance /= 2) {
        const auto low = static_cast<unsigned>(mine), high = static_cast<unsigned>(mine >> 32);
        const auto other_low = static_cast<unsigned>(
            __nvvm_shfl_sync_down_i32(whole_warp, static_cast<int>(low), static_cast<int>(distance), 31));
        const auto other_high = static_cast<unsigned>(
            __nvvm_shfl_sync_down_i32(whole_warp, static_cast<int>(high), static_cast<int>(distance), 31));
        mine += static_cast<Count>(other_high) << 32 | other_low;
    }
    return mine;
}

__attribute__((address_space(3))) Count of_warps[3][warps_max];

// The sum over the block, in thread 0.
inline Count sum_of_block(unsigned which, Count mine) {
    const Count sum = sum_of_warp(mine);
    if (thread() % warp == 0) of_warps[which][thread() / warp] = sum;
    __nvvm_bar_sync(0);
    if (thread() >= warp) return 0;
    return sum_of_warp(thread() < (threads() + warp - 1) / warp ? of_warps[which][thread()] : 0);
}

inline void tally(Count* where, Count amount) {
    if (amount != 0) __nvvm_atom_add_gen_ll(reinterpret_cast<long long*>(where), static_cast<long long>(amount));
}

}  // namespace

// One chunk a thread.
KERNEL void bulkhead_fill(Memory memory, Count chunks, Chunk mul, Chunk add) {
    const Count chunk = static_cast<Count>(block()) * threads() + thread();
    if (chunk < chunks) memory[chunk] = expected(chunk, mul, add);
}

// In each of 64 slots of 64 bytes: [0] += words read, [1] += words that differ, [2] += the sum of all words as read.
// Many slots, because millions of blocks that add to one place wait for each other: that cost 3 to 25 % on an H200.
KERNEL void bulkhead_compare(Memory memory, Count chunks, Chunk mul, Chunk add, Count* tallies) {
    const Count first = static_cast<Count>(block()) * threads() * chunks_each + thread();
    Chunk read[chunks_each] = {};
#pragma unroll
    for (unsigned i = 0; i < chunks_each; ++i)
        if (const Count chunk = first + static_cast<Count>(i) * threads(); chunk < chunks)
            read[i] = load(memory + chunk);
    Count words = 0, other = 0, sum = 0;
#pragma unroll
    for (unsigned i = 0; i < chunks_each; ++i) {
        const Count chunk = first + static_cast<Count>(i) * threads();
        if (chunk >= chunks) continue;
        const Chunk wanted = expected(chunk, mul, add);
        words += 4;
        add_up(sum, read[i].x);
        add_up(sum, read[i].y);
        add_up(sum, read[i].z);
        add_up(sum, read[i].w);
        if (((read[i].x ^ wanted.x) | (read[i].y ^ wanted.y) | (read[i].z ^ wanted.z) | (read[i].w ^ wanted.w)) != 0)
            other +=
                (read[i].x != wanted.x) + (read[i].y != wanted.y) + (read[i].z != wanted.z) + (read[i].w != wanted.w);
    }
    words = sum_of_block(0, words);
    other = sum_of_block(1, other);
    sum = sum_of_block(2, sum);
    if (thread() != 0) return;
    tallies += static_cast<Count>(block() % tally_slots) * tally_slot_counts;
    tally(tallies, words);
    tally(tallies + 1, other);
    tally(tallies + 2, sum);
}

// Arithmetic of both kinds whose result the host has computed for itself: every thread comes to the same word, and one
// that comes to another is found by a compare. Fused, and rounded once, on both sides.
KERNEL void bulkhead_reckon(Word* words, Count count, unsigned rounds, Word seed) {
    const Count at = static_cast<Count>(block()) * threads() + thread();
    Word x = seed;
    float sum = 1;
    for (; rounds > 0; --rounds) {
        x = x * 1664525U + 1013904223U;
        x ^= x >> 15;
        sum = __builtin_fmaf(sum, 0.5F, static_cast<float>(x & 0xFFFF));
    }
    Word bits;
    __builtin_memcpy(&bits, &sum, sizeof bits);
    if (at < count) words[at] = x ^ bits;
}
