#include "bulkhead/replay/mix_fleet.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "bulkhead/gpu/profile_name.hpp"

namespace bulkhead::replay {

namespace {

// Independent numbers for independent things, whatever the order in which they are asked for.
Rng rng_for(std::uint64_t seed, std::uint64_t what, std::uint64_t number) {
    return Rng{seed * 0x9E3779B97F4A7C15u ^ what << 56 ^ number};
}
constexpr std::uint64_t for_tenants = 1, for_racks = 2, for_nodes = 3, for_variants = 4;

std::int64_t between(Rng& rng, std::int64_t low, std::int64_t high, std::int64_t step) {
    return low + step * rng.between(0, (high - low) / step);
}

bool percent(Rng& rng, std::int64_t of_a_hundred) { return rng.below(100) < static_cast<std::uint64_t>(of_a_hundred); }

SharingScope scope_of(TeamTrust trust) {
    using enum PeerTrust;
    switch (trust) {
        case TeamTrust::domain:
            return {same_domain, same_domain, same_domain, same_domain};
        case TeamTrust::alone:
            return {same_tenant, same_tenant, same_tenant, same_tenant};
        case TeamTrust::vm:
            break;
    }
    return {distrusting, distrusting, same_tenant, same_tenant};
}

Mechanism mechanism_of(const MixJobs& jobs) {
    if (jobs.gpus) return Mechanism::whole;
    return jobs.profile.empty() ? Mechanism::mps : Mechanism::mig;
}

}  // namespace

std::size_t MixFleet::Urn::pick(Rng& rng) const {
    const auto drawn = static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(upto.back())));
    return static_cast<std::size_t>(std::ranges::upper_bound(upto, drawn) - upto.begin());
}

MixFleet::MixFleet(const FleetMix& mix, std::size_t nodes, std::uint64_t seed)
    : mix_{&mix},
      nodes_{nodes},
      seed_{seed},
      per_leaf_{static_cast<std::size_t>(mix.topology.nodesPerLeaf)},
      per_rack_{per_leaf_ * static_cast<std::size_t>(mix.topology.leavesPerRack)},
      per_zone_{per_rack_ * static_cast<std::size_t>(mix.topology.racksPerZone)},
      per_site_{per_zone_ * static_cast<std::size_t>(mix.topology.zonesPerSite)} {
    Urn sorts;
    for (const MixNodes& sort : mix.nodes) {
        sorts.add(sort.weight);
        const auto board = gpu::find_board(sort.model);
        geometries_[sort.model] = board ? std::make_unique<gpu::Geometry>(**board) : nullptr;
    }
    for (std::size_t rack = 0; rack * per_rack_ < nodes; ++rack) {
        Rng rng = rng_for(seed, for_racks, rack);
        const std::size_t sort = sorts.pick(rng);
        sort_of_rack_.push_back(static_cast<std::uint8_t>(sort));
        const std::size_t here = std::min(per_rack_, nodes - rack * per_rack_);
        gpus_ += static_cast<std::int64_t>(here) * mix.nodes[sort].gpus;
    }
    draw_tenants(rng_for(seed, for_tenants, 0));
    draw_variants(rng_for(seed, for_variants, 0));
}

// --- tenants ---------------------------------------------------------------------------------------------------------

