#include "amqp/backoff.hpp"

#include <gtest/gtest.h>

#include <climits>

namespace claimq::amqp {
namespace {

using namespace std::chrono_literals;

TEST(Backoff, DoublesFrom100MillisecondsToItsMost) {
    const struct {
        int attempt;
        Milliseconds most, wait;
    } rows[] = {
        {0, 10s, 100ms},        {1, 10s, 200ms},  {2, 10s, 400ms},   {3, 10s, 800ms},
        {6, 10s, 6400ms},       {7, 10s, 10s},    {8, 10s, 10s},     {1000, 10s, 10s},
        {INT_MAX, 10s, 10s},    {-1, 10s, 100ms}, {3, 500ms, 500ms}, {16, 24h, 6'553'600ms},
        {17, 24h, 6'553'600ms}, {0, 50ms, 100ms}, {5, 0ms, 100ms},  // never a loop without a pause
    };
    for (const auto& row : rows) EXPECT_EQ(backoff(row.attempt, row.most, 0), row.wait) << row.attempt;
}

TEST(Backoff, ChanceTakesOffUpToAQuarter) {
    EXPECT_EQ(backoff(0, 10s, 1), 75ms);
    EXPECT_EQ(backoff(3, 10s, 0.5), 700ms);
    EXPECT_EQ(backoff(100, 10s, 1), 7500ms);
    for (int attempt = 0; attempt < 20; ++attempt) {
        for (double chance = 0; chance <= 1; chance += 1.0 / 64) {
            const auto wait = backoff(attempt, 10s, chance);
            EXPECT_LE(wait, backoff(attempt, 10s, 0));
            EXPECT_GE(wait * 4, backoff(attempt, 10s, 0) * 3);
        }
    }
}

static_assert(backoff(0, Milliseconds{1000}, 0) == Milliseconds{100});

}  // namespace
}  // namespace claimq::amqp
