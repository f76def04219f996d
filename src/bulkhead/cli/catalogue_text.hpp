// The catalogue as people read it in a terminal.
#pragma once

#include <iosfwd>
#include <span>

#include "bulkhead/policy/catalogue.hpp"
#include "bulkhead/policy/threat_model.hpp"
#include "bulkhead/policy/version_gate.hpp"

namespace bulkhead::cli {

struct Pair {
    Mechanism mechanism{};
    Tier tier{};
};

// All of it on two screens: strengths without sentences.
void print_catalogue(std::ostream& out, bool colour);

// One section each, with every sentence, its grade and its source.
void print_mechanisms(std::ostream& out, std::span<const MechanismEntry* const> entries, bool colour);
void print_tiers(std::ostream& out, std::span<const TierEntry* const> entries, bool colour);
void print_pairs(std::ostream& out, std::span<const Pair> pairs, bool colour);
void print_corrections(std::ostream& out, std::span<const Correction* const> entries, bool colour);
void print_threat_models(std::ostream& out, std::span<const ThreatPreset* const> presets, bool colour);
void print_advisories(std::ostream& out, std::span<const Advisory* const> advisories, bool colour);

}  // namespace bulkhead::cli
