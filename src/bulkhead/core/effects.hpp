// What follows from an event. Rows and log entries become durable in one transaction before anything else leaves.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bulkhead/base/result.hpp"
#include "bulkhead/core/rows.hpp"
#include "bulkhead/model/consistency.hpp"
#include "bulkhead/node/order.hpp"

namespace bulkhead {

struct Answer {
    std::uint64_t request = 0;
    Result<> outcome;               // why not, when it was refused
    std::vector<Finding> findings;  // of a refusal: every place that must change
    std::string body;               // JSON: the decision, the queue, what became of each object
    std::string object;             // JSON: the one object that was asked for, as this command left it
    std::string version;            // of that object
    std::string note;               // what whoever asked should know besides: a sentence; empty: nothing
    bool created = false;
    bool forbidden = false;  // it is who asks, and not what is asked, that does not do
};

struct Effects {
    std::vector<Row> rows;
    std::vector<std::string> log;  // payloads, in order; each becomes one leaf

    struct ToNode {
        std::string node;
        std::uint64_t session = 0;
        Order order;
    };
    struct Welcome {  // the session is accepted under the epoch
        std::string node;
        std::uint64_t session = 0;
    };
    struct Acknowledge {  // reports up to this number are durable
        std::string node;
        std::uint64_t session = 0;
        std::int64_t number = 0;
    };
    struct Close {  // the session is not, or no longer, the node's
        std::string node;
        std::uint64_t session = 0;
        std::string why;
    };
    std::vector<ToNode> orders;
    std::vector<Welcome> welcomes;
    std::vector<Acknowledge> acknowledgements;
    std::vector<Close> closes;
    std::vector<Answer> answers;
    // A node has obeyed another control plane, of this or a higher epoch. While the core is `restoring`, that was
    // before the store was put back: whoever runs the core takes a higher epoch and starts anew. Otherwise either the
    // store has a newer master, and this one stops, or the node lies.
    std::int64_t epoch_seen = 0;

    bool durable() const { return !rows.empty() || !log.empty(); }
};

}  // namespace bulkhead
