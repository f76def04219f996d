// `selftest fabric` on virtual functions: attached as tenants' are, and let go whatever happens.
#include <fmt/format.h>
#include <sys/random.h>

#include <array>
#include <set>

#include "bulkhead/agent/fabric_rig.hpp"
#include "bulkhead/agent/function_record.hpp"

namespace bulkhead::agent {

namespace {

// No two nodes that are tested at once show the same on the wire.
std::array<std::uint8_t, 3> fresh_octets() {
    std::array<std::uint8_t, 3> octets{};
    (void)!::getrandom(octets.data(), octets.size(), 0);
    return octets;
}

class FunctionRig final : public FabricRig {
public:
    FunctionRig(FabricFence fence, Functions& functions, FunctionPair pair, std::uint16_t vlan)
        : fence_{fence}, functions_{functions}, pair_{pair}, vlan_{vlan} {}
    ~FunctionRig() override {
        ends_.clear();
        for (const std::size_t end : ours_) (void)functions_.detach(pair_[end]);
    }

    Result<> build() {
        for (const std::uint16_t function : pair_)
            if (auto ok = functions_.check_free(function); !ok) return ok;
        for (std::size_t end = 0; end < pair_.size(); ++end) {  // what a test that was killed has left
            if (auto ok = functions_.detach(pair_[end]); !ok) return ok;
            if (auto ok = attach(end, 0); !ok) return ok;
        }
        return {};
    }
    Result<> put(std::size_t end, unsigned tenant) override {
        ends_.erase(ends_.begin() + static_cast<std::ptrdiff_t>(end));
        if (auto ok = functions_.detach(pair_[end]); !ok) return ok;
        return attach(end, tenant);
    }
    std::string what() const override {
        const auto all = functions_.inventory();
        return fmt::format("the functions {} and {}", all[pair_[0]].address, all[pair_[1]].address);
    }
    Grade grade() const override { return functions_.grade(pair_[0]); }
    std::vector<RigGuard> guards() const override {
        std::vector<RigGuard> all;
        if (fence_ != FabricFence::on) return all;
        for (std::size_t at = 0; at < ends_.size(); ++at) all.push_back({&ends_[at].space, guard_name(pair_[at])});
        return all;
    }
    bool has_nic() const override { return true; }

private:
    // Of tenant 0 or 1, which have a subnet and a VLAN each.
    Result<> attach(std::size_t at, unsigned tenant) {
        const std::uint16_t function = pair_[at];
        const FabricPort port{
            .function = function,
            .mac = fmt::format("02:be:{:02x}:{:02x}:{:02x}:{:02x}", octets_[0], octets_[1], octets_[2], at + 1),
            .vlan = static_cast<std::uint16_t>(vlan_ + tenant),
            .address = fmt::format("10.255.{}.{}/24", tenant, at + 1),
            .subnet = fmt::format("10.255.{}.0/24", tenant)};
        const Key lease = first_test_lease + static_cast<Key>(at);
        ours_.insert(at);
        if (auto ok = functions_.attach(lease, fmt::format("selftest-{}", tenant), port, fence_); !ok) return ok;
        auto space = rdma::Space::of(functions_.space_of(lease));
        if (!space) return std::unexpected(space.error());
        const auto ports = functions_.ports_of(lease);
        if (!ports) return std::unexpected(ports.error());
        RigEnd end{std::move(*space),
                   fmt::format("fabric{}", function),
                   *rdma::parse_mac(port.mac),
                   *rdma::parse_prefix(port.address),
                   {}};
        for (const AttachedPort& leased : *ports)
            if (leased.verbs) end.verbs.push_back(*leased.verbs);
        ends_.insert(ends_.begin() + static_cast<std::ptrdiff_t>(at), std::move(end));
        return {};
    }

    FabricFence fence_;
    Functions& functions_;
    FunctionPair pair_;
    std::uint16_t vlan_;
    std::array<std::uint8_t, 3> octets_ = fresh_octets();
    std::set<std::size_t> ours_;  // ends, and nobody else's are let go
};

}  // namespace

Result<std::unique_ptr<FabricRig>> make_function_rig(FabricFence fence, Functions& functions, FunctionPair pair,
                                                     std::uint16_t vlan) {
    auto rig = std::make_unique<FunctionRig>(fence, functions, pair, vlan);
    if (auto built = rig->build(); !built) return std::unexpected(built.error());
    return rig;
}

}  // namespace bulkhead::agent
