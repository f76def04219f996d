#include "bulkhead/codec/compact_reader.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "bulkhead/codec/unicode.hpp"

namespace bulkhead {

namespace {

// Inside quotes: what is neither a quote, an escape nor a control character.
constexpr auto stands_for_itself = [] {
    std::array<bool, 256> plain{};
    for (std::size_t c = 0x20; c < plain.size(); ++c) plain[c] = c != '"' && c != '\\';
    return plain;
}();

// Every member answers whether it read what it came for; after the first no, nobody reads on.
class CompactReader {
public:
    CompactReader(std::string_view text, std::size_t depth) : rest_{text}, depth_left_{depth} {}

    bool document(const Shape& shape, void* to, std::span<const std::string_view> besides) {
        return record(shape, to, besides) && rest_.empty();
    }

private:
    bool value(const Shape& shape, const Rule& rule, void* to) {
        switch (shape.type) {
            case Shape::Type::record:
                return record(shape, to, {});
            case Shape::Type::optional:
                return value(*shape.inner, rule, shape.grow(to));
            case Shape::Type::list:
                return list(shape, rule, to);
            case Shape::Type::dictionary:
                return dictionary(*static_cast<std::map<std::string, std::string>*>(to));
            case Shape::Type::text:
                return text(rule, *static_cast<std::string*>(to));
            case Shape::Type::truth:
                return truth(*static_cast<bool*>(to));
            case Shape::Type::integer:
                return integer(rule, *static_cast<std::int64_t*>(to));
            case Shape::Type::word:
                return word(shape, to);
            case Shape::Type::gpus:
                return quantity(rest_.starts_with('"') ? quoted() : decimal(), rule, parse_gpus, &Gpus::units,
                                *static_cast<Gpus*>(to));
            case Shape::Type::money:
                return quantity(quoted(), rule, parse_money, &Money::nano, *static_cast<Money*>(to));
            case Shape::Type::byte_size:
                return quantity(quoted(), rule, parse_byte_size, &ByteSize::bytes, *static_cast<ByteSize*>(to));
            case Shape::Type::duration:
                return quantity(quoted(), rule, parse_duration, &Duration::ms, *static_cast<Duration*>(to));
            case Shape::Type::instant:
                return quantity(quoted(), rule, parse_instant, &Instant::ms, *static_cast<Instant*>(to));
        }
        return false;
    }

    bool record(const Shape& shape, void* to, std::span<const std::string_view> besides) {
        const std::size_t known = shape.fields.size();
        if (known + besides.size() > 64) return false;  // one bit for each key that was seen
        std::uint64_t seen = 0;
        const auto take = [&](std::size_t key) {
            const std::uint64_t bit = std::uint64_t{1} << key;
            return (std::exchange(seen, seen | bit) & bit) == 0;
        };
        auto next = shape.fields.begin();  // fields are written in the order of their description
        const bool whole = container('{', '}', [&] {
            const auto key = quoted();
            if (!key || !taken(':')) return false;
            if (const auto own = std::ranges::find(besides, *key); own != besides.end())
                return take(known + static_cast<std::size_t>(own - besides.begin())) && quoted().has_value();
            auto field = std::ranges::find(next, shape.fields.end(), *key, &Field::name);
            if (field == shape.fields.end()) field = std::ranges::find(shape.fields, *key, &Field::name);
            if (field == shape.fields.end() || !take(static_cast<std::size_t>(field - shape.fields.begin())))
                return false;
            next = field + 1;
            return value(*field->shape, field->rule, field->in(to));
        });
        if (!whole) return false;
        for (std::size_t i = 0; i < known; ++i)
            if (shape.fields[i].rule.required && (seen >> i & 1) == 0) return false;
        return true;
    }

    bool list(const Shape& shape, const Rule& rule, void* to) {
        Rule of_item = rule;
        of_item.required = true;  // a list may be left out, but what is in it is there
        return container('[', ']', [&] { return value(*shape.inner, of_item, shape.grow(to)); });
    }

    bool dictionary(std::map<std::string, std::string>& to) {
        return container('{', '}', [&] {
            auto key = quoted();
            if (!key || !taken(':')) return false;
            const auto [place, fresh] = to.try_emplace(std::string{*key});
            return fresh && text({}, place->second);
        });
    }

