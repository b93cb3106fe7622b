#include "http/idempotency_key.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace claimq::http {
namespace {

TEST(IdempotencyKey, IsTheIdInQuotes) {
    EXPECT_EQ(idempotency_key_header("0b1e7d6e-9f1e"), "Idempotency-Key: \"0b1e7d6e-9f1e\"");
    EXPECT_EQ(idempotency_key_header(" a b~"), "Idempotency-Key: \" a b~\"");
    EXPECT_EQ(idempotency_key_header(""), "Idempotency-Key: \"\"");
}

TEST(IdempotencyKey, EncodesWhatAStringCannotHold) {
    EXPECT_EQ(idempotency_key_header("a\r\nX-Evil: 1"), "Idempotency-Key: \"a%0D%0AX-Evil: 1\"");
    EXPECT_EQ(idempotency_key_header("\"\\%"), "Idempotency-Key: \"%22%5C%25\"");
    EXPECT_EQ(idempotency_key_header("\xE2\x82\xAC\x7F\x1F"), "Idempotency-Key: \"%E2%82%AC%7F%1F\"");
    EXPECT_EQ(idempotency_key_header(std::string_view("\0", 1)), "Idempotency-Key: \"%00\"");
}

TEST(IdempotencyKey, EveryByteHasItsOwnPrintableKey) {
    std::set<std::string> keys;
    for (int byte = 0; byte < 256; ++byte) {
        const std::string key = idempotency_key_header(std::string(1, static_cast<char>(byte)));
        for (const char c : key) EXPECT_TRUE(c >= 0x20 && c <= 0x7E) << byte;
        keys.insert(key);
    }
    EXPECT_EQ(keys.size(), 256U);
    EXPECT_NE(idempotency_key_header("%0D"), idempotency_key_header("\r"));
}

}  // namespace
}  // namespace claimq::http
