// What a node and the control plane say to each other once, over HTTPS: POST /v1/enrol. Both sides read the other's
// JSON by these descriptions.
#pragma once

#include <string>
#include <string_view>

#include "bulkhead/base/result.hpp"
#include "bulkhead/model/node.hpp"

namespace bulkhead::auth {

inline constexpr std::string_view enrolment_path = "/v1/enrol";
inline constexpr std::size_t enrolment_bytes_max = 64 << 10;

struct EnrolmentRequest {
    std::string name;
    std::string token;
    std::string request;      // PKCS#10, PEM
    std::string evidenceKey;  // Ed25519 public key, base64
    GpuNodeSpec spec;

    static constexpr void describe(auto&& field) {
        field("name", &EnrolmentRequest::name, "The node's name.", Rule{.required = true, .format = Format::name});
        field("token", &EnrolmentRequest::token, "The one-time token.", Rule{.required = true, .format = Format::line});
        field("request", &EnrolmentRequest::request, "The certificate request, PEM.", Rule{.required = true});
        field("evidenceKey", &EnrolmentRequest::evidenceKey, "The key the node signs evidence with: Ed25519, base64.",
              Rule{.required = true, .format = Format::line});
        field("spec", &EnrolmentRequest::spec, "Where the node stands.", Rule{.required = true});
    }
    friend bool operator==(const EnrolmentRequest&, const EnrolmentRequest&) = default;
};

struct EnrolmentAnswer {
    std::string certificate;  // of the node, PEM
    std::string ca;           // PEM
    std::string agents;       // host:port that agents connect to

    static constexpr void describe(auto&& field) {
        field("certificate", &EnrolmentAnswer::certificate, "The node's certificate, PEM.", Rule{.required = true});
        field("ca", &EnrolmentAnswer::ca, "The fleet's CA certificate, PEM.", Rule{.required = true});
        field("agents", &EnrolmentAnswer::agents, "Where agents connect: host:port.",
              Rule{.required = true, .format = Format::line});
    }
    friend bool operator==(const EnrolmentAnswer&, const EnrolmentAnswer&) = default;
};

std::string print(const EnrolmentRequest& request);
std::string print(const EnrolmentAnswer& answer);
Result<EnrolmentRequest> read_enrolment_request(std::string_view json);
Result<EnrolmentAnswer> read_enrolment_answer(std::string_view json);

}  // namespace bulkhead::auth
