#include "bulkhead/sched/cluster_file.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>

#include "bulkhead/base/nearest.hpp"
#include "bulkhead/codec/decode.hpp"
#include "bulkhead/codec/document.hpp"
#include "bulkhead/codec/lone_document.hpp"
#include "bulkhead/sched/cluster_check.hpp"

namespace bulkhead::sched {

namespace {

using Written = bulkhead::Node;  // a node of the text; this room's own is a machine

constexpr std::array<std::string_view, 2> header{"apiVersion", "kind"};

bool is_cluster(const Written& root) {
    const Written* kind = root.find("kind");
    return kind && kind->type == Written::Type::scalar && kind->text == Cluster::kind;
}

// Also one that was meant to be: a slip in its kind is this reader's to explain.
bool was_meant_to_be(const Written& root) {
    const auto has = [&](std::string_view field) { return root.find(field) != nullptr; };
    return is_cluster(root) || (!has("apiVersion") && (has("gpus") || has("tenants") || has("nodes") || has("jobs")));
}

class Reader {
public:
    explicit Reader(std::string_view file) : file_{file} {}

    Cluster read(const Written& root) {
        Cluster cluster;
        check_header(root);
        if (!decode(root, file_, cluster, errors, header)) return cluster;  // its list may not be the text's
        if (const Written* tenants = root.find("tenants")) check_tenants(cluster, tenants->items);
        check_gpus(cluster, root);
        for (const Misfit& misfit : misfits_of(cluster)) complain(place_of(root, misfit), misfit.what, misfit.remedy);
        return cluster;
    }

    // The field where it is written, else the item.
    static Place place_of(const Written& root, const Misfit& misfit) {
        const Written* list = root.find(misfit.list);
        if (list == nullptr || misfit.index >= list->items.size()) return root.at;
        return place_of(*list->items[misfit.index], misfit.field);
    }

    void complain(Place at, std::string what, std::string remedy) {
        errors.push_back({{std::string{file_}, at.line, at.column}, std::move(what), std::move(remedy)});
    }

    std::vector<Diagnostic> errors;

private:
    using Items = std::vector<const Written*>;

    void check_header(const Written& root) {
        if (root.type != Written::Type::map) return;  // decode says so
        if (const Written* version = root.find("apiVersion"); version && version->text != api_version)
            complain(version->at, fmt::format("apiVersion \"{}\" is not known", shortened(version->text)),
                     std::string{api_version});
        const Written* kind = root.find("kind");
        if (!kind)
            complain(root.at, "kind is missing", fmt::format("kind: {}", Cluster::kind));
        else if (!is_cluster(root))
            complain(kind->at, fmt::format("kind \"{}\" is not {}", shortened(kind->text), Cluster::kind),
                     fmt::format("kind: {}", Cluster::kind));
    }

    // Where a field is written; the item itself where it is not.
    static Place place_of(const Written& item, std::string_view field) {
        const Written* value = item.find(field);
        return value ? value->at : item.at;
    }

    void check_gpus(const Cluster& cluster, const Written& root) {
        if (!cluster.gpus && cluster.nodes.empty())
            return complain(root.at, "gpus is missing", "add gpus: How many GPUs there are; or nodes: The machines.");
        if (!cluster.gpus || cluster.nodes.empty()) return;
        Cluster by_nodes;
        by_nodes.nodes = cluster.nodes;
        if (by_nodes.all_gpus() != *cluster.gpus)
            complain(root.find("gpus")->at,
                     fmt::format("gpus is {}, and the nodes have {}", print(*cluster.gpus), print(by_nodes.all_gpus())),
                     "leave gpus out: the nodes say it");
    }

    void check_tenants(const Cluster& cluster, const Items& items) {
        std::map<std::string_view, std::size_t> by_name;
        for (std::size_t i = 0; i < cluster.tenants.size(); ++i) {
            const auto [first, fresh] = by_name.try_emplace(cluster.tenants[i].name, i);
            if (!fresh)
                complain(place_of(*items[i], "name"),
                         fmt::format("tenant {} is there twice; the first is in line {}", first->first,
                                     items[first->second]->at.line),
                         "give each tenant a name of its own");
        }
        for (std::size_t i = 0; i < cluster.tenants.size(); ++i) {
            const std::string& parent = cluster.tenants[i].parent;
            if (!parent.empty() && !by_name.contains(parent)) unknown_parent(cluster, i, items, by_name);
        }
        find_circles(cluster, items, by_name);
    }

