#include "bulkhead/auth/enrolment.hpp"

#include <fmt/format.h>

#include "bulkhead/codec/decode.hpp"
#include "bulkhead/codec/document.hpp"
#include "bulkhead/codec/print.hpp"

namespace bulkhead::auth {
namespace {

constexpr Limits limits{
    .bytes = enrolment_bytes_max, .documents = 1, .depth = 8, .nodes = 1'000, .scalar_bytes = 32 << 10};

template <class T>
Result<T> read(std::string_view json, std::string_view what) {
    // The reader takes YAML as well; what comes over the network is JSON and nothing else.
    if (!json.starts_with('{')) return fail(Code::invalid, fmt::format("the {} is not a JSON object", what));
    ReadText text = read_documents(what, json, limits);
    T value;
    if (text.errors.empty() && text.documents.size() == 1 &&
        decode(*text.documents.front().root, what, value, text.errors))
        return value;
    if (text.errors.empty()) return fail(Code::invalid, fmt::format("the {} is not one JSON object", what));
    return fail(Code::invalid, print(text.errors.front()));
}

}  // namespace

std::string print(const EnrolmentRequest& request) { return to_json(request); }
std::string print(const EnrolmentAnswer& answer) { return to_json(answer); }

Result<EnrolmentRequest> read_enrolment_request(std::string_view json) {
    return read<EnrolmentRequest>(json, "enrolment request");
}

Result<EnrolmentAnswer> read_enrolment_answer(std::string_view json) {
    return read<EnrolmentAnswer>(json, "enrolment answer");
}

}  // namespace bulkhead::auth
