// All of it on this machine's loopback, on ports that the kernel chose.
#include "amqp/tcp.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <thread>

#include "amqp/connect_failure.hpp"
#include "child_process.hpp"
#include "descriptors.hpp"

namespace claimq::amqp {
namespace {

using namespace std::chrono_literals;
using test::Descriptor;

// Tells "at once" from "never".
constexpr auto soon = 30s;
TimePoint in_time() { return Clock::now() + soon; }

// A bound port of the loopback. It refuses connections until listen() is called.
class Port {
public:
    explicit Port(int family = AF_INET) : socket_(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        if (family == AF_INET6) {
            sockaddr_in6 own{};
            own.sin6_family = AF_INET6;
            own.sin6_addr = in6addr_loopback;
            bind_to(own);
        } else {
            sockaddr_in own{};
            own.sin_family = AF_INET;
            own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
            bind_to(own);
        }
    }
    [[nodiscard]] bool bound() const { return bound_; }
    void listen(int backlog = 10) const { ASSERT_EQ(::listen(socket_.get(), backlog), 0); }
    [[nodiscard]] const Address& address() const { return address_; }
    [[nodiscard]] std::uint16_t number() const {
        return ntohs(reinterpret_cast<const sockaddr_in*>(&address_.storage)->sin_port);  // as sockaddr_in6's
    }
    [[nodiscard]] Descriptor accept() const {
        return Descriptor(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    }

private:
    template <typename Own>
    void bind_to(const Own& own) {
        address_.length = sizeof own;
        bound_ = bind(socket_.get(), reinterpret_cast<const sockaddr*>(&own), sizeof own) == 0 &&
                 getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address_.storage), &address_.length) == 0;
    }
    Descriptor socket_;
    Address address_;
    bool bound_ = false;
};

// Status and text of the failure.
template <typename Attempt>
std::pair<ExitStatus, std::string> failure_of(Attempt attempt) {
    try {
        attempt();
    } catch (const ConnectFailure& failure) {
        EXPECT_EQ(failure.retry(), Retry::worthwhile);
        return {failure.status(), failure.what()};
    }
    ADD_FAILURE() << "no failure";
    return {};
}

int option_of(int fd, int level, int name) {
    int value = -1;
    socklen_t size = sizeof value;
    EXPECT_EQ(getsockopt(fd, level, name, &value, &size), 0);
    return value;
}

// ---- names

TEST(Resolve, ANumericAddressIsItself) {
    for (const std::string host : {"127.0.0.1", "::1", "fe80::1", "10.255.255.53"}) {
        const auto found = resolve(host, 5672, TimePoint::min());  // nobody is asked, so no time is needed
        ASSERT_EQ(found.size(), 1u) << host;
        EXPECT_EQ(found[0].numeric(), host);
        EXPECT_EQ(ntohs(reinterpret_cast<const sockaddr_in*>(&found[0].storage)->sin_port), 5672);
    }
}

TEST(Resolve, LocalhostIsTheLoopback) {
    const auto found = resolve("localhost", 5671, in_time());
    ASSERT_FALSE(found.empty());
    for (const auto& address : found)
        EXPECT_TRUE(address.numeric().starts_with("127.") || address.numeric() == "::1") << address.numeric();
}

TEST(Resolve, ANameThatIsNoneIsAFailure) {
    // Longer than a label may be: no server is asked (RFC 1035, 2.3.4).
    const auto [status, text] = failure_of([] { (void)resolve(std::string(64, 'a'), 5672, in_time()); });
    EXPECT_EQ(status, ExitStatus::unavailable);
    EXPECT_TRUE(text.starts_with("name lookup: ")) << text;
}

// ---- connecting

TEST(ConnectTcp, GivesAConnectedNonBlockingDescriptor) {
    const Port port;
    port.listen();
    const Descriptor fd(connect_tcp({port.address()}, 5s, in_time()));
    EXPECT_NE(fcntl(fd.get(), F_GETFL) & O_NONBLOCK, 0);
    EXPECT_NE(fcntl(fd.get(), F_GETFD) & FD_CLOEXEC, 0);
    EXPECT_EQ(option_of(fd.get(), IPPROTO_TCP, TCP_NODELAY), 1);
    EXPECT_EQ(option_of(fd.get(), SOL_SOCKET, SO_KEEPALIVE), 1);
    const auto peer = port.accept();
    ASSERT_EQ(write(fd.get(), "x", 1), 1);
    char byte = 0;
    EXPECT_EQ(read(peer.get(), &byte, 1), 1);
}

TEST(ConnectTcp, ByNameAndNumber) {
    const Port port;
    port.listen();
    const Descriptor fd(connect_tcp(resolve("127.0.0.1", port.number(), in_time()), 5s, in_time()));
    EXPECT_GE(fd.get(), 0);
}

TEST(ConnectTcp, SpeaksIpv6) {
    const Port port(AF_INET6);
    if (!port.bound()) GTEST_SKIP() << "no IPv6 on the loopback here: " << std::strerror(errno);
    port.listen();
    EXPECT_EQ(port.address().numeric(), "::1");
    const Descriptor fd(connect_tcp(resolve("::1", port.number(), in_time()), 5s, in_time()));
    EXPECT_GE(fd.get(), 0);
}

TEST(ConnectTcp, ARefusalIsAFailureAtOnce) {
    const Port port;
    const auto before = Clock::now();
    EXPECT_EQ(failure_of([&] { (void)connect_tcp({port.address()}, 1h, Clock::now() + 2h); }),
              std::pair(ExitStatus::unavailable, std::string("127.0.0.1: Connection refused")));
    EXPECT_LT(Clock::now() - before, soon);
}

TEST(ConnectTcp, TriesOneAddressAfterTheOther) {
    const Port refusing;
    const Port listening;
    listening.listen();
    const Descriptor fd(connect_tcp({refusing.address(), refusing.address(), listening.address()}, 5s, in_time()));
    EXPECT_GE(fd.get(), 0);
}

// localhost often is ::1 first, while the broker is on 127.0.0.1 only.
TEST(ConnectTcp, GoesOnFromIpv6ToIpv4) {
    const Port refusing(AF_INET6);
    if (!refusing.bound()) GTEST_SKIP() << "no IPv6 on the loopback here: " << std::strerror(errno);
    const Port listening;
    listening.listen();
    const Descriptor fd(connect_tcp({refusing.address(), listening.address()}, 5s, in_time()));
    EXPECT_GE(fd.get(), 0);
    EXPECT_EQ(failure_of([&] {
                  const Port other;
                  (void)connect_tcp({other.address(), refusing.address()}, 5s, in_time());
              }),
              std::pair(ExitStatus::unavailable, std::string("::1: Connection refused")))
        << "the last address's reason";
}

// A listener whose queue is full answers no SYN.
class FullListener {
public:
    FullListener() {
        port.listen(0);
        for (auto& one : waiting_) {
            one = Descriptor(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
            const auto& address = port.address();
            (void)connect(one.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.length);
        }
    }
    Port port;

private:
    std::array<Descriptor, 4> waiting_;
};

TEST(ConnectTcp, AnAddressThatDoesNotAnswerIsGivenUpInTime) {
    const FullListener silent;
    const auto before = Clock::now();
    EXPECT_EQ(failure_of([&] { (void)connect_tcp({silent.port.address()}, 20ms, in_time()); }),
              std::pair(ExitStatus::unavailable, std::string("127.0.0.1: Connection timed out")));
    EXPECT_GE(Clock::now() - before, 20ms);
    EXPECT_LT(Clock::now() - before, soon);
}

TEST(ConnectTcp, AfterATimeoutTheNextAddressIsTried) {
    const FullListener silent;
    const Port listening;
    listening.listen();
    const Descriptor fd(connect_tcp({silent.port.address(), listening.address()}, 20ms, in_time()));
    EXPECT_GE(fd.get(), 0);
}

TEST(ConnectTcp, TheWholeIsBoundedToo) {
    const FullListener silent;
    const auto before = Clock::now();
    const std::vector<Address> many(1000, silent.port.address());
    EXPECT_EQ(failure_of([&] { (void)connect_tcp(many, 1h, Clock::now() + 20ms); }),
              std::pair(ExitStatus::unavailable, std::string("127.0.0.1: Connection timed out")));
    EXPECT_LT(Clock::now() - before, soon);
}

TEST(ConnectTcp, AFailedAttemptLeavesNoDescriptorOpen) {
    const auto lowest_free = [] { return Descriptor(fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3)).get(); };
    const Port refusing;
    const auto before = lowest_free();
    for (int time = 0; time < 10; ++time) failure_of([&] { (void)connect_tcp({refusing.address()}, 5s, in_time()); });
    EXPECT_EQ(lowest_free(), before);
}

TEST(ConnectTcp, NoDescriptorLeftIsAFailureOfOurs) {
    const Port port;
    port.listen();
    EXPECT_EQ(test::status_of_child([&] {
                  const auto status_with = [&](rlim_t descriptors, const std::vector<Address>& addresses) {
                      const rlimit limit{descriptors, 100};
                      if (setrlimit(RLIMIT_NOFILE, &limit) != 0) return 1;
                      try {
                          (void)connect_tcp(addresses, 5s, in_time());
                      } catch (const ConnectFailure& failure) {
                          return static_cast<int>(failure.status());
                      }
                      return 2;
                  };
                  // The undefined-behaviour sanitizer looks at a type that is new to it through a pipe, so it has to
                  // have met a failure before there are no descriptors left.
                  if (status_with(100, {}) != static_cast<int>(ExitStatus::unavailable)) return 3;
                  return status_with(3, {port.address()});
              }),
              static_cast<int>(ExitStatus::os_error));
}

TEST(SetUserTimeout, SetsTheKernelsPatience) {
    const Port port;
    port.listen();
    const Descriptor fd(connect_tcp({port.address()}, 5s, in_time()));
    set_user_timeout(fd.get(), 40s);
    EXPECT_EQ(option_of(fd.get(), IPPROTO_TCP, TCP_USER_TIMEOUT), 40'000);
}

// ---- what the kernel takes

struct Pair {
    Descriptor writer, reader;
};

Pair tcp_pair() {
    const Port port;
    port.listen();
    Descriptor writer(connect_tcp({port.address()}, 5s, in_time()));
    return {std::move(writer), port.accept()};
}

Pair unix_pair() {
    std::array<int, 2> ends{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
    return {Descriptor(ends[0]), Descriptor(ends[1])};
}

void fill(const Pair& pair) {
    const std::string chunk(65'536, 'x');
    // Data still moves to the reader's side while this writes, so one refusal is not the end of it.
    for (int refusals = 0; refusals < 100;) {
        if (send(pair.writer.get(), chunk.data(), chunk.size(), MSG_NOSIGNAL) < 0) {
            ASSERT_EQ(errno, EAGAIN);
            ++refusals;
            std::this_thread::yield();
        }
    }
}

void drain(const Pair& pair) {
    std::string chunk(1'048'576, '\0');
    while (recv(pair.reader.get(), chunk.data(), chunk.size(), MSG_DONTWAIT) > 0) {
    }
}

class SendBuffer : public testing::TestWithParam<Pair (*)()> {};

TEST_P(SendBuffer, TakesAnythingWhenEmpty) {
    const auto pair = GetParam()();
    EXPECT_TRUE(send_buffer_takes(pair.writer.get(), 1));
    EXPECT_TRUE(send_buffer_takes(pair.writer.get(), 131'072));
    EXPECT_TRUE(send_buffer_takes(pair.writer.get(), 100'000'000)) << "else it would never be sent";
}

TEST_P(SendBuffer, TakesNothingWhenFull) {
    const auto pair = GetParam()();
    fill(pair);
    EXPECT_FALSE(send_buffer_takes(pair.writer.get(), 1));
    EXPECT_FALSE(send_buffer_takes(pair.writer.get(), 131'072));
}

TEST_P(SendBuffer, TakesAgainWhenItWasRead) {
    const auto pair = GetParam()();
    fill(pair);
    // What is read here is acknowledged in the kernel's own time.
    for (const auto until = in_time(); !send_buffer_takes(pair.writer.get(), 32'768) && Clock::now() < until;)
        drain(pair);
    EXPECT_TRUE(send_buffer_takes(pair.writer.get(), 32'768));
}

TEST_P(SendBuffer, WhatItTakesIsWrittenAtOnce) {
    const auto pair = GetParam()();
    const std::string frame(32'768, 'x');
    int written = 0;
    for (; send_buffer_takes(pair.writer.get(), frame.size()) && written < 10'000; ++written)
        ASSERT_EQ(send(pair.writer.get(), frame.data(), frame.size(), MSG_NOSIGNAL),
                  static_cast<ssize_t>(frame.size()));
    EXPECT_GT(written, 0);
    EXPECT_LT(written, 10'000);
}

TEST_P(SendBuffer, AnErrorShowsAtOnceAndIsNotWaitedFor) {
    auto pair = GetParam()();
    fill(pair);
    pair.reader.reset();
    pollfd entry{pair.writer.get(), 0, 0};
    ASSERT_EQ(poll(&entry, 1, 30'000), 1);  // POLLHUP or POLLERR
    EXPECT_TRUE(send_buffer_takes(pair.writer.get(), 131'072));
    EXPECT_LT(send(pair.writer.get(), "x", 1, MSG_NOSIGNAL), 0);
}

INSTANTIATE_TEST_SUITE_P(Of, SendBuffer, testing::Values(&tcp_pair, &unix_pair),
                         [](const auto& kind) { return kind.param == &tcp_pair ? "Tcp" : "Unix"; });

}  // namespace
}  // namespace claimq::amqp
