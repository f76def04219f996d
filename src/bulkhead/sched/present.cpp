#include "bulkhead/sched/present.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "bulkhead/gpu/mps.hpp"
#include "bulkhead/gpu/profile_name.hpp"
#include "bulkhead/policy/slice.hpp"
#include "bulkhead/sched/drawing.hpp"
#include "bulkhead/sched/nearness.hpp"
#include "bulkhead/sched/need.hpp"

namespace bulkhead::sched {

namespace {

// Whom tenants trust, and whether two bear each other.
struct Trust {
    const std::vector<TenantFacts>& tenants;

    bool bears(const Resident& a, PeerTrust a_bears, const Resident& b, PeerTrust b_bears) const {
        PeerTrust trust = PeerTrust::distrusting;
        if (tenants[a.tenant].domain == tenants[b.tenant].domain) trust = PeerTrust::same_domain;
        if (a.tenant == b.tenant) trust = PeerTrust::same_tenant;
        return trust <= a_bears && trust <= b_bears;
    }

    const Resident* stranger_on(const Node& node, const Resident& guest) const {
        for (const Resident& other : node.residents) {
            if (!bears(guest, guest.node, other, other.node)) return &other;
            if (node.board_is_one && !bears(guest, guest.nvlink, other, other.nvlink)) return &other;
            const bool one_kernel = guest.on_host_kernel || other.on_host_kernel;
            if (one_kernel && !bears(guest, PeerTrust::same_domain, other, PeerTrust::same_domain)) return &other;
        }
        return nullptr;
    }
};

Resident resident_of(const SceneJob& job) {
    const SharingScope& sharing = job.need.sharing;
    return {.lease = job.job.key,
            .tenant = job.job.tenant,
            .node = sharing.node,
            .gpu = sharing.gpu,
            .instance = sharing.instance,
            .nvlink = sharing.nvlink,
            .on_host_kernel = job.need.on_host_kernel};
}

// What MIG sees taken: every slice that is not available, and the media engines of the instances that are there.
gpu::Occupancy occupancy_of(const Gpu& gpu) {
    gpu::Media most = gpu::Media::none;
    for (const Seat& seat : gpu.seats)
        if (const auto choice = gpu::find_profile(*gpu.board, seat.profile))
            most = std::max(most, gpu.board->profiles[choice->index].media);
    const unsigned taken = static_cast<unsigned>(~gpu.available) & gpu.all();
    return gpu::Occupancy::of_state(static_cast<std::size_t>(most) << 8 | taken);
}

// Where one task may sit, looked for GPU by GPU.
class Search {
public:
    Search(const Node& node, const SceneJob& job, const Resident& resident, const Trust& trust)
        : node_{node}, need_{job.need}, resident_{resident}, trust_{trust} {}

    std::optional<TaskSeat> find() const {
        TaskSeat task;
        if (need_.cpu > node_.cpu_free || need_.memory > node_.memory_free || !find_devices(task)) return std::nullopt;
        if (need_.wants.empty()) return with_function(std::move(task));
        for (const Want& want : need_.wants)
            if (find_gpus(want, task)) return with_function(std::move(task));
        return std::nullopt;
    }

private:
    bool find_devices(TaskSeat& task) const {
        if (need_.rdma && node_.functions.empty()) return false;
        if (need_.nvme == 0) return true;
        std::optional<std::size_t> best;  // of those large enough the smallest
        for (std::size_t i = 0; i < node_.drives.size(); ++i)
            if (node_.drive_bytes[i] >= need_.nvme && (!best || node_.drive_bytes[i] < node_.drive_bytes[*best]))
                best = i;
        if (best) task.drives.push_back(node_.drives[*best]);
        return best.has_value();
    }

    TaskSeat with_function(TaskSeat task) const {
        if (!need_.rdma) return task;
        std::uint64_t gpus = 0;
        for (const std::uint16_t gpu : task.gpus) gpus |= std::uint64_t{1} << gpu;
        task.functions.push_back(node_.functions[nearest(node_.functions, gpus, node_.closeness, node_.gpus.size())]);
        return task;
    }

