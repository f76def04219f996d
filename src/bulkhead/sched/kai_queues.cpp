#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "bulkhead/base/quantity.hpp"
#include "bulkhead/codec/document.hpp"
#include "bulkhead/codec/unicode.hpp"
#include "bulkhead/sched/peer_trees.hpp"

namespace bulkhead::sched {

namespace {

using Item = bulkhead::Node;  // of the text; this room's own is a machine

constexpr std::string_view kai_group = "scheduling.run.ai/";

bool is_scalar(const Item* item) { return item != nullptr && item->type == Item::Type::scalar; }

bool is_queue(const Item& root) {
    const Item *version = root.find("apiVersion"), *kind = root.find("kind");
    return is_scalar(version) && version->text.starts_with(kai_group) && is_scalar(kind) && kind->text == "Queue";
}

// The objects of a document: itself, or those of a List.
std::vector<const Item*> objects_in(const Item& root) {
    const Item *kind = root.find("kind"), *items = root.find("items");
    if (is_scalar(kind) && kind->text.ends_with("List") && items != nullptr && items->type == Item::Type::list)
        return items->items;
    return {&root};
}

class QueueReader {
public:
    QueueReader(std::string_view file, Gpus all) : file_{file}, all_{all} {}

    void read(const Item& object) {
        if (!is_queue(object)) return complain(object.at, "this is no Queue of KAI", "give its Queue objects alone");
        const Item *metadata = object.find("metadata"), *spec = object.find("spec");
        const Item* name = metadata == nullptr ? nullptr : metadata->find("name");
        if (!is_scalar(name) || name->text.empty())
            return complain(object.at, "a queue without a name", "metadata: {name: ...}");
        if (!may_be_a_name(name->text))
            return complain(name->at, "a name that cannot be one", "at most 253 letters, digits, '-' and '.'");
        // What a queue does not say of its GPUs is 0, as in KAI: no quota, no share of what is idle, nothing at all.
        ClusterTenant tenant{.name = name->text, .limit = Gpus{}, .weight = 0, .overQuotaPriority = 100};
        if (const Item* since = metadata->find("creationTimestamp"); is_scalar(since))
            if (const auto at = parse_instant(since->text)) tenant.since = *at;
        Place parent_at = name->at;
        const Item* resources = spec == nullptr ? nullptr : spec->find("resources");
        const Item* gpu = resources == nullptr ? nullptr : resources->find("gpu");
        if (gpu == nullptr)
            complain(name->at, fmt::format("queue {} says nothing of GPUs", tenant.name),
                     "spec: {resources: {gpu: {quota: 4, limit: -1, overQuotaWeight: 1}}}");
        else
            read_gpu(*gpu, tenant);
        if (spec != nullptr) read_rest(*spec, tenant, parent_at);
        const auto [known, fresh] = lines_.try_emplace(tenant.name, name->at.line);
        if (!fresh)
            return complain(name->at,
                            fmt::format("queue {} is there twice; the first is in line {}", tenant.name, known->second),
                            "give each queue once");
        cluster_.tenants.push_back(std::move(tenant));
        parents_at_.push_back(parent_at);
    }

    // Weights are whole here; where one is not, all are taken times a thousand.
    PeerCluster done() {
        check_parents();
        const bool whole =
            std::ranges::all_of(cluster_.tenants, [](const ClusterTenant& each) { return each.weight % 1000 == 0; });
        for (std::size_t i = 0; i < cluster_.tenants.size(); ++i) {
            std::int64_t& weight = cluster_.tenants[i].weight;
            if (whole) weight /= 1000;
            if (weight > most_weight)
                complain(parents_at_[i], "a weight too large beside others that are fractions",
                         fmt::format("at most {}", most_weight / 1000));
        }
        if (!errors_.empty()) return std::unexpected(std::move(errors_));
        cluster_.gpus = all_;
        // Whoever has nobody below asks for its limit, or for all there is.
        std::set<std::string_view> parents;
        for (const ClusterTenant& tenant : cluster_.tenants) parents.insert(tenant.parent);
        for (ClusterTenant& tenant : cluster_.tenants)
            if (!parents.contains(tenant.name)) tenant.request = std::min(tenant.limit.value_or(all_), all_);
        return std::move(cluster_);
    }

private:
    void complain(Place at, std::string what, std::string remedy) {
        errors_.push_back({{std::string{file_}, at.line, at.column}, std::move(what), std::move(remedy)});
    }

    // -1 is a number here, and a meaning.
    std::optional<std::int64_t> thousandths(const Item& item, std::string_view what) {
        if (item.type == Item::Type::scalar) {
            if (item.text == "-1") return -1000;
            if (const auto number = parse_gpus(item.text); number && number->is_decimal() && number->units <= most_gpus)
                return number->thousandths();
        }
        complain(item.at, fmt::format("{} is not a number that can be read: \"{}\"", what, shortened(item.text)),
                 "a number with at most three decimals, or -1");
        return std::nullopt;
    }

