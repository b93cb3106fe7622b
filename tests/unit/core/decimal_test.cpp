#include "claimq/decimal.hpp"

#include <gtest/gtest.h>

#include <string>

namespace claimq {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t any = UINT64_MAX;

// What is a number nowhere: not as a whole one, not as seconds.
const std::string no_numbers[] = {
    "",
    " ",
    "+1",
    "-1",
    "-0",
    "+0",
    "010",
    "00",
    "01.5",
    "0x10",
    "0X1",
    "1e3",
    "1E3",
    "nan",
    "NaN",
    "inf",
    "-inf",
    "infinity",
    " 1",
    "1 ",
    "\t1",
    "1\n",
    "1,5",
    "1_0",
    "1'0",
    "1s",
    "abc",
    "-",
    "+",
    ".",
    "..",
    "1.5.",
    "1..5",
    "0b1",
    "1/2",
    "1%",
    "1.e3",
    "1.5e3",
    "1.-5",
    "1.+5",
    "1. 5",
    "1.5 ",
    "1.0x1",
    "\xD9\xA1" /* ARABIC-INDIC DIGIT ONE */,
    std::string("1\0", 2),
    std::string(1, '\0'),
};

TEST(WholeNumber, IsPlainDigitsWithinItsLimits) {
    const struct {
        std::string text;
        std::uint64_t least, most;
        std::optional<std::uint64_t> value;
    } rows[] = {
        {"0", 0, any, 0},
        {"7", 0, any, 7},
        {"10", 0, any, 10},
        {"1", 1, 10, 1},
        {"10", 1, 10, 10},
        {"0", 1, 10, std::nullopt},
        {"11", 1, 10, std::nullopt},
        {"18446744073709551615", 0, any, any},
        {"18446744073709551616", 0, any, std::nullopt},
        {"99999999999999999999", 0, any, std::nullopt},
        {std::string(1000, '9'), 0, any, std::nullopt},
        {"1.0", 0, any, std::nullopt},
        {"1.", 0, any, std::nullopt},
    };
    for (const auto& row : rows) EXPECT_EQ(whole_number(row.text, row.least, row.most), row.value) << row.text;
    for (const auto& text : no_numbers) EXPECT_EQ(whole_number(text, 0, any), std::nullopt) << "'" << text << "'";
}

TEST(Seconds, HaveAnOptionalFractionAndAreRoundedUp) {
    const struct {
        std::string text;
        std::chrono::milliseconds value;
    } rows[] = {
        {"0", 0ms},          {"0.0", 0ms},
        {"0.000", 0ms},      {"0.0000", 0ms},
        {"0.0001", 1ms},     {"0." + std::string(500, '0') + "1", 1ms},
        {"0.001", 1ms},      {"0.01", 10ms},
        {"0.1", 100ms},      {"0.5", 500ms},
        {"1", 1s},           {"1.0005", 1001ms},
        {"1.0000", 1s},      {"1.001", 1001ms},
        {"1.9991", 2s},      {"1.9999999999999999999999", 2s},
        {"3.5", 3500ms},     {"3.50", 3500ms},
        {"12.345", 12345ms}, {"315360000", 315'360'000s},
    };
    for (const auto& row : rows) EXPECT_EQ(seconds(row.text), row.value) << row.text;
}

TEST(Seconds, AreNothingElse) {
    for (const auto& text : no_numbers) EXPECT_EQ(seconds(text), std::nullopt) << "'" << text << "'";
    for (const std::string text : {"1.", ".5", "0.", "315360001", "18446744073709551616", "9223372036854775807"})
        EXPECT_EQ(seconds(text), std::nullopt) << text;
    EXPECT_EQ(seconds(std::string(1000, '9')), std::nullopt);
}

}  // namespace
}  // namespace claimq
