// A call's deadline. The tests give turn() a `now` of their choice, so nothing waits for time to pass.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <latch>
#include <string>
#include <thread>

#include "driving.hpp"
#include "scripted_server.hpp"

namespace claimq::http::test {
namespace {

using namespace std::chrono_literals;

[[nodiscard]] TimePoint after_the_deadline() { return Clock::now() + patience + 1h; }

// Drives the call's request to the server, which then waits for `answer`; nothing has been answered yet.
class Answering {
public:
    explicit Answering(std::string bytes)
        : bytes_(std::move(bytes)), server_([this](Connection& c, int) { serve(c); }) {}

    [[nodiscard]] std::string url() const { return server_.url(); }
    void start_on(ClaimsApi& api) {
        api.start({7, "id", "{}", Redelivered::no});
        EXPECT_TRUE(drive_until(api, [this](const auto&) { return requested_.load(); }).empty());
    }
    void answer() {
        go_.set_value();
        answered_.get_future().wait();
    }
    // The other side has closed the connection.
    [[nodiscard]] bool ended() { return ended_.get_future().wait_for(patience) == std::future_status::ready; }

private:
    void serve(Connection& connection) {
        if (!connection.read_request()) return;
        requested_ = true;
        if (go_.get_future().wait_for(patience) == std::future_status::ready) {
            connection.send(bytes_);
            answered_.set_value();
        }
        connection.wait_for_end();
        ended_.set_value();
    }

