// Who sits where: tasks that are given a place, leave it, or are promised one.
#include <algorithm>

#include "bulkhead/sched/fleet_index.hpp"
#include "bulkhead/sched/nearness.hpp"

namespace bulkhead::sched {

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

void FleetIndex::note_changed(NodeNo node) {
    if (nodes_[node].changed) return;
    nodes_[node].changed = true;
    changed_.push_back(node);
}

void FleetIndex::forget_changed_nodes() {
    for (const NodeNo node : changed_) nodes_[node].changed = false;
    changed_.clear();
}

void FleetIndex::link(SeatNo seat) {
    SeatRec& rec = seats_[seat];
    if (rec.pinned) note_changed(rec.node);
    rec.prev_here = nil;
    rec.next_here = nodes_[rec.node].seats;
    if (rec.next_here != nil) seats_[rec.next_here].prev_here = seat;
    nodes_[rec.node].seats = seat;
}

void FleetIndex::unlink(SeatNo seat) {
    const SeatRec& rec = seats_[seat];
    if (rec.pinned) note_changed(rec.node);
    if (rec.prev_here != nil)
        seats_[rec.prev_here].next_here = rec.next_here;
    else
        nodes_[rec.node].seats = rec.next_here;
    if (rec.next_here != nil) seats_[rec.next_here].prev_here = rec.prev_here;
    seats_[seat].next_here = spare_seat_;
    spare_seat_ = seat;
}

void FleetIndex::recount(NodeNo node, std::uint64_t gpus) {
    NodeRec& rec = nodes_[node];
    recount(
        std::span{cells_}.subspan(rec.cells, rec.gpus), seats_, rec.seats, [](const SeatRec&) { return false; }, *this,
        false, gpus);
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

void FleetIndex::count_clients() {
    if (counts_clients_) return;
    counts_clients_ = true;
    for (NodeNo node = 0; node < nodes_.size(); ++node)
        if (nodes_[node].seats != nil) recount(node);
}

SeatRec FleetIndex::seat_of(const Job& job, JobNo owner, NodeNo node) const {
    const Shape& shape = shapes_[job.shape];
    SeatRec seat;
    seat.job = owner;
    seat.node = node;
    seat.tenant = job.tenant;
    seat.shape = job.shape;
    seat.mechanism = shape.need.mechanism;
    seat.scopes = shape.scopes;
    seat.host_kernel = shape.need.on_host_kernel;
    seat.pinned = !job.preemptible;
    return seat;
}

void FleetIndex::set_place(SeatRec& seat, const NodeView& here, const Shape& shape, const Choice& choice) const {
    if (shape.options.empty()) return;
    const Shape::Option& option = shape.options[choice.option];
    const CellModel& model = models_[option.model];
    const bool sliced = option.want.is_sliced();
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

void FleetIndex::set_place(SeatRec& seat, const TaskSeat& where) {
    for (const std::uint16_t gpu : where.gpus) seat.gpus |= std::uint64_t{1} << gpu;
    if (where.seats.empty()) return;
    const Seat& first = where.seats.front();
    seat.start = first.start;
    seat.size = first.size;
    seat.share = static_cast<std::uint16_t>(first.share);
    const NodeRec& node = nodes_[seat.node];
    // Another board in its place may have fewer GPUs.
    if (where.gpus.front() >= node.gpus) return;
    seat.profile = profile(first.profile, models_[cells_[node.cells + where.gpus.front()].model].board);
}

void FleetIndex::sit(Cell& cell, const SeatRec& seat) const {
    const std::uint8_t mask = gpu::Placement{seat.start, seat.size}.mask();
    cell.company = cell.company.with(seat.tenant, seat.scope(1), seat.scope(2),
                                     [&](TenantNo tenant) { return tenant_domain(tenant); });
    if (seat.profile != 0) cell.begins |= static_cast<std::uint8_t>(1u << seat.start);
    if (seat.promised) {
        cell.kept |= mask;
        if (models_[cell.model].amd) cell.mode = std::max(cell.mode, profile_modes_[seat.profile]);
        return;
    }
    if (seat.profile == 0) cell.use = static_cast<std::uint8_t>(1 + static_cast<unsigned>(seat.mechanism));
    cell.mode = std::max(cell.mode, profile_modes_[seat.profile]);
    if (!seat.ending) cell.held |= mask;
    if (counts_clients_ && seat.is_mps_client())
        cell.clients = static_cast<std::uint8_t>(std::min(cell.clients + seat.tasks, 255));
    const std::int64_t slices = models_[cell.model].slices;
    cell.taken = static_cast<std::uint16_t>(
        cell.taken + (seat.profile == 0 ? seat.share : std::int64_t{1000} * seat.size / slices * seat.share / 1000));
}

SeatNo FleetIndex::take(NodeNo node, const Job& job, JobNo owner) {
    const std::optional<Choice> choice = choose(view(node), shapes_[job.shape], {.tenant = job.tenant});
    invariant(choice.has_value(), "a task is given a place only where there is room for it");
    return take(node, job, owner, *choice);
}

SeatNo FleetIndex::take(NodeNo node, const Job& job, JobNo owner, const Choice& choice) {
    const Shape& shape = shapes_[job.shape];
    const NodeView here = view(node);
    const SeatNo made = new_seat();
    NodeRec& rec = nodes_[node];
    SeatRec& seat = seats_[made];
    seat = seat_of(job, owner, node);
    set_place(seat, here, shape, choice);
    const std::uint8_t mask = gpu::Placement{seat.start, seat.size}.mask();
    for (std::uint64_t bits = seat.gpus; bits != 0; bits &= bits - 1) {
        Cell& cell = cells_[rec.cells + static_cast<std::size_t>(std::countr_zero(bits))];
        cell.available &= static_cast<std::uint8_t>(~mask);
        sit(cell, seat);
    }
    rec.cpu -= shape.need.cpu;
    rec.memory -= shape.need.memory;
    if (shape.need.rdma && rec.extra != nil && !extras_[rec.extra].functions.empty()) {
        std::vector<std::uint16_t>& functions = extras_[rec.extra].functions;
        const std::size_t at = nearest(functions, seat.gpus, extras_[rec.extra].closeness, rec.gpus);
        seat.function = functions[at];
        functions.erase(functions.begin() + static_cast<std::ptrdiff_t>(at));
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
    use_host(node, seat);
    rec.residents = rec.residents.with(seat.tenant, seat.scope(0),
                                       seat.host_kernel ? PeerTrust::same_domain : PeerTrust::distrusting,
                                       [&](TenantNo tenant) { return tenant_domain(tenant); });
    if (rec.board_is_one)
        recount_fabric(node);
    else
        restate(node);
    return made;
}

SeatNo FleetIndex::take_exactly(const TaskSeat& where, const Job& job, JobNo owner) {
    const Shape& shape = shapes_[job.shape];
    const SeatNo made = new_seat();
    NodeRec& rec = nodes_[where.node];
    SeatRec& seat = seats_[made];
    seat = seat_of(job, owner, where.node);
    set_place(seat, where);
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
    use_host(where.node, seats_[made]);
    recount(where.node, seats_[made].gpus);
    return made;
}

void FleetIndex::use_host(NodeNo node, const SeatRec& seat) {
    if (!remembers_hosts_ || !seat.host_kernel) return;
    NodeRec& rec = nodes_[node];
    if (!rec.can_reboot) note_changed(node);
    rec.hosts = rec.hosts.with(seat.tenant, PeerTrust::distrusting, PeerTrust::distrusting,
                               [&](TenantNo tenant) { return tenant_domain(tenant); });
    if (rec.extra == nil) {
        rec.extra = static_cast<std::uint32_t>(extras_.size());
        extras_.emplace_back();
    }
    std::vector<TenantNo>& users = extras_[rec.extra].host_users;
    if (std::ranges::find(users, seat.tenant) == users.end()) users.push_back(seat.tenant);
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
    recount(seat.node, seat.gpus);  // takes back from `available` what others still hold
}

void FleetIndex::set_ending(SeatNo seat, bool is) {
    NodeRec& node = nodes_[seats_[seat].node];
    if (seats_[seat].ending != is) node.ending = static_cast<std::uint16_t>(is ? node.ending + 1 : node.ending - 1);
    seats_[seat].ending = is;
    recount(seats_[seat].node, seats_[seat].gpus);
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

SeatNo FleetIndex::promise_exactly(const TaskSeat& where, const Job& job, JobNo owner) {
    SeatRec seat = seat_of(job, owner, where.node);
    seat.promised = true;
    set_place(seat, where);
    return promise_again(seat);
}

SeatNo FleetIndex::promise_again(const SeatRec& seat) {
    const SeatNo made = new_seat();
    seats_[made] = seat;
    link(made);
    if (seat.shape != nil) {
        nodes_[seat.node].cpu -= shapes_[seat.shape].need.cpu;
        nodes_[seat.node].memory -= shapes_[seat.shape].need.memory;
    }
    recount(seat.node, seat.gpus);
    return made;
}

bool FleetIndex::unsettled(SeatNo promised) const {
    const SeatRec& seat = seats_[promised];
    const NodeRec& rec = nodes_[seat.node];
    if (!rec.open || rec.host_busy) return rec.returns;
    for (SeatNo s = rec.seats; s != nil; s = seats_[s].next_here)
        if (seats_[s].ending) return true;
    return awaits_reboot(promised) || awaits_wipe(promised);
}

bool FleetIndex::awaits_wipe(SeatNo promised) const {
    const SeatRec& seat = seats_[promised];
    const NodeRec& rec = nodes_[seat.node];
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

bool FleetIndex::awaits_reboot(SeatNo promised) const {
    const SeatRec& seat = seats_[promised];
    const NodeRec& rec = nodes_[seat.node];
    if (!rec.open || rec.host_busy || !rec.can_reboot || seat.shape == nil) return false;
    for (SeatNo s = rec.seats; s != nil; s = seats_[s].next_here)
        if (!seats_[s].promised) return false;
    const Eyes eyes{.tenant = seat.tenant};
    const std::vector<TenantNo>& excepted = shapes_[seat.shape].need.excepted;
    if (excepted.empty() || rec.extra == nil) return trust(rec.hosts, eyes) == PeerTrust::distrusting;
    const std::uint32_t domain = tenant_domain(seat.tenant);
    return std::ranges::any_of(extras_[rec.extra].host_users, [&](TenantNo user) {
        const bool trusted = user == seat.tenant || (domain != 0 && domain == tenant_domain(user));
        return !trusted && std::ranges::find(excepted, user) == excepted.end();
    });
}

}  // namespace bulkhead::sched
