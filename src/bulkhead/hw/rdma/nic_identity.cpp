#include "bulkhead/hw/rdma/nic_identity.hpp"

#include <fmt/format.h>
#include <linux/ethtool.h>
#include <linux/netlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace bulkhead::rdma {

std::string legible_field(std::string_view bytes) {
    std::string text{bytes.substr(0, bytes.find('\0'))};
    std::ranges::replace_if(text, [](unsigned char c) { return c < 0x20 || c > 0x7e; }, '?');
    return text;
}

Result<NicIdentity> identity_of(const Space& space, const std::string& link) {
    NicIdentity found;
    auto ran = space.run([&]() -> Result<> {
        // Any socket will do, and this one speaks to nobody.
        const Descriptor socket{::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE)};
        ethtool_drvinfo about{};
        about.cmd = ETHTOOL_GDRVINFO;
        ifreq request{};
        link.copy(request.ifr_name, IFNAMSIZ - 1);
        request.ifr_data = reinterpret_cast<char*>(&about);
        if (!socket || ::ioctl(*socket, SIOCETHTOOL, &request) != 0)
            return fail(Code::unavailable,
                        fmt::format("{} does not say what drives it: {}", link, std::strerror(errno)),
                        fmt::format("ethtool -i {}", link));
        const std::string version = legible_field({about.version, sizeof about.version});
        found.driver = legible_field({about.driver, sizeof about.driver});
        if (!version.empty()) found.driver += " " + version;
        found.firmware = legible_field({about.fw_version, sizeof about.fw_version});
        return {};
    });
    if (!ran) return std::unexpected(ran.error());
    return found;
}

}  // namespace bulkhead::rdma
