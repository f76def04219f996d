// The part of libvirt's C interface that we call, written down from its documentation: handles are opaque, numbers are
// fixed since the calls exist. libvirt promises never to change or remove any of it.
#pragma once

namespace bulkhead::vm::abi {

struct Connection;
struct Domain;

struct ErrorInfo {  // the beginning of virError; there is more behind
    int code;
    int domain;
    char* message;
    int level;
};

inline constexpr int no_domain = 42;  // VIR_ERR_NO_DOMAIN

enum class State : int { none, running, blocked, paused, shutdown, shutoff, crashed, suspended };
// Why a domain is shut off, as far as we tell them apart.
enum class ShutoffReason : int { unknown, shutdown, destroyed, crashed };

inline constexpr unsigned list_active = 1;
inline constexpr unsigned create_paused = 1;

using TimeoutCallback = void (*)(int timer, void* opaque);
using FreeCallback = void (*)(void* opaque);
using ErrorCallback = void (*)(void* data, ErrorInfo* error);

#define BULKHEAD_LIBVIRT_CALLS(X)                                         \
    X(virInitialize, int())                                               \
    X(virEventRegisterDefaultImpl, int())                                 \
    X(virEventRunDefaultImpl, int())                                      \
    X(virEventAddTimeout, int(int, TimeoutCallback, void*, FreeCallback)) \
    X(virEventUpdateTimeout, void(int, int))                              \
    X(virEventRemoveTimeout, int(int))                                    \
    X(virSetErrorFunc, void(void*, ErrorCallback))                        \
    X(virGetLastError, ErrorInfo*())                                      \
    X(virConnectOpen, Connection*(const char*))                           \
    X(virConnectClose, int(Connection*))                                  \
    X(virConnectIsAlive, int(Connection*))                                \
    X(virConnectSetKeepAlive, int(Connection*, int, unsigned))            \
    X(virConnectGetLibVersion, int(Connection*, unsigned long*))          \
    X(virConnectGetVersion, int(Connection*, unsigned long*))             \
    X(virConnectGetCapabilities, char*(Connection*))                      \
    X(virConnectListAllDomains, int(Connection*, Domain***, unsigned))    \
    X(virDomainCreateXML, Domain*(Connection*, const char*, unsigned))    \
    X(virDomainLookupByName, Domain*(Connection*, const char*))           \
    X(virDomainGetName, const char*(Domain*))                             \
    X(virDomainGetState, int(Domain*, int*, int*, unsigned))              \
    X(virDomainResume, int(Domain*))                                      \
    X(virDomainShutdown, int(Domain*))                                    \
    X(virDomainDestroy, int(Domain*))                                     \
    X(virDomainFree, int(Domain*))

}  // namespace bulkhead::vm::abi
