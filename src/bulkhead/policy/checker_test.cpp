// What was answered, held against the rules: refusals, proposals, contracts.
#include "bulkhead/policy/checker_test.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "bulkhead/policy/checker_words_test.hpp"

namespace bulkhead::checker {

namespace {

bool mentions(std::string_view text, std::string_view word) {
    const auto same = [](char a, char b) { return std::tolower(a) == std::tolower(b); };
    return !std::ranges::search(text, word, same).empty();
}

// What a refusal says, as values: the codes are the only words this checker shares with the compiler.
const std::map<std::string_view, Objection>& codes() {
    static const auto table = [] {
        std::map<std::string_view, Objection> made;
        for (std::size_t i = 0; i < objection_count; ++i)
            made.emplace(text_of(static_cast<Objection>(i)).code, static_cast<Objection>(i));
        return made;
    }();
    return table;
}

Objections said(const std::vector<Objected>& objections) {
    Objections all;
    for (const Objected& objected : objections)
        if (const auto found = codes().find(objected.code); found != codes().end()) all.insert(found->second);
    return all;
}

bool well_formed(const std::vector<Objected>& objections) {
    return std::ranges::all_of(objections, [](const Objected& objected) {
        return codes().contains(objected.code) && !objected.says.empty() && !objected.remedy.empty();
    });
}

// "spec.gpu.count" and "/spec/gpu/count" are the same place.
std::string plain_path(std::string_view path) {
    std::string text(path);
    std::ranges::replace(text, '/', '.');
    for (const std::string_view prefix : {".", "spec."})
        if (text.starts_with(prefix)) text.erase(0, prefix.size());
    return text;
}

}  // namespace

std::string print(const Breaches& breaches) {
    std::string text;
    for (const Breach& breach : breaches) {
        text += fmt::format("  {}{}{}: {}", breach.rule, breach.where.empty() ? "" : " at ", breach.where, breach.says);
        for (const Objection objection : breach.heard_as) text += fmt::format(" [{}]", text_of(objection).code);
        text += '\n';
    }
    return text;
}

bool names(const Breaches& breaches, std::string_view rule) {
    return std::ranges::any_of(breaches, [&](const Breach& breach) { return breach.rule == rule; });
}

// The amount is one of four: another form of it is one change, to "gpu".
std::string_view form_of(const GpuRequest& gpu) {
    return gpu.count ? "gpu.count" : gpu.fraction ? "gpu.fraction" : gpu.memory ? "gpu.memory" : "gpu.profile";
}

std::vector<std::string_view> differences(const GpuWorkloadSpec& a, const GpuWorkloadSpec& b) {
    std::vector<std::string_view> fields;
    const auto compare = [&](std::string_view field, const auto& x, const auto& y) {
        if (!(x == y)) fields.push_back(field);
    };
    compare("tenant", a.tenant, b.tenant);
    compare("tasks", a.tasks, b.tasks);
    compare("minTasks", a.minTasks, b.minTasks);
    if (form_of(a.gpu) != form_of(b.gpu))
        fields.push_back("gpu");
    else {
        compare("gpu.count", a.gpu.count, b.gpu.count);
        compare("gpu.profile", a.gpu.profile, b.gpu.profile);
        compare("gpu.fraction", a.gpu.fraction, b.gpu.fraction);
        compare("gpu.memory", a.gpu.memory, b.gpu.memory);
    }
    compare("gpu.mechanism", a.gpu.mechanism, b.gpu.mechanism);
    compare("gpu.models", a.gpu.models, b.gpu.models);
    compare("gpu.nvlink", a.gpu.nvlink, b.gpu.nvlink);
    compare("cpu", a.cpu, b.cpu);
    compare("memory", a.memory, b.memory);
    compare("isolation.tier", a.isolation.tier, b.isolation.tier);
    compare("isolation.node", a.isolation.node, b.isolation.node);
    compare("isolation.gpu", a.isolation.gpu, b.isolation.gpu);
    compare("slo.level", a.slo.level, b.slo.level);
    compare("slo.resources", a.slo.resources, b.slo.resources);
    compare("network.rdma", a.network.rdma, b.network.rdma);
    compare("network.reserved", a.network.reserved, b.network.reserved);
    compare("network.encrypted", a.network.encrypted, b.network.encrypted);
    compare("storage.localNvme", a.storage.localNvme, b.storage.localNvme);
    compare("storage.encrypted", a.storage.encrypted, b.storage.encrypted);
    compare("priority", a.priority, b.priority);
    compare("preemptible", a.preemptible, b.preemptible);
    compare("deadline", a.deadline, b.deadline);
    compare("duration", a.duration, b.duration);
    compare("checkpointInterval", a.checkpointInterval, b.checkpointInterval);
    compare("topology.within", a.topology.within, b.topology.within);
    compare("topology.prefer", a.topology.prefer, b.topology.prefer);
    compare("placement.sites", a.placement.sites, b.placement.sites);
    compare("placement.jurisdictions", a.placement.jurisdictions, b.placement.jurisdictions);
    return fields;
}

// --- a refusal ---

Breaches Checker::of(const GpuWorkload& asked, const Refusal& refusal) const {
    Breaches out;
    object(out, refusal.workload != asked.metadata.name || refusal.tenant != asked.spec.tenant, "P2",
           "a refusal of something else");
    const bool any =
        !refusal.objections.empty() ||
        std::ranges::any_of(refusal.excluded, [](const ExcludedNodes& some) { return !some.objections.empty(); });
    object(out, !any, "P2", "a refusal without an objection");
    object(out, !well_formed(refusal.objections), "P2", "an objection without a known code, words or remedy");
    for (const ExcludedNodes& some : refusal.excluded)
        object(out, some.objections.empty() || !well_formed(some.objections), "P2",
               "a node excluded without a known code, words or remedy");
    object(out, refusal.proposal.has_value() != refusal.without_proposal.empty(), "P2",
           "neither a proposal nor a word why there is none, or both");

    if (refusal.proposal) proposal_in(asked, *refusal.proposal, out);

    const IsolationRequest& isolation = asked.spec.isolation;
    if (!asked.spec.gpu.mechanism || !isolation.tier || !isolation.node || !isolation.gpu) return out;
    const Expected expected = this->expected(asked);
    object(out, expected.literally.empty(), "P2", "a refusal although no rule objects");
    const Objections overall = said(refusal.objections);
    for (const Breach& breach : expected.surely) {
        Objections heard = overall;
        for (const ExcludedNodes& some : refusal.excluded)
            if (!breach.where.empty() && contains(some.nodes, breach.where)) heard = heard | said(some.objections);
        if (!breach.heard_as.empty() && (heard & breach.heard_as).empty())
            out.push_back({breach.rule, breach.says, breach.heard_as, breach.where});
    }
    return out;
}

// Whether it would be accepted only the compiler can say; that it is honest and gives nothing away shows in itself.
void Checker::proposal_in(const GpuWorkload& asked, const Proposal& proposal, Breaches& out) const {
    const GpuWorkloadSpec& was = asked.spec;
    const GpuWorkloadSpec& is = proposal.request.spec;
    std::vector<std::string> listed, real;
    for (const Change& change : proposal.changes) listed.push_back(plain_path(change.field));
    for (const std::string_view field : differences(was, is)) real.emplace_back(field);
    if (contains(real, "gpu")) {
        const bool amount =
            contains(listed, "gpu") || contains(listed, form_of(was.gpu)) || contains(listed, form_of(is.gpu));
        std::erase_if(listed, [&](const std::string& path) {
            return path == "gpu" || path == form_of(was.gpu) || path == form_of(is.gpu);
        });
        if (amount) listed.emplace_back("gpu");
    }
    std::ranges::sort(listed);
    std::ranges::sort(real);
    object(out, real.empty(), "P2", "a proposal that changes nothing");
    object(out, listed != real, "P2", "a proposal that changes other fields than it lists");
    for (const Change& change : proposal.changes)
        object(out, change.from == change.to, "P2", "a change from something to itself");
    object(out, is.tenant != was.tenant || proposal.request.metadata != asked.metadata, "P2",
           "a proposal for someone else");
    object(out, is.placement != was.placement, "P6", "a proposal that moves the work elsewhere");
    const auto weaker = [](const auto& then, const auto& now, auto less) {
        return then && (!now || less(*now, *then));
    };
    object(out, weaker(was.isolation.tier, is.isolation.tier, std::less{}), "P2", "a proposal in a lower tier");
    object(out,
           weaker(was.isolation.node, is.isolation.node, std::greater{}) ||
               weaker(was.isolation.gpu, is.isolation.gpu, std::greater{}),
           "P2", "a proposal with wider sharing");
    object(out, is.slo.level > was.slo.level, "P2", "a service level nobody asked for");
}

// --- a contract ---

Breaches Checker::of(const GpuWorkload& asked, const Contract& contract) const {
    const Who who = this->who(asked);
    Breaches out;
    fidelity(who, asked, contract, out);

    Terms terms;
    terms.mechanism = contract.mechanism;
    terms.fraction = contract.fraction;
    terms.tier = contract.tier;
    terms.node = contract.sharing.node;
    terms.gpu = contract.sharing.gpu;
    terms.instance = contract.sharing.instance;
    terms.slo = contract.slo;
    for (const Aspect aspect : contract.sloResources) terms.resources.insert(aspect);
    terms.preemptible = contract.preemptible;
    terms.priority = contract.priority;
    terms.gpus = contract.gpus;
    terms.gpus_per_task = asked.spec.gpu.count.value_or(1);
    request_rules(terms, who, out);

    std::vector<const Facts*> nodes;
    for (const std::string& name : contract.nodes) {
        const auto found = std::ranges::find(facts_, name, [](const Facts& f) { return f.node->metadata.name; });
        object(out, found == facts_.end(), "node", "a node that does not exist");
        if (found == facts_.end()) continue;
        object(out, contains(nodes, &*found), "node", "a node listed twice");
        nodes.push_back(&*found);
        node_rules(terms, who, *found, out);
    }
    object(out, contract.nodes.empty(), "node", "a contract that no node can serve");
    capacity_rule(terms, who, nodes, out);
    exceptions_in(contract, who, nodes, out);
    host_rules(contract, who, nodes, out);
    disclosure(contract, who, out);
    return out;
}

// The contract is for what was asked, and for nothing weaker.
void Checker::fidelity(const Who& who, const GpuWorkload& asked, const Contract& contract, Breaches& out) const {
    const GpuWorkloadSpec& spec = asked.spec;
    const auto kept = [&](bool holds, std::string_view says) { object(out, !holds, "request", says); };
    kept(contract.workload == asked.metadata.name && contract.tenant == spec.tenant &&
             contract.tenantClass == who.tenant.tenantClass && contract.threatModel == policy_.threatModel &&
             contract.asOf == now_ && contract.compliance == who.tenant.compliance,
         "another workload, tenant, class, threat model, time or compliance mode");
    kept(contract.tasks == spec.tasks, "another number of tasks");
    kept(!spec.gpu.mechanism || contract.mechanism == *spec.gpu.mechanism, "the mechanism was swapped");
    kept(contract.fraction == (spec.gpu.fraction.has_value() || spec.gpu.memory.has_value()),
         "a fraction unasked, or lost");
    kept(!spec.gpu.count || contract.gpus == Gpus::whole(*spec.gpu.count * spec.tasks), "another number of GPUs");
    // A fraction may be rounded up to the slice that holds it, and then quota counts the slice.
    kept(!spec.gpu.fraction ||
             (contract.gpus >= Gpus{spec.gpu.fraction->units * spec.tasks} && contract.gpus <= Gpus::whole(spec.tasks)),
         "another fraction");
    kept(contract.gpus > Gpus{}, "no GPU at all");
    kept(!spec.isolation.tier || contract.tier == *spec.isolation.tier, "another tier than asked");
    kept(!spec.isolation.node || contract.sharing.node <= *spec.isolation.node, "a node shared wider than asked");
    kept(!spec.isolation.gpu || contract.sharing.gpu <= *spec.isolation.gpu, "a GPU shared wider than asked");
    kept(contract.slo == spec.slo.level, "another service level");
    kept(!spec.preemptible || contract.preemptible == *spec.preemptible, "preemptible otherwise than asked");
    kept(!spec.priority || contract.priority == *spec.priority, "another priority");
    kept(contract.quota == who.tenant_class.quota && contract.guarantee == who.tenant.quota.guarantee, "another quota");
    kept(contract.slo == Slo::hard ? !contract.sloResources.empty() : contract.sloResources.empty(),
         "a hard level that covers nothing, or a soft one that covers something");
    for (const Aspect aspect : spec.slo.resources)
        kept(spec.slo.level == Slo::soft || contains(contract.sloResources, aspect),
             "a resource was dropped from the hard level");
    const auto [alone, in_domain, beside_strangers] = floors(policy_.threatModel);
    Tier floor = contract.sharing.node == PeerTrust::same_tenant   ? alone
                 : contract.sharing.node == PeerTrust::same_domain ? in_domain
                                                                   : beside_strangers;
    for (const Tier excepted : {Tier::container, Tier::process})
        if (contract.sharing.node == PeerTrust::distrusting && exception_for(who, excepted) != nullptr)
            floor = std::max(in_domain, excepted);
    kept(contract.requiredTier >= floor && contract.requiredTier <= contract.tier,
         "a required tier that cannot be right");
}

void Checker::exceptions_in(const Contract& contract, const Who& who, const std::vector<const Facts*>& nodes,
                            Breaches& out) const {
    const bool relies = contract.sharing.node == PeerTrust::distrusting && contract.tier < Tier::vm;
    object(out, relies && contract.exceptions.empty(), "rule 1", "an exception relied on and not printed");
    for (const ExceptionInForce& printed : contract.exceptions) {
        const auto found = std::ranges::find(policy_.exceptions, printed.name, &TierException::name);
        const bool real = found != policy_.exceptions.end() && found->tenants == printed.tenants &&
                          found->tier == printed.tier && found->expires == printed.expires;
        object(out, !real, "rule 1", "an exception nobody granted");
        if (!real) continue;
        object(out, found->expires <= now_, "rule 1", "an exception that has expired");
        object(out, !contains(found->tenants, who.name), "rule 1", "an exception for other tenants");
        object(out, relies && contract.tier < found->tier, "rule 1", "a tier below what the exception grants");
        object(out, policy_.threatModel == ThreatModel::regulated || who.tenant.compliance != Compliance::off, "rule 1",
               "an exception that is void here");
        for (const std::string& tenant : found->tenants)
            object(out, std::ranges::find(found->consents, tenant, &TenantConsent::tenant) == found->consents.end(),
                   "rule 1", "an exception without each tenant's consent");
        for (const Facts* const facts : nodes)
            object(out, facts->escape_open, "rule 1", "an exception while an escape is open", {},
                   facts->node->metadata.name);
    }
}

// What becomes of the host's kernel and of NVLink, and how well the node's part of the promise is known.
void Checker::host_rules(const Contract& contract, const Who& who, const std::vector<const Facts*>& nodes,
                         Breaches& out) const {
    object(out, (contract.handover == Handover::own_kernel) != (contract.tier >= Tier::vm), "rule 1",
           "a handover that does not fit the tier");
    object(out, contract.sharing.nvlink == PeerTrust::distrusting, "rule 4",
           "an NVLink partition shared with strangers");
    object(out, contract.sharing.nvlink == PeerTrust::same_domain && !accepts(who.tenant, Risk::shared_nvlink),
           "rule 4", "an NVLink partition shared without consent");
    for (const Facts* const facts : nodes) {
        const std::string_view name = facts->node->metadata.name;
        const auto has = [&](Capability capability) { return facts->has.contains(capability); };
        object(out, contract.handover == Handover::verified_reboot && !has(Capability::verified_reboot), "rule 7",
               "a verified reboot that nobody verified", {}, name);
        const bool one_fabric = facts->node->status.nvlink != NvLink::none && !has(Capability::nvlink_partition);
        object(out, one_fabric && !over_mig(contract.mechanism) && contract.sharing.nvlink < contract.sharing.node,
               "rule 4", "NVLink shared with more than the contract says", {}, name);

        EnumSet<Capability> relied = needed_for(contract.mechanism);
        if (contract.tier >= Tier::vm) relied.insert(Capability::iommu_groups);
        if (contract.tier == Tier::confidential_vm) relied.insert(Capability::confidential_cpu);
        if (contract.handover == Handover::verified_reboot) relied.insert(Capability::verified_reboot);
        for (const DetectedCapability& detected : facts->node->status.capabilities)
            object(out,
                   relied.contains(detected.name) && needs_proof.contains(detected.name) &&
                       contract.grade < detected.grade,
                   "E6", "a grade better than the evidence it relies on", {}, name);
    }
}

// P4 and P5: what stays open is said, what is said to be hard is hard, what is left behind is wiped, what is paid is
// right.
void Checker::disclosure(const Contract& contract, const Who& who, Breaches& out) const {
    const EnumSet<Aspect> shared = still_shared(contract.mechanism);
    for (const Aspect aspect : shared) {
        const auto about = [&](const Held& held) { return held.subject == word(aspect); };
        object(out, std::ranges::none_of(contract.open, about), "P4", "something still shared is not disclosed", {},
               word(aspect));
        object(out,
               std::ranges::any_of(contract.isolates,
                                   [&](const Held& held) { return about(held) && held.strength == Strength::hard; }),
               "P4", "something still shared is called hard", {}, word(aspect));
    }
    object(out,
           std::ranges::none_of(contract.open,
                                [](const Held& held) {
                                    return mentions(held.subject, "driver") || mentions(held.says, "driver") ||
                                           mentions(held.says, "firmware");
                                }),
           "P4", "neither driver nor firmware is disclosed as trusted");
    for (const auto* const list : {&contract.isolates, &contract.open})
        for (const Held& held : *list) {
            object(out, held.subject.empty() || held.says.empty(), "P4", "a claim without words", {}, held.subject);
            object(out, list == &contract.isolates && held.grade < Grade::assumed && held.source.empty(), "E6",
                   "a claim with a grade and no source", {}, held.subject);
            object(out, contract.grade < held.grade && list == &contract.isolates, "E6",
                   "a grade better than its weakest claim", {}, held.subject);
        }
    for (const Held& held : contract.open)
        object(out, held.strength == Strength::hard, "P4", "something hard among what is open", {}, held.subject);

    const auto step = [&](std::string_view word) {
        return std::ranges::any_of(
            contract.reclaim, [&](const ReclaimStep& s) { return mentions(s.name, word) || mentions(s.says, word); });
    };
    object(out, !step("scrub"), "I5", "reclaim without a scrub of VRAM");
    object(out, who.asked.storage.localNvme && !step("erase"), "I4", "reclaim without an erase of local drives");
    object(out, contract.handover == Handover::verified_reboot && !step("reboot"), "rule 1",
           "a reboot promised and not planned");
    const bool on = contract.compliance != Compliance::off;
    object(out, contract.surchargePercent != (on ? policy_.pricing.surcharge_percent(now_) : 0), "P5",
           "another surcharge");

    for (const Slice& slice : contract.slices)
        object(out, slice.model.empty() || slice.slice.empty(), "request", "a slice without a model or a name");
    object(out, contract.slices.empty(), "request", "a contract that does not say what a task holds");
    std::size_t accounted = contract.nodes.size();
    for (const ExcludedNodes& some : contract.excluded) {
        accounted += some.nodes.size();
        object(out, some.objections.empty() || !well_formed(some.objections), "P2",
               "a node excluded without a word why");
        for (const std::string& name : some.nodes)
            object(out, contains(contract.nodes, name), "node", "a node both listed and excluded");
    }
    object(out, accounted != facts_.size(), "node", "a node neither listed nor excluded");
}

// --- the compiler's answers ---

std::string in_words(const GpuWorkload& asked, const Answer& answer) {
    std::string text;
    if (answer.refusal() == nullptr) return text;
    const Refusal& refusal = *answer.refusal();
    for (const Objected& objected : refusal.objections) text += "  said: " + objected.code + "\n";
    for (const ExcludedNodes& some : refusal.excluded)
        for (const Objected& objected : some.objections) text += "  said of a node: " + objected.code + "\n";
    if (!refusal.proposal) return text;
    for (const Change& change : refusal.proposal->changes)
        text += fmt::format("  offered: {} from {} to {}\n", change.field, change.from, change.to);
    for (const std::string_view field : differences(asked.spec, refusal.proposal->request.spec))
        text += fmt::format("  really changed: {}\n", field);
    return text;
}

Answer ask(const Compiler& compiler, const Checker& checker, const GpuWorkload& asked,
           std::vector<GpuWorkload>* proven) {
    Answer answer{compiler.compile(asked), {}};
    const auto blame = [&](std::string_view what, const Breaches& broken) {
        if (!broken.empty()) answer.wrong += fmt::format("  {}\n{}", what, print(broken));
    };
    if (const Contract* const contract = answer.contract()) {
        blame("gets a contract that breaks", checker.of(asked, *contract));
        return answer;
    }
    const Refusal& refusal = *answer.refusal();
    blame("is refused in a way that breaks", checker.of(asked, refusal));
    if (!refusal.proposal) return answer;
    const auto known = [&](const GpuWorkload& one) { return one.spec == refusal.proposal->request.spec; };
    if (proven != nullptr && std::ranges::any_of(*proven, known)) return answer;
    const Decision offered = compiler.compile(refusal.proposal->request);
    if (const auto* const contract = std::get_if<Contract>(&offered)) {
        blame("is offered what breaks", checker.of(refusal.proposal->request, *contract));
        if (proven != nullptr) proven->push_back(refusal.proposal->request);
    } else
        answer.wrong += "  is offered what is then refused\n";
    return answer;
}

}  // namespace bulkhead::checker
