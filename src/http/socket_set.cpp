#include "http/socket_set.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include "claimq/failure.hpp"

namespace claimq::http {
namespace {

constexpr int most_events = 256;  // in one poll(); more come with the next

// Errors and hang-ups go to libcurl as readable or writable, so that its own call meets the error. With
// CURL_CSELECT_ERR it would fail the call and leave unread what the claims system sent before the end.
[[nodiscard]] int curl_events(std::uint32_t events) {
    int out = 0;
    if ((events & (EPOLLIN | EPOLLERR | EPOLLHUP)) != 0) out |= CURL_CSELECT_IN;
    if ((events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) != 0) out |= CURL_CSELECT_OUT;
    return out;
}

[[nodiscard]] std::uint32_t epoll_events(int what) {
    std::uint32_t events = 0;
    if ((what & CURL_POLL_IN) != 0) events |= EPOLLIN;
    if ((what & CURL_POLL_OUT) != 0) events |= EPOLLOUT;
    return events;
}

}  // namespace

SocketSet::SocketSet() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    if (epoll_.get() < 0)
        throw Failure(ExitStatus::os_error, "epoll_create1: " + std::generic_category().message(errno));
}

void SocketSet::serve(CURLM* multi) noexcept {
    curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, &SocketSet::want);
    curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, this);
}

bool SocketSet::act(CURLM* multi) {
    poll();
    int running = 0;
    for (const auto& [fd, events] : ready_) curl_multi_socket_action(multi, fd, events, &running);
    return !ready_.empty();
}

void SocketSet::try_next_addresses(CURLM* multi) {
    int running = 0;
    while (std::exchange(connect_failed_, false)) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // nothing else runs a call that waits for nothing
        curl_multi_socket_all(multi, &running);
#pragma GCC diagnostic pop
    }
}

void SocketSet::poll() {
    ready_.clear();
    std::array<epoll_event, most_events> events;
    const int count = ::epoll_wait(epoll_.get(), events.data(), most_events, 0);
    for (int i = 0; i < count; ++i) {
        const epoll_event& event = events[static_cast<std::size_t>(i)];
        const auto found = sockets_.find(event.data.fd);
        if (found == sockets_.end()) continue;
        if (found->second.use == Use::in_call)
            ready_.push_back({event.data.fd, curl_events(event.events)});
        else
            retire(found->first, found->second);
    }
}

curl_socket_t SocketSet::open(const curl_sockaddr& address) {
    const int fd = ::socket(address.family, address.socktype | SOCK_CLOEXEC, address.protocol);
    if (fd < 0) return CURL_SOCKET_BAD;
    sockets_[fd] = Socket{.ours = true};
    return fd;
}

int SocketSet::close(void* socket_set, curl_socket_t fd) noexcept {
    auto& set = *static_cast<SocketSet*>(socket_set);
    const auto found = set.sockets_.find(fd);
    if (found != set.sockets_.end()) {
        if (found->second.use == Use::in_call) set.connect_failed_ = true;  // never watched: connect(2) said no at once
        set.sockets_.erase(found);
    }
    return ::close(fd);
}

int SocketSet::want(CURL*, curl_socket_t fd, int what, void* self, void*) noexcept {
    auto& set = *static_cast<SocketSet*>(self);
    if (what == CURL_POLL_REMOVE) {
        set.release(fd);
    } else {
        Socket& socket = set.sockets_[fd];
        socket.use = Use::in_call;
        set.watch(fd, socket, epoll_events(what));
    }
    return 0;  // -1 would end every call of this multi handle
}

void SocketSet::watch(int fd, Socket& socket, std::uint32_t events) {
    if (socket.watched == events) return;
    epoll_event event{};
    event.events = events;
    event.data.fd = fd;
    int result = -1;
    if (socket.watched != 0) result = ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
    if (socket.watched == 0 || (result != 0 && errno == ENOENT))
        result = ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
    if (result != 0 && epoll_errno_ == 0) epoll_errno_ = errno;
    socket.watched = events;
}

// False when this number is not in the epoll set: it may be another file's by now.
bool SocketSet::unwatch(int fd, Socket& socket) noexcept {
    socket.watched = 0;
    return ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr) == 0;
}

void SocketSet::release(int fd) {
    const auto found = sockets_.find(fd);
    if (found == sockets_.end() || found->second.use != Use::in_call) return;
    Socket& socket = found->second;
    // Waited on for reading only: it is connected, and libcurl will close it through close(). Others it closes without
    // a word (cf_socket_close in lib/cf-socket.c, "not active").
    if (socket.ours && socket.watched == EPOLLIN) {
        socket.use = Use::idle;
        socket.idle_since = last_released_ = Clock::now();
        check_due_ = std::min(check_due_, last_released_ + idle_lifetime);
    } else {
        connect_failed_ = connect_failed_ || socket.ours;
        unwatch(fd, socket);
        sockets_.erase(found);
    }
}

void SocketSet::retire(int fd, Socket& socket) {
    socket.use = Use::retired;
    if (!unwatch(fd, socket)) return;
    ::shutdown(fd, SHUT_RDWR);
    // What is already there would have libcurl take the connection for alive; tcp(7): MSG_TRUNC discards it.
    constexpr std::size_t all = 1 << 30;
    ::recv(fd, nullptr, all, MSG_TRUNC | MSG_DONTWAIT);
}

void SocketSet::retire_long_idle(TimePoint now) {
    check_due_ = now + idle_lifetime;  // retired ones wait for the multi handle's end: look again
    for (auto& [fd, socket] : sockets_) {
        if (socket.use != Use::idle) continue;
        if (socket.idle_since + idle_lifetime <= now)
            retire(fd, socket);
        else
            check_due_ = std::min(check_due_, socket.idle_since + idle_lifetime);
    }
}

void SocketSet::retire_longest_idle() {
    auto longest = sockets_.end();
    for (auto it = sockets_.begin(); it != sockets_.end(); ++it)
        if (it->second.use == Use::idle &&
            (longest == sockets_.end() || it->second.idle_since < longest->second.idle_since))
            longest = it;
    if (longest != sockets_.end()) retire(longest->first, longest->second);
}

void SocketSet::retire_idle() {
    for (auto& [fd, socket] : sockets_)
        if (socket.use == Use::idle) retire(fd, socket);
}

void SocketSet::forget_all() {
    sockets_.clear();
    check_due_ = TimePoint::max();
}

int SocketSet::descriptor_shortage() noexcept {
    const Descriptor spare(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));  // as libcurl's resolver needs them
    return spare.get() < 0 ? errno : 0;
}

}  // namespace claimq::http
