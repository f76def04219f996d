#include "bulkhead/render/libvirt_domain.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "bulkhead/render/libvirt_lease.hpp"
#include "bulkhead/render/xml.hpp"

namespace bulkhead::render {

namespace {

DomainSpec small_domain() {
    return {.name = "bulkhead-1",
            .node = "node-1",
            .vcpus = 2,
            .memory_bytes = 256 << 20,
            .kernel = "/images/a/kernel",
            .initrd = "/images/a/initrd",
            .command_line = "console=ttyS0",
            .console = "/run/c"};
}

bool can_validate() {
    return ::access("/usr/bin/virt-xml-validate", X_OK) == 0 && ::access("/usr/bin/xmllint", X_OK) == 0;
}

// libvirt's own schema, by libvirt's own program.
std::string complaint_of_libvirt(const std::string& xml) {
    const auto file =
        std::filesystem::temp_directory_path() / ("bulkhead-domain-" + std::to_string(::getpid()) + ".xml");
    std::ofstream{file} << xml;
    const std::string command = "/usr/bin/virt-xml-validate " + file.string() + " domain 2>&1";
    std::string said;
    FILE* const pipe = ::popen(command.c_str(), "r");
    for (char piece[512]; std::fgets(piece, sizeof piece, pipe) != nullptr;) said += piece;
    const int status = ::pclose(pipe);
    std::filesystem::remove(file);
    return status == 0 ? "" : said + "\n" + xml;
}

// Some of the first so many, at least `least`.
std::vector<std::int64_t> any_of(std::int64_t count, std::int64_t least) {
    std::vector<std::int64_t> chosen;
    const auto bits = *rc::gen::inRange<std::int64_t>(least, std::int64_t{1} << count);
    for (std::int64_t i = 0; i < count; ++i)
        if ((bits >> i & 1) != 0) chosen.push_back(i);
    return chosen;
}

// A machine of 8 GPUs as boards are built, and a lease of any of them.
GpuNode any_node() {
    GpuNode node;
    node.metadata.name = "node-1";
    node.status.gpus = {{.model = "h100-80gb-sxm5", .count = 8}};
    node.status.cpu = *rc::gen::element<std::int64_t>(16, 64, 192);
    node.status.memory = {*rc::gen::inRange<std::int64_t>(64, 2048) << 30};
    for (std::int64_t gpu = 0; gpu < 8; ++gpu) {
        GpuPosition position{.gpu = gpu, .bus = fmt::format("0000:{:02x}:00.0", 0x81 + 2 * gpu), .numaNode = gpu / 4};
        const std::int64_t half = node.status.cpu / 2;
        position.cpus = fmt::format("{}-{}", gpu / 4 * half, (gpu / 4 + 1) * half - 1);
        node.status.topology.push_back(position);
    }
    for (int drive = 0; drive < 4; ++drive) node.status.drives.push_back({.serial = fmt::format("S{}", drive)});
    for (int function = 0; function < 4; ++function)
        node.status.functions.push_back({.address = fmt::format("0000:3b:00.{}", function + 1)});
    return node;
}

GpuLease machine_lease(const std::vector<std::int64_t>& gpus) {
    GpuLease lease;
    lease.metadata.name = "lease-k3v";
    lease.spec = {.tenant = "acme", .workload = "train", .mechanism = Mechanism::whole, .tier = Tier::vm, .tasks = 1};
    for (const std::int64_t gpu : gpus) lease.spec.slices.push_back({.node = "node-1", .gpu = gpu});
    return lease;
}

}  // namespace

TEST(LibvirtDomain, libvirt_accepts_a_domain_of_every_kind) {
    if (!can_validate()) GTEST_SKIP() << "virt-xml-validate and xmllint are not installed";
    for (const Architecture architecture : {Architecture::amd64, Architecture::arm64})
        for (const bool emulated : {false, true})
            for (const bool disk : {false, true})
                for (const bool bare : {false, true}) {
                    DomainSpec spec = small_domain();
                    spec.architecture = architecture;
                    spec.emulated = emulated;
                    if (disk) {
                        spec.kernel = spec.initrd = spec.command_line = "";
                        spec.boot_disk = "/run/d";
                    }
                    if (!bare) {
                        spec.cpus = {1, 2, 3, 7};
                        spec.nodes = {0, 1};
                        spec.huge_page_bytes = 2 << 20;
                        spec.devices = {{0, 0x3b, 0, 0}, {0x10, 0xff, 0x1f, 7}};
                        spec.user = 900'000;
                        spec.mediated = {"4b20d080-1b54-4048-85b3-a6a62d165c01"};
                        spec.disks = {{.path = "/dev/nvme0n1", .block = true, .serial = "drive-0"},
                                      {.path = "/run/seed", .read_only = true}};
                    }
                    const auto xml = libvirt_domain(spec);
                    ASSERT_TRUE(xml) << xml.error().what;
                    EXPECT_EQ(complaint_of_libvirt(*xml), "");
                }
}

TEST(LibvirtDomain, libvirt_refuses_what_is_no_domain_so_that_its_yes_means_something) {
    if (!can_validate()) GTEST_SKIP() << "virt-xml-validate and xmllint are not installed";
    std::string xml = *libvirt_domain(small_domain());
    xml.replace(xml.find("<vcpu "), 6, "<vcpus ");
    xml.replace(xml.find("</vcpu>"), 7, "</vcpus>");
    EXPECT_NE(complaint_of_libvirt(xml), "");
}

TEST(LibvirtDomain, leases_of_any_shape_become_domains_that_libvirt_accepts) {
    if (!can_validate()) GTEST_SKIP() << "virt-xml-validate and xmllint are not installed";
    EXPECT_TRUE(rc::check([] {
        const GpuNode node = any_node();
        const auto gpus = any_of(8, 1);
        GpuLease lease = machine_lease(gpus);
        for (const std::int64_t function : any_of(4, 0)) lease.spec.functions.push_back({"node-1", function});
        for (const std::int64_t drive : any_of(4, 0)) lease.spec.drives.push_back({"node-1", drive});
        MachinePlaces places{.boots_disk = *rc::gen::arbitrary<bool>()};
        places.architecture = *rc::gen::element(Architecture::amd64, Architecture::arm64);
        const auto spec = domain_of({lease, node}, places);
        RC_ASSERT(spec.has_value());
        RC_ASSERT(spec->devices.size() == gpus.size() + lease.spec.functions.size());
        RC_ASSERT(spec->memory_bytes <= node.status.memory.bytes);
        const auto xml = libvirt_domain(*spec);
        RC_ASSERT(xml.has_value());
        RC_ASSERT(complaint_of_libvirt(*xml) == "");
    }));
}

TEST(LibvirtDomain, it_has_no_door_to_the_host_or_to_another_tenant) {
    const std::string xml = *libvirt_domain(small_domain());
    for (const std::string_view door : {"<filesystem", "<graphics", "<channel", "<redirdev", "<interface", "<sound",
                                        "<video", "<shmem", "<vsock", "<tpm", "<panic"})
        EXPECT_EQ(xml.find(door), std::string::npos) << door;
    EXPECT_NE(xml.find("<memballoon model='none'/>"), std::string::npos);
    EXPECT_NE(xml.find("<controller type='usb' model='none'/>"), std::string::npos);
    EXPECT_NE(xml.find("<nosharepages>"), std::string::npos);
    EXPECT_NE(xml.find("<on_crash>destroy</on_crash>"), std::string::npos);
}

TEST(LibvirtDomain, files_are_opened_past_the_page_cache_where_they_can_be_and_drives_always) {
    DomainSpec spec = small_domain();
    spec.kernel = spec.initrd = spec.command_line = "";
    spec.boot_disk = "/run/d";
    spec.disks.push_back({.path = "/dev/nvme1n1", .block = true});
    const auto caches = [&](std::string_view mode) {
        const std::string xml = *libvirt_domain(spec);
        std::size_t found = 0;
        for (std::size_t at = xml.find(mode); at != std::string::npos; at = xml.find(mode, at + 1)) ++found;
        return found;
    };
    const std::size_t all = spec.disks.size() + 1;
    EXPECT_EQ(caches("cache='none'"), all);
    spec.direct_files = false;
    EXPECT_EQ(caches("cache='none'"), 1U) << "the drive";
    EXPECT_EQ(caches("cache='writeback'"), all - 1);
}

TEST(LibvirtDomain, text_stays_text_whatever_is_in_it) {
    DomainSpec spec = small_domain();
    spec.command_line = "a='</cmdline><devices>' & \"b\"";
    spec.kernel = "/images/<&'\">/kernel";
    const std::string xml = *libvirt_domain(spec);
    EXPECT_NE(xml.find("<kernel>/images/&lt;&amp;&apos;&quot;&gt;/kernel</kernel>"), std::string::npos);
    EXPECT_EQ(xml.find("</cmdline><devices>"), std::string::npos);
    EXPECT_EQ(xml_escaped(std::string{"a\0b\x01\xC3\xA9\xFF", 7}),
              "a\xEF\xBF\xBD"
              "b\xEF\xBF\xBD\xC3\xA9\xEF\xBF\xBD");
    EXPECT_TRUE(rc::check([](const std::string& text) {
        const std::string escaped = xml_escaped(text);
        RC_ASSERT(escaped.find_first_of("<>'\"") == std::string::npos);
    }));
}

TEST(LibvirtDomain, what_no_machine_can_be_made_of_is_refused_with_all_that_is_wrong) {
    DomainSpec spec = small_domain();
    spec.name = "a b";
    spec.memory_bytes = 100;
    spec.boot_disk = "/d";
    spec.devices = {{0, 1, 0, 0}, {0, 1, 0, 0}};
    const auto refused = libvirt_domain(spec);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::invalid);
    for (const std::string_view word : {"\"a b\"", "100 bytes", "one of the two", "0000:01:00.0 is given twice"})
        EXPECT_NE(refused.error().what.find(word), std::string::npos) << word << " in " << refused.error().what;
}