    bool find_gpus(const Want& want, TaskSeat& task) const {
        const auto sit = [&](std::size_t gpu, unsigned start, unsigned size) {
            task.gpus.push_back(static_cast<std::uint16_t>(gpu));
            task.seats.push_back({.start = static_cast<std::uint8_t>(start),
                                  .size = static_cast<std::uint8_t>(size),
                                  .profile = want.profile_name,
                                  .share = want.share,
                                  .mechanism = need_.mechanism});
        };
        const bool shared = want.form == Want::Form::share && want.count == 1 && want.share < 1000;
        if (!suits_memory_mode(want)) return false;
        for (std::size_t i = 0; i < node_.gpus.size() && std::cmp_less(task.gpus.size(), want.count); ++i) {
            const Gpu& gpu = node_.gpus[i];
            if (gpu.model != want.model) continue;
            if (want.form == Want::Form::instance || want.form == Want::Form::partition) {
                if (const auto start = slice_on(gpu, want)) sit(i, *start, want.size);
            } else if (gpu.empty() || (shared && joins(gpu, want))) {
                sit(i, 0, gpu.slices);
            }
        }
        if (std::cmp_equal(task.gpus.size(), want.count)) return true;
        task.gpus.clear();
        task.seats.clear();
        return false;
    }

    // The memory mode of AMD GPUs holds for all of a node.
    bool suits_memory_mode(const Want& want) const {
        if (silicon_of(want.model).amd == nullptr) return true;
        const auto mode_of = [](const std::string& profile) { return profile.empty() ? 1 : nps_of(profile); };
        const auto alike = [&](const Seat& seat) { return mode_of(seat.profile) == mode_of(want.profile_name); };
        return std::ranges::all_of(node_.gpus, [&](const Gpu& gpu) {
            return silicon_of(gpu.model).amd == nullptr || std::ranges::all_of(gpu.seats, alike);
        });
    }

    bool bears(const Gpu& gpu, PeerTrust Resident::* place) const {
        return std::ranges::all_of(gpu.seats, [&](const Seat& seat) {
            const auto other = std::ranges::find(node_.residents, seat.lease, &Resident::lease);
            return trust_.bears(resident_, resident_.*place, *other, (*other).*place);
        });
    }

    bool joins(const Gpu& gpu, const Want& want) const {
        std::int64_t taken = want.share;
        for (const Seat& seat : gpu.seats) {
            if (seat.mechanism != need_.mechanism || !seat.profile.empty() || seat.share >= 1000) return false;
            taken += seat.share;
        }
        if (need_.mechanism == Mechanism::mps && std::ssize(gpu.seats) >= gpu::mps_clients) return false;
        return !gpu.seats.empty() && taken <= 1000 && bears(gpu, &Resident::gpu) && bears(gpu, &Resident::instance);
    }

    std::optional<unsigned> slice_on(const Gpu& gpu, const Want& want) const {
        const bool instance = want.form == Want::Form::instance;
        for (const Seat& seat : gpu.seats)  // one pair of modes holds for all partitions of a GPU
            if (seat.profile.empty() || (!instance && seat.profile != want.profile_name)) return std::nullopt;
        if (!bears(gpu, &Resident::gpu)) return std::nullopt;
        if (instance)
            return gpu.board == nullptr ? std::nullopt : want.geometry->place(occupancy_of(gpu), want.profile);
        for (unsigned start = 0; start + want.size <= gpu.slices; start += want.size) {
            const std::uint8_t mask = gpu::Placement{start, want.size}.mask();
            if ((gpu.available & mask) == mask) return start;
        }
        return std::nullopt;
    }

