// The end: nothing new, what is in flight is finished, the rest is handed back, and all of it in a bounded time.
#include "consume_fixture.hpp"

namespace claimq::consume_test {
namespace {

class End : public ConsumeTest {
protected:
    static constexpr Milliseconds little{200};
    // The time that the broker takes to hear of the cancel, and we of its answer.
    void slow_cancel(Milliseconds time) {
        world_.witness.tell([this, time](const fake::Happened& one) {
            if (one.effect == Effect::connected) world_.broker.latency.to_broker = [time] { return time; };
        });
    }
    [[nodiscard]] int total_processed() const { return static_cast<int>(world_.store.processed.size()); }
};

TEST_F(End, AnIdleRunEndsWhenItsTimeIsUp) {
    run_for(2500ms);
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_GE(took_, 2500ms);
    EXPECT_LT(took_, 2500ms + little);
}

TEST_F(End, AnIdleRunEndsAtTheSignal) {
    options_.until_empty = false;
    at(3s, [this] { stop(); });
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_LT(took_, 3s + little);
}

TEST_F(End, WithoutALimitItRunsForEver) {
    options_.until_empty = false;
    EXPECT_THROW(static_cast<void>(run()), fake::Stuck) << "nothing will ever wake it, and nothing has to";
}

TEST_F(End, TheBrokerIsAskedForNoMoreAndTheAnswerIsWaitedFor) {
    run_for(1s);
    slow_cancel(500ms);
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(times("cancelled"), 1U);
    EXPECT_GE(took_, 1500ms);
}

TEST_F(End, ACallInFlightIsFinishedRecordedAndSettled) {
    run_for(1s);
    always(answers(201, 5s));
    publish("a");
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(calls("a"), 1);
    EXPECT_EQ(acked(), 1U);
    EXPECT_LT(took_, 5s + little);
}

TEST_F(End, TheSameAtASignal) {
    options_.until_empty = false;
    always(answers(201, 5s));
    publish("a");
    at(1s, [this] { stop(); });
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(acked(), 1U);
}

TEST_F(End, ACallThatTimesOutAtTheEndIsRequeued) {
    run_for(1s);
    always(fake::hangs());
    publish("a");
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(journal_of({"settled"}), Texts{"settled a requeue"});
    EXPECT_LT(took_, options_.timeout + little);
}

TEST_F(End, WhatWasNotStartedIsHandedBack) {
    run_for(1s);
    always(answers(201, 5s));
    publish_many(10);
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(total_calls(), 1);
    EXPECT_EQ(acked(), 1U);
    EXPECT_EQ(queued(), 9U);
    EXPECT_EQ(journal_of({"taken back"}), Texts{}) << "handed back, not left to the connection's end";
}

TEST_F(End, WhatIsHandedBackIsNotDeliveredAgain) {
    run_for(1s);
    always(answers(201, 5s));
    publish_many(5);
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(journal_of({"delivered"}).size(), 5U) << "cancelled first";
}

TEST_F(End, WhatIsHandedBackIsNotCounted) {
    run_for(1s);
    always(answers(201, 5s));
    publish_many(5);
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(totals_.accepted, 1U);
    EXPECT_EQ(totals_.requeued, 0U);
}

// ---- before and after cancel-ok

TEST_F(End, ADeliveryThatCameInTheLastTurnIsCalledIfThereIsRoom) {
    run_for(1s);
    at(998ms, [this] { publish("a"); });
    world_.broker.latency.to_client = [] { return 2ms; };
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(calls("a"), 1);
    EXPECT_EQ(acked(), 1U);
}

TEST_F(End, ADeliveryBeforeCancelOkIsCalledIfThereIsRoom) {
    run_for(1s);
    slow_cancel(500ms);
    at(1200ms, [this] { publish("a"); });
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(calls("a"), 1);
    EXPECT_EQ(acked(), 1U);
}

TEST_F(End, ADeliveryThatIsReadTogetherWithCancelOkIsCalledIfThereIsRoom) {
    run_for(1s);
    std::size_t said = 0;
    world_.broker.latency.to_client = [&] { return ++said == 1 ? 10ms : 1ms; };
    at(998ms, [this] { publish("a"); });
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(calls("a"), 1);
    EXPECT_EQ(acked(), 1U);
}

TEST_F(End, ADeliveryBeforeCancelOkIsHandedBackIfThereIsNoRoom) {
    run_for(1s);
    slow_cancel(500ms);
    always(answers(201, 3s));
    publish("a");
    at(1200ms, [this] { publish("b"); });
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(calls("a"), 1);
    EXPECT_EQ(attempts("b"), 0);
    EXPECT_EQ(queued(), 1U);
}

TEST_F(End, NoCallIsStartedAfterCancelOk) {
    run_for(1s);
    world_.claims.plan = [](const Request&) { return answers(503, 2s); };
    publish("a");  // fails after cancel-ok, and then
    publish("a");  // this one's way would be free
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(attempts("a"), 1);
    EXPECT_EQ(journal_of({"settled"}), (Texts{"settled a requeue", "settled a hand-back"}));
}

TEST_F(End, ACallThatCouldNotFinishInTimeIsNotStarted) {
    run_for(1s);
    options_.timeout = 10s;
    slow_cancel(4s);
    always(answers(201, 9500ms));
    at(4s, [this] { publish("a"); });  // cancel-ok has not come yet
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(attempts("a"), 0);
    EXPECT_EQ(queued(), 1U);
}

TEST_F(End, ASignalDuringASlowCommitCutsNoCallShort) {
    run_for(60s);
    options_.timeout = 1s;
    always(answers(201, 500ms));
    publish("a");
    publish("b");
    world_.store.commit_takes = 4s;
    at(2s, [this] { stop(); });
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(calls("b"), 1);
    EXPECT_EQ(acked(), 2U);
}

TEST_F(End, AnAnswerThatCameDuringASlowCommitAtTheEndIsNotThrownAway) {
    run_for(60s);
    options_.timeout = 1s;
    world_.claims.plan = [](const Request& request) {
        return answers(201, request.id == "c1" ? 10ms : request.id == "c2" ? 500ms : 600ms);
    };
    publish_many(3);
    at(300ms, [this] { stop(); });
    world_.witness.tell([this](const fake::Happened& one) {  // c2 and c3 are in flight
        if (text_of(one) == "call ended c2 201") world_.store.commit_takes = 4s;
    });
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(acked(), 3U);
    EXPECT_EQ(total_calls(), 3);
}

TEST_F(End, AProcessedIdThatArrivesBeforeCancelOkIsAcked) {
    run_for(1s);
    slow_cancel(500ms);
    world_.store.processed["a"] = "{}";
    at(1200ms, [this] { publish("a"); });
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(acked(), 1U);
}

// ---- what others hold

TEST_F(End, ADeliveryThatWaitsForAnothersOutcomeIsAckedWhenThatIsProcessed) {
    run_for(1s);
    always(answers(201, 4s));
    publish("a");
    publish("a");
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(calls("a"), 1);
    EXPECT_EQ(acked(), 2U);
}

TEST_F(End, WhatAnotherProcessHasIsWaitedForAndAcked) {
    run_for(1s);
    world_.store.locks["a"] = 99;
    publish("a");
    at(5s, [this] {
        world_.store.processed["a"] = "{}";
        world_.store.locks.erase("a");
    });
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(acked(), 1U);
    EXPECT_LT(took_, 5s + little);
}

TEST_F(End, WhatAnotherProcessKeepsIsHandedBack) {
    run_for(1s);
    world_.store.locks["a"] = 99;
    publish("a");
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(attempts("a"), 0);
    EXPECT_EQ(journal_of({"settled"}), Texts{"settled a hand-back"});
    EXPECT_LE(took_, 1s + options_.timeout + 5s);
}

// ---- bounded, whatever happens

TEST_F(End, IsBoundedWhenTheClaimsApiHangs) {
    run_for(1s);
    prepare_ = [](fake::Seams& seams) { seams.api.has_no_timeout = true; };
    always(fake::hangs());
    publish("a");
    static_cast<void>(run());
    EXPECT_LE(took_, 1s + options_.timeout + 5s);
    EXPECT_EQ(acked(), 0U);
    EXPECT_EQ(queued(), 1U);
}

TEST_F(End, IsBoundedWhenTheChannelIsDead) {
    run_for(3s);
    publish("a");
    at(1s, [this] { world_.broker.frozen = true; });
    static_cast<void>(run());
    EXPECT_LE(took_, 3s + options_.timeout + 5s);
}

TEST_F(End, IsBoundedWhenTheChannelTakesNothing) {
    run_for(3s);
    always(answers(201, 2s));
    publish("a");
    at(1s, [this] { world_.broker.latency.to_broker = [] { return std::chrono::hours{1}; }; });
    static_cast<void>(run());
    EXPECT_TRUE(is_processed("a"));
    EXPECT_LE(took_, 3s + options_.timeout + 5s);
}

TEST_F(End, IsBoundedWhenTheInboxNeverAnswers) {
    run_for(1s);
    publish_many(3);
    at(0ms, [this] { world_.store.answers = false; });
    static_cast<void>(run());
    EXPECT_EQ(total_calls(), 0);
    EXPECT_EQ(journal_of({"settled"}).size(), 3U) << "handed back when no call can be in flight any more";
    EXPECT_LT(took_, 1s + options_.timeout + little);
}

TEST_F(End, IsBoundedWhenTheInboxStopsAnswering) {
    run_for(1s);
    always(answers(201, 500ms));
    publish_many(3);
    at(100ms, [this] { world_.store.answers = false; });
    EXPECT_EQ(run(), ExitStatus::store) << "a 201 that could not be recorded";
    EXPECT_EQ(acked(), 0U);
    EXPECT_LE(took_, 1s + options_.timeout + 5s);
}

TEST_F(End, ASlowSocketIsWaitedFor) {
    run_for(1s);
    options_.prefetch = options_.concurrency = 20;
    prepare_ = [](fake::Seams& seams) { seams.channel.most_written_at_once = 1; };
    world_.claims.plan = [](const Request& request) { return answers(201, request.id.size() == 2 ? 10ms : 2000ms); };
    publish_many(40);
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_GT(most_in_flight_, 5);
    EXPECT_EQ(journal_of({"settled"}).size(), 29U) << "nothing that was handed back came again";
    EXPECT_EQ(journal_of({"taken back"}), Texts{});
}

TEST_F(End, SaysOnceHowLongItMayTake) {
    run_for(1s);
    std::vector<Milliseconds> said;
    options_.on_ending = [&](Milliseconds time) { said.push_back(time); };
    at(500ms, [this] { stop(); });
    EXPECT_EQ(run(), ExitStatus::ok);
    ASSERT_EQ(said.size(), 1U);
    EXPECT_GT(said[0], options_.timeout);
    EXPECT_LE(said[0], options_.timeout + 5s);
}

TEST_F(End, ASignalOneTurnAfterAnotherEndDoesNotStartItAgain) {
    run_for(1s);
    always(answers(201, 5s));
    publish("a");
    at(2s, [this] { stop(); });
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(acked(), 1U);
    EXPECT_EQ(times("cancelled"), 1U);
}

TEST_F(End, ManyShortRunsCallEachClaimOnce) {
    always(answers(201, 300ms));
    publish_many(10);
    for (int runs = 0; runs < 30 && acked() < 10; ++runs) {
        run_for(700ms);
        EXPECT_EQ(run(), ExitStatus::ok);
    }
    EXPECT_EQ(acked(), 10U);
    EXPECT_EQ(total_calls(), 10);
}

}  // namespace
}  // namespace claimq::consume_test
