// Which fences of a function are up, and what came of an attempt on them.
#pragma once

#include "bulkhead/evidence/fabric_statement.hpp"

namespace bulkhead::agent {

using bulkhead::AttemptEnd;
using bulkhead::FabricFence;
using evidence::FabricAttempt;

}  // namespace bulkhead::agent
