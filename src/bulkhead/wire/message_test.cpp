#include "bulkhead/wire/message.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <functional>
#include <limits>

#include "bulkhead/base/rng.hpp"
#include "bulkhead/wire/agent.pb.h"

namespace bulkhead::wire {
namespace {

using testing::HasSubstr;
namespace proto = bulkhead::agent::v1;

std::string block(const std::string& label, const std::string& body) {
    return "-----BEGIN " + label + "-----\n" + body + "-----END " + label + "-----\n";
}

// Any message that keeps the limits, by seed.
class Speaker {
public:
    explicit Speaker(std::uint64_t seed) : rng_(seed) {}

    AgentMessage from_agent() {
        switch (rng_.below(6)) {
            case 4:
                return output();
            case 0:
                return hello();
            case 1:
                return heartbeat();
            case 2:
                return RenewalRequest{pem("CERTIFICATE REQUEST")};
            default:
                return report();
        }
    }
    ControlMessage from_control() {
        switch (rng_.below(8)) {
            case 7:
                return wanted();
            case 0:
                return Welcome{rng_.between(0, epoch_max), rng_.next(), {rng_.between(1, 3'600'000)}};
            case 1:
                return Acknowledged{number()};
            case 2:
                return GoAway{words()};
            case 3:
                return Renewed{pem("CERTIFICATE")};
            case 4:
                return NotRenewed{words()};
            default:
                return NumberedOrder{rng_.between(1, 1 << 30), {rng_.between(0, epoch_max), order()}};
        }
    }

private:
    std::int64_t number() {
        return rng_.chance(100) ? std::numeric_limits<std::int64_t>::max() : rng_.between(0, 1 << 20);
    }
    std::uint16_t device() { return static_cast<std::uint16_t>(rng_.below(65536)); }
    std::uint8_t below(std::uint64_t bound) { return static_cast<std::uint8_t>(rng_.below(bound)); }
    template <Worded E>
    E any() {
        return static_cast<E>(rng_.below(bulkhead::words(E{}).size()));
    }
    std::string words() {
        static constexpr std::string_view some[] = {"", "Xid 79", "gpu3 \"fell\" off", "größer", "日本", "a\\b"};
        return std::string{some[rng_.below(std::size(some))]};
    }
    std::string pem(const std::string& label) {
        std::string body(rng_.below(3'000), 'A');
        for (char& c : body) c = "AZaz09+/=\n"[rng_.below(10)];
        return block(label, body);
    }
    std::size_t few() { return rng_.below(4); }

    std::vector<WipeTask> wipes() {
        std::vector<WipeTask> all(few());
        for (WipeTask& wipe : all) {
            wipe = {any<UnitKind>(), device(), below(32), 1, number()};
            wipe.size = static_cast<std::uint8_t>(1 + below(32));
            wipe.lease = words();
            wipe.tenants.resize(few(), words());
            wipe.burn_in = rng_.chance(500);
        }
        return all;
    }
    FabricPort port(std::uint16_t function) {
        return {.function = function,
                .mac = fmt::format("02:42:0a:80:{:02x}:{:02x}", below(250), below(250)),
                .vlan = static_cast<std::uint16_t>(rng_.below(4095)),
                .address = fmt::format("10.128.16.{}/20", below(250)),
                .subnet = "10.128.16.0/20",
                .rate_mbps = rng_.between(0, 400'000),
                .dscp = below(64),
                .node_guid = rng_.chance(500) ? "" : "02:42:4e:00:0a:80:10:05",
                .port_guid = rng_.chance(500) ? "" : "02:42:50:00:0a:80:10:05",
                .pkey = static_cast<std::uint16_t>(rng_.below(65536))};
    }
    decltype(Order::what) order() {
        switch (rng_.below(6)) {
            case 0: {
                Prepare prepare{number(), words(), words(), any<Mechanism>(), any<Tier>(), {}, {}, {}, {}, {}};
                for (std::size_t i = few(); i > 0; --i)
                    prepare.gpus.push_back({device(), below(32), below(33), words(), rng_.between(1, 1000)});
                for (std::size_t i = few(); i > 0; --i) prepare.drives.push_back(device());
                for (std::size_t i = few(); i > 0; --i) prepare.functions.push_back(static_cast<std::uint16_t>(i));
                for (const std::uint16_t function : prepare.functions) prepare.ports.push_back(port(function));
                for (std::size_t i = few(); i > 0; --i) prepare.program.words.push_back(words());
                for (std::size_t i = few(); i > 0; --i) prepare.program.environment.push_back(words());
                prepare.program.cpu_thousandths = number();
                prepare.program.memory_bytes = number();
                for (std::size_t i = few(); i > 0; --i) prepare.program.checkpoint.push_back(words());
                prepare.program.checkpoint_within = Duration{rng_.between(0, save_ms_max)};
                return prepare;
            }
            case 1:
                return Start{number()};
            case 2:
                return Release{number(), wipes(), rng_.chance(500)};
            case 3:
                return TestFabric{1 + number() / 2};
            case 4:
                return Withdraw{wipes()};
            default:
                return Sanitize{wipes()};
        }
    }
    std::vector<Measured> readings() {
        std::vector<Measured> all;
        for (const Counter counter : every<Counter>())
            if (rng_.chance(500))
                all.push_back({counter, rng_.chance(100) ? ~std::uint64_t{0} >> 1 : rng_.below(1 << 20)});
        return all;
    }
    Heartbeat heartbeat() {
        if (rng_.chance(300)) return {};
        Telemetry telemetry{.grade = any<Grade>(), .age = {number()}, .gpus = {}};
        for (std::size_t i = few(); i > 0; --i) {
            GpuSample& gpu =
                telemetry.gpus.emplace_back(GpuSample{device(), device(), words(), words(), words(), readings(), {}});
            for (std::size_t j = few(); j > 0; --j)
                gpu.instances.push_back({device(), below(64), words(), words(), readings()});
        }
        return {std::move(telemetry)};
    }
    Output output() { return {rng_.below(1'000), {number(), words()}, rng_.chance(500) ? words() : ""}; }
    OutputWanted wanted() { return {rng_.below(1'000), {number(), rng_.chance(500), number()}}; }
    Report report() {
        switch (rng_.below(4)) {
            case 3:
                return {number(), rng_.chance(500) ? FabricTestReport{number(), "no function is free", {}}
                                                   : FabricTestReport{number(), {}, {"{\"a\":\n1}", "0011", "c2ln"}}};
            case 0:
                return {number(),
                        LeaseReport{number(), any<PartPhase>(), words(), rng_.between(0, 255), words(),
                                    Printed{number(), number(), number()},
                                    rng_.chance(500) ? std::optional{Saved{rng_.chance(500), words()}} : std::nullopt,
                                    any<PartFault>()}};
            case 1:
                return {number(), WipeReport{any<UnitKind>(),
                                             device(),
                                             below(32),
                                             static_cast<std::uint8_t>(1 + below(32)),
                                             number(),
                                             rng_.chance(500),
                                             rng_.chance(500),
                                             words(),
                                             {std::string{"{\"a\":\n\0\xff}", 8}, "0011", "c2ln"}}};
            default:
                return {number(), FaultReport{any<UnitKind>(), device(), words(), rng_.chance(500)}};
        }
    }
    UnitId unit() { return {any<UnitKind>(), device(), below(64)}; }
    Hello hello() {
        Hello hello{agent_protocol, rng_.between(0, epoch_max), words(), words(), {}, {}, {}};
        hello.inventory.cpu = rng_.between(0, 65536);
        hello.inventory.gpus.resize(few(), {.model = "h200", .count = 8, .slices = {}});
        if (rng_.chance(500)) hello.inventory.observedAt = Instant{1'800'000'000'000};
        hello.inventory.capabilities.resize(few(), {Capability::mig, Grade::simulated, std::nullopt});
        for (std::size_t i = few(); i > 0; --i) {
            hello.leases.push_back({number(), any<PartPhase>(), words(), {}});
            for (std::size_t j = few(); j > 0; --j) hello.leases.back().units.push_back(unit());
        }
        for (std::size_t i = few(); i > 0; --i) hello.units.push_back({unit(), rng_.chance(500), number()});
        return hello;
    }

    Rng rng_;
};

TEST(Message, what_is_sent_arrives_as_it_was) {
    for (std::uint64_t seed = 1; seed <= 3'000; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Speaker speaker{seed};
        const AgentMessage up = speaker.from_agent();
        const auto up_bytes = encode(up);
        ASSERT_TRUE(up_bytes) << up_bytes.error().what;
        const auto up_again = decode_agent_message(*up_bytes);
        ASSERT_TRUE(up_again) << up_again.error().what;
        ASSERT_EQ(*up_again, up);
        const ControlMessage down = speaker.from_control();
        const auto down_bytes = encode(down);
        ASSERT_TRUE(down_bytes) << down_bytes.error().what;
        const auto down_again = decode_control_message(*down_bytes);
        ASSERT_TRUE(down_again) << down_again.error().what;
        ASSERT_EQ(*down_again, down);
    }
}

// The numbers of the wire are ours plus one: an enum that is reordered or renamed here would be misheard there.
template <Worded E>
void expect_same_words(const google::protobuf::EnumDescriptor& spoken, const std::string& prefix) {
    const auto ours = words(E{});
    ASSERT_EQ(static_cast<std::size_t>(spoken.value_count()), ours.size() + 1) << spoken.full_name();
    for (std::size_t i = 0; i < ours.size(); ++i) {
        std::string expected = prefix;
        for (const char c : ours[i]) expected += c == '-' ? '_' : static_cast<char>(std::toupper(c));
        const auto* value = spoken.FindValueByNumber(static_cast<int>(i) + 1);
        ASSERT_NE(value, nullptr) << spoken.full_name();
        EXPECT_EQ(value->name(), expected);
    }
}

TEST(Message, words_have_the_same_meaning_on_both_sides) {
    expect_same_words<UnitKind>(*proto::UnitKind_descriptor(), "UNIT_KIND_");
    expect_same_words<Mechanism>(*proto::Mechanism_descriptor(), "MECHANISM_");
    expect_same_words<Tier>(*proto::Tier_descriptor(), "TIER_");
    expect_same_words<Grade>(*proto::Grade_descriptor(), "GRADE_");
    expect_same_words<Counter>(*proto::Counter_descriptor(), "COUNTER_");
    expect_same_words<PartPhase>(*proto::PartPhase_descriptor(), "PART_PHASE_");
    expect_same_words<PartFault>(*proto::PartFault_descriptor(), "PART_FAULT_");
}

TEST(Message, damage_is_refused_or_reads_as_another_message_but_never_more) {
    Rng rng{7};
    for (std::uint64_t seed = 1; seed <= 1'000; ++seed) {
        std::string bytes = *encode(Speaker{seed}.from_agent());
        if (bytes.empty()) continue;
        bytes[rng.below(bytes.size())] ^= static_cast<char>(1 << rng.below(8));
        if (const auto read = decode_agent_message(bytes)) {
            const auto again = encode(*read);
            ASSERT_TRUE(again) << "what was accepted can be said: " << again.error().what;
            EXPECT_EQ(*decode_agent_message(*again), *read);
        }
    }
}

TEST(Message, a_reason_is_cut_and_cleaned_so_that_its_event_gets_through) {
    const Report report{7, LeaseReport{1, PartPhase::failed, "broke\n\xff" + std::string(10'000, 'x')}};
    const auto read = decode_agent_message(*encode(report));
    ASSERT_TRUE(read) << read.error().what;
    const std::string why = std::get<LeaseReport>(std::get<Report>(*read).what).why;
    EXPECT_TRUE(why.starts_with("broke??xxx"));
    EXPECT_EQ(why.size(), why_bytes_max);
    // A character is never cut in two.
    const auto cut = encode(ControlMessage{GoAway{std::string(why_bytes_max - 1, 'x') + "ö"}});
    EXPECT_EQ(std::get<GoAway>(*decode_control_message(*cut)).why.size(), why_bytes_max - 1);
}

std::string bytes_of(const google::protobuf::Message& message) { return message.SerializeAsString(); }

proto::AgentMessage hello(std::string inventory = "{}") {
    proto::AgentMessage message;
    message.mutable_hello()->set_protocol(agent_protocol);
    message.mutable_hello()->set_inventory(std::move(inventory));
    return message;
}

std::string many(std::string_view entry, std::size_t count) {
    std::string all{entry};
    for (std::size_t i = 1; i < count; ++i) all.append(",").append(entry);
    return all;
}

proto::WipeReport& wipe_in(proto::AgentMessage& message) {
    proto::WipeReport& wipe = *message.mutable_report()->mutable_wipe();
    wipe.mutable_unit()->set_kind(proto::UNIT_KIND_DRIVE);
    wipe.mutable_unit()->set_size(1);
    return wipe;
}

proto::GpuSample& sampled_in(proto::AgentMessage& message) {
    proto::Telemetry& telemetry = *message.mutable_heartbeat()->mutable_telemetry();
    telemetry.set_grade(proto::GRADE_SIMULATED);
    return *telemetry.add_gpus();
}

// What an earlier version says is heard; what it does not know is not said to it (heartbeats go one way).
TEST(Message, an_agent_of_an_earlier_version_is_understood) {
    static_assert(protocol_newest - protocol_oldest >= 2, "N, N-1 and N-2 at least");
    proto::AgentMessage older = hello();
    older.mutable_hello()->set_protocol(protocol_oldest);
    const auto read = decode_agent_message(bytes_of(older));
    ASSERT_TRUE(read) << read.error().what;
    EXPECT_EQ(std::get<Hello>(*read).protocol, protocol_oldest);
    // The heartbeat that protocol 2 had, byte for byte: field 3, nothing in it.
    const auto beat = decode_agent_message(std::string{"\x1a\x00", 2});
    ASSERT_TRUE(beat) << beat.error().what;
    EXPECT_EQ(std::get<Heartbeat>(*beat), Heartbeat{});
    EXPECT_EQ(*encode(AgentMessage{Heartbeat{}}), (std::string{"\x1a\x00", 2})) << "and one without a sample is that";
}

TEST(Message, from_an_agent_is_refused_with_the_rule_it_breaks) {
    struct Row {
        const char *says, *refusal;
        std::function<void(proto::AgentMessage&)> make;
    };
    const Row rows[] = {
        {"nothing at all", "says nothing", [](auto&) {}},
        {"an empty report", "says nothing", [](auto& m) { m.mutable_report()->set_number(1); }},
        {"a protocol of the future", "speaks protocol 8",
         [](auto& m) { (m = hello()).mutable_hello()->set_protocol(agent_protocol + 1); }},
        {"no protocol", "speaks protocol 0", [](auto& m) { (m = hello()).mutable_hello()->clear_protocol(); }},
        {"no inventory", "not a JSON object", [](auto& m) { m = hello(""); }},
        {"an inventory in YAML", "not a JSON object", [](auto& m) { m = hello("cpu: 4\n"); }},
        {"an unknown field of the inventory", "cpus", [](auto& m) { m = hello("{\"cpus\": 4}"); }},
        {"two inventories", "inventory", [](auto& m) { m = hello("{} {}"); }},
        {"a huge inventory", "at most 1048576", [](auto& m) { m = hello("{" + std::string(1 << 20, ' ') + "}"); }},
        {"more GPUs than a machine has", "GPUs has 320 entries",
         [](auto& m) { m = hello("{\"gpus\": [" + many("{\"model\": \"h200\", \"count\": 64}", 5) + "]}"); }},
        {"more functions than a machine has", "functions has 4097 entries",
         [](auto& m) { m = hello("{\"functions\": [" + many("{\"address\": \"a\"}", devices_max + 1) + "]}"); }},
        {"a function below more bridges than there are", "bridges above a function has 33",
         [](auto& m) {
             m = hello("{\"functions\": [{\"address\": \"a\", \"bridges\": [" + many("\"b\"", 33) + "]}]}");
         }},
        {"a GPU below more bridges than there are", "bridges above a GPU has 33",
         [](auto& m) { m = hello("{\"topology\": [{\"gpu\": 0, \"bridges\": [" + many("\"b\"", 33) + "]}]}"); }},
        {"a GPU that is in many places", "topology has 257",
         [](auto& m) { m = hello("{\"topology\": [" + many("{\"gpu\": 0}", 257) + "]}"); }},
        {"an epoch below zero", "epoch", [](auto& m) { (m = hello()).mutable_hello()->set_epoch_seen(-1); }},
        {"a version of two lines", "one line",
         [](auto& m) { (m = hello()).mutable_hello()->set_agent_version("1\n2"); }},
        {"a known unit of two slices", "2 slices",
         [](auto& m) {
             proto::Unit& unit = *(m = hello()).mutable_hello()->add_units()->mutable_unit();
             unit.set_kind(proto::UNIT_KIND_MEMORY);
             unit.set_size(2);
         }},
        {"a function in a subnet of everybody's", "wider than any tenant's",
         [](auto& m) {
             proto::KnownPort& known = *(m = hello()).mutable_hello()->add_ports();
             known.set_tenant("acme");
             known.mutable_port()->set_mac("02:42:0a:80:10:05");
             known.mutable_port()->set_address("10.128.16.5/7");
             known.mutable_port()->set_subnet("10.0.0.0/7");
         }},
        {"too many units", "known units",
         [](auto& m) {
             m = hello();
             for (std::size_t i = 0; i <= known_units_max; ++i) {
                 proto::Unit& unit = *m.mutable_hello()->add_units()->mutable_unit();
                 unit.set_kind(proto::UNIT_KIND_MEMORY);
                 unit.set_size(1);
             }
         }},
        {"a kind nobody named", "unknown value 0", [](auto& m) { wipe_in(m).mutable_unit()->clear_kind(); }},
        {"a kind of the future", "unknown value 5",
         [](auto& m) { wipe_in(m).mutable_unit()->set_kind(static_cast<proto::UnitKind>(5)); }},
        {"a device beyond 16 bits", "65536", [](auto& m) { wipe_in(m).mutable_unit()->set_device(65536); }},
        {"a wipe of no slices", "slices", [](auto& m) { wipe_in(m).mutable_unit()->set_size(0); }},
        {"slices beyond the GPU", "between 0 and 64", [](auto& m) { wipe_in(m).mutable_unit()->set_start(64); }},
        {"a negative ticket", "ticket", [](auto& m) { wipe_in(m).set_ticket(-1); }},
        {"a long reason", "at most 4096", [](auto& m) { wipe_in(m).set_why(std::string(4097, 'x')); }},
        {"a huge statement", "at most 65536",
         [](auto& m) { wipe_in(m).mutable_evidence()->set_statement(std::string(65537, 'x')); }},
        {"a phase nobody named", "phase", [](auto& m) { m.mutable_report()->mutable_lease()->set_lease(1); }},
        {"an empty request for a certificate", "not a CERTIFICATE REQUEST", [](auto& m) { m.mutable_renewal(); }},
        {"a certificate instead of a request", "not a CERTIFICATE REQUEST",
         [](auto& m) { m.mutable_renewal()->set_request(block("CERTIFICATE", "AA==\n")); }},
        {"a request and a key", "not a CERTIFICATE REQUEST",
         [](auto& m) {
             m.mutable_renewal()->set_request(block("CERTIFICATE REQUEST", "AA==\n") + block("PRIVATE KEY", "AA==\n") +
                                              block("CERTIFICATE REQUEST", "AA==\n"));
         }},
        {"half a request", "not a CERTIFICATE REQUEST",
         [](auto& m) { m.mutable_renewal()->set_request("-----BEGIN CERTIFICATE REQUEST-----\n"); }},
        {"a huge request", "at most 4096",
         [](auto& m) { m.mutable_renewal()->set_request(block("CERTIFICATE REQUEST", std::string(4096, 'A'))); }},
        {"an unknown field of a request", "nobody here knows",
         [](auto& m) {
             proto::RenewalRequest& renewal = *m.mutable_renewal();
             renewal.set_request(block("CERTIFICATE REQUEST", "AA==\n"));
             renewal.GetReflection()->MutableUnknownFields(&renewal)->AddVarint(99, 1);
         }},
        {"a reading that no number here holds", "a reading is -",
         [](auto& m) {
             auto* const reading = sampled_in(m).add_readings();
             reading->set_counter(proto::COUNTER_POWER_MW);
             reading->set_value(~std::uint64_t{0});
         }},
        {"a counter nobody named", "unknown value 0", [](auto& m) { sampled_in(m).add_readings()->clear_counter(); }},
        {"a counter of the future", "unknown value 25",
         [](auto& m) { sampled_in(m).add_readings()->set_counter(static_cast<proto::Counter>(25)); }},
        {"a counter twice", "the counter after one",
         [](auto& m) {
             proto::GpuSample& gpu = sampled_in(m);
             for (int i = 0; i < 2; ++i) gpu.add_readings()->set_counter(proto::COUNTER_POWER_MW);
         }},
        {"a sample of no grade", "the grade of a sample",
         [](auto& m) { m.mutable_heartbeat()->mutable_telemetry()->set_age_ms(1); }},
        {"a sample of tomorrow", "the age of a sample",
         [](auto& m) {
             sampled_in(m);
             m.mutable_heartbeat()->mutable_telemetry()->set_age_ms(-1);
         }},
        {"too many GPUs", "sampled GPUs",
         [](auto& m) {
             for (std::size_t i = 0; i <= sampled_gpus_max; ++i) sampled_in(m);
         }},
        {"too many instances", "sampled instances",
         [](auto& m) {
             proto::GpuSample& gpu = sampled_in(m);
             for (std::size_t i = 0; i <= sampled_instances_max; ++i) gpu.add_instances();
         }},
        {"a GPU with a long name", "at most 96", [](auto& m) { sampled_in(m).set_name(std::string(97, 'x')); }},
        {"a GPU whose name is two lines", "one line", [](auto& m) { sampled_in(m).set_name("a\nb"); }},
        {"an unknown field of a sample", "nobody here knows",
         [](auto& m) {
             proto::GpuSample& gpu = sampled_in(m);
             gpu.GetReflection()->MutableUnknownFields(&gpu)->AddVarint(99, 1);
         }},
        {"an unknown field", "nobody here knows",
         [](auto& m) {
             m.mutable_heartbeat();
             m.GetReflection()->MutableUnknownFields(&m)->AddVarint(99, 1);
         }},
        {"an unknown field far inside", "nobody here knows",
         [](auto& m) {
             proto::Unit& unit = *wipe_in(m).mutable_unit();
             unit.GetReflection()->MutableUnknownFields(&unit)->AddVarint(99, 1);
         }},
    };
    for (const Row& row : rows) {
        proto::AgentMessage message;
        row.make(message);
        const auto read = decode_agent_message(bytes_of(message));
        ASSERT_FALSE(read) << row.says;
        EXPECT_EQ(read.error().code, Code::invalid) << row.says;
        EXPECT_THAT(read.error().what, HasSubstr(row.refusal)) << row.says;
    }
    EXPECT_FALSE(decode_agent_message("\xff\xff\xff"));
    EXPECT_FALSE(decode_agent_message(std::string(message_bytes_max + 1, '\0')));
    EXPECT_FALSE(decode_agent_message(std::string{"\x12\x04\x1a\x02\x22\x01\xff", 7})) << "text that is no UTF-8";
}

TEST(Message, from_the_control_plane_is_refused_as_strictly) {
    struct Row {
        const char *says, *refusal;
        std::function<void(proto::ControlMessage&)> make;
    };
    const Row rows[] = {
        {"nothing at all", "says nothing", [](auto&) {}},
        {"an order without content", "says nothing", [](auto& m) { m.mutable_order()->set_sequence(1); }},
        {"an order without a number", "sequence",
         [](auto& m) { m.mutable_order()->mutable_order()->mutable_start()->set_lease(1); }},
        {"a heartbeat every zero seconds", "heartbeat", [](auto& m) { m.mutable_welcome()->set_epoch(1); }},
        {"an empty certificate", "not a CERTIFICATE", [](auto& m) { m.mutable_renewed(); }},
        {"a key instead of a certificate", "not a CERTIFICATE",
         [](auto& m) { m.mutable_renewed()->set_certificate(block("PRIVATE KEY", "AA==\n")); }},
        {"a huge certificate", "at most 4096",
         [](auto& m) { m.mutable_renewed()->set_certificate(block("CERTIFICATE", std::string(4096, 'A'))); }},
        {"a refusal of two lines", "one line", [](auto& m) { m.mutable_not_renewed()->set_why("a\nb"); }},
        {"more than a whole GPU", "between 1 and 1000",
         [](auto& m) {
             m.mutable_order()->set_sequence(1);
             proto::Prepare& prepare = *m.mutable_order()->mutable_order()->mutable_prepare();
             prepare.set_mechanism(proto::MECHANISM_MPS);
             prepare.set_tier(proto::TIER_VM);
             prepare.add_gpus()->set_share(1001);
         }},
        {"a tier nobody named", "tier",
         [](auto& m) {
             m.mutable_order()->set_sequence(1);
             m.mutable_order()->mutable_order()->mutable_prepare()->set_mechanism(proto::MECHANISM_MPS);
         }},
        {"too many wipes", "wipes",
         [](auto& m) {
             m.mutable_order()->set_sequence(1);
             for (std::size_t i = 0; i <= wipes_max; ++i) {
                 proto::Unit& unit =
                     *m.mutable_order()->mutable_order()->mutable_sanitize()->add_wipes()->mutable_unit();
                 unit.set_kind(proto::UNIT_KIND_MEMORY);
                 unit.set_size(1);
             }
         }},
    };
    for (const Row& row : rows) {
        proto::ControlMessage message;
        row.make(message);
        const auto read = decode_control_message(bytes_of(message));
        ASSERT_FALSE(read) << row.says;
        EXPECT_THAT(read.error().what, HasSubstr(row.refusal)) << row.says;
    }
}

TEST(Message, what_the_other_side_would_refuse_is_not_sent) {
    const auto sent = [](decltype(Order::what) what, std::int64_t epoch = 1) {
        return encode(ControlMessage{NumberedOrder{1, {epoch, std::move(what)}}}).has_value();
    };
    const auto wipe_of = [](std::string lease, std::vector<std::string> tenants) {
        return Release{1, {{UnitKind::memory, 0, 0, 1, 1, std::move(lease), std::move(tenants)}}};
    };
    EXPECT_TRUE(sent(wipe_of("lease-1", {"acme"})));
    EXPECT_FALSE(sent(Release{-1, {}}));
    EXPECT_FALSE(sent(Release{1, {}}, epoch_max + 1));
    Prepare slow{.lease = 1};
    slow.program.checkpoint_within = Duration{save_ms_max + 1};
    EXPECT_FALSE(sent(slow));
    EXPECT_FALSE(sent(wipe_of(std::string(300, 'x'), {})));
    EXPECT_FALSE(sent(wipe_of("lease-1", {"a\nb"})));
    EXPECT_FALSE(sent(wipe_of("lease-1", std::vector<std::string>(tenants_of_a_wipe_max + 1, "a"))));
    EXPECT_FALSE(sent(Sanitize{std::vector<WipeTask>(wipes_max + 1)}));
    EXPECT_FALSE(encode(AgentMessage{Hello{.epoch_seen = epoch_max + 1}}));
    EXPECT_FALSE(encode(AgentMessage{Hello{.protocol = 99}}));
    EXPECT_FALSE(encode(AgentMessage{RenewalRequest{"a request"}}));
    EXPECT_FALSE(encode(ControlMessage{Renewed{"a certificate"}}));
}

TEST(Message, the_largest_hello_within_the_limits_fits_into_a_message) {
    Hello hello;
    hello.units.resize(known_units_max, {{UnitKind::memory, 65535, 63}, true, std::numeric_limits<Key>::max()});
    const auto bytes = encode(AgentMessage{hello});
    ASSERT_TRUE(bytes) << bytes.error().what;
    EXPECT_EQ(std::get<Hello>(*decode_agent_message(*bytes)), hello);
}

}  // namespace
}  // namespace bulkhead::wire
