#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "bulkhead/base/nearest.hpp"
#include "bulkhead/cli/catalogue_text.hpp"
#include "bulkhead/cli/command.hpp"
#include "bulkhead/codec/print.hpp"

namespace bulkhead::cli {

namespace {

constexpr std::string_view sections[]{"mechanisms", "tiers", "pairs", "corrections", "threat-models", "advisories"};

struct CatalogueOptions {
    std::string section;  // empty: all
    std::string name;     // empty: every entry of the section
    std::string output = "table";
};

std::string lower(std::string_view text) {
    std::string out{text};
    for (char& c : out)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return out;
}

// What was asked for. A section that was not asked for stays empty.
struct Page {
    std::vector<const MechanismEntry*> mechanisms;
    std::vector<const TierEntry*> tiers;
    std::vector<Pair> pairs;
    std::vector<const Correction*> corrections;
    std::vector<const ThreatPreset*> threat_models;
    std::vector<const Advisory*> advisories;

    bool empty() const {
        return mechanisms.empty() && tiers.empty() && pairs.empty() && corrections.empty() && threat_models.empty() &&
               advisories.empty();
    }
};

Page page_of(const CatalogueOptions& options) {
    const std::string name = lower(options.name);
    const auto asked = [&](std::string_view section) { return options.section.empty() || options.section == section; };
    const auto is = [&](std::string_view word) { return name.empty() || name == lower(word); };
    const auto within = [&](std::string_view text) { return lower(text).find(name) != std::string::npos; };
    Page page;
    if (asked("mechanisms"))
        for (const MechanismEntry& entry : mechanisms())
            if (is(word(entry.mechanism))) page.mechanisms.push_back(&entry);
    if (asked("tiers"))
        for (const TierEntry& entry : tiers())
            if (is(word(entry.tier))) page.tiers.push_back(&entry);
    if (asked("pairs"))
        for (const Mechanism mechanism : every<Mechanism>())
            for (const Tier tier : every<Tier>())
                if (is(word(mechanism)) || is(word(tier))) page.pairs.push_back({mechanism, tier});
    if (asked("corrections"))
        for (const Correction& entry : corrections())
            if (within(entry.claim) || within(entry.truth)) page.corrections.push_back(&entry);
    if (asked("threat-models"))
        for (const ThreatModel model : every<ThreatModel>())
            if (is(word(model))) page.threat_models.push_back(&preset_of(model));
    if (asked("advisories"))
        for (const Advisory& entry : shipped_advisories())
            if (within(entry.id) || is(word(entry.component))) page.advisories.push_back(&entry);
    return page;
}

// The names a section knows, for someone who mistyped one.
std::vector<std::string_view> names_of(std::string_view section) {
    std::vector<std::string_view> names;
    const auto add = [&](auto words) { names.insert(names.end(), words.begin(), words.end()); };
    if (section == "mechanisms" || section == "pairs") add(words(Mechanism{}));
    if (section == "tiers" || section == "pairs") add(words(Tier{}));
    if (section == "threat-models") add(words(ThreatModel{}));
    if (section == "advisories") add(words(Component{}));
    return names;
}

void write(JsonWriter& json, const Claim& claim) {
    json.begin_object();
    json.member("strength", word(claim.strength));
    json.member("grade", word(claim.grade));
    json.member("says", claim.says);
    json.member("source", claim.source);
    json.end_object();
}

void write(JsonWriter& json, const MechanismEntry& entry) {
    json.begin_object();
    json.member("mechanism", word(entry.mechanism));
    json.member("fraction", entry.fraction);
    json.member("title", entry.title);
    json.member("strongestSlo", word(entry.strongest_slo));
    json.key("claims");
    json.begin_object();
    for (const Aspect aspect : every<Aspect>()) {
        json.key(word(aspect));
        write(json, entry.claims[static_cast<std::size_t>(aspect)]);
    }
    json.end_object();
    json.member("faultDomain", entry.fault_domain);
    json.member("overhead", entry.overhead);
    json.member("reconfiguration", entry.reconfiguration);
    json.member("licence", entry.licence);
    json.member("bestFor", entry.best_for);
    json.end_object();
}

void write(JsonWriter& json, const TierEntry& entry) {
    json.begin_object();
    json.member("tier", word(entry.tier));
    json.member("title", entry.title);
    json.key("claims");
    json.begin_object();
    for (const Wall wall : every<Wall>()) {
        json.key(word(wall));
        write(json, entry.claims[static_cast<std::size_t>(wall)]);
    }
    json.end_object();
    json.member("trustedBase", entry.trusted_base);
    json.member("overhead", entry.overhead);
    json.member("bestFor", entry.best_for);
    json.end_object();
}

void write(JsonWriter& json, const Pair& at) {
    const PairEntry& pair = pair_of(at.mechanism, at.tier);
    json.begin_object();
    json.member("mechanism", word(at.mechanism));
    json.member("tier", word(at.tier));
    json.member("fit", word(pair.fit));
    json.member("grade", word(pair.grade));
    json.member("says", pair.says);
    json.member("source", pair.source);
    json.end_object();
}

void write(JsonWriter& json, const Correction& entry) {
    json.begin_object();
    json.member("claim", entry.claim);
    json.member("truth", entry.truth);
    json.member("grade", word(entry.grade));
    json.member("source", entry.source);
    json.end_object();
}

void write(JsonWriter& json, const ThreatPreset& preset) {
    json.begin_object();
    json.member("model", word(preset.model));
    json.member("attacker", preset.attacker);
    json.member("floorAlone", word(preset.floor_alone));
    json.member("floorInDomain", word(preset.floor_in_domain));
    json.member("floorDistrusting", word(preset.floor_distrusting));
    json.member("softSharingInDomain", preset.soft_sharing_in_domain);
    json.member("gpuSharingDistrusting", preset.gpu_sharing_distrusting);
    json.member("exceptions", preset.exceptions);
    json.member("verifiedRebootRequired", preset.verified_reboot_required);
    json.key("controls");
    json.begin_array();
    for (const KeyControl& control : preset.controls) {
        json.begin_object();
        json.member("id", control.id);
        json.member("says", control.says);
        json.end_object();
    }
    json.end_array();
    json.end_object();
}

void write_section(JsonWriter& json, std::string_view name, const auto& entries) {
    if (entries.empty()) return;
    json.key(name);
    json.begin_array();
    for (const auto& entry : entries)
        if constexpr (std::is_pointer_v<std::remove_cvref_t<decltype(entry)>>)
            write(json, *entry);
        else
            write(json, entry);
    json.end_array();
}

void print_json(std::ostream& out, const Page& page) {
    JsonWriter json;
    json.begin_object();
    write_section(json, "mechanisms", page.mechanisms);
    write_section(json, "tiers", page.tiers);
    write_section(json, "pairs", page.pairs);
    write_section(json, "corrections", page.corrections);
    write_section(json, "threatModels", page.threat_models);
    write_section(json, "advisories", page.advisories);
    json.end_object();
    out << json.take();
}

int catalogue(const CatalogueOptions& options, Context& context) {
    const Page page = page_of(options);
    if (page.empty()) {
        const std::vector<std::string_view> known = names_of(options.section);
        context.err << fmt::format("nothing called \"{}\" among {}\n", options.name, options.section);
        if (const std::string_view near = nearest(options.name, known); !near.empty())
            context.err << fmt::format("  try: bulkhead catalogue {} {}\n", options.section, near);
        else if (!known.empty())
            context.err << fmt::format("  try one of: {}\n", fmt::join(known, ", "));
        return could_not;
    }
    if (options.output == "json") {
        print_json(context.out, page);
        return done;
    }
    if (options.section.empty()) print_catalogue(context.out, context.colour);
    if (options.section == "mechanisms") print_mechanisms(context.out, page.mechanisms, context.colour);
    if (options.section == "tiers") print_tiers(context.out, page.tiers, context.colour);
    if (options.section == "pairs") print_pairs(context.out, page.pairs, context.colour);
    if (options.section == "corrections") print_corrections(context.out, page.corrections, context.colour);
    if (options.section == "threat-models") print_threat_models(context.out, page.threat_models, context.colour);
    if (options.section == "advisories") print_advisories(context.out, page.advisories, context.colour);
    return done;
}

}  // namespace

void add_catalogue(Command program, Context& context) {
    Command command = program.add_subcommand("catalogue", "Show what each way to share a GPU isolates, and what not.");
    command.description(
        "Show what each way to divide a GPU and each tier isolates, and what it leaves open.\n\n"
        "With what it costs, and how each claim is known. Contracts are read out of this catalogue; nothing is\n"
        "contacted.\n\n"
        "Sections:\n"
        "  mechanisms     whole GPU, MIG, MPS, time-slicing, vGPU and their compositions, aspect by aspect\n"
        "  tiers          process, container, VM, confidential VM: the walls between tenants and the machine\n"
        "  pairs          which mechanism goes with which tier, and why not\n"
        "  corrections    statements found in print that hardware or the vendors' own documents contradict\n"
        "  threat-models  internal, cloud, regulated: tiers, permissions and the controls each relies on\n"
        "  advisories     the published flaws that ship in the version gate\n\n"
        "Grades, from best known to least: silicon (read from real hardware), emulated, simulated, documented (a\n"
        "vendor's or a paper's word), assumed. Strengths: hard (hardware or sole ownership), soft (software), none.");
    command.footer(
        "Examples:\n"
        "  bulkhead catalogue                              everything at a glance\n"
        "  bulkhead catalogue mechanisms mig               one mechanism, claim by claim\n"
        "  bulkhead catalogue pairs confidential-vm        what a confidential VM can have\n"
        "  bulkhead catalogue corrections l2               corrections that mention L2\n"
        "  bulkhead catalogue advisories vgpu-manager      by component, or by part of an id: CVE-2025\n"
        "  bulkhead catalogue -o json | jq '.mechanisms[].claims | map_values(.grade)'\n\n"
        "Exit status:\n"
        "  0  printed\n"
        "  1  the section has nothing of that name\n"
        "  2  there is no such section or format");
    auto options = std::make_shared<CatalogueOptions>();
    command.add_option("SECTION", options->section, "What to show in full. Default: everything at a glance.")
        .one_of({std::begin(sections), std::end(sections)})
        .type_name("");
    command.add_option("NAME", options->name, "Only what goes by this name, in any case.").type_name("");
    command.add_option("-o,--output", options->output, "table or json.").one_of({"table", "json"}).type_name("FORMAT");
    command.callback([options, &context] { context.status = catalogue(*options, context); });
}

}  // namespace bulkhead::cli