    std::string bytes_;
    std::atomic<bool> requested_ = false;
    std::promise<void> go_;
    std::promise<void> answered_;
    std::promise<void> ended_;
    ScriptedServer server_;
};

TEST(ClaimsApiDeadline, CallIsEndedWhenItsTimeIsUp) {
    Answering claims_system("");
    const auto api = api_for(claims_system.url());
    const TimePoint before = Clock::now();
    claims_system.start_on(*api);
    EXPECT_TRUE(api->turn(before + patience - 1ms).empty());
    const auto finished = api->turn(after_the_deadline());
    ASSERT_EQ(finished.size(), 1U);
    EXPECT_EQ(finished[0].ticket, 7U);
    EXPECT_EQ(text_of(finished[0].answer),
              "timed out: " + claims_system.url() + "/v1/claims: no answer within 20000 ms");
    claims_system.answer();
    EXPECT_TRUE(claims_system.ended()) << "its connection is closed, not kept";
    EXPECT_TRUE(api->turn(after_the_deadline()).empty()) << "returned exactly once";
}

TEST(ClaimsApiDeadline, DeadlineIsTheDueTime) {
    Answering claims_system("");
    ClaimsApiOptions options = options_for(claims_system.url());
    options.timeout = 1500ms;
    const auto api = make_claims_api(options);
    const TimePoint before = Clock::now();
    claims_system.start_on(*api);
    EXPECT_LE(api->watch().due, Clock::now() + 1500ms);
    // libcurl's own timers may come first; turning then changes nothing.
    const auto finished = finish(*api, 1);
    ASSERT_EQ(finished.size(), 1U);
    EXPECT_EQ(kind_of(finished[0].answer), "timed out");
    EXPECT_GE(Clock::now() - before, 1500ms);
    EXPECT_GE(finished[0].took, 1500ms);
    EXPECT_LT(finished[0].took, 3s);
    claims_system.answer();
}

// SPEC 6: "an answer that was already there when the loop looked counts, however late it looked".
TEST(ClaimsApiDeadline, AnswerThatWaitedOutAStallCounts) {
    Answering claims_system("HTTP/1.1 201 Created\r\nContent-Length: 70000\r\n\r\n" + std::string(70000, 'x'));
    const auto api = api_for(claims_system.url());
    claims_system.start_on(*api);
    claims_system.answer();
    const auto finished = api->turn(after_the_deadline());
    ASSERT_EQ(finished.size(), 1U);
    EXPECT_EQ(text_of(finished[0].answer), "201");
    EXPECT_EQ(std::get<Answered>(finished[0].answer).reason.size(), 1024U);
}

TEST(ClaimsApiDeadline, EveryAnswerThatWaitedOutAStallCounts) {
    constexpr int calls = 300;  // more than one epoll_wait brings
    std::atomic<int> requested = 0;
    std::promise<void> go;
    const std::shared_future<void> gone = go.get_future().share();
    std::latch answered(calls);
    const ScriptedServer server([&](Connection& connection, int) {
        if (!connection.read_request()) return;
        ++requested;
        gone.wait();
        connection.send("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n");
        answered.count_down();
        connection.wait_for_end();
    });
    const auto api = api_for(server.url());
    for (Ticket ticket = 1; ticket <= calls; ++ticket) api->start({ticket, "id", "{}", Redelivered::no});
    EXPECT_TRUE(drive_until(*api, [&](const auto&) { return requested == calls; }).empty());
    go.set_value();
    if (requested == calls) answered.wait();
    const auto finished = api->turn(after_the_deadline());
    ASSERT_EQ(finished.size(), static_cast<std::size_t>(calls));
    for (const auto& call : finished) EXPECT_EQ(text_of(call.answer), "201");
}

TEST(ClaimsApiDeadline, StatusLineBeforeTheDeadlineIsTheAnswer) {
    Answering claims_system("HTTP/1.1 201 Created\r\nContent-Length: 9\r\n\r\nshort");
    const auto api = api_for(claims_system.url());
    claims_system.start_on(*api);
    claims_system.answer();
    const auto finished = api->turn(after_the_deadline());
    ASSERT_EQ(finished.size(), 1U);
    EXPECT_EQ(text_of(finished[0].answer), "201");
    EXPECT_EQ(std::get<Answered>(finished[0].answer).reason, "short");
}

TEST(ClaimsApiDeadline, HalfAStatusLineIsNone) {
    Answering claims_system("HTTP/1.1 201 Crea");
    const auto api = api_for(claims_system.url());
    claims_system.start_on(*api);
    claims_system.answer();
    const auto finished = api->turn(after_the_deadline());
    ASSERT_EQ(finished.size(), 1U);
    EXPECT_EQ(kind_of(finished[0].answer), "timed out");
}

TEST(ClaimsApiDeadline, RequestDoesNotGoOutAfterIt) {
    Recorder recorder("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n");
    const ScriptedServer server(recorder.script());
    ClaimsApiOptions options = options_for(server.url());
    options.timeout = 20ms;
    const auto api = make_claims_api(options);
    api->start({1, "id", "{}", Redelivered::no});
    const TimePoint deadline = Clock::now() + options.timeout;
    EXPECT_TRUE(api->turn(Clock::now()).empty()) << "connecting";
    std::this_thread::sleep_until(deadline);  // the time itself is what is tested
    const auto finished = api->turn(Clock::now());
    ASSERT_EQ(finished.size(), 1U);
    EXPECT_EQ(text_of(finished[0].answer),
              "timed out: " + server.url() + "/v1/claims: the time was up before the request could be sent");
    EXPECT_TRUE(recorder.requests().empty());
}

TEST(ClaimsApiDeadline, OurOwnStallIsNotChargedToARequestThatIsNotOutYet) {
    Recorder recorder("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n");
    const ScriptedServer server(recorder.script());
    ClaimsApiOptions options = options_for(server.url());
    options.timeout = 3s;
    const auto api = make_claims_api(options);
    api->start({1, "id", "{}", Redelivered::no});
    EXPECT_TRUE(api->turn(Clock::now()).empty()) << "connecting";
    std::this_thread::sleep_for(options.timeout);  // the stall
    api->stalled(options.timeout);
    const auto finished = finish(*api, 1);
    ASSERT_EQ(finished.size(), 1U);
    EXPECT_EQ(text_of(finished[0].answer), "201");
}

TEST(ClaimsApiDeadline, AStallBeginsTheTimeOfACallAnewAtMost) {
    Answering claims_system("");
    const auto api = api_for(claims_system.url());
    api->start({7, "id", "{}", Redelivered::no});
    api->stalled(24h);
    EXPECT_EQ(api->turn(after_the_deadline()).size(), 1U);
}

TEST(ClaimsApiDeadline, AStallIsChargedToARequestThatIsOut) {
    Answering claims_system("");
    const auto api = api_for(claims_system.url());
    const TimePoint before = Clock::now();
    claims_system.start_on(*api);
    const TimePoint requested = Clock::now();
    api->stalled(24h);
    EXPECT_TRUE(api->turn(before + patience - 1ms).empty());
    EXPECT_EQ(api->turn(requested + patience).size(), 1U);
    claims_system.answer();
}

TEST(ClaimsApiDeadline, DyingWithCallsInFlightIsClean) {
    Answering claims_system("");
    {
        const auto api = api_for(claims_system.url());
        claims_system.start_on(*api);
        api->start({8, "not yet turned", "{}", Redelivered::no});
    }
    claims_system.answer();
    EXPECT_TRUE(claims_system.ended());
}

}  // namespace
}  // namespace claimq::http::test
