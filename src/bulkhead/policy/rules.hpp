// The rules themselves. A rule can object but never overrule another, so adding a rule never opens a hole.
#pragma once

#include "bulkhead/policy/ask.hpp"
#include "bulkhead/policy/objection.hpp"

namespace bulkhead {

// What the rules say of the request, wherever it would run.
Objections objections_to(const Ask& ask, const Circumstances& circumstances);

// What they say of running it on such a node. Site, model and geometry are the compiler's to look up.
Objections objections_on(const Ask& ask, const Circumstances& circumstances, const NodeTraits& node);

// Whether a mechanism can give GPU in that form at all: a profile needs instances, whole GPUs need none.
bool form_fits(Form form, Mechanism mechanism);

// The tier trust and policy demand for the sharing asked for, whatever tier was asked for.
Tier required_tier(PeerTrust share_node, const Circumstances& circumstances);

// What a node must be able to do for this ask, beyond having the GPUs.
EnumSet<Capability> capabilities_for(const Ask& ask);

// With whom a GPU instance (or, without instances, the GPU's memory) may be shared under an accepted ask.
PeerTrust instance_sharing(const Ask& ask);

// The least trusted tenant that can in fact come onto the same node, or the same GPU, under an accepted ask. A tenant
// without a trust domain (`in_domain` is false) shares nothing with its domain, and no other tenant joins an MPS server
// or a whole GPU.
struct Neighbourhood {
    PeerTrust node = PeerTrust::same_tenant, gpu = PeerTrust::same_tenant;
};
Neighbourhood neighbourhood(const Ask& ask, bool in_domain);

}  // namespace bulkhead
