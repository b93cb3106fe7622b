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

// How many bytes are surely taken by the kernel at once: `wanted` at least, or more, or less. rabbitmq-c waits without
// a bound for what is not.
[[nodiscard]] std::size_t send_buffer_room(int fd, std::size_t wanted) noexcept;
[[nodiscard]] inline bool send_buffer_takes(int fd, std::size_t bytes) noexcept {
    return send_buffer_room(fd, bytes) >= bytes;
}

// While corked, what is written is sent in full segments only, the rest after 200 ms or when it is uncorked (tcp(7)).
enum class Corked : bool { no, yes };
void set_corked(int fd, Corked) noexcept;

}  // namespace claimq::amqp
