#include "http/ca_file.hpp"

#include <cerrno>
#include <fstream>
#include <system_error>

#include "claimq/failure.hpp"

namespace claimq::http {

void check_ca_file(const std::string& path) {
    errno = 0;
    std::ifstream file(path);
    std::string line;
    while (std::getline(file, line))
        if (line.starts_with("-----BEGIN ") && line.find("CERTIFICATE-----") != std::string::npos) return;
    const std::string why = errno != 0 ? std::generic_category().message(errno) : "no PEM certificate in it";
    throw Failure(ExitStatus::os_error, "CA file " + path + ": " + why);
}

}  // namespace claimq::http
