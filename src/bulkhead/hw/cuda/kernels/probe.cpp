// What runs on the GPU in probes: work of known size, neighbours of known appetite, and looks at on-chip memory that
// was never written by whoever looks. PTX by clang, as in memory.cpp.
using Word = unsigned;
using Count = unsigned long long;
using Chunk = Word __attribute__((ext_vector_type(4)));
using Memory = __attribute__((address_space(1))) Chunk*;

#define KERNEL extern "C" __attribute__((nvptx_kernel))

namespace {

inline unsigned thread() { return __nvvm_read_ptx_sreg_tid_x(); }
inline unsigned threads() { return __nvvm_read_ptx_sreg_ntid_x(); }
inline unsigned block() { return __nvvm_read_ptx_sreg_ctaid_x(); }
inline unsigned blocks() { return __nvvm_read_ptx_sreg_nctaid_x(); }

inline Chunk load(Memory from) {
    Chunk chunk;
    asm volatile("ld.global.cg.v4.u32 {%0,%1,%2,%3}, [%4];"  // past the first cache, so that the second is measured
                 : "=r"(chunk.x), "=r"(chunk.y), "=r"(chunk.z), "=r"(chunk.w)
                 : "l"(from));
    return chunk;
}

inline void tally(Count* where, Count amount) {
    if (amount != 0) __nvvm_atom_add_gen_ll(reinterpret_cast<long long*>(where), static_cast<long long>(amount));
}

constexpr unsigned shared_words = 48 * 1024 / 4;  // what every GPU gives a block without being asked for more
__attribute__((address_space(3))) volatile Word shared[shared_words];

constexpr unsigned local_words = 512;

}  // namespace

// Multiply and add, in eight chains, so that the units are busy and the card draws what it can.
KERNEL void bulkhead_burn(unsigned rounds, float* out) {
    float a[8];
    for (unsigned i = 0; i < 8; ++i) a[i] = static_cast<float>(thread() + i) * 1e-6F;
    for (unsigned round = 0; round < rounds; ++round)
#pragma unroll
        for (unsigned i = 0; i < 8; ++i) a[i] = a[i] * 0.999999F + 1e-7F;
    float sum = 0;
    for (unsigned i = 0; i < 8; ++i) sum += a[i];
    if (sum == 12345.678F) *out = sum;  // never; but nobody may conclude that nothing was needed
}

// Reads so many chunks, over and over.
KERNEL void bulkhead_stream(Memory memory, Count chunks, unsigned rounds, Word* out) {
    Word seen = 0;
    for (unsigned round = 0; round < rounds; ++round)
        for (Count i = static_cast<Count>(block()) * threads() + thread(); i < chunks;
             i += static_cast<Count>(blocks()) * threads()) {
            const Chunk chunk = load(memory + i);
            seen ^= chunk.x ^ chunk.y ^ chunk.z ^ chunk.w;
        }
    if (seen == 0xDEADBEEF) *out = seen;
}

// Only reads, one tile a block: what a verification is compared with. Nothing that also looks at what it reads is
// faster.
template <unsigned each>
inline void read_tile(Memory memory, Count chunks, Word* out) {
    const Count first = static_cast<Count>(block()) * threads() * each + thread();
    Chunk read[each] = {};
#pragma unroll
    for (unsigned i = 0; i < each; ++i)
        if (const Count chunk = first + static_cast<Count>(i) * threads(); chunk < chunks)
            read[i] = load(memory + chunk);
    Word seen = 0;
#pragma unroll
    for (unsigned i = 0; i < each; ++i) seen ^= read[i].x ^ read[i].y ^ read[i].z ^ read[i].w;
    if (seen == 0xDEADBEEF) *out = seen;
}
KERNEL void bulkhead_read_4(Memory memory, Count chunks, Word* out) { read_tile<4>(memory, chunks, out); }
KERNEL void bulkhead_read_8(Memory memory, Count chunks, Word* out) { read_tile<8>(memory, chunks, out); }
KERNEL void bulkhead_read_16(Memory memory, Count chunks, Word* out) { read_tile<16>(memory, chunks, out); }

// Shared memory of a multiprocessor: leave a mark in all of it.
KERNEL void bulkhead_shared_mark(Word mark) {
    for (unsigned i = thread(); i < shared_words; i += threads()) shared[i] = mark;
}
// tallies[0] += words looked at, [1] += words that are not zero, [2] += words that are the mark.
KERNEL void bulkhead_shared_look(Word mark, Count* tallies) {
    Count seen = 0, not_zero = 0, marks = 0;
    for (unsigned i = thread(); i < shared_words; i += threads()) {
        const Word word = shared[i];
        ++seen;
        not_zero += word != 0;
        marks += word == mark;
    }
    tally(tallies, seen);
    tally(tallies + 1, not_zero);
    tally(tallies + 2, marks);
}

// Local memory, where a thread's stack is.
KERNEL void bulkhead_local_mark(Word mark, Word* out) {
    volatile Word local[local_words];
    for (unsigned i = 0; i < local_words; ++i) local[i] = mark;
    if (local[thread() % local_words] != mark) *out = 1;
}
KERNEL void bulkhead_local_look(Word mark, Count* tallies) {
    volatile Word local[local_words];
    asm volatile("" : : "l"(&local) : "memory");  // as far as the compiler knows, somebody wrote it
    Count not_zero = 0, marks = 0;
    for (unsigned i = 0; i < local_words; ++i) {
        const Word word = local[i];
        not_zero += word != 0;
        marks += word == mark;
    }
    tally(tallies, local_words);
    tally(tallies + 1, not_zero);
    tally(tallies + 2, marks);
}
