// Network namespaces. Whatever a socket or a program is opened in, it stays in; so what must happen in another
// namespace is done by a thread that lives for that one thing and enters it. The caller never moves.
//
//     auto host = Space::of("/proc/1/ns/net");           // the host's, from hands that sit in a namespace of their own
//     auto theirs = Space::make_named("/run/bulkhead/net/lease-7");   // outlives us; found again by its path
#pragma once

#include <functional>
#include <string>

#include "bulkhead/hw/rdma/descriptor.hpp"

namespace bulkhead::rdma {

class Space {
public:
    static Result<Space> of(const std::string& path);
    static Result<Space> own();      // the caller's
    static Result<Space> unnamed();  // a new one that ends with its last descriptor and process
    // One that is there already is taken, so that a start over finds what it began.
    static Result<Space> make_named(const std::string& path);
    // Nothing there is fine. The namespace itself ends when its last process has.
    static Result<> remove_named(const std::string& path);
    static bool is_there(const std::string& path);
    // The kernel's view of devices as seen from inside, at a folder of the caller's namespace of mounts, read-only. For
    // whoever runs in there without the right to mount it, and for looking in from outside.
    Result<> show_sysfs(const std::string& folder) const;
    static Result<> hide_sysfs(const std::string& folder);

    int descriptor() const { return *fd_; }
    Result<Space> again() const;  // the same one, by a descriptor of its own
    // Runs it in a thread inside of this namespace, to its end.
    Result<> run(const std::function<Result<>()>& what) const;
    bool is_same_as(const Space& other) const;

private:
    explicit Space(Descriptor fd) : fd_{std::move(fd)} {}
    Descriptor fd_;
};

}  // namespace bulkhead::rdma
