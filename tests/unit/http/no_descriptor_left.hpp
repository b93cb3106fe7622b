// A process that has no descriptor left, as far as sockets and epoll are concerned. setrlimit(2) would take them from
// the sanitizers too, which need some to look at memory.
#pragma once

namespace claimq::http::test {

// For the life of this object socket(2), socketpair(2) and epoll_create1(2) fail with EMFILE in this thread.
class NoDescriptorLeft {
public:
    NoDescriptorLeft() noexcept;
    ~NoDescriptorLeft();
    NoDescriptorLeft(const NoDescriptorLeft&) = delete;
    NoDescriptorLeft& operator=(const NoDescriptorLeft&) = delete;
};

}  // namespace claimq::http::test