void MixFleet::draw_tenants(Rng rng) {
    const MixTenants& asked = mix_->tenants;
    std::vector<std::int64_t> weights;
    std::int64_t all = 0;
    for (std::int64_t d = 0; d < asked.departments; ++d) {
        weights.push_back(rng.between(1, 4));
        all += weights.back();
    }
    std::uint32_t domain = 0;
    std::int64_t in_domain = 0;
    const auto fill_in = [&](sched::TenantFacts& facts, std::int64_t weight, Gpus guarantee) {
        facts.guarantee = guarantee;
        facts.weight = weight;
        facts.shares = weight;
        facts.over_quota_priority = rng.between(0, 2);
        facts.usage = rng.between(0, 1'000'000);
        facts.seniority = static_cast<std::int64_t>(tenants_.size());
    };
    const auto hire = [&](sched::TenantFacts facts) {
        MixTeam team{.tenant = static_cast<sched::TenantNo>(tenants_.size())};
        if (percent(rng, asked.vm))
            team.trust = TeamTrust::vm;
        else if (percent(rng, asked.alone))
            team.trust = TeamTrust::alone;
        else if (in_domain++ % asked.domainOf == 0)
            ++domain;
        facts.domain = team.trust == TeamTrust::domain ? domain : 0;
        team.idle = percent(rng, asked.idle);
        facts.hard = !team.idle && percent(rng, asked.hard);
        teams_.push_back(team);
        tenants_.push_back(std::move(facts));
    };
    for (std::int64_t d = 0; d < asked.departments; ++d) {
        const std::int64_t weight = weights[static_cast<std::size_t>(d)];
        const Gpus its = Gpus::of_thousandths(gpus_ * 10 * asked.guaranteed * weight / all);
        in_domain = 0;  // a domain does not reach into another department
        sched::TenantFacts department{.name = fmt::format("d{:03}", d)};
        fill_in(department, weight, its);
        if (asked.teams == 0) {
            hire(std::move(department));
            continue;
        }
        const std::size_t parent = tenants_.size();
        tenants_.push_back(std::move(department));
        std::vector<std::int64_t> parts;
        std::int64_t sum = 0;
        for (std::int64_t t = 0; t < asked.teams; ++t) {
            parts.push_back(rng.between(1, 4));
            sum += parts.back();
        }
        for (std::int64_t t = 0; t < asked.teams; ++t) {
            const std::int64_t part = parts[static_cast<std::size_t>(t)];
            sched::TenantFacts facts{.name = fmt::format("d{:03}-t{:03}", d, t), .parent = parent};
            fill_in(facts, part, Gpus::of_thousandths(its.thousandths() * part / sum));
            hire(std::move(facts));
        }
    }
    // Of a few teams, too, somebody works and somebody is idle if some are to be.
    if (std::ranges::all_of(teams_, &MixTeam::idle)) teams_.front().idle = false;
    if (asked.idle > 0 && teams_.size() > 1 && std::ranges::none_of(teams_, &MixTeam::idle)) {
        teams_.back().idle = true;
        tenants_[teams_.back().tenant].hard = false;
    }

    // How much each is expected to hold while the fleet is full: those with a hard guarantee a little less than that,
    // the others what is left, by their guarantees.
    const auto guarantee = [&](const MixTeam& team) { return tenants_[team.tenant].guarantee.thousandths() + 1; };
    std::int64_t hard = 0, others = 0;
    for (const MixTeam& team : teams_)
        if (!team.idle) (tenants_[team.tenant].hard ? hard : others) += guarantee(team);
    const double left = static_cast<double>(gpus_ * mix_->full.thousandths()) - 0.9 * static_cast<double>(hard);
    const double each = others > 0 ? std::max(left / static_cast<double>(others), 0.01) : 1;
    for (const MixTeam& team : teams_) {
        const auto size = static_cast<double>(guarantee(team));
        const double expected = tenants_[team.tenant].hard ? 0.9 * size : each * size;
        asking_.add(team.idle ? 0 : 1 + static_cast<std::int64_t>(expected));
    }
}

// --- nodes -----------------------------------------------------------------------------------------------------------

const MixNodes& MixFleet::sort_of_node(std::size_t number) const {
    return mix_->nodes[sort_of_rack_[number / per_rack_]];
}

std::size_t MixFleet::zone_of_node(std::size_t number) const { return number / per_zone_; }

sched::Node MixFleet::node(std::size_t number) const {
    const MixNodes& sort = sort_of_node(number);
    Rng rng = rng_for(seed_, for_nodes, number);
    sched::Node node{.name = fmt::format("n{:06}", number),
                     .kind = sort_of_rack_[number / per_rack_],
                     .site = fmt::format("s{}", number / per_site_),
                     .zone = fmt::format("z{}", number / per_zone_),
                     .rack = fmt::format("r{}", number / per_rack_),
                     .leaf = fmt::format("l{}", number / per_leaf_),
                     .nvlink_domain = fmt::format("n{}", number),
                     .open = true,
                     .board_is_one = sort.boardIsOne,
                     .can_reboot = true,
                     .cpu_free = sort.cpu,
                     .memory_free = sort.memory.bytes};
    const gpu::Geometry* geometry = geometries_.at(sort.model).get();
    sched::Gpu gpu{.model = sort.model};
    if (geometry != nullptr) {
        gpu.board = &geometry->board();
        gpu.slices = static_cast<std::uint8_t>(gpu.board->memory_slices);
    }
    gpu.available = gpu.all();
    node.gpus.assign(static_cast<std::size_t>(sort.gpus), gpu);
    if (geometry != nullptr && percent(rng, sort.cut)) cut_up(node, geometry->board(), rng);
    for (sched::Gpu& each : node.gpus)
        if (each.seats.empty()) soil(each, rng);
    return node;
}

