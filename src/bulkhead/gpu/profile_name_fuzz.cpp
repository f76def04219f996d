// Whatever is typed, the readers of names and lists answer or refuse; what they accept prints and reads back the same,
// and what names instances that can exist can be planned with.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "bulkhead/gpu/instance_list.hpp"

using namespace bulkhead;
using namespace bulkhead::gpu;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const Board& board = boards()[data[0] % boards().size()];
    const std::string_view text{reinterpret_cast<const char*>(data + 1), size - 1};

    if (const auto name = parse_profile_name(text)) {
        invariant(parse_profile_name(print(*name)) == *name, "a printed name reads back the same");
        invariant(parse_resource_name(resource_name(*name)) == *name, "a resource name reads back the same");
    }
    if (const auto name = parse_resource_name(text))
        invariant(parse_resource_name(resource_name(*name)) == *name, "a resource name reads back the same");
    if (const auto list = parse_list(text))
        invariant(parse_list(print(*list)) == *list, "a printed list reads back the same");
    if (const auto choice = find_profile(board, text))
        invariant(find_profile(board, print(board, *choice)) == *choice, "a found profile is found by its own name");
    if (const auto board_found = find_board(text)) invariant(*board_found != nullptr, "a found board is a board");
    (void)read_weights(board, text);

    // "in use|idle|wanted": three lists, and a plan over them.
    const std::size_t first = text.find('|'), second = first == text.npos ? text.npos : text.find('|', first + 1);
    if (second == text.npos) return 0;
    const auto existing = read_existing(board, text.substr(0, first), text.substr(first + 1, second - first - 1));
    const auto wanted = read_wanted(board, text.substr(second + 1));
    if (!existing || !wanted || wanted->size() > 64) return 0;
    const Geometry geometry{board};
    if (const auto answer = plan(geometry, *existing, *wanted))
        invariant(answer->grants.size() == wanted->size(), "everything wanted is granted somewhere");
    else
        invariant(!answer.error().reasons.empty(), "a refusal says why");
    return 0;
}
