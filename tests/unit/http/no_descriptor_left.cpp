#include "no_descriptor_left.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace claimq::http::test {
namespace {

thread_local bool none_left = false;

template <class... Arguments>
[[nodiscard]] int unless_none_left(long number, Arguments... arguments) noexcept {
    if (!none_left) return static_cast<int>(::syscall(number, arguments...));
    errno = EMFILE;
    return -1;
}

}  // namespace

NoDescriptorLeft::NoDescriptorLeft() noexcept { none_left = true; }
NoDescriptorLeft::~NoDescriptorLeft() { none_left = false; }

// These definitions of the executable come before those of libc, for libcurl too.
extern "C" {
int socket(int domain, int type, int protocol) noexcept { return unless_none_left(SYS_socket, domain, type, protocol); }
int socketpair(int domain, int type, int protocol, int fds[2]) noexcept {
    return unless_none_left(SYS_socketpair, domain, type, protocol, fds);
}
int epoll_create1(int flags) noexcept { return unless_none_left(SYS_epoll_create1, flags); }
}

}  // namespace claimq::http::test
