#include "bulkhead/hw/vm/hypervisor.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <iterator>
#include <thread>

#include "bulkhead/hw/vm/embedded_test.hpp"
#include "bulkhead/hw/vm/machine_files.hpp"
#include "bulkhead/hw/vm/plain_domain_test.hpp"
#include "bulkhead/hw/vm/presence.hpp"

namespace bulkhead::vm {

namespace {

bool in_time(const std::function<bool()>& holds) {
    for (const auto until = std::chrono::steady_clock::now() + std::chrono::minutes{4};
         std::chrono::steady_clock::now() < until;) {
        if (holds()) return true;
        std::this_thread::sleep_for(std::chrono::milliseconds{50});
    }
    return false;
}

std::string console_of(const MachineFolder& folder) {
    std::ifstream file{folder.console()};
    return {std::istreambuf_iterator<char>{file}, {}};
}

}  // namespace

TEST(Hypervisor, a_node_without_libvirt_says_so) {
    const auto opened = Hypervisor::open({.library = "libbulkhead-has-no-such.so.0"});
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, Code::unavailable);
    EXPECT_NE(opened.error().what.find("no libvirt here"), std::string::npos) << opened.error().what;
}

TEST(Hypervisor, another_library_is_not_taken_for_libvirt) {
    const auto opened = Hypervisor::open({.library = "libz.so.1"});
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, Code::invalid);
}

TEST(Hypervisor, a_machine_boots_runs_its_seed_is_destroyed_and_leaves_nothing) {
    Embedded here;
    if (const auto why = here.prepare()) GTEST_SKIP() << *why;
    auto hypervisor = Hypervisor::open({.uri = here.uri()});
    if (!hypervisor) GTEST_SKIP() << hypervisor.error().what;
    const auto image = find_image(Embedded::images(), "default");
    ASSERT_TRUE(image) << image.error().what;
    const MachineFolder folder{here.folder() / "machine"};
    ASSERT_TRUE(make_machine(
        folder, *image, {.words = {"sh", "-c", "echo \"it's $WHO\"; sleep 1000"}, .environment = {"WHO=a tenant"}}));
    const std::string name = fmt::format("bh-test-{}", ::getpid());
    const EndOfMachine cleanup{name};
    const auto started = hypervisor->start(plain_domain(name, folder));
    ASSERT_TRUE(started) << started.error().what;
    EXPECT_FALSE(hypervisor->start(plain_domain(name, folder))) << "two of one name";
    EXPECT_EQ(*hypervisor->look(name), MachineState::running);
    EXPECT_EQ(hypervisor->running("bh-test-")->size(), 1U);
    EXPECT_TRUE(presence_of(name)->any());
    const auto said = [&](const char* words) { return console_of(folder).contains(words); };
    EXPECT_TRUE(in_time([&] { return said("it's a tenant") || said("bulkhead-exit"); }));
    EXPECT_TRUE(said("it's a tenant")) << console_of(folder);
    ASSERT_TRUE(hypervisor->destroy(name));
    ASSERT_TRUE(hypervisor->destroy(name)) << "again is fine";
    EXPECT_EQ(*hypervisor->look(name), MachineState::absent);
    EXPECT_TRUE(in_time([&] {
        const auto left = presence_of(name);
        return left && !left->any();
    }));
    const auto wiped = wipe_machine(folder);
    ASSERT_TRUE(wiped) << wiped.error().what;
    EXPECT_GT(wiped->bytes, 0);
    EXPECT_FALSE(std::filesystem::exists(folder.seed()));
    EXPECT_TRUE(find_image(Embedded::images(), "default")) << "libvirt made the image QEMU's";
    ASSERT_TRUE(remove_machine(folder));
}

}  // namespace bulkhead::vm
