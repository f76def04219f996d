// Who may look at which buckets, and which of those it may look at is the best for a task.
#include <algorithm>

#include "bulkhead/sched/fleet_index.hpp"

namespace bulkhead::sched {

namespace {

constexpr std::int64_t most_good = std::int64_t{1} << 38;  // far beyond any score of packing
constexpr std::size_t few_buckets = 4;                     // are looked through faster than a ranking is kept
constexpr std::size_t some_buckets = 64;  // nearly as fast; memory for rankings is given to larger audiences first

constexpr std::uint64_t audience_key(std::uint64_t crowd, std::uint64_t id, bool board) {
    return crowd << 40 | (board ? std::uint64_t{1} << 36 : 0) | id;
}
constexpr std::uint64_t of_domain = std::uint64_t{1} << 30;  // an id that is a domain's
// Where the numbers of audiences of one kind are, and the place of one audience among them.
constexpr std::size_t kind_of(std::uint64_t key) { return (key >> 40) << 2 | (key >> 36 & 1) << 1 | (key >> 30 & 1); }
constexpr std::size_t place_of(std::uint64_t key) { return key & (of_domain - 1); }

}  // namespace

void FleetIndex::audiences_of(const StateRec& state, std::vector<std::uint64_t>& out) const {
    out.clear();
    if (!state.open || state.host_busy) return;
    const auto domain_of = [&](TenantNo tenant) { return tenant_domain(tenant); };
    const auto add = [&](Crowd crowd, std::uint64_t id, bool board) {
        out.push_back(audience_key(static_cast<std::uint64_t>(crowd), id, board));
    };
    std::optional<TenantNo> sole;
    std::optional<std::uint32_t> domain;
    bool any = false, one_tenant = true, one_domain = true;
    const auto look_at = [&](const Company& company) {
        if (company.empty()) return;
        any = true;
        if (company.kind() != Company::Kind::tenant || (sole && *sole != company.id())) one_tenant = false;
        if (company.kind() == Company::Kind::tenant) sole = company.id();
        const std::uint32_t its = company.domain_here(domain_of);
        if (its == 0 || (domain && *domain != its)) one_domain = false;
        domain = its;
    };
    look_at(state.residents);
    look_at(state.fabric);
    // A tenant that is alone on the node stays its audience, whichever tenant of its domain used the host before it.
    const bool alone = any && one_tenant && state.hosts.trust(*sole, domain_of) != PeerTrust::distrusting;
    const TenantNo resident = sole.value_or(0);
    look_at(state.hosts);
    if (alone) {
        one_tenant = true;
        sole = resident;
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
    // Beside those who bear strangers, whoever may use the host after those who used it.
    if (!state.hosts.empty() && bears == PeerTrust::distrusting && !one_domain) {
        if (state.hosts.kind() == Company::Kind::tenant) add(Crowd::present, state.hosts.id(), false);
        if (const std::uint32_t its = state.hosts.domain_here(domain_of); its != 0)
            add(Crowd::present, of_domain | its, false);
    }
    if (one_tenant) return;
    // Parts of a GPU that only those may use, or only those want to use, who sit there already or are near to them.
    for (const Cell& cell : std::span{state_cells_}.subspan(state.cells, state.gpus)) {
        if (cell.company.empty() || cell.company.kind() == Company::Kind::strangers ||
            (cell.open() == 0 && cell.taken >= 1000))
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
    std::vector<std::uint32_t>& numbers = audience_numbers_[kind_of(key)];
    if (place_of(key) >= numbers.size()) numbers.resize(place_of(key) + 1, nil);
    std::uint32_t& number = numbers[place_of(key)];
    if (number == nil) {
        number = static_cast<std::uint32_t>(audiences_.size());
        audiences_.emplace_back();
    }
    return number;
}

std::uint32_t FleetIndex::known_audience(std::uint64_t key) const {
    const std::vector<std::uint32_t>& numbers = audience_numbers_[kind_of(key)];
    return place_of(key) < numbers.size() ? numbers[place_of(key)] : nil;
}

void FleetIndex::forget_rankings() {
    for (Audience& audience : audiences_) {
        audience.ranked.clear();
        audience.rankings.clear();
    }
    rankings_ = 0;
}

void FleetIndex::list(StateNo number) {
    audiences_of(states_[number], scratch_keys_);
    for (const std::uint64_t key : scratch_keys_) {
        const std::uint32_t to = audience(key);
        Audience& audience = audiences_[to];
        states_[number].listed.push_back({to, static_cast<std::uint32_t>(audience.live.size())});
        audience.live.push_back(number);
        if (audience.log.size() > 32 + 4 * audience.live.size()) {
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
        const std::uint32_t known = known_audience(audience_key(static_cast<std::uint64_t>(crowd), id, on_board));
        if (known != nil && !audiences_[known].live.empty()) out.all[out.count++] = {known, eyes};
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

std::optional<FleetIndex::Entry> FleetIndex::entry(StateNo number, const Shape& shape, const Eyes& eyes) const {
    const StateRec& state = states_[number];
    if (!has_cores(state.cpu, state.memory, shape)) return std::nullopt;
    const NodeView here = view(state);
    if (!kind_ok(shape, here.kind) || !has_devices(here, shape)) return std::nullopt;
    // Certain for most audiences; not where somebody has a part of a GPU on a node of others.
    // With an exception it is the pairs of tenants that count, and whoever asks has looked at those.
    if (shape.need.excepted.empty() && neighbourly(here, shape, eyes) != Obstacle::none) return std::nullopt;
    const std::optional<Choice> choice = choose(here, shape, eyes);
    if (!choice) return std::nullopt;
    // Work that would close an empty node to others goes to a node that its trust domain has closed already, if any
    // has room: an empty node serves every domain.
    const bool opens_another = several_domains_ && closes_node(shape) && state.residents.empty();
    const std::int64_t good = std::clamp(choice->good, -most_good, most_good) - (opens_another ? 4 * most_good : 0);
    return Entry{.good = good * (1 << 20) + choice->fullness,
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
    return (brief.cpu >= shape.need.cpu || shape.need.cpu == 0) && brief.whole >= shape.least_whole &&
           brief.hole >= shape.least_hole && brief.open >= shape.least_open;
}

// Empty buckets are removed first; the ranking grows only if few of them are empty.
void FleetIndex::make_room_in(Ranking& ranking) const {
    std::vector<Entry>& heap = ranking.heap;
    std::erase_if(heap, [&](const Entry& entry) { return !alive(entry.known); });
    std::make_heap(heap.begin(), heap.end());
    if (heap.size() + heap.size() / 8 >= heap.capacity()) heap.reserve(heap.size() + heap.size() / 4 + 8);
}

const FleetIndex::Entry* FleetIndex::top(std::uint32_t of, ShapeNo number, const Eyes& eyes) {
    Audience& audience = audiences_[of];
    const Shape& shape = shapes_[number];
    const auto ranked = std::ranges::find(audience.ranked, number);
    const auto at = static_cast<std::size_t>(ranked - audience.ranked.begin());
    const bool is_ranked = ranked != audience.ranked.end();
    if (audience.live.size() <= few_buckets ||
        (audience.live.size() <= some_buckets && rankings_ >= nodes_.size() / 2 && !is_ranked)) {
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
    if (!is_ranked) {
        audience.ranked.push_back(number);
        audience.rankings.emplace_back();
        ++rankings_;
    }
    Ranking& ranking = audience.rankings[at];
    const std::size_t unread = audience.log.size() - (ranking.edition == audience.edition ? ranking.read : 0);
    if (ranking.edition != audience.edition || unread > audience.live.size()) {
        ranking.heap.clear();
        for (const StateNo state : audience.live)
            if (may_take(briefs_[state], shape))
                if (const auto found = entry(state, shape, eyes)) ranking.heap.push_back(*found);
        ranking.heap.shrink_to_fit();
        std::make_heap(ranking.heap.begin(), ranking.heap.end());
        ranking.edition = audience.edition;
    } else {
        for (std::size_t i = ranking.read; i < audience.log.size(); ++i) {
            const Known known = audience.log[i];
            if (!alive(known) || !may_take(briefs_[known.state], shape)) continue;
            if (const auto found = entry(known.state, shape, eyes)) {
                if (ranking.heap.size() == ranking.heap.capacity()) make_room_in(ranking);
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
