// Whether a path leads where we think: nobody but root and us can put another folder in the place of one on the way.
#pragma once

#include <string>

#include "bulkhead/base/result.hpp"

namespace bulkhead::agent {

// Every folder above `path`, which is absolute, and every link on the way: root's or ours; writable for nobody else,
// unless it is sticky, as /tmp is, where one can rename only what is one's own. What does not exist yet is nobody's.
// `denied` names the first that is not so. The last folder itself is the caller's to judge.
Result<> check_way_to(const std::string& path);

}  // namespace bulkhead::agent