    void read_runtime(const Item& spec, std::string_view field, std::optional<Duration>& into) {
        const Item* item = spec.find(field);
        if (item == nullptr || item->type == Item::Type::null) return;
        if (is_scalar(item))
            if (const auto span = parse_duration(item->text); span && span->ms >= 0 && span->ms <= most_span_ms) {
                into = *span;
                return;
            }
        complain(item->at, fmt::format("{} is not a time span: \"{}\"", field, shortened(item->text)), "30m, 1h");
    }

    void read_rest(const Item& spec, ClusterTenant& tenant, Place& parent_at) {
        if (const Item* parent = spec.find("parentQueue"); is_scalar(parent)) {
            tenant.parent = parent->text;
            parent_at = parent->at;
        }
        if (const Item* priority = spec.find("priority"))
            if (const auto number = thousandths(*priority, "priority")) {
                tenant.overQuotaPriority = *number / 1000;
                if (*number % 1000 != 0 || *number < 0 || tenant.overQuotaPriority > most_over_quota_priority)
                    complain(priority->at,
                             fmt::format("priority {} of queue {}", shortened(priority->text), tenant.name),
                             fmt::format("a whole number from 0 to {}", most_over_quota_priority));
            }
        read_runtime(spec, "reclaimMinRuntime", tenant.reclaimMinRuntime);
        read_runtime(spec, "preemptMinRuntime", tenant.preemptMinRuntime);
    }

    void read_gpu(const Item& gpu, ClusterTenant& tenant) {
        if (const Item* quota = gpu.find("quota"))
            if (const auto number = thousandths(*quota, "quota"))
                tenant.guarantee = *number < 0 ? all_ : Gpus::of_thousandths(*number);
        if (const Item* limit = gpu.find("limit"))
            if (const auto number = thousandths(*limit, "limit"))
                tenant.limit = *number < 0 ? std::nullopt : std::optional{Gpus::of_thousandths(*number)};
        if (const Item* weight = gpu.find("overQuotaWeight"))
            if (const auto number = thousandths(*weight, "overQuotaWeight")) {
                if (*number < 0 || *number > most_weight * 1000)
                    complain(weight->at,
                             fmt::format("overQuotaWeight {} of queue {}", shortened(weight->text), tenant.name),
                             fmt::format("a number from 0 to {}", most_weight));
                tenant.weight = *number;
            }
    }

    void check_parents() {
        std::map<std::string_view, std::size_t> by_name;
        for (std::size_t i = 0; i < cluster_.tenants.size(); ++i) by_name[cluster_.tenants[i].name] = i;
        std::vector<std::size_t> walked_from(cluster_.tenants.size(), cluster_.tenants.size());
        for (std::size_t start = 0; start < cluster_.tenants.size(); ++start) {
            std::size_t at = start;
            while (walked_from[at] == cluster_.tenants.size()) {
                walked_from[at] = start;
                const std::string& parent = cluster_.tenants[at].parent;
                if (parent.empty()) break;
                const auto above = by_name.find(parent);
                if (above == by_name.end()) {
                    complain(parents_at_[at],
                             fmt::format("queue {}: its parent \"{}\" is not among these", cluster_.tenants[at].name,
                                         shortened(parent)),
                             "give all queues: kubectl get queues -o yaml");
                    break;
                }
                at = above->second;
                if (walked_from[at] == start) {
                    complain(parents_at_[at], fmt::format("queue {} is above itself", cluster_.tenants[at].name),
                             "make one of the circle a root");
                    break;
                }
            }
        }
    }

    std::string_view file_;
    Gpus all_;
    Cluster cluster_;
    std::vector<Place> parents_at_;
    std::map<std::string, int> lines_;
    std::vector<Diagnostic> errors_;
};

}  // namespace

PeerTree peer_tree_in(std::string_view text) {
    // A dump has lines such as "Account - 'physics':Fairshare=10", which is no YAML.
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        std::string_view line = text.substr(at, end - at);
        at = end + 1;
        while (line.starts_with(' ') || line.starts_with('\t')) line.remove_prefix(1);
        if (line.empty() || line.starts_with('#')) continue;
        if (line.starts_with("Cluster - ") || line.starts_with("Parent - ") || line.starts_with("QOS - "))
            return PeerTree::slurm;  // newer ones begin with their qualities of service
        break;
    }
    if (text.find(kai_group) == text.npos) return PeerTree::none;
    const ReadText read = read_documents("", text);
    for (const Document& document : read.documents)
        for (const Item* object : objects_in(*document.root))
            if (is_queue(*object)) return PeerTree::kai;
    return PeerTree::none;
}

PeerCluster read_kai_queues(std::string_view file, std::string_view text, Gpus all) {
    const ReadText read = read_documents(file, text);
    if (!read.errors.empty()) return std::unexpected(read.errors);
    QueueReader reader{file, all};
    for (const Document& document : read.documents)
        for (const Item* object : objects_in(*document.root)) reader.read(*object);
    return reader.done();
}

bool may_be_a_name(std::string_view text) {
    return text.size() <= 253 && first_invalid_utf8(text) == text.npos &&
           std::ranges::none_of(text, [](unsigned char c) { return c < ' ' || c == 0x7F; });
}

}  // namespace bulkhead::sched
