// `selftest fabric` on virtual functions: attached as tenants' are, and let go whatever happens.
#include <fmt/format.h>

#include <array>
#include <set>

#include "bulkhead/agent/fabric_rig.hpp"

namespace bulkhead::agent {

namespace {

// In a run folder of the test's own, so that no lease of the node has these numbers.
constexpr Key first_lease = 1;
constexpr auto both_functions = std::to_array<std::uint16_t>({0, 1});

class FunctionRig final : public FabricRig {
public:
    FunctionRig(FabricFence fence, std::unique_ptr<Functions> functions)
        : fence_{fence}, functions_{std::move(functions)} {}
    ~FunctionRig() override {
        ends_.clear();
        for (const std::uint16_t function : ours_) (void)functions_->detach(function);
    }

    Result<> build() {
        if (functions_->size() < 2)
            return fail(Code::exhausted,
                        fmt::format("the test takes two functions, and there are {}", functions_->size()),
                        "name a NIC with two: --tenant-nic 0000:3b:00.0=2");
        for (const std::uint16_t function : both_functions)
            if (auto ok = functions_->check_free(function); !ok) return ok;
        for (const std::uint16_t function : both_functions) {  // what a test that was killed has left
            if (auto ok = functions_->detach(function); !ok) return ok;
            if (auto ok = attach(function, 0); !ok) return ok;
        }
        return {};
    }
    Result<> put(std::size_t end, unsigned tenant) override {
        ends_.erase(ends_.begin() + static_cast<std::ptrdiff_t>(end));
        const auto function = static_cast<std::uint16_t>(end);
        if (auto ok = functions_->detach(function); !ok) return ok;
        return attach(function, tenant);
    }
    std::string what() const override {
        const auto all = functions_->inventory();
        return fmt::format("the functions {} and {}", all[0].address, all[1].address);
    }
    Grade grade() const override { return functions_->grade(0); }
    std::vector<RigGuard> guards() const override {
        std::vector<RigGuard> all;
        if (fence_ != FabricFence::on) return all;
        for (std::size_t at = 0; at < ends_.size(); ++at)
            all.push_back({&ends_[at].space, fmt::format("bulkhead_f{}", at)});
        return all;
    }
    bool has_nic() const override { return true; }

private:
    // Of tenant 0 or 1, which have a subnet and a VLAN each.
    Result<> attach(std::uint16_t function, unsigned tenant) {
        const FabricPort port{.function = function,
                              .mac = fmt::format("02:be:00:00:00:{:02x}", function + 1),
                              .vlan = static_cast<std::uint16_t>(3'900 + tenant),
                              .address = fmt::format("10.255.{}.{}/24", tenant, function + 1),
                              .subnet = fmt::format("10.255.{}.0/24", tenant)};
        const Key lease = first_lease + function;
        ours_.insert(function);
        if (auto ok = functions_->attach(lease, fmt::format("selftest-{}", tenant), port, fence_); !ok) return ok;
        auto space = rdma::Space::of(functions_->space_of(lease));
        if (!space) return std::unexpected(space.error());
        const auto ports = functions_->ports_of(lease);
        if (!ports) return std::unexpected(ports.error());
        RigEnd end{std::move(*space),
                   fmt::format("fabric{}", function),
                   *rdma::parse_mac(port.mac),
                   *rdma::parse_prefix(port.address),
                   {}};
        for (const AttachedPort& leased : *ports)
            if (leased.verbs) end.verbs.push_back(*leased.verbs);
        ends_.insert(ends_.begin() + function, std::move(end));
        return {};
    }

    FabricFence fence_;
    std::unique_ptr<Functions> functions_;
    std::set<std::uint16_t> ours_;  // and nobody else's are let go
};

}  // namespace

Result<std::unique_ptr<FabricRig>> make_function_rig(FabricFence fence, std::unique_ptr<Functions> functions) {
    auto rig = std::make_unique<FunctionRig>(fence, std::move(functions));
    if (auto built = rig->build(); !built) return std::unexpected(built.error());
    return rig;
}

}  // namespace bulkhead::agent
