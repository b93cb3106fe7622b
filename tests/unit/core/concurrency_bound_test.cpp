#include "claimq/concurrency_bound.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace claimq {
namespace {

using namespace std::chrono_literals;

constexpr auto quick = 5s;  // half of the timeout, to the millisecond
constexpr auto slow = 5001ms;

ConcurrencyBound bound_at(int value, int most = 100) {
    ConcurrencyBound bound(most, 10s);
    while (bound.value() < value) bound.answered(quick);
    return bound;
}

TEST(ConcurrencyBound, StartsAt1) {
    EXPECT_EQ(ConcurrencyBound(5, 10s).value(), 1);
    EXPECT_EQ(ConcurrencyBound(1, 10s).value(), 1);
}

TEST(ConcurrencyBound, GrowsBy1WithEachQuickAnswerUpToItsMost) {
    ConcurrencyBound bound(3, 10s);
    for (const int expected : {2, 3, 3, 3}) {
        bound.answered(quick);
        EXPECT_EQ(bound.value(), expected);
    }
}

TEST(ConcurrencyBound, AnAnswerMovesIt) {
    const struct {
        int from;
        Milliseconds took;
        int to;
    } rows[] = {
        {4, 0ms, 5}, {4, 5s, 5}, {4, 5001ms, 2}, {4, 10s, 2}, {4, 1h, 2}, {5, slow, 2}, {2, slow, 1}, {1, slow, 1},
    };
    for (const auto& row : rows) {
        auto bound = bound_at(row.from);
        bound.answered(row.took);
        EXPECT_EQ(bound.value(), row.to) << row.from << " after " << row.took.count() << " ms";
    }
}

TEST(ConcurrencyBound, ATimeoutCapsItForTheRestOfTheRun) {
    const struct {
        int from;
        int in_flight;
        int cap;
    } rows[] = {{8, 8, 7}, {8, 5, 4}, {8, 2, 1}, {8, 1, 1}, {8, 0, 1}};
    for (const auto& row : rows) {
        auto bound = bound_at(row.from);
        bound.timed_out(row.in_flight);
        EXPECT_EQ(bound.value(), row.cap) << row.in_flight << " in flight";
        for (int answers = 0; answers < 50; ++answers) bound.answered(quick);
        EXPECT_EQ(bound.value(), row.cap) << row.in_flight << " in flight, later";
    }
}

TEST(ConcurrencyBound, ATimeoutOfManyInFlightLeavesALowerBoundAlone) {
    auto bound = bound_at(2);
    bound.timed_out(8);  // the bound was 8 when they were started
    EXPECT_EQ(bound.value(), 2);
    for (int answers = 0; answers < 50; ++answers) bound.answered(quick);
    EXPECT_EQ(bound.value(), 7);
}

TEST(ConcurrencyBound, ALaterTimeoutNeverLiftsTheCap) {
    auto bound = bound_at(8);
    bound.timed_out(3);
    bound.timed_out(8);
    for (int answers = 0; answers < 50; ++answers) bound.answered(quick);
    EXPECT_EQ(bound.value(), 2);
}

TEST(ConcurrencyBound, IsNeverBelow1NorAboveItsMostNorAboveACap) {
    for (unsigned seed = 0; seed < 100; ++seed) {
        std::mt19937 random(seed);
        const int most = 1 + static_cast<int>(random() % 10);
        ConcurrencyBound bound(most, 10s);
        int cap = most;
        for (int step = 0; step < 200; ++step) {
            if (random() % 10 == 0) {
                const int in_flight = static_cast<int>(random() % 12);
                bound.timed_out(in_flight);
                cap = std::max(1, std::min(cap, in_flight - 1));
            } else {
                bound.answered(Milliseconds{random() % 10'000});
            }
            ASSERT_GE(bound.value(), 1);
            ASSERT_LE(bound.value(), cap);
        }
    }
}

}  // namespace
}  // namespace claimq
