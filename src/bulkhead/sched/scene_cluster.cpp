// The short document as a scene.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "bulkhead/gpu/amd.hpp"
#include "bulkhead/policy/slice.hpp"
#include "bulkhead/sched/cluster_tree.hpp"
#include "bulkhead/sched/drawing.hpp"
#include "bulkhead/sched/need.hpp"
#include "bulkhead/sched/present.hpp"

namespace bulkhead::sched {

namespace {

// A board's own name where one was meant ("a30" is a30-24gb); any other name as it is.
std::string model_named(const std::string& typed) {
    if (const auto board = gpu::find_board(typed)) return std::string{(*board)->id};
    if (const auto board = gpu::find_amd_board(typed)) return std::string{(*board)->id};
    return typed;
}

constexpr std::string_view nobodys = "default";  // whose jobs are that name no tenant

class Drawing {
public:
    explicit Drawing(const Cluster& cluster) : cluster_{cluster} {}

    std::expected<Scene, std::vector<Misfit>> draw() {
        scene_.now = cluster_.now;
        draw_settings();
        draw_tenants();
        draw_nodes();
        present_.emplace(scene_.nodes);
        for (std::size_t i = 0; i < cluster_.jobs.size(); ++i) draw_job(i);
        if (!misfits_.empty()) return std::unexpected(std::move(misfits_));
        keep_from_mates_only();
        return std::move(scene_);
    }

private:
    void draw_settings() {
        const ClusterSettings& said = cluster_.settings;
        EngineSettings& settings = scene_.settings;
        settings.half_life = said.halfLife.value_or(settings.half_life);
        settings.stale_grace = said.staleGrace.value_or(settings.stale_grace);
        settings.reclaim_after = said.reclaimMinRuntime.value_or(settings.reclaim_after);
        settings.preempt_after = said.preemptMinRuntime.value_or(settings.preempt_after);
        settings.reservations = static_cast<int>(said.reservations.value_or(settings.reservations));
    }

    // Domain 1 is everybody's who names none.
    void draw_tenants() {
        std::map<std::string_view, std::uint32_t> domains;
        const std::vector<Queue> queues = queues_of(cluster_);
        for (std::size_t i = 0; i < queues.size(); ++i) {
            const ClusterTenant& tenant = cluster_.tenants[i];
            const Queue& queue = queues[i];
            std::uint32_t domain = 1;
            if (!tenant.domain.empty())
                domain =
                    domains.try_emplace(tenant.domain, static_cast<std::uint32_t>(domains.size() + 2)).first->second;
            tenants_.emplace(tenant.name, static_cast<TenantNo>(i));
            scene_.tenants.push_back({.name = tenant.name,
                                      .parent = queue.parent,
                                      .domain = domain,
                                      .guarantee = queue.guarantee,
                                      .limit = queue.limit,
                                      .weight = queue.weight,
                                      .over_quota_priority = queue.over_quota_priority,
                                      .shares = tenant.shares.value_or(tenant.weight),
                                      .usage = tenant.usage,
                                      .seniority = queue.seniority,
                                      .hard = tenant.hard,
                                      .grant = tenant.priorityGrant,
                                      .reclaim_after = tenant.reclaimMinRuntime,
                                      .preempt_after = tenant.preemptMinRuntime});
        }
    }

    // One that is not listed is a root with what nobody said.
    TenantNo tenant_named(std::string_view name) {
        if (name.empty()) name = nobodys;
        const auto [known, fresh] = tenants_.try_emplace(std::string{name}, static_cast<TenantNo>(tenants_.size()));
        if (fresh)
            scene_.tenants.push_back(
                {.name = std::string{name}, .domain = 1, .seniority = std::ssize(cluster_.tenants)});
        return known->second;
    }

