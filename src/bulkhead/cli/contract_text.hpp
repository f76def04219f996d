// Contracts and refusals as people read them in a terminal.
#pragma once

#include <iosfwd>
#include <span>

#include "bulkhead/policy/contract.hpp"

namespace bulkhead::cli {

// One line per contract, then each refusal with its reasons and the nearest acceptable request.
void print_overview(std::ostream& out, std::span<const Decision> decisions, bool colour);

// Answers to the same workloads under several threat models, side by side.
struct Column {
    ThreatModel threat{};
    std::span<const Decision> decisions;
};
void print_side_by_side(std::ostream& out, std::span<const Column> columns, bool colour);

// Everything a contract says.
void print_whole(std::ostream& out, const Contract& contract, bool colour);
void print_whole(std::ostream& out, const Refusal& refusal, bool colour);

}  // namespace bulkhead::cli
