#include "claimq/utf8.hpp"

#include <gtest/gtest.h>

#include <string>

namespace claimq {
namespace {

std::string bytes(std::initializer_list<unsigned> values) {
    std::string text;
    for (const auto value : values) text.push_back(static_cast<char>(value));
    return text;
}

std::string encoded(char32_t c) {
    if (c < 0x80) return bytes({c});
    if (c < 0x800) return bytes({0xC0u | (c >> 6u), 0x80u | (c & 0x3Fu)});
    if (c < 0x10000) return bytes({0xE0u | (c >> 12u), 0x80u | ((c >> 6u) & 0x3Fu), 0x80u | (c & 0x3Fu)});
    return bytes({0xF0u | (c >> 18u), 0x80u | ((c >> 12u) & 0x3Fu), 0x80u | ((c >> 6u) & 0x3Fu), 0x80u | (c & 0x3Fu)});
}

bool in(unsigned value, unsigned least, unsigned most) { return value >= least && value <= most; }

// RFC 3629 section 4, UTF8-3 and the start of UTF8-4, as it stands there.
bool may_follow(unsigned lead, unsigned second) {
    switch (lead) {
        case 0xE0: return in(second, 0xA0, 0xBF);
        case 0xED: return in(second, 0x80, 0x9F);
        case 0xF0: return in(second, 0x90, 0xBF);
        case 0xF4: return in(second, 0x80, 0x8F);
        default: return in(second, 0x80, 0xBF);
    }
}

TEST(Utf8, EveryCharacterIsRead) {
    for (char32_t c = 0; c <= 0x10FFFF; ++c) {
        const bool surrogate = c >= 0xD800 && c <= 0xDFFF;
        const auto text = encoded(c);
        const auto read = first_code_point(text + "x");
        ASSERT_EQ(read.has_value(), !surrogate) << static_cast<std::uint32_t>(c);
        if (!read) continue;
        ASSERT_EQ(read->value, c);
        ASSERT_EQ(read->bytes, text.size());
        ASSERT_TRUE(is_utf8(text));
    }
}

TEST(Utf8, EveryPairOfBytesIsJudgedAsTheRfcDoes) {
    for (unsigned first = 0; first < 256; ++first) {
        for (unsigned second = 0; second < 256; ++second) {
            const bool good = (first < 0x80 && second < 0x80) || (in(first, 0xC2, 0xDF) && in(second, 0x80, 0xBF));
            ASSERT_EQ(is_utf8(bytes({first, second})), good) << first << ' ' << second;
        }
    }
}

TEST(Utf8, EveryLongerSequenceIsJudgedAsTheRfcDoes) {
    for (unsigned lead = 0xE0; lead < 256; ++lead) {
        for (unsigned second = 0x70; second < 256; ++second) {
            for (const unsigned tail : {0x00u, 0x7Fu, 0x80u, 0x9Fu, 0xBFu, 0xC0u, 0xFFu}) {
                const bool begun = may_follow(lead, second) && in(tail, 0x80, 0xBF);
                ASSERT_EQ(is_utf8(bytes({lead, second, tail})), in(lead, 0xE0, 0xEF) && begun) << lead << ' ' << second;
                ASSERT_EQ(is_utf8(bytes({lead, second, tail, 0xBF})), in(lead, 0xF0, 0xF4) && begun);
                const bool three = in(lead, 0xE0, 0xEF) && may_follow(lead, second) && tail < 0x80;  // and ASCII
                const bool four = in(lead, 0xF0, 0xF4) && may_follow(lead, second) && in(tail, 0x80, 0xBF);
                ASSERT_EQ(is_utf8(bytes({lead, second, 0x80, tail})), three || four) << lead << ' ' << second;
            }
        }
    }
}

TEST(Utf8, ACutSequenceIsNone) {
    for (const std::string text : {"€", "é", "😀"})
        for (std::size_t length = 1; length < text.size(); ++length)
            EXPECT_FALSE(first_code_point(text.substr(0, length))) << text << length;
}

TEST(Utf8, AnEmptyTextIsUtf8AndStartsWithNothing) {
    EXPECT_TRUE(is_utf8(""));
    EXPECT_FALSE(first_code_point(""));
}

TEST(Utf8, ANulIsACharacter) {
    const auto read = first_code_point(std::string_view("\0x", 2));
    ASSERT_TRUE(read);
    EXPECT_EQ(read->value, U'\0');
    EXPECT_EQ(read->bytes, 1u);
}

}  // namespace
}  // namespace claimq
