// The fleet, arranged so that a decision costs what the number of different nodes costs, not what all nodes cost.
//
// Nodes in the same state (the same GPUs in the same condition, cores, memory, neighbours) are one bucket. A bucket
// belongs to audiences: anyone, one tenant, one trust domain, everybody in virtual machines. A request looks at the few
// audiences it is part of; for each pair of shape and audience there is a ranking, a heap of buckets by packing score.
// A ranking is brought up to date when it is asked, from the list of buckets that came into being since; so a change of
// one node costs nothing until somebody could use that node.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "bulkhead/gpu/layout_values.hpp"
#include "bulkhead/sched/cell.hpp"
#include "bulkhead/sched/packing.hpp"
#include "bulkhead/sched/statement.hpp"
#include "bulkhead/sched/work.hpp"

namespace bulkhead::sched {

inline constexpr std::uint32_t nil = ~0u;
using SeatNo = std::uint32_t;
using StateNo = std::uint32_t;

// Where one task sits. A line of the cache each: a node's are looked at one after the other.
struct alignas(64) SeatRec {
    std::uint64_t gpus = 0;  // one bit each
    JobNo job = nil;         // nil: of somebody the engine knows nothing else of
    NodeNo node = nil;
    TenantNo tenant = 0;
    SeatNo next_here = nil, prev_here = nil;  // on the same node
    SeatNo next_of_job = nil;
    ShapeNo shape = nil;
    std::uint16_t share = 1000;
    std::uint16_t tasks = 1;  // as many take cores and memory here; a drawn one may be a part of a task, or several
    std::uint16_t drive = 0xFFFF, function = 0xFFFF;
    std::uint8_t start = 0, size = 0, profile = 0;  // profile 0: the GPU itself
    Mechanism mechanism{};
    std::uint8_t scopes = 0;  // node, gpu, instance, nvlink: two bits each
    bool host_kernel = true, pinned = false, ending = false, promised = false;

    bool is_mps_client() const { return mechanism == Mechanism::mps && profile == 0 && !promised; }
    PeerTrust scope(unsigned which) const { return static_cast<PeerTrust>(scopes >> 2 * which & 3u); }
};

// A shape with everything looked up.
struct Shape {
    struct Option {
        Want want;
        std::uint8_t model = 0, profile = 0;
        TaskShape task;              // for packing
        std::uint32_t requests = 0;  // of an instance: which of the boards' requests it counts among
    };
    TaskNeed need;
    std::vector<Option> options;
    std::int64_t memory_mib = 0;
    std::uint16_t least_whole = 0, least_hole = 0, least_open = 0;  // without which a node takes no task of it
    std::uint8_t scopes = 0;
    std::int64_t seen = 0;      // tasks of this shape that were submitted
    std::uint64_t content = 0;  // a hash of the need: its number depends on the order of arrival
};

// What a node, a bucket or a supposition looks like to a request.
struct NodeView {
    std::uint8_t model = 0xFF;  // of all its GPUs; 0xFF: they differ, or it is not known
    std::span<const Cell> cells;
    std::int64_t cpu = 0, memory = 0;
    std::uint32_t kind = 0;
    std::uint16_t functions = 0;
    std::uint32_t drives = 0;  // which list of drives
    Company residents;         // bears: on the node; closer: on its kernel
    Company fabric;            // on an NVLink fabric that cannot be partitioned
    Company hosts;             // who used the kernel since it was booted
    bool open = false, board_is_one = false, host_busy = false, can_reboot = false;
};

class FleetIndex {
public:
    struct TopologyDomain {
        std::vector<NodeNo> nodes;
    };

    // --- what is there ---
    void set_domains(std::vector<std::uint32_t> domain_of_tenant);
    NodeNo add_node(const Node& node);
    void clean(NodeNo node, std::uint16_t gpu, std::uint8_t slices);
    void rebooted(NodeNo node);  // to a known image: nobody has used its kernel
    ShapeNo shape(const TaskNeed& need);
    void set_mix(Mix mix);
    Mix observed_mix() const;
    void count(ShapeNo shape, std::int64_t tasks);
    // Values the layouts of MIG GPUs anew, if the requests for instances have changed enough since the last time.
    void refresh_layout_values();

