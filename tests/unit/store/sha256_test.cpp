#include "store/sha256.hpp"

#include <gtest/gtest.h>

#include <array>

#include "store/utc_text.hpp"

namespace claimq::store {
namespace {

TEST(Sha256, IsTheStandardsForABC) {  // FIPS 180-4, example of 24 bits
    const Sha256 digest = sha256("abc");
    EXPECT_EQ(digest[0], std::byte{0xba});
    EXPECT_EQ(digest[31], std::byte{0xad});
    EXPECT_NE(sha256(std::string_view{}), digest);
}

// Fixed for ever: consumers of two releases may share a store.
TEST(LockByte, IsTheFirst63BitsOfTheDigest) {
    EXPECT_EQ(lock_byte("abc"), 0xba7816bf8f01cfeaUL >> 1);
    EXPECT_EQ(lock_byte(""), 0xe3b0c44298fc1c14UL >> 1);
    EXPECT_NE(lock_byte({"a\0b", 3}), lock_byte({"a\0c", 3}));
}

TEST(UtcText, HasFixedWidthAndSortsAsTimeDoes) {
    using namespace std::chrono;
    EXPECT_EQ(utc_text(sys_days{2026y / July / 31} + 8h + 5min + 9s + 42ms), "2026-07-31T08:05:09.042Z");
    EXPECT_EQ(utc_text(WallTime{}), "1970-01-01T00:00:00.000Z");
    EXPECT_EQ(utc_text(WallTime{} - 1ms), "1969-12-31T23:59:59.999Z");
    EXPECT_LT(utc_text(sys_days{2026y / July / 9} + 23h), utc_text(sys_days{2026y / July / 10} + 1ms));
}

}  // namespace
}  // namespace claimq::store
