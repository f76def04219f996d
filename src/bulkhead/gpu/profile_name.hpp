// The names people and tools use for MIG profiles: "3g.40gb", "1c.3g.40gb", "1g.10gb+me", "1g.24gb-me", and as
// Kubernetes resources "nvidia.com/mig-1g.10gb.me". A name has a form everywhere and a meaning only on a board.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/base/result.hpp"
#include "bulkhead/gpu/board.hpp"

namespace bulkhead::gpu {

struct ProfileName {
    unsigned compute{}, gpu{}, gigabytes{};  // <compute>c.<gpu>g.<gigabytes>gb
    char sign = 0;                           // '+' or '-' before the attributes, 0 when there are none
    std::vector<std::string> attributes;     // "me", "me.all", "gfx"; sorted, so that equal names compare equal
    friend bool operator==(const ProfileName&, const ProfileName&) = default;
};

Result<ProfileName> parse_profile_name(std::string_view text);
std::string print(const ProfileName& name);  // the `c` part is left out when it equals `g`

// Kubernetes allows no '+' in a resource name, so it becomes '.'; '-' stays.
Result<ProfileName> parse_resource_name(std::string_view text);
std::string resource_name(const ProfileName& name);

// A profile of one board: which GPU instance, and how many of its compute slices.
struct ProfileChoice {
    std::size_t index{};  // into Board::profiles
    unsigned compute{};   // equal to the profile's slices when the compute instance has them all
    friend bool operator==(ProfileChoice, ProfileChoice) = default;
};

// By name, by an earlier driver's name, by resource name, or by nvidia-smi profile id as "id:19".
Result<ProfileChoice> find_profile(const Board& board, std::string_view typed);

// The choice under the board's own name: "1c.3g.40gb".
std::string print(const Board& board, ProfileChoice choice);

// The ways to cut a GPU instance of so many compute slices: where a compute instance of `compute` slices may start.
// Empty when there is no such compute instance ("3c.4g" does not exist).
Starts compute_starts(unsigned gpu, unsigned compute);

}  // namespace bulkhead::gpu
