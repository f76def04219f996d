// What one lease runs on a node and what it may touch. Everything a tenant can reach is named here; what is not named
// is not there. Checked before anything is done, so that a spec that is refused has changed nothing.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "bulkhead/base/result.hpp"
#include "bulkhead/model/terms.hpp"

namespace bulkhead::container {

using LeaseKey = std::int64_t;

struct DeviceNode {
    std::string path;  // as the tenant sees it: "/dev/nvidia0"
    char type = 'c';   // 'c' or 'b'
    std::uint32_t major = 0, minor = 0;
    friend auto operator<=>(const DeviceNode&, const DeviceNode&) = default;
};

struct ReadOnlyMount {  // driver libraries, data sets
    std::string source, target;
    friend auto operator<=>(const ReadOnlyMount&, const ReadOnlyMount&) = default;
};

// Ids of the host that belong to this lease and to nobody else, neither accounts nor other leases, while it lasts.
struct IdRange {
    std::uint32_t first = 0, count = 65'536;
    friend auto operator<=>(const IdRange&, const IdRange&) = default;
};

struct RdmaLimit {  // of one RDMA device; opens of it, and everything made with it
    std::string device;
    std::uint32_t handles = 0, objects = 0;
    friend auto operator<=>(const RdmaLimit&, const RdmaLimit&) = default;
};

struct Limits {
    std::int64_t memory_bytes = 0;
    std::int64_t cpu_thousandths = 0;
    std::int64_t pids = 0;
    std::int64_t log_bytes = 16 << 20;  // kept of each of stdout and stderr: the latest
    std::vector<RdmaLimit> rdma;        // none: there is no RDMA device
    friend auto operator<=>(const Limits&, const Limits&) = default;
};

// none: a namespace with a loopback and nothing else. prepared: one that somebody has made and put links into, which
// the tenant may use and not change.
enum class Network : std::uint8_t { none, host, prepared };
constexpr auto words(Network) { return std::to_array<Words>({"none", "host", "prepared"}); }

using Environment = std::vector<std::pair<std::string, std::string>>;

struct TenantSpec {
    LeaseKey lease = 0;
    std::string tenant;
    Tier tier = Tier::process;
    std::vector<std::string> command;     // the program by its absolute path or its name, then its arguments
    std::vector<std::string> checkpoint;  // saves its work, before it is stopped to be run again; none: nothing does
    Environment environment;              // all of it: nothing of the agent's leaks in
    std::string work_dir;                 // a directory of the host, seen as /job; empty: memory, gone with the lease
    IdRange ids;
    std::vector<DeviceNode> devices;  // besides null, zero, full, random and urandom
    std::vector<ReadOnlyMount> mounts;
    std::vector<std::string> hidden;  // files that are empty for this tenant; those that are not there are fine
    std::string rootfs;               // container tier only; empty: a read-only view of the host's programs
    Network network = Network::none;
    std::string network_space;  // the file that keeps the prepared one; its sysfs is mounted beside it, at FILE.sys
    Limits limits;
    std::string cpus;  // to be begun on: 0-15,64-79; empty: any
    friend bool operator==(const TenantSpec&, const TenantSpec&) = default;
};

// The first rule that is broken, in words.
Result<> check(const TenantSpec& spec);

// What every tenant gets. No terminal: nothing to inject keystrokes into.
std::vector<DeviceNode> common_devices();

}  // namespace bulkhead::container
