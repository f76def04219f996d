#include "bulkhead/gpu/profile_name.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "bulkhead/base/nearest.hpp"

namespace bulkhead::gpu {

namespace {

constexpr std::string_view resource_prefix = "nvidia.com/mig-";
constexpr std::string_view form = "write it as 3g.40gb, 1c.3g.40gb, 1g.10gb+me or 1g.24gb-me";

constexpr bool digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool alphanumeric(char c) { return digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

std::unexpected<Error> bad(std::string_view text, std::string_view rule) {
    return fail(Code::invalid, fmt::format("\"{}\" is not a MIG profile name: {}", text, rule), std::string{form});
}

// "40gb" with unit "gb" is 40; zero when it is anything else.
unsigned number_with_unit(std::string_view field, std::string_view unit) {
    if (!field.ends_with(unit)) return 0;
    field.remove_suffix(unit.size());
    unsigned value = 0;
    const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
    const bool whole = error == std::errc{} && end == field.data() + field.size() && field.front() != '0';
    return whole && value <= 9999 ? value : 0;
}

std::string_view broken_attribute_rule(std::string_view attribute) {
    if (attribute.empty()) return "an attribute is empty";
    if (digit(attribute.front())) return "an attribute begins with a digit";
    if (attribute.front() == '.' || attribute.back() == '.') return "a dot stands only inside an attribute";
    if (!std::ranges::all_of(attribute, [](char c) { return alphanumeric(c) || c == '.'; }))
        return "an attribute holds only letters, digits and inner dots, and is marked by one + or one -";
    return {};
}

std::string_view take_until(std::string_view& rest, char mark) {
    const std::size_t at = rest.find(mark);
    const std::string_view head = rest.substr(0, at);
    rest = at == std::string_view::npos ? std::string_view{} : rest.substr(at + 1);
    return head;
}

}  // namespace

Result<ProfileName> parse_profile_name(std::string_view text) {
    if (text.empty()) return bad(text, "it is empty");
    if (text.find_first_of(" \t\r\n") != std::string_view::npos) return bad(text, "it holds a space");

    ProfileName name;
    const std::size_t mark = text.find_first_of("+-");
    std::string_view fields = text.substr(0, mark);
    const auto dots = std::ranges::count(fields, '.');
    if (dots != 1 && dots != 2) return bad(text, "it needs two fields (3g.40gb) or three (1c.3g.40gb)");
    if (dots == 2) name.compute = number_with_unit(take_until(fields, '.'), "c");
    name.gpu = number_with_unit(take_until(fields, '.'), "g");
    name.gigabytes = number_with_unit(fields, "gb");
    if (dots == 1) name.compute = name.gpu;
    if (dots == 2 && name.compute == 0)
        return bad(text, "of three fields the first is a number from 1 to 9999 and \"c\"");
    if (name.gpu == 0) return bad(text, "the field before the memory is a number from 1 to 9999 and \"g\"");
    if (name.gigabytes == 0) return bad(text, "the last field is a number from 1 to 9999 and \"gb\"");
    if (name.compute > name.gpu) return bad(text, "a compute instance has no more slices than its GPU instance");
    if (mark == std::string_view::npos) return name;

    name.sign = text[mark];
    std::string_view rest = text.substr(mark + 1);
    if (rest.ends_with(',')) return bad(text, "an attribute is empty");
    do {
        const std::string_view attribute = take_until(rest, ',');
        if (const std::string_view rule = broken_attribute_rule(attribute); !rule.empty()) return bad(text, rule);
        name.attributes.emplace_back(attribute);
    } while (!rest.empty());
    std::ranges::sort(name.attributes);
    if (std::ranges::adjacent_find(name.attributes) != name.attributes.end())
        return bad(text, "an attribute stands twice");
    return name;
}

std::string print(const ProfileName& name) {
    std::string text = name.compute == name.gpu ? "" : fmt::format("{}c.", name.compute);
    text += fmt::format("{}g.{}gb", name.gpu, name.gigabytes);
    if (!name.attributes.empty()) text += fmt::format("{}{}", name.sign, fmt::join(name.attributes, ","));
    return text;
}

Result<ProfileName> parse_resource_name(std::string_view text) {
    if (!text.starts_with(resource_prefix))
        return fail(Code::invalid,
                    fmt::format("\"{}\" is not a MIG resource: it does not begin with {}", text, resource_prefix),
                    "write it as nvidia.com/mig-3g.40gb or nvidia.com/mig-1g.10gb.me");
    std::string name{text.substr(resource_prefix.size())};
    // The first dot after "gb" was a '+'; later ones belong to the attribute ("me.all").
    if (const std::size_t at = name.find("gb."); at != std::string::npos) name[at + 2] = '+';
    return parse_profile_name(name);
}

std::string resource_name(const ProfileName& name) {
    std::string text{resource_prefix};
    text += print(name);
    std::ranges::replace(text, '+', '.');
    return text;
}

namespace {

Result<ProfileChoice> find_by_id(const Board& board, std::string_view typed) {
    int id = -1;
    const std::string_view digits = typed.substr(3);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), id);
    std::vector<std::string> known;
    for (std::size_t i = 0; i < board.profiles.size(); ++i) {
        const Profile& profile = board.profiles[i];
        if (!profile.id) continue;
        if (error == std::errc{} && end == digits.data() + digits.size() && *profile.id == id)
            return ProfileChoice{i, profile.slices};
        known.push_back(fmt::format("{} ({})", *profile.id, profile.name));
    }
    return fail(Code::not_found,
                known.empty() ? fmt::format("{} has no known profile ids: no source lists them", board.id)
                              : fmt::format("{} has no profile id \"{}\"; known are {}", board.id, digits,
                                            fmt::join(known, ", ")),
                fmt::format("bulkhead mig profiles --gpu {}", board.id));
}

}  // namespace

