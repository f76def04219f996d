// A division and a Fair Tree as people and programs read them.
#pragma once

#include <iosfwd>
#include <string>

#include "bulkhead/sched/cluster_tree.hpp"

namespace bulkhead::cli {

struct SharesAnswer {
    sched::Cluster cluster;
    sched::Division division;  // in the order of the cluster's tenants
    sched::FairTable fair;
};

// The tree with what each is due, then Fair Tree in the columns of `sshare -l`.
void print_shares(std::ostream& out, const SharesAnswer& answer);

std::string shares_json(const SharesAnswer& answer);

}  // namespace bulkhead::cli
