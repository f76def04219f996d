#include "bulkhead/wire/buffer.hpp"

#include <array>
#include <utility>

namespace bulkhead::wire {
namespace {

// It travels as metadata, of which the other side takes 8 KiB, with up to three bytes for one.
constexpr std::size_t status_bytes_max = 1'024;

constexpr std::array<std::pair<Code, grpc::StatusCode>, 8> table{{
    {Code::invalid, grpc::StatusCode::INVALID_ARGUMENT},
    {Code::not_found, grpc::StatusCode::NOT_FOUND},
    {Code::conflict, grpc::StatusCode::ABORTED},
    {Code::denied, grpc::StatusCode::PERMISSION_DENIED},
    {Code::exhausted, grpc::StatusCode::RESOURCE_EXHAUSTED},
    {Code::unavailable, grpc::StatusCode::UNAVAILABLE},
    {Code::timeout, grpc::StatusCode::DEADLINE_EXCEEDED},
    {Code::corrupt, grpc::StatusCode::DATA_LOSS},
}};

}  // namespace

grpc::Status status_of(Code code, std::string_view why) {
    for (const auto& [ours, theirs] : table)
        if (ours == code) return {theirs, std::string{why.substr(0, status_bytes_max)}};
    return {grpc::StatusCode::UNKNOWN, std::string{why.substr(0, status_bytes_max)}};
}

Code code_of(grpc::StatusCode status) {
    for (const auto& [ours, theirs] : table)
        if (theirs == status) return ours;
    if (status == grpc::StatusCode::UNAUTHENTICATED) return Code::denied;
    return Code::unavailable;
}

}  // namespace bulkhead::wire
