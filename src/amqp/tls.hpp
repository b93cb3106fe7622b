// amqps: rabbitmq-c's TLS socket with what it leaves out: the system's CAs, a least version, a host check that knows IP
// addresses, a server name of one's own, and the reason of a refused certificate.
#pragma once
#include <amqp.h>

#include <vector>

#include "amqp/endpoint.hpp"
#include "amqp/tcp.hpp"

namespace claimq::amqp {

// Gives `connection` a connected TLS socket. Throws ConnectFailure.
void open_tls(amqp_connection_state_t connection, const Endpoint& endpoint, const std::vector<Address>& addresses,
              TimePoint until);

}  // namespace claimq::amqp
