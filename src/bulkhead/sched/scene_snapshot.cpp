// The objects of a fleet as a scene: policy is asked for contracts, leases are what runs.
#include <algorithm>
#include <map>
#include <utility>

#include "bulkhead/gpu/profile_name.hpp"
#include "bulkhead/policy/compile.hpp"
#include "bulkhead/policy/shipped_classes.hpp"
#include "bulkhead/sched/drawing.hpp"
#include "bulkhead/sched/guarantee_facts.hpp"
#include "bulkhead/sched/nearness.hpp"
#include "bulkhead/sched/need.hpp"
#include "bulkhead/sched/scene.hpp"

namespace bulkhead::sched {

namespace {

// A node that can do RDMA and lists no functions has not been looked at by its agent yet.
constexpr std::uint16_t usual_functions = 8;

class FleetDrawing {
public:
    FleetDrawing(const Snapshot& snapshot, Instant now) : snapshot_{snapshot} { scene_.now = now; }

    Scene draw() {
        relations_.update(snapshot_);
        draw_tenants();
        ask_policy();
        draw_nodes();
        for (const Asked& asked : asked_) draw_job(asked);
        draw_leases();
        return std::move(scene_);
    }

private:
    struct Asked {
        const GpuWorkload* workload = nullptr;
        Contract contract;
        std::vector<std::uint32_t> kinds;
    };

    const TenantClass* class_named(const std::string& name) const {
        if (const TenantClass* declared = snapshot_.find<TenantClass>(name)) return declared;
        for (const TenantClass& shipped : shipped_tenant_classes())
            if (shipped.metadata.name == name) return &shipped;
        return nullptr;
    }

    void draw_tenants() {
        for (const Tenant& tenant : snapshot_.tenants) {
            const TenantNo number = relations_.number(tenant.metadata.name);
            const Quota& quota = tenant.spec.quota;
            const TenantClass* sold = class_named(tenant.spec.tenantClass);
            TenantFacts facts{.name = tenant.metadata.name,
                              .domain = relations_.domain(number),
                              .guarantee = {},
                              .limit = quota.limit,
                              .weight = quota.weight,
                              .over_quota_priority = quota.overQuotaPriority,
                              .shares = quota.weight,
                              .hard = sold != nullptr && sold->spec.quota == QuotaModel::hard,
                              .grant = tenant.spec.priorityGrant,
                              .reclaim_after = quota.reclaimMinRuntime,
                              .preempt_after = quota.preemptMinRuntime};
            tell_guarantee(tenant, snapshot_, facts);
            if (!tenant.spec.parent.empty()) facts.parent = relations_.number(tenant.spec.parent);
            scene_.tenants.push_back(std::move(facts));
        }
    }

    void ask_policy() {
        const Compiler compiler{snapshot_, scene_.now};
        for (const GpuWorkload& workload : snapshot_.workloads) {
            if (workload.status && workload.status->deleting) continue;
            Decision decision = compiler.compile(workload);
            if (auto* contract = std::get_if<Contract>(&decision))
                asked_.push_back({&workload, std::move(*contract), {}});
            else
                scene_.refused.push_back(std::get<Refusal>(std::move(decision)));
        }
        // Nodes that the same contracts name are alike. Kind 0 is no node's: a contract that names none gets nowhere.
        std::map<std::string_view, std::vector<std::size_t>> named;
        for (std::size_t i = 0; i < asked_.size(); ++i)
            for (const std::string& node : asked_[i].contract.nodes) named[node].push_back(i);
        std::map<std::vector<std::size_t>, std::uint32_t> kinds;
        for (const GpuNode& node : snapshot_.nodes) {
            const std::vector<std::size_t>& by = named[node.metadata.name];
            const auto [kind, fresh] = kinds.try_emplace(by, static_cast<std::uint32_t>(kinds.size() + 1));
            kinds_.push_back(kind->second);
            if (fresh)
                for (const std::size_t i : by) asked_[i].kinds.push_back(kind->second);
        }
        for (Asked& asked : asked_)
            if (asked.kinds.empty()) asked.kinds.push_back(0);
    }