    std::size_t nodes() const { return nodes_.size(); }
    const Shape& shape(ShapeNo shape) const { return shapes_[shape]; }
    const SeatRec& seat(SeatNo seat) const { return seats_[seat]; }
    SeatRec& seat(SeatNo seat) { return seats_[seat]; }
    SeatNo first_seat(NodeNo node) const { return nodes_[node].seats; }
    Company residents(NodeNo node) const { return nodes_[node].residents; }
    // Nodes that were drawn or rebooted, whose host has new users, or on which work that may not be preempted started,
    // ended or is promised room, since the list was last forgotten.
    const std::vector<NodeNo>& changed_nodes() const { return changed_; }
    void forget_changed_nodes();
    void note_changed(NodeNo node);
    std::int64_t free_units() const { return free_; }    // on open nodes, dirty slices with them
    std::int64_t total_units() const { return total_; }  // of all that is not lost
    std::size_t distinct_states() const { return live_states_; }
    std::size_t bytes() const;
    std::size_t seat_bytes() const { return seats_.capacity() * sizeof(SeatRec); }

    // --- placing ---

    // The best node for one task, by score, then the fuller one, then the one with fewer cores and less memory left.
    std::optional<NodeNo> best(ShapeNo shape, TenantNo tenant);
    // What that order goes by, for one node; nothing where the task does not fit. Larger is better.
    struct Standing {
        std::int64_t good = 0, tie = 0;
        friend auto operator<=>(const Standing&, const Standing&) = default;
    };
    std::optional<Standing> standing(NodeNo node, ShapeNo shape, TenantNo tenant) const;
    // How many tasks a node takes now.
    std::int64_t capacity(NodeNo node, ShapeNo shape, TenantNo tenant) const;
    // Which nodes for so many tasks, with how many on each; empty: there is no room.
    struct Portion {
        NodeNo node = 0;
        std::int32_t tasks = 0;
    };
    std::vector<Portion> gang(const Job& job, std::int32_t tasks);
    // The most tasks of the job that fit in one place where they may be together.
    std::int64_t most(const Job& job) const;
    SeatNo take(NodeNo node, const Job& job, JobNo owner);  // one task; there must be room
    // A place for one task on a node: which GPU, and where on it.
    struct Choice {
        std::int64_t good = 0, fullness = 0;
        std::uint32_t option = 0;
        std::uint8_t gpu = 0, start = 0;
    };
    // The places for one task on a node; of empty GPUs that are alike only one. The best by score comes first.
    std::vector<Choice> choices(NodeNo node, ShapeNo shape, TenantNo tenant) const;
    SeatNo take(NodeNo node, const Job& job, JobNo owner, const Choice& choice);
    SeatNo take_exactly(const TaskSeat& where, const Job& job, JobNo owner);
    void release(SeatNo seat, bool clean);
    // Promises so many tasks' room on a node, as it will be when some have gone. Nobody else gets it meanwhile, nor
    // comes where the claimant could not bear it.
    template <class Gone>
    void promise(const Portion& where, const Job& job, JobNo owner, const Gone& gone, std::vector<SeatNo>& out);
    bool any_ending(NodeNo node) const { return nodes_[node].ending > 0; }
    bool is_open(NodeNo node) const { return nodes_[node].open; }
    bool can_reboot(NodeNo node) const { return nodes_[node].can_reboot; }
    Company host_users(NodeNo node) const { return nodes_[node].hosts; }
    SeatNo promise_again(const SeatRec& seat);
    SeatNo promise_exactly(const TaskSeat& where, const Job& job, JobNo owner);
    bool wants_reboot(NodeNo node, ShapeNo shape, TenantNo tenant) const;  // and nothing else stands in the way
    bool unsettled(SeatNo promised) const;  // what it is promised is not free yet, but will be
    // Nothing but its host's history keeps the claimant away from a node that no lease is on.
    bool awaits_wipe(SeatNo promised) const;  // GPUs of the promised place are dirty, and held by no job
    bool awaits_reboot(SeatNo promised) const;
    void set_ending(SeatNo seat, bool is);
    TaskSeat described(SeatNo seat) const;

    // --- supposing ---

