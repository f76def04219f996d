// What the checks between objects share: the index of names, and the list that findings are put on.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/model/consistency.hpp"

namespace bulkhead {

// One object that findings are about.
struct Subject {
    std::string_view kind;
    std::string_view name;
    std::size_t occurrence = 0;
};

class Findings {
public:
    explicit Findings(const Snapshot& snapshot);

    void add(const Subject& subject, std::string path, std::string what, std::string remedy);

    // An object by its name; of several with one name, the first. Null: there is none.
    template <class T>
    const T* find(std::string_view name) const {
        const auto found = index<T>().find(name);
        return found == index<T>().end() ? nullptr : found->second;
    }

    // Workloads are called what their tenant calls them: two tenants may use one name.
    const GpuWorkload* find_work(std::string_view tenant, std::string_view name) const {
        const auto found = work_.find({tenant, name});
        return found == work_.end() ? nullptr : found->second;
    }

    // "try the nearest", or a way to make the name known.
    std::string remedy(std::string_view typed, std::span<const std::string_view> known, std::string otherwise) const;
    template <class T>
    std::string remedy(std::string_view typed, std::string otherwise) const {
        std::vector<std::string_view> known;
        for (const auto& [name, object] : index<T>()) known.push_back(name);
        return remedy(typed, known, std::move(otherwise));
    }

    // Calls visit(object, subject) for every object of a kind, with the occurrence counted.
    template <class T>
    void for_each(auto&& visit) {
        std::map<std::string_view, std::size_t> seen;
        for (const T& object : snapshot.list<T>())
            visit(object, Subject{T::kind, object.metadata.name, seen[object.metadata.name]++});
    }

    const Snapshot& snapshot;
    const FleetPolicy* policy = nullptr;  // the first, if any
    std::set<std::string_view> sites, jurisdictions;
    std::vector<Finding> list;

private:
    template <class T>
    using Index = std::map<std::string_view, const T*>;
    template <class T>
    const Index<T>& index() const {
        return std::get<Index<T>>(indexes_);
    }

    std::map<std::pair<std::string_view, std::string_view>, const GpuWorkload*> work_;
    std::tuple<Index<TenantClass>, Index<Tenant>, Index<GpuWorkload>, Index<GpuNode>> indexes_;
};

void check_policy(Findings& findings);  // sites, trust domains, exceptions
void check_classes(Findings& findings);
void check_tenants(Findings& findings);  // tree, class, domain, quota
void check_workloads(Findings& findings);
void check_nodes(Findings& findings);
void check_leases(Findings& findings);

// Whom the identity provider's word makes what, as a policy or a tenant may say it.
void check_bindings(Findings& findings, const Subject& subject, const std::vector<RoleBinding>& bindings,
                    bool (*may_be_bound)(Role));

// The sites and jurisdictions that an object names, at the given place in it.
void check_placement(Findings& findings, const Subject& subject, const Whereabouts& placement);

}  // namespace bulkhead
