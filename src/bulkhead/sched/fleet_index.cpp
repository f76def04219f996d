#include "bulkhead/sched/fleet_index.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "bulkhead/gpu/profile_name.hpp"

namespace bulkhead::sched {

namespace {

std::uint8_t scopes_of(PeerTrust node, PeerTrust gpu, PeerTrust instance, PeerTrust nvlink) {
    return static_cast<std::uint8_t>(static_cast<unsigned>(node) | static_cast<unsigned>(gpu) << 2 |
                                     static_cast<unsigned>(instance) << 4 | static_cast<unsigned>(nvlink) << 6);
}

constexpr std::size_t few_buckets = 4;

// An eighth more than there is, not twice as much: a fleet grows slowly, and its memory is what a node costs.
template <class T>
void make_room(std::vector<T>& list, std::size_t more) {
    if (list.size() + more > list.capacity()) list.reserve(list.size() + list.size() / 8 + more + 64);
}

std::uint64_t mixed(std::uint64_t hash, std::uint64_t word) {
    hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
    return hash ^ hash >> 29;
}

std::uint64_t hash_of(std::span<const Cell> cells, std::uint64_t hash) {
    for (const Cell& cell : cells) {
        std::uint64_t low = 0;
        std::memcpy(&low, &cell, 8);
        hash = mixed(mixed(hash, low), std::uint64_t{cell.kept} << 32 | cell.company.word());
    }
    return hash;
}

std::int64_t lost_of(const Cell& cell, const CellModel& model) {
    return 1000 * std::popcount(cell.lost) / model.slices;
}

}  // namespace

// --- what is there ---------------------------------------------------------------------------------------------------

void FleetIndex::set_domains(std::vector<std::uint32_t> domain_of_tenant) {
    const bool grown_only = domain_of_tenant.size() >= domain_of_.size() &&
                            std::equal(domain_of_.begin(), domain_of_.end(), domain_of_tenant.begin());
    domain_of_ = std::move(domain_of_tenant);
    if (grown_only) return;
    for (NodeNo node = 0; node < nodes_.size(); ++node) recount(node);
}

std::uint8_t FleetIndex::model(const Gpu& gpu) {
    for (std::size_t i = 0; i < models_.size(); ++i)
        if (models_[i].name == gpu.model && models_[i].slices == gpu.slices) return static_cast<std::uint8_t>(i);
    models_.push_back({gpu.model, gpu.board, gpu.slices});
    for (Shape& shape : shapes_) look_up(shape);  // some may want it
    return static_cast<std::uint8_t>(models_.size() - 1);
}

std::uint8_t FleetIndex::profile(const std::string& name, const gpu::Board* board) {
    if (name.empty()) return 0;
    std::uint8_t mode = 0;
    if (board != nullptr) {
        if (const auto choice = gpu::find_profile(*board, name))
            mode = static_cast<std::uint8_t>(board->profiles[choice->index].media);
    }
    for (std::size_t i = 1; i < profiles_.size(); ++i)
        if (profiles_[i] == name && (board == nullptr || profile_modes_[i] == mode))
            return static_cast<std::uint8_t>(i);
    profiles_.push_back(name);
    // A partition's mode is its own number: one pair of modes holds for the whole GPU.
    profile_modes_.push_back(board != nullptr ? mode : static_cast<std::uint8_t>(profiles_.size() - 1));
    return static_cast<std::uint8_t>(profiles_.size() - 1);
}

std::uint32_t FleetIndex::drive_list(const std::vector<std::int64_t>& sizes) {
    std::vector<std::int64_t> sorted = sizes;
    std::ranges::sort(sorted);
    const auto known = std::ranges::find(drive_lists_, sorted);
    if (known != drive_lists_.end()) return static_cast<std::uint32_t>(known - drive_lists_.begin());
    drive_lists_.push_back(std::move(sorted));
    return static_cast<std::uint32_t>(drive_lists_.size() - 1);
}

std::uint32_t FleetIndex::topology(TopologyLevel level, const std::string& name) {
    const auto at = static_cast<std::size_t>(level);
    const auto [known, fresh] =
        topology_numbers_.try_emplace(fmt::format("{}:{}", at, name), static_cast<std::uint32_t>(topology_[at].size()));
    if (fresh) topology_[at].emplace_back();
    return known->second;
}

NodeNo FleetIndex::add_node(const Node& node) {
    const auto number = static_cast<NodeNo>(nodes_.size());
    make_room(nodes_, 1);
    NodeRec& rec = nodes_.emplace_back();
    rec.cells = static_cast<std::uint32_t>(cells_.size());
    make_room(cells_, node.gpus.size());
    rec.gpus = static_cast<std::uint8_t>(std::min<std::size_t>(node.gpus.size(), 64));
    cells_.resize(cells_.size() + rec.gpus);
    // A node that does not say where it stands stands with nobody.
    const auto place = [&](TopologyLevel level, const std::string& label, const std::string& above) {
        const std::string name = label.empty() ? "node/" + node.name : above + "/" + label;
        const std::uint32_t domain = topology(level, name);
        nodes_[number].topology[static_cast<std::size_t>(level)] = domain;
        topology_[static_cast<std::size_t>(level)][domain].nodes.push_back(number);
    };
    const std::string zone = node.site + "/" + node.zone;
    place(TopologyLevel::nvlink_domain, node.nvlink_domain, "");
    place(TopologyLevel::leaf, node.leaf, zone);
    place(TopologyLevel::rack, node.rack, zone);
    place(TopologyLevel::zone, node.zone, node.site);
    place(TopologyLevel::site, node.site, "");
    draw(number, node);
    return number;
}

void FleetIndex::redraw(NodeNo node, const Node& as) {
    while (nodes_[node].seats != nil) unlink(nodes_[node].seats);
    draw(node, as);
}

void FleetIndex::draw(NodeNo node, const Node& as) {
    {
        NodeRec& rec = nodes_[node];
        rec.kind = as.kind;
        rec.ending = 0;
        rec.open = as.open;
        rec.board_is_one = as.board_is_one;
        rec.host_busy = as.host_busy;
        rec.can_reboot = as.can_reboot;
        rec.cpu = as.cpu_free;
        rec.memory = as.memory_free;
        rec.functions = static_cast<std::uint16_t>(as.functions.size());
        rec.drives = drive_list(as.drive_bytes);
        if (!as.drives.empty() || !as.functions.empty() || !as.host_used_by.empty() || rec.extra != nil) {
            if (rec.extra == nil) {
                rec.extra = static_cast<std::uint32_t>(extras_.size());
                extras_.emplace_back();
            }
            Extra& extra = extras_[rec.extra];
            extra = {as.drives, as.functions, as.drive_bytes, as.host_used_by, std::move(extra.sizes)};
            for (std::size_t i = 0; i < as.drives.size(); ++i)
                if (std::ranges::find(extra.sizes, as.drives[i], &std::pair<std::uint16_t, std::int64_t>::first) ==
                    extra.sizes.end())
                    extra.sizes.emplace_back(as.drives[i], as.drive_bytes[i]);
        }
        rec.hosts = {};
        for (const TenantNo user : as.host_used_by)
            rec.hosts = rec.hosts.with(user, PeerTrust::distrusting, PeerTrust::distrusting,
                                       [&](TenantNo tenant) { return tenant_domain(tenant); });
    }
    std::vector<LeaseKey> seen;
    for (std::size_t i = as.gpus.size(); i < nodes_[node].gpus; ++i) {  // gone since
        Cell& cell = cells_[nodes_[node].cells + i];
        cell.available = 0;
        cell.lost = models_[cell.model].all();
    }
    for (std::size_t i = 0; i < std::min<std::size_t>(nodes_[node].gpus, as.gpus.size()); ++i) {
        const std::uint8_t number = model(as.gpus[i]);
        Cell& cell = cells_[nodes_[node].cells + i];
        cell.model = number;
        cell.available = as.gpus[i].available;
        cell.lost = as.gpus[i].lost;
        for (const Seat& seat : as.gpus[i].seats) {
            const auto resident = std::ranges::find(as.residents, seat.lease, &Resident::lease);
            if (resident == as.residents.end()) continue;
            const SeatNo made = new_seat();
            SeatRec& rec = seats_[made];
            rec.gpus = std::uint64_t{1} << i;
            rec.node = node;
            rec.tenant = resident->tenant;
            rec.share = static_cast<std::uint16_t>(seat.share);
            rec.start = seat.start;
            rec.size = seat.size;
            rec.profile = profile(seat.profile, as.gpus[i].board);
            rec.mechanism = seat.mechanism;
            rec.scopes = scopes_of(resident->node, resident->gpu, resident->instance, resident->nvlink);
            rec.host_kernel = resident->on_host_kernel;
            rec.job = resident->job;
            const bool first = std::ranges::find(seen, seat.lease) == seen.end();
            rec.tasks = first ? resident->tasks : 0;
            if (first) seen.push_back(seat.lease);
            rec.ending = resident->ending;
            if (rec.ending) ++nodes_[node].ending;
            link(made);
        }
    }
    recount(node);
}

void FleetIndex::open(NodeNo node, bool is) {
    nodes_[node].open = is;
    restate(node);
}

void FleetIndex::clean(NodeNo node, std::uint16_t gpu, std::uint8_t slices) {
    Cell& cell = cells_[nodes_[node].cells + gpu];
    cell.available |= slices;
    cell.lost &= static_cast<std::uint8_t>(~slices);
    recount(node);
}

void FleetIndex::lose(NodeNo node, std::uint16_t gpu, std::uint8_t slices) {
    Cell& cell = cells_[nodes_[node].cells + gpu];
    cell.available &= static_cast<std::uint8_t>(~slices);
    cell.lost |= slices;
    restate(node);
}

void FleetIndex::soil(NodeNo node, std::uint16_t gpu, std::uint8_t slices) {
    cells_[nodes_[node].cells + gpu].available &= static_cast<std::uint8_t>(~slices);
    restate(node);
}

SeatNo FleetIndex::promise_exactly(const TaskSeat& where, const Job& job, JobNo owner) {
    const Shape& shape = shapes_[job.shape];
    SeatRec seat;
    seat.job = owner;
    seat.node = where.node;
    seat.tenant = job.tenant;
    seat.shape = job.shape;
    seat.mechanism = shape.need.mechanism;
    seat.scopes = shape.scopes;
    seat.host_kernel = shape.need.on_host_kernel;
    seat.promised = true;
    for (const std::uint16_t gpu : where.gpus) seat.gpus |= std::uint64_t{1} << gpu;
    if (!where.seats.empty()) {
        seat.start = where.seats.front().start;
        seat.size = where.seats.front().size;
        seat.share = static_cast<std::uint16_t>(where.seats.front().share);
    }
    return promise_again(seat);
}

bool FleetIndex::wants_reboot(NodeNo node, ShapeNo number, TenantNo tenant) const {
    const Shape& shape = shapes_[number];
    const NodeView here = view(node);
    const Obstacle in_the_way = shape.need.excepted.empty() ? neighbourly(here, shape, Eyes{.tenant = tenant})
                                                            : neighbourly_excepted(node, shape, tenant);
    return in_the_way == Obstacle::reboot && able(node, number);
}

SeatNo FleetIndex::promise_again(const SeatRec& seat) {
    const SeatNo made = new_seat();
    seats_[made] = seat;
    link(made);
    if (seat.shape != nil) {
        nodes_[seat.node].cpu -= shapes_[seat.shape].need.cpu;
        nodes_[seat.node].memory -= shapes_[seat.shape].need.memory;
    }
    recount(seat.node);
    return made;
}

bool FleetIndex::unsettled(SeatNo promised) const {
    const SeatRec& seat = seats_[promised];
    const NodeRec& rec = nodes_[seat.node];
    for (SeatNo s = rec.seats; s != nil; s = seats_[s].next_here)
        if (seats_[s].ending) return true;
    const std::uint8_t mask = gpu::Placement{seat.start, seat.size}.mask();
    std::uint8_t missing = 0;
    for (std::uint64_t bits = seat.gpus; bits != 0; bits &= bits - 1) {
        const auto at = static_cast<std::size_t>(std::countr_zero(bits));
        if (at >= rec.gpus) continue;  // another board in its place may have fewer
        const Cell& cell = cells_[rec.cells + at];
        missing |= static_cast<std::uint8_t>(mask & ~cell.available & ~cell.held & ~cell.lost);
    }
    return missing != 0;
}

std::size_t FleetIndex::domain_count(TopologyLevel level) const {
    if (level == TopologyLevel::none) return 1;
    return level == TopologyLevel::node ? nodes_.size() : domains(level).size();
}

std::uint32_t FleetIndex::domain_of(NodeNo node, TopologyLevel level) const {
    if (level == TopologyLevel::none) return 0;
    return level == TopologyLevel::node ? node : nodes_[node].topology[static_cast<std::size_t>(level)];
}

// What each of its wants is on the models there are.
void FleetIndex::look_up(Shape& shape) {
    shape.options.clear();
    constexpr std::uint16_t endless = 0xFFFF;
    shape.least_whole = shape.least_hole = shape.least_open = shape.need.wants.empty() ? 0 : endless;
    for (const Want& want : shape.need.wants) {
        const bool sliced = want.form == Want::Form::instance || want.form == Want::Form::partition;
        const bool shared = want.form == Want::Form::share && want.count == 1 && want.share < 1000;
        const auto at_most = [](std::uint16_t& least, std::int64_t value) {
            least = static_cast<std::uint16_t>(std::min<std::int64_t>(least, value));
        };
        at_most(shape.least_whole, sliced || shared ? 0 : want.count);
        at_most(shape.least_hole, shared ? want.share : 0);
        at_most(shape.least_open, sliced ? want.size : 0);
    }
    std::uint32_t models = 0;
    for (const Want& want : shape.need.wants)
        for (std::size_t m = 0; m < models_.size(); ++m)
            if (models_[m].name == want.model) models |= 1u << (m & 31u);
    for (const Want& want : shape.need.wants)
        for (std::size_t m = 0; m < models_.size(); ++m) {
            if (models_[m].name != want.model) continue;
            Shape::Option option;
            option.want = want;
            option.model = static_cast<std::uint8_t>(m);
            option.profile = profile(want.profile_name, models_[m].board);
            const bool sliced = want.form == Want::Form::instance || want.form == Want::Form::partition;
            option.task = {.cpu = shape.need.cpu * 1000,
                           .memory = shape.memory_mib,
                           .gpus = static_cast<std::int32_t>(want.count),
                           .share = static_cast<std::int32_t>(sliced ? 1000 * want.size / models_[m].slices
                                                                     : (want.count > 1 ? 1000 : want.share)),
                           .models = shape.need.any_model ? ~0u : models};
            shape.options.push_back(std::move(option));
        }
}

ShapeNo FleetIndex::shape(const TaskNeed& need) {
    std::string key = fmt::format("{}/{}/{}/{}/{}/{}/{}{}{}", static_cast<int>(need.mechanism), need.cpu, need.memory,
                                  need.nvme, need.rdma, need.any_model, need.on_host_kernel, "", "");
    key += fmt::format("/{}{}{}{}", static_cast<int>(need.sharing.node), static_cast<int>(need.sharing.gpu),
                       static_cast<int>(need.sharing.instance), static_cast<int>(need.sharing.nvlink));
    for (const TenantNo tenant : need.excepted) key += fmt::format("/e{}", tenant);
    for (const std::uint32_t kind : need.kinds) key += fmt::format("/k{}", kind);
    for (const Want& want : need.wants)
        key += fmt::format("/w{}:{}:{}:{}:{}:{}", want.model, static_cast<int>(want.form), want.count, want.share,
                           want.size, want.profile_name);
    const auto [known, fresh] = shape_numbers_.try_emplace(std::move(key), static_cast<ShapeNo>(shapes_.size()));
    if (!fresh) return known->second;
    Shape shape;
    shape.need = need;
    shape.memory_mib = (need.memory + (1 << 20) - 1) >> 20;
    std::ranges::sort(shape.need.kinds);
    shape.scopes = scopes_of(need.sharing.node, need.sharing.gpu, need.sharing.instance, need.sharing.nvlink);
    look_up(shape);
    shapes_.push_back(std::move(shape));
    return known->second;
}

Mix FleetIndex::observed_mix() const {
    std::vector<Mix::Part> parts;
    for (const Shape& shape : shapes_) {
        if (shape.seen == 0) continue;
        const TaskShape task =
            shape.options.empty() ? TaskShape{.cpu = shape.need.cpu * 1000} : shape.options.front().task;
        const auto known = std::ranges::find(parts, task, &Mix::Part::shape);
        if (known != parts.end())
            known->count += shape.seen;
        else
            parts.push_back({task, shape.seen});
    }
    std::vector<NodeRoom> fleet;
    fleet.reserve(nodes_.size());
    for (const NodeRec& node : nodes_) {
        if (node.gpus == 0) continue;
        fleet.push_back({.model = static_cast<std::uint8_t>(cells_[node.cells].model & 31u),
                         .gpus = std::min<std::uint8_t>(node.gpus, most_gpus_of_node)});
    }
    return Mix{std::move(parts), fleet};
}

void FleetIndex::set_mix(Mix mix) {
    mix_ = std::move(mix);
    ++mixes_;
    rankings_.clear();
}

std::size_t FleetIndex::bytes() const {
    std::size_t sum = nodes_.capacity() * sizeof(NodeRec) + cells_.capacity() * sizeof(Cell) +
                      states_.capacity() * sizeof(StateRec) + briefs_.capacity() * sizeof(Brief) +
                      state_cells_.capacity() * sizeof(Cell) + table_.capacity() * sizeof(StateNo) +
                      extras_.capacity() * sizeof(Extra);
    for (const StateRec& state : states_)
        sum += state.members.capacity() * sizeof(NodeNo) + state.listed.capacity() * sizeof(StateRec::Listed);
    for (const Audience& audience : audiences_)
        sum += sizeof(Audience) + audience.log.capacity() * sizeof(Known) + audience.live.capacity() * sizeof(StateNo);
    for (const auto& [key, ranking] : rankings_) sum += sizeof(Ranking) + 48 + ranking.heap.capacity() * sizeof(Entry);
    for (const Extra& extra : extras_)
        sum += (extra.drives.capacity() + extra.functions.capacity()) * 2 + extra.drive_bytes.capacity() * 8 +
               extra.host_users.capacity() * 4;
    for (const auto& level : topology_)
        for (const TopologyDomain& domain : level) sum += sizeof(domain) + domain.nodes.capacity() * sizeof(NodeNo);
    return sum;
}

// --- seats -----------------------------------------------------------------------------------------------------------

SeatNo FleetIndex::new_seat() {
    if (spare_seat_ == nil) {
        seats_.emplace_back();
        return static_cast<SeatNo>(seats_.size() - 1);
    }
    const SeatNo seat = spare_seat_;
    spare_seat_ = seats_[seat].next_here;
    seats_[seat] = {};
    return seat;
}

void FleetIndex::link(SeatNo seat) {
    SeatRec& rec = seats_[seat];
    rec.prev_here = nil;
    rec.next_here = nodes_[rec.node].seats;
    if (rec.next_here != nil) seats_[rec.next_here].prev_here = seat;
    nodes_[rec.node].seats = seat;
}

void FleetIndex::unlink(SeatNo seat) {
    const SeatRec& rec = seats_[seat];
    if (rec.prev_here != nil)
        seats_[rec.prev_here].next_here = rec.next_here;
    else
        nodes_[rec.node].seats = rec.next_here;
    if (rec.next_here != nil) seats_[rec.next_here].prev_here = rec.prev_here;
    seats_[seat].next_here = spare_seat_;
    spare_seat_ = seat;
}

void FleetIndex::recount(NodeNo node) {
    NodeRec& rec = nodes_[node];
    recount(
        std::span{cells_}.subspan(rec.cells, rec.gpus), seats_, rec.seats, [](const SeatRec&) { return false; }, *this,
        false);
    const auto domain_of = [&](TenantNo tenant) { return tenant_domain(tenant); };
    Company residents;
    for (SeatNo s = rec.seats; s != nil; s = seats_[s].next_here)
        residents = residents.with(seats_[s].tenant, seats_[s].scope(0),
                                   seats_[s].host_kernel ? PeerTrust::same_domain : PeerTrust::distrusting, domain_of);
    rec.residents = residents;
    if (rec.board_is_one)
        recount_fabric(node);
    else
        restate(node);
}

// Everybody on an NVLink fabric that cannot be partitioned, whichever node of it they sit on.
void FleetIndex::recount_fabric(NodeNo node) {
    const auto domain_of = [&](TenantNo tenant) { return tenant_domain(tenant); };
    const std::vector<NodeNo>& around = topology_[1][nodes_[node].topology[1]].nodes;
    Company fabric;
    for (const NodeNo other : around)
        for (SeatNo s = nodes_[other].seats; s != nil; s = seats_[s].next_here)
            fabric = fabric.with(seats_[s].tenant, seats_[s].scope(3), PeerTrust::distrusting, domain_of);
    for (const NodeNo other : around)
        if (nodes_[other].board_is_one && (other == node || nodes_[other].fabric != fabric)) {
            nodes_[other].fabric = fabric;
            restate(other);
        }
}

void FleetIndex::fill_seat(SeatRec& seat, const NodeView& here, const Shape& shape, const Choice& choice) const {
    if (shape.options.empty()) return;
    const Shape::Option& option = shape.options[choice.option];
    const CellModel& model = models_[option.model];
    const bool sliced = option.want.form == Want::Form::instance || option.want.form == Want::Form::partition;
    seat.share = static_cast<std::uint16_t>(option.want.share);
    if (option.want.count > 1) {
        std::int64_t left = option.want.count;
        for (std::size_t i = 0; i < here.cells.size() && left > 0; ++i)
            if (here.cells[i].model == option.model && here.cells[i].empty(model.all()) && here.cells[i].kept == 0) {
                seat.gpus |= std::uint64_t{1} << i;
                --left;
            }
    } else {
        seat.gpus = std::uint64_t{1} << choice.gpu;
    }
    seat.start = sliced ? choice.start : 0;
    seat.size = sliced ? option.want.size : model.slices;
    seat.profile = option.profile;
}

SeatNo FleetIndex::take(NodeNo node, ShapeNo number, const Job& job, JobNo owner) {
    const Shape& shape = shapes_[number];
    const NodeView here = view(node);
    const std::optional<Choice> choice = choose(here, shape, {.tenant = job.tenant});
    const SeatNo made = new_seat();
    NodeRec& rec = nodes_[node];
    SeatRec& seat = seats_[made];
    seat.job = owner;
    seat.node = node;
    seat.tenant = job.tenant;
    seat.shape = number;
    seat.mechanism = shape.need.mechanism;
    seat.scopes = shape.scopes;
    seat.host_kernel = shape.need.on_host_kernel;
    seat.pinned = !job.preemptible;
    const std::span<Cell> cells = std::span{cells_}.subspan(rec.cells, rec.gpus);
    if (choice && !shape.options.empty()) {
        fill_seat(seat, here, shape, *choice);
        const CellModel& model = models_[shape.options[choice->option].model];
        const std::uint8_t mask = gpu::Placement{seat.start, seat.size}.mask();
        const auto domain_of = [&](TenantNo tenant) { return tenant_domain(tenant); };
        for (std::uint64_t bits = seat.gpus; bits != 0; bits &= bits - 1) {
            Cell& cell = cells[static_cast<std::size_t>(std::countr_zero(bits))];
            cell.available &= static_cast<std::uint8_t>(~mask);
            cell.held |= mask;
            cell.company = cell.company.with(seat.tenant, seat.scope(1), seat.scope(2), domain_of);
            if (seat.profile == 0) cell.use = static_cast<std::uint8_t>(1 + static_cast<unsigned>(seat.mechanism));
            cell.mode = std::max(cell.mode, profile_modes_[seat.profile]);
            cell.taken = static_cast<std::uint16_t>(
                cell.taken + (seat.profile == 0 ? seat.share : 1000 * seat.size / model.slices * seat.share / 1000));
        }
    }
    rec.cpu -= shape.need.cpu;
    rec.memory -= shape.need.memory;
    if (shape.need.rdma && rec.extra != nil && !extras_[rec.extra].functions.empty()) {
        std::vector<std::uint16_t>& functions = extras_[rec.extra].functions;
        seat.function = functions.front();
        functions.erase(functions.begin());
        --rec.functions;
    }
    if (shape.need.nvme > 0 && rec.extra != nil) {
        Extra& extra = extras_[rec.extra];
        std::optional<std::size_t> best;
        for (std::size_t i = 0; i < extra.drives.size(); ++i)
            if (extra.drive_bytes[i] >= shape.need.nvme && (!best || extra.drive_bytes[i] < extra.drive_bytes[*best]))
                best = i;
        if (best) {
            seat.drive = extra.drives[*best];
            extra.drives.erase(extra.drives.begin() + static_cast<std::ptrdiff_t>(*best));
            extra.drive_bytes.erase(extra.drive_bytes.begin() + static_cast<std::ptrdiff_t>(*best));
            rec.drives = drive_list(extra.drive_bytes);
        }
    }
    link(made);
    rec.residents = rec.residents.with(seat.tenant, seat.scope(0),
                                       seat.host_kernel ? PeerTrust::same_domain : PeerTrust::distrusting,
                                       [&](TenantNo tenant) { return tenant_domain(tenant); });
    if (rec.board_is_one)
        recount_fabric(node);
    else
        restate(node);
    return made;
}

SeatNo FleetIndex::take_exactly(const TaskSeat& where, ShapeNo number, const Job& job, JobNo owner) {
    const Shape& shape = shapes_[number];
    const SeatNo made = new_seat();
    NodeRec& rec = nodes_[where.node];
    SeatRec& seat = seats_[made];
    seat.job = owner;
    seat.node = where.node;
    seat.tenant = job.tenant;
    seat.shape = number;
    seat.mechanism = shape.need.mechanism;
    seat.scopes = shape.scopes;
    seat.host_kernel = shape.need.on_host_kernel;
    seat.pinned = !job.preemptible;
    for (const std::uint16_t gpu : where.gpus) seat.gpus |= std::uint64_t{1} << gpu;
    if (!where.seats.empty()) {
        const Seat& first = where.seats.front();
        seat.start = first.start;
        seat.size = first.size;
        seat.share = static_cast<std::uint16_t>(first.share);
        const Cell& cell = cells_[rec.cells + where.gpus.front()];
        seat.profile = profile(first.profile, models_[cell.model].board);
    }
    const std::uint8_t mask = gpu::Placement{seat.start, seat.size}.mask();
    for (const std::uint16_t gpu : where.gpus) cells_[rec.cells + gpu].available &= static_cast<std::uint8_t>(~mask);
    rec.cpu -= shape.need.cpu;
    rec.memory -= shape.need.memory;
    const auto without = [&](std::vector<std::uint16_t>& from, std::uint16_t device) {
        const auto at = std::ranges::find(from, device);
        const auto index = at - from.begin();
        if (at != from.end()) from.erase(at);
        return static_cast<std::size_t>(index);
    };
    if (rec.extra != nil) {
        Extra& extra = extras_[rec.extra];
        for (const std::uint16_t function : where.functions) {
            without(extra.functions, function);
            seat.function = function;
            --rec.functions;
        }
        for (const std::uint16_t drive : where.drives) {
            const std::size_t at = without(extra.drives, drive);
            if (at < extra.drive_bytes.size())
                extra.drive_bytes.erase(extra.drive_bytes.begin() + static_cast<std::ptrdiff_t>(at));
            seat.drive = drive;
            rec.drives = drive_list(extra.drive_bytes);
        }
    }
    link(made);
    recount(where.node);
    return made;
}

void FleetIndex::release(SeatNo number, bool clean) {
    const SeatRec seat = seats_[number];
    NodeRec& rec = nodes_[seat.node];
    if (seat.ending) --rec.ending;
    unlink(number);
    if (seat.shape != nil) {
        rec.cpu += seat.tasks * shapes_[seat.shape].need.cpu;
        rec.memory += seat.tasks * shapes_[seat.shape].need.memory;
    }
    clean = clean && !seat.promised;
    if (rec.extra != nil && clean) {
        Extra& extra = extras_[rec.extra];
        if (seat.function != 0xFFFF) {
            extra.functions.insert(std::ranges::lower_bound(extra.functions, seat.function), seat.function);
            ++rec.functions;
        }
        if (seat.drive != 0xFFFF && seat.shape != nil) {
            extra.drives.push_back(seat.drive);
            const auto size =
                std::ranges::find(extra.sizes, seat.drive, &std::pair<std::uint16_t, std::int64_t>::first);
            extra.drive_bytes.push_back(size == extra.sizes.end() ? 0 : size->second);
            rec.drives = drive_list(extra.drive_bytes);
        }
    }
    if (clean) {
        const std::uint8_t mask = gpu::Placement{seat.start, seat.size}.mask();
        for (std::uint64_t bits = seat.gpus; bits != 0; bits &= bits - 1) {
            Cell& cell = cells_[rec.cells + static_cast<std::size_t>(std::countr_zero(bits))];
            cell.available |= static_cast<std::uint8_t>(mask & ~cell.lost);
        }
    }
    recount(seat.node);  // takes back from `available` what others still hold
}

void FleetIndex::set_ending(SeatNo seat, bool is) {
    NodeRec& node = nodes_[seats_[seat].node];
    if (seats_[seat].ending != is) node.ending = static_cast<std::uint16_t>(is ? node.ending + 1 : node.ending - 1);
    seats_[seat].ending = is;
    recount(seats_[seat].node);
}

TaskSeat FleetIndex::described(SeatNo number) const {
    const SeatRec& seat = seats_[number];
    TaskSeat out;
    out.node = seat.node;
    for (std::uint64_t bits = seat.gpus; bits != 0; bits &= bits - 1) {
        out.gpus.push_back(static_cast<std::uint16_t>(std::countr_zero(bits)));
        out.seats.push_back({.start = seat.start,
                             .size = seat.size,
                             .profile = profiles_[seat.profile],
                             .share = seat.share,
                             .mechanism = seat.mechanism});
    }
    if (seat.drive != 0xFFFF) out.drives.push_back(seat.drive);
    if (seat.function != 0xFFFF) out.functions.push_back(seat.function);
    return out;
}

// --- buckets ---------------------------------------------------------------------------------------------------------

NodeView FleetIndex::view(NodeNo node) const {
    const NodeRec& rec = nodes_[node];
    return {.cells = std::span{cells_}.subspan(rec.cells, rec.gpus),
            .cpu = rec.cpu,
            .memory = rec.memory,
            .kind = rec.kind,
            .functions = rec.functions,
            .drives = rec.drives,
            .residents = rec.residents,
            .fabric = rec.fabric,
            .hosts = rec.hosts,
            .open = rec.open,
            .board_is_one = rec.board_is_one,
            .host_busy = rec.host_busy,
            .can_reboot = rec.can_reboot};
}

NodeView FleetIndex::view(const StateRec& state) const {
    return {.known = &state.known,
            .cells = std::span{state_cells_}.subspan(state.cells, state.gpus),
            .cpu = state.cpu,
            .memory = state.memory,
            .kind = state.kind,
            .functions = state.functions,
            .drives = state.drives,
            .residents = state.residents,
            .fabric = state.fabric,
            .hosts = state.hosts,
            .open = state.open,
            .board_is_one = state.board_is_one,
            .host_busy = state.host_busy,
            .can_reboot = state.can_reboot};
}

StateNo FleetIndex::intern(NodeNo node) {
    const NodeRec& rec = nodes_[node];
    scratch_cells_.assign(cells_.begin() + rec.cells, cells_.begin() + rec.cells + rec.gpus);
    std::ranges::sort(scratch_cells_);
    std::uint64_t hash = mixed(0x2545F4914F6CDD1Du, static_cast<std::uint64_t>(rec.cpu));
    hash = mixed(hash, static_cast<std::uint64_t>(rec.memory));
    hash = mixed(hash, std::uint64_t{rec.kind} << 32 | rec.drives);
    hash = mixed(hash, std::uint64_t{rec.residents.word()} << 32 | rec.fabric.word());
    hash =
        mixed(hash, std::uint64_t{rec.hosts.word()} << 32 | std::uint64_t{rec.functions} << 8 | (rec.open ? 1u : 0u) |
                        (rec.board_is_one ? 2u : 0u) | (rec.host_busy ? 4u : 0u) | (rec.can_reboot ? 8u : 0u));
    hash = hash_of(scratch_cells_, hash);
    if ((kept_states_ + 1) * 2 > table_.size()) {
        std::vector<StateNo> larger(std::max<std::size_t>(64, table_.size() * 2), nil);
        for (const StateNo state : table_)
            if (state != nil) {
                std::size_t at = states_[state].hash & (larger.size() - 1);
                while (larger[at] != nil) at = (at + 1) & (larger.size() - 1);
                larger[at] = state;
            }
        table_ = std::move(larger);
    }
    std::size_t at = hash & (table_.size() - 1);
    for (; table_[at] != nil; at = (at + 1) & (table_.size() - 1)) {
        const StateRec& state = states_[table_[at]];
        if (state.hash == hash && state.cpu == rec.cpu && state.memory == rec.memory && state.kind == rec.kind &&
            state.drives == rec.drives && state.functions == rec.functions && state.residents == rec.residents &&
            state.fabric == rec.fabric && state.hosts == rec.hosts && state.open == rec.open &&
            state.board_is_one == rec.board_is_one && state.host_busy == rec.host_busy &&
            state.can_reboot == rec.can_reboot && state.gpus == rec.gpus &&
            std::equal(scratch_cells_.begin(), scratch_cells_.end(), state_cells_.begin() + state.cells))
            return table_[at];
    }
    StateNo number = nil;
    // A bucket that is not used any more and has as many GPUs gives its memory.
    for (std::size_t back = 1; back <= std::min<std::size_t>(8, spare_states_.size()) && number == nil; ++back) {
        const std::size_t i = spare_states_.size() - back;
        if (states_[spare_states_[i]].gpus != rec.gpus) continue;
        number = spare_states_[i];
        spare_states_.erase(spare_states_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (number == nil) {
        number = static_cast<StateNo>(states_.size());
        make_room(states_, 1);
        make_room(briefs_, 1);
        make_room(state_cells_, rec.gpus);
        StateRec& made = states_.emplace_back();
        briefs_.emplace_back();
        made.cells = static_cast<std::uint32_t>(state_cells_.size());
        made.gpus = rec.gpus;
        state_cells_.resize(state_cells_.size() + rec.gpus);
    }
    StateRec& state = states_[number];
    std::ranges::copy(scratch_cells_, state_cells_.begin() + state.cells);
    state.hash = hash;
    state.cpu = rec.cpu;
    state.memory = rec.memory;
    state.kind = rec.kind;
    state.drives = rec.drives;
    state.functions = rec.functions;
    state.residents = rec.residents;
    state.fabric = rec.fabric;
    state.hosts = rec.hosts;
    state.open = rec.open;
    state.board_is_one = rec.board_is_one;
    state.host_busy = rec.host_busy;
    state.can_reboot = rec.can_reboot;
    Brief& brief = briefs_[number];
    brief = {.birth = ++births_, .cpu = static_cast<std::int32_t>(std::clamp<std::int64_t>(rec.cpu, -1, 1 << 30))};
    for (const Cell& cell : scratch_cells_) {
        const bool empty = is_empty(cell);
        brief.whole = static_cast<std::uint8_t>(brief.whole + (empty ? 1 : 0));
        const auto hole = static_cast<std::uint16_t>(empty                               ? 1000
                                                     : cell.use > 1 && cell.taken < 1000 ? 1000 - cell.taken
                                                                                         : 0);
        brief.hole = std::max(brief.hole, hole);
        if (cell.use == 0) brief.open = std::max(brief.open, static_cast<std::uint8_t>(std::popcount(cell.open())));
    }
    state.members.clear();
    state.known = {};
    state.free = 0;
    for (const Cell& cell : scratch_cells_) state.free += 1000 - std::min<std::int64_t>(1000, cell.taken);
    table_[at] = number;
    ++kept_states_;
    return number;
}

void FleetIndex::leave(NodeNo node) {
    const StateNo old = nodes_[node].state;
    if (old == nil) return;
    StateRec& state = states_[old];
    if (--briefs_[old].count > 0) return;
    unlist(old);
    --live_states_;
    state.members.clear();
}

void FleetIndex::restate(NodeNo node) {
    NodeRec& rec = nodes_[node];
    // Sums over the fleet and its topology.
    std::int64_t free = 0, total = 0;
    std::uint8_t whole = 0;
    for (std::size_t i = 0; i < rec.gpus; ++i) {
        const Cell& cell = cells_[rec.cells + i];
        const std::int64_t lost = lost_of(cell, models_[cell.model]);
        total += 1000 - lost;
        free += std::max<std::int64_t>(0, 1000 - lost - cell.taken);
        whole = static_cast<std::uint8_t>(whole + (cell.empty(models_[cell.model].all()) && cell.kept == 0 ? 1 : 0));
    }
    if (!rec.open) free = 0;
    if (!rec.open) whole = 0;
    free_ += free - rec.free;
    total_ += total - rec.total;
    rec.free = static_cast<std::int32_t>(free);
    rec.total = static_cast<std::int32_t>(total);
    if (whole != rec.whole) {
        for (const std::size_t level : {1u, 3u, 4u, 5u, 6u})
            topology_[level][rec.topology[level]].whole += whole - rec.whole;
        rec.whole = whole;
    }

    const StateNo next = intern(node);
    if (next == rec.state) return;
    leave(node);
    nodes_[node].state = next;
    StateRec& state = states_[next];
    if (state.members.size() > 64 + 4 * static_cast<std::size_t>(briefs_[next].count)) {
        std::erase_if(state.members, [&](NodeNo member) { return nodes_[member].state != next || member == node; });
        std::ranges::sort(state.members);
        const auto [first, last] = std::ranges::unique(state.members);
        state.members.erase(first, last);
    }
    state.members.push_back(node);
    std::ranges::push_heap(state.members, std::greater<>{});
    if (++briefs_[next].count == 1) {
        ++live_states_;
        list(next);
    }
    if (kept_states_ > 2 * live_states_ + 1024) sweep();
}

// Buckets that nobody is in make room; their numbers are given again under another birth.
void FleetIndex::sweep() {
    std::vector<bool> spare(states_.size());
    for (const StateNo state : spare_states_) spare[state] = true;
    std::ranges::fill(table_, nil);
    kept_states_ = 0;
    for (StateNo number = 0; number < states_.size(); ++number) {
        const StateRec& state = states_[number];
        if (briefs_[number].count == 0) {
            if (!spare[number]) spare_states_.push_back(number);
            continue;
        }
        std::size_t at = state.hash & (table_.size() - 1);
        while (table_[at] != nil) at = (at + 1) & (table_.size() - 1);
        table_[at] = number;
        ++kept_states_;
    }
}

NodeNo FleetIndex::first_member(StateNo number) {
    StateRec& state = states_[number];
    while (nodes_[state.members.front()].state != number) {
        std::ranges::pop_heap(state.members, std::greater<>{});
        state.members.pop_back();
    }
    return state.members.front();
}

// --- audiences -------------------------------------------------------------------------------------------------------

namespace {

constexpr std::uint64_t audience_key(std::uint64_t crowd, std::uint64_t id, bool board) {
    return crowd << 40 | (board ? std::uint64_t{1} << 36 : 0) | id;
}
constexpr std::uint64_t of_domain = std::uint64_t{1} << 30;  // an id that is a domain's

}  // namespace

void FleetIndex::audiences_of(const StateRec& state, std::vector<std::uint64_t>& out) const {
    out.clear();
    if (!state.open || state.host_busy) return;
    const auto domain_of = [&](TenantNo tenant) { return tenant_domain(tenant); };
    const auto add = [&](Crowd crowd, std::uint64_t id, bool board) {
        out.push_back(audience_key(static_cast<std::uint64_t>(crowd), id, board));
    };
    const std::array here{state.residents, state.fabric, state.hosts};
    std::optional<TenantNo> sole;
    std::optional<std::uint32_t> domain;
    bool any = false, one_tenant = true, one_domain = true;
    for (const Company& company : here) {
        if (company.empty()) continue;
        any = true;
        if (company.kind() != Company::Kind::tenant || (sole && *sole != company.id())) one_tenant = false;
        if (company.kind() == Company::Kind::tenant) sole = company.id();
        const std::uint32_t its = company.domain_here(domain_of);
        if (its == 0 || (domain && *domain != its)) one_domain = false;
        domain = its;
    }
    if (!any) return add(Crowd::anyone, 0, false);
    if (state.residents.empty() && state.fabric.empty()) {
        if (one_domain) return add(Crowd::vacant, *domain, false);
        if (one_tenant) add(Crowd::tenant, *sole, false);
        return;
    }
    if (one_tenant) add(Crowd::tenant, *sole, false);
    PeerTrust bears = PeerTrust::distrusting;
    if (!state.residents.empty()) bears = std::min(state.residents.bears(), state.residents.bears_closer());
    if (!state.fabric.empty()) bears = std::min(bears, state.fabric.bears());
    if (one_domain && bears >= PeerTrust::same_domain) add(Crowd::domain, *domain, state.board_is_one);
    if (state.hosts.empty() && bears == PeerTrust::distrusting) add(Crowd::everybody, 0, state.board_is_one);
    if (one_tenant) return;
    // Parts of a GPU that only those may use who sit there already, or who are near to them.
    for (const Cell& cell : std::span{state_cells_}.subspan(state.cells, state.gpus)) {
        const PeerTrust least = std::min(cell.company.bears(), cell.company.bears_closer());
        if (cell.company.empty() || cell.company.kind() == Company::Kind::strangers ||
            least == PeerTrust::distrusting || (cell.open() == 0 && cell.taken >= 1000))
            continue;
        if (cell.company.kind() == Company::Kind::tenant) add(Crowd::present, cell.company.id(), false);
        const std::uint32_t its = cell.company.domain_here(domain_of);
        if (!one_domain && its != 0 && cell.company.bears() >= PeerTrust::same_domain)
            add(Crowd::present, of_domain | its, false);
    }
    std::ranges::sort(out);
    const auto [first, last] = std::ranges::unique(out);
    out.erase(first, last);
}

std::uint32_t FleetIndex::audience(std::uint64_t key) {
    const auto [known, fresh] = audience_numbers_.try_emplace(key, static_cast<std::uint32_t>(audiences_.size()));
    if (fresh) audiences_.emplace_back();
    return known->second;
}

void FleetIndex::list(StateNo number) {
    audiences_of(states_[number], scratch_keys_);
    for (const std::uint64_t key : scratch_keys_) {
        const std::uint32_t to = audience(key);
        Audience& audience = audiences_[to];
        states_[number].listed.push_back({to, static_cast<std::uint32_t>(audience.live.size())});
        audience.live.push_back(number);
        if (audience.log.size() > 256 + 4 * audience.live.size()) {
            audience.log.clear();
            for (const StateNo live : audience.live) audience.log.push_back({live, briefs_[live].birth});
            ++audience.edition;
        } else {
            audience.log.push_back({number, briefs_[number].birth});
        }
    }
}

void FleetIndex::unlist(StateNo number) {
    for (const StateRec::Listed listed : states_[number].listed) {
        Audience& audience = audiences_[listed.audience];
        const StateNo moved = audience.live.back();
        audience.live[listed.at] = moved;
        audience.live.pop_back();
        if (moved != number)
            for (StateRec::Listed& its : states_[moved].listed)
                if (its.audience == listed.audience) its.at = listed.at;
    }
    states_[number].listed.clear();
}

// Where a request may look.
FleetIndex::Looks FleetIndex::looks(const Shape& shape, TenantNo tenant) const {
    Looks out;
    const std::uint32_t domain = tenant_domain(tenant);
    const SharingScope& sharing = shape.need.sharing;
    const PeerTrust kernel = shape.need.on_host_kernel ? PeerTrust::same_domain : PeerTrust::distrusting;
    const PeerTrust node = std::min(sharing.node, kernel), board = std::min(node, sharing.nvlink);
    const auto go = [&](Crowd crowd, std::uint64_t id, bool on_board, const Eyes& eyes) {
        const auto known = audience_numbers_.find(audience_key(static_cast<std::uint64_t>(crowd), id, on_board));
        if (known != audience_numbers_.end() && !audiences_[known->second].live.empty())
            out.all[out.count++] = {known->second, eyes};
    };
    const Eyes own{.tenant = tenant};
    go(Crowd::anyone, 0, false, own);
    go(Crowd::tenant, tenant, false, own);
    if (domain != 0) {
        const Eyes mates{.domain = domain};
        go(Crowd::vacant, domain, false, own);
        if (node >= PeerTrust::same_domain) go(Crowd::domain, domain, false, mates);
        if (board >= PeerTrust::same_domain) go(Crowd::domain, domain, true, mates);
        go(Crowd::present, of_domain | domain, false, mates);
    }
    const Eyes strangers{.stranger = true};
    if (node == PeerTrust::distrusting) go(Crowd::everybody, 0, false, strangers);
    if (board == PeerTrust::distrusting) go(Crowd::everybody, 0, true, strangers);
    go(Crowd::present, tenant, false, own);
    return out;
}

// --- rankings --------------------------------------------------------------------------------------------------------

std::optional<FleetIndex::Entry> FleetIndex::entry(StateNo number, const Shape& shape, const Eyes& eyes) const {
    const StateRec& state = states_[number];
    if (state.cpu < shape.need.cpu || state.memory < shape.need.memory) return std::nullopt;
    const NodeView here = view(state);
    if (!kind_ok(shape, here.kind) || !has_devices(here, shape)) return std::nullopt;
    // Certain for most audiences; not where somebody has a part of a GPU on a node of others.
    if (neighbourly(here, shape, eyes) != Obstacle::none) return std::nullopt;
    const std::optional<Choice> choice = choose(here, shape, eyes);
    if (!choice) return std::nullopt;
    return Entry{.good = choice->good * (1 << 20) + choice->fullness,
                 .tie = -(state.cpu << 24) - (state.memory >> 30),
                 .hash = state.hash,
                 .known = {number, briefs_[number].birth}};
}

std::optional<FleetIndex::Standing> FleetIndex::standing(NodeNo node, ShapeNo shape, TenantNo tenant) const {
    if (capacity(node, shape, tenant) == 0) return std::nullopt;
    const auto found = entry(nodes_[node].state, shapes_[shape], {.tenant = tenant});
    if (!found) return std::nullopt;
    return Standing{found->good, found->tie};
}

bool FleetIndex::may_take(const Brief& brief, const Shape& shape) const {
    return brief.cpu >= shape.need.cpu && brief.whole >= shape.least_whole && brief.hole >= shape.least_hole &&
           brief.open >= shape.least_open;
}

const FleetIndex::Entry* FleetIndex::top(std::uint32_t of, ShapeNo number, const Eyes& eyes) {
    const Audience& audience = audiences_[of];
    const Shape& shape = shapes_[number];
    // A few buckets are looked at faster than a ranking is kept.
    if (audience.live.size() <= few_buckets) {
        bool any = false;
        for (const StateNo state : audience.live) {
            if (!may_take(briefs_[state], shape)) continue;
            const auto found = entry(state, shape, eyes);
            if (!found || (any && !(scanned_ < *found))) continue;
            scanned_ = *found;
            any = true;
        }
        return any ? &scanned_ : nullptr;
    }
    Ranking& ranking = rankings_[std::uint64_t{of} << 32 | number];
    const std::size_t unread = audience.log.size() - (ranking.edition == audience.edition ? ranking.read : 0);
    if (ranking.edition != audience.edition || unread > audience.live.size()) {
        ranking.heap.clear();
        for (const StateNo state : audience.live)
            if (may_take(briefs_[state], shape))
                if (const auto found = entry(state, shape, eyes)) ranking.heap.push_back(*found);
        std::make_heap(ranking.heap.begin(), ranking.heap.end());
        ranking.edition = audience.edition;
    } else {
        for (std::size_t i = ranking.read; i < audience.log.size(); ++i) {
            const Known known = audience.log[i];
            if (!alive(known) || !may_take(briefs_[known.state], shape)) continue;
            if (const auto found = entry(known.state, shape, eyes)) {
                ranking.heap.push_back(*found);
                std::push_heap(ranking.heap.begin(), ranking.heap.end());
            }
        }
    }
    ranking.read = static_cast<std::uint32_t>(audience.log.size());
    while (!ranking.heap.empty()) {
        if (alive(ranking.heap.front().known)) return &ranking.heap.front();
        std::pop_heap(ranking.heap.begin(), ranking.heap.end());
        ranking.heap.pop_back();
    }
    return nullptr;
}

std::optional<NodeNo> FleetIndex::best(ShapeNo number, TenantNo tenant) {
    const Shape& shape = shapes_[number];
    if (!shape.need.excepted.empty()) {
        // Rare, and about named pairs of tenants: looked for node by node.
        std::optional<Entry> best;
        std::optional<NodeNo> found;
        for (NodeNo node = 0; node < nodes_.size(); ++node) {
            if (capacity(node, number, tenant) == 0) continue;
            const auto entry = this->entry(nodes_[node].state, shape, {.tenant = tenant});
            if (!entry || (best && !(*best < *entry))) continue;
            best = entry;
            found = node;
        }
        return found;
    }
    std::optional<Entry> best;
    for (const Looks::Look& look : looks(shape, tenant)) {
        const Entry* found = top(look.audience, number, look.eyes);
        if (found != nullptr && (!best || *best < *found)) best = *found;
    }
    if (!best) return std::nullopt;
    return first_member(best->known.state);
}

}  // namespace bulkhead::sched
