// A file of certificates to trust.
#pragma once
#include <string>

namespace claimq::http {

// Failure{os_error} when it cannot be read or holds no PEM certificate. What is wrong inside a certificate shows at the
// first connection only.
void check_ca_file(const std::string& path);

}  // namespace claimq::http
