// What is the same for every call, and the libcurl handle that is told of it once.
#pragma once
#include <string>

#include "claimq/clock.hpp"
#include "http/claim_url.hpp"
#include "http/curl_claims_api.hpp"
#include "http/handles.hpp"

namespace claimq::http {

struct TransferSetup {
    ClaimUrl url;
    Milliseconds timeout;
    std::string ca_file;  // empty: the system's bundle
    std::string user_agent;
    HeaderList headers;
};

// Initialises libcurl. Failure as make_claims_api() says.
[[nodiscard]] TransferSetup transfer_setup(const ClaimsApiOptions&);

// With all options set that no single call decides. Failure{os_error} when libcurl refuses the handle or an option.
[[nodiscard]] EasyHandle new_easy_handle(const TransferSetup&);

}  // namespace claimq::http
