// What the tests of this room share: a folder that goes away, and a small fleet as text.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>

#include "bulkhead/base/result.hpp"

namespace bulkhead::shell {

class ScratchFolder {
public:
    ScratchFolder() {
        std::string pattern = std::filesystem::temp_directory_path() / "bulkhead-shell-XXXXXX";
        invariant(mkdtemp(pattern.data()) != nullptr, "a scratch folder can be made");
        path_ = pattern;
    }
    ~ScratchFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    ScratchFolder(const ScratchFolder&) = delete;
    ScratchFolder& operator=(const ScratchFolder&) = delete;
    std::string operator/(const std::string& name) const { return path_ / name; }
    std::string path() const { return path_; }

private:
    std::filesystem::path path_;
};

inline std::string slurp(const std::string& path) {
    std::ifstream file{path, std::ios::binary};
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

inline const std::string policy_yaml = R"(apiVersion: bulkhead.dev/v1alpha1
kind: FleetPolicy
metadata: {name: fleet}
spec:
  threatModel: internal
  sites: [{name: here, jurisdiction: eu}]
)";
inline const std::string tenant_yaml = R"(apiVersion: bulkhead.dev/v1alpha1
kind: Tenant
metadata: {name: acme, labels: {team: vision}}
spec: {class: batch, quota: {limit: 8}}
)";

inline std::string tenant_json(const std::string& name, const std::string& labels = "{}", int weight = 1) {
    return R"({"apiVersion":"bulkhead.dev/v1alpha1","kind":"Tenant","metadata":{"name":")" + name + R"(","labels":)" +
           labels + R"(},"spec":{"class":"batch","quota":{"weight":)" + std::to_string(weight) + "}}}";
}

}  // namespace bulkhead::shell
