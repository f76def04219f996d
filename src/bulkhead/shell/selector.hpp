// Which objects are meant, by their labels: "team=vision,env!=prod,gpu,!spot,zone in (a,b)", as kubectl writes it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/base/result.hpp"

namespace bulkhead::shell {

using Labels = std::map<std::string, std::string>;

class Selector {
public:
    static Result<Selector> parse(std::string_view text);  // empty: everything
    bool matches(const Labels& labels) const;
    bool everything() const { return terms_.empty(); }

private:
    enum class Test : std::uint8_t { any_of, none_of, present, absent };
    struct Term {
        std::string key;
        Test test{};
        std::vector<std::string> values;
    };
    static Result<Term> parse_term(std::string_view text);
    std::vector<Term> terms_;
};

}  // namespace bulkhead::shell
