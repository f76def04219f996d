#include "bulkhead/policy/explain.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "bulkhead/policy/catalogue.hpp"
#include "bulkhead/policy/rules.hpp"
#include "bulkhead/policy/threat_model.hpp"

namespace bulkhead {

namespace {

template <Worded E>
std::string words_of(const EnumSet<E>& set) {
    std::string out;
    for (const E value : set) out += (out.empty() ? "" : ", ") + std::string{word(value)};
    return out.empty() ? "nothing" : out;
}

std::string text(std::string_view view) { return std::string{view}; }

const MechanismEntry& entry_for(const Ask& ask) {
    return entry_of(ask.mechanism, ask.is_fraction() && can_back_a_fraction(ask.mechanism));
}

EnumSet<Aspect> kept_hard(const MechanismEntry& entry) {
    EnumSet<Aspect> kept;
    for (const Aspect aspect : every<Aspect>())
        kept.insert_if(entry.claims[static_cast<std::size_t>(aspect)].strength == Strength::hard, aspect);
    return kept;
}

// The first resource of a service level that the mechanism does not keep, in the catalogue's words.
std::string weakest_claim(const Ask& ask) {
    const MechanismEntry& entry = entry_for(ask);
    for (const Aspect aspect : ask.slo_resources)
        if (const Claim& claim = entry.claims[static_cast<std::size_t>(aspect)]; claim.strength != Strength::hard)
            return fmt::format("{}: {}", word(aspect), claim.says);
    return "its guarantees are those of its weakest layer";
}

// The tier the threat model alone would demand for this sharing.
Tier floor_of(const Ask& ask, const Circumstances& c) {
    const ThreatPreset& preset = preset_of(c.threat);
    if (ask.share_node == PeerTrust::same_tenant) return preset.floor_alone;
    return ask.share_node == PeerTrust::same_domain ? preset.floor_in_domain : preset.floor_distrusting;
}

// The first three by name, the rest by number: a node years behind would fill pages.
std::string advisory_list(const Pool& pool, auto&& wanted) {
    std::string out;
    std::size_t count = 0;
    for (const OpenAdvisory& open : pool.advisories)
        if (wanted(open) && ++count <= 3)
            out += fmt::format(
                "{}{} ({} {}, due {})", out.empty() ? "" : "; ", open.advisory.id, word(open.advisory.component),
                open.installed.empty() ? "of unknown version" : open.installed, print(open.due).substr(0, 10));
    if (count > 3) out += fmt::format("; and {} more", count - 3);
    return out.empty() ? "none" : out;
}

std::string updates(const Pool& pool, auto&& wanted) {
    std::string out;
    for (const OpenAdvisory& open : pool.advisories) {
        if (!wanted(open)) continue;
        const std::string step =
            open.wanted.empty() ? fmt::format("move {} to a branch with a fix", word(open.advisory.component))
                                : fmt::format("update {} to {} or newer", word(open.advisory.component), open.wanted);
        if (out.find(step) == std::string::npos) out += (out.empty() ? "" : "; ") + step;
    }
    return out.empty() ? "none" : out;
}

}  // namespace

std::string describe_request(const GpuRequest& gpu) {
    if (!gpu.profile.empty()) return fmt::format("profile {}", gpu.profile);
    if (gpu.fraction) return fmt::format("{} of a GPU", print(*gpu.fraction));
    if (gpu.memory) return fmt::format("{} of GPU memory", print(*gpu.memory));
    return fmt::format("{} GPU{}", gpu.count.value_or(1), gpu.count.value_or(1) == 1 ? "" : "s");
}

std::vector<Argument> Explainer::request_arguments() const {
    const Ask& ask = verdict_.ask;
    const Circumstances& c = asker_.circumstances;
    const EnumSet<Aspect> kept = kept_hard(entry_for(ask));
    return {
        {"tenant", asker_.tenant->metadata.name},
        {"class", asker_.tenant_class->metadata.name},
        {"class_mechanisms", words_of(c.class_mechanisms)},
        {"class_node", text(word(c.class_node))},
        {"class_gpu", text(word(c.class_gpu))},
        {"class_tier", text(word(c.class_tier))},
        {"class_priority", c.class_priority},
        {"threat", text(word(c.threat))},
        {"reboot_because",
         c.compliance != Compliance::off ? std::string{"compliance mode"} : "threat model " + text(word(c.threat))},
        {"floor", text(word(floor_of(ask, c)))},
        {"mechanism", text(word(ask.mechanism))},
        {"mechanism_title", text(entry_for(ask).title)},
        {"weakest", weakest_claim(ask)},
        {"request", describe_request(spec_.gpu)},
        {"tier", text(word(ask.tier))},
        {"pair", text(pair_of(ask.mechanism, ask.tier).says)},
        {"share_node", text(word(ask.share_node))},
        {"share_gpu", text(word(ask.share_gpu))},
        {"slo_unkept", words_of(ask.slo_resources - kept)},
        {"slo_kept", kept.empty() ? "nothing, so use a mechanism that does" : words_of(kept)},
        {"asked", print(Gpus{ask.units})},
        {"least", print(Gpus{ask.least_units})},
        {"guarantee", print(Gpus{c.guarantee})},
        {"limit", print(Gpus{c.limit.value_or(0)})},
        {"priority", ask.priority},
        {"grant", c.priority_grant},
        {"count", ask.gpus_per_task},
        {"possible", verdict_.tasks_possible, Audience::fleet_operator},
        {"tasks", spec_.tasks},
    };
}

std::vector<Argument> Explainer::node_arguments(const Pool& pool) const {
    const Ask& ask = verdict_.ask;
    const auto closing = [&](const OpenAdvisory& open) {
        return open.overdue && closes(open, ask.tier, ask.mechanism);
    };
    const auto escaping = [](const OpenAdvisory& open) { return open.advisory.escape; };
    return {
        {"model", text(pool.model), Audience::fleet_operator},
        {"site", pool.site, Audience::fleet_operator},
        {"jurisdiction", pool.jurisdiction.empty() ? "unknown" : pool.jurisdiction, Audience::fleet_operator},
        {"board", pool.traits.gpus, Audience::fleet_operator},
        {"gpus", pool.gpus, Audience::fleet_operator},
        {"confidential_mode", text(word(pool.traits.confidential)), Audience::fleet_operator},
        {"unverified", words_of(pool.traits.unverified), Audience::fleet_operator},
        {"max_age", print(fleet_.policy.evidenceMaxAge)},
        {"advisories", advisory_list(pool, closing), Audience::fleet_operator},
        {"update", updates(pool, closing), Audience::fleet_operator},
        {"escapes", advisory_list(pool, escaping), Audience::fleet_operator},
    };
}

Objected Explainer::put(Objection objection, std::span<const Argument> node) const {
    const ObjectionText& texts = text_of(objection);
    return {.code = text(texts.code),
            .rule = texts.rule,
            .says = fill(texts.text, request_, reader_, node),
            .remedy = fill(texts.remedy, request_, reader_, node)};
}

std::vector<Objected> Explainer::objections() const {
    std::vector<Objected> out;
    for (const Objection objection : verdict_.standing_in_the_way()) {
        if (!is_about_a_node(objection)) {
            out.push_back(put(objection));
            continue;
        }
        std::size_t objecting = 0, nodes = 0;
        const Pool* example = nullptr;
        for (std::size_t i = 0; i < fleet_.pools.size(); ++i) {
            nodes += fleet_.pools[i].nodes.size();
            if (!verdict_.on_pool[i].contains(objection)) continue;
            objecting += fleet_.pools[i].nodes.size();
            if (example == nullptr) example = &fleet_.pools[i];
        }
        Objected objected = put(objection, node_arguments(*example));
        // How many nodes the fleet has is the operator's to know.
        objected.says = reader_ == Audience::fleet_operator
                            ? fmt::format("{} of {} nodes: {}", objecting, nodes, objected.says)
                            : fmt::format("{} nodes: {}", objecting == nodes ? "all" : "some", objected.says);
        out.push_back(std::move(objected));
    }
    return out;
}

std::vector<ExcludedNodes> Explainer::excluded() const {
    std::vector<ExcludedNodes> out;
    if (reader_ == Audience::tenant) return out;  // which nodes lack what is the operator's to know
    for (std::size_t i = 0; i < fleet_.pools.size(); ++i) {
        if (verdict_.on_pool[i].empty()) continue;
        ExcludedNodes excluded;
        excluded.nodes = fleet_.pools[i].nodes;
        const std::vector<Argument> arguments = node_arguments(fleet_.pools[i]);
        for (const Objection objection : verdict_.on_pool[i]) excluded.objections.push_back(put(objection, arguments));
        const auto same = std::ranges::find(out, excluded.objections, &ExcludedNodes::objections);
        if (same != out.end()) {
            same->nodes.insert(same->nodes.end(), excluded.nodes.begin(), excluded.nodes.end());
            continue;
        }
        // The nearest to serving it first: that is where the operator's next step is shortest.
        const auto further = [&](const ExcludedNodes& other) {
            return other.objections.size() > excluded.objections.size();
        };
        out.insert(std::ranges::find_if(out, further), std::move(excluded));
    }
    return out;
}

}  // namespace bulkhead
