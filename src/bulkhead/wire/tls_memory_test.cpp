#include "bulkhead/wire/tls_memory.hpp"

#include <gtest/gtest.h>
#include <openssl/crypto.h>

#include <cstdint>
#include <cstring>

namespace bulkhead::wire {
namespace {

// Before main: every other test of this program runs with it as well.
const bool apart = keep_tls_buffers_apart();

constexpr std::size_t of_a_connection = 17 << 10;

bool begins_a_page(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer) % 4096 == 0; }

TEST(TlsMemory, a_buffer_has_pages_of_its_own_and_is_used_again) {
    ASSERT_TRUE(apart);
    void* const first = OPENSSL_malloc(of_a_connection);
    void* const second = OPENSSL_malloc(of_a_connection);
    EXPECT_TRUE(begins_a_page(first));
    EXPECT_TRUE(begins_a_page(second));
    std::memset(first, 1, of_a_connection);
    std::memset(second, 2, of_a_connection);
    EXPECT_EQ(static_cast<unsigned char*>(first)[of_a_connection - 1], 1) << "they do not overlap";
    OPENSSL_free(first);
    EXPECT_EQ(OPENSSL_malloc(of_a_connection), first);
    OPENSSL_free(first);
    OPENSSL_free(second);
}

TEST(TlsMemory, growing_and_shrinking_keep_what_was_written) {
    ASSERT_TRUE(apart);
    auto* bytes = static_cast<unsigned char*>(OPENSSL_malloc(100));
    for (unsigned i = 0; i < 100; ++i) bytes[i] = static_cast<unsigned char>(i);
    for (const std::size_t size : {std::size_t{13 << 10}, of_a_connection, std::size_t{1} << 20, of_a_connection,
                                   std::size_t{20} << 10, std::size_t{100}}) {
        bytes = static_cast<unsigned char*>(OPENSSL_realloc(bytes, size));
        for (unsigned i = 0; i < 100; ++i) ASSERT_EQ(bytes[i], i) << size;
    }
    OPENSSL_free(bytes);
}

TEST(TlsMemory, what_is_small_or_large_stays_with_the_allocator) {
    ASSERT_TRUE(apart);
    for (const std::size_t size : {std::size_t{1}, std::size_t{4096}, std::size_t{100} << 10}) {
        void* const other = OPENSSL_malloc(size);
        ASSERT_NE(other, nullptr);
        std::memset(other, 3, size);
        OPENSSL_free(other);
    }
    OPENSSL_free(nullptr);
}

}  // namespace
}  // namespace bulkhead::wire
