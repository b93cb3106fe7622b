#include "http/claim_url.hpp"

#include <gtest/gtest.h>

#include <string>

#include "claimq/failure.hpp"

namespace claimq::http {
namespace {

TEST(ClaimUrl, EndpointIsTheUrlAndItsPath) {
    const struct {
        const char* url;
        const char* endpoint;
    } rows[] = {
        {"http://127.0.0.1:9202", "http://127.0.0.1:9202/v1/claims"},
        {"http://127.0.0.1:9202/", "http://127.0.0.1:9202/v1/claims"},
        {"http://127.0.0.1:9202//", "http://127.0.0.1:9202/v1/claims"},
        {"HTTPS://claims.example", "https://claims.example/v1/claims"},
        {"hTTp://claims.example/api", "http://claims.example/api/v1/claims"},
        {"http://claims.example/api/a@b/", "http://claims.example/api/a@b/v1/claims"},
        {"http://[::1]:9202/x", "http://[::1]:9202/x/v1/claims"},
        {"http://claims.example:80", "http://claims.example:80/v1/claims"},
    };
    for (const auto& row : rows) EXPECT_EQ(parse_claim_url(row.url).endpoint, row.endpoint) << row.url;
}

TEST(ClaimUrl, KnowsHttpsAndHost) {
    EXPECT_TRUE(parse_claim_url("HTTPS://Claims.Example/").is_https);
    EXPECT_FALSE(parse_claim_url("http://claims.example/").is_https);
    EXPECT_EQ(parse_claim_url("https://Claims.Example/").host, "claims.example");
    EXPECT_EQ(parse_claim_url("https://[2001:DB8::1]:443/").host, "2001:db8::1");
}

TEST(ClaimUrl, KnowsLoopbackByNameAndNumber) {
    for (const char* url :
         {"http://localhost", "http://LocalHost:1", "http://localhost.", "http://claims.localhost", "http://127.0.0.1",
          "http://127.9.8.7", "http://127.1", "http://[::1]", "http://[0:0:0:0:0:0:0:1]", "http://[::ffff:127.0.0.1]"})
        EXPECT_TRUE(parse_claim_url(url).is_loopback) << url;
    for (const char* url : {"http://localhost.example", "http://notlocalhost", "http://128.0.0.1", "http://[::2]",
                            "http://127.0.0.1.example", "http://[2001:db8::1]", "http://[::ffff:10.0.0.1]"})
        EXPECT_FALSE(parse_claim_url(url).is_loopback) << url;
}

TEST(ClaimUrl, BadOnesAreUsageErrorsThatQuoteNothing) {
    const struct {
        const char* url;
        const char* names;  // a part of the message
    } rows[] = {
        {"", "http:// or https://"},
        {"127.0.0.1:9202", "http:// or https://"},
        {"localhost:9202/s3cret", "http:// or https://"},
        {"ftp://h/s3cret", "http:// or https://"},
        {"http:/h/s3cret", "http:// or https://"},
        {"http:///s3cret", "no host"},
        {"http://", "no host"},
        {"http://u:s3cret@h/", "user or a password"},
        {"http://u:s3cret@h:0x/", "user or a password"},
        {"http://@h/", "user or a password"},
        {"http://h/?s3cret", "query"},
        {"http://h/?", "query"},
        {"http://h?s3cret", "query"},
        {"http://h/#s3cret", "fragment"},
        {"http://h#", "fragment"},
        {"http://h:s3cret/", "not a URL"},
        {"http://h:0/", "port is 0"},
        {"http://h:65536/", "not a URL"},
        {"http://s3c ret/", "not a URL"},
        {"http://h/s3c\r\nret", "not a URL"},
        {"http://h/s3c ret", "not a URL"},
        {" http://h/", "http:// or https://"},
        {"http://[::s3cret]/", "not a URL"},
        {"http://:80/", "not a URL"},
    };
    for (const auto& row : rows) {
        try {
            (void)parse_claim_url(row.url);
            ADD_FAILURE() << row.url << " was taken";
        } catch (const Failure& failure) {
            EXPECT_EQ(failure.status(), ExitStatus::usage) << row.url;
            const std::string text = failure.what();
            EXPECT_NE(text.find(row.names), std::string::npos) << row.url << ": " << text;
            EXPECT_EQ(text.find("s3c"), std::string::npos) << text;
        }
    }
    EXPECT_THROW((void)parse_claim_url(std::string_view("http://h/\0x", 11)), Failure);
}

}  // namespace
}  // namespace claimq::http
