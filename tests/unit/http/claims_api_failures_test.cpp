// Calls that reach no claims system, for its reasons or for ours.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "claimq/failure.hpp"
#include "driving.hpp"
#include "no_descriptor_left.hpp"
#include "scripted_server.hpp"

namespace claimq::http::test {
namespace {

const std::string created = "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}";

class Environment {
public:
    Environment(const char* name, const std::string& value) : name_(name) { ::setenv(name, value.c_str(), 1); }
    ~Environment() { ::unsetenv(name_); }
    Environment(const Environment&) = delete;
    Environment& operator=(const Environment&) = delete;

private:
    const char* name_;
};

TEST(ClaimsApiFailure, NobodyListens) {
    const std::string port = std::to_string(closed_port());
    for (const std::string host : {"http://127.0.0.1:", "http://localhost:", "http://x.localhost:", "http://[::1]:"}) {
        const auto api = api_for(host + port);
        const Answer answer = call(*api);
        if (host == "http://[::1]:" && kind_of(answer) == "own fault") continue;  // a machine without IPv6
        EXPECT_EQ(kind_of(answer), "refused") << text_of(answer);
        EXPECT_NE(text_of(answer).find("Connection refused"), std::string::npos) << text_of(answer);
    }
}

TEST(ClaimsApiFailure, NameThatCannotBe) {
    // Over 63 bytes in a label: the resolver says no without asking anybody.
    const auto api = api_for("http://" + std::string(64, 'a') + ".example");
    const Answer answer = call(*api);
    EXPECT_EQ(kind_of(answer), "unresolved") << text_of(answer);
}

TEST(ClaimsApiFailure, LocalhostIsFoundOnEitherAddress) {
    Recorder recorder(created);
    const ScriptedServer server(recorder.script());  // listens on 127.0.0.1 only; localhost is ::1 too
    const auto api = api_for("http://localhost" + server.address().substr(9));
    EXPECT_EQ(text_of(call(*api)), "201");
}

TEST(ClaimsApiFailure, NoDescriptorIsOurFault) {
    Recorder recorder(created);
    const ScriptedServer server(recorder.script());
    const auto api = api_for(server.url());
    EXPECT_EQ(text_of(call(*api)), "201");
    {
        const NoDescriptorLeft scarce;
        const Answer answer = call(*api, "id", "{}", Redelivered::yes);
        EXPECT_EQ(kind_of(answer), "own fault") << text_of(answer);
        EXPECT_NE(text_of(answer).find("Too many open files"), std::string::npos) << text_of(answer);
    }
    EXPECT_EQ(text_of(call(*api)), "201") << "and the next call is as good as any";
}

TEST(ClaimsApiFailure, NoDescriptorForTheResolverIsOurFault) {
    const auto api = api_for("http://" + std::string(64, 'a') + ".example");
    EXPECT_EQ(kind_of(call(*api)), "unresolved");
    const NoDescriptorLeft scarce;
    const Answer answer = call(*api);
    EXPECT_EQ(kind_of(answer), "own fault") << text_of(answer);
}

TEST(ClaimsApiFailure, NoDescriptorAtTheStartIsAnOsError) {
    try {
        const NoDescriptorLeft scarce;
        (void)api_for("http://127.0.0.1:1");
        ADD_FAILURE();
    } catch (const Failure& failure) {
        EXPECT_EQ(failure.status(), ExitStatus::os_error);
    }
}

TEST(ClaimsApiFailure, TokenThatNoHeaderCarriesIsAUsageError) {
    for (const std::string token :
         {"s3cret\r\nX-Evil: 1", "s3cret b", " s3cret", "s3cret\n", "s3cret\x7F", "s3cret\xC3\xB6", "s3cret\tb"}) {
        ClaimsApiOptions options = options_for("http://127.0.0.1:1");
        options.bearer_token = token;
        try {
            (void)make_claims_api(options);
            ADD_FAILURE() << token;
        } catch (const Failure& failure) {
            EXPECT_EQ(failure.status(), ExitStatus::usage);
            EXPECT_EQ(std::string(failure.what()).find("s3cret"), std::string::npos);
        }
    }
}

TEST(ClaimsApiFailure, ProxyVariablesAreIgnoredForLoopback) {
    Recorder recorder(created);
    const ScriptedServer server(recorder.script());
    const std::string nobody = "http://127.0.0.1:" + std::to_string(closed_port());
    const Environment http("http_proxy", nobody);
    const Environment all("ALL_PROXY", nobody);
    const auto api = api_for(server.url());
    EXPECT_EQ(text_of(call(*api)), "201");
}

TEST(ClaimsApiFailure, ProxyVariablesAreHonouredForOthers) {
    Recorder recorder(created);
    const ScriptedServer proxy(recorder.script());
    const Environment http("http_proxy", proxy.url());
    const auto api = api_for("http://claims.example/api");
    EXPECT_EQ(text_of(call(*api)), "201");
    EXPECT_EQ(recorder.requests().at(0).line, "POST http://claims.example/api/v1/claims HTTP/1.1");

    const Environment no("no_proxy", std::string(64, 'a') + ".example");
    EXPECT_EQ(kind_of(call(*api_for("http://" + std::string(64, 'a') + ".example"))), "unresolved");
}

TEST(ClaimsApiFailure, ProxysAnswerToConnectIsNoAnswer) {
    for (const char* status : {"200 Connection established", "502 Bad Gateway", "201 Created", "422 No"}) {
        Recorder recorder("HTTP/1.1 " + std::string(status) + "\r\n\r\n");
        const ScriptedServer proxy([&](Connection& connection, int) {
            Request request;
            if (connection.read_head(request)) connection.send("HTTP/1.1 " + std::string(status) + "\r\n\r\n");
        });
        const Environment https("https_proxy", proxy.url());
        const auto api = api_for("https://claims.example");
        const Answer answer = call(*api);
        EXPECT_TRUE(std::holds_alternative<NotAnswered>(answer)) << status << " became " << text_of(answer);
    }
}

TEST(ClaimsApiFailure, UnusableCaFileIsAnOsError) {
    const std::string path = ::testing::TempDir() + "claimq-no-ca-" + std::to_string(::getpid());
    std::ofstream(path) << "no certificate\n";
    for (const std::string& file : {path, path + ".missing", ::testing::TempDir(), std::string()}) {
        ClaimsApiOptions options = options_for("https://127.0.0.1:1");
        options.ca_file = file;
        try {
            (void)make_claims_api(options);
            ADD_FAILURE() << file;
        } catch (const Failure& failure) {
            EXPECT_EQ(failure.status(), ExitStatus::os_error);
            EXPECT_NE(std::string(failure.what()).find("CA file"), std::string::npos) << failure.what();
        }
    }
    std::filesystem::remove(path);
}

}  // namespace
}  // namespace claimq::http::test
