// Which GPU of a node a task gets, how many tasks a node takes, and what stands in the way.
#include <algorithm>
#include <limits>

#include "bulkhead/sched/fleet_index.hpp"
#include "bulkhead/sched/need.hpp"

namespace bulkhead::sched {

namespace {

// An instance costs what its layout's value loses (gpu/layout_values.hpp), in millionths. A GPU is cut only where no
// GPU that is cut already takes the instance, and a GPU of an idle node only where no other does.
constexpr std::int64_t cutting_empty = 2'000'000;
constexpr std::int64_t cutting_idle_node = 2'000'000;

}  // namespace

// The least trust between whoever looks and anybody there.
PeerTrust FleetIndex::trust(Company company, const Eyes& eyes) const {
    if (company.empty()) return PeerTrust::same_tenant;
    const auto domain_of = [&](TenantNo tenant) { return tenant_domain(tenant); };
    if (eyes.stranger) return PeerTrust::distrusting;
    if (eyes.domain == 0) return company.trust(eyes.tenant, domain_of);
    return company.domain_here(domain_of) == eyes.domain ? PeerTrust::same_domain : PeerTrust::distrusting;
}

bool FleetIndex::joins(Company company, const Eyes& eyes, PeerTrust mine, PeerTrust mine_closer, bool closer) const {
    if (company.empty()) return true;
    const PeerTrust between = trust(company, eyes);
    if (between > mine || between > company.bears()) return false;
    return !closer || (between <= mine_closer && between <= company.bears_closer());
}

bool FleetIndex::kind_ok(const Shape& shape, std::uint32_t kind) const {
    return shape.need.kinds.empty() || std::ranges::binary_search(shape.need.kinds, kind);
}

bool FleetIndex::has_devices(const NodeView& view, const Shape& shape) const {
    if (shape.need.rdma && view.functions == 0) return false;
    return shape.need.nvme == 0 ||
           (!drive_lists_[view.drives].empty() && drive_lists_[view.drives].back() >= shape.need.nvme);
}

Obstacle FleetIndex::neighbourly(const NodeView& view, const Shape& shape, const Eyes& eyes) const {
    const PeerTrust kernel = shape.need.on_host_kernel ? PeerTrust::same_domain : PeerTrust::distrusting;
    if (!joins(view.residents, eyes, shape.need.sharing.node, kernel, true)) return Obstacle::neighbours;
    if (view.board_is_one && !joins(view.fabric, eyes, shape.need.sharing.nvlink, PeerTrust::distrusting, false))
        return Obstacle::nvlink;
    if (view.host_busy) return Obstacle::host;
    if (trust(view.hosts, eyes) == PeerTrust::distrusting)
        return view.can_reboot && view.residents.empty() ? Obstacle::reboot : Obstacle::host;
    return Obstacle::none;
}

Obstacle FleetIndex::neighbourly_excepted(NodeNo node, const Shape& shape, TenantNo tenant) const {
    return neighbourly_excepted(node, shape, tenant, [](const SeatRec&) { return false; }, false);
}

std::uint8_t FleetIndex::memory_mode(const NodeView& view) const {
    for (const Cell& cell : view.cells) {
        const CellModel& model = models_[cell.model];
        if (!model.amd || is_empty(cell)) continue;
        if (cell.mode != 0) return nps_of(profiles_[cell.mode]);
        if (cell.use != 0) return 1;  // a whole GPU is one partition, which needs NPS1
    }
    return 0;
}

// Of AMD GPUs: a partition needs its own memory mode, anything else NPS1. The mode of a node in use stays.
bool FleetIndex::suits_memory_mode(const NodeView& view, const Shape::Option& option) const {
    const std::uint8_t now = memory_mode(view);
    const std::uint8_t asked = option.want.form == Want::Form::partition ? nps_of(option.want.profile_name) : 1;
    return now == 0 || now == asked;
}

std::optional<FleetIndex::Choice> FleetIndex::choose_slice(const NodeView& view, const Shape& shape,
                                                           std::uint32_t number, const Eyes& eyes) const {
    const Shape::Option& option = shape.options[number];
    const CellModel& model = models_[option.model];
    if (model.amd && !suits_memory_mode(view, option)) return std::nullopt;
    std::optional<Choice> best;
    std::int64_t free = 0;
    bool idle = view.cells.size() >= 8;
    for (const Cell& cell : view.cells) {
        if (cell.available != 0) free += thousandths_in(cell.available, models_[cell.model].slices);
        idle = idle && is_empty(cell);
    }
    for (std::size_t i = 0; i < view.cells.size() && i < 64; ++i) {
        const Cell& cell = view.cells[i];
        if (cell.model != option.model || cell.use != 0 || cell.open() == 0) continue;
        if (!joins(cell.company, eyes, shape.need.sharing.gpu, {}, false)) continue;
        std::uint8_t start = 0;
        std::int64_t cost = is_empty(cell) ? cutting_empty + (idle ? cutting_idle_node : 0) : 0;
        if (option.want.form == Want::Form::instance) {
            if (model.board == nullptr || option.want.geometry == nullptr) continue;
            const gpu::Geometry& geometry = *option.want.geometry;
            const gpu::Occupancy now = cell.occupancy(model.all());
            const gpu::Starts starts = geometry.fit(now, option.want.profile);
            if (starts.empty()) continue;
            const gpu::LayoutValues& values = *requests_[option.requests].values;
            std::int64_t most = -1;  // worth least: 0
            for (const unsigned at : starts) {
                const std::uint8_t mask = gpu::Placement{at, option.want.size}.mask();
                const std::int64_t worth = values.value(static_cast<std::uint8_t>(now.slices() | mask),
                                                        static_cast<std::uint8_t>(cell.begins | 1u << at));
                if (worth <= most) continue;
                most = worth;
                start = static_cast<std::uint8_t>(at);
            }
            cost += values.value(now.slices(), cell.begins) - most;
        } else {
            if (cell.mode != 0 && cell.mode != profile_modes_[option.profile]) continue;
            bool found = false;
            for (unsigned s = 0; s + option.want.size <= model.slices && !found; s += option.want.size) {
                const std::uint8_t mask = gpu::Placement{s, option.want.size}.mask();
                if ((cell.open() & mask) != mask) continue;
                start = static_cast<std::uint8_t>(s);
                found = true;
            }
            if (!found) continue;
        }
        // Of GPUs that lose alike the fullest, so that others become empty.
        const std::int64_t good = -(cost * 16 + slices_in(cell.available));
        if (!best || good > best->good) best = Choice{good, -free, number, static_cast<std::uint8_t>(i), start};
    }
    return best;
}

// The room that packing looks at has only GPUs with something free in it; `at` says which of the node they are.
std::optional<FleetIndex::Choice> FleetIndex::choose(const NodeView& view, const Shape& shape, const Eyes& eyes) const {
    if (!has_cores(view.cpu, view.memory, shape) || !has_devices(view, shape)) return std::nullopt;
    if (shape.options.empty()) {
        if (!shape.need.wants.empty()) return std::nullopt;
        return Choice{.good = -static_cast<std::int64_t>(view.cells.size())};
    }
    std::optional<Choice> best;
    for (std::uint32_t number = 0; number < shape.options.size(); ++number) {
        const Shape::Option& option = shape.options[number];
        if (view.model != 0xFF && view.model != option.model) continue;
        if (option.want.is_sliced()) {
            const auto found = choose_slice(view, shape, number, eyes);
            if (found && (!best || std::pair{found->good, found->fullness} > std::pair{best->good, best->fullness}))
                best = found;
            continue;
        }
        const CellModel& model = models_[option.model];
        if (model.amd && !suits_memory_mode(view, option)) continue;
        const bool shared = option.want.is_shared();
        const bool mps = shape.need.mechanism == Mechanism::mps;
        const std::uint8_t all = model.all();
        NodeRoom room{.cpu = view.cpu * 1000, .memory = view.memory >> 20, .model = option.model};
        room.model &= 31u;
        std::array<std::uint8_t, most_gpus_of_node> at;
        std::int64_t whole = 0;
        std::uint32_t allowed = ~0u;
        bool fits = false;
        for (std::size_t i = 0; i < view.cells.size(); ++i) {
            const Cell& cell = view.cells[i];
            // Nothing of it is free; most are like that.
            if (cell.model != option.model || cell.taken >= 1000) continue;
            std::int64_t free = 0;
            bool usable = true;
            if (cell.kept == 0 && cell.empty(all)) {
                free = 1000;
                ++whole;
            } else if (cell.use > 1 && cell.kept == 0 && cell.held == all && cell.lost == 0) {
                // Part of it is free; for this request only if it may sit there.
                free = 1000 - cell.taken;
                usable = shared && shareable(cell, shape, eyes) && (!mps || cell.clients_left() > 0);
            } else {
                continue;
            }
            // Packing looks at so many GPUs; one that takes the task must be among them.
            if (room.gpus == most_gpus_of_node) {
                if (fits || !shared || !usable || free < option.want.share) continue;
                --room.gpus;
            }
            if (!usable)
                allowed &= ~(1u << room.gpus);
            else
                allowed |= 1u << room.gpus;
            fits = fits || (shared && usable && free >= option.want.share);
            at[room.gpus] = static_cast<std::uint8_t>(i);
            room.free[room.gpus++] = static_cast<std::int16_t>(free);
        }
        if (!shared) fits = whole >= option.want.count;
        if (!fits) continue;
        Choice found{.option = number};
        if (mix_ && static_cast<std::size_t>(option.want.count) <= most_gpus_of_node) {
            const PackedPlace place = pack(*mix_, room, option.task, shared ? allowed : ~0u);
            found.good = place.score.good;
            found.fullness = place.score.fullness;
            found.gpu = at[place.gpu];
            if (option.want.count == 1 && !shared) {  // any empty one
                for (std::size_t i = 0; i < view.cells.size(); ++i)
                    if (view.cells[i].model == option.model && is_empty(view.cells[i])) {
                        found.gpu = static_cast<std::uint8_t>(i);
                        break;
                    }
            }
        } else {
            found.fullness = -room.gpu_free();
            std::int64_t least = 1001;
            for (std::size_t i = 0; i < room.gpus; ++i)
                if (room.free[i] >= (shared ? option.want.share : 1000) && room.free[i] < least &&
                    (allowed >> i & 1u) != 0) {
                    least = room.free[i];
                    found.gpu = at[i];
                }
        }
        if (!best || std::pair{found.good, found.fullness} > std::pair{best->good, best->fullness}) best = found;
    }
    return best;
}

bool FleetIndex::shareable(const Cell& cell, const Shape& shape, const Eyes& eyes) const {
    const auto mechanism = static_cast<std::uint8_t>(1 + static_cast<unsigned>(shape.need.mechanism));
    return cell.use == mechanism && cell.kept == 0 && cell.held == models_[cell.model].all() && cell.taken < 1000 &&
           cell.lost == 0 && joins(cell.company, eyes, shape.need.sharing.gpu, shape.need.sharing.instance, true);
}

// Shares differ by the GPU that they are on; of GPUs that are alike the first is named. Of whole GPUs and slices the
// best place is enough.
std::vector<FleetIndex::Choice> FleetIndex::choices(NodeNo node, ShapeNo number, TenantNo tenant) const {
    const Shape& shape = shapes_[number];
    const NodeView here = view(node);
    const Eyes eyes{.tenant = tenant};
    std::vector<Choice> out;
    if (capacity(here, node, number, tenant) <= 0) return out;
    const std::optional<Choice> best = choose(here, shape, eyes);
    if (!best) return out;
    if (shape.options.empty() || !shape.options[best->option].want.is_shared()) out.push_back(*best);
    for (std::uint32_t option = 0; option < shape.options.size(); ++option) {
        const Shape::Option& its = shape.options[option];
        if (!its.want.is_shared()) continue;
        const bool mps = shape.need.mechanism == Mechanism::mps;
        if (models_[its.model].amd && !suits_memory_mode(here, its)) continue;
        for (std::size_t gpu = 0; gpu < here.cells.size(); ++gpu) {
            const Cell& cell = here.cells[gpu];
            if (cell.model != its.model) continue;
            if (!is_empty(cell)) {
                if (!shareable(cell, shape, eyes) || 1000 - cell.taken < its.want.share) continue;
                if (mps && cell.clients_left() <= 0) continue;
            }
            const auto like_it = [&](const Choice& known) { return here.cells[known.gpu] == cell; };
            if (is_empty(cell) && std::ranges::any_of(out, like_it)) continue;
            out.push_back({.option = option, .gpu = static_cast<std::uint8_t>(gpu)});
        }
    }
    const auto is_best = [&](const Choice& choice) {
        return choice.option == best->option &&
               (choice.gpu == best->gpu || here.cells[choice.gpu] == here.cells[best->gpu]);
    };
    if (const auto first = std::ranges::find_if(out, is_best); first != out.end())
        std::rotate(out.begin(), first, std::next(first));
    return out;
}

std::int64_t FleetIndex::capacity(const NodeView& view, const Shape& shape, const Eyes& eyes) const {
    std::int64_t most = std::numeric_limits<std::int32_t>::max();
    if (shape.need.cpu > 0) most = std::min(most, view.cpu / shape.need.cpu);
    if (shape.need.memory > 0) most = std::min(most, view.memory / shape.need.memory);
    if (shape.need.rdma) most = std::min<std::int64_t>(most, view.functions);
    if (shape.need.nvme > 0)
        most = std::min<std::int64_t>(most, std::ranges::count_if(drive_lists_[view.drives], [&](std::int64_t bytes) {
                                          return bytes >= shape.need.nvme;
                                      }));
    if (most <= 0) return 0;
    if (shape.need.wants.empty()) return most;
    std::int64_t sum = 0;
    for (const Shape::Option& option : shape.options) {
        const CellModel& model = models_[option.model];
        if (model.amd && !suits_memory_mode(view, option)) continue;
        const bool shared = option.want.is_shared();
        const bool mps = shape.need.mechanism == Mechanism::mps;
        const auto shares = [&](std::int64_t free, std::int64_t clients) {
            return mps ? std::min(free / option.want.share, clients) : free / option.want.share;
        };
        std::int64_t whole = 0;
        for (const Cell& cell : view.cells) {
            if (cell.model != option.model) continue;
            if (!option.want.is_sliced()) {
                if (is_empty(cell))
                    ++whole;
                else if (shared && shareable(cell, shape, eyes))
                    sum += shares(1000 - cell.taken, cell.clients_left());
                continue;
            }
            if (cell.use != 0 || cell.open() == 0 || !joins(cell.company, eyes, shape.need.sharing.gpu, {}, false))
                continue;
            if (option.want.form == Want::Form::instance) {
                if (model.board != nullptr && option.want.geometry != nullptr)
                    sum += option.want.geometry->room(cell.occupancy(model.all()), option.want.profile);
            } else if (cell.mode == 0 || cell.mode == profile_modes_[option.profile]) {
                for (unsigned s = 0; s + option.want.size <= model.slices; s += option.want.size) {
                    const std::uint8_t mask = gpu::Placement{s, option.want.size}.mask();
                    sum += (cell.open() & mask) == mask ? 1 : 0;
                }
            }
        }
        sum += shared ? whole * shares(1000, gpu::mps_clients) : whole / option.want.count;
    }
    return std::min(most, sum);
}

std::int64_t FleetIndex::capacity(const NodeView& view, NodeNo node, ShapeNo number, TenantNo tenant) const {
    const Shape& shape = shapes_[number];
    if (!view.open || !kind_ok(shape, view.kind)) return 0;
    const Obstacle in_the_way = shape.need.excepted.empty() ? neighbourly(view, shape, Eyes{.tenant = tenant})
                                                            : neighbourly_excepted(node, shape, tenant);
    return in_the_way == Obstacle::none ? capacity(view, shape, Eyes{.tenant = tenant}) : 0;
}

std::int64_t FleetIndex::capacity(NodeNo node, ShapeNo shape, TenantNo tenant) const {
    return capacity(view(node), node, shape, tenant);
}

bool FleetIndex::able(const NodeView& view, const Shape& shape) const {
    if (shape.need.wants.empty()) return true;
    for (const Shape::Option& option : shape.options) {
        const CellModel& model = models_[option.model];
        std::int64_t gpus = 0;
        for (const Cell& cell : view.cells)
            if (cell.model == option.model && (cell.lost == 0 || (option.want.is_sliced() && cell.lost != model.all())))
                ++gpus;
        if (gpus >= option.want.count) return true;
    }
    return false;
}

bool FleetIndex::able(NodeNo node, ShapeNo number) const {
    const NodeView here = view(node);
    return here.open && kind_ok(shapes_[number], here.kind) && able(here, shapes_[number]);
}

Obstacle FleetIndex::obstacle(const NodeView& view, const Brief& brief, const Shape& shape, TenantNo tenant,
                              Obstacle neighbours) const {
    if (!kind_ok(shape, view.kind)) return Obstacle::kind;
    const bool surely_able = std::ranges::any_of(shape.options, [&](const Shape::Option& option) {
        return option.model == brief.model && brief.sound >= option.want.count;
    });
    if (!surely_able && !able(view, shape)) return Obstacle::model;
    if (!view.open) return Obstacle::closed;
    if (neighbours != Obstacle::none) return neighbours;
    if (!has_cores(view.cpu, view.memory, shape)) return Obstacle::cores;
    if (!has_devices(view, shape)) return Obstacle::devices;
    if (may_take(brief, shape) && capacity(view, shape, Eyes{.tenant = tenant}) > 0) return Obstacle::none;
    return brief.kept ? Obstacle::reserved : Obstacle::gpus;
}

FleetIndex::Tally FleetIndex::tally(const Job& job) const {
    const Shape& shape = shapes_[job.shape];
    Tally tally;
    const auto count = [&](const NodeView& view, const Brief& brief, Obstacle neighbours, std::int64_t nodes) {
        const Obstacle found = obstacle(view, brief, shape, job.tenant, neighbours);
        tally.nodes[static_cast<std::size_t>(found)] += nodes;
        if (found == Obstacle::none) tally.room += nodes * capacity(view, shape, Eyes{.tenant = job.tenant});
        if (found == Obstacle::gpus && brief.dirty) tally.wiping += nodes;
    };
    if (!shape.need.excepted.empty()) {
        for (NodeNo node = 0; node < nodes_.size(); ++node)
            count(view(node), briefs_[nodes_[node].state], neighbourly_excepted(node, shape, job.tenant), 1);
        return tally;
    }
    for (StateNo number = 0; number < states_.size(); ++number)
        if (const Brief& brief = briefs_[number]; brief.count > 0) {
            const NodeView here = view(states_[number]);
            count(here, brief, neighbourly(here, shape, Eyes{.tenant = job.tenant}), brief.count);
        }
    return tally;
}

Obstacle FleetIndex::obstacle(NodeNo node, const Job& job) const {
    const Shape& shape = shapes_[job.shape];
    const NodeView here = view(node);
    const Obstacle neighbours = shape.need.excepted.empty() ? neighbourly(here, shape, Eyes{.tenant = job.tenant})
                                                            : neighbourly_excepted(node, shape, job.tenant);
    return obstacle(here, briefs_[nodes_[node].state], shape, job.tenant, neighbours);
}

bool FleetIndex::may_take_soon(NodeNo node, ShapeNo number, TenantNo tenant) const {
    const NodeRec& rec = nodes_[node];
    const Shape& shape = shapes_[number];
    // Where no work is leaving, it has to bear all that is there.
    if (rec.ending == 0 && !rec.residents.empty() && shape.need.excepted.empty()) {
        const Obstacle found = neighbourly(view(node), shape, Eyes{.tenant = tenant});
        if (found == Obstacle::neighbours || found == Obstacle::host) return false;
    }
    const std::int64_t gpus = whole_gpus_of(shape);
    if (gpus == 0) return true;
    const auto cells = std::span{cells_}.subspan(rec.cells, rec.gpus);
    return std::ranges::count_if(
               cells, [](const Cell& cell) { return cell.held == 0 && cell.lost == 0 && cell.kept == 0; }) >= gpus;
}

void FleetIndex::suppose_cleaned(Supposed& out) const {
    for (Cell& cell : out.cells)
        cell.available |= static_cast<std::uint8_t>(models_[cell.model].all() & ~cell.lost & ~cell.held);
    if (!out.view.can_reboot || !out.view.residents.empty()) return;
    out.view.hosts = {};
    out.view.host_busy = false;
}

// Room that is promised on the node keeps nothing on its kernel, and does not stand in the way of the reboot.
bool FleetIndex::wants_reboot(NodeNo node, ShapeNo number, TenantNo tenant) const {
    const Shape& shape = shapes_[number];
    NodeView here = view(node);
    for (SeatNo s = nodes_[node].seats; s != nil; s = seats_[s].next_here)
        if (!seats_[s].promised) return false;
    if (!shape.need.excepted.empty()) {
        const auto promised = [](const SeatRec& seat) { return seat.promised; };
        return neighbourly_excepted(node, shape, tenant, promised, false) == Obstacle::reboot && able(node, number);
    }
    const PeerTrust kernel = shape.need.on_host_kernel ? PeerTrust::same_domain : PeerTrust::distrusting;
    if (!joins(here.residents, Eyes{.tenant = tenant}, shape.need.sharing.node, kernel, true)) return false;
    here.residents = {};
    return neighbourly(here, shape, Eyes{.tenant = tenant}) == Obstacle::reboot && able(node, number);
}

}  // namespace bulkhead::sched
