// Objects to text. JSON says everything but absent options; YAML says what differs from the defaults, the way a person
// would write it. Order is the order of the description, so that one object always gives the same bytes.
#pragma once

#include <string>
#include <string_view>

#include "bulkhead/codec/json_writer.hpp"
#include "bulkhead/codec/shape.hpp"
#include "bulkhead/model/snapshot.hpp"

namespace bulkhead {

// `kind`: printed with apiVersion before the fields; empty: the fields alone.
void write_json(JsonWriter& out, const Shape& shape, const void* value, std::string_view kind);
std::string write_yaml(const Shape& shape, const void* value, std::string_view kind);

template <Described T>
constexpr std::string_view kind_of() {
    if constexpr (requires {
                      { T::kind } -> std::convertible_to<std::string_view>;
                  })
        return T::kind;
    else
        return {};
}

// Into a larger JSON text, where a value is due.
template <Described T>
void write(JsonWriter& out, const T& value) {
    write_json(out, shape_of<T>(), &value, kind_of<T>());
}

template <Described T>
std::string to_json(const T& value) {
    JsonWriter out;
    write(out, value);
    return out.take();
}

// In one line, without what equals the default: what is stored, logged and sent. from_json() of decode.hpp is its
// inverse.
template <Described T>
std::string to_compact_json(const T& value) {
    JsonWriter out{JsonLayout::compact};
    write(out, value);
    return out.take();
}

template <Described T>
std::string to_yaml(const T& value) {
    return write_yaml(shape_of<T>(), &value, kind_of<T>());
}

// All objects, kind by kind, as a stream of YAML documents, or as one JSON List. load() reads both.
std::string print_snapshot(const Snapshot& snapshot);
std::string print_snapshot_json(const Snapshot& snapshot);

}  // namespace bulkhead