    static bool verified(const GpuNode& node, Capability capability) {
        return std::ranges::any_of(node.status.capabilities, [&](const DetectedCapability& each) {
            return each.name == capability && each.verifiedAt;
        });
    }

    // The slices that are listed, each up to the next; none listed: it is as it came.
    static Gpu gpu_of(const NodeGpus& said) {
        Gpu gpu = clean_gpu(said.model);
        if (!said.slices.empty()) gpu.available = 0;
        for (const GpuSlice& slice : said.slices) {
            std::int64_t end = gpu.slices;
            for (const GpuSlice& other : said.slices)
                if (other.start > slice.start) end = std::min(end, other.start);
            for (std::int64_t at = slice.start; at < end; ++at) {
                const auto bit = static_cast<std::uint8_t>(1u << at);
                if (slice.state == CleanState::available) gpu.available |= bit;
                if (slice.state == CleanState::quarantined) gpu.lost |= bit;
            }
        }
        if (!said.draining.empty()) {  // whatever of it is free
            gpu.available = 0;
            gpu.lost = gpu.all();
        }
        return gpu;
    }

    void draw_nodes() {
        for (std::size_t i = 0; i < snapshot_.nodes.size(); ++i) {
            const GpuNode& said = snapshot_.nodes[i];
            const GpuNodeStatus& status = said.status;
            Node node{.name = said.metadata.name,
                      .kind = kinds_[i],
                      .site = said.spec.site,
                      .zone = said.spec.zone,
                      .rack = said.spec.rack,
                      .leaf = said.spec.leaf,
                      .nvlink_domain = said.spec.nvlinkDomain,
                      .open = !said.spec.unschedulable && status.phase.value_or(NodePhase::ready) == NodePhase::ready,
                      .board_is_one = status.nvlink != NvLink::none && !verified(said, Capability::nvlink_partition),
                      .can_reboot = verified(said, Capability::verified_reboot),
                      .cpu_free = status.cpu,
                      .memory_free = status.memory.bytes};
            if (status.host) {
                node.host_busy =
                    status.host->state == CleanState::sanitizing || status.host->state == CleanState::quarantined;
                for (const std::string& tenant : status.host->usedBy)
                    if (snapshot_.find<Tenant>(tenant) != nullptr)
                        node.host_used_by.push_back(relations_.number(tenant));
            }
            for (const NodeGpus& group : status.gpus)
                node.gpus.insert(node.gpus.end(), static_cast<std::size_t>(group.count), gpu_of(group));
            if (node.gpus.size() > 64) node.gpus.resize(64);  // as many as the engine looks at
            for (std::size_t k = 0; k < status.drives.size(); ++k)
                if (status.drives[k].state == CleanState::available || is_leased(status.drives[k].lease)) {
                    node.drives.push_back(static_cast<std::uint16_t>(k));
                    node.drive_bytes.push_back(status.drives[k].size.bytes);
                }
            for (std::size_t k = 0; k < status.functions.size(); ++k)
                if (status.functions[k].state == CleanState::available || is_leased(status.functions[k].lease))
                    node.functions.push_back(static_cast<std::uint16_t>(k));
            node.closeness = closeness_of(status, node.gpus.size());
            const bool rdma = std::ranges::any_of(
                status.capabilities, [](const DetectedCapability& each) { return each.name == Capability::rdma; });
            for (std::uint16_t k = 0; rdma && status.functions.empty() && k < usual_functions; ++k)
                node.functions.push_back(k);
            numbers_.emplace(node.name, static_cast<NodeNo>(scene_.nodes.size()));
            scene_.nodes.push_back(std::move(node));
        }
    }

    bool is_leased(const std::string& lease) const {
        return !lease.empty() && snapshot_.find<GpuLease>(lease) != nullptr;
    }

