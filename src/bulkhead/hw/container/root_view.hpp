// What a tenant of the process tier sees as its file system: the host's programs, read-only; its own devices, processes
// and temporary files; its work. Built in a mount namespace of its own, by root, before anything of the tenant runs.
#pragma once

#include <string>

#include "bulkhead/base/result.hpp"
#include "bulkhead/hw/container/spec.hpp"

namespace bulkhead::container {

// Files and directories of the host's /etc that programs need to find libraries, names and certificates. What is not
// there on this host is left out.
std::vector<std::string> shared_etc();
// Of /proc and /sys: hidden, because they tell of the host or of neighbours; and read-only.
std::vector<std::string> hidden_paths();
std::vector<std::string> read_only_paths();
// What /etc/passwd and /etc/group say: the tenant, root, and nobody else.
std::string passwd_for(const TenantSpec& spec, std::uint32_t id);
std::string group_for(const TenantSpec& spec, std::uint32_t id);

// Moves the calling process, in a fresh mount namespace, into that view; `scratch` is an empty directory to build it
// at.
Result<> enter_root_view(const TenantSpec& spec, const std::string& scratch);

}  // namespace bulkhead::container
