// Whatever the bytes of an answer: values or an error in words, never a read beyond them.
#include <cstddef>
#include <cstdint>

#include "bulkhead/hw/rdma/link_message.hpp"
#include "bulkhead/hw/rdma/rdma_message.hpp"

using namespace bulkhead;
using namespace bulkhead::rdma;

namespace {

template <class Read>
void held(const Result<Read>& read) {
    if (!read) invariant(!read.error().what.empty() && !read.error().remedy.empty(), "an error has words");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const View bytes = std::as_bytes(std::span{data, size});
    if (const auto all = messages(bytes))
        for (const Message& message : *all) {
            held(refusal_of(message));
            held(read_link(message.body));
        }
    const auto link = read_link(bytes);
    held(link);
    if (link) invariant(link->vfs.size() <= size / sizeof(std::uint32_t), "no more functions than bytes");
    held(read_address(bytes));
    held(read_rdma_mode(bytes));
    held(read_rdma_device(bytes));
    held(read_rdma_resources(bytes));
    return 0;
}