    void draw_job(const Asked& asked) {
        const GpuWorkloadSpec& spec = asked.workload->spec;
        const Contract& contract = asked.contract;
        SceneJob job{.name = asked.workload->metadata.name, .need = need_of(spec, contract)};
        job.need.kinds = asked.kinds;
        for (const ExceptionInForce& exception : contract.exceptions)
            for (const std::string& tenant : exception.tenants)
                if (tenant != contract.tenant) job.need.excepted.push_back(relations_.number(tenant));
        job.job = {.key = std::ssize(scene_.jobs) + 1,
                   .tenant = relations_.number(contract.tenant),
                   .tasks = static_cast<std::int32_t>(spec.tasks),
                   .least = static_cast<std::int32_t>(spec.minTasks.value_or(0)),
                   .gpus = {(contract.gpus.units + spec.tasks - 1) / spec.tasks},
                   .all = contract.gpus,
                   .within = spec.topology.within,
                   .prefer = spec.topology.prefer,
                   .group = static_cast<std::int32_t>(spec.topology.groupTasks.value_or(0)),
                   .group_within = spec.topology.groupWithin,
                   .priority = contract.priority,
                   .preemptible = contract.preemptible,
                   .submitted = scene_.now,
                   .deadline = spec.deadline,
                   .duration = spec.duration,
                   .checkpoint = spec.checkpointInterval};
        const auto& status = asked.workload->status;
        if (status && status->phase == WorkloadPhase::pending && status->since) job.job.submitted = *status->since;
        const Tenant* tenant = snapshot_.find<Tenant>(contract.tenant);
        if (tenant != nullptr && tenant->status && tenant->status->phase != TenantPhase::active)
            job.held_back = Reason{"wait.frozen", {}};
        scene_.jobs.push_back(std::move(job));
    }

    // --- leases ---

    void draw_leases() {
        LeaseKey other = 0;
        for (const GpuLease& lease : snapshot_.leases) {
            const LeasePhase phase = lease.status ? lease.status->phase : LeasePhase::active;
            if (phase == LeasePhase::closed) continue;
            SceneJob* job = nullptr;
            for (SceneJob& each : scene_.jobs)
                if (each.name == lease.spec.workload && each.job.tenant == relations_.number(lease.spec.tenant) &&
                    each.runs.empty())
                    job = &each;
            if (job != nullptr && phase != LeasePhase::ending) {
                job->runs = tasks_of(lease.spec, *job);
                job->held_back.reset();
                if (lease.status)
                    job->started = lease.status->activeAt.value_or(lease.status->boundAt.value_or(scene_.now));
                else
                    job->started = scene_.now;
            }
            if (job != nullptr && !job->runs.empty()) continue;
            if (job != nullptr) job->held_back = Reason{"wait.stopping", {}};
            draw_stranger(lease.spec, --other, lease.spec.tasks.value_or(job != nullptr ? job->job.tasks : 1));
        }
    }

    // What a lease holds, by tasks; nothing when it does not come out even.
    std::vector<TaskSeat> tasks_of(const GpuLeaseSpec& lease, const SceneJob& job) const {
        std::vector<TaskSeat> tasks;
        for (const LeasedSlice& slice : lease.slices) {
            const NodeNo node = numbers_.at(slice.node);
            const std::vector<Gpu>& gpus = scene_.nodes[node].gpus;
            if (std::cmp_greater_equal(slice.gpu, gpus.size())) return {};
            const Gpu& gpu = gpus[static_cast<std::size_t>(slice.gpu)];
            const auto want = std::ranges::find(job.need.wants, gpu.model, &Want::model);
            if (want == job.need.wants.end()) return {};
            const Seat seat = seat_of(slice, gpu, lease.mechanism, std::min(slice.share, want->share));
            const bool joins = want->count > 1 && !tasks.empty() && tasks.back().node == node &&
                               std::cmp_less(tasks.back().gpus.size(), want->count);
            const std::int64_t here = joins ? 1 : std::max<std::int64_t>(slice.share / want->share, 1);
            for (std::int64_t k = 0; k < here; ++k) {
                if (!joins) tasks.push_back({.node = node});
                tasks.back().seats.push_back(seat);
                tasks.back().gpus.push_back(static_cast<std::uint16_t>(slice.gpu));
            }
        }
        if (std::cmp_greater(tasks.size(), job.job.tasks)) return {};
        const auto give = [&](const std::vector<LeasedDevice>& devices, std::vector<std::uint16_t> TaskSeat::* list) {
            for (const LeasedDevice& device : devices)
                for (TaskSeat& task : tasks)
                    if (scene_.nodes[task.node].name == device.node && (task.*list).empty()) {
                        (task.*list).push_back(static_cast<std::uint16_t>(device.index));
                        break;
                    }
        };
        give(lease.drives, &TaskSeat::drives);
        give(lease.functions, &TaskSeat::functions);
        return tasks;
    }

