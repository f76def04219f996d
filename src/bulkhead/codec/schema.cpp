#include "bulkhead/codec/schema.hpp"

#include <fmt/core.h>

#include "bulkhead/codec/json_writer.hpp"
#include "bulkhead/codec/print.hpp"
#include "bulkhead/codec/shape.hpp"
#include "bulkhead/model/snapshot.hpp"

namespace bulkhead {

namespace {

constexpr std::string_view dialect = "https://json-schema.org/draft/2020-12/schema";

std::string_view pattern_of(Shape::Type type) {
    switch (type) {
        case Shape::Type::gpus:
            return R"(^[0-9]+(\.[0-9]{1,9}|/[0-9]+)?$)";
        case Shape::Type::money:
            return R"(^-?[0-9]+(\.[0-9]{1,9})?$)";
        case Shape::Type::byte_size:
            return R"(^[0-9]+(\.[0-9]{1,9})?(k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?$)";
        case Shape::Type::duration:
            return R"(^(?=[0-9])([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?$)";
        case Shape::Type::instant:
            return R"(^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{3})?Z$)";
        default:
            return {};
    }
}

// A range in people's units, where the schema's own keywords cannot say it.
std::string range_in_words(const Shape& shape, const Rule& rule) {
    const bool least = rule.min != Rule{}.min && rule.min != 0, most = rule.max != Rule{}.max;
    std::string out;
    if (least) out += fmt::format(" At least {}.", spelled_number(shape, rule.min));
    if (most) out += fmt::format(" At most {}.", spelled_number(shape, rule.max));
    return out;
}

class SchemaWriter {
public:
    explicit SchemaWriter(JsonWriter& out) : out_{out} {}

    void object(const Shape& shape, std::string_view kind, std::string_view about) {
        out_.member("description", about);
        out_.member("type", "object");
        out_.key("properties");
        out_.begin_object();
        constant("apiVersion", api_version);
        constant("kind", kind);
        properties(shape);
        out_.end_object();
        required(shape, true);
        out_.member("additionalProperties", false);
    }

    void plain(const Shape& shape) { value(shape, {}); }

private:
    void constant(std::string_view name, std::string_view value) {
        out_.key(name);
        out_.begin_object();
        out_.member("type", "string");
        out_.key("enum");
        out_.begin_array();
        out_.value(value);
        out_.end_array();
        out_.end_object();
    }

    void properties(const Shape& shape) {
        for (const Field& field : shape.fields) {
            out_.key(field.name);
            out_.begin_object();
            const Shape& inner = field.shape->type == Shape::Type::optional ? *field.shape->inner : *field.shape;
            std::string about{field.about};
            if (!pattern_of(inner.type).empty()) about += range_in_words(inner, field.rule);
            out_.member("description", about);
            value(inner, field.rule);
            if (!field.rule.required && has_default(*field.shape)) standard(*field.shape, field.in(shape.fresh));
            out_.end_object();
        }
    }

    void required(const Shape& shape, bool with_header) {
        std::vector<std::string_view> names;
        if (with_header) names = {"apiVersion", "kind"};
        for (const Field& field : shape.fields)
            if (field.rule.required) names.push_back(field.name);
        if (names.empty()) return;
        out_.key("required");
        out_.begin_array();
        for (const std::string_view name : names) out_.value(name);
        out_.end_array();
    }

    // A default inside a map that is itself left out would not be filled in, so only plain values carry one.
    static bool has_default(const Shape& shape) {
        switch (shape.type) {
            case Shape::Type::optional:
            case Shape::Type::list:
            case Shape::Type::dictionary:
            case Shape::Type::record:
            case Shape::Type::text:
                return false;
            default:
                return true;
        }
    }

    void standard(const Shape& shape, const void* fresh) {
        out_.key("default");
        if (shape.type == Shape::Type::truth)
            out_.value(as<bool>(fresh));
        else if (shape.type == Shape::Type::integer)
            out_.number(spelled(shape, fresh));
        else if (shape.type == Shape::Type::gpus)
            out_.value(as<Gpus>(fresh));
        else
            out_.value(spelled(shape, fresh));
    }