    // The node as it would be without some of its seats: wiped, and rebooted where nothing of it would be left and the
    // node can show a verified reboot.
    struct Supposed {
        NodeView view;
        std::vector<Cell> cells;
    };
    template <class Gone>
    void suppose(Supposed& out, NodeNo node, const Gone& gone) const;
    std::int64_t capacity(const NodeView& view, NodeNo node, ShapeNo shape, TenantNo tenant) const;
    // How many tasks the node takes then.
    template <class Gone>
    std::int64_t capacity_without(Supposed& scratch, NodeNo node, ShapeNo shape, TenantNo tenant,
                                  const Gone& gone) const;
    // Nodes by what stands in the way of one task, and the room on those where nothing does.
    struct Tally {
        std::array<std::int64_t, static_cast<std::size_t>(Obstacle::end)> nodes{};
        std::int64_t room = 0, wiping = 0;
    };
    Tally tally(const Job& job) const;
    // The first obstacle to one task of the job on this node.
    Obstacle obstacle(NodeNo node, const Job& job) const;
    bool dirty(NodeNo node) const { return briefs_[nodes_[node].state].dirty; }  // GPUs neither free nor leased
    std::int64_t gpus(NodeNo node) const { return nodes_[node].gpus; }
    // Supposes also that dirt is wiped and that a host without residents is rebooted if it can be.
    void suppose_cleaned(Supposed& out) const;
    // For so many tasks with this room on these nodes: which; empty: it is not enough.
    std::vector<Portion> arrange(const Job& job, std::int32_t tasks, std::vector<Portion>& room) const;
    std::int64_t whole_gpus(ShapeNo shape) const { return whole_gpus_of(shapes_[shape]); }
    // A task of the shape keeps distrusting strangers away from its node.
    bool closes_node(ShapeNo shape) const { return closes_node(shapes_[shape]); }
    static bool closes_node(const Shape& shape) {
        return shape.need.on_host_kernel || shape.need.sharing.node != PeerTrust::distrusting;
    }
    std::int64_t whole(NodeNo node) const { return nodes_[node].whole; }
    std::size_t domain_count(TopologyLevel level) const;
    std::uint32_t domain_of(NodeNo node, TopologyLevel level) const;
    void soil(NodeNo node, std::uint16_t gpu, std::uint8_t slices);  // dirty, until it is said to be clean
    bool able(NodeNo node, ShapeNo shape) const;                     // its hardware and kind would do, were it empty

    const std::vector<TopologyDomain>& domains(TopologyLevel level) const {
        return topology_[static_cast<std::size_t>(level)];
    }
    static std::int64_t whole_gpus_of(const Shape& shape);
    std::uint32_t tenant_domain(TenantNo tenant) const { return tenant < domain_of_.size() ? domain_of_[tenant] : 0; }
    std::size_t seats() const { return seats_.size(); }
    SeatNo number_of(const SeatRec& seat) const { return static_cast<SeatNo>(&seat - seats_.data()); }
    void forget_rankings();  // a copy that looks at every node needs none
    // Tasks on the host kernel that start from now on count among the users of their node's kernel.
    void remember_hosts(bool is) { remembers_hosts_ = is; }
    // Something on the node is ending or being wiped, or it is empty and could be rebooted: there will be more room.
    bool room_comes(NodeNo node) const {
        const NodeRec& rec = nodes_[node];
        return rec.ending > 0 || briefs_[rec.state].dirty ||
               (rec.can_reboot && !rec.hosts.empty() && rec.residents.empty());
    }
    // Cheap: false where not even that room would be enough for one task.
    bool may_take_soon(NodeNo node, ShapeNo shape, TenantNo tenant) const;
    bool shares_fabric(NodeNo node) const { return nodes_[node].board_is_one; }

    // --- footprint.cpp ---

    // For each seat on the node, in millionths of a GPU: its part of what the node's residents close to strangers. A
    // part is proportional to what the seat leases here.
    struct ClosedPart {
        SeatNo seat = nil;
        std::int64_t millionths = 0;
    };
    void closed_parts(NodeNo node, std::vector<ClosedPart>& out) const;

