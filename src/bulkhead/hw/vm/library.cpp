#include "bulkhead/hw/vm/library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <chrono>
#include <map>
#include <mutex>
#include <thread>

namespace bulkhead::vm {

namespace {

void keep_quiet(void*, abi::ErrorInfo*) {}  // it would print to our standard error
void wake(int, void*) {}

// libvirt's own loop of events, which must turn before the first connection is made and for as long as there is one:
// for us that is for ever. A timer wakes it now and then; nothing of ours depends on it.
Result<> turn(const Library& library) {
    if (library.virEventRegisterDefaultImpl() != 0) return std::unexpected(library.error("set up its events"));
    if (library.virEventAddTimeout(1000, wake, nullptr, nullptr) < 0)
        return std::unexpected(library.error("set up its events"));
    std::thread{[&library] {
        while (true)
            if (library.virEventRunDefaultImpl() != 0) std::this_thread::sleep_for(std::chrono::milliseconds{100});
    }}.detach();
    return {};
}

Result<> load_into(Library& library, const std::string& name) {
    void* const handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE);
    if (handle == nullptr)
        return fail(Code::unavailable, fmt::format("there is no libvirt here: {}", ::dlerror()),
                    "install libvirt-daemon-system, where tenants shall have machines of their own");
    std::string missing;
#define BULKHEAD_LIBVIRT_LOAD(symbol, type)                                               \
    library.symbol = reinterpret_cast<Library::symbol##_call*>(::dlsym(handle, #symbol)); \
    if (library.symbol == nullptr) missing = #symbol;
    BULKHEAD_LIBVIRT_CALLS(BULKHEAD_LIBVIRT_LOAD)
#undef BULKHEAD_LIBVIRT_LOAD
    if (!missing.empty())
        return fail(Code::invalid, fmt::format("{} has no {}: this is not libvirt, or it is very old", name, missing),
                    "");
    if (library.virInitialize() != 0) return fail(Code::unavailable, fmt::format("{} does not start", name), "");
    library.virSetErrorFunc(nullptr, keep_quiet);
    return turn(library);
}

}  // namespace

Result<const Library*> Library::load(const std::string& name) {
    static std::mutex mutex;
    static std::map<std::string, Library>& loaded = *new std::map<std::string, Library>;  // threads use it to the end
    const std::scoped_lock lock{mutex};
    if (const auto found = loaded.find(name); found != loaded.end()) return &found->second;
    Library& library = loaded[name];
    if (auto done = load_into(library, name); !done) {
        loaded.erase(name);
        return std::unexpected(done.error());
    }
    return &library;
}

Error Library::error(const std::string& doing, const std::string& remedy) const {
    const abi::ErrorInfo* const last = virGetLastError();
    const char* const words = last != nullptr && last->message != nullptr ? last->message : "no words for it";
    return {Code::unavailable, fmt::format("libvirt could not {}: {}", doing, words),
            remedy.empty() ? "see libvirt's log, and /var/log/libvirt/qemu" : remedy};
}

bool Library::was_no_domain() const {
    const abi::ErrorInfo* const last = virGetLastError();
    return last != nullptr && last->code == abi::no_domain;
}

}  // namespace bulkhead::vm
