// The claims system behind https.
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <future>
#include <string>

#include "driving.hpp"
#include "scripted_server.hpp"
#include "tls_identity.hpp"

namespace claimq::http::test {
namespace {

using namespace std::chrono_literals;

const std::string created = "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}";

[[nodiscard]] std::unique_ptr<ClaimsApi> trusting(const std::string& url, const std::string& ca_file) {
    ClaimsApiOptions options = options_for(url);
    options.ca_file = ca_file;
    return make_claims_api(options);
}

TEST(ClaimsApiTls, CertificateNobodyVouchesForIsOurFault) {
    const TlsIdentity identity("IP:127.0.0.1");
    Recorder recorder(created);
    const ScriptedServer server(recorder.script(), identity.context());
    const auto api = api_for(server.url());
    const Answer answer = call(*api);
    EXPECT_EQ(kind_of(answer), "own fault") << text_of(answer);
    EXPECT_NE(text_of(answer).find("self-signed certificate"), std::string::npos) << text_of(answer);
    EXPECT_TRUE(recorder.requests().empty());
}

TEST(ClaimsApiTls, CertificateForAnotherHostIsOurFault) {
    const TlsIdentity identity("DNS:claims.example");
    Recorder recorder(created);
    const ScriptedServer server(recorder.script(), identity.context());
    const auto api = trusting(server.url(), identity.ca_file());
    const Answer answer = call(*api);
    EXPECT_EQ(kind_of(answer), "own fault") << text_of(answer);
    EXPECT_TRUE(recorder.requests().empty());
}

TEST(ClaimsApiTls, OtherCaIsNotBelieved) {
    const TlsIdentity identity("IP:127.0.0.1");
    const TlsIdentity other("IP:127.0.0.1");
    Recorder recorder(created);
    const ScriptedServer server(recorder.script(), identity.context());
    EXPECT_EQ(kind_of(call(*trusting(server.url(), other.ca_file()))), "own fault");
}

TEST(ClaimsApiTls, TrustedOneIsCalledAndItsConnectionReused) {
    const TlsIdentity identity("IP:127.0.0.1");
    Recorder recorder(created);
    std::promise<void> ended;
    const ScriptedServer server(
        [&](Connection& connection, int number) {
            recorder(connection, number);
            if (number == 0) ended.set_value();
        },
        identity.context());
    const auto api = trusting(server.url(), identity.ca_file());
    std::string body;
    body.resize(12'000'000, 'x');
    EXPECT_EQ(text_of(call(*api, "a", body)), "201");
    EXPECT_EQ(text_of(call(*api, "b")), "201");
    EXPECT_TRUE(recorder.requests().at(0).body == body);
    EXPECT_EQ(recorder.connections(), (std::vector<int>{0, 0}));
    EXPECT_TRUE(api->turn(Clock::now() + 2s).empty());
    EXPECT_EQ(ended.get_future().wait_for(patience), std::future_status::ready);
    EXPECT_EQ(text_of(call(*api, "c")), "201");
}

TEST(ClaimsApiTls, RedeliveredReplacesTheIdleConnectionWithoutASignal) {
    const TlsIdentity identity("IP:127.0.0.1");
    Recorder recorder(created);
    const ScriptedServer server(recorder.script(), identity.context());
    const auto api = trusting(server.url(), identity.ca_file());
    for (int i = 0; i < 4; ++i) EXPECT_EQ(text_of(call(*api, "a", "{}", Redelivered::yes)), "201");
    EXPECT_EQ(recorder.connections(), (std::vector<int>{0, 1, 2, 3}));
}

TEST(ClaimsApiTls, RequestIsNotSentAgainWhenAReusedConnectionDies) {
    const TlsIdentity identity("IP:127.0.0.1");
    std::atomic<int> requests = 0;
    const ScriptedServer server(
        [&](Connection& connection, int) {
            if (connection.read_request()) ++requests;
            connection.send(created);
            if (connection.read_request()) ++requests;
        },
        identity.context());
    const auto api = trusting(server.url(), identity.ca_file());
    EXPECT_EQ(text_of(call(*api)), "201");
    EXPECT_EQ(kind_of(call(*api)), "cut");
    EXPECT_EQ(requests, 2);
}

TEST(ClaimsApiTls, ClientCertificateWeDoNotHaveIsOurFault) {
    const TlsIdentity identity("IP:127.0.0.1");
    SSL_CTX_set_verify(identity.context(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
    Recorder recorder(created);
    const ScriptedServer server(recorder.script(), identity.context());
    const Answer answer = call(*trusting(server.url(), identity.ca_file()));
    EXPECT_EQ(kind_of(answer), "own fault") << text_of(answer);
}

TEST(ClaimsApiTls, WhatSpeaksNoTlsIsCut) {
    for (const std::string bytes : {"", "hello\n", "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n"}) {
        const ScriptedServer server([&](Connection& connection, int) { connection.send(bytes); });
        const Answer answer = call(*api_for("https://" + server.address()));
        EXPECT_EQ(kind_of(answer), "cut") << bytes << text_of(answer);
    }
}

TEST(ClaimsApiTls, CaFileWithABrokenCertificateIsOurFault) {
    const TlsIdentity identity("IP:127.0.0.1");
    Recorder recorder(created);
    const ScriptedServer server(recorder.script(), identity.context());
    std::ofstream(identity.ca_file()) << "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----\n";
    const Answer answer = call(*trusting(server.url(), identity.ca_file()));
    EXPECT_EQ(kind_of(answer), "own fault") << text_of(answer);
}

}  // namespace
}  // namespace claimq::http::test
