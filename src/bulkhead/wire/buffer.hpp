// Message bytes in and out of gRPC's own buffers; and how an error is said in gRPC.
#pragma once

#include <grpcpp/impl/call_op_set.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/status.h>

#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/base/result.hpp"

namespace bulkhead::wire {

// Where the stream lives; agent.proto's service, called without generated code because both sides want the bytes.
inline constexpr const char* session_method = "/bulkhead.agent.v1.AgentService/Session";

inline grpc::ByteBuffer to_buffer(std::string_view bytes) {
    const grpc::Slice slice{bytes.data(), bytes.size()};
    return {&slice, 1};
}

// A write is done when its bytes are out; so the next one does not join it (pieces.hpp).
inline grpc::WriteOptions one_by_one() { return grpc::WriteOptions{}.set_write_through(); }

// Hands the bytes of a buffer to `read` in one piece and lets go of the buffer: its slices may pin larger blocks.
template <class Read>
auto from_buffer(grpc::ByteBuffer& buffer, Read&& read) {
    grpc::Slice slice;
    std::string joined;
    std::string_view bytes;
    if (buffer.TrySingleSlice(&slice).ok()) {
        bytes = {reinterpret_cast<const char*>(slice.begin()), slice.size()};
    } else {
        std::vector<grpc::Slice> slices;
        if (buffer.Dump(&slices).ok()) {
            joined.reserve(buffer.Length());
            for (const grpc::Slice& piece : slices)
                joined.append(reinterpret_cast<const char*>(piece.begin()), piece.size());
        }
        bytes = joined;
    }
    auto result = read(bytes);
    buffer.Clear();
    return result;
}

grpc::Status status_of(Code code, std::string_view why);
Code code_of(grpc::StatusCode status);

}  // namespace bulkhead::wire
