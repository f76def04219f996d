#include "bulkhead/codec/shape.hpp"

#include <algorithm>

namespace bulkhead {

bool same(const Shape& shape, const void* a, const void* b) {
    switch (shape.type) {
        case Shape::Type::text:
            return as<std::string>(a) == as<std::string>(b);
        case Shape::Type::truth:
            return as<bool>(a) == as<bool>(b);
        case Shape::Type::integer:
            return as<std::int64_t>(a) == as<std::int64_t>(b);
        case Shape::Type::word:
            return shape.get_word(a) == shape.get_word(b);
        case Shape::Type::gpus:
            return as<Gpus>(a) == as<Gpus>(b);
        case Shape::Type::money:
            return as<Money>(a) == as<Money>(b);
        case Shape::Type::byte_size:
            return as<ByteSize>(a) == as<ByteSize>(b);
        case Shape::Type::duration:
            return as<Duration>(a) == as<Duration>(b);
        case Shape::Type::instant:
            return as<Instant>(a) == as<Instant>(b);
        case Shape::Type::dictionary: {
            using Entries = std::map<std::string, std::string>;
            return as<Entries>(a) == as<Entries>(b);
        }
        case Shape::Type::optional:
        case Shape::Type::list: {
            const std::size_t size = shape.size(a);
            if (size != shape.size(b)) return false;
            for (std::size_t i = 0; i < size; ++i)
                if (!same(*shape.inner, shape.item(a, i), shape.item(b, i))) return false;
            return true;
        }
        case Shape::Type::record:
            return std::ranges::all_of(
                shape.fields, [&](const Field& field) { return same(*field.shape, field.in(a), field.in(b)); });
    }
    return false;
}

std::string spelled(const Shape& shape, const void* value) {
    switch (shape.type) {
        case Shape::Type::text:
            return as<std::string>(value);
        case Shape::Type::truth:
            return as<bool>(value) ? "true" : "false";
        case Shape::Type::integer:
            return std::to_string(as<std::int64_t>(value));
        case Shape::Type::word: {
            const std::size_t index = shape.get_word(value);
            invariant(index < shape.words.size(), "every value of an enum has its word");
            return std::string{shape.words[index]};
        }
        case Shape::Type::gpus:
            return print(as<Gpus>(value));
        case Shape::Type::money:
            return print(as<Money>(value));
        case Shape::Type::byte_size:
            return print(as<ByteSize>(value));
        case Shape::Type::duration:
            return print(as<Duration>(value));
        case Shape::Type::instant:
            return print(as<Instant>(value));
        case Shape::Type::optional:
        case Shape::Type::list:
        case Shape::Type::dictionary:
        case Shape::Type::record:
            break;
    }
    stop_for_bug("only a value without parts is spelled as one word", std::source_location::current());
}

std::string spelled_number(const Shape& shape, std::int64_t base) {
    switch (shape.type) {
        case Shape::Type::gpus:
            return print(Gpus{base});
        case Shape::Type::money:
            return print(Money{base});
        case Shape::Type::byte_size:
            return print(ByteSize{base});
        case Shape::Type::duration:
            return print(Duration{base});
        case Shape::Type::instant:
            return print(Instant{base});
        default:
            return std::to_string(base);
    }
}

}  // namespace bulkhead