    const Node& node_;
    const TaskNeed& need_;
    const Resident& resident_;
    const Trust& trust_;
};

void take(Node& node, const TaskSeat& task, const TaskNeed& need) {
    for (std::size_t i = 0; i < task.gpus.size(); ++i) {
        Gpu& gpu = node.gpus[task.gpus[i]];
        gpu.available &= static_cast<std::uint8_t>(~bits_of(task.seats[i]));
        gpu.held |= bits_of(task.seats[i]);
        gpu.seats.push_back(task.seats[i]);
    }
    for (const std::uint16_t drive : task.drives) {
        const auto at = std::ranges::find(node.drives, drive) - node.drives.begin();
        node.drives.erase(node.drives.begin() + at);
        node.drive_bytes.erase(node.drive_bytes.begin() + at);
    }
    for (const std::uint16_t function : task.functions) std::erase(node.functions, function);
    node.cpu_free -= need.cpu;
    node.memory_free -= need.memory;
}

std::string needed_by(const SceneJob& job) {
    std::string text = "no GPU";
    if (!job.need.wants.empty()) {
        const Want& want = job.need.wants.front();
        if (want.form == Want::Form::instance || want.form == Want::Form::partition)
            text = want.profile_name;
        else if (want.share < 1000)
            text = fmt::format("{} of a GPU", print(Gpus::of_thousandths(want.share)));
        else
            text = fmt::format("{} whole GPU{}", want.count, want.count == 1 ? "" : "s");
    }
    if (job.need.cpu > 0) text += fmt::format(", {} cores", job.need.cpu);
    if (job.need.memory > 0) text += fmt::format(", {} of memory", print(ByteSize{job.need.memory}));
    if (job.need.nvme > 0) text += fmt::format(", a drive of {}", print(ByteSize{job.need.nvme}));
    if (job.need.rdma) text += ", a virtual function";
    return text;
}

std::string free_on(const Node& node) {
    const auto whole = std::ranges::count_if(node.gpus, [](const Gpu& gpu) { return gpu.empty(); });
    std::string text = fmt::format("{} of {} GPUs whole", whole, node.gpus.size());
    if (!node.gpus.empty()) text += fmt::format(" ({})", node.gpus.front().model);
    text += fmt::format(", {} cores, {} of memory, {} virtual functions", node.cpu_free,
                        print(ByteSize{node.memory_free}), node.functions.size());
    if (!node.drive_bytes.empty())
        text += fmt::format(", {} drives up to {}", node.drive_bytes.size(),
                            print(ByteSize{std::ranges::max(node.drive_bytes)}));
    return text;
}

}  // namespace

std::optional<Error> Present::seat(const Scene& scene, SceneJob& job, std::span<const NodeNo> on) {
    const Trust trust{scene.tenants};
    const Resident resident = resident_of(job);
    for (std::size_t task = 0; task < on.size(); ++task) {
        Node& node = nodes_[on[task]];
        if (const Resident* other = trust.stranger_on(node, resident))
            return Error{Code::conflict,
                         fmt::format("job {} may not be on node {} beside {}: one of the two does not bear the other",
                                     job.name, node.name, scene.jobs[static_cast<std::size_t>(other->lease - 1)].name),
                         "one trust domain, tier: vm with node: distrusting for both, or another node"};
        std::optional<TaskSeat> found = Search{node, job, resident, trust}.find();
        if (!found)
            return Error{Code::exhausted,
                         fmt::format("job {}: task {} of {} does not fit on node {}: it needs {}; free are {}",
                                     job.name, task + 1, on.size(), node.name, needed_by(job), free_on(node)),
                         "another node, or fewer tasks there"};
        found->node = on[task];
        for (Seat& seat : found->seats) seat.lease = job.job.key;
        take(node, *found, job.need);
        if (node.residents.empty() || node.residents.back().lease != resident.lease) node.residents.push_back(resident);
        job.runs.push_back(std::move(*found));
    }
    return std::nullopt;
}

}  // namespace bulkhead::sched
