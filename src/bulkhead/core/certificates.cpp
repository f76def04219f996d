// Which TLS certificates of a node are good. While one is being replaced there are two: the agent may crash before it
// has kept the new one, or before it has used it, and must be able to come back with whichever it has. The first hello
// under the new one ends that.
#include <fmt/core.h>

#include <utility>

#include "bulkhead/codec/print.hpp"
#include "bulkhead/core/state.hpp"

namespace bulkhead {

namespace {

void keep(Turn& turn, const NodeRun& node) {
    turn.rows.push_back({Table::key, node.key_row, to_compact_json(node.signing), false});
}

}  // namespace

void on_renew(Turn& turn, const command::Renew& wanted, Answer& answer) {
    const auto refuse = [&](Code code, std::string what, std::string remedy) {
        answer.outcome = fail(code, std::move(what), std::move(remedy));
    };
    NodeRun* node = turn.state.find_node(wanted.node);
    if (node == nullptr) return refuse(Code::not_found, fmt::format("there is no node {}", wanted.node), "enrol it");
    if (node->key_row == 0 || node->signing.retired)
        return refuse(Code::denied, fmt::format("node {} was revoked", wanted.node), "enrol it again");
    if (node->session == 0 || node->session != wanted.session)
        return refuse(Code::conflict, fmt::format("the session of node {} is not open", wanted.node), "say hello");
    // Whoever was enrolled anew, or has used its newer certificate already, gets nothing for the old one.
    if (wanted.shown.empty() || wanted.shown != node->signing.certificate)
        return refuse(Code::denied, fmt::format("this is not the certificate of node {} any more", wanted.node),
                      "come back with the newer one");
    node->signing.renewed = wanted.renewed;
    keep(turn, *node);
    turn.log({.kind = evidence::RecordKind::certificate_renewed,
              .actor = "node:" + wanted.node,
              .node = wanted.node,
              .detail = {{"certificate", wanted.renewed}, {"before", wanted.shown}}});
}

bool take_certificate(Turn& turn, NodeRun& node, const std::string& shown) {
    if (shown.empty() || shown == node.signing.certificate) return true;
    if (shown != node.signing.renewed) return false;
    const std::string before = std::exchange(node.signing.certificate, std::exchange(node.signing.renewed, {}));
    keep(turn, node);
    turn.log({.kind = evidence::RecordKind::certificate_retired,
              .actor = "node:" + node.object.metadata.name,
              .node = node.object.metadata.name,
              .detail = {{"certificate", before}, {"after", node.signing.certificate}}});
    return true;
}

}  // namespace bulkhead
