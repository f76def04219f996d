// GpuLease: a contract bound to slices of named GPUs for a time. Written by the system.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bulkhead/model/fences.hpp"
#include "bulkhead/model/meta.hpp"
#include "bulkhead/model/metered.hpp"

namespace bulkhead {

struct LeasedSlice {
    std::string node;
    std::int64_t gpu = 0;
    std::string profile;
    std::int64_t start = 0;
    std::int64_t share = 1000;

    static constexpr void describe(auto&& field) {
        field("node", &LeasedSlice::node, "The node.", Rule{.required = true, .format = Format::name});
        field("gpu", &LeasedSlice::gpu, "The GPU's index on it.", Rule{.min = 0, .max = 1023});
        field("profile", &LeasedSlice::profile, "The slice's profile; empty: the whole GPU.");
        field("start", &LeasedSlice::start, "Its first memory slice.", Rule{.min = 0, .max = 64});
        field("share", &LeasedSlice::share, "Thousandths of it, where leases share it.", Rule{.min = 1, .max = 1000});
    }
    friend bool operator==(const LeasedSlice&, const LeasedSlice&) = default;
};

struct LeasedDevice {
    std::string node;
    std::int64_t index = 0;

    static constexpr void describe(auto&& field) {
        field("node", &LeasedDevice::node, "The node.", Rule{.required = true, .format = Format::name});
        field("index", &LeasedDevice::index, "The device's index on it.", Rule{.min = 0, .max = 1023});
    }
    friend bool operator==(const LeasedDevice&, const LeasedDevice&) = default;
};

// The least trusted tenant that may sit in the same place while the lease lasts, by contract.
struct LeaseSharing {
    PeerTrust node = PeerTrust::same_tenant;
    PeerTrust gpu = PeerTrust::same_tenant;
    PeerTrust instance = PeerTrust::same_tenant;
    PeerTrust nvlink = PeerTrust::same_tenant;
    std::vector<std::string> excepted;
    bool keepsNode = false, keepsGpu = false;

    static constexpr void describe(auto&& field) {
        field("node", &LeaseSharing::node, "On the same node.");
        field("gpu", &LeaseSharing::gpu, "On the same GPU.");
        field("instance", &LeaseSharing::instance, "In the same GPU instance or memory.");
        field("nvlink", &LeaseSharing::nvlink, "In the same NVLink partition.");
        field("excepted", &LeaseSharing::excepted, "Tenants that an exception in force lets share the kernel.",
              Rule{.format = Format::name});
        field("keepsNode", &LeaseSharing::keepsNode,
              "The work asked to share the node with fewer tenants than the rules allow: GPUs of the node that no "
              "lease holds count against its tenant's limit and are metered.");
        field("keepsGpu", &LeaseSharing::keepsGpu, "The same of its GPUs: the parts of them that no lease holds.");
    }
    friend bool operator==(const LeaseSharing&, const LeaseSharing&) = default;
};

struct GpuLeaseSpec {
    std::string tenant;
    std::string workload;
    Mechanism mechanism{};
    Tier tier{};
    std::optional<std::int64_t> tasks;
    LeaseSharing sharing;
    std::vector<LeasedSlice> slices;
    std::vector<LeasedDevice> drives;
    std::vector<LeasedDevice> functions;
    std::optional<Instant> until;

