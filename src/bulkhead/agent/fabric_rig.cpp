#include "bulkhead/agent/fabric_rig.hpp"

#include <fmt/format.h>

namespace bulkhead::agent {

namespace {

class VethRig final : public FabricRig {
public:
    VethRig(rdma::Space bridge, FabricFence fence, rdma::Nft nft)
        : switch_{std::move(bridge)}, fence_{fence}, nft_{std::move(nft)} {}

    Result<> build() {
        auto links = rdma::Links::open(switch_);
        if (!links) return std::unexpected(links.error());
        const auto bridge = links->make_bridge("switch0");
        if (!bridge) return std::unexpected(bridge.error());
        if (auto ok = links->raise(*bridge); !ok) return ok;
        for (const unsigned number : {1U, 2U}) {
            auto space = rdma::Space::unnamed();
            if (!space) return std::unexpected(space.error());
            const std::string port = fmt::format("port{}", number), link = fmt::format("fabric{}", number);
            const auto here = links->make_veth(port, {link, space->descriptor()});
            if (!here) return std::unexpected(here.error());
            if (auto ok = links->put_into(*bridge, *here); !ok) return ok;
            if (auto ok = links->raise(*here); !ok) return ok;
            ends_.push_back({std::move(*space),
                             link,
                             rdma::Mac{{0x02, 0xbe, 0, 0, 0, static_cast<std::uint8_t>(number)}},
                             rdma::parse_prefix(fmt::format("10.255.0.{}/24", number)).value(),
                             {}});
        }
        for (const RigEnd& end : ends_)
            if (auto ok = dress(end); !ok) return ok;
        if (auto ok = fence_on(0); !ok) return ok;
        return fence_on(1);
    }

    Result<> put(std::size_t end, unsigned tenant) override {
        RigEnd& moved = ends_[end];
        auto links = rdma::Links::open(moved.space);
        if (!links) return std::unexpected(links.error());
        const auto link = links->link(moved.link);
        if (!link) return std::unexpected(link.error());
        if (auto ok = links->remove(link->index, moved.address); !ok) return ok;
        moved.address = rdma::parse_prefix(fmt::format("10.255.{}.{}/24", tenant, end + 1)).value();
        if (auto ok = links->add(link->index, moved.address); !ok) return ok;
        return fence_on(end);
    }
    std::string what() const override { return "two veth ends in a bridge"; }
    Grade grade() const override { return Grade::emulated; }
    std::vector<RigGuard> guards() const override {
        if (fence_ == FabricFence::off) return {};
        return {{&switch_, table_of(0)}, {&switch_, table_of(1)}};
    }
    bool has_nic() const override { return false; }

private:
    static std::string table_of(std::size_t end) { return fmt::format("bulkhead_selftest_{}", end + 1); }

    Result<> dress(const RigEnd& end) {
        auto links = rdma::Links::open(end.space);
        if (!links) return std::unexpected(links.error());
        const auto link = links->link(end.link);
        if (!link) return std::unexpected(link.error());
        if (auto ok = links->set_mac(link->index, end.mac); !ok) return ok;
        if (auto ok = links->add(link->index, end.address); !ok) return ok;
        return links->raise(link->index);
    }
    Result<> fence_on(std::size_t end) {
        if (fence_ == FabricFence::off) return {};
        return nft_.load(switch_, {.table = table_of(end),
                                   .device = fmt::format("port{}", end + 1),
                                   .at = rdma::GuardAt::hosts_end,
                                   .mac = ends_[end].mac,
                                   .address = ends_[end].address,
                                   .subnet = ends_[end].address});
    }

    rdma::Space switch_;
    FabricFence fence_;
    rdma::Nft nft_;
};

}  // namespace

Result<std::unique_ptr<FabricRig>> make_veth_rig(FabricFence fence, const std::string& nft) {
    if (fence == FabricFence::nic)
        return fail(Code::invalid, "a veth has no NIC that could check anything",
                    "name two functions of one by --tenant-nic");
    auto bridge = rdma::Space::unnamed();
    if (!bridge) return std::unexpected(bridge.error());
    auto rig = std::make_unique<VethRig>(std::move(*bridge), fence, rdma::Nft{nft});
    if (auto built = rig->build(); !built) return std::unexpected(built.error());
    return rig;
}

}  // namespace bulkhead::agent