TEST(LibvirtLease, machines_on_different_gpus_have_no_cpu_in_common) {
    EXPECT_TRUE(rc::check([] {
        const GpuNode node = any_node();
        const auto split = *rc::gen::inRange<std::int64_t>(1, 8);
        std::vector<std::int64_t> first, second;
        for (std::int64_t gpu = 0; gpu < 8; ++gpu) (gpu < split ? first : second).push_back(gpu);
        const auto one = domain_of({machine_lease(first), node}, {}),
                   two = domain_of({machine_lease(second), node}, {});
        RC_ASSERT(one && two);
        for (const unsigned cpu : one->cpus) RC_ASSERT(std::ranges::find(two->cpus, cpu) == two->cpus.end());
        RC_ASSERT(!one->cpus.empty() && one->vcpus == one->cpus.size());
    }));
}

// A lost GPU keeps its place on the list; one that was put in its slot has a new number there.
TEST(LibvirtLease, the_cpus_of_a_gpu_stay_whatever_becomes_of_those_beside_it) {
    GpuNodeStatus node;
    for (std::int64_t gpu = 0; gpu < 4; ++gpu)
        node.topology.push_back({.gpu = gpu, .bus = fmt::format("0000:0{}:00.0", gpu + 1), .cpus = "0-31"});
    const auto second = *own_cpus(node, 1), third = *own_cpus(node, 2);
    EXPECT_EQ(print_cpu_list(second), "8-15");
    node.topology.push_back({.gpu = 4, .bus = "0000:01:00.0", .cpus = "0-31"});
    EXPECT_EQ(*own_cpus(node, 1), second);
    EXPECT_EQ(*own_cpus(node, 2), third);
    EXPECT_EQ(*own_cpus(node, 4), *own_cpus(node, 0)) << "in the slot of the one that is gone";
}

