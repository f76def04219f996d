// What commands print: asked of the node while they run, and from the workload's own status afterwards.
#include <fmt/core.h>

#include <algorithm>

#include "bulkhead/base/hash.hpp"
#include "bulkhead/codec/decode.hpp"
#include "bulkhead/codec/print.hpp"
#include "bulkhead/model/output.hpp"
#include "bulkhead/model/snapshot.hpp"
#include "bulkhead/shell/api.hpp"

namespace bulkhead::shell {

namespace {

Response said(std::int64_t from, std::string_view bytes, bool over, std::int64_t start) {
    return {.body = to_compact_json(CommandOutput{from, to_base64(bytes), over, start})};
}

// The end of it, as far as it was kept: of the node whose end was the gang's.
Response what_is_left(const GpuWorkloadStatus& status, bool errors, std::int64_t from) {
    const auto kept =
        static_cast<std::size_t>(std::clamp<std::int64_t>(status.printed.outKept, 0, std::ssize(status.output)));
    std::string_view text{status.output};
    text = errors ? text.substr(kept) : text.substr(0, kept);
    const std::int64_t end = std::max(errors ? status.printed.err : status.printed.out, std::ssize(text));
    if (from >= end) return said(from, "", true, status.history.starts);
    const std::int64_t begin = std::clamp(from, end - std::ssize(text), end);
    return said(begin, text.substr(text.size() - static_cast<std::size_t>(end - begin)), true, status.history.starts);
}

// The nodes it runs on, by rank.
std::vector<std::string> nodes_of(const GpuLease& lease) {
    std::vector<std::string> nodes;
    for (const LeasedSlice& slice : lease.spec.slices)
        if (std::ranges::find(nodes, slice.node) == nodes.end()) nodes.push_back(slice.node);
    return nodes;
}

}  // namespace

void Api::output(const Call& call, const Respond& respond) {
    const auto from = number_of(call, "from", 0, {0, INT64_MAX / 2});
    const auto rank = number_of(call, "rank", 0, {0, 100'000});
    if (!from || !rank) return respond(problem(!from ? from.error() : rank.error()));
    const std::string_view stream = call.query("stream");
    if (!stream.empty() && stream != "out" && stream != "err")
        return respond(problem(Error{Code::invalid, fmt::format("there is no stream {}", stream), "out or err"}));
    const bool errors = stream == "err";
    const std::string& name = call.path("name");
    const auto found = readable(call, ObjectKind::workload, name, Permission::read_output);
    if (!found) return respond(problem(found.error()));
    const auto workload = from_json<GpuWorkload>("a stored workload", (*found)->body, own_text);
    if (!workload) return respond(problem(workload.error()));
    const GpuWorkloadStatus status = workload->status.value_or(GpuWorkloadStatus{});
    if (status.exitStatus) return respond(what_is_left(status, errors, *from));
    const ObjectPtr held = status.lease.empty() ? nullptr : parts_.catalog.get(ObjectKind::lease, status.lease);
    if (!held) return respond(said(*from, "", false, status.history.starts));
    const auto lease = from_json<GpuLease>("a stored lease", held->body, own_text);
    if (!lease) return respond(problem(lease.error()));
    const std::vector<std::string> nodes = nodes_of(*lease);
    if (std::cmp_greater_equal(*rank, nodes.size()))
        return respond(problem(Error{
            Code::not_found, fmt::format("{} runs on {} {}", name, nodes.size(), nodes.size() == 1 ? "node" : "nodes"),
            fmt::format("rank 0 to {}", std::ssize(nodes) - 1)}));
    parts_.agents.read_output(nodes[static_cast<std::size_t>(*rank)], {held->key, errors, *from},
                              [respond, from = *from, start = status.history.starts](const Result<OutputPiece>& piece) {
                                  if (piece) return respond(said(piece->from, piece->bytes, false, start));
                                  // It has not begun there, or has just ended; who asks again learns which.
                                  if (piece.error().code == Code::not_found)
                                      return respond(said(from, "", false, start));
                                  respond(problem(piece.error()));
                              });
}

}  // namespace bulkhead::shell
