// Nodes in the same state are one bucket: which one a node is in, and who is in a bucket.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "bulkhead/sched/fleet_index.hpp"

namespace bulkhead::sched {

namespace {

std::uint64_t mixed(std::uint64_t hash, std::uint64_t word) {
    hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
    return hash ^ hash >> 29;
}

// The same for every order of the cells, so that they need not be sorted to look for a bucket.
std::uint64_t hash_of(std::span<const Cell> cells, std::uint64_t hash) {
    std::uint64_t sum = 0;
    for (const Cell& cell : cells) {
        const auto halves = std::bit_cast<std::array<std::uint64_t, 2>>(cell);
        sum += mixed(mixed(0x9E3779B97F4A7C15u, halves[0]), halves[1]);
    }
    return mixed(hash, sum);
}

// Whether both have the same cells, in whatever order.
bool same_cells(std::span<const Cell> a, std::span<const Cell> b) {
    if (std::memcmp(a.data(), b.data(), a.size_bytes()) == 0) return true;
    using Halves = std::array<std::uint64_t, 2>;
    std::array<Halves, 64> sorted_a, sorted_b;
    if (a.size() > sorted_a.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i) {
        sorted_a[i] = std::bit_cast<Halves>(a[i]);
        sorted_b[i] = std::bit_cast<Halves>(b[i]);
    }
    const auto size = static_cast<std::ptrdiff_t>(a.size());
    std::sort(sorted_a.begin(), sorted_a.begin() + size);
    std::sort(sorted_b.begin(), sorted_b.begin() + size);
    return std::equal(sorted_a.begin(), sorted_a.begin() + size, sorted_b.begin());
}

}  // namespace

NodeView FleetIndex::view(NodeNo node) const {
    const NodeRec& rec = nodes_[node];
    return {.model = rec.state == nil ? std::uint8_t{0xFF} : briefs_[rec.state].model,
            .cells = std::span{cells_}.subspan(rec.cells, rec.gpus),
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
    return {.model = briefs_[static_cast<std::size_t>(&state - states_.data())].model,
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
    // Packing looks at the first GPUs of a large node: sorted, so that equal nodes look alike.
    if (rec.gpus > most_gpus_of_node) std::ranges::sort(scratch_cells_);
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
            same_cells(scratch_cells_, std::span{state_cells_}.subspan(state.cells, state.gpus)))
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
        const bool shared = cell.use > 1 && cell.taken < 1000 && cell.lost == 0;
        const auto hole = static_cast<std::uint16_t>(empty ? 1000 : shared ? 1000 - cell.taken : 0);
        brief.hole = std::max(brief.hole, hole);
        const std::uint8_t all = models_[cell.model].all();
        brief.model = &cell == scratch_cells_.data() || brief.model == cell.model ? cell.model : 0xFF;
        brief.sound = static_cast<std::uint8_t>(brief.sound + (cell.lost == 0 ? 1 : 0));
        brief.kept = brief.kept || cell.kept != 0;
        brief.dirty = brief.dirty || (all & ~(cell.available | cell.held)) != 0;
        if (cell.use == 0) brief.open = std::max(brief.open, static_cast<std::uint8_t>(slices_in(cell.open())));
    }
    state.members.clear();
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
        const std::int64_t lost = cell.lost == 0 ? 0 : thousandths_in(cell.lost, models_[cell.model].slices);
        // Of a GPU that is drained there is what is held of it, as of a closed node.
        total += lost == 1000 && cell.held != 0 ? cell.taken : 1000 - lost;
        free += std::max<std::int64_t>(0, 1000 - lost - cell.taken);
        whole = static_cast<std::uint8_t>(whole + (is_empty(cell) ? 1 : 0));
    }
    total *= gpu_unit / 1000;
    free *= gpu_unit / 1000;
    // Of a closed node there is only what is held there.
    if (!rec.open) {
        total = std::min(total, total - free);
        free = whole = 0;
    }
    free_ += free - rec.free;
    total_ += total - rec.total;
    rec.free = static_cast<std::int32_t>(free);
    rec.total = static_cast<std::int32_t>(total);
    rec.whole = whole;

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
    if (kept_states_ > live_states_ + live_states_ / 4 + 256) sweep();
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

}  // namespace bulkhead::sched
