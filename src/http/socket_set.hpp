// libcurl's sockets, collected in one epoll descriptor that the loop's poll can watch.
//
// libcurl asks for a socket to be watched when a call takes it and to be forgotten when the call is over, which would
// be two epoll_ctl a call. A connection stays in the epoll set between calls instead: that costs nothing, and shows
// when something arrives on it that belongs to no call. The kernel takes it out when it is closed.
#pragma once
#include <curl/curl.h>

#include <chrono>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "claimq/clock.hpp"
#include "http/handles.hpp"

namespace claimq::http {

class SocketSet {
public:
    static constexpr std::chrono::seconds idle_lifetime{2};  // SPEC 6: idle connections are dropped after that

    SocketSet();  // Failure{os_error} when there is no epoll descriptor
    SocketSet(const SocketSet&) = delete;
    SocketSet& operator=(const SocketSet&) = delete;

    [[nodiscard]] int fd() const noexcept { return epoll_.get(); }

    // Has this multi handle report its sockets here.
    void serve(CURLM*) noexcept;

    // Has libcurl read and write what can be now, without waiting; a bounded number of sockets at a time. True when
    // there were some. Retires idle connections on which something has arrived: a FIN, or an answer to nothing, which
    // libcurl would take for the next call's (its liveness check, cf_socket_conn_is_alive in lib/cf-socket.c, finds
    // only the FIN).
    bool act(CURLM*);

    // libcurl 7.88 turns to a host's next address when it runs the call again (is_connected in lib/connect.c), and
    // when the last address has failed no socket and no near timer makes it do so. To be called after every action.
    void try_next_addresses(CURLM*);

    // For CURLOPT_OPENSOCKETFUNCTION and CURLOPT_CLOSESOCKETFUNCTION. open() leaves errno as socket(2) set it.
    [[nodiscard]] curl_socket_t open(const curl_sockaddr&);
    static int close(void* socket_set, curl_socket_t) noexcept;

    // A retired connection is shut down, so that the claims system sees its end. libcurl finds it dead before it would
    // use it again, and closes it then, or with the multi handle.
    void retire_long_idle(TimePoint now);
    void retire_longest_idle();
    void retire_idle();  // all of them
    void forget_all();   // after the multi handle they belonged to is gone
    [[nodiscard]] TimePoint idle_check_due() const noexcept { return sockets_.empty() ? TimePoint::max() : check_due_; }
    [[nodiscard]] TimePoint last_released() const noexcept { return last_released_; }  // when a call last left one

    [[nodiscard]] int epoll_errno() const noexcept { return epoll_errno_; }  // of the first epoll_ctl that failed, or 0
    [[nodiscard]] static int descriptor_shortage() noexcept;  // why there is no further descriptor to be had, or 0

private:
    enum class Use { in_call, idle, retired };
    struct Ready {
        int fd;
        int events;  // CURL_CSELECT_IN, CURL_CSELECT_OUT
    };
    struct Socket {
        Use use = Use::in_call;
        bool ours = false;          // opened by open(); the others are resolvers' socket pairs
        std::uint32_t watched = 0;  // 0: not in the epoll set
        TimePoint idle_since{};
    };

    static int want(CURL*, curl_socket_t, int what, void* self, void*) noexcept;
    void watch(int fd, Socket&, std::uint32_t events);
    bool unwatch(int fd, Socket&) noexcept;
    void poll();
    void release(int fd);
    void retire(int fd, Socket&);

    Descriptor epoll_;
    std::unordered_map<int, Socket> sockets_;
    std::vector<Ready> ready_;
    TimePoint last_released_{};
    TimePoint check_due_ = TimePoint::max();
    int epoll_errno_ = 0;
    bool connect_failed_ = false;
};

}  // namespace claimq::http
