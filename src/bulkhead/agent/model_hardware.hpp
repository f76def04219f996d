// A node model in a file, as hardware: it survives the death of the agent as real hardware does. An operation takes its
// modelled time and then happens, at once and written through to the file; an agent killed before that has not done it.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <vector>

#include "bulkhead/agent/hardware.hpp"
#include "bulkhead/node/model.hpp"

namespace bulkhead::agent {

class ModelHardware final : public Hardware {
public:
    // Reads the file, or makes it from the spec when there is none. `speed` in thousandths: 1000 takes the modelled
    // time, 10 a hundredth of it, 0 none.
    static Result<std::unique_ptr<ModelHardware>> open(const std::filesystem::path& file, const NodeModelSpec& spec,
                                                       std::int64_t time_thousandths = 1000);

    Result<GpuNodeStatus> inventory() override;
    std::string boot_id() override { return model_.boot_id(); }
    Grade grade() const override { return Grade::simulated; }
    Result<> begin(Instant now, const Operation& operation) override;
    Result<News> poll(Instant now) override;
    Result<OutputPiece> output(const OutputPlace& place) override;
    std::optional<Instant> next_due() const override;

    // For tests and demonstrations: switch faults, look inside. Save what was changed.
    NodeModel& model() { return model_; }
    Result<> save();

private:
    ModelHardware(std::filesystem::path file, NodeModel model, std::int64_t time_thousandths);

    std::filesystem::path file_;
    NodeModel model_;
    std::int64_t time_thousandths_ = 1000;
    std::multimap<Instant, Operation> due_;  // of the same time, in the order they were begun
};

}  // namespace bulkhead::agent
