// Whatever the bytes: no crash, no hang, no throw; and what loads cleanly survives being printed and read again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "bulkhead/base/result.hpp"
#include "bulkhead/codec/load.hpp"
#include "bulkhead/codec/print.hpp"

using namespace bulkhead;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const SourceText file{"fuzz", std::string{reinterpret_cast<const char*>(data), size}};
    const Loaded loaded = load({&file, 1});
    for (const Diagnostic& error : loaded.errors) invariant(!print(error).empty(), "every error has words");
    for (auto* print_all : {print_snapshot, print_snapshot_json}) {
        const SourceText again{"again", print_all(loaded.snapshot)};
        if (again.text.size() > Limits{}.bytes) continue;  // escapes and spelled-out aliases may grow past the limit
        const Loaded twice = load({&again, 1});
        invariant(twice.errors.empty(), "what was printed is read without errors");
        invariant(twice.snapshot == loaded.snapshot, "what was printed is read as it was");
    }
    return 0;
}
