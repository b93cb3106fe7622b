#include "amqp/url_values.hpp"

#include <algorithm>
#include <limits>
#include <set>

#include "amqp/url_text.hpp"
#include "claimq/decimal.hpp"

namespace claimq::amqp {

namespace {

using std::chrono::milliseconds;

constexpr int int_max = std::numeric_limits<int>::max();

struct Value {
    std::string name;
    std::string text;
};

int whole(const Value& value, int least, int most) {
    const auto number = whole_number(value.text, static_cast<unsigned>(least), static_cast<unsigned>(most));
    if (!number)
        refuse_url(value.name + " must be a whole number from " + std::to_string(least) + " to " +
                   std::to_string(most));
    return static_cast<int>(*number);
}

milliseconds zero_or_more(const Value& value) {
    const auto time = seconds(value.text);
    if (!time) refuse_url(value.name + " must be a number of seconds, such as 2 or 3.5");
    return *time;
}

milliseconds more_than_zero(const Value& value) {
    const auto time = zero_or_more(value);
    if (time == milliseconds{0}) refuse_url(value.name + " must be more than 0 seconds");
    return time;
}

Tls& tls(Endpoint& endpoint, const Value& value) {
    if (endpoint.scheme != Scheme::amqps) refuse_url(value.name + " needs amqps://");
    return endpoint.tls;
}

VerifyPeer verify(const Value& value) {
    if (value.text == "verify_peer") return VerifyPeer::yes;
    if (value.text == "verify_none") return VerifyPeer::no;
    refuse_url("verify must be verify_peer or verify_none");
}

std::string server_name(const Value& value) {
    // RabbitMQ's Erlang client (amqp_uri.erl) takes "disable" for "send no name"; as a name no certificate would match
    // it.
    if (value.text == "disable") refuse_url(value.name + " cannot be disabled, only set");
    if (!is_host_name(value.text)) refuse_url(value.name + " must be a host name");
    return short_text(value.name, value.text);
}

AuthMechanism auth_mechanism(const Endpoint& endpoint, const Value& value) {
    const auto name = lower_case(value.text);
    if (name == "plain") return AuthMechanism::plain;
    if (name != "external") refuse_url("auth_mechanism must be PLAIN or EXTERNAL");
    if (endpoint.scheme != Scheme::amqps) refuse_url("auth_mechanism EXTERNAL needs amqps://");
    return AuthMechanism::external;
}

struct Setting {
    std::string_view name;
    void (*set)(Endpoint&, const Value&);
};

constexpr Setting known[] = {
    {"heartbeat", [](auto& e, auto& v) { e.heartbeat = std::chrono::seconds{whole(v, 0, 65'535)}; }},
    {"connection_attempts", [](auto& e, auto& v) { e.connection_attempts = whole(v, 1, int_max); }},
    {"retry_delay", [](auto& e, auto& v) { e.retry_delay = zero_or_more(v); }},
    {"socket_timeout", [](auto& e, auto& v) { e.socket_timeout = more_than_zero(v); }},
    {"stack_timeout", [](auto& e, auto& v) { e.stack_timeout = more_than_zero(v); }},
    {"blocked_connection_timeout", [](auto& e, auto& v) { e.blocked_connection_timeout = more_than_zero(v); }},
    {"channel_max", [](auto& e, auto& v) { e.channel_max = whole(v, 0, 65'535); }},
    {"frame_max", [](auto& e, auto& v) { e.frame_max = whole(v, 4'096, int_max); }},
    {"locale", [](auto& e, auto& v) { e.locale = short_text(v.name, v.text); }},
    {"cacertfile", [](auto& e, auto& v) { tls(e, v).cacertfile = v.text; }},
    {"certfile", [](auto& e, auto& v) { tls(e, v).certfile = v.text; }},
    {"keyfile", [](auto& e, auto& v) { tls(e, v).keyfile = v.text; }},
    {"verify", [](auto& e, auto& v) { tls(e, v).verify = verify(v); }},
    {"server_name_indication", [](auto& e, auto& v) { tls(e, v).server_name = server_name(v); }},
    {"auth_mechanism", [](auto& e, auto& v) { e.auth = auth_mechanism(e, v); }},
};

// pika's Python literals, and a name it has dropped.
struct Replaced {
    std::string_view name;
    const char* advice;
};

constexpr Replaced replaced[] = {
    {"ssl_options", "use amqps:// with cacertfile, certfile, keyfile, verify and server_name_indication"},
    {"tcp_options", "use heartbeat to notice a dead peer, and socket_timeout for the connect"},
    {"client_properties", "leave it out, the programs name themselves"},
    {"backpressure_detection", "use blocked_connection_timeout"},
};

[[noreturn]] void refuse_name(const std::string& name) {
    const auto* const old = std::ranges::find(replaced, name, &Replaced::name);
    if (old != std::end(replaced)) refuse_url(name + " is not supported: " + old->advice);
    const bool a_word = name.size() <= 40 && is_host_name(name);
    std::string why = "unknown name " + (a_word ? "'" + name + "' " : "") + "in the query; known are";
    for (const auto& setting : known) why.append(" ").append(setting.name);
    refuse_url(why);
}

void set_value(Endpoint& endpoint, std::string_view pair, std::set<std::string_view>& seen) {
    const auto [raw_name, raw_text] = halves(pair, '=');
    if (!raw_text) refuse_url("a name in the query has no value (name=value)");
    const std::string name = decoded_text("a name in the query", raw_name);
    const auto* const setting = std::ranges::find(known, name, &Setting::name);
    if (setting == std::end(known)) refuse_name(name);
    if (!seen.insert(setting->name).second) refuse_url(name + " is given twice");
    const Value value{name, decoded_text(name, *raw_text)};
    if (value.text.empty()) refuse_url(name + " is empty");
    setting->set(endpoint, value);
}

}  // namespace

void set_values(Endpoint& endpoint, std::string_view query) {
    std::set<std::string_view> seen;
    for (std::optional<std::string_view> rest = query; rest;) {
        const auto [pair, others] = halves(*rest, '&');
        if (!pair.empty()) set_value(endpoint, pair, seen);
        rest = others;
    }
    if (!endpoint.tls.keyfile.empty() && endpoint.tls.certfile.empty()) refuse_url("keyfile needs certfile");
}

}  // namespace claimq::amqp
