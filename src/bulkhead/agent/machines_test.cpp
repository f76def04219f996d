#include "bulkhead/agent/machines.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <regex>
#include <set>
#include <thread>

#include "bulkhead/agent/machine_domain.hpp"
#include "bulkhead/agent/machine_order_test.hpp"
#include "bulkhead/hw/vm/embedded_test.hpp"
#include "bulkhead/hw/vm/presence.hpp"
#include "bulkhead/hw/vm/sysfs_tree_test.hpp"

namespace bulkhead::agent {

namespace {

bool before_long(const std::function<bool()>& holds) {
    for (const auto until = std::chrono::steady_clock::now() + std::chrono::minutes{4};
         std::chrono::steady_clock::now() < until;) {
        if (holds()) return true;
        std::this_thread::sleep_for(std::chrono::milliseconds{50});
    }
    return false;
}

// No other test on this computer has machines of these names, and none of ours is left when a test ends early.
class OwnMachines {
public:
    ~OwnMachines() {
        for (const Key lease : {first(), second()})
            if (const auto left = vm::presence_of(machine_name(lease)))
                for (const pid_t process : left->processes) ::kill(process, SIGKILL);
    }
    static Key first() { return key_of(::getpid(), 7); }
    static Key second() { return key_of(::getpid(), 8); }
};

GpuNodeStatus small_node() {
    GpuNodeStatus node;
    node.gpus = {{.model = "h100-80gb-sxm5", .count = 1}};
    node.topology = {{.gpu = 0, .bus = "0000:3b:00.0"}};
    node.cpu = 2;
    node.memory = {std::int64_t{4} << 30};
    return node;
}

// A block device of the computer's own that stands for a namespace: a file behind the kernel's loop driver.
class LoopDrive {
public:
    explicit LoopDrive(const std::string& file) {
        const int control = ::open("/dev/loop-control", O_RDWR | O_CLOEXEC);
        const int number = control < 0 ? -1 : ::ioctl(control, LOOP_CTL_GET_FREE);
        if (control >= 0) ::close(control);
        if (number < 0) return;
        device_ = ::open(fmt::format("/dev/loop{}", number).c_str(), O_RDWR | O_CLOEXEC);
        const int backing = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        struct stat found{};
        if (device_ >= 0 && ::ftruncate(backing, 16 << 20) == 0 && ::ioctl(device_, LOOP_SET_FD, backing) == 0 &&
            ::fstat(device_, &found) == 0)
            number_ = found.st_rdev;
        if (backing >= 0) ::close(backing);
    }
    ~LoopDrive() {
        if (number_ != 0) ::ioctl(device_, LOOP_CLR_FD, 0);
        if (device_ >= 0) ::close(device_);
    }
    LoopDrive(const LoopDrive&) = delete;
    LoopDrive& operator=(const LoopDrive&) = delete;
    bool is_there() const { return number_ != 0; }
    LentNamespace lent() const {
        return {.drive = 0, .serial = "LOOP-0", .nsid = 1, .major = major(number_), .minor = minor(number_)};
    }

private:
    int device_ = -1;
    dev_t number_ = 0;
};

struct Seen {  // of a machine's process
    std::set<uid_t> users;
    std::set<uid_t> owners;  // of its files
};
Seen seen_of(Key lease, const std::filesystem::path& folder) {
    Seen seen;
    struct stat found{};
    if (const auto there = vm::presence_of(machine_name(lease)))
        for (const pid_t process : there->processes)
            if (::stat(fmt::format("/proc/{}", process).c_str(), &found) == 0) seen.users.insert(found.st_uid);
    for (const char* file : {"kernel", "initrd", "seed"})
        if (::stat((folder / file).c_str(), &found) == 0) seen.owners.insert(found.st_uid);
    return seen;
}

}  // namespace

TEST(Machines, without_libvirt_there_are_none_and_why_is_said) {
    const auto none = Machines::open({.uri = "qemu:///system", .library = "libbulkhead-has-no-such.so.0"});
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().code, Code::unavailable);
}