    // --- exclusivity.cpp ---
    std::int64_t sound_units(NodeNo node, std::size_t gpu) const;
    std::int64_t leased_thousandths(SeatNo seat, std::size_t gpu) const;  // of this GPU; 0: it has no part of it

private:
    struct NodeRec {
        std::array<std::uint32_t, 7> topology{};  // by level
        std::uint32_t cells = 0;                  // first of its cells
        std::uint32_t kind = 0, drives = 0;
        StateNo state = nil;
        SeatNo seats = nil;
        std::int64_t cpu = 0, memory = 0;
        Company residents, fabric, hosts;
        std::uint16_t functions = 0;
        std::uint16_t ending = 0;  // seats
        std::uint8_t gpus = 0, whole = 0;
        bool open = false, board_is_one = false, host_busy = false, can_reboot = false, returns = false;
        bool changed = false;  // it is on that list
        std::uint32_t extra = nil;
        std::int32_t free = 0, total = 0;  // Gpus::units
    };
    // Devices by number, for the few nodes that have any.
    struct Extra {
        std::vector<std::uint16_t> drives, functions;
        std::vector<std::int64_t> drive_bytes;
        std::vector<TenantNo> host_users;
        std::vector<std::uint8_t> closeness;                        // of functions to GPUs
        std::vector<std::pair<std::uint16_t, std::int64_t>> sizes;  // of every drive that was ever free here
    };
    struct StateRec {
        std::uint64_t hash = 0;
        std::int64_t cpu = 0, memory = 0;
        std::uint32_t cells = 0, kind = 0, drives = 0;
        Company residents, fabric, hosts;
        std::uint16_t functions = 0;
        std::uint8_t gpus = 0;
        bool open = false, board_is_one = false, host_busy = false, can_reboot = false;
        std::vector<NodeNo> members;  // a heap, the lowest number first, with some that have left
        struct Listed {
            std::uint32_t audience = 0, at = 0;
        };
        std::vector<Listed> listed;
    };
    // What most often decides that a bucket is of no use, kept together: it is looked at far more often than the rest.
    struct Brief {
        std::uint32_t birth = 0;
        std::int32_t count = 0;
        std::int32_t cpu = 0;
        std::uint16_t hole = 0;  // the largest share of a GPU that is free
        std::uint8_t whole = 0;  // empty GPUs
        std::uint8_t open = 0;   // the most open slices of a GPU that is not held as a whole
        std::uint8_t model = 0;  // of all its GPUs; 0xFF: they differ, or there are none
        std::uint8_t sound = 0;  // GPUs of which nothing is lost
        bool kept = false;       // something is promised to somebody
        bool dirty = false;      // something is neither free nor held: it is being wiped, or lost
    };
    struct Known {
        StateNo state = nil;
        std::uint32_t birth = 0;
    };
    struct Entry {
        std::int64_t good = 0, tie = 0;
        std::uint64_t hash = 0;
        Known known;
        friend bool operator<(const Entry& a, const Entry& b) {
            if (a.good != b.good) return a.good < b.good;
            return a.tie != b.tie ? a.tie < b.tie : a.hash > b.hash;
        }
    };
    struct Ranking {
        std::vector<Entry> heap;
        std::uint32_t read = 0, edition = nil;
    };
    struct Audience {
        std::vector<Known> log;         // buckets as they came into being
        std::vector<StateNo> live;      // those that have nodes
        std::uint32_t edition = 0;      // of the log
        std::vector<ShapeNo> ranked;    // shapes that have a ranking
        std::vector<Ranking> rankings;  // of each
    };
    enum class Crowd : std::uint8_t { anyone, vacant, tenant, domain, everybody, present };
    // Through whose eyes cells are looked at: one tenant's, those of anybody in a domain, or any stranger's.
    struct Eyes {
        TenantNo tenant = 0;
        std::uint32_t domain = 0;
        bool stranger = false;
    };

    // An eighth more than there is, not twice as much: a fleet grows slowly, and its memory is what a node costs.
    template <class T>
    static void make_room(std::vector<T>& list, std::size_t more) {
        if (list.size() + more > list.capacity()) list.reserve(list.size() + list.size() / 8 + more + 64);
    }

