// The environment and the arguments of a program that is about to be started, as the kernel takes them.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace bulkhead::program {

using Variables = std::vector<std::pair<std::string, std::string>>;

// This process's own variables as NAME=value, with these in place of those of the same name.
std::vector<std::string> environment_with(const Variables& ours);
// For exec: the texts' own characters, and a null. They must outlive it.
std::vector<char*> pointers_to(std::vector<std::string>& texts);

}  // namespace bulkhead::program