    static constexpr void describe(auto&& field) {
        field("tenant", &GpuLeaseSpec::tenant, "Who holds it.", Rule{.required = true, .format = Format::name});
        field("workload", &GpuLeaseSpec::workload, "For which work.", Rule{.required = true, .format = Format::name});
        field("mechanism", &GpuLeaseSpec::mechanism, "How the silicon is divided, by contract.",
              Rule{.required = true});
        field("tier", &GpuLeaseSpec::tier, "The tier in force, by contract.", Rule{.required = true});
        field("tasks", &GpuLeaseSpec::tasks, "How many of the work's tasks it is for; all, where it does not say.",
              Rule{.min = 1, .max = 100'000});
        field("sharing", &GpuLeaseSpec::sharing, "Who may sit beside it, by contract.");
        field("slices", &GpuLeaseSpec::slices, "What is leased.");
        field("drives", &GpuLeaseSpec::drives, "Drives that come with it.");
        field("functions", &GpuLeaseSpec::functions, "Virtual functions that come with it.");
        field("until", &GpuLeaseSpec::until, "When it ends, if it does by itself.");
    }
    friend bool operator==(const GpuLeaseSpec&, const GpuLeaseSpec&) = default;
};

// Who one of its virtual functions is on the fabric.
struct LeasedPort {
    std::string node;
    std::int64_t function = 0;
    std::string address, mac;
    std::int64_t vlan = 0;
    std::int64_t rateMbps = 0, dscp = 0;
    std::string nodeGuid, portGuid;
    std::int64_t partitionKey = 0;

    static constexpr void describe(auto&& field) {
        field("node", &LeasedPort::node, "The node.", Rule{.required = true, .format = Format::name});
        field("function", &LeasedPort::function, "The virtual function's index on it.", Rule{.min = 0, .max = 1023});
        field("address", &LeasedPort::address, "Its address, with the length of the tenant's prefix: 10.128.16.5/20.",
              Rule{.required = true, .format = Format::line});
        field("mac", &LeasedPort::mac, "Its link address.");
        field("vlan", &LeasedPort::vlan, "The tenant's VLAN, which the NIC tags; 0: none.",
              Rule{.min = 0, .max = 4094});
        field("rateMbps", &LeasedPort::rateMbps, "Mbit/s that it sends at most; 0: not limited.", Rule{.min = 0});
        field("dscp", &LeasedPort::dscp, "What its packets are marked with.", Rule{.min = 0, .max = 63});
        field("nodeGuid", &LeasedPort::nodeGuid, "On InfiniBand.");
        field("portGuid", &LeasedPort::portGuid, "On InfiniBand, by which the subnet manager knows it.");
        field("partitionKey", &LeasedPort::partitionKey, "On InfiniBand: the tenant's, with full membership.",
              Rule{.min = 0, .max = 65535});
    }
    friend bool operator==(const LeasedPort&, const LeasedPort&) = default;
};

// What is known of the fences that its functions on one NIC are behind, by the node's own test of them.
struct LeasedFence {
    std::string node, nic;
    FabricFence fence{};
    std::optional<FabricFound> found;
    std::vector<std::string> open, unproven;
    Grade grade = Grade::assumed;
    std::int64_t record = -1;
    std::string digest;

    static constexpr void describe(auto&& field) {
        field("node", &LeasedFence::node, "The node.", Rule{.required = true, .format = Format::name});
        field("nic", &LeasedFence::nic, "The NIC, by the address of its physical function.");
        field("fence", &LeasedFence::fence, "Which fences there are in this tier.");
        field("found", &LeasedFence::found, "What the test comes to; absent: none was made in this boot of the node.");
        field("open", &LeasedFence::open, "Attempts that got through.", Rule{.format = Format::line});
        field("unproven", &LeasedFence::unproven, "Attempts of which the test shows nothing.",
              Rule{.format = Format::line});
        field("grade", &LeasedFence::grade, "How it is known.");
        field("record", &LeasedFence::record, "Where the log holds the node's statement; -1: nowhere.",
              Rule{.min = -1});
        field("digest", &LeasedFence::digest, "SHA-256 of that statement, in hex.");
    }
    friend bool operator==(const LeasedFence&, const LeasedFence&) = default;
};

// What came of saving the work on one node before it was stopped.
struct LeaseSaved {
    std::string node;
    bool saved = false;
    std::string words;

    static constexpr void describe(auto&& field) {
        field("node", &LeaseSaved::node, "Where.", Rule{.required = true});
        field("saved", &LeaseSaved::saved, "Whether its checkpoint command ended with status 0.");
        field("words", &LeaseSaved::words, "What that printed; or why the work is not saved.");
    }
    friend bool operator==(const LeaseSaved&, const LeaseSaved&) = default;
};

struct GpuLeaseStatus {
    LeasePhase phase = LeasePhase::active;
    Gpus gpus;
    std::optional<Instant> boundAt, activeAt, endedAt;
    std::string why;
    std::int64_t attempt = 0;
    std::optional<FailureReason> reason;
    std::optional<std::int64_t> exitStatus;
    std::vector<LeaseSaved> saved;
    std::optional<Metered> metered;
    std::optional<KeptCapacity> kept;
    std::vector<LeasedPort> ports;
    std::vector<LeasedFence> fences;

    static constexpr void describe(auto&& field) {
        field("phase", &GpuLeaseStatus::phase, "Where it stands.", Rule{.shown = true});
        field("gpus", &GpuLeaseStatus::gpus, "What quota and usage count.");
        field("boundAt", &GpuLeaseStatus::boundAt, "When the slices were promised.");
        field("activeAt", &GpuLeaseStatus::activeAt, "When every node had verified its part: usage counts from here.");
        field("endedAt", &GpuLeaseStatus::endedAt, "When it was asked to end: usage counts to here.");
        field("why", &GpuLeaseStatus::why, "Why it ends.");
        field("attempt", &GpuLeaseStatus::attempt, "Which run of its workload this is, from 1.");
        field("reason", &GpuLeaseStatus::reason, "Of one that ends before its work is done: why, for programs.");
        field("exitStatus", &GpuLeaseStatus::exitStatus, "How its command ended, where it did.");
        field("saved", &GpuLeaseStatus::saved, "Of one that was stopped to be run again: which nodes saved its work.");
        field("metered", &GpuLeaseStatus::metered, "What its bill will be made of.");
        field("kept", &GpuLeaseStatus::kept,
              "Of one that keeps more from others than the rules demand: the capacity it keeps closed now.");
        field("ports", &GpuLeaseStatus::ports, "Who its virtual functions are on the fabric.");
        field("fences", &GpuLeaseStatus::fences, "What is known of the fences that they are behind.");
    }
    friend bool operator==(const GpuLeaseStatus&, const GpuLeaseStatus&) = default;
};

struct GpuLease {
    static constexpr std::string_view kind = "GpuLease";
    static constexpr std::string_view about =
        "A contract bound to slices of named GPUs for a time; written by the system.";
    Metadata metadata;
    GpuLeaseSpec spec;
    std::optional<GpuLeaseStatus> status;

    static constexpr void describe(auto&& field) {
        field("metadata", &GpuLease::metadata, "Name and labels.", Rule{.required = true});
        field("spec", &GpuLease::spec, "What is leased to whom.", Rule{.required = true});
        field("status", &GpuLease::status, "Where it stands.");
    }
    friend bool operator==(const GpuLease&, const GpuLease&) = default;
};

}  // namespace bulkhead