TEST(Machines, are_no_users_that_the_host_has_accounts_for) {
    const auto refused = Machines::open({.uri = "qemu:///system", .first_user = 1000});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::invalid) << refused.error().what;
}

TEST(Machines, a_name_is_short_enough_for_libvirt_whatever_the_lease) {
    EXPECT_EQ(machine_name(key_of(epoch_max, (std::int64_t{1} << 32) - 1)), "bh-7fffffffffffffff");
    EXPECT_LT(machine_name(std::numeric_limits<Key>::max()).size(), 20U);
}

TEST(Machines, the_image_is_the_one_that_the_control_plane_names) {
    EXPECT_EQ(image_of({.environment = {"A=1", "BULKHEAD_IMAGE=trainer"}}), "trainer");
    EXPECT_EQ(image_of({}), "default");
}

TEST(Machines, the_guest_is_told_who_each_of_its_functions_is_and_nothing_of_the_hosts_names) {
    StartTenant order = machine_order(9, {"true"});
    EXPECT_TRUE(guest_fabric(order).empty()) << "it has none";
    order.functions = {2, 5};
    order.ports = {{.function = 2,
                    .mac = "02:42:0a:80:10:05",
                    .address = "10.128.16.5/20",
                    .subnet = "10.128.16.0/20",
                    .dscp = 26},
                   {.function = 5,
                    .mac = "02:42:0a:80:10:06",
                    .address = "10.128.16.6/20",
                    .subnet = "10.128.16.0/20",
                    .dscp = 26}};
    EXPECT_EQ(
        guest_fabric(order),
        (std::vector<std::string>{"NCCL_IB_ADDR_FAMILY=AF_INET", "NCCL_IB_ADDR_RANGE=10.128.16.0/20",
                                  "NCCL_IB_MERGE_VFS=0", "NCCL_IB_ROCE_VERSION_NUM=2", "NCCL_IB_TC=104",
                                  "BULKHEAD_PORTS=02:42:0a:80:10:05=10.128.16.5/20,02:42:0a:80:10:06=10.128.16.6/20"}));
    order.ports = {{.function = 2, .address = "10.128.16.5/20", .port_guid = "02:00:00:00:00:00:10:06"}};
    EXPECT_EQ(guest_fabric(order), (std::vector<std::string>{"NCCL_IB_MERGE_VFS=0",
                                                             "BULKHEAD_PORTS=02:00:00:00:00:00:10:06=10.128.16.5/20"}))
        << "on InfiniBand there is no row of an address";
}

