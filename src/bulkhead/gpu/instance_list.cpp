#include "bulkhead/gpu/instance_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace bulkhead::gpu {

namespace {

constexpr bool digit(char c) { return c >= '0' && c <= '9'; }

std::optional<unsigned> number(std::string_view digits, unsigned most) {
    unsigned value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc{} || end != digits.data() + digits.size() || value > most) return std::nullopt;
    return value;
}

bool begins_item(std::string_view text) {
    return text.empty() || digit(text.front()) || text.front() == ',' || text.starts_with("id:") ||
           text.starts_with("nvidia.com/");
}

// Commas separate items and, inside a name, attributes ("1g.10gb+me,gfx"). An attribute never begins with a digit.
std::vector<std::string_view> split(std::string_view text) {
    std::vector<std::string_view> items;
    std::size_t begin = 0;
    for (std::size_t at = 0; at <= text.size(); ++at) {
        if (at < text.size() && (text[at] != ',' || !begins_item(text.substr(at + 1)))) continue;
        items.push_back(text.substr(begin, at - begin));
        begin = at + 1;
    }
    return items;
}

constexpr std::size_t wanted_max = 99;  // far beyond any GPU; keeps a slip of the finger from costing minutes

Result<ListItem> parse_item(std::string_view text) {
    ListItem item;
    std::string_view profile = text;
    std::size_t digits = 0;
    while (digits < text.size() && digit(text[digits])) ++digits;
    if (digits > 0 && digits < text.size() && text[digits] == 'x') {
        const auto count = number(text.substr(0, digits), 999);
        if (!count || *count == 0)
            return fail(Code::invalid, fmt::format("\"{}\": the count before x is from 1 to 999", text),
                        "write it as 2x1g.10gb");
        item.count = *count;
        profile.remove_prefix(digits + 1);
    }
    if (const std::size_t at = profile.find('@'); at != std::string_view::npos) {
        item.start = number(profile.substr(at + 1), 99);
        if (!item.start)
            return fail(Code::invalid, fmt::format("\"{}\": the start after @ is the number of a memory slice", text),
                        "write it as 3g.40gb@4");
        profile = profile.substr(0, at);
    }
    if (profile.empty())
        return fail(Code::invalid, fmt::format("\"{}\" names no profile", text),
                    "write it as 3g.40gb, 3g.40gb@4 or 2x1g.10gb");
    if (profile.starts_with("id:")) {
        if (!number(profile.substr(3), 9999))
            return fail(Code::invalid,
                        fmt::format("\"{}\": after id: stands a profile id as nvidia-smi prints it", text),
                        "write it as id:19");
    } else if (const auto name =
                   profile.starts_with("nvidia.com/") ? parse_resource_name(profile) : parse_profile_name(profile);
               !name) {
        return std::unexpected(name.error());
    }
    item.profile = profile;
    return item;
}

Result<> check_start(const Board& board, const ListItem& item, ProfileChoice choice) {
    const Profile& profile = board.profiles[choice.index];
    if (!item.start || profile.starts.contains(*item.start)) return {};
    return fail(Code::invalid,
                fmt::format("{} cannot start at slice {} of {}: it starts only at {}", profile.name, *item.start,
                            board.id, fmt::join(profile.starts.begin(), profile.starts.end(), ", ")),
                fmt::format("{}@{}", item.profile, profile.starts.lowest()));
}

