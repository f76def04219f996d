// GpuLease: a contract bound to slices of named GPUs for a time. Written by the system.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bulkhead/model/meta.hpp"

namespace bulkhead {

struct LeasedSlice {
    std::string node;
    std::int64_t gpu = 0;
    std::string profile;
    std::int64_t start = 0;

    static constexpr void describe(auto&& field) {
        field("node", &LeasedSlice::node, "The node.", Rule{.required = true, .format = Format::name});
        field("gpu", &LeasedSlice::gpu, "The GPU's index on it.", Rule{.min = 0, .max = 1023});
        field("profile", &LeasedSlice::profile, "The slice's profile; empty: the whole GPU.");
        field("start", &LeasedSlice::start, "Its first memory slice.", Rule{.min = 0, .max = 64});
    }
    friend bool operator==(const LeasedSlice&, const LeasedSlice&) = default;
};

struct GpuLeaseSpec {
    std::string tenant;
    std::string workload;
    Mechanism mechanism{};
    Tier tier{};
    std::vector<LeasedSlice> slices;
    std::optional<Instant> until;

    static constexpr void describe(auto&& field) {
        field("tenant", &GpuLeaseSpec::tenant, "Who holds it.", Rule{.required = true, .format = Format::name});
        field("workload", &GpuLeaseSpec::workload, "For which work.", Rule{.required = true, .format = Format::name});
        field("mechanism", &GpuLeaseSpec::mechanism, "How the silicon is divided, by contract.",
              Rule{.required = true});
        field("tier", &GpuLeaseSpec::tier, "The tier in force, by contract.", Rule{.required = true});
        field("slices", &GpuLeaseSpec::slices, "What is leased.");
        field("until", &GpuLeaseSpec::until, "When it ends, if it does by itself.");
    }
    friend bool operator==(const GpuLeaseSpec&, const GpuLeaseSpec&) = default;
};

struct GpuLease {
    static constexpr std::string_view kind = "GpuLease";
    static constexpr std::string_view about =
        "A contract bound to slices of named GPUs for a time; written by the system.";
    Metadata metadata;
    GpuLeaseSpec spec;

    static constexpr void describe(auto&& field) {
        field("metadata", &GpuLease::metadata, "Name and labels.", Rule{.required = true});
        field("spec", &GpuLease::spec, "What is leased to whom.", Rule{.required = true});
    }
    friend bool operator==(const GpuLease&, const GpuLease&) = default;
};

}  // namespace bulkhead
