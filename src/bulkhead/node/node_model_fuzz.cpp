// Whatever the bytes: no crash, and a model that is read is the same when it is written and read again, and works.
#include <cstddef>
#include <cstdint>
#include <string>

#include "bulkhead/base/hash.hpp"
#include "bulkhead/base/result.hpp"
#include "bulkhead/node/model.hpp"

using namespace bulkhead;

namespace {

void look_at(std::string_view bytes) {
    auto model = NodeModel::from_bytes(bytes);
    if (!model) return;
    const auto again = NodeModel::from_bytes(model->to_bytes());
    invariant(again && *again == *model, "what was written is read as it was");
    for (const UnitId unit : model->units()) {
        model->read(unit);
        const Operation operations[] = {{1, Wipe{unit.kind, unit.device, unit.slice, 1}},
                                        {2, Verify{unit.kind, unit.device, unit.slice, 1, 0}},
                                        {3, CreateInstance{unit.device, "3g.40gb", unit.slice}},
                                        {4, DestroyInstance{unit.device, unit.slice}}};
        for (const Operation& operation : operations) {
            model->duration(operation);
            model->carry_out(operation);
        }
    }
    model->inventory();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view payload{reinterpret_cast<const char*>(data), size};
    look_at(payload);
    const Hash hash = sha256(payload);
    look_at("BHM1" + std::string{bytes_of(hash)} + std::string{payload});
    return 0;
}
