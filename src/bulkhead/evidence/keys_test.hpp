// Keys that every run of the tests has again.
#pragma once

#include <string>

#include "bulkhead/evidence/signing.hpp"

namespace bulkhead::evidence {

inline SigningKey key_of_seed(char seed) { return SigningKey::from_seed(std::string(32, seed)).value(); }

}  // namespace bulkhead::evidence