    // The memory mode (NPS) that the AMD GPUs of a node are in; 0: none of them is used.
    std::uint8_t memory_mode(const NodeView& view) const;
    bool suits_memory_mode(const NodeView& view, const Shape::Option& option) const;
    NodeView view(NodeNo node) const;
    NodeView view(const StateRec& state) const;
    // And promised to no job.
    bool is_empty(const Cell& cell) const { return cell.kept == 0 && cell.empty(models_[cell.model].all()); }
    bool joins(Company company, const Eyes& eyes, PeerTrust mine, PeerTrust mine_closer, bool closer) const;
    Obstacle neighbourly_excepted(NodeNo node, const Shape& shape, TenantNo tenant) const;
    template <class Gone>
    Obstacle neighbourly_excepted(NodeNo node, const Shape& shape, TenantNo tenant, const Gone& gone,
                                  bool may_reboot) const;
    PeerTrust trust(Company company, const Eyes& eyes) const;
    Obstacle neighbourly(const NodeView& view, const Shape& shape, const Eyes& eyes) const;
    // The first thing in the way. The brief spares a look at the GPUs wherever it knows enough.
    Obstacle obstacle(const NodeView& view, const Brief& brief, const Shape& shape, TenantNo tenant,
                      Obstacle neighbours) const;
    bool able(const NodeView& view, const Shape& shape) const;
    bool kind_ok(const Shape& shape, std::uint32_t kind) const;
    bool has_devices(const NodeView& view, const Shape& shape) const;
    // Of a node whose cores are promised twice there are less than none, which matters only to who needs some.
    static bool has_cores(std::int64_t cpu, std::int64_t memory, const Shape& shape) {
        return (shape.need.cpu == 0 || cpu >= shape.need.cpu) &&
               (shape.need.memory == 0 || memory >= shape.need.memory);
    }
    std::int64_t capacity(const NodeView& view, const Shape& shape, const Eyes& eyes) const;
    // Part of the GPU is leased, and this tenant may have a share of the rest.
    bool shareable(const Cell& cell, const Shape& shape, const Eyes& eyes) const;
    std::optional<Choice> choose(const NodeView& view, const Shape& shape, const Eyes& eyes) const;
    // A seat for one task of a job, and which GPUs and slices it is: those of a choice, or those that somebody names.
    SeatRec seat_of(const Job& job, JobNo owner, NodeNo node) const;
    void set_place(SeatRec& seat, const NodeView& view, const Shape& shape, const Choice& choice) const;
    void set_place(SeatRec& seat, const TaskSeat& where);
    void sit(Cell& cell, const SeatRec& seat) const;  // one more on the GPU
    std::optional<Choice> choose_slice(const NodeView& view, const Shape& shape, std::uint32_t option,
                                       const Eyes& eyes) const;
    std::optional<Entry> entry(StateNo state, const Shape& shape, const Eyes& eyes) const;
    void make_room_in(Ranking& ranking) const;
    const Entry* top(std::uint32_t audience, ShapeNo shape, const Eyes& eyes);
    bool alive(Known known) const {
        return briefs_[known.state].birth == known.birth && briefs_[known.state].count > 0;
    }
    // False: it certainly does not take a task of the shape.
    bool may_take(const Brief& brief, const Shape& shape) const;
    struct Looks {
        struct Look {
            std::uint32_t audience = 0;
            Eyes eyes;
        };
        std::array<Look, 12> all;
        std::size_t count = 0;
        const Look* begin() const { return all.data(); }
        const Look* end() const { return all.data() + count; }
    };
    Looks looks(const Shape& shape, TenantNo tenant) const;
    NodeNo first_member(StateNo state);

    void restate(NodeNo node);
    void leave(NodeNo node);
    void list(StateNo state);
    void unlist(StateNo state);
    void audiences_of(const StateRec& state, std::vector<std::uint64_t>& out) const;
    std::uint32_t audience(std::uint64_t key);              // which it is; it is made if there is none yet
    std::uint32_t known_audience(std::uint64_t key) const;  // nil: there is none
    StateNo intern(NodeNo node);
    void sweep();
    // Cells and company, from the seats. `gpus`: one bit for each GPU that changed; the others are left as they are.
    void recount(NodeNo node, std::uint64_t gpus = ~std::uint64_t{0});
    void recount_fabric(NodeNo node);
    void count_clients();  // of MPS servers, from now on
    void link(SeatNo seat);
    void unlink(SeatNo seat);
    SeatNo new_seat();
    std::uint8_t model(const Gpu& gpu);
    void look_up(Shape& shape);
    std::uint8_t profile(const std::string& name, const gpu::Board* board);
    std::uint32_t drive_list(const std::vector<std::int64_t>& sizes) const;
    void use_host(NodeNo node, const SeatRec& seat);
    std::int64_t leased_of(const SeatRec& seat, const Cell& cell) const;  // thousandths, of this GPU
    std::uint32_t topology(TopologyLevel level, const std::string& name);
    void draw(NodeNo node, const Node& as);
    std::vector<Portion> roomy(const Job& job, std::size_t of_each_bucket) const;
    void sort_by_domain(std::vector<Portion>& room, TopologyLevel level) const;
    std::vector<Portion> spread(std::vector<Portion>& room, std::int32_t tasks) const;
    std::vector<Portion> in_bins(std::vector<Portion>& room, std::int32_t tasks, std::int32_t unit,
                                 TopologyLevel level) const;
    template <class Gone>
    static void recount(std::span<Cell> cells, const std::vector<SeatRec>& seats, SeatNo first, const Gone& gone,
                        const FleetIndex& index, bool wiped, std::uint64_t only = ~std::uint64_t{0});