    void unknown_parent(const Cluster& cluster, std::size_t at, const Items& items,
                        const std::map<std::string_view, std::size_t>& by_name) {
        constexpr std::size_t worth_guessing = 100;  // after so many errors nobody reads on, and guessing takes time
        std::vector<std::string_view> known;
        if (errors.size() < worth_guessing)
            for (const auto& [name, index] : by_name) known.push_back(name);
        const std::string& parent = cluster.tenants[at].parent;
        const std::string_view near = nearest(parent, known);
        const std::string otherwise = "list that tenant, or leave parent out to make this a root";
        complain(place_of(*items[at], "parent"),
                 fmt::format("tenant {}: its parent \"{}\" does not exist", cluster.tenants[at].name, parent),
                 near.empty() ? otherwise : fmt::format("{}, or {}", near, otherwise));
    }

    // Each circle once, at its member that comes first in the alphabet. Everyone is walked through once.
    void find_circles(const Cluster& cluster, const Items& items,
                      const std::map<std::string_view, std::size_t>& by_name) {
        const std::size_t nobody = cluster.tenants.size();
        std::vector<std::size_t> walked_from(cluster.tenants.size(), nobody);
        for (std::size_t start = 0; start < cluster.tenants.size(); ++start) {
            std::vector<std::size_t> way;
            std::size_t at = start;
            while (at != nobody && walked_from[at] == nobody) {
                walked_from[at] = start;
                way.push_back(at);
                const auto parent = by_name.find(cluster.tenants[at].parent);
                at = parent == by_name.end() ? nobody : parent->second;
            }
            if (at == nobody || walked_from[at] != start) continue;
            way.erase(way.begin(), std::ranges::find(way, at));  // what only leads into the circle
            report_circle(cluster, items, std::move(way));
        }
    }

    void report_circle(const Cluster& cluster, const Items& items, std::vector<std::size_t> circle) {
        const auto name = [&](std::size_t at) { return std::string_view{cluster.tenants[at].name}; };
        std::ranges::rotate(circle, std::ranges::min_element(circle, {}, name));
        constexpr std::size_t worth_naming = 8;
        std::vector<std::string_view> names;
        for (const std::size_t at : circle)
            if (names.size() < worth_naming) names.push_back(name(at));
        complain(place_of(*items[circle.front()], "parent"),
                 fmt::format("tenant {}: its parents form a circle of {}: {} -> {}", names.front(), circle.size(),
                             fmt::join(names, " -> "), circle.size() > names.size() ? "..." : names.front()),
                 "make one of them a root by leaving its parent out");
    }

    std::string_view file_;
};

}  // namespace

Gpus Cluster::all_gpus() const {
    if (gpus) return *gpus;
    Gpus all;
    for (const ClusterNode& node : nodes) all = all + Gpus::whole(node.gpus * node.count);
    return all;
}

std::string numbered(const std::string& name, std::int64_t count, std::int64_t at) {
    return count == 1 ? name : fmt::format("{}-{}", name, at + 1);
}

bool holds_cluster(std::string_view text) {
    const ReadText read = read_documents("", text);
    return std::ranges::any_of(read.documents, [](const Document& each) { return was_meant_to_be(*each.root); });
}

std::expected<Cluster, std::vector<Diagnostic>> read_cluster(std::string_view file, std::string_view text) {
    return read_alone(Reader{file}, file, text,
                      {"begin with kind: Cluster and nodes: or gpus:", "a second document; a Cluster stands alone"});
}

std::vector<Diagnostic> located(std::string_view file, std::string_view text, std::span<const Misfit> misfits) {
    std::vector<Diagnostic> out;
    const ReadText read = read_documents(file, text);
    for (const Misfit& misfit : misfits) {
        Place at;
        if (!read.documents.empty()) at = Reader::place_of(*read.documents.front().root, misfit);
        out.push_back({{std::string{file}, at.line, at.column}, misfit.what, misfit.remedy});
    }
    return out;
}

}  // namespace bulkhead::sched
