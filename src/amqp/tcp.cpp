#include "amqp/tcp.hpp"

#include <fcntl.h>
#include <linux/sockios.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <future>
#include <memory>
#include <system_error>
#include <thread>

#include "amqp/connect_failure.hpp"

namespace claimq::amqp {

namespace {

struct Lookup {
    int error = 0;
    std::vector<Address> addresses;
};

Lookup look_up(const std::string& host, std::uint16_t port) {
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICSERV;
    addrinfo* list = nullptr;
    Lookup found;
    found.error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
    if (found.error != 0) return found;
    const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, &freeaddrinfo);
    for (const auto* one = list; one != nullptr; one = one->ai_next) {
        Address address;
        address.length = one->ai_addrlen;
        std::memcpy(&address.storage, one->ai_addr, one->ai_addrlen);
        found.addresses.push_back(address);
    }
    return found;
}

bool is_numeric(const std::string& host) {
    in6_addr ignored{};
    return inet_pton(AF_INET, host.c_str(), &ignored) == 1 || inet_pton(AF_INET6, host.c_str(), &ignored) == 1;
}

int left(TimePoint until) {
    const auto rest = std::chrono::ceil<Milliseconds>(until - Clock::now()).count();
    return static_cast<int>(std::clamp<std::int64_t>(rest, 0, 3'600'000));
}

// 0 or the errno of the attempt. On success `fd` is the connected descriptor.
int try_address(const Address& address, TimePoint until, int& fd) {
    fd = socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return errno;
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    int error = 0;
    if (connect(fd, reinterpret_cast<const sockaddr*>(&address.storage), address.length) != 0) error = errno;
    if (error == EINPROGRESS) {
        pollfd writable{fd, POLLOUT, 0};
        int ready = 0;
        do ready = poll(&writable, 1, left(until));
        while (ready < 0 && errno == EINTR);
        socklen_t size = sizeof error;
        if (ready <= 0)
            error = ready == 0 ? ETIMEDOUT : errno;
        else
            getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
    }
    if (error != 0) {
        close(fd);
        fd = -1;
    }
    return error;
}

}  // namespace

std::string Address::numeric() const {
    char text[NI_MAXHOST] = "";
    getnameinfo(reinterpret_cast<const sockaddr*>(&storage), length, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
    return text;
}

std::vector<Address> resolve(const std::string& host, std::uint16_t port, TimePoint until) {
    Lookup found;
    if (is_numeric(host)) {
        found = look_up(host, port);
    } else {
        std::packaged_task<Lookup()> task([host, port] { return look_up(host, port); });
        auto answer = task.get_future();
        std::thread(std::move(task)).detach();
        if (answer.wait_until(until) != std::future_status::ready)
            throw ConnectFailure(ExitStatus::unavailable, Retry::worthwhile, "name lookup took too long");
        found = answer.get();
    }
    if (found.error != 0)
        throw ConnectFailure(ExitStatus::unavailable, Retry::worthwhile,
                             std::string("name lookup: ") + gai_strerror(found.error));
    return std::move(found.addresses);
}

int connect_tcp(const std::vector<Address>& addresses, Milliseconds each, TimePoint until) {
    int error = 0;
    std::string reason;
    for (const auto& address : addresses) {
        int fd = -1;
        error = try_address(address, std::min(until, Clock::now() + each), fd);
        if (error == 0) return fd;
        reason = address.numeric() + ": " + std::generic_category().message(error);
    }
    const bool ours = error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
    throw ConnectFailure(ours ? ExitStatus::os_error : ExitStatus::unavailable, Retry::worthwhile, reason);
}

void set_user_timeout(int fd, Milliseconds timeout) noexcept {
    const auto value = static_cast<unsigned>(timeout.count());
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &value, sizeof value);
}

std::size_t send_buffer_room(int fd, std::size_t wanted) noexcept {
    pollfd writable{fd, POLLOUT, 0};
    if (poll(&writable, 1, 0) <= 0) return 0;
    if ((writable.revents & (POLLERR | POLLHUP)) != 0) return wanted;  // an error shows at once
    int queued = 0;
    int size = 0;
    socklen_t length = sizeof size;
    if (ioctl(fd, SIOCOUTQ, &queued) != 0 || getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, &length) != 0) return wanted;
    // The kernel counts its own overhead into SO_SNDBUF, so half of it is what surely holds payload (socket(7)).
    const auto holds = static_cast<std::size_t>(size) / 2;
    if (queued == 0) return std::max(wanted, holds);
    return holds - std::min(holds, static_cast<std::size_t>(queued) + 1);
}

void set_corked(int fd, Corked corked) noexcept {
    const int on = corked == Corked::yes;
    setsockopt(fd, IPPROTO_TCP, TCP_CORK, &on, sizeof on);
}

}  // namespace claimq::amqp
