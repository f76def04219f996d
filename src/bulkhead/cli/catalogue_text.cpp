#include "bulkhead/cli/catalogue_text.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include "bulkhead/cli/terminal.hpp"

namespace bulkhead::cli {

namespace {

Cell cell(Strength strength) {
    switch (strength) {
        case Strength::hard:
            return {"hard", green};
        case Strength::soft:
            return {"soft", yellow};
        case Strength::none:
            return {"-", red};
    }
    return {};
}

Cell cell(Fit fit) { return {std::string{word(fit)}, fit == Fit::yes ? green : fit == Fit::own_gpu ? yellow : red}; }

Cell cell(Severity severity) {
    return {std::string{word(severity)}, severity == Severity::critical ? red
                                         : severity == Severity::high   ? yellow
                                                                        : std::string_view{}};
}

// Two heading rows: "memory-content" stands as memory over content.
void add_headings(std::vector<Row>& rows, std::string_view first, std::span<const std::string_view> names) {
    Row upper{{"", {}}}, lower{{std::string{first}, bold}};
    for (const std::string_view name : names) {
        const std::size_t dash = name.find('-');
        const bool split = dash != std::string_view::npos;
        upper.push_back({std::string{split ? name.substr(0, dash) : ""}, bold});
        lower.push_back({std::string{split ? name.substr(dash + 1) : name}, bold});
    }
    rows.push_back(std::move(upper));
    rows.push_back(std::move(lower));
}

void print_heading(std::ostream& out, std::string_view text, bool colour) {
    out << painted(text, bold, colour) << '\n';
}

void print_claim(std::ostream& out, std::string_view subject, const Claim& claim, bool colour) {
    constexpr std::size_t column = 39;
    const Cell strength = cell(claim.strength);
    out << fmt::format("  {:<17} {}{} {:<11}  {}\n", subject, painted(word(claim.strength), strength.paint, colour),
                       std::string(5 - word(claim.strength).size(), ' '), word(claim.grade),
                       wrapped(claim.says, column));
    out << std::string(column, ' ') << painted(wrapped(fmt::format("[{}]", claim.source), column), dim, colour) << '\n';
}

void print_note(std::ostream& out, std::string_view subject, std::string_view text) {
    out << fmt::format("  {:<17} {}\n", subject, wrapped(text, 20));
}

template <class E>
std::string listed(const std::vector<E>& values) {
    std::string out;
    for (const E value : values) out += fmt::format("{}{}", out.empty() ? "" : ", ", word(value));
    return out;
}

std::string closed_by(const Advisory& advisory) {
    const std::string tiers = advisory.closesTiers.empty() ? "all tiers" : listed(advisory.closesTiers);
    return advisory.closesMechanisms.empty() ? tiers
                                             : fmt::format("{} for {}", tiers, listed(advisory.closesMechanisms));
}

void print_mechanism_grid(std::ostream& out, bool colour) {
    print_heading(out, "What each way to divide a GPU keeps apart, between neighbours on it", colour);
    std::vector<Row> rows;
    std::vector<std::string_view> names{"SLO",
                                        "sm",
                                        "l2",
                                        "memory-capacity",
                                        "memory-bandwidth",
                                        "memory-content",
                                        "copy-engines",
                                        "media-engines",
                                        "faults",
                                        "power-clocks",
                                        "pcie",
                                        "nvlink",
                                        "observ-ability"};
    add_headings(rows, "MECHANISM", names);
    for (const MechanismEntry& entry : mechanisms()) {
        if (entry.fraction) continue;
        Row row{{std::string{word(entry.mechanism)}, {}}};
        row.push_back({std::string{word(entry.strongest_slo)}, entry.strongest_slo == Slo::hard ? green : yellow});
        for (const Claim& claim : entry.claims) row.push_back(cell(claim.strength));
        rows.push_back(std::move(row));
    }
    print_table(out, rows, 1, colour);
    out << "  A fraction of a GPU is packing over one of these, and has its row.\n";
    out << "  hard: partitioned by hardware or sole ownership. soft: bounded by software.\n"
           "  -: shared, and felt; NVLink is not offered to MIG instances at all.\n";
}

void print_tier_grid(std::ostream& out, bool colour) {
    print_heading(out, "What stands between tenants and the machine", colour);
    std::vector<Row> rows;
    add_headings(rows, "TIER", words(Wall{}));
    for (const TierEntry& entry : tiers()) {
        Row row{{std::string{word(entry.tier)}, {}}};
        for (const Claim& claim : entry.claims) row.push_back(cell(claim.strength));
        rows.push_back(std::move(row));
    }
    print_table(out, rows, 2, colour);
}

void print_pair_grid(std::ostream& out, bool colour) {
    print_heading(out, "Which mechanism goes with which tier", colour);
    std::vector<Row> rows{{{"MECHANISM", bold}}};
    for (const std::string_view tier : words(Tier{})) rows[0].push_back({std::string{tier}, bold});
    for (const Mechanism mechanism : every<Mechanism>()) {
        Row row{{std::string{word(mechanism)}, {}}};
        for (const Tier tier : every<Tier>()) row.push_back(cell(pair_of(mechanism, tier).fit));
        rows.push_back(std::move(row));
    }
    print_table(out, rows, 2, colour);
    out << "  own-gpu: the whole GPU goes to one tenant's VM, which divides it inside; it is leased whole.\n";
}

void print_threat_grid(std::ostream& out, bool colour) {
    print_heading(out, "The weakest tier each threat model allows, and what else it allows", colour);
    std::vector<Row> rows;
    const std::string_view names[]{"alone on-a node", "beside its-own domain", "beside-distrusting", "soft-sharing",
                                   "GPU-shared",      "tier-exceptions",       "verified-reboot"};
    add_headings(rows, "MODEL", names);
    const auto yes = [](bool allowed) { return Cell{allowed ? "yes" : "no", {}}; };
    for (const ThreatModel model : every<ThreatModel>()) {
        const ThreatPreset& preset = preset_of(model);
        rows.push_back({{std::string{word(model)}, {}},
                        {std::string{word(preset.floor_alone)}, {}},
                        {std::string{word(preset.floor_in_domain)}, {}},
                        {std::string{word(preset.floor_distrusting)}, {}},
                        yes(preset.soft_sharing_in_domain),
                        yes(preset.gpu_sharing_distrusting),
                        yes(preset.exceptions),
                        {preset.verified_reboot_required ? "required" : "no", {}}});
    }
    print_table(out, rows, 2, colour);
    out << "  soft sharing: MPS or time-slicing between tenants of one domain. GPU shared: by distrusting tenants, "
           "each\n"
           "  MIG instance in a VM of its own, where both accept it.\n";
}

}  // namespace

void print_catalogue(std::ostream& out, bool colour) {
    print_mechanism_grid(out, colour);
    out << '\n';
    print_tier_grid(out, colour);
    out << '\n';
    print_pair_grid(out, colour);
    out << '\n';
    print_threat_grid(out, colour);
    const auto escapes = std::ranges::count_if(shipped_advisories(), &Advisory::escape);
    out << fmt::format(
        "\n{} corrections of statements found in print; {} advisories in the version gate, {} of them escapes.\n"
        "Each cell is a sentence with a grade and a source: bulkhead catalogue mechanisms mig\n",
        corrections().size(), shipped_advisories().size(), escapes);
}

void print_mechanisms(std::ostream& out, std::span<const MechanismEntry* const> entries, bool colour) {
    for (const MechanismEntry* entry : entries) {
        if (entry != entries.front()) out << '\n';
        print_heading(
            out,
            fmt::format("{} ({}{}), strongest service level: {}", entry->title, entry->fraction ? "fraction/" : "",
                        word(entry->mechanism), word(entry->strongest_slo)),
            colour);
        if (entry->fraction)
            print_note(out, "claims",
                       fmt::format("all as {}: packing adds no wall and removes none", word(entry->mechanism)));
        else
            for (const Aspect aspect : every<Aspect>())
                print_claim(out, word(aspect), entry->claims[static_cast<std::size_t>(aspect)], colour);
        print_note(out, "falls together", entry->fault_domain);
        print_note(out, "overhead", entry->overhead);
        print_note(out, "to change it", entry->reconfiguration);
        print_note(out, "licence", entry->licence);
        print_note(out, "best for", entry->best_for);
    }
}

void print_tiers(std::ostream& out, std::span<const TierEntry* const> entries, bool colour) {
    for (const TierEntry* entry : entries) {
        if (entry != entries.front()) out << '\n';
        print_heading(out, fmt::format("{} ({})", entry->title, word(entry->tier)), colour);
        for (const Wall wall : every<Wall>())
            print_claim(out, word(wall), entry->claims[static_cast<std::size_t>(wall)], colour);
        print_note(out, "relies on", entry->trusted_base);
        print_note(out, "overhead", entry->overhead);
        print_note(out, "best for", entry->best_for);
    }
}

void print_pairs(std::ostream& out, std::span<const Pair> pairs, bool colour) {
    constexpr std::size_t column = 54;
    for (const Pair& at : pairs) {
        const PairEntry& pair = pair_of(at.mechanism, at.tier);
        const std::string fit{word(pair.fit)};
        out << fmt::format("  {:<13} {:<15} {}{} {:<11}  {}\n", word(at.mechanism), word(at.tier),
                           painted(fit, cell(pair.fit).paint, colour), std::string(8 - fit.size(), ' '),
                           word(pair.grade), wrapped(pair.says, column));
        out << std::string(column, ' ') << painted(wrapped(fmt::format("[{}]", pair.source), column), dim, colour)
            << '\n';
    }
}

void print_corrections(std::ostream& out, std::span<const Correction* const> entries, bool colour) {
    constexpr std::size_t column = 13;
    for (const Correction* entry : entries) {
        if (entry != entries.front()) out << '\n';
        out << fmt::format("  in print:  {}\n", painted(wrapped(entry->claim, column), bold, colour));
        out << fmt::format("  in fact:   {}\n", wrapped(entry->truth, column));
        out << std::string(column, ' ')
            << painted(wrapped(fmt::format("[{}: {}]", word(entry->grade), entry->source), column), dim, colour)
            << '\n';
    }
}

void print_threat_models(std::ostream& out, std::span<const ThreatPreset* const> presets, bool colour) {
    for (const ThreatPreset* preset : presets) {
        if (preset != presets.front()) out << '\n';
        print_heading(out, word(preset->model), colour);
        const auto note = [&](std::string_view subject, std::string_view text) {
            out << fmt::format("  {:<23} {}\n", subject, wrapped(text, 26));
        };
        note("attacker", preset->attacker);
        note("weakest tier",
             fmt::format("{} on a node of one's own, {} beside the same domain, {} beside others",
                         word(preset->floor_alone), word(preset->floor_in_domain), word(preset->floor_distrusting)));
        note("MPS, time-slicing", preset->soft_sharing_in_domain ? "between tenants of one domain, where both accept it"
                                                                 : "inside one tenant");
        note("GPU with distrusting",
             preset->gpu_sharing_distrusting ? "as MIG instances each in its own VM, where both accept it" : "never");
        note("tier exceptions", preset->exceptions ? "count, while no escape advisory is open" : "void");
        note("verified reboot", preset->verified_reboot_required ? "required below vm" : "not required");
        out << "  controls it relies on\n";
        for (const KeyControl& control : preset->controls) note(fmt::format("  {}", control.id), control.says);
    }
}

// Flaws of one component that close the same stand together.
void print_advisories(std::ostream& out, std::span<const Advisory* const> advisories, bool colour) {
    std::vector<std::vector<const Advisory*>> groups;
    for (const Component component : every<Component>())
        for (const Advisory* advisory : advisories) {
            if (advisory->component != component) continue;
            const auto group = std::ranges::find_if(groups, [&](const auto& g) {
                return g[0]->component == component && closed_by(*g[0]) == closed_by(*advisory);
            });
            (group == groups.end() ? groups.emplace_back() : *group).push_back(advisory);
        }
    for (const auto& group : groups) {
        if (&group != &groups.front()) out << '\n';
        print_heading(out, fmt::format("{}: once overdue, closes {}", word(group[0]->component), closed_by(*group[0])),
                      colour);
        std::vector<Row> rows{{{"ID", {}}, {"SEVERITY", {}}, {"ESCAPE", {}}, {"PUBLISHED", {}}, {"FIXED IN", {}}}};
        for (const Advisory* advisory : group) {
            std::string fixed;
            for (const FixedVersion& fix : advisory->fixed) fixed += (fixed.empty() ? "" : ", ") + fix.version;
            rows.push_back({{advisory->id, {}},
                            cell(advisory->severity),
                            {advisory->escape ? "escape" : "-", {}},
                            {print(advisory->published).substr(0, 7), {}},
                            {fixed, {}}});
        }
        print_table(out, rows, 2, colour);
    }
}

}  // namespace bulkhead::cli