// Instances of one team on about half of the GPUs, where a driver could have put them.
void MixFleet::cut_up(sched::Node& node, const gpu::Board& board, Rng& rng) const {
    const gpu::Geometry& geometry = *geometries_.at(node.gpus.front().model);
    const MixTeam& team = teams_[asking_.pick(rng)];
    const SharingScope scope = scope_of(team.trust);
    sched::LeaseKey lease = 0;
    for (sched::Gpu& gpu : node.gpus) {
        if (rng.chance(500)) continue;
        gpu::Occupancy now;
        for (std::int64_t left = rng.between(1, 3); left > 0; --left) {
            const std::size_t profile = rng.below(board.profiles.size());
            const gpu::Starts starts = geometry.fit(now, profile);
            if (!board.profiles[profile].plain() || starts.empty()) continue;
            std::size_t skip = rng.below(starts.count());
            for (const unsigned start : starts) {
                if (skip-- != 0) continue;
                const gpu::Profile& cut = board.profiles[profile];
                now = now.with(cut, start);
                gpu.seats.push_back({.lease = --lease,
                                     .start = static_cast<std::uint8_t>(start),
                                     .size = static_cast<std::uint8_t>(cut.memory_slices),
                                     .profile = std::string{cut.name},
                                     .share = 1000,
                                     .mechanism = Mechanism::mig});
                node.residents.push_back({.lease = lease,
                                          .tenant = team.tenant,
                                          .node = scope.node,
                                          .gpu = scope.gpu,
                                          .instance = scope.instance,
                                          .nvlink = scope.nvlink,
                                          .on_host_kernel = team.trust != TeamTrust::vm});
                break;
            }
        }
        gpu.held = now.slices();
        gpu.available = static_cast<std::uint8_t>(gpu.all() & ~gpu.held);
    }
    if (team.trust != TeamTrust::vm && !node.residents.empty()) node.host_used_by.push_back(team.tenant);
}

void MixFleet::soil(sched::Gpu& gpu, Rng& rng) const {
    const auto drawn = static_cast<std::int64_t>(rng.below(1000));
    const bool dirty = drawn < mix_->dirty.thousandths();
    const bool lost = !dirty && drawn < (mix_->dirty + mix_->quarantined).thousandths();
    if (!dirty && !lost) return;
    // All of it, or one run of slices.
    std::uint8_t mask = gpu.all();
    if (gpu.slices > 1 && rng.chance(500)) {
        const auto start = static_cast<unsigned>(rng.below(gpu.slices));
        const auto size = static_cast<unsigned>(1 + rng.below(gpu.slices - start));
        mask = static_cast<std::uint8_t>(((1u << size) - 1u) << start);
    }
    gpu.available = static_cast<std::uint8_t>(gpu.available & ~mask);
    if (lost) gpu.lost = mask;
}

// --- work ------------------------------------------------------------------------------------------------------------

