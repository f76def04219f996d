#include "bulkhead/cli/first_steps.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace bulkhead::cli {

const std::string_view first_policy = R"(apiVersion: bulkhead.dev/v1alpha1
kind: FleetPolicy
metadata: {name: fleet}
spec:
  threatModel: cloud
  sites: [{name: local, jurisdiction: eu}]
)";

// A hard promise on a soft mechanism: understood, and refused with every reason.
const std::string_view refused_steps = R"(apiVersion: bulkhead.dev/v1alpha1
kind: GpuWorkload
metadata: {name: cheap-serving}
spec:
  tenant: harbor-bank
  gpu: {fraction: 0.5, mechanism: mps}
  cpu: 4
  slo: {level: hard}
  network: {reserved: true}
)";

std::string first_steps(const FleetShape& shape) {
    const int whole = shape.nodes > 1 ? shape.gpus : std::max(1, shape.gpus - 2);
    const bool cut = shape.model.find("80gb") != std::string::npos;  // boards that have a 3g.40gb
    const bool joined = shape.model.find("sxm") != std::string::npos && whole > 1;
    return fmt::format(R"(# Four tenants that distrust each other, and a piece of work of each.
apiVersion: bulkhead.dev/v1alpha1
kind: Tenant
metadata: {{name: aurora}}
spec: {{class: frontier-training, quota: {{guarantee: {whole}}}, priorityGrant: 100}}
---
apiVersion: bulkhead.dev/v1alpha1
kind: Tenant
metadata: {{name: harbor-bank}}
spec: {{class: slo-serving, quota: {{guarantee: 1}}, priorityGrant: 100}}
---
apiVersion: bulkhead.dev/v1alpha1
kind: Tenant
metadata: {{name: lab}}
spec: {{class: research, quota: {{limit: 4}}}}
---
apiVersion: bulkhead.dev/v1alpha1
kind: Tenant
metadata: {{name: nightly}}
spec: {{class: batch, quota: {{limit: 8}}}}
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
                       fmt::arg("whole", whole), fmt::arg("joined", joined), fmt::arg("tasks", cut ? 2 : 1),
                       fmt::arg("gpu", cut ? "{profile: 3g.40gb}" : "{count: 1}"));
}

}  // namespace bulkhead::cli
