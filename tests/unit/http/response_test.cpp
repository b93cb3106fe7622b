#include "http/response.hpp"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>

namespace claimq::http {
namespace {

constexpr auto go_on = Response::Verdict::go_on;
constexpr auto stop = Response::Verdict::stop;

void take(Response& response, std::initializer_list<const char*> lines) {
    for (const char* line : lines) EXPECT_EQ(response.take_line(line), go_on) << line;
}

TEST(StatusLine, IsStrict) {
    EXPECT_EQ(status_of("HTTP/1.1 201 Created\r\n"), 201);
    EXPECT_EQ(status_of("HTTP/1.0 503\r\n"), 503);
    EXPECT_EQ(status_of("HTTP/1.1 201 \n"), 201);
    EXPECT_EQ(status_of("HTTP/1.1 100 Continue\r\n"), 100);
    EXPECT_EQ(status_of("HTTP/1.1 999 x\r\n"), 999);
    for (const char* line : {"", "\r\n", "hello\n", "HTTP/1.1 99 x\r\n", "HTTP/1.1 099 x\r\n", "HTTP/1.1 2010 x\r\n",
                             "HTTP/1.1  201 x\r\n", "HTTP/1.1 20", "HTTP/1.1 abc\r\n", "HTTP/1.1 -20 x\r\n",
                             "HTTP/2 201\r\n", "HTTP/2.0 201 x\r\n", " HTTP/1.1 201 x\r\n", "HTTP/1.1\t201 x\r\n"})
        EXPECT_EQ(status_of(line), std::nullopt) << line;
}

TEST(Response, StatusLineAloneIsAnAnswer) {
    Response response;
    take(response, {"HTTP/1.1 201 Created\r\n"});
    EXPECT_EQ(response.answered(0)->status, 201);
    EXPECT_FALSE(response.answered(0)) << "the next call begins with nothing";
}

TEST(Response, KeepsRetryAfterAndTheBeginningOfTheBody) {
    Response response;
    take(response, {"HTTP/1.1 503 Busy\r\n", "rEtRy-AfTeR:  7 \r\n", "Retry-After: 9\r\n", "\r\n"});
    EXPECT_EQ(response.take_body(std::string(1000, 'a')), go_on);
    EXPECT_EQ(response.take_body(std::string(1000, 'b')), go_on);
    const auto answer = response.answered(0);
    EXPECT_EQ(answer->retry_after, std::chrono::seconds(7));
    EXPECT_EQ(answer->reason, std::string(1000, 'a') + std::string(24, 'b'));
}

TEST(Response, InterimAnswersAreNoAnswer) {
    Response response;
    take(response, {"HTTP/1.1 100 Continue\r\n", "Retry-After: 5\r\n", "\r\n", "HTTP/1.1 103 Early\r\n", "\r\n"});
    Response other = response;
    EXPECT_FALSE(other.answered(0));
    take(response, {"HTTP/1.1 201 Created\r\n", "\r\n"});
    const auto answer = response.answered(0);
    EXPECT_EQ(answer->status, 201);
    EXPECT_EQ(answer->retry_after, std::nullopt);
}

TEST(Response, TrailersAreNoHeaders) {
    Response response;
    take(response, {"HTTP/1.1 503 x\r\n", "\r\n"});
    EXPECT_EQ(response.take_body("x"), go_on);
    take(response, {"Retry-After: 5\r\n", "\r\n"});
    EXPECT_EQ(response.answered(0)->retry_after, std::nullopt);
}

TEST(Response, StopsAtWhatIsNoStatusLine) {
    Response response;
    EXPECT_EQ(response.take_line("HTTP/1.1 99 x\r\n"), stop);
    EXPECT_FALSE(response.answered(0));
    Response switched;
    take(switched, {"HTTP/1.1 101 Switching Protocols\r\n", "\r\n"});
    EXPECT_EQ(switched.take_body("x"), stop);
}

TEST(Response, StopsAtTooMuchBody) {
    Response response;
    take(response, {"HTTP/1.1 201 x\r\n", "\r\n"});
    EXPECT_EQ(response.take_body(std::string(Response::most_body_bytes, 'x')), go_on);
    EXPECT_EQ(response.take_body("x"), stop);
    EXPECT_EQ(response.answered(0)->status, 201);
}

TEST(Response, StopsAtTooManyHeaders) {
    Response response;
    take(response, {"HTTP/1.1 422 x\r\n"});
    const std::string line = "X: " + std::string(1000, 'x') + "\r\n";
    std::size_t lines = 0;
    while (response.take_line(line) == go_on) ++lines;
    EXPECT_EQ(lines, (Response::most_header_bytes - 16) / line.size());
    EXPECT_EQ(response.answered(0)->status, 422);

    Response interim;
    auto verdict = go_on;
    for (int i = 0; i < 10'000 && verdict == go_on; ++i) {
        verdict = interim.take_line("HTTP/1.1 100 Continue\r\n");
        if (verdict == go_on) verdict = interim.take_line("\r\n");
    }
    EXPECT_EQ(verdict, stop);
    EXPECT_FALSE(interim.answered(0));
}

}  // namespace
}  // namespace claimq::http
