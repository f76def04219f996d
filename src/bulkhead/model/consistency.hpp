// What must hold between objects before policy looks at any of them: names unique, references that exist, parents that
// form a tree, trust that both sides declared, exceptions that carry their consents. Every finding, not only the first.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/model/snapshot.hpp"

namespace bulkhead {

struct Finding {
    std::string_view kind;  // of the object that must change
    std::string name;
    std::size_t occurrence = 0;  // 0 the first object of that kind and name, 1 the second, ...
    std::string path;            // JSON Pointer into it: "/spec/quota/limit"
    std::string what;
    std::string remedy;
    friend bool operator==(const Finding&, const Finding&) = default;
};

// Classes that exist without being declared; policy/ says what they fix.
inline constexpr std::array<std::string_view, 4> shipped_classes{"frontier-training", "slo-serving", "research",
                                                                 "batch"};

// In the order of the snapshot: policy, classes, tenants, workloads, nodes, leases.
std::vector<Finding> inconsistencies(const Snapshot& snapshot);

// The same, of one fleet again and again with other work: what does not change is looked at once.
class WorkCheck {
public:
    // A snapshot without work and leases. It outlives the check, and only its workloads change meanwhile.
    explicit WorkCheck(const Snapshot& fleet);
    ~WorkCheck();
    WorkCheck(WorkCheck&&) noexcept;
    WorkCheck& operator=(WorkCheck&&) noexcept;

    std::vector<Finding> inconsistencies();

private:
    std::unique_ptr<class Findings> findings_;
    bool sound_ = false;  // the fleet by itself
};

}  // namespace bulkhead
