// The connection goes; the run goes on.
#include "consume_fixture.hpp"

namespace claimq::consume_test {
namespace {

class BrokerGone : public ConsumeTest {
protected:
    void away(Milliseconds from, Milliseconds until) {
        at(from, [this] {
            world_.broker.accepts_connections = false;
            lose_connection();
        });
        at(until, [this] { world_.broker.accepts_connections = true; });
    }
};

TEST_F(BrokerGone, ItIsConnectedAgainAndAllIsProcessed) {
    publish_many(10);
    away(20ms, 5s);
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(acked(), 10U);
    EXPECT_EQ(times("connected"), 2U);
}

TEST_F(BrokerGone, WhatWasNotCalledIsDroppedAndDeliveredAgain) {
    always(answers(201, 1s));
    publish_many(5);
    at(500ms, [this] { lose_connection(); });  // c1 is being called
    EXPECT_EQ(run(), ExitStatus::ok);
    for (int n = 1; n <= 5; ++n) EXPECT_EQ(calls("c" + std::to_string(n)), 1) << n;
    EXPECT_EQ(acked(), 5U);
}

TEST_F(BrokerGone, TheResultOfACallInFlightIsRecordedMeanwhile) {
    always(answers(201, 3s));
    publish("a");
    away(1s, 10s);
    at(9s, [this] { EXPECT_TRUE(is_processed("a")); });
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(calls("a"), 1);
    EXPECT_EQ(journal_of({"recorded", "settled"}), (Texts{"recorded a accepted", "settled a ack"}));
    EXPECT_EQ(totals_.accepted, 1U);
    EXPECT_EQ(totals_.duplicate, 1U);
}

TEST_F(BrokerGone, AResultThatIsBeingRecordedIsNotDropped) {
    publish("a");
    at(0ms, [this] { world_.store.busy_until = world_.clock.now() + 300ms; });
    at(100ms, [this] { lose_connection(); });
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(calls("a"), 1);
    EXPECT_EQ(totals_.accepted, 1U);
    EXPECT_EQ(totals_.duplicate, 1U);
}

TEST_F(BrokerGone, TheRedeliveryWaitsForTheCallInFlightAndIsAckedUncalled) {
    always(answers(201, 3s));
    publish("a");
    at(1s, [this] { lose_connection(); });
    at(2s, [this] { EXPECT_EQ(world_.broker.unacked().size(), 1U); });
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(calls("a"), 1);
    EXPECT_EQ(acked(), 1U);
}

TEST_F(BrokerGone, NoTagOfTheOldChannelIsEverUsed) {
    options_.prefetch = options_.concurrency = 5;
    world_.claims.plan = [](const Request& request) {
        return answers(request.id == "c3" ? 422 : request.id == "c4" ? 503 : 201, 400ms);
    };
    publish_many(12);
    for (int n = 1; n < 8; ++n) at(n * 250ms, [this] { lose_connection(); });
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(queued(), 0U);  // and TearDown looks for the broker's complaints
}

TEST_F(BrokerGone, A422AnsweredWithoutAConnectionIsNotRecordedAndIsCalledAgain) {
    always(answers(422, 1s));
    publish("a");
    at(500ms, [this] { lose_connection(); });
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(calls("a"), 2) << "the honest window";
    EXPECT_EQ(dead(), 1U);
    EXPECT_EQ(world_.store.dead_letters.size(), 1U);
    EXPECT_EQ(totals_.rejected, 1U);
}

TEST_F(BrokerGone, A503AnsweredWithoutAConnectionIsCalledAgainAsRedelivered) {
    always(answers(503, 1s));
    publish("a");
    at(500ms, [this] { lose_connection(); });
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(calls("a"), 2);
    EXPECT_EQ(dead(), 1U);
    EXPECT_EQ(totals_.requeued, 0U);
}

TEST_F(BrokerGone, LostBetweenRecordAndAckTheRedeliveryIsAckedUncalled) {
    publish("a");
    world_.witness.tell([this](const fake::Happened& one) {
        if (one.effect == Effect::written && world_.broker.acked().empty() && times("lost") == 0) lose_connection();
    });
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(calls("a"), 1);
    EXPECT_EQ(times("settled a ack"), 1U);
}

TEST_F(BrokerGone, AnAckThatWasOnItsWayMayStillArrive) {
    publish("a");
    world_.witness.tell([this](const fake::Happened& one) {
        if (one.effect == Effect::written) lose_connection({.written_that_arrive = fake::Loss::all});
    });
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(calls("a"), 1);
    EXPECT_EQ(acked(), 1U);
}

TEST_F(BrokerGone, DeliveriesReadTogetherWithTheLossAreNotCalled) {
    run_for(10s);
    publish_many(3);
    world_.broker.latency.to_client = [this] {  // the first ones are on their way when the connection goes
        return times("connected") == 1 ? 100ms : 1ms;
    };
    at(103ms, [this] { lose_connection({.unread = fake::Loss::Unread::still_read}); });
    EXPECT_EQ(run(), ExitStatus::ok);
    for (int n = 1; n <= 3; ++n) EXPECT_EQ(calls("c" + std::to_string(n)), 1) << n;
}

TEST_F(BrokerGone, WhenTheBrokerNoticesLateTheClaimsComeBackLate) {
    always(answers(503, 100ms));
    run_for(60s);
    publish("a");
    at(50ms, [this] { lose_connection({.noticed_after = 20s}); });
    at(19s, [this] { EXPECT_EQ(calls("a"), 1); });
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(calls("a"), 2);
    EXPECT_EQ(dead(), 1U);
}

TEST_F(BrokerGone, AChannelThatTheBrokerClosesIsTakenUpAgain) {
    publish_many(3);
    at(10ms, [this] {
        world_.broker.accepts_connections = false;
        world_.broker.close_channels("queue 'claim.in' was deleted");
    });
    at(5s, [this] { world_.broker.accepts_connections = true; });
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(acked(), 3U);
}

// ---- the end without a connection

TEST_F(BrokerGone, NoConnectionAtTheDeadlineIs69) {
    run_for(5s);
    away(1s, 100s);
    EXPECT_EQ(run(), ExitStatus::unavailable);
    EXPECT_LT(took_, 5100ms);
}

TEST_F(BrokerGone, NeverAConnectionIs69AtTheDeadline) {
    run_for(5s);
    world_.broker.accepts_connections = false;
    EXPECT_EQ(run(), ExitStatus::unavailable);
    EXPECT_LT(took_, 5100ms);
}

TEST_F(BrokerGone, NoConnectionAtTheSignalIs69) {
    run_for(60s);
    away(1s, 100s);
    at(3s, [this] { stop(); });
    EXPECT_EQ(run(), ExitStatus::unavailable);
    EXPECT_LT(took_, 3100ms);
}

TEST_F(BrokerGone, UntilEmptyWithoutAConnectionWaitsWithoutSpinning) {
    options_.max_time = 30s;
    world_.broker.accepts_connections = false;
    EXPECT_EQ(run(), ExitStatus::unavailable);
    EXPECT_LT(turns_, 100);
}

TEST_F(BrokerGone, BackInTimeForTheDeadlineIs0) {
    run_for(20s);
    away(1s, 10s);
    publish("a");
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(acked(), 1U);
}

TEST_F(BrokerGone, ACallInFlightAtADeadlineWithoutAConnectionIsStillRecorded) {
    run_for(5s);
    always(answers(201, 8s));
    publish("a");
    away(1s, 100s);
    EXPECT_EQ(run(), ExitStatus::unavailable);
    EXPECT_TRUE(is_processed("a"));
    EXPECT_EQ(calls("a"), 1);
    EXPECT_LT(took_, 8200ms);
}

TEST_F(BrokerGone, GoneDuringTheEndIs69) {
    run_for(1s);
    always(answers(201, 3s));
    publish("a");
    at(2s, [this] { lose_connection(); });
    EXPECT_EQ(run(), ExitStatus::unavailable);
    EXPECT_TRUE(is_processed("a"));
    EXPECT_EQ(times("connected"), 1U) << "no reconnecting at the end";
}

TEST_F(BrokerGone, GoneWhileTheLastAckIsWrittenNothingIsLost) {
    run_for(1s);
    always(answers(201, 3s));
    publish("a");
    world_.witness.tell([this](const fake::Happened& one) {
        if (one.effect == Effect::settling) lose_connection();
    });
    static_cast<void>(run());
    EXPECT_TRUE(is_processed("a"));
    EXPECT_EQ(queued(), 1U);
}

// ---- what will not mend itself

class Refused : public ConsumeTest, public testing::WithParamInterface<ExitStatus> {};

TEST_P(Refused, AtTheFirstConnectionEndsTheRunWithItsStatusAtOnce) {
    run_for(60s);
    prepare_ = [](fake::Seams& seams) {
        seams.channel.refusal = channel_event::Ended{GetParam(), "as the broker says"};
    };
    publish("a");
    EXPECT_EQ(run(), GetParam());
    EXPECT_LT(took_, 100ms);
    EXPECT_EQ(total_calls(), 0);
    EXPECT_EQ(queued(), 1U);
}

INSTANTIATE_TEST_SUITE_P(Loop, Refused,
                         testing::Values(ExitStatus::unavailable, ExitStatus::conflict, ExitStatus::denied,
                                         ExitStatus::os_error));

}  // namespace
}  // namespace claimq::consume_test
