// The claims system over HTTP, by libcurl. The rest of the program sees this header and the seam only.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "claimq/claims_api.hpp"
#include "claimq/clock.hpp"
#include "http/claim_url.hpp"

namespace claimq::http {

struct ClaimsApiOptions {
    ClaimUrl url;
    Milliseconds timeout{10'000};        // of a whole call, from start() on
    std::string bearer_token;            // empty: no Authorization header
    std::optional<std::string> ca_file;  // instead of the system's bundle
    std::string user_agent = "claimq";   // main appends the version
};

// Failure: usage for a token that no header can carry, os_error when libcurl cannot be set up or the CA file is
// unusable. Nothing is connected yet. The caller ignores SIGPIPE: libcurl is told to leave signals alone.
[[nodiscard]] std::unique_ptr<ClaimsApi> make_claims_api(const ClaimsApiOptions&);

}  // namespace claimq::http
