// Files that are there whole or not at all, whenever the power fails or somebody says kill -9; and file descriptors
// with an owner.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "bulkhead/base/result.hpp"

namespace bulkhead::container {

class Fd {
public:
    Fd() = default;
    explicit Fd(int fd) : fd_{fd} {}
    Fd(Fd&& other) noexcept : fd_{std::exchange(other.fd_, -1)} {}
    Fd& operator=(Fd&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~Fd() { close(); }
    int operator*() const { return fd_; }
    explicit operator bool() const { return fd_ >= 0; }
    void close();
    int release() { return std::exchange(fd_, -1); }

private:
    int fd_ = -1;
};

struct Pipe {
    Fd read, write;
};
Result<Pipe> make_pipe();  // both ends are closed by exec

// "cannot <doing> <path>: <why>", by errno.
std::unexpected<Error> cannot(std::string_view doing, std::string_view path, std::string remedy = {});
std::unexpected<Error> cannot(int error, std::string_view doing, std::string_view path, std::string remedy = {});

Result<Fd> open_file(const std::string& path, int flags, unsigned mode = 0600);

// Replaces what was there; durable on return.
Result<> write_durably(const std::string& path, std::string_view bytes);
// One write(2), as files of the kernel want it.
Result<> write_once(const std::string& path, std::string_view bytes);
Result<std::string> read_whole(const std::string& path);
// Being there already is fine.
Result<> make_directory(const std::string& path, unsigned mode);

}  // namespace bulkhead::container
