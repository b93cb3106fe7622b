// TCP of our own, since rabbitmq-c's loses errno, tries no further address after a timeout, and bounds no name lookup.
#pragma once
#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "claimq/clock.hpp"

namespace claimq::amqp {

struct Address {
    sockaddr_storage storage{};
    socklen_t length = 0;
    [[nodiscard]] std::string numeric() const;  // "127.0.0.1", "::1"
};

// All addresses of the host, in the system's order. Throws ConnectFailure; getaddrinfo() has no timeout, so past
// `until` it is left behind in its thread.
[[nodiscard]] std::vector<Address> resolve(const std::string& host, std::uint16_t port, TimePoint until);

// A connected, non-blocking, close-on-exec descriptor that the caller owns. Tries one address after the other, each for
// at most `each`. Throws ConnectFailure with the last address's reason.
[[nodiscard]] int connect_tcp(const std::vector<Address>& addresses, Milliseconds each, TimePoint until);

// How long the kernel may keep trying to deliver what we wrote: the only thing that ends a library write to a dead
// peer.
void set_user_timeout(int fd, Milliseconds timeout) noexcept;

// Would a write of `bytes` be taken by the kernel at once? rabbitmq-c waits without a bound when it would not.
[[nodiscard]] bool send_buffer_takes(int fd, std::size_t bytes) noexcept;

}  // namespace claimq::amqp
