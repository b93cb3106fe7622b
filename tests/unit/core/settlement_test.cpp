#include "claimq/settlement.hpp"

#include <gtest/gtest.h>

#include <string>

namespace claimq {
namespace {

TEST(Settle, IsTheTableOfTheSpecification) {
    const struct {
        Outcome outcome;
        Settlement first, redelivered;
    } rows[] = {
        {Outcome::accepted, Settlement::ack, Settlement::ack},
        {Outcome::duplicate, Settlement::ack, Settlement::ack},
        {Outcome::rejected, Settlement::dead_letter, Settlement::dead_letter},
        {Outcome::failed, Settlement::requeue, Settlement::dead_letter},
        {Outcome::unidentified, Settlement::dead_letter, Settlement::dead_letter},
        {Outcome::stopped, Settlement::requeue, Settlement::requeue},
    };
    for (const auto& row : rows) {
        EXPECT_EQ(settle(row.outcome, Redelivered::no), row.first) << name(row.outcome);
        EXPECT_EQ(settle(row.outcome, Redelivered::yes), row.redelivered) << name(row.outcome);
    }
}

TEST(Classify, ByDefaultOnly201AcceptsAndOnly422Rejects) {
    for (int status = 200; status <= 999; ++status) {
        const auto expected = status == 201 ? Outcome::accepted : status == 422 ? Outcome::rejected : Outcome::failed;
        EXPECT_EQ(classify(Answered{status, {}, {}}, Policy{}), expected) << status;
    }
}

TEST(Classify, FollowsTheListsOfThePolicy) {
    const Policy policy{.accept = {200, 201, 409}, .reject = {400, 422}, .stop_on = {401, 403, 404}};
    for (int status = 200; status <= 999; ++status) {
        auto expected = Outcome::failed;
        if (status == 200 || status == 201 || status == 409) expected = Outcome::accepted;
        if (status == 400 || status == 422) expected = Outcome::rejected;
        if (status == 401 || status == 403 || status == 404) expected = Outcome::stopped;
        EXPECT_EQ(classify(Answered{status, {}, {}}, policy), expected) << status;
    }
}

TEST(Classify, AListReplacesTheDefault) {
    const Policy policy{.accept = {200}, .reject = {}, .stop_on = {}};
    EXPECT_EQ(classify(Answered{200, {}, {}}, policy), Outcome::accepted);
    EXPECT_EQ(classify(Answered{201, {}, {}}, policy), Outcome::failed);
    EXPECT_EQ(classify(Answered{422, {}, {}}, policy), Outcome::failed);
}

TEST(Classify, RetryAfterAndBodyChangeNothing) {
    EXPECT_EQ(classify(Answered{503, std::chrono::seconds{5}, "201"}, Policy{}), Outcome::failed);
    EXPECT_EQ(classify(Answered{201, std::chrono::seconds{5}, "422"}, Policy{}), Outcome::accepted);
}

TEST(Classify, NoAnswerIsAFailure) {
    for (const auto how : {CallFailure::refused, CallFailure::unresolved, CallFailure::timed_out, CallFailure::cut,
                           CallFailure::garbage})
        EXPECT_EQ(classify(NotAnswered{how, "why"}), Outcome::failed) << name(how);
}

TEST(Names, AreTheOnesOfTheLog) {
    EXPECT_EQ(name(Outcome::accepted), "accepted");
    EXPECT_EQ(name(Outcome::duplicate), "duplicate");
    EXPECT_EQ(name(Outcome::rejected), "rejected");
    EXPECT_EQ(name(Outcome::failed), "failed");
    EXPECT_EQ(name(Outcome::unidentified), "unidentified");
    EXPECT_EQ(name(Outcome::stopped), "stopped");
    EXPECT_EQ(name(Settlement::ack), "ack");
    EXPECT_EQ(name(Settlement::requeue), "requeue");
    EXPECT_EQ(name(Settlement::dead_letter), "dead-letter");
    EXPECT_EQ(name(Settlement::hand_back), "hand-back");
    EXPECT_EQ(name(CallFailure::refused), "refused");
    EXPECT_EQ(name(CallFailure::unresolved), "unresolved");
    EXPECT_EQ(name(CallFailure::timed_out), "timed out");
    EXPECT_EQ(name(CallFailure::cut), "cut");
    EXPECT_EQ(name(CallFailure::garbage), "garbage");
}

}  // namespace
}  // namespace claimq