    std::vector<std::uint32_t> domain_of_;
    std::vector<CellModel> models_;
    std::vector<std::string> profiles_{""};
    std::vector<std::uint8_t> profile_modes_{0};
    mutable std::vector<std::vector<std::int64_t>> drive_lists_{{}};  // each list of sizes once
    std::vector<Shape> shapes_;
    std::unordered_map<std::string, ShapeNo> shape_numbers_;
    std::vector<NodeRec> nodes_;
    std::vector<Cell> cells_;
    std::vector<Extra> extras_;
    std::vector<SeatRec> seats_;
    std::vector<NodeNo> changed_;
    SeatNo spare_seat_ = nil;
    std::array<std::vector<TopologyDomain>, 7> topology_;
    std::unordered_map<std::string, std::uint32_t> topology_numbers_;

    std::vector<StateRec> states_;
    std::vector<Brief> briefs_;  // of each
    std::vector<StateNo> spare_states_;
    std::vector<Cell> state_cells_;
    std::vector<StateNo> table_;  // open addressing by hash
    std::size_t live_states_ = 0, kept_states_ = 0;
    std::uint32_t births_ = 0;
    std::vector<Audience> audiences_;
    std::array<std::vector<std::uint32_t>, 32> audience_numbers_;  // by kind, then by tenant or domain
    std::size_t rankings_ = 0;                                     // of all audiences
    std::vector<std::uint64_t> scratch_keys_;
    std::vector<Cell> scratch_cells_;
    Entry scanned_;
    // Requests for instances of one board. When they are many, all counts are halved, so that old requests fade.
    struct InstanceRequests {
        const gpu::Board* board = nullptr;
        std::vector<std::int64_t> asked;         // by profile
        std::int64_t sum = 0, since_valued = 0;  // since_valued: requests since the last look
        gpu::Demand40 demand;                    // what `values` were computed for
        std::shared_ptr<const gpu::LayoutValues> values;
    };
    std::uint32_t requests_of(const gpu::Board& board);

