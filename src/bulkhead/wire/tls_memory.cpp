#include "bulkhead/wire/tls_memory.hpp"

#include <openssl/crypto.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>

namespace bulkhead::wire {

namespace {

// Blocks of whole pages, all of one size, cut from one stretch of address space that becomes memory page by page.
class Pages {
public:
    static constexpr std::size_t block = 20 << 10, smallest = 12 << 10;
    static constexpr std::size_t stretch = (std::size_t{4} << 30) / block * block;  // fifty thousand connections

    bool reserve() {
        void* const got =
            ::mmap(nullptr, stretch, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (got == MAP_FAILED) return false;
        // A page that is touched is one page, and not the two megabytes around it.
        ::madvise(got, stretch, MADV_NOHUGEPAGE);
        begin_ = fresh_ = static_cast<std::byte*>(got);
        return true;
    }
    bool owns(const void* pointer) const {
        const auto address = reinterpret_cast<std::uintptr_t>(pointer),
                   begin = reinterpret_cast<std::uintptr_t>(begin_);
        return address >= begin && address < begin + stretch;
    }
    // Null: not of this size, or none is left.
    void* take(std::size_t size) {
        if (size < smallest || size > block) return nullptr;
        const std::lock_guard lock{mutex_};
        if (free_ != nullptr) return std::exchange(free_, free_->next);
        if (fresh_ == begin_ + stretch) return nullptr;
        return std::exchange(fresh_, fresh_ + block);
    }
    void give_back(void* pointer) {
        const std::lock_guard lock{mutex_};
        free_ = new (pointer) Free{free_};
    }

private:
    struct Free {
        Free* next;
    };
    std::byte* begin_ = nullptr;
    std::byte* fresh_ = nullptr;
    Free* free_ = nullptr;
    std::mutex mutex_;
};

// Never destroyed: OpenSSL frees until the very end of the process.
Pages& pages() {
    static auto* const all = new Pages;
    return *all;
}

void* allocate(std::size_t size, const char*, int) {
    if (void* const own = pages().take(size)) return own;
    return std::malloc(size);
}

void release(void* pointer, const char*, int) {
    if (pages().owns(pointer))
        pages().give_back(pointer);
    else
        std::free(pointer);
}

void* resize(void* pointer, std::size_t size, const char* file, int line) {
    if (!pages().owns(pointer)) return std::realloc(pointer, size);
    void* const moved = size == 0 ? nullptr : allocate(size, file, line);
    if (moved != nullptr) std::memcpy(moved, pointer, std::min(size, Pages::block));
    if (moved != nullptr || size == 0) release(pointer, file, line);
    return moved;
}

}  // namespace

bool keep_tls_buffers_apart() {
    // Once, and in this order: OpenSSL must not allocate here before there is a here.
    static const bool done = pages().reserve() && CRYPTO_set_mem_functions(allocate, resize, release) == 1;
    return done;
}

}  // namespace bulkhead::wire