TEST(LibvirtLease, cores_and_memory_are_what_its_work_asks_for) {
    const GpuNode node = [] {
        GpuNode made;
        made.metadata.name = "node-1";
        made.status.gpus = {{.model = "h100-80gb-sxm5", .count = 2}};
        made.status.cpu = 8;
        made.status.topology = {{.gpu = 0, .bus = "0000:01:00.0", .numaNode = 0, .cpus = "0-3"},
                                {.gpu = 1, .bus = "0000:02:00.0", .numaNode = 0, .cpus = "0-3"}};
        return made;
    }();
    GpuWorkload work;
    work.spec.cpu = 2;
    work.spec.memory = ByteSize{std::int64_t{4} << 30};
    work.spec.vm = VmRequest{.image = "trainer"};
    const GpuLease lease = machine_lease({1});
    auto spec = domain_of({lease, node, &work}, {});
    ASSERT_TRUE(spec) << spec.error().what;
    EXPECT_EQ(spec->cpus, (std::vector<unsigned>{2, 3}));
    EXPECT_EQ(spec->memory_bytes, std::int64_t{4} << 30);
    EXPECT_EQ(spec->title, "train of acme, image trainer");
    work.spec.cpu = 4;  // more than its GPU's part: it floats over all beside it
    spec = domain_of({lease, node, &work}, {});
    EXPECT_EQ(spec->cpus, (std::vector<unsigned>{0, 1, 2, 3}));
}

