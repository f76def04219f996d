#include "bulkhead/agent/functions.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <sstream>
#include <thread>

#include "bulkhead/agent/function_record.hpp"

namespace bulkhead::agent {

namespace {

namespace fs = std::filesystem;

template <class Look>
auto wait_for(std::chrono::milliseconds patience, const Look& look) -> decltype(look()) {
    const auto until = std::chrono::steady_clock::now() + patience;
    auto seen = look();
    while (seen && !*seen && std::chrono::steady_clock::now() < until) {
        std::this_thread::sleep_for(std::chrono::milliseconds{20});
        seen = look();
    }
    return seen;
}

constexpr std::string_view last_ending = ".last";

}  // namespace

Result<TenantNic> parse_tenant_nic(std::string_view text) {
    const std::size_t equals = text.find('=');
    TenantNic nic{std::string{text.substr(0, equals)}, 0};
    bool is_right = rdma::is_pci_address(nic.address);
    if (equals != text.npos) {
        const std::string_view count = text.substr(equals + 1);
        const auto [end, wrong] = std::from_chars(count.data(), count.data() + count.size(), nic.count);
        is_right = is_right && wrong == std::errc{} && end == count.data() + count.size() && nic.count >= 1 &&
                   nic.count <= 4096;
    }
    if (is_right) return nic;
    return fail(
        Code::invalid, fmt::format("'{}' is no NIC for tenants", text.substr(0, 80)),
        "write the PCI address of its physical function, and how many virtual ones it shall have: 0000:3b:00.0=8");
}

Functions::Functions(FunctionsSettings settings)
    : settings_{std::move(settings)}, pci_{settings_.sys}, rdma_{settings_.sys}, nft_{settings_.nft} {}

Result<> Functions::prepare_host() {
    const auto host = rdma::Space::own();
    if (!host) return std::unexpected(host.error());
    auto system = rdma::RdmaSystem::open(*host);
    if (!system) return {};  // a kernel without RDMA, or one that has not loaded it
    return system->make_exclusive();
}

Result<std::unique_ptr<Functions>> Functions::open(FunctionsSettings settings) {
    std::unique_ptr<Functions> functions{new Functions{std::move(settings)}};
    auto host = rdma::Space::of(functions->settings_.host);
    if (!host) return std::unexpected(host.error());
    functions->host_.emplace(std::move(*host));
    if (auto locked = functions->lock_nics(); !locked) return std::unexpected(locked.error());
    for (const char* folder : {"/functions", "/net"}) {
        std::error_code wrong;
        fs::create_directories(functions->settings_.run_folder + folder, wrong);
        if (wrong) return container::cannot(wrong.value(), "make", functions->settings_.run_folder + folder);
    }
    // Before there is a namespace of a tenant: later the kernel refuses. Machines without RDMA have nothing to fence.
    if (!functions->rdma_.devices().empty() || functions->settings_.soft_roce || functions->settings_.must_fence) {
        auto system = rdma::RdmaSystem::open(*functions->host_);
        if (!system) return std::unexpected(system.error());
        if (auto ok = system->make_exclusive(); !ok) return std::unexpected(ok.error());
    }
    if (auto found = functions->find_all(); !found) return std::unexpected(found.error());
    return functions;
}

// Held until the end, which may be that of the process: whatever happens, it is let go.
Result<> Functions::lock_nics() {
    std::error_code wrong;
    fs::create_directories(settings_.locks, wrong);
    if (wrong) return container::cannot(wrong.value(), "make", settings_.locks);
    const auto until = std::chrono::steady_clock::now() + settings_.lock_patience;
    for (const TenantNic& nic : settings_.nics) {
        if (!rdma::is_pci_address(nic.address)) continue;  // it is refused when it is looked for
        const std::string path = fmt::format("{}/nic-{}.lock", settings_.locks, nic.address);
        auto lock = container::open_file(path, O_RDWR | O_CREAT | O_NOFOLLOW);
        if (!lock) return std::unexpected(lock.error());
        while (::flock(**lock, LOCK_EX | LOCK_NB) != 0) {
            if (errno != EINTR && errno != EWOULDBLOCK) return container::cannot("lock", path);
            if (std::chrono::steady_clock::now() >= until)
                return fail(Code::conflict,
                            fmt::format("another program on this host has the NIC {} for tenants", nic.address),
                            "stop the agent that has it, or wait until the selftest has ended");
            std::this_thread::sleep_for(std::chrono::milliseconds{20});
        }
        nic_locks_.push_back(std::move(*lock));
    }
    return {};
}

namespace {

Result<std::vector<std::string>> read_order(const std::string& path) {
    std::vector<std::string> addresses;
    if (std::error_code wrong; !fs::exists(path, wrong)) return addresses;
    const auto text = container::read_whole(path);
    if (!text) return std::unexpected(text.error());
    std::istringstream lines{*text};
    for (std::string address; lines >> address;) {
        if (!rdma::is_pci_address(address))
            return fail(Code::corrupt, fmt::format("{} says '{}'", path, address.substr(0, 40)),
                        "drain the node and remove the file: functions are then numbered by their addresses");
        addresses.push_back(std::move(address));
    }
    return addresses;
}

}  // namespace

std::vector<NodeFunction> Functions::remembered(const std::string& order) {
    std::vector<NodeFunction> all;
    if (auto addresses = read_order(order)) {
        all.resize(addresses->size());
        for (std::size_t i = 0; i < all.size(); ++i) all[i].address = std::move((*addresses)[i]);
    }
    return all;
}

// Leases and what is clean are known by a function's number: it is the same at every start, whatever else comes or
// goes.
Result<> Functions::keep_order() {
    if (settings_.order.empty()) return {};
    const auto before = read_order(settings_.order);
    if (!before) return std::unexpected(before.error());
    std::vector<Known> ordered;
    ordered.reserve(before->size() + known_.size());
    for (const std::string& address : *before) {
        const auto at = std::ranges::find(known_, address, &Known::address);
        if (at != known_.end()) {
            ordered.push_back(*at);
        } else {
            ordered.emplace_back();
            ordered.back().address = address;
            ordered.back().is_gone = true;
        }
    }
    for (const Known& one : known_)
        if (std::ranges::find(ordered, one.address, &Known::address) == ordered.end()) ordered.push_back(one);
    known_ = std::move(ordered);
    if (known_.size() == before->size()) return {};
    std::string text;
    for (const Known& one : known_) text += one.address + "\n";
    return container::write_durably(settings_.order, text);
}

Result<> Functions::find_all() {
    auto links = rdma::Links::open(*host_);
    if (!links) return std::unexpected(links.error());
    for (const TenantNic& nic : settings_.nics) {
        if (nic.count != 0)
            if (auto ok = pci_.make_functions(nic.address, nic.count); !ok) return ok;
        const auto physical = pci_.physical(nic.address);
        if (!physical) return std::unexpected(physical.error());
        const auto device = pci_.net_device(nic.address);
        if (!device) return std::unexpected(device.error());
        if (!*device)
            return fail(Code::unavailable,
                        fmt::format("{} has no network link: its driver is '{}'", nic.address, physical->driver),
                        "load its driver, and see that nothing moved it to another namespace");
        const auto link = links->link((*device)->index);
        if (!link) return std::unexpected(link.error());
        // Its functions have no link without its own.
        if (auto ok = links->raise((*device)->index); !ok) return ok;
        for (const rdma::VirtualFunction& function : physical->functions)
            known_.push_back({function.address, nic.address, rdma::PciTree::driver_of_functions(physical->driver),
                              function.number, (*device)->index, rdma::print(link->mac), (*device)->name,
                              fmt::format("{}:{}", physical->vendor, physical->device), physical->is_emulated(),
                              pci_.numa_node(function.address), pci_.bridges(function.address),
                              pci_.speed_mbps((*device)->name)});
    }
    std::ranges::sort(known_, {}, &Known::address);
    return keep_order();
}

std::vector<NodeFunction> Functions::inventory() const {
    std::vector<NodeFunction> all;
    all.reserve(known_.size());
    for (const Known& one : known_)
        all.push_back({.address = one.address,
                       .lease = {},
                       .device = {},  // it has one, and a link, when it is somebody's
                       .netdev = {},
                       .physical = one.physical,
                       .guid = {},
                       .numaNode = one.numa_node,
                       .bridges = one.bridges,
                       .speedMbps = one.speed_mbps});
    return all;
}

bool Functions::have_rdma() const {
    if (known_.empty()) return false;
    return settings_.soft_roce || std::ranges::all_of(known_, [&](const Known& one) {
               return one.is_gone || !pci_.rdma_devices(one.physical).empty();
           });
}

Grade Functions::grade(std::uint16_t function) const {
    const auto found = known(function);
    return found && !(*found)->is_emulated ? Grade::silicon : Grade::emulated;
}

Result<const Functions::Known*> Functions::known(std::uint16_t function) const {
    if (function < known_.size() && !known_[function].is_gone) return &known_[function];
    if (function < known_.size())
        return fail(Code::not_found,
                    fmt::format("function {} was {}, which is not among this node's functions any more", function,
                                known_[function].address),
                    "see --tenant-nic on the agent's command line, and sriov_numvfs of the NIC");
    return fail(Code::not_found,
                fmt::format("this node has {} virtual functions and none of number {}", known_.size(), function),
                "see --tenant-nic on the agent's command line");
}

Result<> Functions::check_free(std::uint16_t function) const {
    const auto found = known(function);
    if (!found) return std::unexpected(found.error());
    const std::string& address = (*found)->address;
    const std::string driver = pci_.driver(address);
    if (driver.empty()) return {};
    // A record of ours may be older than whoever has the function now: it is ours if it is dressed as the record says.
    if (const auto text = container::read_whole(record_path(address))) {
        const auto record = read_function_record(*text);
        auto links = rdma::Links::open(*host_);
        if (!links) return std::unexpected(links.error());
        const auto seen = links->function({(*found)->physical_link, (*found)->number});
        if (record && seen && rdma::parse_mac(record->mac) && *rdma::parse_mac(record->mac) == seen->mac) return {};
    }
    return fail(Code::conflict, fmt::format("{} has the driver {}: somebody may be using it", address, driver),
                fmt::format("drain the node and take the driver away: echo {} > {}/bus/pci/drivers/{}/unbind", address,
                            settings_.sys, driver));
}

std::string Functions::space_of(Key lease) const { return fmt::format("{}/net/lease-{}", settings_.run_folder, lease); }

std::string Functions::record_path(const std::string& address) const {
    return settings_.run_folder + "/functions/" + address;
}

std::vector<FunctionRecord> Functions::records() const {
    std::vector<FunctionRecord> all;
    for (const Known& one : known_)
        if (const auto text = container::read_whole(record_path(one.address)))
            if (auto record = read_function_record(*text)) all.push_back(std::move(*record));
    return all;
}

Result<> Functions::attach(Key lease, const std::string& tenant, const FabricPort& port, FabricFence fence) {
    const auto lock = lock_for(port.function);
    const auto found = known(port.function);
    if (!found) return std::unexpected(found.error());
    const Known& one = **found;
    if (port.address.empty())
        return fail(Code::invalid,
                    fmt::format("{} would be nobody on the fabric: the fleet declares none", one.address),
                    "declare spec.fabric in the FleetPolicy; without it an agent hands out no function of a real NIC");
    const FunctionRecord record = record_for(lease, tenant, one.address, port);
    if (auto plan = plan_of(record); !plan) return std::unexpected(plan.error());
    for (const FunctionRecord& other : records()) {
        if (other.device == one.address && other.function != port.function)
            return fail(Code::conflict,
                        fmt::format("{} was attached as function {} and is function {} now", one.address,
                                    other.function, port.function),
                        "restart the node: what runs there goes by the number it had");
        if (other.device == one.address && other.lease != lease)
            // Whose is not for whoever reads why its own work did not start.
            return fail(Code::conflict, fmt::format("{} is still attached to another lease", one.address),
                        "detach it first");
        if (other.device != one.address && other.lease == lease && other.tenant != tenant)
            return fail(Code::conflict, fmt::format("lease {} has a function of another tenant", lease), "report this");
    }
    if (auto written = container::write_durably(record_path(one.address), function_record_text(record)); !written)
        return written;
    auto attached = attach_locked(one, record, fence);
    // A function that is half attached is nobody's; what this cannot undo either, the next detach finds by its record.
    if (!attached) (void)detach_locked(one);
    return attached;
}

Result<> Functions::attach_locked(const Known& one, const FunctionRecord& given, FabricFence fence) {
    FunctionRecord record = given;
    auto plan = plan_of(record);
    if (!plan) return std::unexpected(plan.error());
    if (fence == FabricFence::off) {
        plan->setting.spoof_check = false;
        plan->setting.trust = true;
        plan->setting.tag = {};
    }
    // Without a driver first: what the tenant's driver reads when it comes is what was set.
    if (auto ok = pci_.unbind(one.address); !ok) return ok;
    auto links = rdma::Links::open(*host_);
    if (!links) return std::unexpected(links.error());
    if (auto ok = links->set_function({one.physical_link, one.number}, plan->setting); !ok) return ok;
    const auto space = rdma::Space::make_named(space_of(record.lease));
    if (!space) return std::unexpected(space.error());
    if (auto ok = space->show_sysfs(sysfs_of(record.lease)); !ok) return ok;
    if (auto ok = pci_.bind(one.address, one.driver); !ok) return ok;
    if (auto ok = give_link(one, record, *space); !ok) return ok;
    if (auto ok = give_rdma(one, record, *space); !ok) return ok;
    return dress(record, *space, fence);
}

Result<> Functions::give_link(const Known& one, const FunctionRecord& record, const rdma::Space& space) {
    const auto device = wait_for(settings_.follow_patience, [&] { return pci_.net_device(one.address); });
    if (!device) return std::unexpected(device.error());
    if (!*device)
        return fail(Code::timeout, fmt::format("{} has the driver {} and no network link", one.address, one.driver),
                    "see dmesg");
    auto links = rdma::Links::open(*host_);
    if (!links) return std::unexpected(links.error());
    if (auto ok = links->raise((*device)->index, false); !ok) return ok;
    return links->move((*device)->index, space, link_name(record));
}

Result<> Functions::give_rdma(const Known& one, FunctionRecord& record, const rdma::Space& space) {
    std::vector<std::string> names = pci_.rdma_devices(one.address);
    if (!settings_.soft_roce && !pci_.rdma_devices(one.physical).empty()) {  // its own comes a moment after its driver
        const auto came = wait_for(settings_.follow_patience, [&]() -> Result<std::optional<bool>> {
            names = pci_.rdma_devices(one.address);
            return names.empty() ? std::nullopt : std::optional{true};
        });
        if (!came) return std::unexpected(came.error());
        if (names.empty())
            return fail(Code::timeout,
                        fmt::format("{} has the driver {} and no RDMA device, though {} has one", one.address,
                                    one.driver, one.physical),
                        "see dmesg");
    }
    if (names.empty() && !settings_.soft_roce) return {};
    auto theirs = rdma::RdmaSystem::open(space);
    if (!theirs) return std::unexpected(theirs.error());
    std::function<std::string()> name_now = [&] {  // udev may be about to call it otherwise
        const auto now = pci_.rdma_devices(one.address);
        return now.empty() ? std::string{} : now.front();
    };
    if (settings_.soft_roce) {
        // On its link, where that is now; the device itself is the host's until it is moved, too.
        const std::string ours = fmt::format("soft{}", record.function);
        if (auto ok = theirs->add_soft_roce(ours, link_name(record)); !ok) return ok;
        name_now = [&record] { return fmt::format("soft{}", record.function); };
    }
    const auto moved = move_rdma(one, name_now, *theirs);
    if (!moved) return std::unexpected(moved.error());
    return keep_rdma(one, record, moved->index, *theirs);
}

// What it is called in the end, and the file of it, which is another than it was: whoever moves it takes it away from
// everybody, and makes it anew. One that has another name by the time that its file is looked for is looked for again.
Result<> Functions::keep_rdma(const Known& one, FunctionRecord& record, std::uint32_t index, rdma::RdmaSystem& theirs) {
    for (;;) {
        const auto now = theirs.device(index);
        if (!now) return std::unexpected(now.error());
        if (!*now)
            return fail(Code::not_found,
                        fmt::format("the RDMA device of {} is no longer in its tenant's namespace", one.address),
                        "see dmesg");
        const auto verbs = rdma::RdmaTree{sysfs_of(record.lease)}.verbs((*now)->name);
        if (!verbs && record.rdma == (*now)->name) return std::unexpected(verbs.error());
        record.rdma = (*now)->name;
        if (!verbs) continue;
        record.verbs = verbs->path;
        record.verbs_major = verbs->major;
        record.verbs_minor = verbs->minor;
        return container::write_durably(record_path(one.address), function_record_text(record));
    }
}

Result<rdma::RdmaDevice> Functions::move_rdma(const Known& one, const std::function<std::string()>& name_now,
                                              rdma::RdmaSystem& theirs) {
    auto system = rdma::RdmaSystem::open(*host_);
    if (!system) return std::unexpected(system.error());
    std::string name;
    bool is_there = false;  // some drivers make it in the namespace of its link
    const auto found = wait_for(settings_.follow_patience, [&]() -> Result<std::optional<rdma::RdmaDevice>> {
        if (std::string now = name_now(); !now.empty()) name = std::move(now);
        auto here = system->find(name_now);
        if (!here || *here) return here;
        auto there = theirs.find(name_now);
        is_there = there && *there;
        return there;
    });
    if (!found) return std::unexpected(found.error());
    if (!*found)
        return fail(Code::not_found, fmt::format("the RDMA device {} of {} is in neither namespace", name, one.address),
                    "see `rdma dev`");
    if (is_there) return **found;
    return system->move(**found, theirs);
}

Result<> Functions::dress(const FunctionRecord& record, const rdma::Space& space, FabricFence fence) {
    const auto plan = plan_of(record);
    if (!plan) return std::unexpected(plan.error());
    auto links = rdma::Links::open(space);
    if (!links) return std::unexpected(links.error());
    const auto loopback = links->link("lo");
    if (!loopback) return std::unexpected(loopback.error());
    if (auto ok = links->raise(loopback->index); !ok) return ok;
    const auto link = links->link(link_name(record));
    if (!link) return std::unexpected(link.error());
    // The guard before the link: nothing leaves unguarded. InfiniBand has no frames for it.
    if (fence == FabricFence::on && !plan->is_infiniband)
        if (auto ok = nft_.load(space, {.table = guard_name(record.function),
                                        .device = link->name,
                                        .at = rdma::GuardAt::tenants_end,
                                        .mac = plan->setting.mac,
                                        .address = plan->address,
                                        .subnet = plan->subnet,
                                        .dscp = static_cast<std::uint8_t>(record.dscp)});
            !ok)
            return ok;
    if (!plan->is_infiniband && link->mac != plan->setting.mac)
        return fail(Code::unavailable,
                    fmt::format("{} came up as {}, not as {}", record.device, rdma::print(link->mac), record.mac),
                    "its driver did not take the MAC that was set: see dmesg");
    if (auto ok = links->add(link->index, plan->address); !ok) return ok;
    if (auto ok = links->raise(link->index); !ok) return ok;
    if (record.rdma.empty() || plan->is_infiniband) return {};
    const auto row = wait_for(settings_.follow_patience, [&]() -> Result<std::optional<std::uint32_t>> {
        const auto ports = rdma::RdmaTree{sysfs_of(record.lease)}.ports(record.rdma);
        if (!ports) return std::unexpected(ports.error());
        return ports->empty() ? std::nullopt : rdma::row_of(ports->front(), plan->address.gid());
    });
    if (!row) return std::unexpected(row.error());
    if (!*row)
        return fail(Code::timeout, fmt::format("{} has no GID of {}", record.rdma, record.address),
                    "see that its link is up");
    return {};
}

Result<> Functions::detach(std::uint16_t function) {
    const auto lock = lock_for(function);
    const auto found = known(function);
    if (!found && function >= known_.size()) return std::unexpected(found.error());
    const Known& one = known_[function];
    if (!found && pci_.has(one.address)) return std::unexpected(found.error());  // there, and not ours to touch
    if (const auto text = container::read_whole(record_path(one.address)))
        if (const auto record = read_function_record(*text); record && record->function != function)
            return fail(Code::conflict,
                        fmt::format("{} was attached as function {} and is function {} now", one.address,
                                    record->function, function),
                        "restart the node: what runs there goes by the number it had");
    return detach_locked(one);
}

Result<> Functions::make_nobodys(const Known& one) {
    auto links = rdma::Links::open(*host_);
    if (!links) return std::unexpected(links.error());
    return links->set_function({one.physical_link, one.number}, rdma::nobodys());
}

Result<> Functions::detach_locked(const Known& one) {
    // Link and RDMA device go with the driver, wherever they are, and so does every address.
    if (!one.is_gone) {
        if (auto ok = pci_.unbind(one.address); !ok) return ok;
        if (auto ok = make_nobodys(one); !ok) return ok;
    }
    const auto text = container::read_whole(record_path(one.address));
    if (!text) return {};
    const auto record = read_function_record(*text);
    if (!record) return std::unexpected(record.error());
    if (auto gone = see_rdma_gone(*record); !gone) return gone;
    const auto all = records();
    const bool is_last = std::ranges::none_of(
        all, [&](const FunctionRecord& other) { return other.lease == record->lease && other.device != one.address; });
    if (is_last) {
        if (auto ok = rdma::Space::hide_sysfs(sysfs_of(record->lease)); !ok) return ok;
        if (auto ok = rdma::Space::remove_named(space_of(record->lease)); !ok) return ok;
    }
    // Kept under another name: what to look for when it is verified that nothing is left.
    const std::string path = record_path(one.address);
    if (::rename(path.c_str(), (path + std::string{last_ending}).c_str()) != 0)
        return container::cannot("rename", path);
    return {};
}

// Some drivers take it away after they have said that they let go, and it would go home to the host with its namespace.
Result<> Functions::see_rdma_gone(const FunctionRecord& record) {
    if (record.rdma.empty()) return {};
    const auto gone = wait_for(settings_.follow_patience, [&]() -> Result<std::optional<bool>> {
        for (const rdma::RdmaTree& tree : {rdma_, rdma::RdmaTree{sysfs_of(record.lease)}}) {
            const auto devices = tree.devices();
            if (std::ranges::find(devices, record.rdma) != devices.end()) return std::nullopt;
        }
        return true;
    });
    if (!gone) return std::unexpected(gone.error());
    if (*gone) return {};
    return fail(
        Code::timeout,
        fmt::format("{} has no driver any more, and its RDMA device {} is still there", record.device, record.rdma),
        "see who has it open: `rdma res show`, and dmesg");
}

OperationResult Functions::wipe(std::uint16_t function) {
    const auto lock = lock_for(function);
    const auto failed = [](const Error& error) { return OperationResult{.why = error.what + "; " + error.remedy}; };
    const auto found = known(function);
    if (!found) return failed(found.error());
    const Known& one = **found;
    if (auto ok = detach_locked(one); !ok) return failed(ok.error());
    const auto was_reset = pci_.reset(one.address);
    if (!was_reset) return failed(was_reset.error());
    if (auto ok = make_nobodys(one); !ok) return failed(ok.error());
    OperationResult result{.ok = true};
    result.device_identity = fmt::format("{} of {}", one.address, one.physical_mac);
    result.model = one.model;
    result.driver = one.driver;
    result.method = *was_reset ? "vf-reset" : "vf-unbind";
    result.grade = one.is_emulated ? Grade::emulated : Grade::silicon;
    return result;
}

OperationResult Functions::verify(std::uint16_t function) {
    const auto lock = lock_for(function);
    const auto found = known(function);
    if (!found) return {.why = found.error().what};
    const Known& one = **found;
    const std::vector<std::string> left = residue_of(one);
    OperationResult result{.ok = left.empty(), .why = fmt::format("{}", fmt::join(left, "; "))};
    result.grade = one.is_emulated ? Grade::emulated : Grade::silicon;
    result.device_identity = fmt::format("{} of {}", one.address, one.physical_mac);
    result.model = one.model;
    result.driver = one.driver;
    result.method = "vf-reset";
    result.bytes_residue = static_cast<std::int64_t>(left.size());
    return result;
}

Result<std::vector<AttachedPort>> Functions::ports_of(Key lease) {
    const std::scoped_lock lock{mutex_};
    std::vector<AttachedPort> ports;
    for (const FunctionRecord& record : records()) {
        if (record.lease != lease) continue;
        AttachedPort port{
            .function = static_cast<std::uint16_t>(record.function), .link = link_name(record), .rdma = record.rdma};
        if (!record.rdma.empty()) {
            port.verbs = {record.verbs, static_cast<std::uint32_t>(record.verbs_major),
                          static_cast<std::uint32_t>(record.verbs_minor)};
            const auto plan = plan_of(record);
            if (!plan) return std::unexpected(plan.error());
            const auto seen = rdma::RdmaTree{sysfs_of(lease)}.ports(record.rdma);
            if (!seen) return std::unexpected(seen.error());
            if (!seen->empty()) {
                port.rdma_port = seen->front().number;
                port.gid_index = seen->front().is_infiniband ? std::optional<std::uint32_t>{0}
                                                             : rdma::row_of(seen->front(), plan->address.gid());
            }
        }
        ports.push_back(std::move(port));
    }
    return ports;
}

}  // namespace bulkhead::agent
