// A cluster as the questions need it: queues to divide GPUs among, a table of who is ranked where, and a fleet's
// snapshot seen as such a cluster.
#pragma once

#include <string>
#include <vector>

#include "bulkhead/model/snapshot.hpp"
#include "bulkhead/sched/cluster_file.hpp"
#include "bulkhead/sched/division.hpp"
#include "bulkhead/sched/fair_tree.hpp"

namespace bulkhead::sched {

// The tenants of a consistent snapshot and the GPUs of its nodes. A tenant asks for what those of its workloads ask
// that are not refused: tasks times GPUs, a slice by what quota counts for it. Nothing is known of past usage.
Cluster cluster_of(const Snapshot& snapshot);

// In the order of the tenants.
std::vector<Queue> queues_of(const Cluster& cluster);

// Fair Tree over a cluster. A tenant without children is a user. One with children is an account, and where it has work
// of its own also a user of its own name below itself, with one share.
struct FairRow {
    std::string account;  // a user's: the account it is below, "root" at the top
    std::string user;     // empty: the row of an account
    std::size_t depth = 0;
    std::int64_t shares = 1;
};
struct FairTable {
    std::vector<FairRow> rows;  // as people read a tree
    FairTree tree;              // one standing for each row
};
FairTable fair_table(const Cluster& cluster);

}  // namespace bulkhead::sched
