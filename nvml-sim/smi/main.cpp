// Stands in for NVIDIA's nvidia-smi where there is no GPU, for what NVML has no public call for:
//
//     BULKHEAD_SIM_NODE=/tmp/node nvidia-smi --gpu-reset -i GPU-...
//     BULKHEAD_SIM_NODE=/tmp/node nvidia-smi compute-policy -i GPU-... --set-timeslice 2
//
// Everything else is refused. Its words and status codes are assumed: neither was ever done on hardware by us.
#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

#include "store.hpp"

using namespace bulkhead;

namespace {

struct Wish {
    bool reset = false, policy = false;
    std::optional<std::uint32_t> timeslice;
    std::string gpu;
};

std::optional<Wish> read_words(int argc, char** argv) {
    Wish wish;
    for (int i = 1; i < argc; ++i) {
        const std::string_view word = argv[i];
        if (word == "--gpu-reset" || word == "-r") {
            wish.reset = true;
        } else if (word == "compute-policy" && i == 1) {
            wish.policy = true;
        } else if (word == "--set-timeslice" && i + 1 < argc) {
            const std::string_view level = argv[++i];
            if (level.size() != 1 || level[0] < '0' || level[0] > '3') return std::nullopt;
            wish.timeslice = static_cast<std::uint32_t>(level[0] - '0');
        } else if (word == "-i" && i + 1 < argc) {
            wish.gpu = argv[++i];
        } else if (word.starts_with("--id=")) {
            wish.gpu = word.substr(5);
        } else {
            return std::nullopt;
        }
    }
    if (wish.gpu.empty() || wish.reset == wish.policy || wish.policy != wish.timeslice.has_value()) return std::nullopt;
    return wish;
}

std::string address(const driver::GpuSpec& gpu) {
    return fmt::format("{:08X}:{:02X}:{:02X}.0", gpu.pci_domain, gpu.pci_bus, gpu.pci_device);
}

int carry_out(driver::Model& model, const Wish& wish) {
    for (std::uint16_t index = 0; index < model.gpus(); ++index) {
        const driver::GpuSpec& gpu = model.spec().gpus[index];
        if (wish.gpu != gpu.uuid && wish.gpu != std::to_string(index) && wish.gpu != address(gpu)) continue;
        if (wish.timeslice) {
            if (!model.set_timeslice(index, *wish.timeslice)) return 9;
            fmt::print("Successfully set timeslice for GPU {}\nAll done.\n", address(gpu));
            return 0;
        }
        if (const auto done = model.reset(index); !done) {
            fmt::print("GPU {} is currently in use by another process.\n", address(gpu));
            return 19;
        }
        fmt::print("GPU {} was successfully reset.\nAll done.\n", address(gpu));
        return 0;
    }
    fmt::print("No devices were found\n");
    return 6;
}

}  // namespace

int main(int argc, char** argv) {
    const auto wish = read_words(argc, argv);
    if (!wish) {
        fmt::print(
            "simulated: only --gpu-reset -i GPU and compute-policy -i GPU --set-timeslice 0..3 are known here\n");
        return 2;
    }
    const char* const node = std::getenv("BULKHEAD_SIM_NODE");
    nvml_sim::Store store{node != nullptr ? node : ""};
    auto turn = store.take();
    if (node == nullptr || !turn) {
        fmt::print("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n");
        return 9;
    }
    nvml_sim::reap(turn->model());
    const int status = carry_out(turn->model(), *wish);
    if (status == 0)
        if (const auto saved = turn->save(); !saved) return 9;
    return status;
}
