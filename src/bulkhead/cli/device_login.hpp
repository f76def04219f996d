// Logging in without a browser of our own (RFC 8628): a code is shown, a person enters it on the provider's page, and
// we ask, as often as we are told and no more, whether they have.
#pragma once

#include <functional>
#include <string>

#include "bulkhead/auth/device_grant.hpp"
#include "bulkhead/auth/discovery.hpp"
#include "bulkhead/base/quantity.hpp"
#include "bulkhead/base/result.hpp"
#include "bulkhead/shell/https_fetch.hpp"

namespace bulkhead::cli {

struct DeviceLogin {
    std::string issuer, client, scopes;
    std::function<void(const auth::DeviceCode&)> show;  // to the person
    std::function<void(Duration)> pause;                // between two questions
};
struct LoggedIn {
    auth::Discovery provider;
    auth::TokenAnswer tokens;
};
Result<LoggedIn> log_in(const DeviceLogin& login, shell::HttpsFetch& fetch);

}  // namespace bulkhead::cli