TEST(Machines, a_tenants_own_kernel_boots_prints_is_stopped_and_leaves_nothing) {
    vm::Embedded here;
    const OwnMachines own;
    if (const auto why = here.prepare()) GTEST_SKIP() << *why;
    const MachineSettings settings{.uri = here.uri(),
                                   .images = vm::Embedded::images(),
                                   .folder = here.folder() / "machines",
                                   .allow_emulated = true,
                                   .look_every = Duration{100}};
    MachineSettings strict = settings;
    strict.allow_emulated = false;
    const auto refused = Machines::open(strict);
    if (!refused && refused.error().what.find("no KVM") == std::string::npos) GTEST_SKIP() << refused.error().what;
    EXPECT_FALSE(refused) << "software alone is not what a vm tier means, unless somebody says so";
    auto machines = Machines::open(settings);
    ASSERT_TRUE(machines) << machines.error().what;
    EXPECT_TRUE((*machines)->are_emulated());

    // One that ends by itself; then one that stays. Two at once are too much for two cores that do it all by software.
    const auto start = [&](const StartTenant& what) {
        const auto started = (*machines)->start(what, small_node(), {});
        ASSERT_TRUE(started) << started.error().what;
        EXPECT_TRUE((*machines)->start(what, small_node(), {})) << "again is fine";
    };
    const StartTenant ends =
        machine_order(own.first(), {"sh", "-c", "echo \"hello from $WHO on $(uname -s)\"; exit 3"});
    start(ends);
    const std::set<uid_t> alone{settings.first_user}, next_one{settings.first_user + 1};
    const auto machine_folder = [&](Key lease) { return here.folder() / "machines" / machine_name(lease); };
    const Seen ended = seen_of(own.first(), machine_folder(own.first()));
    EXPECT_EQ(ended.users, alone);
    EXPECT_EQ(ended.owners, alone) << "its files are its user's, who can open nobody else's";
    std::vector<TenantExit> exits;
    EXPECT_TRUE(before_long([&] {
        for (TenantExit& exit : (*machines)->exits()) exits.push_back(std::move(exit));
        return !exits.empty();
    }));
    ASSERT_EQ(exits.size(), 1U);
    EXPECT_EQ(exits.front().lease, own.first());
    EXPECT_EQ(exits.front().status, 3);
    EXPECT_NE(exits.front().output.find("hello from acme on Linux"), std::string::npos) << exits.front().output;
    start(machine_order(own.second(), {"sh", "-c", "echo I stay; while :; do sleep 100; done"}));
    const auto output = [&](Key lease) { return (*machines)->output({.lease = lease}).value_or(OutputPiece{}).bytes; };
    EXPECT_TRUE(before_long([&] { return output(own.second()).contains("I stay") || !(*machines)->exits().empty(); }));
    EXPECT_TRUE(output(own.second()).contains("I stay")) << output(own.second());
    const Seen stays = seen_of(own.second(), machine_folder(own.second()));
    EXPECT_EQ(stays.users, next_one);
    EXPECT_EQ(stays.owners, next_one);

    // A new agent finds what there is.
    machines->reset();
    auto next = Machines::open(settings);
    ASSERT_TRUE(next) << next.error().what;
    EXPECT_EQ(*(*next)->leases(), (std::vector<Key>{own.first(), own.second()}));
    for (const Key lease : {own.first(), own.second()}) {
        const auto stopped = (*next)->stop(lease, Duration{200});
        ASSERT_TRUE(stopped) << stopped.error().what;
        EXPECT_NE(stopped->find("bytes of its files overwritten"), std::string::npos) << *stopped;
        EXPECT_FALSE(vm::presence_of(machine_name(lease))->any());
        EXPECT_FALSE((*next)->has(lease));
        EXPECT_TRUE((*next)->stop(lease, Duration{0})) << "again is fine";
    }
    EXPECT_EQ((*next)->output({.lease = own.second()}).error().code, Code::not_found);
    const auto nowhere = (*next)->start(
        [&] {
            StartTenant what = ends;
            what.program.environment = {"BULKHEAD_IMAGE=other"};
            return what;
        }(),
        small_node(), {});
    ASSERT_FALSE(nowhere);
    EXPECT_NE(nowhere.error().what.find("admits no image \"other\""), std::string::npos) << nowhere.error().what;
}

// The agent before was killed between giving it everything and letting it run. Nobody takes its end for the tenant's.
TEST(Machines, one_that_was_begun_and_never_ran_is_begun_anew_and_did_not_end) {
    vm::Embedded here;
    const OwnMachines own;
    if (const auto why = here.prepare()) GTEST_SKIP() << *why;
    const MachineSettings settings{.uri = here.uri(),
                                   .images = vm::Embedded::images(),
                                   .folder = here.folder() / "machines",
                                   .allow_emulated = true,
                                   .look_every = Duration{0}};
    const StartTenant order = machine_order(own.first(), {"sh", "-c", "while :; do sleep 100; done"});
    std::string xml;
    {
        auto killed = Machines::open(settings);
        if (!killed) GTEST_SKIP() << killed.error().what;
        const auto started = (*killed)->start(order, small_node(), {});
        ASSERT_TRUE(started) << started.error().what;
        std::ifstream file{(*killed)->records().folder_of(own.first()).domain()};
        xml.assign(std::istreambuf_iterator<char>{file}, {});
    }
    auto hypervisor = vm::Hypervisor::open({.uri = here.uri()});
    ASSERT_TRUE(hypervisor) << hypervisor.error().what;
    ASSERT_TRUE(hypervisor->destroy(machine_name(own.first())));
    ASSERT_TRUE(before_long([&] { return !vm::presence_of(machine_name(own.first()))->any(); }));
    const auto paused = hypervisor->start_paused(xml);
    ASSERT_TRUE(paused) << paused.error().what;
    ASSERT_EQ(*hypervisor->look(machine_name(own.first())), vm::MachineState::paused);

    auto machines = Machines::open(settings);
    ASSERT_TRUE(machines) << machines.error().what;
    const auto started = (*machines)->start(order, small_node(), {});
    ASSERT_TRUE(started) << started.error().what;
    EXPECT_EQ(*hypervisor->look(machine_name(own.first())), vm::MachineState::running);
    EXPECT_TRUE((*machines)->exits().empty()) << "it runs";
    // And when it does end, that is told.
    ASSERT_TRUE(hypervisor->destroy(machine_name(own.first())));
    EXPECT_TRUE(before_long([&] { return !(*machines)->exits().empty(); }));
    EXPECT_TRUE((*machines)->stop(own.first(), Duration{0}));
}

