#include "bulkhead/wire/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <set>
#include <span>

#include "bulkhead/codec/unicode.hpp"
#include "bulkhead/model/describe.hpp"
#include "bulkhead/model/subnet.hpp"

namespace bulkhead::wire {
namespace {

constexpr std::int64_t slices_max = 64;
constexpr std::int64_t heartbeat_ms_max = 3'600'000;
constexpr std::int64_t endless = std::numeric_limits<std::int64_t>::max();

struct Span {
    std::int64_t least = 0, most = endless;
};

bool is_base64(char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '/' ||
           c == '=' || c == '\n';
}

// Keeps the first objection and is deaf to the rest.
class Objections {
public:
    void number(std::string_view what, std::int64_t value, Span allowed) {
        if (value >= allowed.least && value <= allowed.most) return;
        object("{} is {}; it lies between {} and {}", what, value, allowed.least, allowed.most);
    }
    void count(std::string_view what, std::size_t value, std::size_t most) {
        if (value > most) object("{} has {} entries; at most {} are allowed", what, value, most);
    }
    void line(std::string_view what, std::string_view text, std::size_t most = name_bytes_max) {
        if (text.size() > most) object("{} has {} bytes; at most {} are allowed", what, text.size(), most);
        if (!text.empty() && (!is_valid(Format::line, text) || first_invalid_utf8(text) != std::string_view::npos))
            object("{} is not one line of UTF-8", what);
    }
    void check(bool holds, std::string_view otherwise) {
        if (!holds) object("{}", otherwise);
    }
    void bytes(std::string_view what, std::string_view text, std::size_t most) {
        if (text.size() > most) object("{} has {} bytes; at most {} are allowed", what, text.size(), most);
    }
    // One block of PEM with that label, by its looks; what is in it is for whoever reads certificates.
    void pem(std::string_view what, std::string_view text, std::string_view label) {
        bytes(what, text, pem_bytes_max);
        const std::string first = fmt::format("-----BEGIN {}-----\n", label),
                          last = fmt::format("-----END {}-----\n", label);
        if (text.size() < first.size() + last.size() || !text.starts_with(first) || !text.ends_with(last) ||
            !std::ranges::all_of(text.substr(first.size(), text.size() - first.size() - last.size()), is_base64))
            object("{} is not a {} in PEM", what, label);
    }
    template <Worded E>
    void one_of(std::string_view what, E value) {
        if (static_cast<std::size_t>(value) >= words(value).size())
            object("{} has the unknown value {}", what, static_cast<unsigned>(value));
    }
    Result<> verdict() && {
        if (first_) return fail(Code::invalid, std::move(*first_), "");
        return {};
    }

private:
    template <class... Args>
    void object(fmt::format_string<Args...> words, Args&&... args) {
        if (!first_) first_ = fmt::format(words, std::forward<Args>(args)...);
    }
    std::optional<std::string> first_;
};

void look_at_slices(Objections& out, std::string_view what, unsigned start, unsigned size, unsigned size_least) {
    out.number(what, size, {size_least, slices_max});
    out.number(what, std::int64_t{start} + size, {0, slices_max});
}

void look_at(Objections& out, std::span<const WipeTask> wipes) {
    out.count("wipes", wipes.size(), wipes_max);
    for (const WipeTask& wipe : wipes) {
        out.one_of("the kind of a unit to wipe", wipe.kind);
        look_at_slices(out, "slices of a unit to wipe", wipe.start, wipe.size, 1);
        out.number("the ticket of a wipe", wipe.ticket, {});
        out.line("lease", wipe.lease);
        out.count("tenants of a wipe", wipe.tenants.size(), tenants_of_a_wipe_max);
        for (const std::string& tenant : wipe.tenants) out.line("tenant", tenant);
    }
}

// What these say is set as root, on the host's side of a NIC: nothing of it is taken as it comes.
void look_at(Objections& out, const FabricPort& port) {
    const auto mac = parse_octets(port.mac, 6);
    out.check(mac && (*mac >> 40 & 3) == 2, "the MAC of a function is not a locally administered unicast one");
    const auto address = parse_host_address(port.address);
    const auto subnet = parse_subnet(port.subnet);
    out.check(address && subnet && address->network() == *subnet,
              "the address of a function is not in the subnet beside it");
    // No policy gives a tenant more, and whoever says so takes it from everybody.
    out.check(!address || address->prefix >= 8, "the subnet of a function is wider than any tenant's");
    out.number("the VLAN of a function", port.vlan, {0, 4094});
    out.number("the rate of a function", port.rate_mbps, {0, 10'000'000});
    out.number("the DSCP of a function", port.dscp, {0, 63});
    for (const std::string* guid : {&port.node_guid, &port.port_guid})
        out.check(guid->empty() || parse_octets(*guid, 8), "the GUID of a function is not eight bytes");
}

void look_at_ports(Objections& out, const Prepare& prepare) {
    out.count("ports", prepare.ports.size(), prepare.functions.size());
    std::set<std::uint16_t> seen;
    for (const FabricPort& port : prepare.ports) {
        out.check(std::ranges::find(prepare.functions, port.function) != prepare.functions.end() &&
                      seen.insert(port.function).second,
                  "a port is of a function that the lease has not, or has another port for");
        look_at(out, port);
    }
}

void look_at(Objections& out, const Prepare& prepare) {
    out.number("lease", prepare.lease, {});
    out.line("tenant", prepare.tenant);
    out.line("workload", prepare.workload);
    out.one_of("mechanism", prepare.mechanism);
    out.one_of("tier", prepare.tier);
    out.count("gpus", prepare.gpus.size(), gpu_parts_max);
    for (const GpuPart& part : prepare.gpus) {
        look_at_slices(out, "slices of a GPU", part.start, part.size, 0);
        out.line("profile", part.profile);
        out.number("the share of a GPU", part.share, {1, 1000});
    }
    out.count("drives", prepare.drives.size(), devices_max);
    out.count("functions", prepare.functions.size(), devices_max);
    look_at_ports(out, prepare);
    out.count("words of a command", prepare.program.words.size(), command_words_max);
    out.count("variables of a command", prepare.program.environment.size(), command_words_max);
    out.count("words of a checkpoint command", prepare.program.checkpoint.size(), command_words_max);
    for (const std::vector<std::string>* list :
         {&prepare.program.words, &prepare.program.environment, &prepare.program.checkpoint})
        for (const std::string& word : *list) out.bytes("a word of a command", word, command_word_bytes_max);
    out.number("the CPU of a command", prepare.program.cpu_thousandths, {});
    out.number("the memory of a command", prepare.program.memory_bytes, {});
    out.number("the time a checkpoint may take", prepare.program.checkpoint_within.ms, {0, save_ms_max});
}

void look_at(Objections& out, const Start& start) { out.number("lease", start.lease, {}); }

void look_at(Objections& out, const Release& release) {
    out.number("lease", release.lease, {});
    look_at(out, release.wipes);
}

void look_at(Objections& out, const Sanitize& sanitize) { look_at(out, sanitize.wipes); }

void look_at(Objections& out, const Withdraw& withdraw) { look_at(out, withdraw.wipes); }

void look_at(Objections& out, const TestFabric& test) { out.number("the ticket of a test", test.ticket, {1}); }

void look_at(Objections& out, const NumberedOrder& order) {
    out.number("the sequence of an order", order.sequence, {1});
    out.number("the epoch of an order", order.order.epoch, {0, epoch_max});
    std::visit([&](const auto& what) { look_at(out, what); }, order.order.what);
}

void look_at(Objections& out, const Welcome& welcome) {
    out.number("epoch", welcome.epoch, {0, epoch_max});
    out.number("the heartbeat's interval in ms", welcome.heartbeat_every.ms, {1, heartbeat_ms_max});
}

void look_at(Objections& out, const Acknowledged& acknowledged) {
    out.number("the number of an acknowledged report", acknowledged.number, {});
}

void look_at(Objections& out, const GoAway& go_away) { out.line("why", go_away.why, why_bytes_max); }

void look_at(Objections& out, const Renewed& renewed) {
    out.pem("the renewed certificate", renewed.certificate, "CERTIFICATE");
}

void look_at(Objections& out, const NotRenewed& refusal) { out.line("why", refusal.why, why_bytes_max); }

void look_at(Objections& out, const OutputWanted& wanted) {
    out.number("lease", wanted.place.lease, {});
    out.number("where output is read from", wanted.place.from, {});
}

void look_at(Objections& out, const Output& output) {
    out.number("where output was read from", output.piece.from, {});
    out.bytes("a piece of output", output.piece.bytes, output_piece_bytes_max);
    out.line("why", output.why, why_bytes_max);
}

void look_at(Objections& out, const LeaseReport& report) {
    out.number("lease", report.lease, {});
    out.one_of("phase", report.phase);
    out.line("why", report.why, why_bytes_max);
    out.bytes("the output of a command", report.output, output_bytes_max);
    for (const std::int64_t bytes : {report.printed.out, report.printed.err, report.printed.out_kept})
        out.number("how much a command printed", bytes, {});
    if (report.saved) out.bytes("what a checkpoint command printed", report.saved->words, saved_bytes_max);
    out.one_of("fault", report.fault);
    if (report.exit_status) out.number("the exit status of a command", *report.exit_status, {0, 255});
}

void look_at(Objections& out, const WipeReport& report) {
    out.one_of("kind", report.kind);
    look_at_slices(out, "slices of a wiped unit", report.start, report.size, 1);
    out.number("ticket", report.ticket, {});
    out.line("why", report.why, why_bytes_max);
    out.bytes("the evidence's statement", report.evidence.statement, statement_bytes_max);
    out.line("the evidence's key", report.evidence.key);
    out.line("the evidence's signature", report.evidence.signature);
}

void look_at(Objections& out, const FaultReport& report) {
    out.one_of("kind", report.kind);
    out.line("why", report.why, why_bytes_max);
}

void look_at(Objections& out, const FabricTestReport& report) {
    out.number("the ticket of a test", report.ticket, {});
    out.line("why", report.why, why_bytes_max);
    out.bytes("the evidence's statement", report.evidence.statement, statement_bytes_max);
    out.line("the evidence's key", report.evidence.key);
    out.line("the evidence's signature", report.evidence.signature);
    out.check(report.why.empty() != report.evidence.statement.empty(), "a test was made, or there is a reason why not");
}

void look_at(Objections& out, const Report& report) {
    out.number("the number of a report", report.number, {});
    std::visit([&](const auto& what) { look_at(out, what); }, report.what);
}

void look_at(Objections& out, UnitId unit) {
    out.one_of("the kind of a unit", unit.kind);
    out.number("the slice of a unit", unit.slice, {0, slices_max - 1});
}

// More than any machine has. What is in it is gone through while every other node waits.
void look_at(Objections& out, const GpuNodeStatus& inventory) {
    std::size_t gpus = 0;
    for (const NodeGpus& group : inventory.gpus) gpus += static_cast<std::size_t>(group.count);
    out.count("the inventory's GPUs", gpus, node_gpus_max);
    out.count("the inventory's topology", inventory.topology.size(), node_gpus_max);
    for (const GpuPosition& gpu : inventory.topology) {
        out.count("the bridges above a GPU", gpu.bridges.size(), bridges_max);
        for (const auto* near : {&gpu.sameSwitch, &gpu.sameNuma, &gpu.sameSocket, &gpu.otherSockets})
            out.count("the GPUs near a GPU", near->size(), node_gpus_max);
        out.count("the NVLink peers of a GPU", gpu.nvlinkPeers.size(), node_gpus_max);
    }
    out.count("the inventory's drives", inventory.drives.size(), devices_max);
    out.count("the inventory's functions", inventory.functions.size(), devices_max);
    for (const NodeFunction& function : inventory.functions)
        out.count("the bridges above a function", function.bridges.size(), bridges_max);
    out.count("the inventory's capabilities", inventory.capabilities.size(), node_facts_max);
    out.count("the inventory's versions", inventory.versions.size(), node_facts_max);
}

void look_at(Objections& out, const Hello& hello) {
    if (hello.protocol < protocol_oldest || hello.protocol > protocol_newest)
        out.number("the protocol version", hello.protocol, {protocol_oldest, protocol_newest});
    out.number("the highest epoch seen", hello.epoch_seen, {0, epoch_max});
    out.line("the agent's version", hello.agent_version);
    out.line("the boot id", hello.boot_id);
    look_at(out, hello.inventory);
    out.count("known leases", hello.leases.size(), known_leases_max);
    std::size_t units = hello.units.size();
    for (const KnownLease& lease : hello.leases) {
        out.number("a known lease", lease.lease, {});
        out.one_of("the phase of a known lease", lease.phase);
        out.line("the tenant of a known lease", lease.tenant);
        for (const UnitId unit : lease.units) look_at(out, unit);
        units += lease.units.size();
    }
    out.count("known units, with those of known leases,", units, known_units_max);
    for (const KnownUnit& known : hello.units) {
        look_at(out, known.unit);
        out.number("the ticket of a known unit", known.ticket, {});
    }
    out.count("known ports", hello.ports.size(), devices_max);
    out.check(hello.ports.empty() || hello.protocol >= agent_protocol_fabric,
              "an agent of this protocol version knows no ports");
    for (const KnownPort& known : hello.ports) {
        out.line("the tenant of a known port", known.tenant);
        look_at(out, known.port);
    }
}

void look_at(Objections& out, const std::vector<Measured>& readings) {
    // Each once, in their order: so no counter can be told twice.
    for (std::size_t i = 0; i < readings.size(); ++i) {
        out.one_of("a counter", readings[i].counter);
        out.number("a reading", static_cast<std::int64_t>(readings[i].value), {});
        if (i > 0)
            out.number("the counter after one", static_cast<std::int64_t>(readings[i].counter),
                       {static_cast<std::int64_t>(readings[i - 1].counter) + 1});
    }
}

void look_at(Objections& out, const Heartbeat& heartbeat) {
    if (!heartbeat.telemetry) return;
    out.one_of("the grade of a sample", heartbeat.telemetry->grade);
    out.number("the age of a sample in ms", heartbeat.telemetry->age.ms, {});
    out.count("sampled GPUs", heartbeat.telemetry->gpus.size(), sampled_gpus_max);
    for (const GpuSample& gpu : heartbeat.telemetry->gpus) {
        for (const std::string* text : {&gpu.uuid, &gpu.bus, &gpu.name})
            out.line("what a GPU is called", *text, sampled_name_bytes_max);
        look_at(out, gpu.readings);
        out.count("sampled instances", gpu.instances.size(), sampled_instances_max);
        for (const InstanceSample& instance : gpu.instances) {
            out.number("the start of an instance", instance.start, {0, slices_max - 1});
            out.line("the profile of an instance", instance.profile, sampled_name_bytes_max);
            out.line("what an instance is called", instance.uuid, sampled_name_bytes_max);
            look_at(out, instance.readings);
        }
    }
}

void look_at(Objections& out, const RenewalRequest& renewal) {
    out.pem("the request for a certificate", renewal.request, "CERTIFICATE REQUEST");
}

template <class Message>
Result<> checked(const Message& message) {
    Objections objections;
    std::visit([&](const auto& what) { look_at(objections, what); }, message);
    return std::move(objections).verdict();
}

}  // namespace

Result<> check(const AgentMessage& message) { return checked(message); }
Result<> check(const ControlMessage& message) { return checked(message); }

std::string presentable(std::string_view why) {
    std::string out;
    out.reserve(std::min(why.size(), why_bytes_max));
    while (!why.empty()) {
        const auto rune = front_rune(why);
        const std::size_t taken = rune ? rune->bytes : 1;
        const bool printable = rune && rune->value >= 0x20 && rune->value != 0x7f;
        const std::string_view piece = printable ? why.substr(0, taken) : "?";
        if (out.size() + piece.size() > why_bytes_max) break;
        out += piece;
        why.remove_prefix(taken);
    }
    return out;
}

}  // namespace bulkhead::wire
