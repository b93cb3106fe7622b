// The query of an AMQP URL, what stands behind its "?".
#pragma once
#include <string_view>

#include "amqp/endpoint.hpp"

namespace claimq::amqp {

// Reads `name=value&...` into the endpoint, whose scheme is already known. Throws Failure{usage}.
void set_values(Endpoint& endpoint, std::string_view query);

}  // namespace claimq::amqp
