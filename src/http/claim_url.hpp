// `--claim URL`: where the claims system is.
#pragma once
#include <string>
#include <string_view>

namespace claimq::http {

struct ClaimUrl {
    std::string endpoint;  // what is POSTed to: the URL without slashes at its end, and /v1/claims
    std::string host;      // lower case, IPv6 without brackets
    bool is_https = false;
    bool is_loopback = false;  // by name or number: localhost, *.localhost, 127.0.0.0/8, ::1. No name is looked up
};

// http or https (any case), host, optional port and path; no userinfo, query or fragment.
// Failure{usage} says what is wrong and quotes nothing of the text, which may hold a password.
[[nodiscard]] ClaimUrl parse_claim_url(std::string_view text);

}  // namespace claimq::http
