// Values to bytes and back, for what a node keeps on its own disk: numbers as varints, text with its length, lists with
// their count. One `fields` per struct serves both directions, so that they cannot drift apart. Reading is total: bytes
// that are no such value set `failed`, and nothing larger than the bytes themselves is ever allocated.
#pragma once

#include <concepts>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "bulkhead/base/quantity.hpp"
#include "bulkhead/model/describe.hpp"

namespace bulkhead::archive {

// A `T&` or `const T&`, for `fields` functions that serve both directions.
template <class V, class T>
concept Of = std::same_as<std::remove_const_t<V>, T>;

template <class V>
concept Unsigned = std::unsigned_integral<V> && !std::same_as<V, bool>;

void fields(auto& a, Of<Instant> auto& v) { a(v.ms); }
void fields(auto& a, Of<Duration> auto& v) { a(v.ms); }
void fields(auto& a, Of<ByteSize> auto& v) { a(v.bytes); }

class Writer {
public:
    template <class... T>
    void operator()(const T&... values) {
        (put(values), ...);
    }
    // Fields that a later version of the format added: what is written is of the newest.
    template <class... T>
    void since(unsigned, const T&... values) {
        (put(values), ...);
    }
    std::string take() { return std::move(bytes_); }

private:
    void put(bool value) { bytes_ += value ? '\1' : '\0'; }
    template <Unsigned T>
    void put(T value) {
        for (std::uint64_t left = value;; left >>= 7) {
            bytes_ += static_cast<char>(left < 0x80 ? left : ((left & 0x7F) | 0x80));
            if (left < 0x80) break;
        }
    }
    template <std::signed_integral T>
    void put(T value) {  // zigzag: small numbers of either sign are short
        const std::int64_t wide = value;
        put((static_cast<std::uint64_t>(wide) << 1) ^ static_cast<std::uint64_t>(wide >> 63));
    }
    template <Worded T>
    void put(T value) {
        put(static_cast<std::uint64_t>(value));
    }
    void put(const std::string& text) {
        put(text.size());
        bytes_ += text;
    }
    template <class T>
    void put(const std::vector<T>& list) {
        put(list.size());
        for (const T& item : list) put(item);
    }
    template <class T>
    void put(const std::set<T>& set) {
        put(set.size());
        for (const T& item : set) put(item);
    }
    template <class K, class V>
    void put(const std::map<K, V>& map) {
        put(map.size());
        for (const auto& [key, value] : map) (*this)(key, value);
    }
    template <class T>
    void put(const std::optional<T>& held) {
        put(held.has_value());
        if (held) put(*held);
    }
    template <class... T>
    void put(const std::variant<T...>& either) {
        put(either.index());
        std::visit([this](const auto& value) { this->put(value); }, either);
    }
    template <class T>
        requires std::is_class_v<T>
    void put(const T& record) {
        fields(*this, record);
    }

    std::string bytes_;
};

class Reader {
public:
    explicit Reader(std::string_view bytes, unsigned version = ~0U) : left_{bytes}, version_{version} {}

    template <class... T>
    void operator()(T&... values) {
        (get(values), ...);
    }
    // Bytes of an older version do not have them: they stay as they are.
    template <class... T>
    void since(unsigned version, T&... values) {
        if (version_ >= version) (get(values), ...);
    }
    bool failed() const { return failed_; }
    bool at_end() const { return left_.empty(); }
    void fail() { failed_ = true; }
    bool has(std::size_t bytes) const { return bytes <= left_.size(); }

private:
    std::uint8_t byte() {
        if (left_.empty()) {
            failed_ = true;
            return 0;
        }
        const auto value = static_cast<std::uint8_t>(left_.front());
        left_.remove_prefix(1);
        return value;
    }
    std::uint64_t number() {
        std::uint64_t value = 0;
        for (unsigned shift = 0; shift < 64; shift += 7) {
            const std::uint8_t next = byte();
            value |= static_cast<std::uint64_t>(next & 0x7F) << shift;
            // The tenth byte has one bit left; a zero last byte would be a second spelling of the same number.
            if (shift == 63 && next > 1) break;
            if (next < 0x80) {
                if (next == 0 && shift > 0) break;
                return value;
            }
        }
        failed_ = true;
        return 0;
    }
    // Every item takes at least one byte.
    std::size_t count() {
        const std::uint64_t items = number();
        if (items <= left_.size()) return static_cast<std::size_t>(items);
        failed_ = true;
        return 0;
    }

    void get(bool& value) {
        const std::uint8_t read = byte();
        if (read > 1) failed_ = true;
        value = read == 1;
    }
    template <Unsigned T>
    void get(T& value) {
        const std::uint64_t read = number();
        value = static_cast<T>(read);
        if (value != read) failed_ = true;
    }
    template <std::signed_integral T>
    void get(T& value) {
        const std::uint64_t read = number();
        const auto wide = static_cast<std::int64_t>((read >> 1) ^ (~(read & 1) + 1));
        value = static_cast<T>(wide);
        if (value != wide) failed_ = true;
    }
    template <Worded T>
    void get(T& value) {
        const std::uint64_t read = number();
        if (read >= words(T{}).size())
            failed_ = true;
        else
            value = static_cast<T>(read);
    }
    void get(std::string& text) {
        const std::size_t size = count();
        text = left_.substr(0, size);
        left_.remove_prefix(size);
    }
    template <class T>
    void get(std::vector<T>& list) {
        list.clear();
        for (std::size_t items = count(); items > 0 && !failed_; --items) get(list.emplace_back());
    }
    // In the order of the keys, each once: the one way in which Writer spells them.
    template <class T>
    void get(std::set<T>& set) {
        set.clear();
        for (std::size_t items = count(); items > 0 && !failed_; --items) {
            T item{};
            get(item);
            if (!set.empty() && !(*set.rbegin() < item)) failed_ = true;
            set.insert(set.end(), std::move(item));
        }
    }
    template <class K, class V>
    void get(std::map<K, V>& map) {
        map.clear();
        for (std::size_t items = count(); items > 0 && !failed_; --items) {
            K key{};
            V value{};
            (*this)(key, value);
            if (!map.empty() && !(map.rbegin()->first < key)) failed_ = true;
            map.emplace_hint(map.end(), std::move(key), std::move(value));
        }
    }
    template <class T>
    void get(std::optional<T>& held) {
        bool there = false;
        get(there);
        held.reset();
        if (there) get(held.emplace());
    }
    template <class... T>
    void get(std::variant<T...>& either) {
        const std::uint64_t index = number();
        if (index >= sizeof...(T)) {
            failed_ = true;
            return;
        }
        read_alternative(either, index, std::index_sequence_for<T...>{});
    }
    template <class V, std::size_t... I>
    void read_alternative(V& either, std::uint64_t index, std::index_sequence<I...>) {
        ((index == I ? get(either.template emplace<I>()) : void()), ...);
    }
    template <class T>
        requires std::is_class_v<T>
    void get(T& record) {
        fields(*this, record);
    }

    std::string_view left_;
    unsigned version_;
    bool failed_ = false;
};

}  // namespace bulkhead::archive
