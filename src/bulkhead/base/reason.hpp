// Why something was decided: a stable code ("slo.soft-mechanism") with typed arguments, never a finished sentence. The
// words are chosen at the door, for whoever is asking: an argument meant for the operator alone (a neighbour's name, a
// node) is left out when a tenant reads it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace bulkhead {

enum class Audience : std::uint8_t { tenant, fleet_operator };

struct Argument {
    std::string_view name;  // as it stands in the text, between braces; a literal
    std::variant<std::int64_t, std::string> value;
    Audience least = Audience::tenant;  // who at least must be asking to read it
    friend bool operator==(const Argument&, const Argument&) = default;
};

struct Reason {
    std::string_view code;  // stable, greppable, a key in every language; a literal
    std::vector<Argument> arguments;
    friend bool operator==(const Reason&, const Reason&) = default;
};

// Fills `{name}` in a template, and `{name:node is|nodes are}` with the words for one or for any other number. An
// argument that the reader may not see reads as "(withheld)"; a name without an argument is a bug in the table of texts
// and stops the program. Arguments may come in two parts: those that many reasons share, and those of this one.
std::string fill(std::string_view text, std::span<const Argument> arguments, Audience reader,
                 std::span<const Argument> more = {});

}  // namespace bulkhead
