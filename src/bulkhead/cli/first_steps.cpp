#include "bulkhead/cli/first_steps.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace bulkhead::cli {

namespace {

// What one machine can show: a lease's life from command to certificate.
std::string steps_on_real_gpus(int gpus) {
    return fmt::format(R"(# Two teams of one organisation, and a command of one of them on a whole GPU.
apiVersion: bulkhead.dev/v1alpha1
kind: Tenant
metadata: {{name: vision}}
spec: {{class: frontier-training, quota: {{limit: {}}}}}
---
apiVersion: bulkhead.dev/v1alpha1
kind: Tenant
metadata: {{name: speech}}
spec: {{class: research, quota: {{limit: 1}}}}
---
apiVersion: bulkhead.dev/v1alpha1
kind: GpuWorkload
metadata: {{name: hello}}
spec:
  tenant: vision
  gpu: {{count: 1}}
  cpu: 1
  memory: 2Gi
  command: [/bin/sh, -c, "echo $BULKHEAD_TENANT has $CUDA_VISIBLE_DEVICES; ls /dev; id"]
)",
                       gpus);
}

// So that `bulkhead usage` has something to say. On real GPUs prices are the operator's to declare.
std::string demo_prices(const std::string& model) {
    return fmt::format(R"(  pricing:
    currency: EUR
    lists:
      - name: demo
        validFrom: 2026-01-01T00:00:00Z
        prices:
          - {{model: {model}, perHour: 2.40}}
          - {{model: {model}, profile: 3g.40gb, perHour: 1.10}}
          - {{model: {model}, profile: 1g.10gb, perHour: 0.40}}
)",
                       fmt::arg("model", model));
}

// As many numbers as a small fleet needs, below the VLANs in which agents attack their own fences (3900, 3901), and a
// rate, so that there is something to see in a lease and its files.
std::string demo_fabric() {
    return "  fabric:\n"
           "    kind: ethernet\n"
           "    pool: 10.128.0.0/9\n"
           "    tenantPrefix: 20\n"
           "    vlans: {first: 100, last: 3899}\n"
           "    classes:\n"
           "    - {class: frontier-training, rateMbps: 400000, dscp: 26, sharePercent: 60}\n"
           "    - {rateMbps: 100000, dscp: 10}\n";
}

}  // namespace

std::string first_policy(const FleetShape& shape) {
    return fmt::format(R"(apiVersion: bulkhead.dev/v1alpha1
kind: FleetPolicy
metadata: {{name: fleet}}
spec:
  threatModel: {}
  sites: [{{name: local, jurisdiction: eu}}]
{})",
                       shape.real ? "internal" : "cloud", shape.real ? "" : demo_prices(shape.model) + demo_fabric());
}

// A hard promise on a soft mechanism: understood, and refused with every reason.
std::string refused_steps(const FleetShape& shape) {
    return fmt::format(R"(apiVersion: bulkhead.dev/v1alpha1
kind: GpuWorkload
metadata: {{name: cheap-serving}}
spec:
  tenant: {}
  gpu: {{fraction: 0.5, mechanism: mps}}
  cpu: 4
  slo: {{level: hard}}
  network: {{reserved: true}}
)",
                       shape.real ? "speech" : "harbor-bank");
}

std::string first_steps(const FleetShape& shape) {
    if (shape.real) return steps_on_real_gpus(shape.gpus);
    const int whole = shape.nodes > 1 ? shape.gpus : std::max(1, shape.gpus - 2);
    // Tenants that distrust each other need a node each for what they are guaranteed.
    const std::string trains = shape.nodes > 1
                                   ? fmt::format("class: frontier-training, quota: {{guarantee: {}}}", whole)
                                   : fmt::format("class: research, quota: {{limit: {}}}", whole);
    const bool cut = shape.model.find("80gb") != std::string::npos;  // boards that have a 3g.40gb
    const bool joined = shape.model.find("sxm") != std::string::npos && whole > 1;
    // Two of the tenants trust each other, so that their small work shares a node and leaves the others open.
    const std::string policy =
        first_policy(shape) + "  trustDomains:\n    - {name: campus, members: [lab, nightly]}\n---\n";
    return "# Five tenants, and a piece of work of four of them. The lab and its nightly jobs trust each other.\n" +
           policy +
           fmt::format(R"(apiVersion: bulkhead.dev/v1alpha1
kind: Tenant
metadata: {{name: aurora}}
spec: {{{trains}, priorityGrant: 100}}
---
apiVersion: bulkhead.dev/v1alpha1
kind: Tenant
metadata: {{name: harbor-bank}}
spec: {{class: slo-serving, quota: {{guarantee: 1}}, priorityGrant: 100}}
---
apiVersion: bulkhead.dev/v1alpha1
kind: Tenant
metadata: {{name: lab}}
spec:
  class: research
  quota: {{limit: 4}}
  trustDomain: {{name: campus, consent: {{by: head of campus, at: 2026-01-01T00:00:00Z}}}}
---
apiVersion: bulkhead.dev/v1alpha1
kind: Tenant
metadata: {{name: nightly}}
spec:
  class: batch
  quota: {{limit: 8}}
  trustDomain: {{name: campus, consent: {{by: head of campus, at: 2026-01-01T00:00:00Z}}}}
---
# Trusts no other tenant, and has no work yet: for `bulkhead run`.
apiVersion: bulkhead.dev/v1alpha1
kind: Tenant
metadata: {{name: guest}}
spec:
  class: research
  quota: {{limit: 2}}
  accepts: [{{risk: shared-nvlink, by: head of campus, at: 2026-01-01T00:00:00Z}}]
---
# Whole GPUs, together or not at all.
apiVersion: bulkhead.dev/v1alpha1
kind: GpuWorkload
metadata: {{name: pretrain}}
spec: {{tenant: aurora, gpu: {{count: {whole}, nvlink: {joined}}}, cpu: 32}}
---
# Hardware partitions with a hard service level.
apiVersion: bulkhead.dev/v1alpha1
kind: GpuWorkload
metadata: {{name: fraud-scoring}}
spec:
  tenant: harbor-bank
  tasks: {tasks}
  gpu: {gpu}
  cpu: 8
  slo: {{level: hard}}
  network: {{reserved: true}}
---
# A quarter of a GPU, to play.
apiVersion: bulkhead.dev/v1alpha1
kind: GpuWorkload
metadata: {{name: notebook}}
spec: {{tenant: lab, gpu: {{fraction: 0.25}}}}
---
# An amount of memory, whenever there is room.
apiVersion: bulkhead.dev/v1alpha1
kind: GpuWorkload
metadata: {{name: embed-archive}}
spec: {{tenant: nightly, tasks: 2, gpu: {{memory: 10Gi}}}}
)",
                       fmt::arg("trains", trains), fmt::arg("whole", whole), fmt::arg("joined", joined),
                       fmt::arg("tasks", cut ? 2 : 1), fmt::arg("gpu", cut ? "{profile: 3g.40gb}" : "{count: 1}"));
}

}  // namespace bulkhead::cli