Result<ProfileChoice> find_profile(const Board& board, std::string_view typed) {
    if (typed.starts_with("id:")) return find_by_id(board, typed);
    const auto name = typed.starts_with(resource_prefix) ? parse_resource_name(typed) : parse_profile_name(typed);
    if (!name) return std::unexpected(name.error());

    ProfileName instance = *name;
    instance.compute = instance.gpu;
    const std::string wanted = print(instance);
    std::vector<std::string_view> known;
    for (std::size_t i = 0; i < board.profiles.size(); ++i) {
        const Profile& profile = board.profiles[i];
        known.push_back(profile.name);
        if (profile.name != wanted && (profile.also_named.empty() || profile.also_named != wanted)) continue;
        if (!compute_starts(profile.slices, name->compute).empty()) return ProfileChoice{i, name->compute};
        return fail(Code::not_found,
                    fmt::format("{} has no {}: a {}g instance is not cut into compute instances of {} slices", board.id,
                                print(*name), profile.slices, name->compute),
                    fmt::format("bulkhead mig profiles --gpu {} --ci", board.id));
    }
    const std::string_view meant = nearest(wanted, known);
    return fail(Code::not_found,
                fmt::format("{} has no profile {}; it has {}", board.id, print(*name), fmt::join(known, ", ")),
                meant.empty() ? fmt::format("bulkhead mig profiles --gpu {}", board.id) : std::string{meant});
}

std::string print(const Board& board, ProfileChoice choice) {
    const Profile& profile = board.profiles[choice.index];
    return choice.compute == profile.slices ? std::string{profile.name}
                                            : fmt::format("{}c.{}", choice.compute, profile.name);
}

Starts compute_starts(unsigned gpu, unsigned compute) {
    if (compute == 0 || compute > gpu) return {};
    if (compute == gpu) return Starts::at(0);
    if (compute == 3 && gpu != 7) return {};
    // Runs are aligned to the next power of two, as the memory slices of GPU instances are.
    const unsigned step = compute == 3 ? 4 : compute;
    if (!std::has_single_bit(step) || step > 4) return {};
    unsigned bits = 0;
    for (unsigned start = 0; start + compute <= gpu; start += step) bits |= 1u << start;
    return Starts{static_cast<std::uint8_t>(bits)};
}

}  // namespace bulkhead::gpu
