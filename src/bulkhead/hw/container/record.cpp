#include "bulkhead/hw/container/record.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <boost/json.hpp>
#include <exception>

namespace bulkhead::container {

namespace {

namespace json = boost::json;

constexpr int record_version = 1;

template <class Enum>
json::string word(Enum value) {
    return json::string{words(value)[static_cast<std::size_t>(value)]};
}

template <class Enum>
Enum value_of(const json::value& text) {
    const auto all = words(Enum{});
    const auto at = std::ranges::find(all, std::string_view{text.as_string()});
    if (at == all.end()) throw std::runtime_error{fmt::format("unknown word {}", std::string_view{text.as_string()})};
    return static_cast<Enum>(at - all.begin());
}

std::string text_of(const json::value& value) { return std::string{std::string_view{value.as_string()}}; }

json::array array_of(const std::vector<std::string>& texts) { return json::array(texts.begin(), texts.end()); }

json::object tree_of(const TenantSpec& spec) {
    json::array environment, devices, mounts, rdma;
    for (const RdmaLimit& limit : spec.limits.rdma)
        rdma.push_back(json::array{limit.device, limit.handles, limit.objects});
    for (const auto& [name, value] : spec.environment) environment.push_back(json::array{name, value});
    for (const DeviceNode& node : spec.devices)
        devices.push_back(json::array{node.path, std::string(1, node.type), node.major, node.minor});
    for (const ReadOnlyMount& mount : spec.mounts) mounts.push_back(json::array{mount.source, mount.target});
    return {
        {"version", record_version},
        {"lease", spec.lease},
        {"tenant", spec.tenant},
        {"tier", word(spec.tier)},
        {"command", array_of(spec.command)},
        {"checkpoint", array_of(spec.checkpoint)},
        {"environment", environment},
        {"workDir", spec.work_dir},
        {"ids", {spec.ids.first, spec.ids.count}},
        {"devices", devices},
        {"mounts", mounts},
        {"hidden", array_of(spec.hidden)},
        {"rootfs", spec.rootfs},
        {"network", word(spec.network)},
        {"networkSpace", spec.network_space},
        {"cpus", spec.cpus},
        {"rdma", rdma},
        {"limits", {spec.limits.memory_bytes, spec.limits.cpu_thousandths, spec.limits.pids, spec.limits.log_bytes}}};
}

TenantSpec spec_of_tree(const json::value& tree) {
    TenantSpec spec;
    spec.lease = tree.at("lease").to_number<LeaseKey>();
    spec.tenant = text_of(tree.at("tenant"));
    spec.tier = value_of<Tier>(tree.at("tier"));
    for (const json::value& argument : tree.at("command").as_array()) spec.command.push_back(text_of(argument));
    if (const json::value* saver = tree.as_object().if_contains("checkpoint"))  // likewise
        for (const json::value& argument : saver->as_array()) spec.checkpoint.push_back(text_of(argument));
    for (const json::value& pair : tree.at("environment").as_array())
        spec.environment.emplace_back(text_of(pair.at(0)), text_of(pair.at(1)));
    spec.work_dir = text_of(tree.at("workDir"));
    spec.ids = {tree.at("ids").at(0).to_number<std::uint32_t>(), tree.at("ids").at(1).to_number<std::uint32_t>()};
    for (const json::value& node : tree.at("devices").as_array())
        spec.devices.push_back({text_of(node.at(0)), node.at(1).as_string().at(0),
                                node.at(2).to_number<std::uint32_t>(), node.at(3).to_number<std::uint32_t>()});
    for (const json::value& mount : tree.at("mounts").as_array())
        spec.mounts.push_back({text_of(mount.at(0)), text_of(mount.at(1))});
    if (const json::value* hidden = tree.as_object().if_contains("hidden"))  // records of before have none
        for (const json::value& path : hidden->as_array()) spec.hidden.push_back(text_of(path));
    spec.rootfs = text_of(tree.at("rootfs"));
    spec.network = value_of<Network>(tree.at("network"));
    if (const json::value* space = tree.as_object().if_contains("networkSpace")) spec.network_space = text_of(*space);
    if (const json::value* cpus = tree.as_object().if_contains("cpus")) spec.cpus = text_of(*cpus);  // likewise
    const json::value& limits = tree.at("limits");
    spec.limits = {limits.at(0).to_number<std::int64_t>(),
                   limits.at(1).to_number<std::int64_t>(),
                   limits.at(2).to_number<std::int64_t>(),
                   limits.at(3).to_number<std::int64_t>(),
                   {}};
    if (const json::value* rdma = tree.as_object().if_contains("rdma"))  // likewise
        for (const json::value& limit : rdma->as_array())
            spec.limits.rdma.push_back(
                {text_of(limit.at(0)), limit.at(1).to_number<std::uint32_t>(), limit.at(2).to_number<std::uint32_t>()});
    return spec;
}

Outcome outcome_of_tree(const json::value& tree) {
    Outcome outcome;
    const std::string state = text_of(tree.at("state"));
    if (state == "failed") {
        const json::value& error = tree.at("error");
        outcome.state = Outcome::State::failed;
        outcome.error = {static_cast<Code>(error.at(0).to_number<int>()), text_of(error.at(1)), text_of(error.at(2))};
        if (const json::value* program = tree.as_object().if_contains("program"))  // records from before have none
            outcome.exit.code = program->to_number<int>();
    } else if (state == "exited") {
        outcome.state = Outcome::State::exited;
        outcome.exit = {tree.at("code").to_number<int>(), tree.at("signal").to_number<int>(),
                        tree.at("memoryKills").to_number<std::int64_t>(),
                        Instant{tree.at("when").to_number<std::int64_t>()}};
    } else if (state != "launched") {
        throw std::runtime_error{"unknown state " + state};
    }
    return outcome;
}

// Exceptions of the JSON library stay here.
template <class Read>
auto read_record(std::string_view record, std::string_view kind, Read read) -> Result<decltype(read(json::value{}))> {
    try {
        json::parse_options options;
        options.allow_invalid_utf8 = true;  // arguments are bytes, not text
        const json::value tree = json::parse(json::string_view{record.data(), record.size()}, {}, options);
        if (tree.at("version").to_number<int>() != record_version) throw std::runtime_error{"unknown version"};
        return read(tree);
    } catch (const std::exception& wrong) {
        return fail(Code::corrupt,
                    fmt::format("a {} record of {} bytes does not read: {}", kind, record.size(), wrong.what()),
                    "stop the lease and remove it; its processes are found by their cgroup");
    }
}

}  // namespace

std::string record_of(const TenantSpec& spec) { return json::serialize(tree_of(spec)); }

Result<TenantSpec> spec_of(std::string_view record) { return read_record(record, "lease", spec_of_tree); }

std::string record_of(const Outcome& outcome) {
    json::object tree{{"version", record_version}};
    switch (outcome.state) {
        case Outcome::State::launched:
            tree["state"] = "launched";
            break;
        case Outcome::State::failed:
            tree["state"] = "failed";
            tree["error"] = {static_cast<int>(outcome.error.code), outcome.error.what, outcome.error.remedy};
            if (outcome.exit.code != 0) tree["program"] = outcome.exit.code;
            break;
        case Outcome::State::exited:
            tree["state"] = "exited";
            tree["code"] = outcome.exit.code;
            tree["signal"] = outcome.exit.signal;
            tree["memoryKills"] = outcome.exit.memory_kills;
            tree["when"] = outcome.exit.when.ms;
    }
    return json::serialize(tree);
}

Result<Outcome> outcome_of(std::string_view record) { return read_record(record, "outcome", outcome_of_tree); }

std::string record_of(const Checkpoint& checkpoint) {
    return json::serialize(
        json::object{{"version", record_version}, {"saved", checkpoint.saved}, {"words", checkpoint.words}});
}

Result<Checkpoint> checkpoint_of(std::string_view record) {
    return read_record(record, "checkpoint", [](const json::value& tree) {
        return Checkpoint{tree.at("saved").as_bool(), text_of(tree.at("words"))};
    });
}

}  // namespace bulkhead::container
