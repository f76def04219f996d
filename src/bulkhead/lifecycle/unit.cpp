#include "bulkhead/lifecycle/unit.hpp"

#include <fmt/core.h>

namespace bulkhead {

std::string unit_text(UnitKind kind, unsigned device, unsigned start, unsigned size) {
    switch (kind) {
        case UnitKind::memory:
            return fmt::format("gpu{}/slices {}-{}", device, start, start + size - 1);
        case UnitKind::drive:
            return fmt::format("drive{}", device);
        case UnitKind::vf:
            return fmt::format("vf{}", device);
        case UnitKind::host:
            return "host";
    }
    return {};
}

}  // namespace bulkhead
