// Where this kernel keeps its control groups: version 2 in one tree, version 1 in a tree per controller, or some of
// each. A pure reading of /proc/self/mountinfo.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "bulkhead/base/result.hpp"

namespace bulkhead::container {

struct Hierarchies {
    std::map<std::string, std::string> v1;  // controller to where its tree is mounted
    std::set<std::string> v1_others;        // trees we put nothing into, but a container runtime may
    std::string v2;                         // empty: not mounted
    std::set<std::string> v2_controllers;   // of its root, as cgroup.controllers lists them

    // Where a controller's tree is; empty: nowhere.
    std::string of(const std::string& controller) const;
    std::set<std::string> ours() const;  // trees every process of a tenant is in
    std::set<std::string> all() const;
};

// Of mountinfo's text; the controllers of version 2 are filled in by whoever reads them.
Hierarchies hierarchies_of(std::string_view mountinfo);
Result<Hierarchies> find_hierarchies();

}  // namespace bulkhead::container
