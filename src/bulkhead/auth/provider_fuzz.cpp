// Whatever a provider answers a program that logs in: a value or an error; and what is kept of it does no harm on a
// terminal or in a header.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "bulkhead/auth/device_grant.hpp"
#include "bulkhead/auth/discovery.hpp"

using namespace bulkhead;
using namespace bulkhead::auth;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text{reinterpret_cast<const char*>(data), size};
    const auto plain = [](std::string_view shown) {
        return std::ranges::all_of(shown, [](char c) { return c > 0x20 && c < 0x7f; });
    };
    if (const auto provider = read_discovery(text, "https://id.example"))
        invariant(provider->issuer == "https://id.example", "a provider is who it should be");
    if (const auto code = read_device_code(text)) {
        invariant(plain(code->user_code) && plain(code->page) && plain(code->page_with_code), "it can be shown");
        invariant(code->interval.ms >= 1000, "nobody is asked without a pause");
    }
    for (const int status : {200, 400}) {
        const auto answer = read_token_answer(status, text);
        if (answer) invariant(plain(answer->access) && plain(answer->refresh), "it fits in a header");
    }
    return 0;
}
