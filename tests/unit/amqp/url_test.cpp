#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "amqp/endpoint.hpp"
#include "claimq/failure.hpp"

namespace claimq::amqp {
namespace {

using namespace std::chrono_literals;

// What parse_url says about a URL it must refuse with status 64.
std::string refusal(const std::string& url) {
    try {
        const auto endpoint = parse_url(url);
        ADD_FAILURE() << url << " was taken as " << masked(endpoint);
    } catch (const Failure& failure) {
        EXPECT_EQ(failure.status(), ExitStatus::usage) << url;
        return failure.what();
    }
    return {};
}

struct Refused {
    std::string url;
    std::string naming;  // a piece of the message
};

void expect_refused(const std::vector<Refused>& rows) {
    for (const auto& row : rows) {
        const auto message = refusal(row.url);
        EXPECT_NE(message.find(row.naming), std::string::npos) << row.url << ": " << message;
        EXPECT_EQ(message.find('\n'), std::string::npos) << row.url;
    }
}

Endpoint with(const std::string& query) { return parse_url("amqp://host/v?" + query); }
Endpoint with_tls(const std::string& query) { return parse_url("amqps://host/v?" + query); }

// ---- scheme, host and port

TEST(Url, DefaultOfTheProgramsIsTakenWhole) {
    const auto endpoint = parse_url("amqp://guest:guest@127.0.0.1:5672/%2F");
    EXPECT_EQ(endpoint.scheme, Scheme::amqp);
    EXPECT_EQ(endpoint.host, "127.0.0.1");
    EXPECT_EQ(endpoint.port, 5672);
    EXPECT_EQ(endpoint.user, "guest");
    EXPECT_EQ(endpoint.password, "guest");
    EXPECT_EQ(endpoint.vhost, "/");
}

TEST(Url, WhatIsMissingHasADefault) {
    const auto endpoint = parse_url("amqp://");
    EXPECT_EQ(endpoint.host, "localhost");
    EXPECT_EQ(endpoint.port, 5672);
    EXPECT_EQ(endpoint.user, "guest");
    EXPECT_EQ(endpoint.password, "guest");
    EXPECT_EQ(endpoint.vhost, "/");
    EXPECT_EQ(endpoint.auth, AuthMechanism::plain);
    EXPECT_EQ(endpoint.heartbeat, 30s);
    EXPECT_EQ(endpoint.connection_attempts, 1);
    EXPECT_EQ(endpoint.retry_delay, 2s);
    EXPECT_EQ(endpoint.socket_timeout, 10s);
    EXPECT_EQ(endpoint.stack_timeout, 15s);
    EXPECT_EQ(endpoint.blocked_connection_timeout, 30s);
    EXPECT_EQ(endpoint.channel_max, std::nullopt);
    EXPECT_EQ(endpoint.frame_max, std::nullopt);
    EXPECT_EQ(endpoint.locale, "en_US");
    EXPECT_EQ(endpoint.tls.verify, VerifyPeer::yes);
    EXPECT_EQ(endpoint.tls.cacertfile + endpoint.tls.certfile + endpoint.tls.keyfile + endpoint.tls.server_name, "");
}

TEST(Url, SchemeInAnyCaseSetsThePort) {
    const struct {
        const char* url;
        Scheme scheme;
        int port;
    } rows[] = {
        {"amqp://h", Scheme::amqp, 5672},        {"AMQP://h", Scheme::amqp, 5672},   {"AmQp://h/", Scheme::amqp, 5672},
        {"amqps://h", Scheme::amqps, 5671},      {"AMQPS://h", Scheme::amqps, 5671}, {"amqps://", Scheme::amqps, 5671},
        {"amqps://h:5672", Scheme::amqps, 5672}, {"amqp://h:", Scheme::amqp, 5672},
    };
    for (const auto& row : rows) {
        EXPECT_EQ(parse_url(row.url).scheme, row.scheme) << row.url;
        EXPECT_EQ(parse_url(row.url).port, row.port) << row.url;
    }
}

TEST(Url, OtherSchemesAreRefused) {
    const std::string naming = "must begin with amqp:// or amqps://";
    expect_refused({{"", naming},
                    {"redis://h", naming},
                    {"http://h", naming},
                    {"amqpx://h", naming},
                    {"amqp", naming},
                    {"amqp:", naming},
                    {"amqp:/h", naming},
                    {"amqp:h", naming},
                    {"//h/v", naming},
                    {"://h", naming},
                    {"host", naming},
                    {"host:5672", naming},
                    {" amqp://h", naming}});
}

TEST(Url, HostAndPort) {
    const struct {
        const char* url;
        const char* host;
        int port;
    } rows[] = {
        {"amqp://broker.example.com:5673/v", "broker.example.com", 5673},
        {"amqp://:5673", "localhost", 5673},
        {"amqp:///vhost", "localhost", 5672},  // libcurl: host "vhost"
        {"amqp://u:p@:5673/v", "localhost", 5673},
        {"amqp://u:p@/v", "localhost", 5672},
        {"amqp://u:p@", "localhost", 5672},
        {"amqp://0x7f.1", "0x7f.1", 5672},  // libcurl: 127.0.0.1
        {"amqp://HOST", "HOST", 5672},
        {"amqp://h%6Fst", "host", 5672},
        {"amqp://under_score-1.example.", "under_score-1.example.", 5672},
        {"amqp://ex%C3%A4mple", "ex\xC3\xA4mple", 5672},
        {"amqp://h:1", "h", 1},
        {"amqp://h:65535", "h", 65535},
        {"amqp://h:5673?heartbeat=5", "h", 5673},
        {"amqp://[::1]", "::1", 5672},
        {"amqps://[::1]:5671", "::1", 5671},
        {"amqp://u:p@[2001:db8::7]:5673/v", "2001:db8::7", 5673},
        {"amqp://[::ffff:127.0.0.1]", "::ffff:127.0.0.1", 5672},
        {"amqp://[fe80::1%25eth0]:5673", "fe80::1%eth0", 5673},
    };
    for (const auto& row : rows) {
        EXPECT_EQ(parse_url(row.url).host, row.host) << row.url;
        EXPECT_EQ(parse_url(row.url).port, row.port) << row.url;
    }
}

TEST(Url, BadHostsAndPortsAreRefused) {
    expect_refused({{"amqp://ho st", "host"},
                    {"amqp://h1,h2", "host"},
                    {"amqp://h%2Fx", "host"},
                    {"amqp://h%40x", "host"},
                    {"amqp://h%zz", "host"},
                    {"amqp://h%00", "host"},
                    {"amqp://h\r", "host"},
                    {"amqp://" + std::string(256, 'h'), "host is longer than 255"},
                    {"amqp://[::1", "host"},
                    {"amqp://[::1]x:5672", "host"},
                    {"amqp://::1]", "port"},
                    {"amqp://[]", "IPv6"},
                    {"amqp://[host]", "IPv6"},
                    {"amqp://[127.0.0.1]", "IPv6"},
                    {"amqp://[::1%eth0]", "host has a %"},
                    {"amqp://::1", "port"},
                    {"amqp://h:0", "port"},
                    {"amqp://h:65536", "port"},
                    {"amqp://h:99999", "port"},
                    {"amqp://h:99999999999999999999999", "port"},
                    {"amqp://h:-1", "port"},
                    {"amqp://h:+5", "port"},
                    {"amqp://h:05672", "port"},
                    {"amqp://h:0x10", "port"},
                    {"amqp://h:56%372", "port"},
                    {"amqp://h:5672 ", "port"},
                    {"amqp://h:5672\r", "port"},
                    {"amqp://h:a", "port"},
                    {"amqp://h:1:2", "port"}});
}

// ---- user and password

TEST(Url, UserAndPasswordAreDecodedAsPikaDoes) {
    const struct {
        std::string userinfo;
        std::string user;
        std::string password;
    } rows[] = {
        {"u:p", "u", "p"},
        {"u:p%40s%2F%23%25%3A", "u", "p@s/#%:"},
        {"u:p:w", "u", "p:w"},
        {"u:p+w", "u", "p+w"},
        {"u:caf%C3%A9", "u", "caf\xC3\xA9"},
        {"u:caf\xC3\xA9", "u", "caf\xC3\xA9"},
        {"u:p@ss", "u", "p@ss"},
        {"u:p@:@", "u", "p@:@"},
        {"u@x:p", "u@x", "p"},
        {"u%40x%3A:p", "u@x:", "p"},
        {"u:p w", "u", "p w"},
        {"u:p%3Fq", "u", "p?q"},
        {"u:p[w]", "u", "p[w]"},
        {"u:[p", "u", "[p"},
        {"u:a:%2F%2Fb", "u", "a://b"},
        {"u:%f0%9F%98%80", "u", "\xF0\x9F\x98\x80"},
        {"u:%2541", "u", "%41"},
        {"u:", "u", ""},
        {":p", "", "p"},
        {":", "", ""},
        {"\xE2\x82\xAC:p", "\xE2\x82\xAC", "p"},
        {std::string(255, 'u') + ":p", std::string(255, 'u'), "p"},
        {"u:" + std::string(1000, 'p'), "u", std::string(1000, 'p')},
    };
    for (const auto& row : rows) {
        const auto endpoint = parse_url("amqp://" + row.userinfo + "@host:5673/v");
        EXPECT_EQ(endpoint.user, row.user) << row.userinfo;
        EXPECT_EQ(endpoint.password, row.password) << row.userinfo;
        EXPECT_EQ(endpoint.host, "host") << row.userinfo;
        EXPECT_EQ(endpoint.vhost, "v") << row.userinfo;
    }
}

TEST(Url, BadUsersAndPasswordsAreRefused) {
    expect_refused({{"amqp://u@h", "user without a password"},
                    {"amqp://@h", "user without a password"},
                    {"amqps://u@h?auth_mechanism=EXTERNAL", "user without a password"},
                    {"amqp://u%zz:p@h", "user has a %"},
                    {"amqp://u%00:p@h", "user has a control character"},
                    {"amqp://u%FF:p@h", "user is not UTF-8"},
                    {"amqp://" + std::string(256, 'u') + ":p@h", "user is longer than 255 bytes"},
                    {"amqp://u:%@h", "password has a %"},
                    {"amqp://u:%4@h", "password has a %"},
                    {"amqp://u:%4g@h", "password has a %"},
                    {"amqp://u:%+4@h", "password has a %"},
                    {"amqp://u:%-4@h", "password has a %"},
                    {"amqp://u:% 4@h", "password has a %"},
                    {"amqp://u:%0x41@h", "password has a %"},
                    {"amqp://u:p%00@h", "password has a control character"},
                    {"amqp://u:p%0A@h", "password has a control character"},
                    {"amqp://u:p\n@h", "password has a control character"},
                    {"amqp://u:p%7F@h", "password has a control character"},
                    {"amqp://u:p%C2%85@h", "password has a control character"},
                    {"amqp://u:%C0%AF@h", "password is not UTF-8"},
                    {"amqp://u:%ED%A0%80@h", "password is not UTF-8"},
                    {"amqp://u:caf%C3@h", "password is not UTF-8"},
                    {"amqp://u:caf\xE9@h", "password is not UTF-8"}});
}

// ---- vhost

TEST(Url, Vhost) {
    const struct {
        std::string url;
        std::string vhost;
    } rows[] = {
        {"amqp://h", "/"},
        {"amqp://h/", "/"},
        {"amqp://h/%2F", "/"},
        {"amqp://h/%2f", "/"},
        {"amqp://h?heartbeat=5", "/"},
        {"amqp://h/?heartbeat=5", "/"},
        {"amqp://h/a%2Fb", "a/b"},
        {"amqp://h/%2F%2F", "//"},
        {"amqp://h/v", "v"},
        {"amqp://h/v?heartbeat=5", "v"},
        {"amqp:///v", "v"},
        {"amqp://h/caf%C3%A9", "caf\xC3\xA9"},
        {"amqp://h/a b+c", "a b+c"},
        {"amqp://h/a:b%40c%3Fd%23", "a:b@c?d#"},
        {"amqp://h/..", ".."},
        {"amqp://h/" + std::string(255, 'v'), std::string(255, 'v')},
    };
    for (const auto& row : rows) EXPECT_EQ(parse_url(row.url).vhost, row.vhost) << row.url;
}

TEST(Url, BadVhostsAreRefused) {
    expect_refused({{"amqp://h/a/b", "%2F"},
                    {"amqp://h/v/", "%2F"},
                    {"amqp://h//", "%2F"},
                    {"amqp://h//v", "%2F"},
                    {"amqp://h/v%", "vhost has a %"},
                    {"amqp://h/v%00", "vhost has a control character"},
                    {"amqp://h/v%0A", "vhost has a control character"},
                    {"amqp://h/v\r", "vhost has a control character"},
                    {"amqp://h/%E9", "vhost is not UTF-8"},
                    {"amqp://h/" + std::string(256, 'v'), "vhost is longer than 255 bytes"},
                    {"amqp://h/" + std::string(254, 'v') + "%C3%A9", "vhost is longer than 255 bytes"},
                    {"amqp://h/v@w", "%40"},
                    {"amqp://h/v#", "fragment"},
                    {"amqp://h/#frag", "fragment"},
                    {"amqp://h#frag", "fragment"},
                    {"amqp://h/?heartbeat=5#frag", "fragment"}});
}

// ---- values

TEST(Url, EveryValue) {
    const auto endpoint = parse_url(
        "amqps://host/%2f?heartbeat=5&connection_attempts=3&retry_delay=1&socket_timeout=2.25&stack_timeout=20"
        "&blocked_connection_timeout=3.5&channel_max=7&frame_max=4096&locale=de_DE&cacertfile=/etc/ca.pem"
        "&certfile=/etc/c+1.pem&keyfile=%2Fetc%2Fk%20%3D%26%40.pem&verify=verify_none"
        "&server_name_indication=broker.example.com&auth_mechanism=EXTERNAL");
    EXPECT_EQ(endpoint.vhost, "/");
    EXPECT_EQ(endpoint.heartbeat, 5s);
    EXPECT_EQ(endpoint.connection_attempts, 3);
    EXPECT_EQ(endpoint.retry_delay, 1s);
    EXPECT_EQ(endpoint.socket_timeout, 2250ms);
    EXPECT_EQ(endpoint.stack_timeout, 20s);
    EXPECT_EQ(endpoint.blocked_connection_timeout, 3500ms);
    EXPECT_EQ(endpoint.channel_max, 7);
    EXPECT_EQ(endpoint.frame_max, 4096);
    EXPECT_EQ(endpoint.locale, "de_DE");
    EXPECT_EQ(endpoint.tls.cacertfile, "/etc/ca.pem");
    EXPECT_EQ(endpoint.tls.certfile, "/etc/c+1.pem");
    EXPECT_EQ(endpoint.tls.keyfile, "/etc/k =&@.pem");
    EXPECT_EQ(endpoint.tls.verify, VerifyPeer::no);
    EXPECT_EQ(endpoint.tls.server_name, "broker.example.com");
    EXPECT_EQ(endpoint.auth, AuthMechanism::external);
}

TEST(Url, FieldCaseWithPikasValues) {
    const auto endpoint = parse_url(
        "amqp://h/%2f?heartbeat=5&connection_attempts=3&retry_delay=1&socket_timeout=2&blocked_connection_timeout=3.5");
    EXPECT_EQ(endpoint.heartbeat, 5s);
    EXPECT_EQ(endpoint.connection_attempts, 3);
    EXPECT_EQ(endpoint.retry_delay, 1s);
    EXPECT_EQ(endpoint.socket_timeout, 2s);
    EXPECT_EQ(endpoint.blocked_connection_timeout, 3500ms);
}

TEST(Url, ValuesAtTheirLimits) {
    EXPECT_EQ(with("heartbeat=0").heartbeat, 0s);
    EXPECT_EQ(with("heartbeat=65535").heartbeat, 65535s);
    EXPECT_EQ(with("connection_attempts=1").connection_attempts, 1);
    EXPECT_EQ(with("connection_attempts=2147483647").connection_attempts, 2147483647);
    EXPECT_EQ(with("retry_delay=0").retry_delay, 0s);
    EXPECT_EQ(with("retry_delay=0.5").retry_delay, 500ms);
    EXPECT_EQ(with("socket_timeout=0.001").socket_timeout, 1ms);
    EXPECT_EQ(with("stack_timeout=0.0001").stack_timeout, 1ms);
    EXPECT_EQ(with("channel_max=0").channel_max, 0);
    EXPECT_EQ(with("channel_max=65535").channel_max, 65535);
    EXPECT_EQ(with("frame_max=131072").frame_max, 131072);
    EXPECT_EQ(with("frame_max=2147483647").frame_max, 2147483647);
    EXPECT_EQ(with("locale=" + std::string(255, 'l')).locale, std::string(255, 'l'));
}

TEST(Url, BadValuesAreRefusedByName) {
    std::vector<Refused> rows;
    for (const std::string name : {"heartbeat", "connection_attempts", "channel_max", "frame_max"}) {
        for (const std::string bad : {"abc", "-1", "+5", "5.5", "0x10", "010", "1e3", "1_000", "%205", " 5", "5s",
                                      "99999999999999999999999", "2147483648", "nan", "None", "5;locale=x"})
            rows.push_back({"amqp://h/?" + name + "=" + bad, name + " must be a whole number"});
    }
    for (const std::string name : {"retry_delay", "socket_timeout", "stack_timeout", "blocked_connection_timeout"}) {
        for (const std::string bad : {"abc", "-1", "+5", ".5", "5.", "0x10", "1e3", "nan", "inf", "%205", "3,5",
                                      "1.5.1", "99999999999999999999999"})
            rows.push_back({"amqp://h/?" + name + "=" + bad, name + " must be"});
        if (name == "retry_delay") continue;
        rows.push_back({"amqp://h/?" + name + "=0", name + " must be more than 0"});
        rows.push_back({"amqp://h/?" + name + "=0.0", name + " must be more than 0"});
    }
    rows.insert(rows.end(), {{"amqp://h/?heartbeat=65536", "0 to 65535"},
                             {"amqp://h/?connection_attempts=0", "connection_attempts"},
                             {"amqp://h/?channel_max=65536", "channel_max"},
                             {"amqp://h/?frame_max=4095", "frame_max"},
                             {"amqp://h/?frame_max=0", "frame_max"},
                             {"amqp://h/?locale=" + std::string(256, 'l'), "locale is longer"},
                             {"amqp://h/?auth_mechanism=AMQPLAIN", "auth_mechanism must be PLAIN or EXTERNAL"},
                             {"amqps://h/?verify=true", "verify must be verify_peer or verify_none"},
                             {"amqps://h/?verify=VERIFY_PEER", "verify must be"},
                             {"amqps://h/?server_name_indication=disable", "server_name_indication"},
                             {"amqps://h/?server_name_indication=a%2Fb", "server_name_indication"},
                             {"amqps://h/?server_name_indication=" + std::string(256, 'a'), "server_name_indication"}});
    expect_refused(rows);
}

TEST(Url, EveryNameIsRefusedEmptyTwiceAndUndecodable) {
    std::vector<Refused> rows;
    const std::pair<std::string, std::string> good[] = {
        {"heartbeat", "5"},
        {"connection_attempts", "5"},
        {"retry_delay", "5"},
        {"socket_timeout", "5"},
        {"stack_timeout", "5"},
        {"blocked_connection_timeout", "5"},
        {"channel_max", "5"},
        {"frame_max", "5000"},
        {"locale", "x"},
        {"cacertfile", "x"},
        {"certfile", "x"},
        {"verify", "verify_peer"},
        {"auth_mechanism", "PLAIN"},
        {"server_name_indication", "x"},
    };
    for (const auto& [name, value] : good) {
        const std::string url = "amqps://h/?" + name + "=";
        EXPECT_NO_THROW((void)parse_url(url + value)) << name;
        rows.push_back({url, name + " is empty"});
        rows.push_back({url + "&locale=x", name + " is empty"});
        rows.push_back({url + value + "&" + name + "=" + value, name + " is given twice"});
        rows.push_back({url + "%zz", name + " has a %"});
        rows.push_back({url + "%00", name + " has a control character"});
        rows.push_back({url + "%0A", name + " has a control character"});
        rows.push_back({url + "%FF", name + " is not UTF-8"});
    }
    expect_refused(rows);
}

TEST(Url, UnknownNamesAreRefusedAndTheKnownOnesListed) {
    expect_refused({{"amqp://h/?hearbeat=5", "unknown name 'hearbeat'"},
                    {"amqp://h/?hearbeat=5", " heartbeat "},
                    {"amqp://h/?HEARTBEAT=5", "unknown name 'HEARTBEAT'"},
                    {"amqp://h/?connection_timeout=5", "unknown name 'connection_timeout'"},
                    {"amqp://h/?fail_if_no_peer_cert=true", "unknown name"},
                    {"amqp://h/?heartbeat=5&x=1", "unknown name 'x'"},
                    {"amqp://h/?heartbeat=5?locale=x", "heartbeat must be"},
                    {"amqp://h/?a%20b=1", "unknown name in the query"},
                    {"amqp://h/?a%0Ab=1", "control character"},
                    {"amqp://h/?%zz=1", "has a %"},
                    {"amqp://h/?%FF=1", "not UTF-8"},
                    {"amqp://h/?=5", "unknown name"},
                    {"amqp://h/?=", "unknown name"},
                    {"amqp://h/?" + std::string(5'000, 'a') + "=5", "unknown name in the query"},
                    {"amqp://h/?heartbeat", "no value"},
                    {"amqp://h/?heartbeat&locale=x", "no value"}});
}

TEST(Url, PikasPythonLiteralsAreRefusedWithTheReplacement) {
    expect_refused({{"amqps://h/?ssl_options={'ca_certs':'/etc/ca.pem'}", "ssl_options is not supported"},
                    {"amqps://h/?ssl_options=None", "cacertfile, certfile, keyfile, verify and server_name_indication"},
                    {"amqp://h/?tcp_options={'TCP_KEEPIDLE':60}", "tcp_options is not supported: use heartbeat"},
                    {"amqp://h/?client_properties={'a':'b'}", "client_properties is not supported"},
                    {"amqp://h/?backpressure_detection=t", "use blocked_connection_timeout"},
                    {"amqp://h/?ssl_options=", "ssl_options is not supported"}});
}

TEST(Url, NamesAndValuesArePercentDecodedAndPlusIsAPlus) {
    EXPECT_EQ(with("heart%62eat=%35").heartbeat, 5s);
    EXPECT_EQ(with("locale=a%26b%3Dc%25").locale, "a&b=c%");
    EXPECT_EQ(with("locale=a=b").locale, "a=b");
    EXPECT_EQ(with("locale=a+b").locale, "a+b");  // pika: "a b"
    EXPECT_EQ(with("locale=a%20b").locale, "a b");
    EXPECT_EQ(with("locale=caf%C3%A9").locale, "caf\xC3\xA9");
    EXPECT_EQ(with_tls("cacertfile=/a/b+c.pem").tls.cacertfile, "/a/b+c.pem");
    expect_refused({{"amqp://h/?heartbeat=5&heart%62eat=5", "heartbeat is given twice"}});
}

TEST(Url, EmptyPairsAreSkippedAsPikaDoes) {
    EXPECT_EQ(with("").heartbeat, 30s);
    EXPECT_EQ(with("&").heartbeat, 30s);
    EXPECT_EQ(with("&&heartbeat=5&").heartbeat, 5s);
}

TEST(Url, TlsNamesNeedAmqps) {
    std::vector<Refused> rows;
    for (const std::string pair : {"cacertfile=/x", "certfile=/x", "keyfile=/x", "verify=verify_peer",
                                   "verify=verify_none", "server_name_indication=x", "auth_mechanism=EXTERNAL"})
        rows.push_back({"amqp://h/?" + pair, "needs amqps://"});
    expect_refused(rows);
    EXPECT_EQ(with("auth_mechanism=plain").auth, AuthMechanism::plain);
    EXPECT_EQ(with_tls("auth_mechanism=Plain").auth, AuthMechanism::plain);
    EXPECT_EQ(with_tls("auth_mechanism=external").auth, AuthMechanism::external);
    EXPECT_EQ(with_tls("verify=verify_peer").tls.verify, VerifyPeer::yes);
    EXPECT_EQ(with_tls("").tls.verify, VerifyPeer::yes);
}

TEST(Url, KeyfileNeedsCertfileInAnyOrder) {
    expect_refused({{"amqps://h/?keyfile=/k", "keyfile needs certfile"}});
    EXPECT_EQ(with_tls("keyfile=/k&certfile=/c").tls.keyfile, "/k");
    EXPECT_EQ(with_tls("certfile=/c").tls.certfile, "/c");
}

// ---- secrets

TEST(Url, MaskedHidesThePasswordAndNothingElse) {
    const struct {
        const char* url;
        const char* shown;
    } rows[] = {
        {"amqp://", "amqp://guest:***@localhost:5672/%2F"},
        {"AMQPS://u:secret@h/a%2Fb?heartbeat=5", "amqps://u:***@h:5671/a%2Fb"},
        {"amqp://u:@h", "amqp://u:***@h:5672/%2F"},
        {"amqp://u@x%3A:secret@h/caf%C3%A9 b", "amqp://u%40x%3A:***@h:5672/caf%C3%A9%20b"},
        {"amqp://u:secret@[::1]:5673/v", "amqp://u:***@[::1]:5673/v"},
        {"amqp://[fe80::1%25eth%30]/v", "amqp://guest:***@[fe80::1%25eth0]:5672/v"},
    };
    for (const auto& row : rows) {
        EXPECT_EQ(masked(parse_url(row.url)), row.shown);
        EXPECT_EQ(masked(parse_url(row.shown)), row.shown) << "is itself a URL";
    }
}

// Whatever is wrong with the URL, no piece of the password gets out: neither in the refusal nor, where the URL is taken
// after all, in its masked form.
TEST(Url, NoPieceOfThePasswordIsEverShown) {
    const std::string broken[] = {
        "amqp://user:SECRET@SECRET:SECRET@host",
        "amqp://user:SECRET/SECRET@host",
        "amqp://user:SECRET/SECRET@host/v",
        "amqp://user:12/SECRET@host",
        "amqp://user:12?SECRET@host",
        "amqp://user:12?SECRET=x@host/v",
        "amqp://user:12?x=SECRET@host",
        "amqp://user:12#SECRET@host",
        "amqp://user:SECRET?SECRET@host",
        "amqp://user:SECRET#SECRET@host/v",
        "amqp://user:SECRET@h/SECRET@host/v",
        "amqp://user:SECRET@h?SECRET@host/v",
        "amqp://user:SECRET@h#SECRET@host/v",
        "amqp://user:SECRET@12/SECRET/SECRET",
        "amqp://user:12?SECRET",
        "amqp://user:SECRET",
        "amqp://user:SECRET/v",
        "amqp://user:SECRET@",
        "amqp://user:SECRET@/v",
        "amqp://user:SECRET@:abc",
        "amqp://user:SECRET@ho st",
        "amqp://user:SECRET@[::1",
        "amqp://user:SECRET%zzSECRET@host",
        "amqp://user:SECRET%@host",
        "amqp://user:%53ECRET%00@host",
        "amqp://user:SECRET%FF@host",
        "amqp://user:SECRET\n@host",
        "amqp://user:SECRET@host:99999",
        "amqp://user:SECRET@host/a/b",
        "amqp://user:SECRET@host/v#x",
        "amqp://user:SECRET@host/v%",
        "amqp://user:SECRET@host/v?heartbeat=abc",
        "amqp://user:SECRET@host/v?x=1",
        "amqp://user:SECRET@host/v?heartbeat=1&heartbeat=1",
        "amqp://user:SECRET@host/v?ssl_options={'password':'SECRET'}",
        "amqp://user:SECRET@host/v?password=SECRET",
        "amqp://user:SECRET@host/v?heartbeat=SECRET",
        "amqp://SECRET@host",
        "amqp:/user:SECRET@host",
        "amqp:user:SECRET@host",
        "redis://user:SECRET@host",
        "user:SECRET@host:5672/v",
        "user:SECRET",
        "SECRET",
        "SECRET://user:SECRET@host",
        " amqp://user:SECRET@host",
    };
    for (const auto& url : broken) {
        std::string shown;
        try {
            shown = masked(parse_url(url));
        } catch (const Failure& failure) {
            shown = failure.what();
        }
        EXPECT_EQ(shown.find("ECRET"), std::string::npos) << url << ": " << shown;
        EXPECT_EQ(shown.find('\n'), std::string::npos) << url;
    }
}

}  // namespace
}  // namespace claimq::amqp
