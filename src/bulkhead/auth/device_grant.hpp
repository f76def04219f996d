// What a provider answers to a program that has no browser (RFC 8628): a code for a person to enter elsewhere, and, to
// the question whether they have, not yet, slower, no, or tokens. Text in, values out; who asks and waits is the
// caller's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "bulkhead/base/quantity.hpp"
#include "bulkhead/base/result.hpp"

namespace bulkhead::auth {

inline constexpr std::string_view device_grant_type = "urn:ietf:params:oauth:grant-type:device_code";

struct DeviceCode {
    std::string device_code;                      // ours to keep
    std::string user_code, page, page_with_code;  // for the person; the last may be empty
    Duration lasts{};
    Duration interval{5'000};  // between two questions
};
Result<DeviceCode> read_device_code(std::string_view json);

struct TokenAnswer {
    enum class Kind : std::uint8_t { granted, pending, slower, refused };
    Kind kind{};
    std::string access, refresh;  // of what was granted; there may be no refresh token
    Duration lasts{};             // of the access token
    Error why;                    // of a refusal: `denied`, or `invalid` when what we sent was wrong
};
// To either grant: a device code's or a refresh token's.
Result<TokenAnswer> read_token_answer(int status, std::string_view json);

inline constexpr std::size_t provider_answer_bytes_max = 64 << 10;

}  // namespace bulkhead::auth