std::vector<sched::Want> MixFleet::wants_of(const MixJobs& jobs, Gpus fraction) const {
    std::vector<sched::Want> wants;
    for (const MixNodes& nodes : mix_->nodes) {
        if (!jobs.model.empty() && nodes.model != jobs.model) continue;
        if (nodes.gpus < jobs.gpus.value_or(1)) continue;
        if (std::ranges::find(wants, nodes.model, &sched::Want::model) != wants.end()) continue;
        sched::Want want{.model = nodes.model};
        if (jobs.gpus) {
            want.count = *jobs.gpus;
        } else if (jobs.profile.empty()) {
            want.form = sched::Want::Form::share;
            want.share = fraction.thousandths();
        } else {
            const gpu::Geometry* geometry = geometries_.at(nodes.model).get();
            if (geometry == nullptr) continue;
            const auto choice = gpu::find_profile(geometry->board(), jobs.profile);
            if (!choice) continue;
            const gpu::Profile& profile = geometry->board().profiles[choice->index];
            want.form = sched::Want::Form::instance;
            want.geometry = geometry;
            want.profile = choice->index;
            want.size = static_cast<std::uint8_t>(profile.memory_slices);
            want.profile_name = gpu::print(geometry->board(), *choice);
        }
        wants.push_back(std::move(want));
    }
    return wants;
}

MixVariant MixFleet::made(const MixJobs& jobs, Gpus fraction, std::int64_t cpu, ByteSize memory) const {
    MixVariant variant;
    sched::TaskNeed need{.wants = wants_of(jobs, fraction),
                         .any_model = jobs.model.empty(),
                         .mechanism = mechanism_of(jobs),
                         .cpu = cpu,
                         .memory = memory.bytes};
    if (jobs.gpus)
        variant.gpus = Gpus::whole(*jobs.gpus);
    else if (jobs.profile.empty())
        variant.gpus = fraction;
    else
        variant.gpus = {gpu_unit * need.wants.front().size / need.wants.front().geometry->board().memory_slices};
    for (std::size_t trust = 0; trust < team_trusts; ++trust) {
        need.sharing = scope_of(static_cast<TeamTrust>(trust));
        need.on_host_kernel = static_cast<TeamTrust>(trust) != TeamTrust::vm;
        variant.needs[trust] = need;
    }
    return variant;
}

MixVariant MixFleet::variant_of(const MixJobs& jobs) const {
    return made(jobs, jobs.fraction.empty() ? Gpus{} : jobs.fraction.front(), jobs.cpu.empty() ? 0 : jobs.cpu.front(),
                jobs.memory.empty() ? ByteSize{} : jobs.memory.front());
}

void MixFleet::draw_variants(Rng rng) {
    constexpr std::int64_t mib = std::int64_t{1} << 20;
    for (std::size_t sort = 0; sort < mix_->jobs.size(); ++sort) {
        const MixJobs& jobs = mix_->jobs[sort];
        sorts_.add(jobs.weight);
        first_variant_.push_back(variants_.size());
        for (std::int64_t i = 0; i < jobs.variants; ++i) {
            Gpus fraction;
            if (!jobs.fraction.empty())
                fraction = Gpus::of_thousandths(
                    between(rng, jobs.fraction.front().thousandths(), jobs.fraction.back().thousandths(), 10));
            const std::int64_t cpu = jobs.cpu.empty() ? 0 : between(rng, jobs.cpu.front(), jobs.cpu.back(), 1);
            ByteSize memory;
            if (!jobs.memory.empty()) memory = {between(rng, jobs.memory.front().bytes, jobs.memory.back().bytes, mib)};
            MixVariant variant = made(jobs, fraction, cpu, memory);
            variant.sort = sort;
            variants_.push_back(std::move(variant));
        }
    }
    first_variant_.push_back(variants_.size());
}

MixDraw MixFleet::draw(Rng& rng) const {
    const std::size_t sort = sorts_.pick(rng), first = first_variant_[sort];
    return job_of(teams_[asking_.pick(rng)], first + rng.below(first_variant_[sort + 1] - first), rng);
}

MixDraw MixFleet::job_of(const MixTeam& team, std::size_t variant, Rng& rng) const {
    const MixJobs& jobs = mix_->jobs[variants_[variant].sort];
    MixDraw draw{.variant = variant, .trust = team.trust};
    draw.job.tenant = team.tenant;
    draw.job.tasks = static_cast<std::int32_t>(jobs.tasks);
    draw.job.gpus = variants_[variant].gpus;
    draw.job.within = jobs.within;
    draw.job.group = static_cast<std::int32_t>(jobs.group);
    draw.job.group_within = jobs.groupWithin;
    draw.job.priority = jobs.priority;
    draw.job.preemptible = percent(rng, jobs.preemptible);
    return draw;
}

}  // namespace bulkhead::replay
