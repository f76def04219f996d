// What the probes share: the GPU as NVML knows it, findings made of lines, and an MPS daemon for the length of a scene.
#pragma once

#include <optional>
#include <string>

#include "bulkhead/hw/mps/control.hpp"
#include "bulkhead/hw/nvml/nvml.hpp"
#include "bulkhead/probe/finding.hpp"
#include "bulkhead/probe/part.hpp"

namespace bulkhead::probe {

struct Scene {
    nvml::Nvml nvml;
    nvml::Gpu gpu;
    Options options;  // with the GPU by its UUID
    Report report;
};

// Refuses a GPU that somebody uses: figures would be about them, and they would suffer from ours.
Result<Scene> set_up(const Options& options, std::string probe);

Finding not_tried(std::string what, std::string setting, const Error& why);

// A daemon of our own, in a folder of its own; gone with the value.
class OwnMps {
public:
    static Result<OwnMps> start(const Options& options);
    OwnMps(OwnMps&&) = default;
    OwnMps& operator=(OwnMps&&) = default;
    ~OwnMps();
    Environment environment() const { return control_->environment(); }

private:
    OwnMps() = default;
    std::optional<mps::Control> control_;
    std::string folder_;
};

}  // namespace bulkhead::probe
