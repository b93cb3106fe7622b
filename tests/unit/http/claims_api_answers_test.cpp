// What the claims system may answer, and what the call then is.
#include <gtest/gtest.h>

#include <future>
#include <string>
#include <utility>

#include "driving.hpp"
#include "scripted_server.hpp"

namespace claimq::http::test {
namespace {

const std::string created = "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}";

// Answers one request with these bytes and closes.
[[nodiscard]] ScriptedServer::Script once(std::string bytes) {
    return [bytes = std::move(bytes)](Connection& connection, int) {
        if (connection.read_request()) connection.send(bytes);
    };
}

[[nodiscard]] Answer answer_to(std::string bytes) {
    const ScriptedServer server(once(std::move(bytes)));
    const auto api = api_for(server.url());
    return call(*api);
}

TEST(ClaimsApi, SendsTheRequestAsPromised) {
    Recorder recorder(created);
    const ScriptedServer server(recorder.script());
    ClaimsApiOptions options = options_for(server.url() + "/api/");
    options.bearer_token = "t0ken";
    options.user_agent = "claimq/9.9";
    const auto api = make_claims_api(options);
    EXPECT_EQ(text_of(call(*api, "guid-1", "{\"a\": 1.50e3}")), "201");

    ASSERT_EQ(recorder.requests().size(), 1U);
    const Request request = recorder.requests()[0];
    EXPECT_EQ(request.line, "POST /api/v1/claims HTTP/1.1");
    EXPECT_EQ(request.body, "{\"a\": 1.50e3}");
    using Values = std::vector<std::string>;
    EXPECT_EQ(request.values("Host"), Values{server.address()});
    EXPECT_EQ(request.values("Content-Type"), Values{"application/json"});
    EXPECT_EQ(request.values("Content-Length"), Values{"13"});
    EXPECT_EQ(request.values("Idempotency-Key"), Values{"\"guid-1\""});
    EXPECT_EQ(request.values("Authorization"), Values{"Bearer t0ken"});
    EXPECT_EQ(request.values("User-Agent"), Values{"claimq/9.9"});
    EXPECT_EQ(request.values("Accept"), Values{"*/*"});
    EXPECT_EQ(request.headers.size(), 7U) << "and no other header";
}

TEST(ClaimsApi, NoTokenNoAuthorization) {
    Recorder recorder(created);
    const ScriptedServer server(recorder.script());
    const auto api = api_for(server.url());
    EXPECT_EQ(text_of(call(*api)), "201");
    EXPECT_TRUE(recorder.requests().at(0).values("Authorization").empty());
}

TEST(ClaimsApi, ForeignMessageIdAddsNoHeader) {
    Recorder recorder(created);
    const ScriptedServer server(recorder.script());
    const auto api = api_for(server.url());
    EXPECT_EQ(text_of(call(*api, "a\r\nX-Evil: 1")), "201");
    const Request request = recorder.requests().at(0);
    EXPECT_EQ(request.values("Idempotency-Key"), std::vector<std::string>{"\"a%0D%0AX-Evil: 1\""});
    EXPECT_TRUE(request.values("X-Evil").empty());
}

TEST(ClaimsApi, BodiesOfAllSizesArriveIntact) {
    Recorder recorder(created);
    const ScriptedServer server(recorder.script());
    const auto api = api_for(server.url());
    std::size_t calls = 0;
    for (const std::size_t size : {0UL, 1UL, 65'535UL, 65'536UL, 65'537UL, 12'000'000UL}) {
        std::string body(size, '\0');
        for (std::size_t i = 0; i < size; ++i) body[i] = static_cast<char>(i * 7 + i / 251);
        ASSERT_EQ(text_of(call(*api, "id", body)), "201");
        const Request request = recorder.requests().at(calls++);
        EXPECT_TRUE(request.body == body) << size;
        EXPECT_TRUE(request.values("Expect").empty()) << size;
    }
}

TEST(ClaimsApi, BodyWithoutBytesIsNotReadFromElsewhere) {
    Recorder recorder(created);
    const ScriptedServer server(recorder.script());
    const auto api = api_for(server.url());
    EXPECT_EQ(text_of(call(*api, "id", std::string_view())), "201");
    EXPECT_EQ(recorder.requests().at(0).values("Content-Length"), std::vector<std::string>{"0"});
}

TEST(ClaimsApi, StatusRetryAfterAndReasonAreTheAnswer) {
    const Answer busy = answer_to("HTTP/1.1 503 Busy\r\nRetry-After: 2\r\nContent-Length: 9\r\n\r\ntoo \x01much");
    EXPECT_EQ(std::get<Answered>(busy).status, 503);
    EXPECT_EQ(std::get<Answered>(busy).retry_after, std::chrono::seconds(2));
    EXPECT_EQ(std::get<Answered>(busy).reason, "too \x01much");

    const Answer rejected = answer_to("HTTP/1.1 422 No\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ndocs\r\n0\r\n\r\n");
    EXPECT_EQ(std::get<Answered>(rejected).status, 422);
    EXPECT_EQ(std::get<Answered>(rejected).retry_after, std::nullopt);
    EXPECT_EQ(std::get<Answered>(rejected).reason, "docs");
}

TEST(ClaimsApi, EveryFinalStatusIsAnAnswer) {
    for (const char* status : {"200", "204", "206", "301", "304", "401", "407", "417", "426", "500", "599", "999"})
        EXPECT_EQ(text_of(answer_to("HTTP/1.1 " + std::string(status) + " x\r\nContent-Length: 0\r\n\r\n")), status);
    EXPECT_EQ(text_of(answer_to("HTTP/1.0 201 x\r\n\r\n")), "201");
}

TEST(ClaimsApi, StatusLineCountsWhateverBecomesOfTheRest) {
    for (const char* rest : {
             "",                                                 // headers cut
             "Content-Length: 9\r\n",                            // headers cut
             "Content-Length: 9\r\n\r\nshort",                   // body cut
             "Content-Length: abc\r\n\r\n",                      // nonsense
             "Content-Length: 5\r\nContent-Length: 7\r\n\r\nx",  // contradiction
             "Transfer-Encoding: chunked\r\n\r\nzz\r\n",         // broken chunk
             "Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc",
             "no colon\r\n\r\n",
             "Location: http://[::bad\r\nContent-Length: 0\r\n\r\n",
         }) {
        EXPECT_EQ(text_of(answer_to("HTTP/1.1 201 Created\r\n" + std::string(rest))), "201") << rest;
        EXPECT_EQ(text_of(answer_to("HTTP/1.1 301 Moved\r\n" + std::string(rest))), "301") << rest;
    }
}

TEST(ClaimsApi, WhatIsNoHttpIsGarbageOrCut) {
    for (const char* bytes :
         {"hello\n", "HTTP/1.1 99 x\r\n\r\n", "abcd", "\r\n\r\n", "HTTP/2 201\r\n\r\n", "HTTP/1.1 2011 x\r\n\r\n",
          "ICY 200 OK\r\n\r\n", "HTTP/1.1 101 x\r\n\r\nHTTP/1.1 201 x\r\n", "HTTP/1.1 100 x\r\nno colon\r\n\r\n"})
        EXPECT_EQ(kind_of(answer_to(bytes)), "garbage") << bytes << text_of(answer_to(bytes));
    for (const char* bytes : {"", "HTTP", "HTTP/1.1 201 Cre"})
        EXPECT_EQ(kind_of(answer_to(bytes)), "cut") << bytes << text_of(answer_to(bytes));
}

TEST(ClaimsApi, InterimAnswersAreNotTheAnswer) {
    EXPECT_EQ(text_of(answer_to("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\n" + created)),
              "201");
    EXPECT_EQ(kind_of(answer_to("HTTP/1.1 100 Continue\r\n\r\n")), "cut");
}

TEST(ClaimsApi, RedirectIsNotFollowed) {
    for (const char* status : {"301", "302", "303", "307", "308"}) {
        Recorder recorder([&](const Request&) {
            return "HTTP/1.1 " + std::string(status) + " x\r\nLocation: /other\r\nContent-Length: 0\r\n\r\n";
        });
        const ScriptedServer server(recorder.script());
        const auto api = api_for(server.url());
        EXPECT_EQ(text_of(call(*api)), status);
        EXPECT_EQ(recorder.requests().size(), 1U);
    }
}

TEST(ClaimsApi, RefusalDuringTheUploadIsTheAnswerAndNothingIsSentAgain) {
    for (const char* status : {"417", "413", "401", "407", "503"}) {
        std::atomic<int> requests = 0;
        const ScriptedServer server([&](Connection& connection, int) {
            Request request;
            while (connection.read_head(request)) {
                ++requests;
                connection.send("HTTP/1.1 " + std::string(status) + " x\r\nContent-Length: 0\r\n\r\n");
                connection.wait_for_end();
            }
        });
        const auto api = api_for(server.url());
        std::string body;
        body.resize(12'000'000, 'x');
        EXPECT_EQ(text_of(call(*api, "id", body)), status);
        EXPECT_EQ(requests, 1) << status;
    }
}

TEST(ClaimsApi, HugeBodyIsNotRead) {
    std::promise<void> ended;
    const ScriptedServer server([&](Connection& connection, int) {
        if (!connection.read_request()) return;
        const std::string piece(1 << 20, 'x');
        connection.send("HTTP/1.1 201 Created\r\nContent-Length: 1073741824\r\n\r\n");
        int pieces = 0;
        while (pieces < 1024 && connection.send(piece)) ++pieces;
        EXPECT_LT(pieces, 64) << "the connection is closed long before its end";
        ended.set_value();
    });
    const auto api = api_for(server.url());
    const Answer answer = call(*api);
    EXPECT_EQ(text_of(answer), "201");
    EXPECT_EQ(std::get<Answered>(answer).reason, std::string(1024, 'x'));
    EXPECT_EQ(ended.get_future().wait_for(patience), std::future_status::ready);
}

// libcurl itself would read on for ever and tell nobody.
TEST(ClaimsApi, EndlessChunkExtensionIsNotRead) {
    std::promise<void> ended;
    const ScriptedServer server([&](Connection& connection, int) {
        if (!connection.read_request()) return;
        const std::string piece(1 << 20, 'x');
        connection.send("HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n1;");
        int pieces = 0;
        while (pieces < 1024 && connection.send(piece)) ++pieces;
        EXPECT_LT(pieces, 64) << "the connection is closed long before its end";
        ended.set_value();
    });
    const auto api = api_for(server.url());
    EXPECT_EQ(text_of(call(*api)), "201");
    EXPECT_EQ(ended.get_future().wait_for(patience), std::future_status::ready);
}

TEST(ClaimsApi, EndlessHeadersAreNotRead) {
    for (const std::string start : {"HTTP/1.1 201 Created\r\n", "HTTP/1.1 100 Continue\r\n"}) {
        const ScriptedServer server([&](Connection& connection, int) {
            if (!connection.read_request()) return;
            connection.send(start);
            while (connection.send("X-Header: " + std::string(500, 'x') + "\r\n")) continue;
        });
        const auto api = api_for(server.url());
        EXPECT_EQ(kind_of(call(*api)), start[9] == '2' ? "201" : "garbage");
    }
}

TEST(ClaimsApi, EndlessLineIsGarbageAndNoFaultOfOurs) {
    for (const std::string start :
         {"HTTP/1.1 201 Created\r\nX: ", "HTTP/1.1 201 ", "HTTP/1.1 100 x\r\n\r\nHTTP/1.1 2"}) {
        const ScriptedServer server([&](Connection& connection, int) {
            if (!connection.read_request()) return;
            connection.send(start);
            while (connection.send(std::string(10'000, 'x'))) continue;
        });
        const auto api = api_for(server.url());
        EXPECT_EQ(kind_of(call(*api)), start.ends_with(": ") ? "201" : "garbage") << start;
    }
}

TEST(ClaimsApi, AnswerThatComesByTheByteIsRead) {
    const ScriptedServer server([&](Connection& connection, int) {
        if (!connection.read_request()) return;
        for (const char c : created) connection.send({&c, 1});
    });
    const auto api = api_for(server.url());
    const Answer answer = call(*api);
    EXPECT_EQ(text_of(answer), "201");
    EXPECT_EQ(std::get<Answered>(answer).reason, "{}");
}

}  // namespace
}  // namespace claimq::http::test
