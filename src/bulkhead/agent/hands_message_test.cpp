#include "bulkhead/agent/hands_message.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bulkhead/wire/message.hpp"

namespace bulkhead::agent::hands {
namespace {

using testing::HasSubstr;

FabricPort some_port(std::uint16_t function) {
    return {.function = function,
            .mac = "02:42:0a:80:10:05",
            .vlan = 100,
            .address = "10.128.16.5/20",
            .subnet = "10.128.16.0/20",
            .rate_mbps = 200'000,
            .dscp = 26,
            .node_guid = {},
            .port_guid = {}};
}
AttachFunction set_as(auto&& change) {
    AttachFunction attach{3, 9, "acme", some_port(3)};
    change(attach.port);
    return attach;
}

StartTenant some_start() {
    StartTenant start{.lease = 7,
                      .tier = Tier::container,
                      .gpus = {{.gpu = 1, .start = 4, .size = 4, .profile = "3g.71gb", .share = 500}},
                      .drives = {2},
                      .functions = {3},
                      .tenant = "acme",
                      .mechanism = Mechanism::mps};
    start.ports = {some_port(3)};
    start.program = {{"/bin/sh", "-c", "echo"}, {"A=b"}, 2000, 1 << 30, {"save"}, Duration{30'000}};
    return start;
}

// Those of node/operation.hpp, in their order.
std::vector<decltype(Operation::what)> all_operations() {
    return {CreateInstance{1, "1g.18gb", 3},
            DestroyInstance{1, 3},
            AttachDrive{2, 9},
            DetachDrive{2},
            AttachFunction{3, 9, "acme", some_port(3)},
            DetachFunction{3},
            some_start(),
            StopTenant{9, Duration{30'000}},
            Wipe{UnitKind::memory, 1, 0, 8, true},
            Verify{UnitKind::drive, 2, 0, 1, 77},
            ResetGpu{5}};
}
static_assert(std::variant_size_v<decltype(Operation::what)> == 11, "docs/threat-model.md lists eleven");

std::string begin_of(decltype(Operation::what) what) { return to_bytes(Request{Begin{{5}, {42, std::move(what)}}}); }

TEST(HandsMessage, output_is_asked_for_by_a_lease_and_a_place_in_it) {
    const auto read = read_request(to_bytes(Request{ReadOutput{{7, true, 41}}}));
    ASSERT_TRUE(read) << read.error().what;
    EXPECT_EQ(std::get<ReadOutput>(*read).place, (OutputPlace{7, true, 41}));
    EXPECT_TRUE(check(ReadOutput{{7, true, 41}}));
    EXPECT_FALSE(check(ReadOutput{{-7, true, 41}}));
    EXPECT_FALSE(check(ReadOutput{{7, true, -1}}));
    const auto answer = read_answer(to_bytes(Answer{OutputPiece{41, "hello"}}));
    ASSERT_TRUE(answer) << answer.error().what;
    EXPECT_EQ(std::get<OutputPiece>(*answer), (OutputPiece{41, "hello"}));
}

TEST(HandsMessage, what_is_measured_arrives_as_it_was) {
    const auto asked = read_request(to_bytes(Request{ReadTelemetry{}}));
    ASSERT_TRUE(asked) << asked.error().what;
    EXPECT_TRUE(std::holds_alternative<ReadTelemetry>(*asked));
    const Telemetry telemetry{.grade = Grade::simulated,
                              .age = {1'200},
                              .gpus = {{3,
                                        3,
                                        "GPU-1",
                                        "0000:3b:00.0",
                                        "NVIDIA H200",
                                        {{Counter::power_mw, 700'000}},
                                        {{7, 4, "3g.71gb", "MIG-1", {{Counter::memory_used_bytes, 1 << 20}}}}}}};
    const auto answer = read_answer(to_bytes(Answer{Measures{telemetry}}));
    ASSERT_TRUE(answer) << answer.error().what;
    EXPECT_EQ(std::get<Measures>(*answer).newest, telemetry);
    const auto none = read_answer(to_bytes(Answer{Measures{}}));
    ASSERT_TRUE(none) << none.error().what;
    EXPECT_FALSE(std::get<Measures>(*none).newest);
}

TEST(HandsMessage, a_test_of_the_fences_is_asked_for_and_told) {
    const FabricTestOrder order{.ticket = 7, .held = {0, 3}, .clean = {1, 2}};
    const auto asked = read_request(to_bytes(Request{AttackFences{order}}));
    ASSERT_TRUE(asked) << asked.error().what;
    EXPECT_EQ(std::get<AttackFences>(*asked).order, order);
    EXPECT_TRUE(check(AttackFences{order}));
    EXPECT_FALSE(check(AttackFences{{.ticket = -1, .held = {}, .clean = {}}}));
    EXPECT_FALSE(check(AttackFences{{.ticket = 1, .held = std::vector<std::uint16_t>(5'000), .clean = {}}}));
    Polled polled;
    evidence::FabricStatement& found = polled.news.fabric.emplace_back();
    found.nic = "0000:3b:00.0";
    found.attempts = {{"forged-mac", "a frame", AttemptEnd::got_through, {}}};
    polled.news.fabric_given_up.push_back({.ticket = 7, .why = "a lease wants it", .evidence = {}});
    const auto answer = read_answer(to_bytes(Answer{polled}));
    ASSERT_TRUE(answer) << answer.error().what;
    EXPECT_EQ(std::get<Polled>(*answer).news.fabric, polled.news.fabric);
    EXPECT_EQ(std::get<Polled>(*answer).news.fabric_given_up, polled.news.fabric_given_up);
}

TEST(HandsMessage, each_operation_arrives_as_it_was) {
    for (const auto& what : all_operations()) {
        const std::string bytes = begin_of(what);
        const auto read = read_request(bytes);
        ASSERT_TRUE(read) << what.index() << ": " << read.error().what;
        const auto& begin = std::get<Begin>(*read);
        EXPECT_EQ(begin.now.ms, 5);
        EXPECT_EQ(begin.operation.number, 42);
        EXPECT_EQ(begin.operation.what.index(), what.index());
        EXPECT_EQ(to_bytes(*read), bytes);
    }
    const auto read = read_request(begin_of(some_start()));
    const auto& start = std::get<StartTenant>(std::get<Begin>(*read).operation.what);
    EXPECT_EQ(start.gpus, some_start().gpus);
    EXPECT_EQ(start.program, some_start().program);
    EXPECT_EQ(start.tenant, "acme");
}

TEST(HandsMessage, what_is_no_request_is_refused) {
    struct Row {
        std::string_view says;
        std::string bytes;
    };
    const std::string poll = to_bytes(Request{Poll{{5}}});
    const Row rows[] = {
        {"nothing", ""},
        {"a fifth kind of request", "\x04"},
        {"an operation that there is not", std::string{"\x02\x0a\x54\x0b\x00", 5}},
        {"more than a request", poll + "x"},
        {"less than one", begin_of(some_start()).substr(0, 20)},
        {"a list longer than its bytes", std::string{"\x02\x0a\x54\x06\x0e\x01\xff\xff\x03", 9}},
        {"more bytes than may come", std::string(request_bytes_max + 1, '\0')},
    };
    for (const Row& row : rows) {
        const auto read = read_request(row.bytes);
        ASSERT_FALSE(read) << row.says;
        EXPECT_EQ(read.error().code, Code::invalid) << row.says;
    }
}

TEST(HandsMessage, an_operation_that_breaks_a_limit_is_refused) {
    const auto changed = [](auto change) {
        StartTenant start = some_start();
        change(start);
        return start;
    };
    struct Row {
        std::string_view says;
        decltype(Operation::what) what;
    };
    const Row rows[] = {
        {"a tenant that would be two words of a file", changed([](auto& s) { s.tenant = "a b"; })},
        {"nobody's command", changed([](auto& s) { s.tenant = ""; })},
        {"a tenant that would be two lines", changed([](auto& s) { s.tenant = "a\nroot"; })},
        {"a tenant that is a path", changed([](auto& s) { s.tenant = "../etc"; })},
        {"a tenant without an end", changed([](auto& s) { s.tenant = std::string(300, 'a'); })},
        {"too many words", changed([](auto& s) { s.program.words.assign(wire::command_words_max + 1, "x"); })},
        {"a word too long",
         changed([](auto& s) { s.program.words = {std::string(wire::command_word_bytes_max + 1, 'x')}; })},
        {"less memory than none", changed([](auto& s) { s.program.memory_bytes = -1; })},
        {"too many GPUs", changed([](auto& s) { s.gpus.resize(wire::gpu_parts_max + 1); })},
        {"a share of nothing", changed([](auto& s) { s.gpus[0].share = 0; })},
        {"a lease below zero", changed([](auto& s) { s.lease = -1; })},
        {"a profile of two lines", CreateInstance{0, "1g\n2g", 0}},
        {"a slice beyond every GPU", DestroyInstance{0, 64}},
        {"no slice at all", Wipe{UnitKind::memory, 0, 0, 0}},
        {"slices beyond every GPU", Verify{UnitKind::memory, 0, 60, 8, 0}},
        {"a lease below zero, stopped", StopTenant{-5}},
        {"a day to save in", StopTenant{5, Duration::hours(24)}},
        {"less than no time to save in", StopTenant{5, Duration{-1}}},
        {"a function for a path", AttachFunction{0, 1, "/"}},
        {"a function that is set as another", set_as([](auto& p) { p.function = 4; })},
        {"a MAC of a vendor's", set_as([](auto& p) { p.mac = "00:42:0a:80:10:05"; })},
        {"a MAC of many", set_as([](auto& p) { p.mac = "03:42:0a:80:10:05"; })},
        {"a MAC with a command behind it", set_as([](auto& p) { p.mac = "02:42:0a:80:10:05; reboot"; })},
        {"an address of another subnet", set_as([](auto& p) { p.address = "10.128.32.5/20"; })},
        {"an address without a length", set_as([](auto& p) { p.address = "10.128.16.5"; })},
        {"a VLAN beyond all", set_as([](auto& p) { p.vlan = 4095; })},
        {"a GUID that is none", set_as([](auto& p) { p.port_guid = "policy"; })},
    };
    for (const Row& row : rows) {
        const auto sound = check(Begin{{5}, {42, row.what}});
        ASSERT_FALSE(sound) << row.says;
        EXPECT_EQ(sound.error().code, Code::invalid) << row.says;
    }
    EXPECT_FALSE(check(Begin{{}, {-1, StopTenant{1}}})) << "a number below zero";
    for (const auto& what : all_operations()) EXPECT_TRUE(check(Begin{{5}, {42, what}})) << what.index();
}

TEST(HandsMessage, answers_arrive_as_they_were) {
    GpuNodeStatus status{.gpus = {{.model = "h200-141gb", .count = 2, .slices = {{.profile = "1g.18gb", .start = 3}}}},
                         .cpu = 16,
                         .memory = {1 << 30},
                         .nvlink = NvLink::fabric};
    status.capabilities = {{Capability::mig, Grade::silicon, Instant{7}}};
    status.versions = {{Component::driver, "580.159.04"}};
    status.host = NodeHost{.usedBy = {"acme"}};
    status.topology = {{.gpu = 1, .bus = "0000:3b:00.0", .numaNode = 0, .nvlinkPeers = {{.gpu = 0, .links = 18}}}};
    const auto stock = read_answer(to_bytes(Answer{status}));
    ASSERT_TRUE(stock);
    EXPECT_EQ(std::get<GpuNodeStatus>(*stock), status);

    Polled polled{.boot = "boot-1", .due = Instant{9}};
    polled.news.results = {{.number = 3, .ok = true, .bytes = 5, .bytes_found = 4, .digest = "ab"}};
    polled.news.results[0].grade = Grade::emulated;
    polled.news.results[0].firmware = "10.0.13";
    polled.news.results[0].skipped = {"sanitize-crypto: not claimed"};
    polled.news.faults = {{UnitKind::memory, 1, "Xid 79"}, {UnitKind::memory, 0, "Xid 63", true}};
    polled.news.exits = {{7, 3, "said"}};
    polled.news.notes = {"the NIC is back"};
    polled.news.stock_changed = true;
    const auto news = read_answer(to_bytes(Answer{polled}));
    ASSERT_TRUE(news);
    const auto& heard = std::get<Polled>(*news);
    EXPECT_EQ(heard.news.exits, polled.news.exits);
    EXPECT_EQ(heard.news.notes, polled.news.notes);
    EXPECT_TRUE(heard.news.stock_changed);
    EXPECT_EQ(heard.news.faults, polled.news.faults);
    ASSERT_EQ(heard.news.results.size(), 1u);
    EXPECT_EQ(heard.news.results[0].bytes_found, 4);
    EXPECT_EQ(heard.news.results[0].grade, Grade::emulated);
    EXPECT_EQ(heard.news.results[0].firmware, "10.0.13");
    EXPECT_EQ(heard.news.results[0].skipped, polled.news.results[0].skipped);
    EXPECT_EQ(heard.due, Instant{9});

    const Error error{Code::corrupt, "what", "remedy"};
    EXPECT_EQ(std::get<Error>(*read_answer(to_bytes(Answer{error}))), error);
    EXPECT_FALSE(read_answer(std::string{"\0\x08\0\0", 4})) << "a code that there is not";
}

}  // namespace
}  // namespace bulkhead::agent::hands
