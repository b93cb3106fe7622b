#include "claimq/exit_status.hpp"

#include <gtest/gtest.h>

#include <array>

namespace claimq {
namespace {

using enum ExitStatus;

TEST(ExitStatus, HasTheNumbersOfTheSpecification) {
    EXPECT_EQ(static_cast<int>(ok), 0);
    EXPECT_EQ(static_cast<int>(refused), 1);
    EXPECT_EQ(static_cast<int>(usage), 64);
    EXPECT_EQ(static_cast<int>(data), 65);
    EXPECT_EQ(static_cast<int>(no_input), 66);
    EXPECT_EQ(static_cast<int>(unavailable), 69);
    EXPECT_EQ(static_cast<int>(os_error), 71);
    EXPECT_EQ(static_cast<int>(store), 74);
    EXPECT_EQ(static_cast<int>(unknown), 75);
    EXPECT_EQ(static_cast<int>(conflict), 76);
    EXPECT_EQ(static_cast<int>(denied), 77);
}

TEST(ExitStatus, TheGravestIsFoundInTheOrderOfTheSpecification) {
    constexpr std::array order{unknown, denied, conflict, unavailable, refused, data, no_input, ok};
    for (std::size_t graver = 0; graver < order.size(); ++graver) {
        for (std::size_t other = graver; other < order.size(); ++other) {
            EXPECT_EQ(gravest(order[graver], order[other]), order[graver]);
            EXPECT_EQ(gravest(order[other], order[graver]), order[graver]);
        }
    }
}

TEST(ExitStatus, GravestIsATotalOrder) {
    constexpr std::array all{ok,       refused, usage,   data,     no_input, unavailable,
                             os_error, store,   unknown, conflict, denied};
    for (const auto a : all) {
        EXPECT_EQ(gravest(a, a), a);
        EXPECT_EQ(gravest(a, ok), a);
        for (const auto b : all) {
            EXPECT_EQ(gravest(a, b), gravest(b, a));
            EXPECT_TRUE(gravest(a, b) == a || gravest(a, b) == b);
            for (const auto c : all) EXPECT_EQ(gravest(gravest(a, b), c), gravest(a, gravest(b, c)));
        }
    }
}

}  // namespace
}  // namespace claimq
