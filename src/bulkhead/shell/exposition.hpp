// Prometheus's text format (version 0.0.4), to the letter: each family once with its HELP and TYPE, families in the
// order of their names, labels escaped.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "bulkhead/base/quantity.hpp"

namespace bulkhead::shell {

// name="value", ... with what must be escaped escaped.
std::string labels(std::initializer_list<std::pair<std::string_view, std::string_view>> pairs);
// More of them behind what there is.
std::string with_label(std::string before, std::string_view name, std::string_view value);
// 1234567 with 6 digits behind the point: "1.234567".
std::string decimal(std::int64_t value, int digits);
// GPUs with three digits behind the point, or with nine where three do not suffice: "0.500", "0.142857143".
std::string decimal(Gpus value);

class Exposition {
public:
    enum class Type : std::uint8_t { counter, gauge, histogram };

    class Family {
    public:
        // The suffix is a histogram's: _bucket, _sum, _count.
        template <class Number>
        void add(std::string_view with, const Number& number, std::string_view suffix = "") {
            if (with.empty())
                fmt::format_to(std::back_inserter(series_), "{}{} {}\n", name_, suffix, number);
            else
                fmt::format_to(std::back_inserter(series_), "{}{}{{{}}} {}\n", name_, suffix, with, number);
        }

    private:
        friend class Exposition;
        std::string name_, head_, series_;
    };

    // The same family for the same name: what it is about is said by whoever comes first.
    Family& family(std::string_view name, Type type, std::string_view about);
    // A family of one series without labels.
    template <class Number>
    void value(std::string_view name, Type type, std::string_view about, const Number& number) {
        family(name, type, about).add("", number);
    }
    std::string text() const;

private:
    std::map<std::string, Family, std::less<>> families_;
};

}  // namespace bulkhead::shell