// Two nodes of 512 GiB, all GPUs beside the first: a share of all memory is more than the first has.
TEST(LibvirtLease, memory_that_nobody_named_is_not_asked_of_the_gpus_numa_nodes_alone) {
    GpuNode node;
    node.metadata.name = "node-1";
    node.status.gpus = {{.model = "h100-80gb-pcie", .count = 2}};
    node.status.memory = {std::int64_t{1} << 40};
    node.status.topology = {{.gpu = 0, .bus = "0000:01:00.0", .numaNode = 0, .cpus = "0-3"},
                            {.gpu = 1, .bus = "0000:02:00.0", .numaNode = 0, .cpus = "0-3"}};
    GpuWorkload work;
    const GpuLease lease = machine_lease({0, 1});
    const auto memory_line = [&] {
        const std::string xml = *libvirt_domain(*domain_of({lease, node, &work}, {}));
        const std::size_t from = xml.find("<memory mode=");
        return xml.substr(from, xml.find('\n', from) - from);
    };
    EXPECT_EQ(memory_line(), "<memory mode='preferred' nodeset='0'/>");
    node.status.topology[1].numaNode = 2;
    EXPECT_EQ(memory_line(), "<memory mode='interleave' nodeset='0,2'/>");
    work.spec.memory = ByteSize{std::int64_t{64} << 30};
    EXPECT_EQ(memory_line(), "<memory mode='strict' nodeset='0,2'/>");
}

TEST(LibvirtLease, what_is_no_machine_of_this_node_is_refused) {
    GpuNode node;
    node.metadata.name = "node-1";
    GpuLease lease = machine_lease({0});
    EXPECT_EQ(domain_of({lease, node}, {}).error().code, Code::unavailable) << "it does not say where its GPU is";
    lease.spec.tier = Tier::container;
    EXPECT_EQ(domain_of({lease, node}, {}).error().code, Code::conflict);
    lease.spec.tier = Tier::vm;
    node.status.topology = {{.gpu = 0, .bus = "0000:01:00.0"}};
    EXPECT_TRUE(domain_of({lease, node}, {}));
    lease.spec.drives = {{"node-2", 0}};
    EXPECT_TRUE(domain_of({lease, node}, {})) << "of another machine of the gang";
    lease.spec.drives = {{"node-1", 0}};
    EXPECT_EQ(domain_of({lease, node}, {}).error().code, Code::unavailable) << "it has no such drive";
    lease.spec.drives.clear();
    node.metadata.name = "node-2";
    EXPECT_EQ(domain_of({lease, node}, {}).error().code, Code::not_found);
}

// The device that VFIO gives has the slices of others on it, kept or not yet wiped.
TEST(LibvirtLease, of_less_than_whole_gpus_no_machine_is_made) {
    GpuNode node;
    node.metadata.name = "node-1";
    node.status.topology = {{.gpu = 0, .bus = "0000:01:00.0"}, {.gpu = 1, .bus = "0000:02:00.0"}};
    GpuLease lease = machine_lease({0, 1});
    ASSERT_TRUE(domain_of({lease, node}, {}));
    const auto complaint = [&] {
        const auto refused = domain_of({lease, node}, {});
        return refused ? "no complaint" : refused.error().what;
    };
    for (const Mechanism mechanism : every<Mechanism>()) {
        lease.spec.mechanism = mechanism;
        EXPECT_EQ(domain_of({lease, node}, {}).has_value(), mechanism == Mechanism::whole) << word(mechanism);
    }
    lease.spec.mechanism = Mechanism::whole;
    lease.spec.slices[1].profile = "1g.10gb";
    EXPECT_EQ(complaint(), "lease lease-k3v holds 1g.10gb of GPU 1, and a machine would get all of it");
    lease.spec.slices[1].profile.clear();
    lease.spec.slices[1].share = 250;
    EXPECT_EQ(complaint(), "lease lease-k3v holds 250 thousandths of GPU 1, and a machine would get all of it");
    EXPECT_EQ(domain_of({lease, node}, {}).error().code, Code::conflict);
}

