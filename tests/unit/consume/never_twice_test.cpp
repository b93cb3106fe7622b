// An id is processed once, whoever has it and however often it comes.
#include "consume_fixture.hpp"

namespace claimq::consume_test {
namespace {

class NeverTwice : public ConsumeTest {
protected:
    static constexpr int other_process = 99;
};

TEST_F(NeverTwice, AProcessedIdIsAckedWithoutACall) {
    world_.store.processed["a"] = "{}";
    publish("a");
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(attempts("a"), 0);
    EXPECT_EQ(acked(), 1U);
    EXPECT_EQ(totals_.duplicate, 1U);
    EXPECT_EQ(totals_.accepted, 0U);
}

TEST_F(NeverTwice, AlsoAfterARestart) {
    publish("a");
    EXPECT_EQ(run(), ExitStatus::ok);
    publish("a");
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(calls("a"), 1);
    EXPECT_EQ(acked(), 2U);
}

TEST_F(NeverTwice, ARedeliveredProcessedIdIsAckedToo) {
    world_.store.processed["a"] = "{}";
    publish("a", "{}", Redelivered::yes);
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(acked(), 1U);
}

TEST_F(NeverTwice, OfTwoDeliveriesInHandOneIsCalledAndTheOtherIsAckedAfterIt) {
    publish("a");
    publish("a");
    publish("a");
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(calls("a"), 1);
    EXPECT_EQ(totals_.accepted, 1U);
    EXPECT_EQ(totals_.duplicate, 2U);
    EXPECT_EQ(journal_of({"call begun", "recorded", "settling"}),
              (Texts{"call begun a 201", "recorded a accepted", "settling a ack", "settling a ack", "settling a ack"}));
}

TEST_F(NeverTwice, WhenTheFirstOfTwoIsRejectedTheOtherIsCalled) {
    world_.claims.plan = [](const Request& request) { return answers(request.attempt == 1 ? 422 : 201); };
    publish("a");
    publish("a");
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(calls("a"), 2);
    EXPECT_EQ(dead(), 1U);
    EXPECT_EQ(acked(), 1U);
}

TEST_F(NeverTwice, WhenTheFirstOfTwoFailsTheyAreNeverInFlightTogether) {
    world_.claims.plan = [](const Request& request) { return answers(request.attempt < 4 ? 503 : 201, 50ms); };
    publish("a");
    publish("a");
    EXPECT_EQ(run(), ExitStatus::ok);
    const auto calls = journal_of({"call begun", "call ended"});
    for (std::size_t at = 0; at < calls.size(); ++at)
        EXPECT_TRUE(calls[at].starts_with(at % 2 == 0 ? "call begun" : "call ended")) << at << calls[at];
}

TEST_F(NeverTwice, AHeldDeliveryKeepsNoOtherFromBeingCalled) {
    world_.claims.plan = [](const Request& request) { return answers(201, request.id == "a" ? 2000ms : 10ms); };
    publish("b");
    publish("a");
    publish("a");
    publish("c");
    at(1s, [this] { EXPECT_TRUE(is_processed("b") && is_processed("c")); });
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(acked(), 4U);
}

TEST_F(NeverTwice, WhatAnotherProcessHasWaitsAndIsAckedWhenThatIsProcessed) {
    world_.store.locks["a"] = other_process;
    publish("a");
    at(2s, [this] {
        EXPECT_EQ(attempts("a"), 0);
        world_.store.processed["a"] = "{}";
        world_.store.locks.erase("a");
    });
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(attempts("a"), 0);
    EXPECT_EQ(acked(), 1U);
    EXPECT_LT(took_, 2500ms);
}

TEST_F(NeverTwice, WhatAProcessHadThatDiedIsCalledAtOnce) {
    world_.store.locks["a"] = other_process;
    publish("a");
    at(2s, [this] { world_.store.locks.erase("a"); });
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(calls("a"), 1);
    EXPECT_LT(took_, 2500ms);
}

TEST_F(NeverTwice, AnIdThatWasGivenBackIsFreeForOthers) {
    run_for(1s);
    always(answers(503));
    publish("a", "{}", Redelivered::yes);
    at(500ms, [this] { EXPECT_TRUE(world_.store.locks.empty()); });
    EXPECT_EQ(run(), ExitStatus::ok);
}

// ---- the same id with another body

TEST_F(NeverTwice, AnotherBodyIsAckedWithoutACallAndKept) {
    world_.store.processed["a"] = "{}";
    publish("a", "another");
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(attempts("a"), 0);
    EXPECT_EQ(acked(), 1U);
    EXPECT_TRUE(world_.store.other_bodies.contains({"a", "another"}));
    EXPECT_EQ(totals_.duplicate, 1U);
    EXPECT_EQ(totals_.conflicts, 1U);
}

TEST_F(NeverTwice, AnotherBodyIsOnDiskBeforeItIsAcked) {
    world_.store.processed["a"] = "{}";
    publish("a", "another");
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(journal_of({"body kept", "settling"}), (Texts{"body kept a", "settling a ack"}));
}

TEST_F(NeverTwice, AnotherBodyIsWarnedOfByItsIdAlone) {
    world_.store.processed["a"] = "{}";
    publish("a", "another secret");
    const auto log = run_and_read_log();
    EXPECT_TRUE(std::ranges::any_of(log, [](const auto& line) {
        return line.find("warning") != std::string::npos && line.find("id=a") != std::string::npos;
    }));
    EXPECT_TRUE(std::ranges::none_of(log, [](const auto& line) { return line.find("secret") != std::string::npos; }));
}

TEST_F(NeverTwice, TwoBodiesInHandAtOnce) {
    publish("a", "one");
    publish("a", "two");
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(calls("a"), 1);
    EXPECT_EQ(world_.store.processed["a"], "one");
    EXPECT_TRUE(world_.store.other_bodies.contains({"a", "two"}));
    EXPECT_EQ(acked(), 2U);
}

// ---- killed

TEST_F(NeverTwice, KilledAfterTheCommitTheRedeliveryIsAckedUncalled) {
    publish("a");
    ASSERT_TRUE(run_until_death_at("recorded a accepted"));
    EXPECT_EQ(queued(), 1U);
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(calls("a"), 1);
    EXPECT_EQ(acked(), 1U);
}

TEST_F(NeverTwice, KilledAfterTheAnswerBeforeTheCommitItIsCalledOnceMore) {
    publish("a");
    ASSERT_TRUE(run_until_death_at("call ended a 201"));
    EXPECT_FALSE(is_processed("a"));
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(calls("a"), 2) << "the honest window";
    EXPECT_EQ(acked(), 1U);
}

TEST_F(NeverTwice, KilledBeforeTheCallItIsCalledOnce) {
    publish("a");
    ASSERT_TRUE(run_until_death_at("lock taken a"));
    EXPECT_TRUE(world_.store.locks.empty());
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(calls("a"), 1);
}

}  // namespace
}  // namespace claimq::consume_test