Result<> add_existing(const Board& board, std::string_view text, bool in_use, std::vector<Instance>& instances) {
    if (text.empty()) return {};
    const auto list = parse_list(text);
    if (!list) return std::unexpected(list.error());
    for (const ListItem& item : *list) {
        const auto choice = find_profile(board, item.profile);
        if (!choice) return std::unexpected(choice.error());
        if (!item.start)
            return fail(Code::invalid,
                        fmt::format("{} has no start: of an instance that exists, the place is needed", item.profile),
                        fmt::format("write it as {}@{}", item.profile, board.profiles[choice->index].starts.lowest()));
        if (auto placed = check_start(board, item, *choice); !placed) return placed;
        const bool divided = choice->compute != board.profiles[choice->index].slices;
        if (item.count > 1 && !divided)
            return fail(
                Code::invalid,
                fmt::format("{}x{}@{}: only one GPU instance can be at a place", item.count, item.profile, *item.start),
                "give each its own start");
        const auto same = [&](const Instance& i) {
            return divided && i.profile == choice->index && i.start == *item.start;
        };
        auto it = std::ranges::find_if(instances, same);
        if (it == instances.end()) it = instances.insert(it, Instance{choice->index, *item.start});
        it->in_use = it->in_use || in_use;
        for (unsigned i = 0; i < std::min(item.count, 8u); ++i) {
            it->compute = it->compute.plus(choice->compute);
            if (!in_use) it->compute_idle = it->compute_idle.plus(choice->compute);
        }
        if (!arrange_cut(board.profiles[it->profile].slices, it->compute))
            return fail(Code::invalid,
                        fmt::format("{}@{} does not hold that many compute instances", board.profiles[it->profile].name,
                                    it->start),
                        fmt::format("bulkhead mig profiles --gpu {} --ci", board.id));
    }
    return {};
}

}  // namespace

Result<std::vector<ListItem>> parse_list(std::string_view text) {
    std::vector<ListItem> list;
    for (const std::string_view part : split(text)) {
        auto item = parse_item(part);
        if (!item) return std::unexpected(item.error());
        list.push_back(std::move(*item));
    }
    return list;
}

std::string print(const std::vector<ListItem>& list) {
    std::vector<std::string> parts;
    for (const ListItem& item : list) {
        std::string text = item.count == 1 ? item.profile : fmt::format("{}x{}", item.count, item.profile);
        if (item.start) text += fmt::format("@{}", *item.start);
        parts.push_back(std::move(text));
    }
    return fmt::format("{}", fmt::join(parts, ","));
}

Result<std::vector<Instance>> read_existing(const Board& board, std::string_view in_use, std::string_view idle) {
    std::vector<Instance> instances;
    if (auto added = add_existing(board, in_use, true, instances); !added) return std::unexpected(added.error());
    if (auto added = add_existing(board, idle, false, instances); !added) return std::unexpected(added.error());
    if (auto possible = check_existing(board, instances); !possible) return std::unexpected(possible.error());
    return instances;
}

Result<std::vector<Wanted>> read_wanted(const Board& board, std::string_view text) {
    const auto list = parse_list(text);
    if (!list) return std::unexpected(list.error());
    std::vector<Wanted> wanted;
    for (const ListItem& item : *list) {
        const auto choice = find_profile(board, item.profile);
        if (!choice) return std::unexpected(choice.error());
        if (auto placed = check_start(board, item, *choice); !placed) return std::unexpected(placed.error());
        wanted.insert(wanted.end(), item.count, Wanted{*choice, item.start});
        if (wanted.size() > wanted_max)
            return fail(Code::invalid,
                        fmt::format("more than {} instances are wanted; {} holds at most {}", wanted_max, board.id,
                                    board.max_instances),
                        "ask for what one GPU could hold");
    }
    return wanted;
}

Result<Weights> read_weights(const Board& board, std::string_view text) {
    Weights weights(board.profiles.size());
    for (const std::string_view part : split(text)) {
        const std::size_t at = part.rfind('=');
        const auto weight = at == std::string_view::npos ? std::nullopt : number(part.substr(at + 1), weight_max);
        if (!weight)
            return fail(Code::invalid,
                        fmt::format("\"{}\": an expectation is a profile and a weight from 0 to {}", part, weight_max),
                        "write it as 1g.10gb=5,3g.40gb=1");
        const auto choice = find_profile(board, part.substr(0, at));
        if (!choice) return std::unexpected(choice.error());
        weights[choice->index] = std::min(weight_max, weights[choice->index] + *weight);
    }
    if (std::ranges::count(weights, 0u) == std::ssize(weights))
        return fail(Code::invalid, fmt::format("\"{}\" expects nothing: every weight is zero", text),
                    "give at least one profile a weight");
    return weights;
}

}  // namespace bulkhead::gpu
