#include "http/retry_after.hpp"

#include <gtest/gtest.h>

#include <string>

namespace claimq::http {
namespace {

constexpr std::time_t now = 784111777;  // Sun, 06 Nov 1994 08:49:37 GMT, the date of RFC 9110 section 5.6.7

TEST(RetryAfter, TakesSeconds) {
    EXPECT_EQ(retry_after("0", now), std::chrono::seconds(0));
    EXPECT_EQ(retry_after("2", now), std::chrono::seconds(2));
    EXPECT_EQ(retry_after(" 007\r\n", now), std::chrono::seconds(7));
    EXPECT_EQ(retry_after("99999", now), std::chrono::seconds(99999));
}

TEST(RetryAfter, ClampsHugeNumbers) {
    EXPECT_EQ(retry_after("31536001", now), longest_retry_after);
    EXPECT_EQ(retry_after(std::string(10'000, '9'), now), longest_retry_after);
    EXPECT_EQ(retry_after("Sun, 06 Nov 2094 08:49:37 GMT", now), longest_retry_after);
}

TEST(RetryAfter, TakesTheThreeFormsOfAnHttpDate) {
    for (const char* date :
         {"Sun, 06 Nov 1994 08:49:40 GMT", "Sunday, 06-Nov-94 08:49:40 GMT", "Sun Nov  6 08:49:40 1994"})
        EXPECT_EQ(retry_after(date, now), std::chrono::seconds(3)) << date;
    EXPECT_EQ(retry_after("Sun, 06 Nov 1994 08:49:00 GMT", now), std::chrono::seconds(0));
}

TEST(RetryAfter, AnythingElseIsNothing) {
    for (const char* value : {"", " ", "abc", "-1", "+1", "1.5", "1e3", "0x10", "2 s", "2, 3", "1,5", "Sun", "nan",
                              "Sun, 99 Foo 1994 08:49:37 GMT", "10:00:00", "November 6 1994 08:49:40"})
        EXPECT_EQ(retry_after(value, now), std::nullopt) << value;
}

}  // namespace
}  // namespace claimq::http
