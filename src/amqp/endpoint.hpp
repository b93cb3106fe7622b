// Where the broker is and how to reach it: the values of EAI_AMQP_URL.
#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace claimq::amqp {

enum class Scheme { amqp, amqps };
enum class VerifyPeer : bool { no, yes };
enum class AuthMechanism { plain, external };

struct Tls {
    std::string cacertfile;  // empty: the system's CA bundle
    std::string certfile;    // empty: no client certificate
    std::string keyfile;     // empty: the key is in certfile
    VerifyPeer verify = VerifyPeer::yes;
    std::string server_name;  // empty: the host
};

struct Endpoint {
    Scheme scheme = Scheme::amqp;
    std::string host = "localhost";  // without the brackets of an IPv6 address
    std::uint16_t port = 5672;
    std::string user = "guest";
    std::string password = "guest";
    std::string vhost = "/";
    AuthMechanism auth = AuthMechanism::plain;
    Tls tls;

    std::chrono::seconds heartbeat{30};  // asked for; 0: off
    int connection_attempts = 1;
    std::chrono::milliseconds retry_delay{2'000};
    std::chrono::milliseconds socket_timeout{10'000};  // one TCP connect
    std::chrono::milliseconds stack_timeout{15'000};   // the whole bring-up: TCP, TLS, AMQP
    std::chrono::milliseconds blocked_connection_timeout{30'000};
    std::optional<int> channel_max;
    std::optional<int> frame_max;
    std::string locale = "en_US";
};

// The grammar of pika.URLParameters, strictly. Throws Failure{usage} that names the part and never the password.
[[nodiscard]] Endpoint parse_url(std::string_view url);

// For messages: scheme://user:***@host:port/vhost.
[[nodiscard]] std::string masked(const Endpoint&);

}  // namespace claimq::amqp
