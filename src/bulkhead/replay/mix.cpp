#include "bulkhead/replay/mix.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "bulkhead/codec/decode.hpp"
#include "bulkhead/codec/document.hpp"
#include "bulkhead/codec/lone_document.hpp"
#include "bulkhead/gpu/profile_name.hpp"

namespace bulkhead::replay {

namespace {

constexpr std::array<std::string_view, 2> header{"apiVersion", "kind"};
constexpr std::size_t most_sorts = 32;          // of nodes
constexpr std::int64_t most_variants = 20'000;  // of all jobs together

bool has_profile(const std::string& model, const std::string& profile) {
    const auto board = gpu::find_board(model);
    return board && gpu::find_profile(**board, profile).has_value();
}

class Reader {
public:
    explicit Reader(std::string_view file) : file_{file} {}

    FleetMix read(const Node& root) {
        FleetMix mix;
        check_header(root);
        if (!decode(root, file_, mix, errors, header)) return mix;  // its lists may not be the text's
        check_tenants(mix.tenants, root);
        check_weights(mix.nodes, "nodes", root);
        check_weights(mix.jobs, "jobs", root);
        if (mix.nodes.size() > most_sorts)
            complain(root.find("nodes")->at, fmt::format("nodes has {} sorts", mix.nodes.size()),
                     fmt::format("at most {}", most_sorts));
        std::int64_t variants = 0;
        for (std::size_t i = 0; i < mix.jobs.size(); ++i) {
            check_job(mix, mix.jobs[i], *root.find("jobs")->items[i]);
            variants += mix.jobs[i].variants;
        }
        if (variants > most_variants)
            complain(root.find("jobs")->at, fmt::format("the jobs have {} variants together", variants),
                     fmt::format("at most {}", most_variants));
        return mix;
    }

    void complain(Place at, std::string what, std::string remedy) {
        errors.push_back({{std::string{file_}, at.line, at.column}, std::move(what), std::move(remedy)});
    }

    std::vector<Diagnostic> errors;

private:
    void check_header(const Node& root) {
        if (root.type != Node::Type::map) return;  // decode says so
        if (const Node* version = root.find("apiVersion"); version && version->text != api_version)
            complain(version->at, fmt::format("apiVersion \"{}\" is not known", shortened(version->text)),
                     std::string{api_version});
        const Node* kind = root.find("kind");
        if (!kind)
            complain(root.at, "kind is missing", fmt::format("kind: {}", FleetMix::kind));
        else if (kind->type != Node::Type::scalar || kind->text != FleetMix::kind)
            complain(kind->at, fmt::format("kind \"{}\" is not {}", shortened(kind->text), FleetMix::kind),
                     fmt::format("kind: {}", FleetMix::kind));
    }

    void check_tenants(const MixTenants& tenants, const Node& root) {
        const Node* written = root.find("tenants");
        const Place at = written ? written->at : root.at;
        if (const std::int64_t all = tenants.departments * (1 + tenants.teams); all > most_mix_tenants)
            complain(at,
                     fmt::format("{} departments of {} teams are {} tenants", tenants.departments, tenants.teams, all),
                     fmt::format("at most {}", most_mix_tenants));
        if (tenants.idle == 100) complain(at, "every team is idle, and nobody asks for anything", "idle: 10");
    }

    template <class Sort>
    void check_weights(const std::vector<Sort>& sorts, std::string_view name, const Node& root) {
        if (std::ranges::none_of(sorts, [](const Sort& sort) { return sort.weight > 0; }))
            complain(root.find(name)->at, fmt::format("{} has nothing with a weight above 0", name), "list one");
    }

    // Where a field is written; the item itself where it is not.
    static Place place_of(const Node& item, std::string_view field) {
        const Node* value = item.find(field);
        return value ? value->at : item.at;
    }

    template <class T>
    void check_span(const std::vector<T>& values, std::string_view field, const Node& item) {
        if (values.size() > 2)
            complain(place_of(item, field), fmt::format("{} has {} values", field, values.size()),
                     "one value, or two to draw between");
        else if (values.size() == 2 && values[1] < values[0])
            complain(place_of(item, field), fmt::format("{} goes from the larger to the smaller", field),
                     "the smaller value first");
    }

    void check_job(const FleetMix& mix, const MixJobs& job, const Node& item) {
        const int forms = (job.gpus ? 1 : 0) + (job.fraction.empty() ? 0 : 1) + (job.profile.empty() ? 0 : 1);
        if (forms != 1)
            complain(item.at, fmt::format("a sort of jobs asks for GPUs in {} ways", forms),
                     "one of gpus, fraction and profile");
        check_span(job.fraction, "fraction", item);
        check_span(job.cpu, "cpu", item);
        check_span(job.memory, "memory", item);
        for (const Gpus part : job.fraction)
            if (part.units % (gpu_unit / 100) != 0)
                complain(place_of(item, "fraction"), fmt::format("fraction {} is finer than hundredths", print(part)),
                         "such as 0.25: MPS counts in percent");
        if (job.group > 0 && (job.tasks % job.group != 0 || job.groupWithin == TopologyLevel::none))
            complain(place_of(item, "group"),
                     fmt::format("groups of {} do not divide {} tasks, or say not where to be together", job.group,
                                 job.tasks),
                     "a divisor of tasks, with groupWithin");
        if (forms == 1) check_room(mix, job, item);
    }

    // A task at its largest, on an empty node of some sort.
    void check_room(const FleetMix& mix, const MixJobs& job, const Node& item) {
        bool known = job.model.empty(), offered = false, fits = false;
        for (const MixNodes& nodes : mix.nodes) {
            if (!job.model.empty() && nodes.model != job.model) continue;
            known = true;
            if (nodes.gpus < job.gpus.value_or(1)) continue;
            if (!job.profile.empty() && !has_profile(nodes.model, job.profile)) continue;
            offered = true;
            fits = fits || ((job.cpu.empty() || job.cpu.back() <= nodes.cpu) &&
                            (job.memory.empty() || job.memory.back() <= nodes.memory));
        }
        if (!known)
            complain(place_of(item, "model"), fmt::format("no node has a GPU of model \"{}\"", shortened(job.model)),
                     "a model that nodes lists");
        else if (!offered && !job.profile.empty())
            complain(place_of(item, "profile"), fmt::format("no node can be cut into \"{}\"", shortened(job.profile)),
                     "a profile of a model that nodes lists; `bulkhead mig profiles` shows them");
        else if (!offered)
            complain(place_of(item, "gpus"), fmt::format("no node has {} GPUs of one model", *job.gpus),
                     "fewer, or larger nodes");
        else if (!fits)
            complain(place_of(item, "cpu"), "no node has the cores and the memory of this task", "less of them");
    }

    std::string_view file_;
};

}  // namespace

std::expected<FleetMix, std::vector<Diagnostic>> read_mix(std::string_view file, std::string_view text) {
    return read_alone(Reader{file}, file, text,
                      {"begin with kind: FleetMix", "a second document; a FleetMix stands alone"});
}

}  // namespace bulkhead::replay
