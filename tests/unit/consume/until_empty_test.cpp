// --until-empty: the run also ends when claim.in is empty and nothing is in flight.
#include "consume_fixture.hpp"

namespace claimq::consume_test {
namespace {

class UntilEmpty : public ConsumeTest {};

TEST_F(UntilEmpty, AnEmptyQueueEndsTheRunAtOnce) {
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_LT(took_, 100ms);
}

TEST_F(UntilEmpty, WhatIsInFlightIsWaitedFor) {
    always(answers(201, 5s));
    publish("a");
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(acked(), 1U);
}

TEST_F(UntilEmpty, WhatIsRequeuedIsCalledAgainBeforeTheEnd) {
    always(answers(503));
    publish_many(7);
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(dead(), 7U);
    EXPECT_EQ(queued(), 0U);
}

TEST_F(UntilEmpty, WhatWaitsForItsRetryIsInFlight) {
    options_.retry_delay = 10s;
    always(answers(503));
    publish("a");
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(dead(), 1U);
}

TEST_F(UntilEmpty, ItsTimeAndTheSignalEndItTheSame) {
    options_.max_time = 1s;
    always(answers(201, 3s));
    publish_many(3);
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(acked(), 1U);
    EXPECT_EQ(queued(), 2U);
}

TEST_F(UntilEmpty, WhatComesWhileTheDepthIsAskedForIsProcessed) {
    world_.broker.latency.to_broker = [] { return 20ms; };
    at(10ms, [this] { publish_many(5); });
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(acked(), 5U);
}

// With the two acks the queue sends b and c on their way; then it is asked, and its answer comes before them.
TEST_F(UntilEmpty, AnAnswerThatHasOvertakenDeliveriesEndsNothing) {
    options_.prefetch = 2;
    options_.concurrency = 1;
    always(answers(201, 100ms));
    for (const char* id : {"a", "a", "b", "c"}) publish(id);
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(acked(), 4U);
    EXPECT_EQ(queued(), 0U);
}

// The broker counts while all of them are on their way to us; before its answer is read they have failed and are queued
// again.
TEST_F(UntilEmpty, ADepthThatIsOvertakenByRequeuesEndsNothing) {
    std::size_t sent = 0;
    world_.broker.latency.to_broker = [] { return 20ms; };
    world_.broker.latency.to_client = [&] { return ++sent == 4 ? 1000ms : 1ms; };  // the fourth is the depth
    always(fails(CallFailure::refused, 1ms));
    at(10ms, [this] { publish_many(3); });
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(queued(), 0U);
    EXPECT_EQ(dead(), 3U);
}

TEST_F(UntilEmpty, WhatAQuorumQueueCountsOnlyLaterIsNotForgotten) {
    world_.broker.requeue_takes = 300ms;
    always(answers(503));
    publish_many(5);
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(dead(), 5U);
    EXPECT_EQ(queued(), 0U);
}

// Asked right after the requeues the queue would say 0; when that is read at last, they are long queued again.
TEST_F(UntilEmpty, WhatItCountedTooEarlyIsNotBelievedLaterEither) {
    world_.broker.requeue_takes = 300ms;
    bool is_delayed = false;
    world_.broker.latency.to_client = [&] {  // the first thing that is said after the last requeue
        if (is_delayed || times("settled c3 requeue") == 0) return 1ms;
        is_delayed = true;
        return 1000ms;
    };
    always(fails(CallFailure::refused));
    publish_many(3);
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(dead(), 3U);
    EXPECT_EQ(queued(), 0U);
}

TEST_F(UntilEmpty, AConnectionLostWithTheQuestionOpenIsAskedAgain) {
    world_.broker.latency.to_broker = [] { return 50ms; };
    at(20ms, [this] { lose_connection(); });
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(times("connected"), 2U);
}

TEST_F(UntilEmpty, WhatOthersHaveInHandIsNotWaitedFor) {
    publish("a");
    const auto other = world_.broker.open(99, 1);
    world_.clock.advance(10ms);
    ASSERT_EQ(world_.broker.unacked().size(), 1U);
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(total_calls(), 0);
}

}  // namespace
}  // namespace claimq::consume_test
