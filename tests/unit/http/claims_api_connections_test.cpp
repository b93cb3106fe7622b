// Which connections calls go out on, and what becomes of those that idle.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <set>
#include <string>

#include "driving.hpp"
#include "scripted_server.hpp"

namespace claimq::http::test {
namespace {

using namespace std::chrono_literals;

const std::string created = "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}";

TEST(ClaimsApiConnection, IsReused) {
    Recorder recorder(created);
    const ScriptedServer server(recorder.script());
    const auto api = api_for(server.url());
    for (int i = 0; i < 5; ++i) EXPECT_EQ(text_of(call(*api)), "201");
    EXPECT_EQ(recorder.connections(), (std::vector<int>{0, 0, 0, 0, 0}));
}

TEST(ClaimsApiConnection, RedeliveredGoesOutOnAFreshOneWhichReplacesTheIdleOne) {
    Recorder recorder(created);
    std::promise<void> first_ended;
    const ScriptedServer server([&](Connection& connection, int number) {
        recorder(connection, number);
        if (number == 0) first_ended.set_value();
    });
    const auto api = api_for(server.url());
    EXPECT_EQ(text_of(call(*api)), "201");
    EXPECT_EQ(text_of(call(*api, "id", "{}", Redelivered::yes)), "201");
    EXPECT_EQ(text_of(call(*api)), "201");
    EXPECT_EQ(recorder.connections(), (std::vector<int>{0, 1, 1}));
    EXPECT_EQ(first_ended.get_future().wait_for(patience), std::future_status::ready);
}

// A claims system that looks at its next connection only when the last one has ended.
TEST(ClaimsApiConnection, RedeliveredIsServedByASystemThatServesOneConnectionAtATime) {
    Recorder recorder(created);
    std::mutex one_at_a_time;
    const ScriptedServer server([&](Connection& connection, int number) {
        const std::lock_guard lock(one_at_a_time);
        recorder(connection, number);
    });
    const auto api = api_for(server.url());
    for (Ticket ticket = 1; ticket <= 3; ++ticket) {
        api->start({ticket, "id", "{}", Redelivered::yes});
        const auto finished = finish(*api, 1);
        ASSERT_EQ(finished.size(), 1U);
        EXPECT_EQ(text_of(finished[0].answer), "201");
        EXPECT_LT(finished[0].took, 1500ms) << "it waited until the idle connection was dropped";
    }
}

TEST(ClaimsApiConnection, IdleOneMakesRoomForACallThatWaits) {
    Recorder recorder(created);
    std::mutex one_at_a_time;
    const ScriptedServer server([&](Connection& connection, int number) {
        const std::lock_guard lock(one_at_a_time);
        recorder(connection, number);
    });
    const auto api = api_for(server.url());
    api->start({1, "a", "{}", Redelivered::no});
    api->start({2, "b", "{}", Redelivered::no});
    EXPECT_EQ(finish(*api, 1).size(), 1U) << "and its connection idles";
    EXPECT_TRUE(api->turn(Clock::now() + 1s).empty());
    const auto second = finish(*api, 1);
    ASSERT_EQ(second.size(), 1U);
    EXPECT_EQ(text_of(second[0].answer), "201");
    EXPECT_LT(second[0].took, 1500ms) << "it waited until the idle connection was dropped";
}

TEST(ClaimsApiConnection, RedeliveredUsesNoneOfSeveralIdleOnes) {
    Recorder recorder(created);
    const ScriptedServer server(recorder.script());
    const auto api = api_for(server.url());
    for (Ticket ticket = 1; ticket <= 3; ++ticket) api->start({ticket, "id", "{}", Redelivered::no});
    EXPECT_EQ(finish(*api, 3).size(), 3U);
    EXPECT_EQ(text_of(call(*api, "id", "{}", Redelivered::yes)), "201");
    EXPECT_EQ(recorder.connections().back(), 3);
}

// CASES 31. libcurl by itself would send the second call again on a new connection.
TEST(ClaimsApiConnection, RequestIsNotSentAgainWhenAReusedOneDies) {
    for (const bool with_reset : {false, true}) {
        std::atomic<int> requests = 0;
        const ScriptedServer server([&](Connection& connection, int number) {
            if (connection.read_request()) ++requests;
            connection.send(created);
            if (number > 0) return;
            if (connection.read_request()) ++requests;
            if (with_reset) connection.reset();
        });
        const auto api = api_for(server.url());
        EXPECT_EQ(text_of(call(*api, "a")), "201");
        EXPECT_EQ(text_of(call(*api, "b")),
                  "cut: " + server.url() + "/v1/claims: the connection was closed without an answer");
        EXPECT_EQ(requests, 2);
        EXPECT_EQ(text_of(call(*api, "b", "{}", Redelivered::yes)), "201");
        EXPECT_EQ(requests, 3);
    }
}

TEST(ClaimsApiConnection, EndedOneIsNotUsed) {
    Recorder recorder(created);
    const ScriptedServer server([&](Connection& connection, int number) {
        if (number > 0) return recorder(connection, number);
        if (connection.read_request()) connection.send(created);
    });
    const auto api = api_for(server.url());
    EXPECT_EQ(text_of(call(*api)), "201");
    // The server's FIN shows on the idle connection.
    while (!wait(*api, 10ms)) EXPECT_LT(api->watch().due, Clock::now() + patience);
    EXPECT_EQ(text_of(call(*api)), "201");
    EXPECT_EQ(recorder.connections(), std::vector<int>{1});
}

// An answer to nothing, such as a late 408, is not the next call's.
TEST(ClaimsApiConnection, OneWithAnUnaskedAnswerIsNotUsed) {
    std::promise<void> go;
    Recorder recorder("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n");
    const ScriptedServer server([&](Connection& connection, int number) {
        if (number > 0) return recorder(connection, number);
        if (!connection.read_request()) return;
        connection.send(created);
        go.get_future().wait();
        connection.send(created);
        connection.wait_for_end();
    });
    const auto api = api_for(server.url());
    EXPECT_EQ(text_of(call(*api)), "201");
    go.set_value();
    while (!wait(*api, 10ms)) EXPECT_LT(api->watch().due, Clock::now() + patience);
    EXPECT_EQ(text_of(call(*api)), "503");
    EXPECT_EQ(recorder.connections(), std::vector<int>{1});
}

TEST(ClaimsApiConnection, IdleOneIsClosedAfterTwoSeconds) {
    Recorder recorder(created);
    std::promise<void> ended;
    const ScriptedServer server([&](Connection& connection, int number) {
        recorder(connection, number);
        if (number == 0) ended.set_value();
    });
    const auto api = api_for(server.url());
    EXPECT_EQ(text_of(call(*api)), "201");
    const TimePoint due = api->watch().due;
    EXPECT_LE(due, Clock::now() + 2s);
    EXPECT_GT(due, Clock::now() + 1s);
    EXPECT_TRUE(api->turn(due - 1ms).empty());
    auto end = ended.get_future();
    EXPECT_EQ(end.wait_for(0s), std::future_status::timeout);
    EXPECT_TRUE(api->turn(due).empty());
    EXPECT_EQ(end.wait_for(patience), std::future_status::ready);
    EXPECT_EQ(api->watch().due, TimePoint::max()) << "nothing left to wait for";
    EXPECT_EQ(text_of(call(*api)), "201");
}

TEST(ClaimsApiConnection, IdleOneIsEndedAlsoWhileACallIsInFlight) {
    std::promise<void> quick_ended;
    std::promise<void> go;
    const ScriptedServer server([&](Connection& connection, int) {
        std::string key;
        while (const auto request = connection.read_request()) {
            key = request->values("Idempotency-Key").at(0);
            if (key == "\"slow\"") go.get_future().wait();
            connection.send(created);
        }
        if (key == "\"quick\"") quick_ended.set_value();
    });
    const auto api = api_for(server.url());
    api->start({1, "slow", "{}", Redelivered::no});
    api->start({2, "quick", "{}", Redelivered::no});
    const auto quick = finish(*api, 1);
    ASSERT_EQ(quick.size(), 1U);
    EXPECT_EQ(quick[0].ticket, 2U);
    EXPECT_TRUE(api->turn(Clock::now() + 2s).empty()) << "the slow call is still in flight";
    EXPECT_EQ(quick_ended.get_future().wait_for(patience), std::future_status::ready);
    go.set_value();
    const auto slow = finish(*api, 1);
    ASSERT_EQ(slow.size(), 1U);
    EXPECT_EQ(text_of(slow[0].answer), "201");
    EXPECT_EQ(text_of(call(*api, "last")), "201");
    EXPECT_EQ(server.connections(), 2);
}

TEST(ClaimsApiConnection, FiftyCallsAtOnceUseFiftyAgainAndAgain) {
    Recorder recorder(created);
    const ScriptedServer server(recorder.script());
    const auto api = api_for(server.url());
    std::set<Ticket> tickets;
    for (int round = 0; round < 10; ++round) {
        for (int i = 0; i < 50; ++i) api->start({static_cast<Ticket>(round * 50 + i), "id", "{}", Redelivered::no});
        for (const FinishedCall& call : finish(*api, 50)) {
            EXPECT_EQ(text_of(call.answer), "201");
            tickets.insert(call.ticket);
        }
    }
    EXPECT_EQ(tickets.size(), 500U);
    EXPECT_EQ(recorder.requests().size(), 500U);
    EXPECT_EQ(server.connections(), 50);
}

TEST(ClaimsApiConnection, CallGoesOutInTheNextTurnWithoutWaiting) {
    Recorder recorder(created);
    const ScriptedServer server(recorder.script());
    const auto api = api_for(server.url());
    EXPECT_EQ(api->watch().due, TimePoint::max());
    EXPECT_EQ(text_of(call(*api)), "201");
    const TimePoint before = Clock::now();
    api->start({1, "id", "{}", Redelivered::no});
    EXPECT_LE(api->watch().due, before);
    EXPECT_TRUE(api->turn(before).size() <= 1) << "a `now` from before the start will do";
    // No further turn is needed for it.
    while (recorder.requests().size() < 2 && Clock::now() < before + patience) std::this_thread::yield();
    EXPECT_EQ(recorder.requests().size(), 2U);
}

}  // namespace
}  // namespace claimq::http::test
