// The AMQP URL: what is taken is within its bounds and survives a round trip, what is refused is refused in our own
// words, and neither shows the password.
#include <string>

#include "amqp/endpoint.hpp"
#include "claimq/failure.hpp"
#include "claimq/utf8.hpp"
#include "property.hpp"

namespace claimq::amqp {
namespace {

using fuzz::must;

constexpr std::string_view secret = "s3CrEt";  // in none of our own words

void check_bounds(const Endpoint& e) {
    for (const auto* text : {&e.user, &e.vhost, &e.host, &e.locale, &e.tls.server_name})
        must(text->size() <= 255, "fits a short string", *text);
    for (const auto* text : {&e.user, &e.password, &e.vhost, &e.host, &e.locale, &e.tls.server_name})
        must(is_utf8(*text) && text->find_first_of(std::string_view("\0\r\n\x7F", 4)) == std::string::npos,
             "is UTF-8 without control characters", *text);
    must(!e.host.empty() && !e.vhost.empty(), "has a host and a vhost");
    must(e.port != 0, "has a port");
    must(e.heartbeat.count() >= 0 && e.heartbeat.count() <= 65'535, "heartbeat within AMQP's bounds");
    must(e.connection_attempts >= 1, "connection_attempts is at least 1");
    must(e.retry_delay.count() >= 0, "retry_delay is not negative");
    must(e.socket_timeout.count() > 0 && e.stack_timeout.count() > 0 && e.blocked_connection_timeout.count() > 0,
         "timeouts are more than 0");
    must(e.channel_max.value_or(0) >= 0 && e.channel_max.value_or(0) <= 65'535, "channel_max within AMQP's bounds");
    must(e.frame_max.value_or(4'096) >= 4'096, "frame_max is at least 4096");
    must(e.auth == AuthMechanism::plain || e.scheme == Scheme::amqps, "EXTERNAL needs TLS");
    must(e.tls.keyfile.empty() || !e.tls.certfile.empty(), "a key needs its certificate");
}

void check_masked(const Endpoint& endpoint) {
    const auto shown = masked(endpoint);
    must(fuzz::is_printable_ascii(shown), "the masked URL is one line of ASCII", shown);
    auto other = endpoint;
    other.password = std::string(secret);
    must(masked(other) == shown, "the masked URL does not depend on the password", shown);
    const auto again = parse_url(shown);
    must(again.scheme == endpoint.scheme && again.user == endpoint.user && again.host == endpoint.host &&
             again.port == endpoint.port && again.vhost == endpoint.vhost && again.password == "***",
         "the masked URL means the same broker", shown);
}

// What is said about the URL: the masked one, or why it is refused.
std::string said_of(std::string_view url) {
    try {
        const auto endpoint = parse_url(url);
        check_bounds(endpoint);
        check_masked(endpoint);
        return masked(endpoint);
    } catch (const Failure& failure) {
        const std::string why = failure.what();
        must(failure.status() == ExitStatus::usage, "a bad URL is a usage error", why);
        must(why.starts_with("AMQP URL: ") && why.size() < 600, "the refusal is a line of ours", why);
        return why;
    }
}

// Whatever stands between the first ":" behind "//" and an "@" may be a piece of a password, however broken the URL.
void check_secret(std::string_view url) {
    const auto begin = url.find("://");
    if (begin == std::string_view::npos || url.find(secret) != std::string_view::npos) return;
    const auto colon = url.find(':', begin + 3);
    if (colon == std::string_view::npos || url.find('@', colon) == std::string_view::npos) return;
    std::string with_secret(url);
    with_secret.insert(colon + 1, secret);
    const auto said = said_of(with_secret);
    must(said.find(secret) == std::string::npos, "the password is not shown", said);
}

}  // namespace
}  // namespace claimq::amqp

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto url = claimq::fuzz::text_of(data, size);
    static_cast<void>(claimq::amqp::said_of(url));
    claimq::amqp::check_secret(url);
    return 0;
}
