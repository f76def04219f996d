// Whatever the bytes: no crash, and a model that is read is the same when it is written and read again, and works.
#include <cstddef>
#include <cstdint>
#include <string>

#include "bulkhead/base/result.hpp"
#include "bulkhead/node/driver_model.hpp"

using namespace bulkhead;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string bytes = "BHG2" + std::string{reinterpret_cast<const char*>(data), size};
    auto model = driver::Model::from_bytes(bytes);
    if (!model) return 0;
    const auto again = driver::Model::from_bytes(model->to_bytes());
    invariant(again && *again == *model, "what was written is read as it was");
    for (std::uint16_t gpu = 0; gpu < model->gpus(); ++gpu) {
        if (const auto mode = model->set_mig_mode(gpu, true); mode && *mode)
            if (const auto made = model->create_instance(gpu, 19)) {
                if (const auto compute = model->create_compute(gpu, *made, 0);
                    compute && model->attach({.pid = 1, .where = {gpu, *made, *compute}}))
                    (void)model->allocate(1, {gpu, *made, *compute}, 4096);
            }
        model->load(gpu);
        model->memory({.gpu = gpu});
        model->end(1);
    }
    model->reboot();
    return 0;
}
