// A file descriptor with an owner, files of the kernel, and how a call that failed is told.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "bulkhead/base/result.hpp"

namespace bulkhead::rdma {

class Descriptor {
public:
    Descriptor() = default;
    explicit Descriptor(int number) : number_{number} {}
    Descriptor(Descriptor&& other) noexcept : number_{std::exchange(other.number_, -1)} {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        std::swap(number_, other.number_);
        return *this;
    }
    ~Descriptor() { close(); }
    int operator*() const { return number_; }
    explicit operator bool() const { return number_ >= 0; }
    void close();

private:
    int number_ = -1;
};

// "cannot <doing> <object>: <why>", with the code that goes with errno.
std::unexpected<Error> refused(int error, std::string_view doing, std::string_view object, std::string remedy);

// Of sysfs and cgroups: short, and not what their size says.
Result<std::string> read_text(const std::string& path);  // without the newline at its end
Result<> write_text(const std::string& path, std::string_view text);

}  // namespace bulkhead::rdma
