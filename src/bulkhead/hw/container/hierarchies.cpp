#include "bulkhead/hw/container/hierarchies.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <vector>

#include "bulkhead/hw/container/durable.hpp"

namespace bulkhead::container {

namespace {

constexpr auto needed_controllers = std::to_array<std::string_view>({"memory", "cpu", "pids"});

std::vector<std::string> split(std::string_view text, char at) {
    std::vector<std::string> parts;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find(at), text.size());
        if (end > 0) parts.emplace_back(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return parts;
}

}  // namespace

std::string Hierarchies::of(const std::string& controller) const {
    if (const auto at = v1.find(controller); at != v1.end()) return at->second;
    return v2_controllers.contains(controller) ? v2 : std::string{};
}

std::set<std::string> Hierarchies::ours() const {
    std::set<std::string> trees;
    for (const auto& [controller, tree] : v1) trees.insert(tree);
    if (!v2.empty()) trees.insert(v2);
    return trees;
}

std::set<std::string> Hierarchies::all() const {
    std::set<std::string> trees = ours();
    trees.insert(v1_others.begin(), v1_others.end());
    return trees;
}

Hierarchies hierarchies_of(std::string_view mountinfo) {
    Hierarchies found;
    for (const std::string& line : split(mountinfo, '\n')) {
        const std::vector<std::string> fields = split(line, ' ');
        // id parent device root mount-point options [tags...] - type source super-options
        const auto dash = std::ranges::find(fields, "-");
        if (fields.size() < 5 || fields.end() - dash < 4) continue;
        const std::string &place = fields[4], &type = dash[1];
        if (type == "cgroup2") found.v2 = place;
        if (type != "cgroup") continue;
        bool used = false;
        for (const std::string& option : split(dash[3], ','))
            if (option == "devices" || std::ranges::find(needed_controllers, option) != needed_controllers.end()) {
                found.v1.try_emplace(option, place);
                used = true;
            }
        if (!used) found.v1_others.insert(place);
    }
    return found;
}

Result<Hierarchies> find_hierarchies() {
    const auto mountinfo = read_whole("/proc/self/mountinfo");
    if (!mountinfo) return std::unexpected(mountinfo.error());
    Hierarchies found = hierarchies_of(*mountinfo);
    if (!found.v2.empty())
        if (const auto controllers = read_whole(found.v2 + "/cgroup.controllers"))
            for (const std::string& name : split(controllers->substr(0, controllers->find('\n')), ' '))
                found.v2_controllers.insert(name);
    for (const std::string_view controller : needed_controllers)
        if (found.of(std::string{controller}).empty())
            return fail(Code::unavailable,
                        fmt::format("this kernel has the {} controller in no cgroup tree, so tenants cannot be limited",
                                    controller),
                        "mount cgroup2 with it, or boot with cgroup_enable=" + std::string{controller});
    if (!found.v1.contains("devices") && found.v2.empty())
        return fail(Code::unavailable,
                    "there is neither a devices controller nor cgroup2: device nodes cannot be held back",
                    "mount cgroup2 at /sys/fs/cgroup");
    return found;
}

}  // namespace bulkhead::container