TEST(LibvirtLease, drives_are_disks_by_nodes_of_the_machines_own_that_a_guest_finds_by_their_serial_numbers) {
    GpuNode node;
    node.metadata.name = "node-1";
    node.status.topology = {{.gpu = 0, .bus = "0000:01:00.0"}};
    node.status.gpus = {{.model = "h100-80gb-sxm5", .count = 1}};
    node.status.memory = {std::int64_t{64} << 30};
    node.status.drives = {{.serial = "S1"}, {.serial = "S2"}};
    GpuLease lease = machine_lease({0});
    lease.spec.drives = {{"node-2", 0}, {"node-1", 1}, {"node-1", 0}};
    const auto spec = domain_of({lease, node}, {});
    ASSERT_TRUE(spec) << spec.error().what;
    ASSERT_EQ(spec->disks.size(), 3U);
    EXPECT_EQ(spec->disks[1].path, "/dev/bulkhead/lease-k3v/drive0n1");
    EXPECT_EQ(spec->disks[1].serial, "S2");
    EXPECT_EQ(spec->disks[2].path, "/dev/bulkhead/lease-k3v/drive1n1");
    EXPECT_EQ(spec->disks[2].serial, "S1");
    const std::string xml = *libvirt_domain(*spec);
    EXPECT_NE(xml.find("<disk type='block' device='disk'>"), std::string::npos) << xml;
    EXPECT_NE(xml.find("cache='none' discard='unmap' io='native'"), std::string::npos) << xml;
}

TEST(LibvirtDomain, a_guest_tells_drives_and_their_namespaces_apart_in_the_20_characters_that_virtio_has) {
    EXPECT_EQ(disk_serial("S5XYNG0R", 1, true), "S5XYNG0R");
    EXPECT_EQ(disk_serial("S5XYNG0R", 2, false), "S5XYNG0R-n2");
    EXPECT_EQ(disk_serial("A Serial/With &Odd'1", 1, true), "A-Serial-With--Odd-1");
    EXPECT_EQ(disk_serial("01234567890123456789", 12, false), "4567890123456789-n12");
    DomainSpec spec = small_domain();
    spec.disks = {{.path = "/dev/a", .block = true, .serial = "S1"}, {.path = "/dev/b", .block = true, .serial = "S1"}};
    const auto refused = libvirt_domain(spec);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().what.find("could not tell them apart"), std::string::npos) << refused.error().what;
}

TEST(LibvirtDomain, a_machine_is_a_user_of_its_own_where_it_was_given_one) {
    DomainSpec spec = small_domain();
    EXPECT_EQ(libvirt_domain(spec)->find("seclabel"), std::string::npos);
    spec.user = 900'003;
    const std::string xml = *libvirt_domain(spec);
    EXPECT_NE(xml.find("<seclabel type='static' model='dac' relabel='yes'>"), std::string::npos) << xml;
    EXPECT_NE(xml.find("<label>+900003:+900003</label>"), std::string::npos) << xml;
}

TEST(PciAddress, is_read_as_the_kernel_and_as_nvml_write_it) {
    EXPECT_EQ(print(*parse_pci_address("00000000:3B:00.0")), "0000:3b:00.0");
    for (const std::string_view wrong :
         {"", "3b:00.0", "0000:3b:00", "0000:3b:20.0", "0000:3b:00.8", "0000:3b:00.0 ", "x000:3b:00.0", "0000:3b:-1.0"})
        EXPECT_FALSE(parse_pci_address(wrong)) << wrong;
}

TEST(CpuList, is_what_it_was_after_a_round_trip) {
    EXPECT_TRUE(rc::check([](std::set<std::uint8_t> cpus) {
        const std::vector<unsigned> list{cpus.begin(), cpus.end()};
        RC_ASSERT(*parse_cpu_list(print_cpu_list(list)) == list);
    }));
    for (const std::string_view wrong : {"a", "3-1", "1-", "-1", ",", "1,,2", "0-99999999"})
        EXPECT_FALSE(parse_cpu_list(wrong)) << wrong;
}

}  // namespace bulkhead::render