    void value(const Shape& shape, const Rule& rule) {
        switch (shape.type) {
            case Shape::Type::text:
                out_.member("type", "string");
                return text_rules(rule);
            case Shape::Type::truth:
                return out_.member("type", "boolean");
            case Shape::Type::integer:
                out_.member("type", "integer");
                if (rule.min != Rule{}.min) out_.member("minimum", rule.min);
                if (rule.max != Rule{}.max) out_.member("maximum", rule.max);
                return;
            case Shape::Type::word:
                out_.member("type", "string");
                out_.key("enum");
                out_.begin_array();
                for (const std::string_view word : shape.words) out_.value(word);
                return out_.end_array();
            case Shape::Type::gpus:
            case Shape::Type::money:
            case Shape::Type::byte_size:
                number_or_text();
                return out_.member("pattern", pattern_of(shape.type));
            case Shape::Type::duration:
            case Shape::Type::instant:
                out_.member("type", "string");
                return out_.member("pattern", pattern_of(shape.type));
            case Shape::Type::optional:
                return value(*shape.inner, rule);
            case Shape::Type::list:
                out_.member("type", "array");
                out_.key("items");
                out_.begin_object();
                value(*shape.inner, Rule{.required = true, .format = rule.format, .min = rule.min, .max = rule.max});
                return out_.end_object();
            case Shape::Type::dictionary:
                out_.member("type", "object");
                out_.key("additionalProperties");
                out_.begin_object();
                out_.member("type", "string");
                return out_.end_object();
            case Shape::Type::record:
                out_.member("type", "object");
                out_.key("properties");
                out_.begin_object();
                properties(shape);
                out_.end_object();
                required(shape, false);
                return out_.member("additionalProperties", false);
        }
    }

    void text_rules(const Rule& rule) {
        if (rule.format == Format::any) return;
        const std::string_view form = pattern(rule.format);
        // Text that need not be given may also be given as "".
        out_.member("pattern", rule.required ? std::string{form} : fmt::format("^$|{}", form));
        if (rule.format == Format::dotted) out_.member("maxLength", 253);
    }

    void number_or_text() {
        out_.key("anyOf");
        out_.begin_array();
        for (const char* type : {"number", "string"}) {
            out_.begin_object();
            out_.member("type", type);
            out_.end_object();
        }
        out_.end_array();
    }

    JsonWriter& out_;
};

}  // namespace

std::vector<std::string_view> kind_names() {
    std::vector<std::string_view> names;
    for_each_kind([&]<class T>() { names.push_back(T::kind); });
    return names;
}

std::string json_schema(const Shape& shape, const SchemaHead& head) {
    JsonWriter out;
    out.begin_object();
    out.member("$schema", dialect);
    out.member("$id", head.id);
    out.member("title", head.title);
    out.member("description", head.about);
    SchemaWriter{out}.plain(shape);
    out.end_object();
    return out.take();
}

std::string json_schema(std::string_view kind) {
    JsonWriter out;
    out.begin_object();
    out.member("$schema", dialect);
    out.member("title", kind);
    bool known = false;
    for_each_kind([&]<class T>() {
        if (kind != T::kind) return;
        known = true;
        SchemaWriter{out}.object(shape_of<T>(), T::kind, T::about);
    });
    invariant(known, "a schema is asked only of a kind that exists");
    out.end_object();
    return out.take();
}

std::string json_schema() {
    JsonWriter out;
    out.begin_object();
    out.member("$schema", dialect);
    out.member("title", api_version);
    out.key("oneOf");
    out.begin_array();
    for_each_kind([&]<class T>() {
        out.begin_object();
        out.member("$ref", fmt::format("#/$defs/{}", T::kind));
        out.end_object();
    });
    out.end_array();
    out.key("$defs");
    out.begin_object();
    for_each_kind([&]<class T>() {
        out.key(T::kind);
        out.begin_object();
        SchemaWriter{out}.object(shape_of<T>(), T::kind, T::about);
        out.end_object();
    });
    out.end_object();
    out.end_object();
    return out.take();
}

}  // namespace bulkhead
