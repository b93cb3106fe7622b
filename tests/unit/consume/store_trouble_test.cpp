// Nothing is settled before it is recorded, and nothing is called that could not be.
#include "consume_fixture.hpp"

namespace claimq::consume_test {
namespace {

class StoreTrouble : public ConsumeTest {
protected:
    void busy(Milliseconds from, Milliseconds until) {
        at(from, [this, time = until - from] { world_.store.busy_until = world_.clock.now() + time; });
    }
};

TEST_F(StoreTrouble, NothingIsSettledBeforeItIsRecorded) {
    world_.claims.plan = [](const Request& request) { return answers(request.id == "c2" ? 422 : 201); };
    publish_many(3);
    EXPECT_EQ(run(), ExitStatus::ok);
    for (const auto& line : journal_of({"settling"})) {
        const auto id = line.substr(9, 2);
        EXPECT_LT(std::ranges::find_if(journal_, [&](const auto& l) { return l.starts_with("recorded " + id); }),
                  std::ranges::find(journal_, line));
    }
}

TEST_F(StoreTrouble, WhatEndedInOneTurnIsOneCommit) {
    options_.prefetch = options_.concurrency = 8;
    publish_many(60);
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(acked(), 60U);
    EXPECT_LT(world_.store.commits, 25);
}

TEST_F(StoreTrouble, AFailureThatIsRequeuedNeedsNoRecord) {
    world_.claims.plan = [](const Request& request) { return answers(request.attempt == 1 ? 503 : 201); };
    publish("a");
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(world_.store.commits, 1);
}

TEST_F(StoreTrouble, AShortBusySpellDelaysTheAckAndNothingElse) {
    publish("a");
    busy(0ms, 300ms);
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(calls("a"), 1);
    EXPECT_EQ(acked(), 1U);
    EXPECT_GE(took_, 300ms);
}

TEST_F(StoreTrouble, WhileItIsDownNoCallIsStarted) {
    publish("a");
    busy(0ms, 20s);
    at(2s, [this] { publish("b"); });
    at(19s, [this] { EXPECT_EQ(attempts("b"), 0); });
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(calls("a"), 1);
    EXPECT_EQ(calls("b"), 1);
    EXPECT_EQ(acked(), 2U);
}

TEST_F(StoreTrouble, WhatWasReadyWhenItWentDownIsNotCalledBeforeItIsUp) {
    options_.concurrency = 2;
    world_.claims.plan = [](const Request& request) {  // c3 and c4 go on when the record of c2 finds the store busy
        return answers(201, request.id == "c1" ? 10ms : request.id == "c2" ? 50ms : 1500ms);
    };
    publish_many(5);
    busy(30ms, 20s);
    at(19s, [this] { EXPECT_EQ(total_calls(), 4); });
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(acked(), 5U);
}

TEST_F(StoreTrouble, CallsInFlightEndAndAreRecordedWhenItIsUpAgain) {
    world_.claims.plan = [](const Request&) { return answers(201, 3s); };
    publish("a");
    busy(0ms, 10s);
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(calls("a"), 1);
    EXPECT_EQ(acked(), 1U);
}

TEST_F(StoreTrouble, BusyForAMinuteEndsTheRunWith74) {
    publish("a");
    busy(0ms, 100s);
    EXPECT_EQ(run(), ExitStatus::store);
    EXPECT_EQ(acked(), 0U);
    EXPECT_EQ(queued(), 1U);
    EXPECT_GE(took_, 60s);
    EXPECT_LT(took_, 61s);
}

TEST_F(StoreTrouble, A201ThatCannotBeRecordedIsNotAckedAndIs74) {
    publish("a");
    at(0ms, [this] { world_.store.commit_takes = 1ms; });
    world_.witness.tell([this](const fake::Happened& one) {
        if (one.effect == Effect::call_ended) world_.store.broken = true;
    });
    EXPECT_EQ(run(), ExitStatus::store);
    EXPECT_EQ(calls("a"), 1);
    EXPECT_EQ(acked(), 0U);
    EXPECT_EQ(queued(), 1U);
}

TEST_F(StoreTrouble, WhenItBreaksNoCallIsStartedAndNoneIsWaitedFor) {
    run_for(60s);
    world_.claims.plan = [](const Request&) { return answers(201, 5s); };
    publish_many(3);
    at(1s, [this] { world_.store.broken = true; });
    at(1001ms, [this] { publish("late"); });
    EXPECT_EQ(run(), ExitStatus::store);
    EXPECT_EQ(total_calls(), 1);
    EXPECT_EQ(queued(), 4U);
    EXPECT_LT(took_, 1100ms);
}

TEST_F(StoreTrouble, OutcomesThatAreNotRecordedAtTheEndAre74) {
    run_for(1s);
    always(answers(201, 500ms));
    options_.timeout = 2s;
    publish("a");
    busy(0ms, 30s);
    EXPECT_EQ(run(), ExitStatus::store);
    EXPECT_EQ(acked(), 0U);
    EXPECT_LE(took_, 1s + 2s + 5s);
}

TEST_F(StoreTrouble, AStallLosesNoAnswerThatWasThere) {
    options_.timeout = 2s;
    options_.prefetch = options_.concurrency = 5;
    world_.claims.plan = [](const Request& request) { return answers(201, request.id == "c1" ? 10ms : 500ms); };
    publish_many(3);
    world_.witness.tell([this](const fake::Happened& one) {
        if (text_of(one) == "call ended c2 201") world_.store.commit_takes = 3s;
        if (text_of(one) == "call ended c1 201") world_.store.commit_takes = 0s;
    });
    publish("c4");
    EXPECT_EQ(run(), ExitStatus::ok);
    for (const char* id : {"c1", "c2", "c3", "c4"}) EXPECT_EQ(calls(id), 1) << id;
}

// Not theirs, so that the calls begun before it are not charged for it.
TEST_F(StoreTrouble, ACommitThatTakesSecondsIsToldToTheClaimsApi) {
    publish("a");
    at(0ms, [this] { world_.store.commit_takes = 3s; });
    Milliseconds told{0};
    world_.witness.tell([&](const fake::Happened& one) {
        if (text_of(one) == "settled a ack") told = seams_->api.stalled();
    });
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_GE(told, 3s);
    EXPECT_LT(told, 4s);
}

}  // namespace
}  // namespace claimq::consume_test
