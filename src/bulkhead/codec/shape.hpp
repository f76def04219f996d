// A described struct as a table at run time: what its fields are called, what they hold, where they lie. Reading,
// printing and schemas walk this table, so that each is written once, in a .cpp, and costs no template per kind.
#pragma once

#include <concepts>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "bulkhead/base/quantity.hpp"
#include "bulkhead/base/result.hpp"
#include "bulkhead/model/describe.hpp"

namespace bulkhead {

struct FleetPolicy;
struct TenantClass;
struct Tenant;
struct GpuWorkload;
struct GpuNode;
struct GpuLease;
struct Field;

// The functions are set where the type calls for them, and null elsewhere.
struct Shape {
    enum class Type : std::uint8_t {
        text,
        truth,
        integer,
        word,  // an enum
        gpus,
        byte_size,
        duration,
        instant,
        money,
        optional,
        list,
        dictionary,  // text to text
        record,      // a described struct
    };
    Type type{};
    std::vector<std::string_view> words;  // of a word, in the order of its values
    void (*set_word)(void* to, std::size_t value) = nullptr;
    std::size_t (*get_word)(const void* of) = nullptr;
    const Shape* inner = nullptr;                     // of an optional or a list
    void* (*grow)(void* optional_or_list) = nullptr;  // a fresh value inside, to be filled
    std::size_t (*size)(const void* optional_or_list) = nullptr;
    const void* (*item)(const void* optional_or_list, std::size_t index) = nullptr;
    std::vector<Field> fields;    // of a record
    const void* fresh = nullptr;  // a default value of a record, to tell what was left out
};

struct Field {
    std::string_view name;
    std::string_view about;
    Rule rule;
    const Shape* shape = nullptr;
    std::size_t offset = 0;

    void* in(void* record) const { return static_cast<std::byte*>(record) + offset; }
    const void* in(const void* record) const { return static_cast<const std::byte*>(record) + offset; }
};

// Whether two values of one shape say the same.
bool same(const Shape& shape, const void* a, const void* b);
// The value's own text ("0.5", "10Gi", "same-tenant"), of a shape that has no parts.
std::string spelled(const Shape& shape, const void* value);
// A number in the base unit of the shape, in the unit people write: 10,500 units of a GPU are "0.5".
std::string spelled_number(const Shape& shape, std::int64_t base);

template <class T>
const T& as(const void* value) {
    return *static_cast<const T*>(value);
}

template <class T>
const Shape& shape_of();

namespace shapes {

template <class T>
struct Inner;
template <class T>
struct Inner<std::optional<T>> {
    static constexpr auto type = Shape::Type::optional;
    using Value = T;
};
template <class T>
struct Inner<std::vector<T>> {
    static constexpr auto type = Shape::Type::list;
    using Value = T;
};
template <class T>
concept Holding = requires { typename Inner<T>::Value; };

template <Holding T>
Shape holding() {
    Shape shape{.type = Inner<T>::type, .inner = &shape_of<typename Inner<T>::Value>()};
    if constexpr (Inner<T>::type == Shape::Type::optional) {
        shape.grow = [](void* held) -> void* { return &static_cast<T*>(held)->emplace(); };
        shape.size = [](const void* held) -> std::size_t { return as<T>(held).has_value() ? 1 : 0; };
        shape.item = [](const void* held, std::size_t) -> const void* { return &*as<T>(held); };
    } else {
        shape.grow = [](void* held) -> void* { return &static_cast<T*>(held)->emplace_back(); };
        shape.size = [](const void* held) -> std::size_t { return as<T>(held).size(); };
        shape.item = [](const void* held, std::size_t index) -> const void* { return &as<T>(held)[index]; };
    }
    return shape;
}

template <Worded T>
Shape worded() {
    Shape shape{.type = Shape::Type::word};
    for (const std::string_view word : words(T{})) shape.words.push_back(word);
    shape.set_word = [](void* to, std::size_t value) { *static_cast<T*>(to) = static_cast<T>(value); };
    shape.get_word = [](const void* of) { return static_cast<std::size_t>(as<T>(of)); };
    return shape;
}

template <Described T>
Shape recorded() {
    static const T fresh{};
    Shape shape{.type = Shape::Type::record};
    shape.fresh = &fresh;
    T::describe([&]<class M>(std::string_view name, M T::* member, std::string_view about, Rule rule = {}) {
        const auto* begin = reinterpret_cast<const std::byte*>(&fresh);
        const auto* at = reinterpret_cast<const std::byte*>(&(fresh.*member));
        shape.fields.push_back({name, about, rule, &shape_of<M>(), static_cast<std::size_t>(at - begin)});
    });
    return shape;
}

template <class T>
Shape make() {
    using enum Shape::Type;
    if constexpr (std::same_as<T, std::string>)
        return {.type = text};
    else if constexpr (std::same_as<T, bool>)
        return {.type = truth};
    else if constexpr (std::same_as<T, std::int64_t>)
        return {.type = integer};
    else if constexpr (std::same_as<T, Gpus>)
        return {.type = gpus};
    else if constexpr (std::same_as<T, ByteSize>)
        return {.type = byte_size};
    else if constexpr (std::same_as<T, Duration>)
        return {.type = duration};
    else if constexpr (std::same_as<T, Instant>)
        return {.type = instant};
    else if constexpr (std::same_as<T, Money>)
        return {.type = money};
    else if constexpr (std::same_as<T, std::map<std::string, std::string>>)
        return {.type = dictionary};
    else if constexpr (Worded<T>)
        return worded<T>();
    else if constexpr (Holding<T>)
        return holding<T>();
    else {
        static_assert(Described<T>,
                      "a field holds text, bool, std::int64_t, a worded enum, a quantity, a described "
                      "struct, or an optional, list or text map of these");
        return recorded<T>();
    }
}

}  // namespace shapes

template <class T>
const Shape& shape_of() {
    static const Shape shape = shapes::make<T>();
    return shape;
}

// The tables of the six kinds are made once, in kind_shapes.cpp: with all their parts they are most of what a compiler
// would have to do in every file that reads or prints one.
extern template const Shape& shape_of<FleetPolicy>();
extern template const Shape& shape_of<TenantClass>();
extern template const Shape& shape_of<Tenant>();
extern template const Shape& shape_of<GpuWorkload>();
extern template const Shape& shape_of<GpuNode>();
extern template const Shape& shape_of<GpuLease>();

}  // namespace bulkhead
