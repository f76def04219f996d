#include "bulkhead/sched/exclusivity.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "bulkhead/sched/engine_state.hpp"

namespace bulkhead::sched {

namespace {

std::int64_t sum_of(std::span<const std::int64_t> all) {
    std::int64_t sum = 0;
    for (const std::int64_t each : all) sum += each;
    return sum;
}

}  // namespace

std::vector<std::vector<std::int64_t>> kept_parts(std::span<const NodeTenure> tenures,
                                                  std::span<const std::int64_t> sound) {
    std::vector<std::vector<std::int64_t>> out(tenures.size(), std::vector<std::int64_t>(sound.size()));
    const bool whole_node = std::ranges::any_of(tenures, &NodeTenure::keeps_node);
    for (std::size_t gpu = 0; gpu < sound.size(); ++gpu) {
        std::int64_t rest = sound[gpu];
        for (const NodeTenure& each : tenures) rest -= each.leased[gpu];
        if (rest <= 0) continue;
        const auto weight = [&](const NodeTenure& each) -> std::int64_t {
            if (whole_node) return each.keeps_node ? std::max<std::int64_t>(sum_of(each.leased), 1) : 0;
            return each.keeps_gpu ? each.leased[gpu] : 0;
        };
        std::int64_t all = 0;
        for (const NodeTenure& each : tenures) all += weight(each);
        if (all == 0) continue;
        std::int64_t before = 0;
        for (std::size_t i = 0; i < tenures.size(); ++i) {
            const std::int64_t upto = before + weight(tenures[i]);
            const auto part = [&](std::int64_t of) {
                return static_cast<std::int64_t>(static_cast<Wide>(rest) * static_cast<Wide>(of) /
                                                 static_cast<Wide>(all));
            };
            out[i][gpu] = part(upto) - part(before);
            before = upto;
        }
    }
    return out;
}

// --- in the engine ---------------------------------------------------------------------------------------------------

// Gpus::units of the GPU that are not lost.
std::int64_t FleetIndex::sound_units(NodeNo node, std::size_t gpu) const {
    const Cell& cell = cells_[nodes_[node].cells + gpu];
    const CellModel& model = models_[cell.model];
    return gpu_unit * (model.slices - std::popcount(cell.lost)) / model.slices;
}

std::int64_t FleetIndex::leased_thousandths(SeatNo seat, std::size_t gpu) const {
    const SeatRec& rec = seats_[seat];
    if ((rec.gpus >> gpu & 1u) == 0 || gpu >= nodes_[rec.node].gpus) return 0;
    return leased_of(rec, cells_[nodes_[rec.node].cells + gpu]);
}

bool Engine::State::keeps(const Job& job) const {
    const TaskNeed& need = fleet.shape(job.shape).need;
    return need.keeps_node || need.keeps_gpu;
}

std::vector<Engine::State::Kept> Engine::State::kept_at(NodeNo node) const {
    const auto gpus = static_cast<std::size_t>(fleet.gpus(node));
    std::vector<NodeTenure> tenures;
    std::vector<Kept> out;
    std::vector<std::vector<std::int64_t>> weights;  // thousandths, by GPU
    std::vector<std::int64_t> tasks;
    bool any = false;
    for (SeatNo s = fleet.first_seat(node); s != nil; s = fleet.seat(s).next_here) {
        const SeatRec& seat = fleet.seat(s);
        if (seat.promised) continue;
        const auto known = std::ranges::find_if(
            out, [&](const Kept& each) { return each.job == seat.job && each.tenant == seat.tenant; });
        const auto at = static_cast<std::size_t>(known - out.begin());
        if (known == out.end()) {
            out.push_back({.tenant = seat.tenant, .job = seat.job});
            tenures.push_back({.leased = std::vector<std::int64_t>(gpus)});
            weights.emplace_back(gpus);
            tasks.push_back(0);
            if (seat.shape != nil) {
                tenures[at].keeps_node = fleet.shape(seat.shape).need.keeps_node;
                tenures[at].keeps_gpu = fleet.shape(seat.shape).need.keeps_gpu;
                any = any || tenures[at].keeps_node || tenures[at].keeps_gpu;
            }
        }
        tasks[at] += seat.tasks;
        for (std::size_t gpu = 0; gpu < gpus; ++gpu) weights[at][gpu] += fleet.leased_thousandths(s, gpu);
    }
    if (!any) return {};
    // As quota counts it: an instance by its compute slices.
    for (std::size_t i = 0; i < out.size(); ++i) {
        const std::int64_t all = sum_of(weights[i]);
        const std::int64_t leased =
            out[i].job == nil ? all * (gpu_unit / 1000) : jobs[out[i].job].job.counted(tasks[i]);
        for (std::size_t gpu = 0; all > 0 && gpu < gpus; ++gpu)
            tenures[i].leased[gpu] = (leased * weights[i][gpu] + all - 1) / all;
    }
    std::vector<std::int64_t> sound(gpus);
    for (std::size_t gpu = 0; gpu < gpus; ++gpu) sound[gpu] = fleet.sound_units(node, gpu);
    const auto parts = kept_parts(tenures, sound);
    const bool whole_node = std::ranges::any_of(tenures, &NodeTenure::keeps_node);
    for (std::size_t i = 0; i < out.size(); ++i) {
        out[i].units = sum_of(parts[i]);
        out[i].keeper = tenures[i].keeps_node || (!whole_node && tenures[i].keeps_gpu);
    }
    std::erase_if(out, [](const Kept& each) { return !each.keeper; });
    return out;
}

void Engine::State::recount_kept(NodeNo node) {
    if (!keeping) return;
    const auto count = [&](const std::vector<Kept>& parts, std::int64_t sign) {
        for (const Kept& part : parts)
            for (const TenantNo holder : tenants[part.tenant].line) tenants[holder].kept += sign * part.units;
    };
    const auto known = kept_on.find(node);
    if (known != kept_on.end()) count(known->second, -1);
    std::vector<Kept> now = kept_at(node);
    count(now, 1);
    if (now.empty() && known != kept_on.end())
        kept_on.erase(known);
    else if (!now.empty())
        kept_on[node] = std::move(now);
}

void Engine::State::recount_all_kept() {
    if (!keeping) return;
    for (TenantRec& tenant : tenants) tenant.kept = 0;
    kept_on.clear();
    for (const JobNo job : running) {
        if (!keeps(jobs[job].job)) continue;
        for (SeatNo s = jobs[job].seats; s != nil; s = fleet.seat(s).next_of_job)
            if (!kept_on.contains(fleet.seat(s).node)) recount_kept(fleet.seat(s).node);
    }
}

// On nodes that nothing else uses, as few as the tasks fill. The smallest node that could serve it says what it keeps
// at least, the largest what it may keep.
std::int64_t Engine::State::would_keep(const Job& job, std::int64_t tasks, bool at_most) const {
    if (!keeping || !keeps(job)) return 0;
    const std::int64_t leased = job.counted(tasks);
    std::int64_t unit = gpu_unit;
    if (fleet.shape(job.shape).need.keeps_node) {
        auto& known = node_sizes[job.shape];
        if (known.generation != generation) {
            known = {.generation = generation};
            for (NodeNo node = 0; node < fleet.nodes(); ++node) {
                if (!fleet.able(node, job.shape)) continue;
                std::int64_t size = 0;
                for (std::size_t gpu = 0; std::cmp_less(gpu, fleet.gpus(node)); ++gpu)
                    size += fleet.sound_units(node, gpu);
                if (size == 0) continue;
                known.least = known.least == 0 ? size : std::min(known.least, size);
                known.most = std::max(known.most, size);
            }
        }
        unit = at_most ? known.most : known.least;
        if (unit == 0) return 0;
    }
    return (leased + unit - 1) / unit * unit - leased;
}

// Nodes on which its own tenants keep capacity: there its tasks may take the place of what is kept, and the limit
// counts no more than before. Of nodes where only GPUs are kept, limits_allow() says whether they do.
std::vector<FleetIndex::Portion> Engine::State::room_in_own(const Job& job, std::int32_t tasks) const {
    std::vector<std::vector<FleetIndex::Portion>> bins(fleet.domain_count(job.within));
    for (const auto& [node, parts] : kept_on) {
        const bool own = std::ranges::all_of(parts, [&](const Kept& part) {
            return std::ranges::all_of(tenants[job.tenant].line, [&](TenantNo holder) {
                const std::vector<TenantNo>& theirs = tenants[part.tenant].line;
                return !tenants[holder].most() || std::ranges::find(theirs, holder) != theirs.end();
            });
        });
        if (!own) continue;
        if (const auto takes = static_cast<std::int32_t>(fleet.capacity(node, job.shape, job.tenant)); takes > 0)
            bins[fleet.domain_of(node, job.within)].push_back({node, takes});
    }
    for (std::vector<FleetIndex::Portion>& bin : bins)
        if (auto where = fleet.arrange(job, tasks, bin); !where.empty()) return where;
    return {};
}

// By trying: how much is kept depends on where the tasks sit.
bool Engine::State::limits_allow(JobNo number, std::span<const FleetIndex::Portion> where) {
    if (!keeping) return true;
    const Job job = jobs[number].job;
    const std::vector<TenantNo>& line = tenants[job.tenant].line;
    if (std::ranges::none_of(line, [&](TenantNo holder) { return tenants[holder].most().has_value(); })) return true;
    std::vector<std::int64_t> more(tenants.size());
    const auto count = [&](NodeNo node, std::int64_t sign) {
        for (const Kept& part : kept_at(node))
            for (const TenantNo holder : tenants[part.tenant].line) more[holder] += sign * part.units;
    };
    std::int64_t tasks = 0;
    for (const FleetIndex::Portion& portion : where) {
        tasks += portion.tasks;
        count(portion.node, -1);
        std::vector<SeatNo> tried;
        tried.reserve(static_cast<std::size_t>(portion.tasks));
        for (std::int32_t i = 0; i < portion.tasks; ++i) tried.push_back(fleet.take(portion.node, job, number));
        count(portion.node, 1);
        for (const SeatNo seat : tried) fleet.release(seat, true);
    }
    const std::int64_t asked = job.counted(tasks);
    const bool allowed =
        std::ranges::none_of(line, [&](TenantNo holder) { return tenants[holder].would_exceed(asked + more[holder]); });
    if (!allowed) {
        jobs[number].keeps_too_much = more[job.tenant];
        jobs[number].keeps_in = generation;
    }
    return allowed;
}

// Where the best place would keep too much: nodes that its tenants keep already, else the smallest nodes that do.
std::vector<FleetIndex::Portion> Engine::State::room_within_limits(JobNo number, std::int32_t tasks) {
    const Job job = jobs[number].job;
    if (auto own = room_in_own(job, tasks); !own.empty() && limits_allow(number, own)) return own;
    if (!fleet.shape(job.shape).need.keeps_node) return {};
    std::map<std::int64_t, std::vector<FleetIndex::Portion>> by_size;
    for (NodeNo node = 0; node < fleet.nodes(); ++node)
        if (const auto takes = static_cast<std::int32_t>(fleet.capacity(node, job.shape, job.tenant)); takes > 0)
            by_size[fleet.gpus(node)].push_back({node, takes});
    std::vector<std::vector<FleetIndex::Portion>> bins(fleet.domain_count(job.within));
    for (const auto& [size, nodes] : by_size) {
        for (const FleetIndex::Portion& each : nodes) bins[fleet.domain_of(each.node, job.within)].push_back(each);
        for (const std::vector<FleetIndex::Portion>& bin : bins) {
            std::vector<FleetIndex::Portion> room = bin;
            if (auto where = fleet.arrange(job, tasks, room); !where.empty() && limits_allow(number, where))
                return where;
        }
    }
    return {};
}

std::optional<Reason> Engine::State::keeps_over_limit(const Job& job, std::int64_t tasks, std::int64_t keeps) const {
    const std::int64_t asked = job.counted(tasks);
    for (const TenantNo number : tenants[job.tenant].line) {
        const TenantRec& tenant = tenants[number];
        if (tenant.kept + keeps == 0 || !tenant.would_exceed(asked + keeps)) continue;
        return Reason{number == job.tenant ? "wait.exclusive" : "wait.parent-exclusive",
                      {{"asked", print(Gpus{asked})},
                       {"keeps", print(Gpus{std::max<std::int64_t>(keeps, 0)})},
                       {"held", print(Gpus{tenant.counts() - tenant.kept})},
                       {"kept", print(Gpus{tenant.kept})},
                       {"limit", print(Gpus{*tenant.most()})}}};
    }
    return std::nullopt;
}

// What is kept is given up by ending the work that keeps it; other work on the node stays. Jobs that keep the same
// node go together: while one of them is left, all of the node stays kept.
void Engine::State::give_up_kept(TenantNo limited, std::int64_t most, Statement& statement, Instant now) {
    const auto below = [&](TenantNo tenant) {
        const std::vector<TenantNo>& line = tenants[tenant].line;
        return std::ranges::find(line, limited) != line.end();
    };
    std::map<JobNo, JobNo> leader;  // of each job that keeps something, the first of its group
    const auto group_of = [&](JobNo job) {
        while (leader.at(job) != job) job = leader.at(job);
        return job;
    };
    std::map<JobNo, std::int64_t> keeps_of;
    for (const auto& [node, parts] : kept_on) {
        JobNo first = nil;
        for (const Kept& part : parts) {
            if (part.job == nil) continue;
            leader.try_emplace(part.job, part.job);
            keeps_of[part.job] += part.units;
            if (first != nil) leader[group_of(part.job)] = group_of(first);
            first = part.job;
        }
    }
    struct Group {
        std::vector<JobNo> jobs;
        std::int64_t frees = 0, lost = 0, key = 0;
        bool may_go = true, guaranteed = false;  // work of a tenant below the limited one, within its guarantee
    };
    std::map<JobNo, Group> groups;
    for (const auto& [job, unused] : leader) {
        const JobRec& rec = jobs[job];
        Group& group = groups[group_of(job)];
        group.may_go = group.may_go && below(rec.job.tenant) && rec.phase == JobRec::Phase::running &&
                       rec.job.preemptible && now - rec.started >= least_run_under_limit(rec.job.tenant, limited);
        group.frees += rec.holds() + keeps_of[job];
        group.lost += lost_by(rec, now);
        group.guaranteed = group.guaranteed || is_guaranteed_below(rec.job.tenant, limited);
        group.key = group.jobs.empty() ? rec.job.key : std::min(group.key, rec.job.key);
        group.jobs.push_back(job);
    }
    std::vector<const Group*> order;
    for (const auto& [first, group] : groups)
        if (group.may_go) order.push_back(&group);
    std::ranges::sort(order, {},
                      [](const Group* group) { return std::tuple{group->guaranteed, group->lost, group->key}; });
    std::int64_t excess = tenants[limited].has() + tenants[limited].kept - most;
    std::vector<const Group*> go;
    for (const Group* group : order) {
        if (excess <= 0) break;
        go.push_back(group);
        excess -= group->frees;
    }
    // Guaranteed work stays if the others are enough, and the cheaper ones beside a dearer one that frees more.
    for (const bool guaranteed : {true, false})
        std::erase_if(go, [&](const Group* group) {
            if (group->guaranteed != guaranteed || excess + group->frees > 0) return false;
            excess += group->frees;
            return true;
        });
    for (const Group* group : go)
        for (const JobNo job : group->jobs) {
            Eviction eviction{.workload = jobs[job].job.key,
                              .action = Action::limit,
                              .tasks = jobs[job].placed,
                              .lost_gpu_ms = lost_by(jobs[job], now),
                              .nodes = {},
                              .reasons = {{"evict.exclusive",
                                           {{"held", print(Gpus{tenants[limited].has()})},
                                            {"kept", print(Gpus{tenants[limited].kept})},
                                            {"limit", print(Gpus{most})}}}}};
            for (SeatNo seat = jobs[job].seats; seat != nil; seat = fleet.seat(seat).next_of_job)
                eviction.nodes.push_back(fleet.seat(seat).node);
            std::ranges::sort(eviction.nodes);
            const auto twice = std::ranges::unique(eviction.nodes);
            eviction.nodes.erase(twice.begin(), twice.end());
            statement.evict.push_back(std::move(eviction));
        }
    for (const Group* group : go)
        for (const JobNo job : group->jobs) {
            set_ending(job);
            jobs[job].evicted_in = generation;
        }
    if (excess > 0)
        statement.over_limit.push_back({.tenant = limited,
                                        .held = Gpus{tenants[limited].has()},
                                        .limit = Gpus{most},
                                        .fixed = Gpus{tenants[limited].pinned},
                                        .kept = Gpus{tenants[limited].kept}});
    dues_stale = dues_stale || !go.empty();
}

}  // namespace bulkhead::sched