    void draw_nodes() {
        for (const ClusterNode& said : cluster_.nodes) {
            const std::string model = model_named(said.model);
            if (said.gpus > 0 && std::ranges::find(models_, model) == models_.end()) models_.push_back(model);
            Node node{.site = said.site,
                      .zone = said.zone,
                      .rack = said.rack,
                      .leaf = said.leaf,
                      .nvlink_domain = said.nvlinkDomain,
                      .open = !said.closed,
                      .board_is_one = said.wholeFabric,
                      .can_reboot = said.canReboot,
                      .cpu_free = said.cpu.value_or(16 * said.gpus),
                      .memory_free = said.memory ? said.memory->bytes : (said.gpus * 128) << 30};
            for (const std::string& tenant : said.usedBy) node.host_used_by.push_back(tenant_named(tenant));
            node.gpus.assign(static_cast<std::size_t>(said.gpus), clean_gpu(model));
            for (const std::int64_t gpu : said.wiping) node.gpus[static_cast<std::size_t>(gpu)].available = 0;
            for (const std::int64_t index : said.quarantined) {
                Gpu& gpu = node.gpus[static_cast<std::size_t>(index)];
                gpu.available = 0;
                gpu.lost = gpu.all();
            }
            for (std::size_t i = 0; i < said.drives.size(); ++i) {
                node.drives.push_back(static_cast<std::uint16_t>(i));
                node.drive_bytes.push_back(said.drives[i].bytes);
            }
            for (std::int64_t i = 0; i < said.nics; ++i) node.functions.push_back(static_cast<std::uint16_t>(i));
            for (std::int64_t k = 0; k < said.count; ++k) {
                node.name = numbered(said.name, said.count, k);
                nodes_.emplace(node.name, static_cast<NodeNo>(scene_.nodes.size()));
                scene_.nodes.push_back(node);
            }
        }
    }

    // A job as a contract that policy might have written.
    struct Asked {
        GpuWorkloadSpec spec;
        Contract contract;
    };

    void draw_job(std::size_t index) {
        const ClusterJob& said = cluster_.jobs[index];
        const Asked asked = asked_by(said);
        const bool wants_gpus = said.gpus.value_or(Gpus::whole(1)) > Gpus{};
        SceneJob job{.need = need_of(asked.spec, asked.contract), .job = job_of(said)};
        if (wants_gpus) {
            job.job.gpus = counted(asked.spec.gpu, asked.contract, 1);
            job.job.all = counted(asked.spec.gpu, asked.contract, said.tasks);
        } else {
            job.need.wants.clear();
        }
        if (wants_gpus && job.need.wants.empty()) return no_such_slice(index, asked);
        job.need.keeps_node = said.isolation.node == PeerTrust::same_tenant;
        // Of a whole GPU nothing is left, and an MPS server serves one tenant in any case.
        job.need.keeps_gpu = said.isolation.gpu == PeerTrust::same_tenant && !asked.spec.gpu.count &&
                             asked.contract.mechanism != Mechanism::mps;
        for (std::int64_t k = 0; k < said.count; ++k) {
            SceneJob copy = job;
            copy.name = numbered(said.name, said.count, k);
            copy.job.key = static_cast<std::int64_t>(scene_.jobs.size()) + 1;
            copy.started = {cluster_.now.ms - said.ran.ms};
            const std::optional<Error> misplaced = said.on.empty() ? std::nullopt : seat(said, copy);
            scene_.jobs.push_back(std::move(copy));  // also one that does not fit: others may be said to meet it
            if (misplaced) return misfit(index, "on", misplaced->what, misplaced->remedy);
        }
    }

    // A job that asks to be alone keeps nothing from others if its trust domain has no other tenant.
    void keep_from_mates_only() {
        for (SceneJob& job : scene_.jobs) {
            const bool only =
                std::ranges::count(scene_.tenants, scene_.tenants[job.job.tenant].domain, &TenantFacts::domain) == 1;
            if (only) job.need.keeps_node = job.need.keeps_gpu = false;
        }
    }

    std::optional<Error> seat(const ClusterJob& said, SceneJob& job) {
        std::vector<NodeNo> nodes(static_cast<std::size_t>(said.on.size() == 1 ? said.tasks : 1), 0);
        nodes.resize(std::max(nodes.size(), said.on.size()));
        for (std::size_t task = 0; task < nodes.size(); ++task)
            nodes[task] = nodes_.at(said.on[said.on.size() == 1 ? 0 : task]);
        return present_->seat(scene_, job, nodes);
    }

