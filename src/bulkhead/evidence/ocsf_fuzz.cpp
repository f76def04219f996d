// Whatever the bytes: a record that can be read becomes one line of JSON that knows its place.
#include <cstddef>
#include <cstdint>

#include "bulkhead/evidence/ocsf.hpp"

using namespace bulkhead;
using namespace bulkhead::evidence;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view bytes{reinterpret_cast<const char*>(data), size};
    (void)ocsf_sequence(bytes);
    if (const auto record = read_record(bytes)) {
        const std::string line = ocsf_event({.log = "log.example/fleet", .index = 7}, *record);
        invariant(line.find('\n') == std::string::npos, "an event is one line");
        invariant(ocsf_sequence(line) == 7, "an event knows its leaf");
    }
    return 0;
}
