// The requeue: at once, or after a wait in which the delivery stays unacked.
#include "consume_fixture.hpp"

namespace claimq::consume_test {
namespace {

class Retry : public ConsumeTest {
protected:
    // When the broker was told, from the beginning of the run.
    void note_requeues() {
        const auto began = world_.clock.now();
        world_.witness.tell([this, began](const fake::Happened& one) {
            if (one.effect != Effect::settled || one.settlement != Settlement::requeue) return;
            requeued_.emplace_back(one.id, std::chrono::duration_cast<Milliseconds>(world_.clock.now() - began));
        });
    }
    // Everything before a requeue that is not its wait: connecting, the frames' way, the calls.
    static constexpr Milliseconds little{200};
    void expect_requeued_after(Milliseconds wait) {
        ASSERT_EQ(requeued_.size(), 1U);
        EXPECT_GE(requeued_[0].second, wait);
        EXPECT_LT(requeued_[0].second, wait + little);
    }
    std::vector<std::pair<std::string, Milliseconds>> requeued_;
};

TEST_F(Retry, IsImmediateWithoutADelay) {
    always(answers(503));
    publish("a");
    note_requeues();
    EXPECT_EQ(run(), ExitStatus::ok);
    expect_requeued_after(0ms);
}

TEST_F(Retry, WithoutADelayRetryAfterIsNotWaitedFor) {
    always(answers(503, 10ms, 20s));
    publish("a");
    note_requeues();
    EXPECT_EQ(run(), ExitStatus::ok);
    expect_requeued_after(0ms);
}

TEST_F(Retry, WaitsTheDelayUnacked) {
    options_.retry_delay = 3s;
    always(answers(503));
    publish("a");
    note_requeues();
    at(2s, [this] { EXPECT_EQ(world_.broker.unacked().size(), 1U); });
    EXPECT_EQ(run(), ExitStatus::ok);
    expect_requeued_after(3s);
    EXPECT_EQ(calls("a"), 2);
    EXPECT_EQ(dead(), 1U);
}

TEST_F(Retry, WaitsForALongerRetryAfter) {
    options_.retry_delay = 1s;
    always(answers(503, 10ms, 2s));
    publish("a");
    note_requeues();
    EXPECT_EQ(run(), ExitStatus::ok);
    expect_requeued_after(2s);
}

TEST_F(Retry, AShorterRetryAfterChangesNothing) {
    options_.retry_delay = 4s;
    always(answers(503, 10ms, 2s));
    publish("a");
    note_requeues();
    EXPECT_EQ(run(), ExitStatus::ok);
    expect_requeued_after(4s);
}

TEST_F(Retry, WaitsForRetryAfter30SecondsAtMost) {
    options_.retry_delay = 1s;
    always(answers(503, 10ms, 99999s));
    publish("a");
    note_requeues();
    EXPECT_EQ(run(), ExitStatus::ok);
    expect_requeued_after(30s);
}

TEST_F(Retry, ARedeliveredFailureIsDeadLetteredWithoutAWait) {
    options_.retry_delay = 20s;
    always(answers(503));
    publish("a", "{}", Redelivered::yes);
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(dead(), 1U);
    EXPECT_LT(took_, little);
}

TEST_F(Retry, AtMostHalfOfThePrefetchWaitsTheOldestGoesBackEarly) {
    options_.prefetch = options_.concurrency = 4;
    options_.retry_delay = 20s;
    world_.claims.plan = [](const Request& request) { return answers(request.attempt == 1 ? 503 : 201); };
    publish_many(3);
    note_requeues();
    at(19s, [this] { EXPECT_EQ(world_.broker.unacked().size(), 2U); });
    EXPECT_EQ(run(), ExitStatus::ok);
    ASSERT_EQ(requeued_.size(), 3U);
    EXPECT_EQ(requeued_[0].first, "c1");
    EXPECT_LT(requeued_[0].second, little);
    EXPECT_GE(requeued_[1].second, 20s);
    EXPECT_EQ(acked(), 3U);
}

TEST_F(Retry, WhileSomeWaitOthersAreCalled) {
    options_.prefetch = options_.concurrency = 2;
    options_.retry_delay = 20s;
    world_.claims.plan = [](const Request& request) {
        return answers(request.id == "c1" && request.attempt == 1 ? 503 : 201);
    };
    publish_many(10);
    at(1s, [this] { EXPECT_EQ(acked(), 9U); });
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(acked(), 10U);
}

TEST_F(Retry, AWaitingRequeueGoesOutAtOnceAtTheEnd) {
    run_for(5s);
    options_.retry_delay = 20s;
    always(answers(503));
    publish("a");
    note_requeues();
    EXPECT_EQ(run(), ExitStatus::ok);
    expect_requeued_after(5s);
    EXPECT_LT(took_, 5s + little);
    EXPECT_EQ(calls("a"), 1) << "cancelled before it was given back";
    EXPECT_EQ(queued(), 1U);
}

TEST_F(Retry, AFailureDuringTheEndIsRequeuedAtOnce) {
    run_for(1s);
    options_.retry_delay = 20s;
    always(answers(503, 2s));
    publish("a");
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(journal_of({"settled"}), Texts{"settled a requeue"});
    EXPECT_LT(took_, 2s + little);
}

TEST_F(Retry, AWaitEndsWithItsConnection) {
    options_.retry_delay = 5s;
    world_.claims.plan = [](const Request& request) { return answers(request.attempt == 1 ? 503 : 201); };
    publish("a");
    at(1s, [this] { lose_connection(); });
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(journal_of({"settled"}), Texts{"settled a ack"});
    EXPECT_EQ(calls("a"), 2);
    EXPECT_LT(took_, 2s) << "the redelivery is called at once";
}

TEST_F(Retry, WhatWaitedOnALostConnectionTakesNoRoom) {
    run_for(20s);
    options_.prefetch = options_.concurrency = 4;
    options_.retry_delay = 5s;
    world_.claims.plan = [](const Request& request) { return answers(request.attempt == 1 ? 503 : 201); };
    publish_many(2);
    at(1s, [this] { lose_connection(); });
    at(2s, [this] { publish("c3"), publish("c4"); });
    note_requeues();
    EXPECT_EQ(run(), ExitStatus::ok);
    ASSERT_EQ(requeued_.size(), 2U);
    EXPECT_GE(requeued_[0].second, 7s);
}

TEST_F(Retry, AnotherDeliveryOfAWaitingIdWaitsToo) {
    options_.retry_delay = 5s;
    world_.claims.plan = [](const Request& request) { return answers(request.attempt == 1 ? 503 : 201); };
    publish("a");
    publish("a");
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(calls("a"), 2);
    EXPECT_EQ(acked(), 2U);
    EXPECT_GE(took_, 5s);
}

}  // namespace
}  // namespace claimq::consume_test
