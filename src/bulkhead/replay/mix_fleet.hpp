// A fleet and the jobs that come to it, drawn from a mix and a seed. The same seed gives the same tenants, the same
// nodes and the same jobs in the same order; a fleet of another size is another draw.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "bulkhead/base/rng.hpp"
#include "bulkhead/replay/mix.hpp"
#include "bulkhead/sched/work.hpp"

namespace bulkhead::replay {

// What a team lets sit beside it.
enum class TeamTrust : std::uint8_t { domain, alone, vm };
inline constexpr std::size_t team_trusts = 3;

// Who submits work.
struct MixTeam {
    sched::TenantNo tenant = 0;
    TeamTrust trust = TeamTrust::domain;
    bool idle = false;  // asks for nothing by itself
};

// One request of the mix: a need for each kind of trust, and what goes with it.
struct MixVariant {
    std::size_t sort = 0;  // into the mix's jobs
    Gpus gpus;             // what quota counts for one task
    std::array<sched::TaskNeed, team_trusts> needs;
};

// What was drawn: a job without its shape, which whoever asks the engine knows by variant and trust.
struct MixDraw {
    sched::Job job;
    std::size_t variant = 0;
    TeamTrust trust = TeamTrust::domain;
};

class MixFleet {
public:
    // The mix outlives it, and nodes > 0.
    MixFleet(const FleetMix& mix, std::size_t nodes, std::uint64_t seed);

    std::size_t nodes() const { return nodes_; }
    std::int64_t gpus() const { return gpus_; }
    const std::vector<sched::TenantFacts>& tenants() const { return tenants_; }
    const std::vector<MixTeam>& teams() const { return teams_; }
    const std::vector<MixVariant>& variants() const { return variants_; }

    // One at a time: a large fleet is not held twice.
    sched::Node node(std::size_t number) const;
    const MixNodes& sort_of_node(std::size_t number) const;
    std::size_t zone_of_node(std::size_t number) const;
    std::size_t leaf_of_node(std::size_t number) const { return number / per_leaf_; }

    // A request that is not in the mix, of as many cores and as much memory as its lists say at least.
    MixVariant variant_of(const MixJobs& jobs) const;

    // The next job, by the weights of the mix; of a team that is not idle, by what it is expected to hold.
    MixDraw draw(Rng& rng) const;
    // A job of this team.
    MixDraw job_of(const MixTeam& team, std::size_t variant, Rng& rng) const;

private:
    // Numbers drawn by weight.
    struct Urn {
        std::vector<std::int64_t> upto;
        void add(std::int64_t weight) { upto.push_back((upto.empty() ? 0 : upto.back()) + weight); }
        std::size_t pick(Rng& rng) const;
    };

    void draw_tenants(Rng rng);
    void draw_variants(Rng rng);
    std::vector<sched::Want> wants_of(const MixJobs& jobs, Gpus fraction) const;
    MixVariant made(const MixJobs& jobs, Gpus fraction, std::int64_t cpu, ByteSize memory) const;
    void cut_up(sched::Node& node, const gpu::Board& board, Rng& rng) const;
    void soil(sched::Gpu& gpu, Rng& rng) const;

    const FleetMix* mix_;
    std::size_t nodes_;
    std::uint64_t seed_;
    std::size_t per_leaf_, per_rack_, per_zone_, per_site_;
    std::vector<std::uint8_t> sort_of_rack_;
    std::int64_t gpus_ = 0;
    std::map<std::string, std::unique_ptr<gpu::Geometry>> geometries_;  // by model; null: it cannot be cut
    std::vector<sched::TenantFacts> tenants_;
    std::vector<MixTeam> teams_;
    std::vector<MixVariant> variants_;
    std::vector<std::size_t> first_variant_;  // by sort of jobs
    Urn sorts_, asking_;                      // of jobs; of teams
};

}  // namespace bulkhead::replay
