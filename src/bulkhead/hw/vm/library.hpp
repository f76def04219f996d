// libvirt.so.0 as it was loaded: one pointer for each call of abi.hpp. It stays loaded for the life of the process: it
// starts threads and registers with others' libraries, which nobody can undo.
#pragma once

#include <string>

#include "bulkhead/base/result.hpp"
#include "bulkhead/hw/vm/abi.hpp"

namespace bulkhead::vm {

struct Library {
#define BULKHEAD_LIBVIRT_POINTER(symbol, type) \
    using symbol##_call = type;                \
    symbol##_call* symbol = nullptr;
    using TimeoutCallback = abi::TimeoutCallback;
    using FreeCallback = abi::FreeCallback;
    using ErrorCallback = abi::ErrorCallback;
    using ErrorInfo = abi::ErrorInfo;
    using Connection = abi::Connection;
    using Domain = abi::Domain;
    BULKHEAD_LIBVIRT_CALLS(BULKHEAD_LIBVIRT_POINTER)
#undef BULKHEAD_LIBVIRT_POINTER

    // The same for everybody who names the same library.
    static Result<const Library*> load(const std::string& name);

    // What the last call in this thread failed of; `doing` as in "could not ...".
    Error error(const std::string& doing, const std::string& remedy = {}) const;
    bool was_no_domain() const;
};

}  // namespace bulkhead::vm
