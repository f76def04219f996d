// A lease as files that other programs read. What a tenant is given is about its own part of a node and nothing beside
// it, so that it needs no right to read nodes.
#include <fmt/core.h>

#include <algorithm>

#include "bulkhead/codec/decode.hpp"
#include "bulkhead/codec/print.hpp"
#include "bulkhead/model/rendered.hpp"
#include "bulkhead/model/snapshot.hpp"
#include "bulkhead/render/nccl_environment.hpp"
#include "bulkhead/render/nccl_topology.hpp"
#include "bulkhead/shell/api.hpp"

namespace bulkhead::shell {

void Api::nccl(const Call& call, const Respond& respond) {
    const std::string& name = call.path("name");
    const auto found = readable(call, ObjectKind::lease, name, Permission::read_tenant);
    if (!found) return respond(problem(found.error()));
    const auto lease = from_json<GpuLease>("a stored lease", (*found)->body, own_text);
    if (!lease) return respond(problem(lease.error()));
    if (lease->spec.tier == Tier::vm || lease->spec.tier == Tier::confidential_vm)
        return respond(problem(Error{Code::conflict,
                                     fmt::format("{} is of tier {}: where its devices are on the guest's bus, and what "
                                                 "they are called there, the guest's kernel decides",
                                                 name, word(lease->spec.tier)),
                                     "its machine is told who it is: BULKHEAD_PORTS, and the variables of NCCL's that "
                                     "go by its address; NCCL finds the rest by itself"}));
    std::vector<std::string> nodes = render::nodes_of(*lease);
    if (const std::string_view wanted = call.query("node"); !wanted.empty()) {
        if (std::ranges::find(nodes, wanted) == nodes.end())
            return respond(problem(Error{Code::not_found, fmt::format("{} has no part on {}", name, wanted),
                                         "leave the node out: all of its nodes"}));
        nodes = {std::string{wanted}};
    }
    RenderedFiles files;
    for (const std::string& node : nodes) {
        const ObjectPtr stored = parts_.catalog.get(ObjectKind::node, node);
        if (!stored)
            return respond(problem(Error{Code::unavailable, fmt::format("node {} is gone", node), "ask again"}));
        const auto object = from_json<GpuNode>("a stored node", stored->body, own_text);
        if (!object) return respond(problem(object.error()));
        const render::NodePart part = render::part_of(*lease, node);
        auto topology = render::nccl_topology(object->status, part);
        if (!topology) return respond(problem(topology.error()));
        const auto variables = render::nccl_environment(
            object->status, part, {.topology_file = std::string{render::nccl_topology_path}, .gid_index = {}});
        if (!variables) return respond(problem(variables.error()));
        std::string lines;
        for (const std::string& line : *variables) lines += line + '\n';
        files.files.push_back({node, std::string{render::nccl_topology_name}, *std::move(topology)});
        files.files.push_back({node, std::string{render::nccl_environment_name}, std::move(lines)});
    }
    respond({.body = to_compact_json(files)});
}

}  // namespace bulkhead::shell
