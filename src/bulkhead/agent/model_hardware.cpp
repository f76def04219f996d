#include "bulkhead/agent/model_hardware.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "bulkhead/agent/disk.hpp"

namespace bulkhead::agent {

ModelHardware::ModelHardware(std::filesystem::path file, NodeModel model, std::int64_t time_thousandths)
    : file_{std::move(file)}, model_{std::move(model)}, time_thousandths_{time_thousandths} {}

Result<std::unique_ptr<ModelHardware>> ModelHardware::open(const std::filesystem::path& file, const NodeModelSpec& spec,
                                                           std::int64_t time_thousandths) {
    const int handle = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
    if (handle < 0 && errno != ENOENT) return disk_error("open", file);
    std::optional<NodeModel> model;
    if (handle >= 0) {
        const auto bytes = read_all(handle, file);
        ::close(handle);
        if (!bytes) return std::unexpected(bytes.error());
        auto read = NodeModel::from_bytes(*bytes);
        if (!read) {
            read.error().what = file.string() + ": " + read.error().what;
            return std::unexpected(read.error());
        }
        model = std::move(*read);
    }
    const bool is_new = !model;
    if (is_new) model.emplace(spec);
    std::unique_ptr<ModelHardware> hardware{new ModelHardware{file, std::move(*model), time_thousandths}};
    if (is_new)
        if (const auto saved = hardware->save(); !saved) return std::unexpected(saved.error());
    return hardware;
}

Result<> ModelHardware::save() { return write_whole(file_, model_.to_bytes()); }

Result<GpuNodeStatus> ModelHardware::inventory() { return model_.inventory(); }

Result<> ModelHardware::begin(Instant now, const Operation& operation) {
    const Duration takes{model_.duration(operation).ms * time_thousandths_ / 1000};
    due_.emplace(now + takes, operation);
    return {};
}

Result<OutputPiece> ModelHardware::output(const OutputPlace& place) {
    return fail(Code::not_found, fmt::format("lease {} prints nothing: this node is a model", place.lease), "");
}

Result<Hardware::News> ModelHardware::poll(Instant now) {
    News news;
    bool changed = false;
    while (!due_.empty() && due_.begin()->first <= now) {
        const Operation operation = std::move(due_.begin()->second);
        due_.erase(due_.begin());
        changed = true;
        if (auto result = model_.carry_out(operation)) news.results.push_back(std::move(*result));
    }
    // Before anyone hears of it: an answer about hardware that a restart forgets would be a lie.
    if (changed)
        if (const auto saved = save(); !saved) return std::unexpected(saved.error());
    return news;
}

std::optional<Instant> ModelHardware::next_due() const {
    return due_.empty() ? std::nullopt : std::optional{due_.begin()->first};
}

}  // namespace bulkhead::agent
