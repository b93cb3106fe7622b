// Written by hand: amqp_parse_url refuses a query, bytes above 127 and "AMQP://", ends a text at %00 and takes "host/"
// for vhost ""; libcurl takes "amqp:///vhost" for the host "vhost".
//
// Where this differs on purpose from pika.URLParameters 1.2.0 (130 URLs compared):
// - Refused here, taken there: no "amqp://" in front ("host", "amqp:host", "http://host"); a bad %-escape, bad UTF-8,
//   control characters; a fragment; port 0 and 05672; a host that is no host name; host/a/b, host/v/ and host// (there
//   vhost a, v and ""); a user or vhost over 255 bytes; a value that is empty or has no "="; heartbeat above 65535;
//   numbers such as " 5", "+5", "010", ".5", "1_0", "1e3" and "nan"; retry_delay=-1; blocked_connection_timeout=0.
// - Also refused: a raw "@" behind host and port. In "amqp://user:12/rest@host" everything parses, with half of the
//   password for a vhost, and that would be printed.
// - Taken here, refused there: "[" and "]" in a user or password; channel_max=0 (no limit); frame_max above 131072;
//   RabbitMQ's names for TLS.
// - Read otherwise: a "+" in a value is a plus sign, there a space; the host is percent-decoded, so the zone of
//   "[fe80::1%25eth0]" is eth0, and it keeps its capital letters.
// The same: an empty user ("amqp://:password@host") and an empty password are sent as they are.
#include <arpa/inet.h>

#include "amqp/endpoint.hpp"
#include "amqp/url_text.hpp"
#include "amqp/url_values.hpp"
#include "claimq/decimal.hpp"

namespace claimq::amqp {

namespace {

constexpr auto npos = std::string_view::npos;

Scheme scheme_of(std::string_view url) {
    const auto colon = url.find("://");
    const auto name = colon == npos ? std::string{} : lower_case(url.substr(0, colon));
    if (name == "amqp") return Scheme::amqp;
    if (name == "amqps") return Scheme::amqps;
    refuse_url("it must begin with amqp:// or amqps://");
}

struct Parts {
    std::string_view authority;  // user:password@host:port
    std::string_view path;       // without its first "/"
    std::string_view query;
};

Parts parts_of(std::string_view url) {
    const auto [before, query] = halves(url.substr(url.find("://") + 3), '?');
    const auto [authority, path] = halves(before, '/');
    const Parts parts{authority, path.value_or(""), query.value_or("")};
    if (parts.path.find('@') != npos || parts.query.find('@') != npos)
        refuse_url(
            "it has an @ behind host and port (write %40 for @, and in a user or password %2F for / and %3F for ?)");
    if (url.find('#') != npos) refuse_url("it has a fragment (write %23 for #)");
    return parts;
}

void set_login(Endpoint& endpoint, std::string_view userinfo) {
    const auto [user, password] = halves(userinfo, ':');
    if (!password) refuse_url("it has a user without a password (user:password@host)");
    endpoint.user = short_text("the user", decoded_text("the user", user));
    endpoint.password = decoded_text("the password", *password);
}

// What stands in brackets; the zone of a link-local address follows a "%".
bool is_ipv6(const std::string& text) {
    in6_addr address{};
    return ::inet_pton(AF_INET6, text.substr(0, text.find('%')).c_str(), &address) == 1;
}

void set_host(Endpoint& endpoint, std::string_view host) {
    if (host.empty()) return;
    const bool bracketed = host.starts_with('[') && host.ends_with(']');
    if (bracketed) host = host.substr(1, host.size() - 2);
    endpoint.host = short_text("the host", decoded_text("the host", host));
    if (bracketed && !is_ipv6(endpoint.host)) refuse_url("the host in brackets must be an IPv6 address");
    if (!bracketed && !is_host_name(endpoint.host)) refuse_url("the host must be a host name or an address");
}

void set_port(Endpoint& endpoint, std::string_view port) {
    endpoint.port = endpoint.scheme == Scheme::amqps ? 5671 : 5672;
    if (port.empty()) return;
    const auto number = whole_number(port, 1, 65'535);
    if (!number) refuse_url("the port must be a whole number from 1 to 65535 (an IPv6 address stands in brackets)");
    endpoint.port = static_cast<std::uint16_t>(*number);
}

void set_address(Endpoint& endpoint, std::string_view address) {
    const auto bracket = address.starts_with('[') ? address.find(']') : 0;
    const auto colon = address.find(':', bracket);
    set_host(endpoint, address.substr(0, colon));
    set_port(endpoint, colon == npos ? "" : address.substr(colon + 1));
}

std::string vhost_of(std::string_view path) {
    if (path.empty()) return "/";
    if (path.find('/') != npos) refuse_url("the vhost has a second / (write %2F for a / in its name, and for vhost /)");
    return short_text("the vhost", decoded_text("the vhost", path));
}

std::string url_host(const std::string& host) {
    if (host.find(':') == npos) return percent_encoded(host);
    const auto [address, zone] = halves(host, '%');
    return "[" + std::string{address} + (zone ? "%25" + percent_encoded(*zone) : "") + "]";
}

}  // namespace

Endpoint parse_url(std::string_view url) {
    Endpoint endpoint;
    endpoint.scheme = scheme_of(url);
    const auto parts = parts_of(url);
    const auto at = parts.authority.rfind('@');
    if (at != npos) set_login(endpoint, parts.authority.substr(0, at));
    set_address(endpoint, at == npos ? parts.authority : parts.authority.substr(at + 1));
    endpoint.vhost = vhost_of(parts.path);
    set_values(endpoint, parts.query);
    return endpoint;
}

std::string masked(const Endpoint& endpoint) {
    const std::string scheme = endpoint.scheme == Scheme::amqps ? "amqps" : "amqp";
    return scheme + "://" + percent_encoded(endpoint.user) + ":***@" + url_host(endpoint.host) + ":" +
           std::to_string(endpoint.port) + "/" + percent_encoded(endpoint.vhost);
}

}  // namespace claimq::amqp
