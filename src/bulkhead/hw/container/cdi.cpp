#include "bulkhead/hw/container/cdi.hpp"

#include <fmt/core.h>

#include <boost/json.hpp>
#include <exception>

namespace bulkhead::container {

namespace {

namespace json = boost::json;

json::object edits_of(const LeasedDevice& device) {
    json::object edits;
    for (const DeviceNode& node : device.nodes) {
        if (!edits.contains("deviceNodes")) edits["deviceNodes"] = json::array{};
        edits["deviceNodes"].as_array().push_back({{"path", node.path},
                                                   {"type", std::string(1, node.type)},
                                                   {"major", node.major},
                                                   {"minor", node.minor},
                                                   {"fileMode", 0666},  // what keeps others out is the control group
                                                   {"permissions", "rw"}});
    }
    for (const ReadOnlyMount& mount : device.mounts) {
        if (!edits.contains("mounts")) edits["mounts"] = json::array{};
        edits["mounts"].as_array().push_back({{"hostPath", mount.source},
                                              {"containerPath", mount.target},
                                              {"options", {"ro", "nosuid", "nodev", "rbind"}}});
    }
    for (const auto& [name, value] : device.environment) {
        if (!edits.contains("env")) edits["env"] = json::array{};
        edits["env"].as_array().push_back(json::string{name + "=" + value});
    }
    return edits;
}

// The member, made if it is not there.
json::array& list_in(json::object& object, std::string_view name) {
    json::value& list = object[json::string_view{name.data(), name.size()}];
    if (!list.is_array()) list = json::array{};
    return list.as_array();
}

void apply_edits(json::object& config, const json::object& edits) {
    json::object& linux_part = config.at("linux").as_object();
    if (const json::value* nodes = edits.if_contains("deviceNodes"))
        for (const json::value& node : nodes->as_array()) {
            list_in(linux_part, "devices")
                .push_back({{"path", node.at("path")},
                            {"type", node.at("type")},
                            {"major", node.at("major")},
                            {"minor", node.at("minor")},
                            {"fileMode", node.at("fileMode")}});
            list_in(linux_part.at("resources").as_object(), "devices")
                .push_back({{"allow", true},
                            {"type", node.at("type")},
                            {"major", node.at("major")},
                            {"minor", node.at("minor")},
                            {"access", node.at("permissions")}});
        }
    if (const json::value* mounts = edits.if_contains("mounts"))
        for (const json::value& mount : mounts->as_array())
            list_in(config, "mounts")
                .push_back({{"destination", mount.at("containerPath")},
                            {"type", "bind"},
                            {"source", mount.at("hostPath")},
                            {"options", mount.at("options")}});
    if (const json::value* variables = edits.if_contains("env"))
        for (const json::value& variable : variables->as_array())
            list_in(config.at("process").as_object(), "env").push_back(variable);
}

}  // namespace

std::string cdi_file_name(LeaseKey lease) { return fmt::format("bulkhead.dev-gpu_lease-{}.json", lease); }
std::string cdi_device_name(LeaseKey lease) { return fmt::format("{}=lease-{}", cdi_kind, lease); }

std::string cdi_text(const LeasedDevice& device) {
    return json::serialize(json::object{
        {"cdiVersion", "0.6.0"},
        {"kind", json::string_view{cdi_kind.data(), cdi_kind.size()}},
        {"devices", {{{"name", fmt::format("lease-{}", device.lease)}, {"containerEdits", edits_of(device)}}}}});
}

Result<std::string> with_cdi(std::string_view oci_config, std::string_view cdi) {
    try {
        json::parse_options options;
        options.allow_invalid_utf8 = true;
        json::value config = json::parse(json::string_view{oci_config.data(), oci_config.size()}, {}, options);
        const json::value file = json::parse(json::string_view{cdi.data(), cdi.size()}, {}, options);
        for (const json::value& device : file.at("devices").as_array())
            apply_edits(config.as_object(), device.at("containerEdits").as_object());
        return json::serialize(config);
    } catch (const std::exception& wrong) {
        return fail(Code::corrupt,
                    fmt::format("the CDI text of {} bytes cannot be applied: {}", cdi.size(), wrong.what()),
                    "both texts are of our own making: report this");
    }
}

}  // namespace bulkhead::container