    std::vector<InstanceRequests> requests_;
    std::optional<Mix> mix_;
    std::int64_t free_ = 0, total_ = 0;
    bool remembers_hosts_ = false;
    bool counts_clients_ = false;   // a task with an MPS share below large_share was asked for or is there
    bool several_domains_ = false;  // tenants distrust each other
};

template <class Gone>
void FleetIndex::suppose(Supposed& out, NodeNo node, const Gone& gone) const {
    const NodeRec& rec = nodes_[node];
    out.view = view(node);
    out.cells.assign(out.view.cells.begin(), out.view.cells.end());
    // What is dirty, or being wiped, will be clean.
    for (Cell& cell : out.cells) cell.available |= static_cast<std::uint8_t>(models_[cell.model].all() & ~cell.lost);
    recount(out.cells, seats_, rec.seats, gone, *this, true);
    out.view.cells = out.cells;
    const auto domain_of = [&](TenantNo tenant) { return tenant_domain(tenant); };
    Company residents, fabric;
    std::int64_t cpu = rec.cpu, memory = rec.memory;
    std::uint16_t functions = rec.functions;
    std::vector<std::int64_t> drives;
    for (SeatNo s = rec.seats; s != nil; s = seats_[s].next_here) {
        const SeatRec& seat = seats_[s];
        if (gone(seat)) {
            if (seat.drive != 0xFFFF && rec.extra != nil)
                for (const auto& [drive, size] : extras_[rec.extra].sizes)
                    if (drive == seat.drive) drives.push_back(size);
            if (seat.shape != nil) {
                cpu += seat.tasks * shapes_[seat.shape].need.cpu;
                memory += seat.tasks * shapes_[seat.shape].need.memory;
            }
            if (seat.function != 0xFFFF) ++functions;
            continue;
        }
        residents = residents.with(seat.tenant, seat.scope(0),
                                   seat.host_kernel ? PeerTrust::same_domain : PeerTrust::distrusting, domain_of);
    }
    if (rec.board_is_one)
        for (const NodeNo other : topology_[1][rec.topology[1]].nodes)
            for (SeatNo s = nodes_[other].seats; s != nil; s = seats_[s].next_here)
                if (!gone(seats_[s]))
                    fabric = fabric.with(seats_[s].tenant, seats_[s].scope(3), PeerTrust::distrusting, domain_of);
    out.view.residents = residents;
    out.view.fabric = fabric;
    out.view.cpu = cpu;
    out.view.memory = memory;
    out.view.functions = functions;
    if (!drives.empty()) {
        drives.insert(drives.end(), extras_[rec.extra].drive_bytes.begin(), extras_[rec.extra].drive_bytes.end());
        out.view.drives = drive_list(drives);
    }
    if (!residents.empty() || !rec.can_reboot || (rec.host_busy && !rec.returns)) return;
    out.view.hosts = {};
    out.view.host_busy = false;  // it is being rebooted already
}

template <class Gone>
std::int64_t FleetIndex::capacity_without(Supposed& scratch, NodeNo node, ShapeNo number, TenantNo tenant,
                                          const Gone& gone) const {
    suppose(scratch, node, gone);
    const Shape& shape = shapes_[number];
    if (shape.need.excepted.empty()) return capacity(scratch.view, node, number, tenant);
    if (!scratch.view.open || !kind_ok(shape, scratch.view.kind)) return 0;
    return neighbourly_excepted(node, shape, tenant, gone, true) == Obstacle::none
               ? capacity(scratch.view, shape, Eyes{.tenant = tenant})
               : 0;
}

// With an exception the pairs of tenants count, one by one. `may_reboot`: an empty node that can be rebooted counts as
// rebooted.
template <class Gone>
Obstacle FleetIndex::neighbourly_excepted(NodeNo node, const Shape& shape, TenantNo tenant, const Gone& gone,
                                          bool may_reboot) const {
    const NodeRec& rec = nodes_[node];
    const auto trust_in = [&](TenantNo other) {
        if (other == tenant) return PeerTrust::same_tenant;
        const std::uint32_t domain = tenant_domain(tenant);
        return domain != 0 && domain == tenant_domain(other) ? PeerTrust::same_domain : PeerTrust::distrusting;
    };
    const auto excepted = [&](TenantNo other) {
        return std::ranges::find(shape.need.excepted, other) != shape.need.excepted.end();
    };
    bool empty = true;
    for (SeatNo s = rec.seats; s != nil; s = seats_[s].next_here) {
        const SeatRec& seat = seats_[s];
        if (gone(seat)) continue;
        empty = false;
        const PeerTrust trust = trust_in(seat.tenant);
        if (trust > shape.need.sharing.node || trust > seat.scope(0)) return Obstacle::neighbours;
        if (trust != PeerTrust::distrusting || (!shape.need.on_host_kernel && !seat.host_kernel)) continue;
        const bool theirs = seat.shape != nil && std::ranges::find(shapes_[seat.shape].need.excepted, tenant) !=
                                                     shapes_[seat.shape].need.excepted.end();
        if (!theirs || !excepted(seat.tenant)) return Obstacle::neighbours;
    }
    if (rec.board_is_one) {
        Company fabric;
        const auto domain_of = [&](TenantNo other) { return tenant_domain(other); };
        for (const NodeNo other : topology_[1][rec.topology[1]].nodes)
            for (SeatNo s = nodes_[other].seats; s != nil; s = seats_[s].next_here)
                if (!gone(seats_[s]))
                    fabric = fabric.with(seats_[s].tenant, seats_[s].scope(3), PeerTrust::distrusting, domain_of);
        if (!joins(fabric, {.tenant = tenant}, shape.need.sharing.nvlink, {}, false)) return Obstacle::nvlink;
    }
    if (rec.host_busy) return Obstacle::host;
    if (rec.extra != nil && !(may_reboot && empty && rec.can_reboot))
        for (const TenantNo user : extras_[rec.extra].host_users)
            if (trust_in(user) == PeerTrust::distrusting && !excepted(user))
                return rec.can_reboot && empty ? Obstacle::reboot : Obstacle::host;
    return Obstacle::none;
}

// Each cell from who sits on it. With `wiped`, slices of those who are gone count as clean.
template <class Gone>
void FleetIndex::recount(std::span<Cell> cells, const std::vector<SeatRec>& seats, SeatNo first, const Gone& gone,
                         const FleetIndex& index, bool wiped, std::uint64_t only) {
    for (std::size_t at = 0; at < cells.size(); ++at) {
        if ((only >> at & 1u) == 0) continue;
        Cell& cell = cells[at];
        cell.company = {};
        cell.use = cell.mode = cell.held = cell.kept = cell.begins = 0;
        cell.taken = 0;
        cell.clients = 0;
    }
    for (SeatNo s = first; s != nil; s = seats[s].next_here) {
        const SeatRec& seat = seats[s];
        const bool left = gone(seat);
        const std::uint8_t mask = gpu::Placement{seat.start, seat.size}.mask();
        for (std::uint64_t bits = seat.gpus & only; bits != 0; bits &= bits - 1) {
            const auto at = static_cast<std::size_t>(std::countr_zero(bits));
            if (at >= cells.size()) continue;
            Cell& cell = cells[at];
            if (left) {
                if (wiped && !seat.promised) cell.available |= static_cast<std::uint8_t>(mask & ~cell.lost);
                continue;
            }
            index.sit(cell, seat);
        }
    }
    // Those who stay keep what they have, whoever else had it too.
    for (SeatNo s = first; s != nil; s = seats[s].next_here) {
        const SeatRec& seat = seats[s];
        if (gone(seat) || seat.promised) continue;
        const std::uint8_t mask = gpu::Placement{seat.start, seat.size}.mask();
        for (std::uint64_t bits = seat.gpus & only; bits != 0; bits &= bits - 1) {
            const auto at = static_cast<std::size_t>(std::countr_zero(bits));
            if (at < cells.size()) cells[at].available &= static_cast<std::uint8_t>(~mask);
        }
    }
}

template <class Gone>
void FleetIndex::promise(const Portion& where, const Job& job, JobNo owner, const Gone& gone,
                         std::vector<SeatNo>& out) {
    Supposed supposed;
    suppose(supposed, where.node, gone);
    const Shape& shape = shapes_[job.shape];
    const std::size_t first = out.size();
    for (std::int32_t i = 0; i < where.tasks; ++i) {
        const std::optional<Choice> choice = choose(supposed.view, shape, {.tenant = job.tenant});
        if (!choice) {
            // Shares of one job sit on one GPU together: what is kept for one task may be enough for the next.
            const auto has_more = [&](SeatNo kept) {
                const SeatRec& seat = seats_[kept];
                const auto gpu = static_cast<std::size_t>(std::countr_zero(seat.gpus));
                if (seat.gpus == 0 || seat.profile != 0 || gpu >= supposed.cells.size()) return false;
                std::int64_t taken = supposed.cells[gpu].taken + seat.share, clients = 1;
                for (std::size_t k = first; k < out.size(); ++k)
                    if (seats_[out[k]].gpus == seat.gpus) {
                        taken += seats_[out[k]].share;
                        ++clients;
                    }
                const bool mps = seat.mechanism == Mechanism::mps;
                return taken <= 1000 && (!mps || clients <= supposed.cells[gpu].clients_left());
            };
            const auto beside = std::find_if(out.begin() + static_cast<std::ptrdiff_t>(first), out.end(), has_more);
            if (beside == out.end() || !has_cores(supposed.view.cpu, supposed.view.memory, shape)) break;
            const SeatRec another = seats_[*beside];
            supposed.view.cpu -= shape.need.cpu;
            supposed.view.memory -= shape.need.memory;
            out.push_back(promise_again(another));
            continue;
        }
        SeatRec seat = seat_of(job, owner, where.node);
        seat.promised = true;
        set_place(seat, supposed.view, shape, *choice);
        const std::uint8_t mask = gpu::Placement{seat.start, seat.size}.mask();
        for (std::uint64_t bits = seat.gpus; bits != 0; bits &= bits - 1) {
            Cell& cell = supposed.cells[static_cast<std::size_t>(std::countr_zero(bits))];
            cell.kept |= mask;
            if (seat.profile != 0) cell.begins |= static_cast<std::uint8_t>(1u << seat.start);
        }
        supposed.view.cpu -= shape.need.cpu;
        supposed.view.memory -= shape.need.memory;
        out.push_back(promise_again(seat));
    }
}

}  // namespace bulkhead::sched