    bool text(const Rule& rule, std::string& to) {
        const auto read = quoted();
        if (!read || (!is_valid(rule.format, *read) && (rule.required || !read->empty()))) return false;
        to = *read;
        return true;
    }

    bool truth(bool& to) {
        to = rest_.starts_with("true");
        if (!to && !rest_.starts_with("false")) return false;
        rest_.remove_prefix(to ? 4 : 5);
        return true;
    }

    bool integer(const Rule& rule, std::int64_t& to) {
        const std::string_view digits = rest_.substr(rest_.starts_with('-') ? 1 : 0);
        if (digits.size() > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9') return false;
        const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), to);
        if (error != std::errc{}) return false;
        rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));  // a point or exponent after it ends reading
        return to >= rule.min && to <= rule.max;
    }

    bool word(const Shape& shape, void* to) {
        const auto read = quoted();
        if (!read) return false;
        const auto found = std::ranges::find(shape.words, *read);
        if (found == shape.words.end()) return false;
        shape.set_word(to, static_cast<std::size_t>(found - shape.words.begin()));
        return true;
    }

    template <class Q>
    static bool quantity(std::optional<std::string_view> read, const Rule& rule, Result<Q> (*parse)(std::string_view),
                         std::int64_t Q::* base, Q& to) {
        if (!read || read->size() > 64) return false;
        const Result<Q> parsed = parse(*read);
        if (!parsed || (*parsed).*base < rule.min || (*parsed).*base > rule.max) return false;
        to = *parsed;
        return true;
    }

    template <class Item>
    bool container(char open, char close, Item item) {
        if (depth_left_ == 0 || !taken(open)) return false;
        --depth_left_;
        if (!taken(close)) {
            do
                if (!item()) return false;
            while (taken(','));
            if (!taken(close)) return false;
        }
        ++depth_left_;
        return true;
    }

    bool taken(char expected) {
        if (!rest_.starts_with(expected)) return false;
        rest_.remove_prefix(1);
        return true;
    }

    // A number without sign and exponent; whether its point stands well is for whoever parses it.
    std::optional<std::string_view> decimal() {
        const std::size_t size = std::min(rest_.find_first_not_of("0123456789."), rest_.size());
        const std::string_view digits = rest_.substr(0, size);
        if (digits.empty() || (digits.size() > 1 && digits[0] == '0' && digits[1] != '.')) return std::nullopt;
        rest_.remove_prefix(size);
        return digits;
    }

    // What stands between quotes; valid until the next one with escapes is read.
    std::optional<std::string_view> quoted() {
        if (!taken('"')) return std::nullopt;
        const auto is_plain = [](char c) { return stands_for_itself[static_cast<unsigned char>(c)]; };
        std::size_t size = 0;
        while (size < rest_.size() && is_plain(rest_[size])) ++size;
        if (size == rest_.size()) return std::nullopt;
        const std::string_view plain = rest_.substr(0, size);
        rest_.remove_prefix(size);
        if (taken('"')) return plain;
        unescaped_ = plain;
        while (!taken('"')) {
            static constexpr std::string_view letters = "\"\\/bfnrt", meanings = "\"\\/\b\f\n\r\t";
            if (rest_.size() < 2) return std::nullopt;
            if (is_plain(rest_[0])) {
                unescaped_ += rest_[0];
                rest_.remove_prefix(1);
                continue;
            }
            const std::size_t which = letters.find(rest_[1]);
            if (rest_[0] != '\\' || which == std::string_view::npos) return std::nullopt;
            unescaped_ += meanings[which];
            rest_.remove_prefix(2);
        }
        return unescaped_;
    }

    std::string_view rest_;
    std::size_t depth_left_;
    std::string unescaped_;
};

}  // namespace

bool read_compact_into(std::string_view text, const Shape& shape, void* fresh,
                       std::span<const std::string_view> besides, const Limits& limits) {
    // A value takes a byte at least, so a text this short keeps every limit but that of depth.
    if (text.size() > std::min({limits.bytes, limits.nodes, limits.scalar_bytes})) return false;
    if (shape.type != Shape::Type::record || first_invalid_utf8(text) != std::string_view::npos) return false;
    return CompactReader{text, limits.depth}.document(shape, fresh, besides);
}

}  // namespace bulkhead
