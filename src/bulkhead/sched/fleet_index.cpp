#include "bulkhead/sched/fleet_index.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "bulkhead/gpu/profile_name.hpp"
#include "bulkhead/policy/slice.hpp"

namespace bulkhead::sched {

namespace {

std::uint8_t scopes_of(PeerTrust node, PeerTrust gpu, PeerTrust instance, PeerTrust nvlink) {
    return static_cast<std::uint8_t>(static_cast<unsigned>(node) | static_cast<unsigned>(gpu) << 2 |
                                     static_cast<unsigned>(instance) << 4 | static_cast<unsigned>(nvlink) << 6);
}

}  // namespace

void FleetIndex::set_domains(std::vector<std::uint32_t> domain_of_tenant) {
    const bool grown_only = domain_of_tenant.size() >= domain_of_.size() &&
                            std::equal(domain_of_.begin(), domain_of_.end(), domain_of_tenant.begin());
    domain_of_ = std::move(domain_of_tenant);
    const bool several = domain_of_.size() > 1 && std::ranges::any_of(domain_of_, [&](std::uint32_t domain) {
                             return domain == 0 || domain != domain_of_.front();
                         });
    if (std::exchange(several_domains_, several) != several) forget_rankings();
    if (grown_only) return;
    for (NodeNo node = 0; node < nodes_.size(); ++node) recount(node);
}

std::uint8_t FleetIndex::model(const Gpu& gpu) {
    for (std::size_t i = 0; i < models_.size(); ++i)
        if (models_[i].name == gpu.model && models_[i].slices == gpu.slices) return static_cast<std::uint8_t>(i);
    models_.push_back({gpu.model, gpu.board, gpu.slices, silicon_of(gpu.model).amd != nullptr});
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

std::uint32_t FleetIndex::drive_list(const std::vector<std::int64_t>& sizes) const {
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

void FleetIndex::draw(NodeNo node, const Node& as) {
    note_changed(node);
    {
        NodeRec& rec = nodes_[node];
        rec.kind = as.kind;
        rec.open = as.open;
        rec.board_is_one = as.board_is_one;
        rec.host_busy = as.host_busy;
        rec.can_reboot = as.can_reboot;
        rec.returns = as.returns;
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
            extra = {as.drives, as.functions, as.drive_bytes, as.host_used_by, as.closeness, std::move(extra.sizes)};
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
    // One seat for each task where that is known: several whole GPUs of one task are one seat, and a part of a GPU that
    // several tasks share is one as well.
    struct Drawn {
        LeaseKey lease = 0;
        std::size_t pieces = 0, each = 0;    // pieces of a GPU for one task; 0: not known
        std::int64_t share = 0, before = 0;  // of all pieces here, and of those that have a seat
        bool whole = true;
        SeatNo seat = nil;
        std::size_t filled = 0;
    };
    std::vector<Drawn> drawn;
    bool crowded = false;  // small MPS shares are here
    const auto drawn_of = [&](LeaseKey lease) {
        const auto known = std::ranges::find(drawn, lease, &Drawn::lease);
        return known != drawn.end() ? known : drawn.insert(drawn.end(), Drawn{.lease = lease});
    };
    for (const Gpu& gpu : as.gpus)
        for (const Seat& seat : gpu.seats) {
            const auto of = drawn_of(seat.lease);
            ++of->pieces;
            of->share += seat.share;
            of->whole = of->whole && seat.profile.empty() && seat.share == 1000;
        }
    for (const Resident& resident : as.residents)
        if (const auto of = drawn_of(resident.lease);
            resident.tasks > 0 && of->pieces % resident.tasks == 0 && (of->whole || of->pieces == resident.tasks))
            of->each = of->pieces / resident.tasks;
    for (std::size_t i = 0; i < nodes_[node].gpus; ++i) {
        const std::uint8_t number = model(as.gpus[i]);
        Cell& cell = cells_[nodes_[node].cells + i];
        cell.model = number;
        cell.available = as.gpus[i].available;
        cell.lost = as.gpus[i].lost;
        for (const Seat& seat : as.gpus[i].seats) {
            const auto resident = std::ranges::find(as.residents, seat.lease, &Resident::lease);
            if (resident == as.residents.end()) continue;
            Drawn& of = *drawn_of(seat.lease);
            if (of.seat != nil && of.filled < of.each) {
                seats_[of.seat].gpus |= std::uint64_t{1} << i;
                ++of.filled;
                continue;
            }
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
            // Tasks that share a GPU hold one share of it, as many times as large.
            const auto tasks_before = [&] { return resident->tasks * of.before / std::max<std::int64_t>(of.share, 1); };
            const std::int64_t others = tasks_before();
            of.before += seat.share;
            rec.tasks = of.each > 0 ? std::uint16_t{1} : static_cast<std::uint16_t>(tasks_before() - others);
            if (rec.is_mps_client() && seat.share < large_share * rec.tasks) crowded = true;
            of.seat = made;
            of.filled = 1;
            rec.ending = resident->ending;
            if (rec.ending) ++nodes_[node].ending;
            link(made);
        }
    }
    if (crowded) count_clients();
    recount(node);
}

void FleetIndex::clean(NodeNo node, std::uint16_t gpu, std::uint8_t slices) {
    Cell& cell = cells_[nodes_[node].cells + gpu];
    cell.available |= slices;
    cell.lost &= static_cast<std::uint8_t>(~slices);
    recount(node);
}

void FleetIndex::rebooted(NodeNo node) {
    note_changed(node);
    nodes_[node].hosts = {};
    if (nodes_[node].extra != nil) extras_[nodes_[node].extra].host_users.clear();
    restate(node);
}

void FleetIndex::soil(NodeNo node, std::uint16_t gpu, std::uint8_t slices) {
    cells_[nodes_[node].cells + gpu].available &= static_cast<std::uint8_t>(~slices);
    restate(node);
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
        const bool sliced = want.is_sliced();
        const bool shared = want.is_shared();
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
            if (want.form == Want::Form::instance && models_[m].board != nullptr)
                option.requests = requests_of(*models_[m].board);
            const bool sliced = want.is_sliced();
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
                                  need.nvme, need.rdma, need.any_model, need.on_host_kernel, need.keeps_node ? "n" : "",
                                  need.keeps_gpu ? "g" : "");
    key += fmt::format("/{}{}{}{}", static_cast<int>(need.sharing.node), static_cast<int>(need.sharing.gpu),
                       static_cast<int>(need.sharing.instance), static_cast<int>(need.sharing.nvlink));
    for (const TenantNo tenant : need.excepted) key += fmt::format("/e{}", tenant);
    for (const std::uint32_t kind : need.kinds) key += fmt::format("/k{}", kind);
    for (const Want& want : need.wants)
        key += fmt::format("/w{}:{}:{}:{}:{}:{}", want.model, static_cast<int>(want.form), want.count, want.share,
                           want.size, want.profile_name);
    std::uint64_t content = 0xCBF29CE484222325u;
    for (const char letter : key) content = (content ^ static_cast<unsigned char>(letter)) * 0x100000001B3u;
    const auto [known, fresh] = shape_numbers_.try_emplace(std::move(key), static_cast<ShapeNo>(shapes_.size()));
    if (!fresh) return known->second;
    Shape shape;
    shape.need = need;
    shape.content = content;
    shape.memory_mib = (need.memory + (1 << 20) - 1) >> 20;
    std::ranges::sort(shape.need.kinds);
    shape.scopes = scopes_of(need.sharing.node, need.sharing.gpu, need.sharing.instance, need.sharing.nvlink);
    look_up(shape);
    if (need.mechanism == Mechanism::mps &&
        std::ranges::any_of(need.wants, [](const Want& want) { return want.is_shared() && want.share < large_share; }))
        count_clients();
    shapes_.push_back(std::move(shape));
    return known->second;
}

namespace {

constexpr std::int64_t most_requests = 2048;  // from then on counts are halved
constexpr std::int64_t seldom = 256;          // values are looked at at least once in so many requests

// The same for every fleet, and some milliseconds of work; few are in use at a time.
std::shared_ptr<const gpu::LayoutValues> values_of(const gpu::Board& board, const gpu::Demand40& demand) {
    using Key = std::pair<const gpu::Board*, gpu::Demand40>;
    constexpr std::size_t most_kept = 16;
    thread_local std::vector<std::pair<Key, std::shared_ptr<const gpu::LayoutValues>>> recent;  // the last used last
    Key key{&board, demand};
    const auto known = std::ranges::find(recent, key, &decltype(recent)::value_type::first);
    if (known != recent.end()) {
        std::rotate(known, std::next(known), recent.end());
        return recent.back().second;
    }
    if (recent.size() == most_kept) recent.erase(recent.begin());
    recent.emplace_back(std::move(key), std::make_shared<const gpu::LayoutValues>(board, demand));
    return recent.back().second;
}

// By a fortieth of all requests, proportions change by chance too.
bool is_alike(const gpu::Demand40& a, const gpu::Demand40& b) {
    return std::ranges::equal(a, b, [](std::uint8_t x, std::uint8_t y) { return std::abs(int{x} - int{y}) <= 1; });
}

}  // namespace

std::uint32_t FleetIndex::requests_of(const gpu::Board& board) {
    const auto known = std::ranges::find(requests_, &board, &InstanceRequests::board);
    const auto number = static_cast<std::uint32_t>(known - requests_.begin());
    if (known != requests_.end()) return number;
    InstanceRequests& made = requests_.emplace_back();
    made.board = &board;
    made.asked.assign(board.profiles.size(), 0);
    made.demand = gpu::demand_of(board, made.asked);
    made.values = values_of(board, made.demand);
    return number;
}

void FleetIndex::count(ShapeNo number, std::int64_t tasks) {
    Shape& shape = shapes_[number];
    shape.seen += tasks;
    for (std::size_t i = 0; i < shape.options.size(); ++i) {
        const Shape::Option& option = shape.options[i];
        const CellModel& model = models_[option.model];
        if (option.want.form != Want::Form::instance || model.board == nullptr) continue;
        const auto same = [&](const Shape::Option& other) {  // the same model in another number of slices
            return other.requests == option.requests && other.want.profile == option.want.profile;
        };
        if (std::any_of(shape.options.begin(), shape.options.begin() + static_cast<std::ptrdiff_t>(i), same)) continue;
        InstanceRequests& requests = requests_[option.requests];
        requests.asked[option.want.profile] += tasks;
        requests.sum += tasks;
        requests.since_valued += tasks;
        while (requests.sum >= most_requests) {
            requests.sum = 0;
            for (std::int64_t& asked : requests.asked) requests.sum += asked /= 2;
        }
    }
}

void FleetIndex::refresh_layout_values() {
    for (std::uint32_t number = 0; number < requests_.size(); ++number) {
        InstanceRequests& requests = requests_[number];
        if (2 * requests.since_valued < std::min(requests.sum, 2 * seldom) || requests.since_valued == 0) continue;
        requests.since_valued = 0;
        gpu::Demand40 demand = gpu::demand_of(*requests.board, requests.asked);
        if (is_alike(demand, requests.demand)) continue;
        requests.demand = std::move(demand);
        requests.values = values_of(*requests.board, requests.demand);
        const auto is_valued = [&](ShapeNo shape) {
            return std::ranges::any_of(shapes_[shape].options, [&](const Shape::Option& option) {
                return option.want.form == Want::Form::instance && option.requests == number;
            });
        };
        for (Audience& audience : audiences_)
            for (std::size_t i = audience.ranked.size(); i-- > 0;)
                if (is_valued(audience.ranked[i])) {
                    audience.ranked[i] = audience.ranked.back();
                    audience.ranked.pop_back();
                    std::swap(audience.rankings[i], audience.rankings.back());
                    audience.rankings.pop_back();
                    --rankings_;
                }
    }
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
    forget_rankings();
}

std::size_t FleetIndex::bytes() const {
    std::size_t sum = nodes_.capacity() * sizeof(NodeRec) + cells_.capacity() * sizeof(Cell) +
                      states_.capacity() * sizeof(StateRec) + briefs_.capacity() * sizeof(Brief) +
                      state_cells_.capacity() * sizeof(Cell) + table_.capacity() * sizeof(StateNo) +
                      (mix_ ? mix_->bytes() : 0) + extras_.capacity() * sizeof(Extra);
    for (const StateRec& state : states_)
        sum += state.members.capacity() * sizeof(NodeNo) + state.listed.capacity() * sizeof(StateRec::Listed);
    for (const Audience& audience : audiences_) {
        sum += sizeof(Audience) + audience.log.capacity() * sizeof(Known) + audience.live.capacity() * sizeof(StateNo) +
               audience.ranked.capacity() * sizeof(ShapeNo) + audience.rankings.capacity() * sizeof(Ranking);
        for (const Ranking& ranking : audience.rankings) sum += ranking.heap.capacity() * sizeof(Entry);
    }
    for (const std::vector<std::uint32_t>& numbers : audience_numbers_)
        sum += numbers.capacity() * sizeof(std::uint32_t);
    for (const Extra& extra : extras_)
        sum += (extra.drives.capacity() + extra.functions.capacity()) * 2 + extra.drive_bytes.capacity() * 8 +
               extra.host_users.capacity() * 4 + extra.closeness.capacity();
    for (const auto& level : topology_)
        for (const TopologyDomain& domain : level) sum += sizeof(domain) + domain.nodes.capacity() * sizeof(NodeNo);
    return sum;
}

}  // namespace bulkhead::sched
