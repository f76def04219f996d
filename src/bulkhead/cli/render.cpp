// `render`: leases and the fabric as files that other programs read.
#include "bulkhead/cli/render.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <ostream>
#include <regex>

#include "bulkhead/cli/door.hpp"
#include "bulkhead/cli/objects.hpp"
#include "bulkhead/codec/decode.hpp"
#include "bulkhead/model/rendered.hpp"
#include "bulkhead/render/nccl_topology.hpp"
#include "bulkhead/render/partitions.hpp"
#include "bulkhead/render/qos_plan.hpp"

namespace bulkhead::cli {

namespace {

namespace fs = std::filesystem;

struct RenderOptions {
    std::string lease, node, folder, interface = "$INTERFACE";
};

Result<> write_rendered(const fs::path& path, const std::string& text) {
    std::error_code failed;
    fs::create_directories(path.parent_path(), failed);
    // Whoever reads it while it is written reads the one before.
    const fs::path fresh = path.string() + ".new";
    std::ofstream file{fresh, std::ios::binary | std::ios::trunc};
    file << text;
    file.close();
    if (file) fs::rename(fresh, path, failed);
    if (!file || failed)
        return fail(Code::unavailable, fmt::format("{} cannot be written", path.string()), "another -o");
    return {};
}

// Into a folder, below it one for each node, and the fleet's own in the folder itself; else to the output, which one
// file fits alone.
int show_rendered(const std::vector<RenderedFile>& files, const RenderOptions& options, Context& context) {
    if (options.folder.empty()) {
        for (const RenderedFile& file : files) {
            if (files.size() > 1) context.out << "# " << file.node << ' ' << file.name << '\n';
            context.out << file.text;
        }
        return done;
    }
    for (const RenderedFile& file : files) {
        const fs::path path = fs::path{options.folder} / file.node / file.name;
        if (auto written = write_rendered(path, file.text); !written) return report(context, written.error());
        context.out << path.string() << '\n';
    }
    return done;
}

// Names in an answer become names of files: a server is not asked where to write.
bool is_plain(const RenderedFile& file) {
    return is_valid(Format::dotted, file.node) &&
           (file.name == render::nccl_topology_name || file.name == render::nccl_environment_name);
}

int render_nccl(const RenderOptions& options, std::string_view which, const DoorOptions& door, Context& context) {
    auto client = connect(door);
    if (!client) return report(context, client.error());
    std::string target = target_of("leases", options.lease, "nccl");
    if (!options.node.empty())
        target += fmt::format("{}node={}", target.find('?') == target.npos ? '?' : '&', percent_encoded(options.node));
    const auto reply = client->get(target);
    if (!reply) return report(context, reply.error());
    const auto answer = from_json<RenderedFiles>("the server's answer", reply->body, {});
    if (!answer) return report(context, answer.error());
    std::vector<RenderedFile> files;
    for (const RenderedFile& file : answer->files) {
        if (!is_plain(file))
            return report(context, Error{Code::corrupt, "the server named a file that none is called", ""});
        // A folder gets both: the one names the other.
        if (!options.folder.empty() || file.name == which) files.push_back(file);
    }
    return show_rendered(files, options, context);
}

// Lists of partitions that are no more: whoever reads the folder would go on with them.
void remove_stale_lists(const fs::path& folder, const std::vector<RenderedFile>& files) {
    static const std::regex list{"0x[0-9a-f]{4}\\.guids"};
    std::error_code failed;
    std::vector<fs::path> stale;
    for (fs::directory_iterator at{folder, failed}, end; !failed && at != end; at.increment(failed)) {
        const std::string name = at->path().filename().string();
        if (std::regex_match(name, list) && std::ranges::find(files, name, &RenderedFile::name) == files.end())
            stale.push_back(at->path());
    }
    for (const fs::path& path : stale) fs::remove(path, failed);
}

int render_partitions(const RenderOptions& options, const DoorOptions& door, Context& context) {
    auto client = connect(door);
    if (!client) return report(context, client.error());
    const auto leases = list_all(*client, {ObjectKind::lease, {}});
    if (!leases) return report(context, leases.error());
    const auto plan = render::plan_partitions(leases->objects.leases);
    if (!plan) return report(context, plan.error());
    std::vector<RenderedFile> files{{"", "partitions.conf", render::partitions_conf(*plan)}};
    if (!options.folder.empty()) {
        for (const render::Partition& partition : *plan)
            files.push_back({"", fmt::format("{:#06x}.guids", partition.key), render::guid_list(partition)});
        remove_stale_lists(options.folder, files);
    }
    return show_rendered(files, options, context);
}

int render_qos(const RenderOptions& options, const DoorOptions& door, Context& context) {
    auto client = connect(door);
    if (!client) return report(context, client.error());
    const auto policies = list_all(*client, {ObjectKind::policy, {}});
    if (!policies) return report(context, policies.error());
    const std::vector<FleetPolicy>& list = policies->objects.policies;
    if (list.empty() || !list.front().spec.fabric)
        return report(context, Error{Code::not_found, "the FleetPolicy declares no fabric",
                                     "add spec.fabric: examples/fabric has one"});
    auto text = render::qos_plan(*list.front().spec.fabric, options.interface);
    if (!text) return report(context, text.error());
    return show_rendered({{"", "qos.sh", *std::move(text)}}, options, context);
}

}  // namespace

void add_render(Command program, Context& context) {
    Command command = program.add_subcommand("render", "A lease, or the fabric, as files that other programs read.");
    command.require_subcommand();
    const auto add = [&](const char* name, const char* says, const char* example, bool of_lease, auto&& does) {
        Command sub = command.add_subcommand(name, says);
        auto options = std::make_shared<RenderOptions>();
        const auto door = add_door(sub);
        if (of_lease) {
            sub.add_option("LEASE", options->lease, "The lease.").required().type_name("");
            sub.add_option("--node", options->node, "Only its part on this node.").type_name("NODE");
        }
        sub.add_option("-o,--output-dir", options->folder, "Write files below this folder instead of printing.")
            .type_name("DIR");
        if (std::string_view{name} == "qos")
            sub.add_option("--interface", options->interface, "The host's port. Default: $INTERFACE.")
                .type_name("NAME");
        sub.footer(fmt::format("Example:\n  {}", example));
        sub.callback([options, door, &context, does] { context.status = does(*options, *door, context); });
    };
    add("nccl", "The topology file NCCL reads, of exactly what the lease holds.",
        "bulkhead render nccl lease-0123456789ab --node node-01", true,
        [](const RenderOptions& options, const DoorOptions& door, Context& to) {
            return render_nccl(options, render::nccl_topology_name, door, to);
        });
    add("nccl-env", "The variables that tell NCCL which devices are the lease's.",
        "bulkhead render nccl-env lease-0123456789ab", true,
        [](const RenderOptions& options, const DoorOptions& door, Context& to) {
            return render_nccl(options, render::nccl_environment_name, door, to);
        });
    add("partitions", "On InfiniBand: partitions.conf for the subnet manager, and lists of GUIDs with -o.",
        "bulkhead render partitions -o /etc/opensm", false, render_partitions);
    add("qos", "How hosts' ports treat packets by their marks, as commands.",
        "bulkhead render qos --interface ens1f0np0", false, render_qos);
    add_render_libvirt(command, context);
}

}  // namespace bulkhead::cli