    static Seat seat_of(const LeasedSlice& slice, const Gpu& gpu, Mechanism mechanism, std::int64_t share) {
        Seat seat{.start = static_cast<std::uint8_t>(std::min<std::int64_t>(slice.start, gpu.slices - 1)),
                  .size = gpu.slices,
                  .profile = slice.profile,
                  .share = share,
                  .mechanism = mechanism};
        if (!slice.profile.empty() && gpu.board != nullptr)
            if (const auto choice = gpu::find_profile(*gpu.board, slice.profile))
                seat.size = static_cast<std::uint8_t>(gpu.board->profiles[choice->index].memory_slices);
        seat.size = std::min(seat.size, static_cast<std::uint8_t>(gpu.slices - seat.start));
        return seat;
    }

    // It sits there, and nobody here decides about it.
    void draw_stranger(const GpuLeaseSpec& lease, LeaseKey key, std::int64_t tasks) {
        if (snapshot_.find<Tenant>(lease.tenant) == nullptr) return;
        // Tasks that share a GPU hold one share of it, as many times as large.
        const auto share_of = [&](std::string_view node) {
            std::int64_t sum = 0;
            for (const LeasedSlice& slice : lease.slices) sum += node.empty() || slice.node == node ? slice.share : 0;
            return sum;
        };
        for (const LeasedSlice& slice : lease.slices) {
            Node& node = scene_.nodes[numbers_.at(slice.node)];
            if (std::cmp_greater_equal(slice.gpu, node.gpus.size())) continue;
            Gpu& gpu = node.gpus[static_cast<std::size_t>(slice.gpu)];
            Seat seat = seat_of(slice, gpu, lease.mechanism, slice.share);
            seat.lease = key;
            gpu.available &= static_cast<std::uint8_t>(~bits_of(seat));
            gpu.held |= bits_of(seat);
            gpu.seats.push_back(std::move(seat));
            if (std::ranges::find(node.residents, key, &Resident::lease) != node.residents.end()) continue;
            node.residents.push_back({.lease = key,
                                      .tenant = relations_.number(lease.tenant),
                                      .node = lease.sharing.node,
                                      .gpu = lease.sharing.gpu,
                                      .instance = lease.sharing.instance,
                                      .nvlink = lease.sharing.nvlink,
                                      .on_host_kernel = lease.tier < Tier::vm,
                                      .tasks = static_cast<std::uint16_t>(
                                          std::max<std::int64_t>(tasks * share_of(slice.node) / share_of({}), 1))});
        }
        const auto without = [&](const std::vector<LeasedDevice>& devices, bool drives) {
            for (const LeasedDevice& device : devices) {
                Node& node = scene_.nodes[numbers_.at(device.node)];
                std::vector<std::uint16_t>& list = drives ? node.drives : node.functions;
                const auto at = std::ranges::find(list, device.index);
                if (at == list.end()) continue;
                if (drives) node.drive_bytes.erase(node.drive_bytes.begin() + (at - list.begin()));
                list.erase(at);
            }
        };
        without(lease.drives, true);
        without(lease.functions, false);
    }

    const Snapshot& snapshot_;
    Relations relations_;
    Scene scene_;
    std::vector<Asked> asked_;
    std::vector<std::uint32_t> kinds_;  // of each node
    std::map<std::string, NodeNo, std::less<>> numbers_;
};

}  // namespace

Scene scene_of(const Snapshot& snapshot, Instant now) { return FleetDrawing{snapshot, now}.draw(); }

}  // namespace bulkhead::sched
