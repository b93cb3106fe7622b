#include "store/gathering.hpp"

#include <gtest/gtest.h>

namespace claimq::store {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint now = TimePoint{} + 1h;
constexpr TimePoint at_once{};

TEST(Gathering, WithoutOthersACommitIsDueAtOnce) {
    Gathering gathering(1ms);
    gathering.committed(500us);
    gathering.pending(now);
    EXPECT_EQ(gathering.due(Others::none), at_once);
}

TEST(Gathering, ItWaitsAsLongAsTheLastCommitTook) {
    Gathering gathering(1ms);
    gathering.pending(now);
    EXPECT_EQ(gathering.due(Others::in_hand), now) << "none was made yet";
    gathering.committed(300us);
    gathering.pending(now);
    EXPECT_EQ(gathering.due(Others::in_hand), now + 300us);
}

TEST(Gathering, ItWaitsNoLongerThanItMay) {
    Gathering gathering(1ms);
    gathering.committed(4s);
    gathering.pending(now);
    EXPECT_EQ(gathering.due(Others::in_hand), now + 1ms);
}

TEST(Gathering, ItCountsFromTheFirstThatIsPending) {
    Gathering gathering(1ms);
    gathering.committed(1ms);
    for (const auto later : {0us, 400us, 800us}) gathering.pending(now + later);
    EXPECT_EQ(gathering.due(Others::in_hand), now + 1ms);
}

TEST(Gathering, ACommitBeginsItAnew) {
    Gathering gathering(1ms);
    gathering.pending(now);
    gathering.committed(1ms);
    EXPECT_EQ(gathering.due(Others::in_hand), at_once) << "what comes is not dated yet";
    gathering.pending(now + 5s);
    EXPECT_EQ(gathering.due(Others::in_hand), now + 5s + 1ms);
}

}  // namespace
}  // namespace claimq::store
