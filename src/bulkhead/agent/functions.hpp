// Virtual functions of this node's NICs, for tenants. Which physical ones may be used is on the command line and
// nowhere else; everything of a function is set from the host's side before its tenant sees it, read back, and taken
// away again:
//
//     attach   identity, VLAN, rate and checks on the physical function; then the driver; then the tenant's namespace
//              gets the link (with its guard) and the RDMA device; then address and link go up
//     detach   the driver goes, and link and RDMA device with it; the function is nobody's; the namespace ends with the
//              lease's last function
//     wipe     the function is reset, and set to nobody's once more
//     verify   everything that could be left is looked for, and named
//
// What is under way is on record (`functions/ADDRESS` in the run folder) before it begins, so that whoever comes after
// us detaches what we attached.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bulkhead/agent/fabric_fence.hpp"
#include "bulkhead/hw/container/durable.hpp"
#include "bulkhead/hw/rdma/gid_table.hpp"
#include "bulkhead/hw/rdma/guard.hpp"
#include "bulkhead/hw/rdma/links.hpp"
#include "bulkhead/hw/rdma/pci_functions.hpp"
#include "bulkhead/hw/rdma/rdma_system.hpp"
#include "bulkhead/model/node.hpp"
#include "bulkhead/node/fabric_port.hpp"
#include "bulkhead/node/operation.hpp"

namespace bulkhead::agent {

struct TenantNic {
    std::string address;      // of the physical function
    std::uint32_t count = 0;  // virtual ones to have; 0: those that are there
    friend bool operator==(const TenantNic&, const TenantNic&) = default;
};
Result<TenantNic> parse_tenant_nic(std::string_view text);  // "0000:3b:00.0" or "0000:3b:00.0=8"

struct FunctionsSettings {
    std::vector<TenantNic> nics;
    std::string run_folder;  // namespaces and records; ends with the boot, as functions do
    std::string sys = "/sys";
    std::string host = "/proc/1/ns/net";  // the namespace that physical functions are in
    std::string nft = "nft";
    bool soft_roce = false;   // an RDMA device in software on each function: for machines whose NICs have none
    bool must_fence = false;  // RDMA devices must keep to their namespaces even where none is seen yet
    // Addresses in the order of their numbers, kept over starts: one that is gone leaves its number empty, and one that
    // is new comes last. Empty: by address, each time anew.
    std::string order;
    // One program at a time has a NIC, on the whole host: an agent, or a test of it.
    std::string locks = "/run/bulkhead";
    std::chrono::milliseconds lock_patience{0};
    std::chrono::milliseconds follow_patience{
        20'000};  // drivers and the GID table follow a moment after what they are told
};

// What a lease has, as its tenant sees it.
struct AttachedPort {
    std::uint16_t function = 0;
    std::string link;  // "fabric3"
    std::string rdma;  // "mlx5_2"; empty: no RDMA device
    std::uint32_t rdma_port = 1;
    std::optional<std::uint32_t> gid_index;  // of its address, now
    std::optional<rdma::VerbsNode> verbs;    // exactly its RDMA device's
    friend bool operator==(const AttachedPort&, const AttachedPort&) = default;
};

struct FunctionRecord;

// Two functions of one NIC: what a test of the fences is made between.
using FunctionPair = std::array<std::uint16_t, 2>;

// A NIC, as evidence names it.
struct NicFacts {
    std::string address, mac, model, driver, firmware;
    Grade grade = Grade::assumed;
};

// Leases of the test's two ends. No control plane gives out such keys.
inline constexpr Key first_test_lease = 1, last_test_lease = 2;

class Functions {
public:
    static Result<std::unique_ptr<Functions>> open(FunctionsSettings settings);
    // Keeps RDMA devices to their namespaces, from now on and on the whole machine. The kernel takes that only while
    // there is no namespace but the host's: so before the caller makes its own. Fine without RDMA, and where it is so.
    static Result<> prepare_host();

    // By index. One that is gone has its address, and nothing else.
    std::vector<NodeFunction> inventory() const;
    // As an agent that has none of them now remembers them, by the file of their order: addresses, and nothing else.
    // Without them the control plane would take them for lost, and end whoever has one.
    static std::vector<NodeFunction> remembered(const std::string& order);
    // Whether a tenant's function comes with an RDMA device: as the physical ones say, or by software.
    bool have_rdma() const;
    std::size_t size() const { return known_.size(); }
    Grade grade(std::uint16_t function) const;

    Result<> attach(Key lease, const std::string& tenant, const FabricPort& port, FabricFence fence = FabricFence::on);
    Result<> detach(std::uint16_t function);
    OperationResult wipe(std::uint16_t function);
    OperationResult verify(std::uint16_t function);

