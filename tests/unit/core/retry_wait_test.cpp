#include "claimq/retry_wait.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace claimq {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint start = TimePoint{} + 1h;
using Tickets = std::vector<Ticket>;

TEST(RetryWait, IsTheLongerOfOptionAndRetryAfterAndAtMost30Seconds) {
    const struct {
        Milliseconds option;
        std::optional<std::chrono::seconds> retry_after;
        Milliseconds wait;
    } rows[] = {
        {0ms, std::nullopt, 0ms},
        {0ms, 2s, 0ms},  // without the option there is no wait
        {0ms, 99999s, 0ms},
        {1s, std::nullopt, 1s},
        {1s, 0s, 1s},
        {1s, 2s, 2s},
        {2500ms, 2s, 2500ms},
        {1ms, 1s, 1s},
        {1s, 30s, 30s},
        {1s, 99999s, 30s},
        {1s, std::chrono::seconds::max(), 30s},
        {30s, std::nullopt, 30s},
        {31s, std::nullopt, 30s},
        {31s, 1s, 30s},
    };
    for (const auto& row : rows)
        EXPECT_EQ(retry_wait(row.option, row.retry_after), row.wait)
            << row.option.count() << " ms, " << row.retry_after.value_or(-1s).count() << " s";
}

TEST(RetryQueue, GivesBackWhatIsDue) {
    RetryQueue queue(10);
    EXPECT_EQ(queue.next_due(), TimePoint::max());
    EXPECT_EQ(queue.add(1, start + 2s), std::nullopt);
    EXPECT_EQ(queue.add(2, start + 1s), std::nullopt);
    EXPECT_EQ(queue.add(3, start + 2s), std::nullopt);
    EXPECT_EQ(queue.next_due(), start + 1s);
    EXPECT_EQ(queue.take_due(start), Tickets{});
    EXPECT_EQ(queue.take_due(start + 1s), Tickets{2});
    EXPECT_EQ(queue.next_due(), start + 2s);
    EXPECT_EQ(queue.take_due(start + 1999ms), Tickets{});
    EXPECT_EQ(queue.take_due(start + 5s), (Tickets{1, 3}));
    EXPECT_EQ(queue.next_due(), TimePoint::max());
    EXPECT_EQ(queue.take_due(start + 1h), Tickets{});
}

TEST(RetryQueue, GivesBackAllAtTheEnd) {
    RetryQueue queue(10);
    EXPECT_EQ(queue.add(1, start + 30s), std::nullopt);
    EXPECT_EQ(queue.add(2, start), std::nullopt);
    EXPECT_EQ(queue.take_all(), (Tickets{1, 2}));
    EXPECT_EQ(queue.take_all(), Tickets{});
}

TEST(RetryQueue, AtMostHalfOfThePrefetchWaitsAndTheOldestGoesEarly) {
    const struct {
        int prefetch;
        std::size_t most;
    } rows[] = {{1, 1}, {2, 1}, {3, 1}, {4, 2}, {5, 2}, {10, 5}, {10'000, 5000}};
    for (const auto& row : rows) {
        RetryQueue queue(row.prefetch);
        for (Ticket ticket = 1; ticket <= row.most; ++ticket)
            // Due later the earlier it came: the age counts, not the due time.
            ASSERT_EQ(queue.add(ticket, start + Milliseconds{20'000 - ticket}), std::nullopt) << row.prefetch;
        EXPECT_EQ(queue.add(row.most + 1, start), Ticket{1}) << row.prefetch;
        EXPECT_EQ(queue.add(row.most + 2, start), Ticket{2}) << row.prefetch;
        EXPECT_EQ(queue.take_all().size(), row.most) << row.prefetch;
    }
}

}  // namespace
}  // namespace claimq
