// What an answer means, and what becomes of the delivery: SPEC §6, the table.
#include <algorithm>
#include <tuple>

#include "consume_fixture.hpp"

namespace claimq::consume_test {
namespace {

struct Row {
    const char* name;
    CallPlan plan;
    Settlement first;
    Settlement redelivered;
};

CallPlan with_cut_body() { return {Answered{201, {}, "the rest of the body was cut"}, 10ms, 5ms}; }
CallPlan later_than_the_timeout() { return {Answered{201, {}, {}}, 11s, 5ms}; }

const Row rows[] = {
    {"201", answers(201), Settlement::ack, Settlement::ack},
    {"201WithCutBody", with_cut_body(), Settlement::ack, Settlement::ack},
    {"422", answers(422), Settlement::dead_letter, Settlement::dead_letter},
    {"503", answers(503), Settlement::requeue, Settlement::dead_letter},
    {"200", answers(200), Settlement::requeue, Settlement::dead_letter},
    {"301", answers(301), Settlement::requeue, Settlement::dead_letter},
    {"401", answers(401), Settlement::requeue, Settlement::dead_letter},
    {"Refused", fails(CallFailure::refused), Settlement::requeue, Settlement::dead_letter},
    {"Unresolved", fails(CallFailure::unresolved), Settlement::requeue, Settlement::dead_letter},
    {"Garbage", fails(CallFailure::garbage), Settlement::requeue, Settlement::dead_letter},
    {"Cut", fails(CallFailure::cut), Settlement::requeue, Settlement::dead_letter},
    {"TimedOut", later_than_the_timeout(), Settlement::requeue, Settlement::dead_letter},
};

std::string row_name(const testing::TestParamInfo<std::tuple<Row, Redelivered>>& info) {
    const auto& [row, redelivered] = info.param;
    return std::string(row.name) + (redelivered == Redelivered::yes ? "Redelivered" : "First");
}

class Outcomes : public ConsumeTest, public testing::WithParamInterface<std::tuple<Row, Redelivered>> {};

// The first call is answered as the row says; if there is another one, it is accepted.
TEST_P(Outcomes, AreSettledByTheTable) {
    const auto& [row, redelivered] = GetParam();
    const auto expected = redelivered == Redelivered::yes ? row.redelivered : row.first;
    world_.claims.plan = [&plan = row.plan](const Request& request) {
        return request.attempt == 1 ? plan : answers(201);
    };
    publish("a", "{}", redelivered);

    EXPECT_EQ(run(), ExitStatus::ok);

    const bool requeued = expected == Settlement::requeue;
    EXPECT_EQ(journal_of({"settled"}).front(), "settled a " + std::string(name(expected)));
    EXPECT_EQ(attempts("a"), requeued ? 2 : 1);
    EXPECT_EQ(acked(), expected == Settlement::dead_letter ? 0U : 1U);
    EXPECT_EQ(dead(), expected == Settlement::dead_letter ? 1U : 0U);
    EXPECT_EQ(is_processed("a"), acked() == 1);
    EXPECT_EQ(world_.store.dead_letters.size(), dead());
    EXPECT_EQ(queued(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Loop, Outcomes,
                         testing::Combine(testing::ValuesIn(rows), testing::Values(Redelivered::no, Redelivered::yes)),
                         row_name);

class OutcomePolicy : public ConsumeTest {};

TEST_F(OutcomePolicy, AFailureTwiceGoesToTheDeadLettersAfterTwoCalls) {
    always(answers(503));
    publish("a");
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(calls("a"), 2);
    EXPECT_EQ(journal_of({"settled"}), (Texts{"settled a requeue", "settled a dead-letter"}));
}

TEST_F(OutcomePolicy, TheSecondCallIsMarkedAsRedelivered) {
    always(answers(503));
    publish("a");
    EXPECT_EQ(run(), ExitStatus::ok);
    ASSERT_EQ(world_.claims.requests().size(), 2U);
    EXPECT_EQ(world_.claims.requests()[0].redelivered, Redelivered::no);
    EXPECT_EQ(world_.claims.requests()[1].redelivered, Redelivered::yes);
}

TEST_F(OutcomePolicy, TheBodyIsSentUnchanged) {
    const std::string body = " {\"guid\" : \"a\",\r\n \"n\":1.50e3}\n";
    publish("a", body);
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(world_.claims.requests().at(0).body, body);
}

TEST_F(OutcomePolicy, TheListsSayWhatIsAcceptedAndRejected) {
    options_.policy = {.accept = {200, 202}, .reject = {400, 409}, .stop_on = {}};
    world_.claims.plan = [](const Request& request) { return answers(std::stoi(request.id)); };
    for (const char* id : {"200", "202", "400", "409", "201", "422"}) publish(id);
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(acked(), 2U);
    EXPECT_EQ(totals_.rejected, 2U);
    EXPECT_EQ(totals_.requeued, 2U);
    EXPECT_EQ(totals_.dead_lettered, 2U);
}

TEST_F(OutcomePolicy, TheReasonOfADeadLetterIsKept) {
    always({Answered{422, {}, "docs are missing"}, 10ms, {}});
    publish("a");
    EXPECT_EQ(run(), ExitStatus::ok);
    ASSERT_EQ(world_.store.dead_letters.size(), 1U);
    EXPECT_EQ(world_.store.dead_letters[0].status, 422);
    EXPECT_EQ(world_.store.dead_letters[0].reason, "docs are missing");
    EXPECT_EQ(world_.store.dead_letters[0].outcome, Outcome::rejected);
}

TEST_F(OutcomePolicy, ARejectedIdIsCalledAgainWhenItIsSentAgain) {
    world_.claims.plan = [](const Request& request) { return answers(request.attempt == 1 ? 422 : 201); };
    publish("a");
    EXPECT_EQ(run(), ExitStatus::ok);
    publish("a");
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(calls("a"), 2);
    EXPECT_EQ(dead(), 1U);
    EXPECT_EQ(acked(), 1U);
}

// ---- --stop-on

class StopOn : public ConsumeTest {
protected:
    StopOn() {
        options_.policy.stop_on = {401, 404};
        run_for(60s);
    }
};

TEST_F(StopOn, EndsTheRunWith69AndRequeuesTheClaim) {
    always(answers(401));
    publish("a");
    EXPECT_EQ(run(), ExitStatus::unavailable);
    EXPECT_EQ(journal_of({"settled"}), Texts{"settled a requeue"});
    EXPECT_EQ(calls("a"), 1);
    EXPECT_EQ(queued(), 1U);
    EXPECT_LT(took_, 1s);
}

TEST_F(StopOn, RequeuesARedeliveredClaimToo) {
    always(answers(404));
    publish("a", "{}", Redelivered::yes);
    EXPECT_EQ(run(), ExitStatus::unavailable);
    EXPECT_EQ(queued(), 1U);
    EXPECT_EQ(dead(), 0U);
}

TEST_F(StopOn, StartsNoFurtherCallAndHandsTheOthersBack) {
    always(answers(401));
    publish_many(20);
    EXPECT_EQ(run(), ExitStatus::unavailable);
    EXPECT_EQ(total_calls(), 1);
    EXPECT_EQ(queued(), 20U);
}

TEST_F(StopOn, FinishesTheCallsInFlight) {
    world_.claims.plan = [](const Request& request) {
        return request.id == "c3" ? answers(401, 50ms) : answers(201, 100ms);
    };
    publish_many(5);  // c1 alone, then c2 and c3
    EXPECT_EQ(run(), ExitStatus::unavailable);
    EXPECT_TRUE(is_processed("c2"));
    EXPECT_EQ(acked(), 2U);
    EXPECT_EQ(queued(), 3U);
    EXPECT_EQ(total_calls(), 3);
}

TEST_F(StopOn, EndsTheRunEvenIfTheConnectionWasLostDuringTheCall) {
    always(answers(401, 1s));
    publish("a");
    at(500ms, [this] { lose_connection(); });
    EXPECT_EQ(run(), ExitStatus::unavailable);
    EXPECT_EQ(calls("a"), 1);
    EXPECT_EQ(queued(), 1U);
}

// ---- a failure on this side

class OwnFailure : public ConsumeTest {
protected:
    OwnFailure() { run_for(60s); }
};

TEST_F(OwnFailure, EndsTheRunWith71AndSettlesNothingForTheClaim) {
    always(fake::own_fault());
    publish("a");
    EXPECT_EQ(run(), ExitStatus::os_error);
    EXPECT_EQ(journal_of({"settled", "recorded"}), Texts{});
    EXPECT_EQ(queued(), 1U);  // taken back at the close
    EXPECT_EQ(totals_.requeued, 0U);
    EXPECT_LT(took_, 1s);
}

TEST_F(OwnFailure, StartsNoFurtherCallAndFinishesThoseInFlight) {
    world_.claims.plan = [](const Request& request) {
        return request.id == "c3" ? fake::own_fault() : answers(201, 100ms);
    };
    publish_many(5);
    EXPECT_EQ(run(), ExitStatus::os_error);
    EXPECT_EQ(acked(), 2U);
    EXPECT_EQ(queued(), 3U);
    EXPECT_EQ(total_calls(), 3);
}

TEST_F(OwnFailure, FreesTheIdForOthers) {
    world_.claims.plan = [](const Request& request) {
        return request.id == "c3" ? fake::own_fault() : answers(201, 1s);
    };
    publish_many(3);
    at(1500ms, [this] { EXPECT_EQ(world_.store.locks.size(), 1U); });
    EXPECT_EQ(run(), ExitStatus::os_error);
}

TEST_F(OwnFailure, IsGraverThanTheConnectionLostAfterIt) {
    world_.claims.plan = [](const Request& request) {
        return request.id == "c3" ? fake::own_fault() : answers(201, 1s);
    };
    publish_many(3);
    at(1500ms, [this] { lose_connection(); });
    EXPECT_EQ(run(), ExitStatus::os_error);
    EXPECT_TRUE(is_processed("c2"));
}

// ---- who it is

class Identity : public ConsumeTest {};

TEST_F(Identity, WithoutMessageIdTheBodysGuidIsTheId) {
    publish("", R"({"guid":"g1"})");
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(calls("g1"), 1);
    EXPECT_TRUE(is_processed("g1"));
}

TEST_F(Identity, TheMessageIdComesBeforeTheGuid) {
    publish("m", R"({"guid":"g1"})");
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(calls("m"), 1);
    EXPECT_EQ(calls("g1"), 0);
}

TEST_F(Identity, AMessageIdAndAGuidThatAreEqualAreOneClaim) {
    publish("g1", R"({"guid":"g1"})");
    publish("", R"({"guid":"g1"})");
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(calls("g1"), 1);
    EXPECT_EQ(acked(), 2U);
}

TEST_F(Identity, AForeignMessageIdIsTakenAsItIs) {
    const std::string id("a\r\nX-Evil: 1\0\xFF", 14);
    publish(id);
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(calls(id), 1);
}

TEST_F(Identity, WithNeitherItGoesToTheDeadLettersUncalled) {
    for (const char* body : {"", "{}", "no json", R"({"guid":7})", R"({"guid":""})"}) publish("", body);
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(total_calls(), 0);
    EXPECT_EQ(dead(), 5U);
    EXPECT_EQ(totals_.dead_lettered, 5U);
}

TEST_F(Identity, ThatIsNotHeldUpByTheStore) {
    world_.store.answers = false;
    publish("", "no json");
    run_for(100ms);
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(dead(), 1U);
}

}  // namespace
}  // namespace claimq::consume_test
