// Trees of tenants as other schedulers keep them, read as a Cluster: the Queue objects of KAI (and Run:ai), and what
// Slurm's `sacctmgr dump` writes.
//
// They say who is guaranteed what and how the rest is shared, not how many GPUs there are, nor who asks for how many.
// So the first is given, and every leaf (of Slurm: every user) asks for all it may have: the division under full load.
#pragma once

#include <expected>
#include <string_view>
#include <vector>

#include "bulkhead/codec/diagnostic.hpp"
#include "bulkhead/sched/cluster_file.hpp"

namespace bulkhead::sched {

enum class PeerTree : std::uint8_t { none, kai, slurm };

// By what the text begins with or holds; `none` for anything else.
PeerTree peer_tree_in(std::string_view text);

using PeerCluster = std::expected<Cluster, std::vector<Diagnostic>>;

// YAML or JSON, one Queue a document or a List of them, as `kubectl get queues -o yaml` prints. A quota or limit of -1
// is none; what other resources are promised is not read.
PeerCluster read_kai_queues(std::string_view file, std::string_view text, Gpus all);

// Accounts and users, users as account/user; Fairshare is both weight and shares, GrpTRES=gres/gpu=N the limit, and on
// the line of the cluster the most there is. Past usage is not in a dump. QOS lines and other limits are not read.
PeerCluster read_slurm_dump(std::string_view file, std::string_view text, Gpus all);

// Short, and without bytes that a terminal would obey.
bool may_be_a_name(std::string_view text);

}  // namespace bulkhead::sched