    // `conflict` for a function that is somebody's: it has a driver, and no record of ours says why; or one does, and
    // the NIC shows another MAC than that.
    Result<> check_free(std::uint16_t function) const;

    // ---- for tests of the fences, beside leases (gpu_fences.cpp)

    // Of each NIC two functions that nobody has: neither held, nor with a driver or on record; and, where somebody had
    // it before in this boot, clean. And why there are none of the other NICs.
    struct Testable {
        std::vector<FunctionPair> pairs;
        std::vector<std::string> why_not;
    };
    // What is kept of the last owner of a clean one is let go with this: whoever has one from now on leaves it anew.
    Testable pairs_to_test(std::span<const std::uint16_t> held, std::span<const std::uint16_t> clean);
    NicFacts nic_of(std::uint16_t function) const;

    // While it lives, nobody but this thread changes these functions: whoever wants to, waits; after `test_patience`
    // the test is asked to end.
    class TestHold {
    public:
        explicit TestHold(Functions& of) : of_{&of} {}
        TestHold(TestHold&& other) noexcept : of_{std::exchange(other.of_, nullptr)} {}
        TestHold& operator=(TestHold&&) = delete;
        ~TestHold();

    private:
        Functions* of_;
    };
    static constexpr std::chrono::seconds test_patience{45};
    // Who waits for one of them has it first. `conflict`: one is somebody's by now, or was so since it was chosen; or a
    // test is under way.
    Result<TestHold> hold_for_test(FunctionPair pair);
    bool is_waited_for(std::uint16_t function) const;
    bool test_should_end() const { return end_test_ || closing_; }
    void end_tests() { closing_ = true; }  // this one and every later one
    // What the test leaves is reset, and looked for; afterwards they are as if there had been none. Sentences: what is
    // left all the same.
    std::vector<std::string> clean_after_test(FunctionPair pair);
    // What a test that was killed has left. Numbers of functions that could not be taken back, and why.
    std::vector<std::pair<std::uint16_t, std::string>> take_back_tests();

    // Where a tenant of that lease is started: container::TenantSpec::network_space.
    std::string space_of(Key lease) const;
    Result<std::vector<AttachedPort>> ports_of(Key lease);

private:
    struct Known {
        std::string address, physical, driver;  // the driver that functions get
        std::uint32_t number = 0;
        int physical_link = 0;
        std::string physical_mac, physical_name, model;
        bool is_emulated = false;
        std::optional<std::int64_t> numa_node;
        std::vector<std::string> bridges;
        std::int64_t speed_mbps = 0;
        bool is_gone = false;
    };
    explicit Functions(FunctionsSettings settings);

    Result<> lock_nics();
    Result<> find_all();
    Result<> keep_order();
    Result<const Known*> known(std::uint16_t function) const;
    std::unique_lock<std::mutex> lock_for(std::uint16_t function);
    bool is_under_test(std::uint16_t function) const;  // by another thread
    Result<> check_testable(std::uint16_t function, std::span<const std::uint16_t> clean) const;
    Result<> attach_locked(const Known& known, const FunctionRecord& record, FabricFence fence);
    Result<> detach_locked(const Known& known);
    Result<> give_link(const Known& known, const FunctionRecord& record, const rdma::Space& space);
    Result<> give_rdma(const Known& known, FunctionRecord& record, const rdma::Space& space);
    Result<rdma::RdmaDevice> move_rdma(const Known& known, const std::function<std::string()>& name_now,
                                       rdma::RdmaSystem& theirs);
    Result<> keep_rdma(const Known& known, FunctionRecord& record, std::uint32_t index, rdma::RdmaSystem& theirs);
    Result<> dress(const FunctionRecord& record, const rdma::Space& space, FabricFence fence);
    Result<> make_nobodys(const Known& known);
    Result<> see_rdma_gone(const FunctionRecord& record);
    std::vector<std::string> residue_of(const Known& known);
    std::vector<FunctionRecord> records() const;
    std::string record_path(const std::string& address) const;
    std::string sysfs_of(Key lease) const { return space_of(lease) + ".sys"; }

    FunctionsSettings settings_;
    rdma::PciTree pci_;
    rdma::RdmaTree rdma_;
    rdma::Nft nft_;
    std::optional<rdma::Space> host_;
    std::vector<Known> known_;
    std::vector<container::Fd> nic_locks_;
    mutable std::mutex mutex_;  // one change at a time: functions of one NIC share its firmware

    mutable std::mutex test_mutex_;  // taken after the other; guards what follows
    std::condition_variable test_over_;
    std::optional<FunctionPair> under_test_;
    std::thread::id tester_;
    std::multiset<std::uint16_t> waited_for_;  // functions that somebody wants while they are tested
    std::atomic<bool> end_test_ = false, closing_ = false;
};

}  // namespace bulkhead::agent