    Asked asked_by(const ClusterJob& said) const {
        Asked asked;
        GpuRequest& gpu = asked.spec.gpu;
        const Gpus gpus = said.gpus.value_or(Gpus::whole(1));
        gpu.profile = said.profile;
        gpu.memory = said.gpuMemory;
        if (said.profile.empty() && !said.gpuMemory) {
            if (gpus.units % gpu_unit != 0)
                gpu.fraction = gpus;
            else
                gpu.count = std::max<std::int64_t>(gpus.units / gpu_unit, 1);
        }
        for (const std::string& typed : said.models)
            if (std::string model = model_named(typed); std::ranges::find(gpu.models, model) == gpu.models.end())
                gpu.models.push_back(std::move(model));
        asked.spec.cpu = said.cpu;
        asked.spec.memory = said.memory;
        asked.spec.storage.localNvme = said.nvme;
        asked.spec.network.rdma = said.rdma;
        Contract& contract = asked.contract;
        contract.tier = said.isolation.tier;
        contract.mechanism = said.mechanism.value_or(gpu.count              ? Mechanism::whole
                                                     : !gpu.profile.empty() ? Mechanism::mig
                                                                            : Mechanism::mps);
        const PeerTrust known = PeerTrust::same_domain;  // strangers are never in one memory or on one fabric
        // An MPS server serves one user at a time, so its clients are of one tenant (decision 0024).
        const PeerTrust inside = contract.mechanism == Mechanism::mps ? PeerTrust::same_tenant : known;
        contract.sharing = {said.isolation.node, said.isolation.gpu, std::min(said.isolation.gpu, inside),
                            std::min(said.isolation.node, known)};
        contract.slices = slices_of(gpu, contract.mechanism);
        if (contract.slices.empty() && !said.mechanism && !gpu.profile.empty()) {
            contract.slices = slices_of(gpu, Mechanism::amd_partition);
            if (!contract.slices.empty()) contract.mechanism = Mechanism::amd_partition;
        }
        return asked;
    }

    std::vector<Slice> slices_of(const GpuRequest& gpu, Mechanism mechanism) const {
        std::vector<Slice> slices;
        for (const std::string& model : gpu.models.empty() ? models_ : gpu.models) {
            const Silicon silicon = silicon_of(model);
            if (slice_on(silicon, gpu, mechanism))
                slices.push_back({.model = model, .slice = slice_text(silicon, gpu, mechanism).slice});
        }
        return slices;
    }

    void no_such_slice(std::size_t index, const Asked& asked) {
        const ClusterJob& said = cluster_.jobs[index];
        const std::vector<std::string>& models = asked.spec.gpu.models.empty() ? models_ : asked.spec.gpu.models;
        if (models.empty())
            return misfit(index, "name", fmt::format("job {} asks for GPUs, and no node has any", said.name),
                          "add nodes, or gpus: 0 for work that needs none");
        std::vector<std::string> like;
        for (const std::string_view typed : {std::string_view{said.profile}, std::string_view{"any"}})
            for (const std::string& model : models)
                for (const std::string& profile : profiles_like(silicon_of(model), typed))
                    if (like.size() < 8 && !said.profile.empty() && std::ranges::find(like, profile) == like.end())
                        like.push_back(profile);
        const std::string text = !said.profile.empty() ? said.profile
                                 : said.gpuMemory      ? print(*said.gpuMemory) + " of GPU memory"
                                                       : print(said.gpus.value_or(Gpus::whole(1))) + " GPU";
        misfit(index,
               !said.profile.empty() ? "profile"
               : said.gpuMemory      ? "gpuMemory"
                                     : "gpus",
               fmt::format("job {}: {} cannot give {} by {}", said.name, fmt::join(models, ", "), text,
                           word(asked.contract.mechanism)),
               like.empty() ? "another mechanism, or less" : fmt::format("{}", fmt::join(like, ", ")));
    }

    Job job_of(const ClusterJob& said) {
        Job job{.tenant = tenant_named(said.tenant),
                .tasks = static_cast<std::int32_t>(said.tasks),
                .least = static_cast<std::int32_t>(said.minTasks.value_or(0)),
                .within = said.within,
                .prefer = said.prefer,
                .group = static_cast<std::int32_t>(said.groupTasks.value_or(0)),
                .group_within = said.groupWithin,
                .priority = said.priority,
                .preemptible = said.preemptible,
                .submitted = {cluster_.now.ms - said.waited.ms - said.ran.ms},
                .deadline = said.deadline,
                .duration = said.duration,
                .checkpoint = said.checkpoint};
        if (said.deadlineIn) job.deadline = cluster_.now + *said.deadlineIn;
        return job;
    }

    void misfit(std::size_t index, std::string_view field, std::string what, std::string remedy) {
        misfits_.push_back({"jobs", index, field, std::move(what), std::move(remedy)});
    }

    const Cluster& cluster_;
    Scene scene_;
    std::optional<Present> present_;
    std::map<std::string, TenantNo, std::less<>> tenants_;
    std::map<std::string, NodeNo, std::less<>> nodes_;
    std::vector<std::string> models_;  // that nodes have
    std::vector<Misfit> misfits_;
};

}  // namespace

std::expected<Scene, std::vector<Misfit>> scene_of(const Cluster& cluster) { return Drawing{cluster}.draw(); }

}  // namespace bulkhead::sched