TEST(Machines, have_kvm_as_users_of_their_own_where_anybody_may_open_it_and_are_not_begun_elsewhere) {
    vm::Embedded here;
    const OwnMachines own;
    if (const auto why = here.prepare(vm::Embedded::Kvm::shown)) GTEST_SKIP() << *why;
    auto machines = Machines::open({.uri = here.uri(),
                                    .images = vm::Embedded::images(),
                                    .folder = here.folder() / "machines",
                                    .huge_page_kib = 0,
                                    .look_every = Duration{100}});
    if (!machines && machines.error().what.contains("no KVM")) GTEST_SKIP() << "libvirt looked before KVM was shown";
    ASSERT_TRUE(machines) << machines.error().what;
    EXPECT_FALSE((*machines)->are_emulated());
    const StartTenant order = machine_order(own.first(), {"sleep", "1000"});
    ASSERT_EQ(::chmod(here.own_kvm().c_str(), 0660), 0);  // as Debian has it
    const auto refused = (*machines)->start(order, small_node(), {});
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().what.find("has mode 0660"), std::string::npos) << refused.error().what;
    EXPECT_FALSE((*machines)->has(own.first()));
    ASSERT_EQ(::chmod(here.own_kvm().c_str(), 0666), 0);  // as systemd has it
    auto started = (*machines)->start(order, small_node(), {});
    const vm::MachineFolder folder = (*machines)->records().folder_of(own.first());
    if (!started && started.error().what.contains("cannot limit locked memory")) {  // in a container: the same without
        std::ifstream file{folder.domain()};
        std::string xml{std::istreambuf_iterator<char>{file}, {}};
        xml = std::regex_replace(xml, std::regex{"<locked */>|<locked>\\s*</locked>"}, "");
        started = vm::Hypervisor::open({.uri = here.uri()})->start(xml);
    }
    ASSERT_TRUE(started) << started.error().what;
    // QEMU has the device open by now. Its kernel is not waited for: KVM inside a machine may take minutes for it.
    EXPECT_EQ(seen_of(own.first(), folder.path).users, std::set<uid_t>{900'000});
    EXPECT_TRUE((*machines)->stop(own.first(), Duration{0}));
}

TEST(Machines, a_drive_is_a_disk_of_the_machine_by_a_node_of_its_own_and_what_the_guest_writes_is_on_it) {
    vm::Embedded here;
    const OwnMachines own;
    if (const auto why = here.prepare()) GTEST_SKIP() << *why;
    const std::string file = here.folder() / "drive.img";
    const LoopDrive loop{file};
    if (!loop.is_there()) GTEST_SKIP() << "this computer gives no loop device";
    const MachineSettings settings{.uri = here.uri(),
                                   .images = vm::Embedded::images(),
                                   .folder = here.folder() / "machines",
                                   .allow_emulated = true,
                                   .nodes = fmt::format("/dev/bulkhead-test-{}", ::getpid()),
                                   .look_every = Duration{100}};
    struct Nodes {
        const std::string& path;
        ~Nodes() { std::filesystem::remove_all(path); }
    } const nodes{settings.nodes};
    auto machines = Machines::open(settings);
    if (!machines) GTEST_SKIP() << machines.error().what;
    StartTenant order = machine_order(own.first(), {"sh", "-c",
                                                    "echo \"drives $BULKHEAD_DRIVES\"; printf tenant-secret | dd "
                                                    "of=$BULKHEAD_DRIVES bs=512 seek=8 conv=sync,fsync; exit 4"});
    order.drives = {0};

    // One that is another by the time the machine has it open: it is gone before it ran.
    int asked = 0;
    const auto swapped =
        (*machines)->start(order, small_node(), {.drives = [&]() -> Result<std::vector<LentNamespace>> {
                               LentNamespace one = loop.lent();
                               if (asked++ > 0) one.serial = "LOOP-1";
                               return std::vector{one};
                           }});
    ASSERT_FALSE(swapped);
    EXPECT_EQ(swapped.error().code, Code::conflict) << swapped.error().what;
    EXPECT_EQ(asked, 2);
    EXPECT_TRUE(before_long([&] { return !vm::presence_of(machine_name(own.first()))->any(); }));
    EXPECT_EQ((*machines)->output({.lease = own.first()})->bytes, "") << "it never ran";
    ASSERT_TRUE((*machines)->stop(own.first(), Duration{0}));

    const auto started = (*machines)->start(
        order, small_node(),
        {.drives = [&]() -> Result<std::vector<LentNamespace>> { return std::vector{loop.lent()}; }});
    ASSERT_TRUE(started) << started.error().what;
    struct stat node{};
    ASSERT_EQ(::stat((settings.nodes + "/" + machine_name(own.first()) + "/drive0n1").c_str(), &node), 0);
    EXPECT_EQ(node.st_uid, settings.first_user);
    EXPECT_EQ(node.st_rdev, ::makedev(loop.lent().major, loop.lent().minor));
    ::stat(fmt::format("/dev/loop{}", loop.lent().minor).c_str(), &node);
    EXPECT_EQ(node.st_uid, 0U) << "the host's own node is the host's";
    std::vector<TenantExit> exits;
    EXPECT_TRUE(before_long([&] {
        for (TenantExit& exit : (*machines)->exits()) exits.push_back(std::move(exit));
        return !exits.empty();
    }));
    ASSERT_EQ(exits.size(), 1U);
    EXPECT_EQ(exits.front().status, 4) << exits.front().output;
    EXPECT_NE(exits.front().output.find("drives /dev/disk/by-id/virtio-LOOP-0"), std::string::npos)
        << exits.front().output;
    ASSERT_TRUE((*machines)->stop(own.first(), Duration{0}));
    EXPECT_FALSE(std::filesystem::exists(settings.nodes + "/" + machine_name(own.first())));
    std::ifstream written{file, std::ios::binary};
    written.seekg(8 * 512);
    std::string marker(13, '\0');
    written.read(marker.data(), std::ssize(marker));
    EXPECT_EQ(marker, "tenant-secret");
}

// On a host without IOMMU groups, or one where there is no such device, nothing is started and nothing is left.
TEST(Machines, a_device_that_cannot_be_given_stops_the_start_and_what_was_begun_is_taken_apart) {
    vm::Embedded here;
    if (const auto why = here.prepare()) GTEST_SKIP() << *why;
    auto machines = Machines::open({.uri = here.uri(),
                                    .images = vm::Embedded::images(),
                                    .folder = here.folder() / "machines",
                                    .allow_emulated = true,
                                    .vfio = {.sysfs = here.folder() / "no-sysfs"}});
    if (!machines) GTEST_SKIP() << machines.error().what;
    StartTenant order = machine_order(9, {"true"});
    order.functions = {0};
    order.ports = {{.mac = "02:42:0a:80:10:05", .address = "10.128.16.5/20", .subnet = "10.128.16.0/20", .dscp = 26}};
    GpuNodeStatus node = small_node();
    node.functions = {{.address = "0000:3b:10.0"}};
    const auto started = (*machines)->start(order, node, {.devices = true});
    ASSERT_FALSE(started);
    EXPECT_EQ(started.error().code, Code::not_found) << started.error().what;
    std::ifstream file{(*machines)->records().folder_of(9).seed(), std::ios::binary};
    const std::string seed{std::istreambuf_iterator<char>{file}, {}};
    EXPECT_TRUE(seed.contains("export BULKHEAD_PORTS='02:42:0a:80:10:05=10.128.16.5/20'\n")) << seed;
    EXPECT_TRUE(seed.contains("export NCCL_IB_ADDR_RANGE='10.128.16.0/20'\n")) << seed;
    EXPECT_TRUE((*machines)->has(9));
    EXPECT_FALSE((*machines)->records().holds("0000:3b:00.0")) << "it never left the host";
    ASSERT_TRUE((*machines)->stop(9, Duration{0}));
    EXPECT_FALSE((*machines)->has(9));
}

TEST(MachineRecords, are_known_without_libvirt) {
    const auto folder = std::filesystem::temp_directory_path() / fmt::format("machine-records-{}", ::getpid());
    const MachineRecords records{folder};
    EXPECT_FALSE(records.has(9));
    EXPECT_FALSE(records.holds("0000:3b:00.0")) << "no machine was ever started here";
    EXPECT_TRUE(records.leases()->empty());
    std::filesystem::create_directories(records.folder_of(9).path);
    ASSERT_TRUE(records.keep_given(9, {{"0000:3b:00.0", "nvidia"}, {"0000:3b:10.1", ""}}));
    EXPECT_TRUE(records.has(9));
    EXPECT_EQ(*records.leases(), std::vector<Key>{9});
    EXPECT_TRUE(records.holds("0000:3b:00.0"));
    EXPECT_FALSE(records.holds("0000:5e:00.0"));
    ASSERT_EQ(records.given_to(9).size(), 2U);
    EXPECT_EQ(records.given_to(9)[0].driver, "nvidia");
    EXPECT_EQ(records.given_to(9)[1].driver, "");
    std::filesystem::remove_all(folder);
    std::ofstream{folder} << "no folder";
    EXPECT_TRUE(records.holds("0000:3b:00.0")) << "nobody can look: whoever asks is careful";
    std::filesystem::remove(folder);
}

TEST(MachineRecords, each_machine_has_a_user_of_its_own_and_keeps_it) {
    const auto folder = std::filesystem::temp_directory_path() / fmt::format("machine-users-{}", ::getpid());
    const MachineRecords records{folder};
    for (const Key lease : {7, 8, 9}) std::filesystem::create_directories(records.folder_of(lease).path);
    EXPECT_EQ(*records.user_of(7, 900'000, 2), 900'000U);
    EXPECT_EQ(*records.user_of(8, 900'000, 2), 900'001U);
    EXPECT_EQ(*records.user_of(7, 900'000, 2), 900'000U) << "the same after a restart";
    EXPECT_EQ(records.user_of(9, 900'000, 2).error().code, Code::exhausted);
    std::filesystem::remove_all(records.folder_of(7).path);
    EXPECT_EQ(*records.user_of(9, 900'000, 2), 900'000U) << "whose files are gone";
    std::ofstream{records.folder_of(8).path + "/user"} << "nobody\n";
    std::filesystem::create_directories(records.folder_of(7).path);
    EXPECT_EQ(records.user_of(7, 900'000, 9).error().code, Code::corrupt) << "it could be anybody's";
    std::filesystem::remove_all(folder);
}

// libvirt finds no such device on this computer, so that the start fails after the GPU was given away.
TEST(Machines, a_gpu_that_was_given_comes_back_reset_however_the_start_went_and_says_by_which_way) {
    vm::Embedded here;
    if (const auto why = here.prepare()) GTEST_SKIP() << *why;
    const std::string gpu = "0000:3b:00.0";
    if (std::filesystem::exists("/sys/bus/pci/devices/" + gpu)) GTEST_SKIP() << "this computer has a " << gpu;
    const OwnMachines own;
    vm::SysfsTree tree;
    tree.add(gpu, 7);
    vm::VfioSettings hasty = tree.settings();
    hasty.patience = std::chrono::seconds{5};
    auto machines = Machines::open({.uri = here.uri(),
                                    .images = vm::Embedded::images(),
                                    .folder = here.folder() / "machines",
                                    .allow_emulated = true,
                                    .vfio = hasty});
    if (!machines) GTEST_SKIP() << machines.error().what;
    const vm::Vfio& vfio = (*machines)->vfio();
    const auto started = (*machines)->start(machine_order(own.first(), {"true"}), small_node(), {.devices = true});
    ASSERT_FALSE(started);
    EXPECT_NE(started.error().what.find("libvirt could not start"), std::string::npos) << started.error().what;
    EXPECT_EQ(*vfio.driver_of(gpu), "vfio-pci");
    EXPECT_TRUE((*machines)->records().holds(gpu));
    EXPECT_FALSE((*machines)->records().returned_by(gpu));

    // It is the first's: whoever else names it does not get it, and has nothing to give back.
    const auto second = (*machines)->start(machine_order(own.second(), {"true"}), small_node(), {.devices = true});
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, Code::conflict);
    EXPECT_EQ(second.error().what, gpu + " is with " + machine_name(own.first()));
    EXPECT_TRUE((*machines)->records().given_to(own.second()).empty());
    ASSERT_TRUE((*machines)->stop(own.second(), Duration{0}));
    EXPECT_FALSE(tree.saw_reset_of(gpu)) << "under the machine that has it";
    EXPECT_EQ(*vfio.driver_of(gpu), "vfio-pci");

    const auto stopped = (*machines)->stop(own.first(), Duration{0});
    ASSERT_TRUE(stopped) << stopped.error().what;
    EXPECT_NE(stopped->find(gpu + ": flr, rebind nvidia"), std::string::npos) << *stopped;
    EXPECT_EQ(*vfio.driver_of(gpu), "nvidia");
    EXPECT_TRUE(tree.saw_reset_of(gpu));
    EXPECT_FALSE((*machines)->records().holds(gpu));
    EXPECT_EQ((*machines)->records().returned_by(gpu), "flr, rebind nvidia");
    (*machines)->records().forget_return(gpu);
    EXPECT_FALSE((*machines)->records().returned_by(gpu));

    // An agent that goes while the GPU is on its way to the host's driver: the next one knows that it was reset.
    ASSERT_FALSE((*machines)->start(machine_order(own.first(), {"true"}), small_node(), {.devices = true}));
    tree.stubborn = true;
    EXPECT_FALSE((*machines)->stop(own.first(), Duration{0}));
    EXPECT_EQ((*machines)->records().returned_by(gpu), "flr, and no further");
    tree.stubborn = false;
    ASSERT_TRUE(vfio.take_back(gpu, "nvidia"));
    const auto stopped_again = (*machines)->stop(own.first(), Duration{0});
    ASSERT_TRUE(stopped_again) << stopped_again.error().what;
    EXPECT_NE(stopped_again->find(gpu + ": flr, rebind nvidia"), std::string::npos) << *stopped_again;
    EXPECT_EQ((*machines)->records().returned_by(gpu), "flr, rebind nvidia");

    // Given away by somebody else, for a machine that is not ours to know.
    ASSERT_TRUE(vfio.give(gpu));
    tree.forget_reset_of(gpu);
    const auto third = (*machines)->start(machine_order(own.second(), {"true"}), small_node(), {.devices = true});
    ASSERT_FALSE(third);
    EXPECT_EQ(third.error().code, Code::conflict) << third.error().what;
    ASSERT_TRUE((*machines)->stop(own.second(), Duration{0}));
    EXPECT_FALSE(tree.saw_reset_of(gpu));
    EXPECT_EQ(*vfio.driver_of(gpu), "vfio-pci");
}

}  // namespace bulkhead::agent
