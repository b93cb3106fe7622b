#include "claimq/line_splitter.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <string>
#include <utility>
#include <vector>

namespace claimq {

bool operator==(const Line& a, const Line& b) {
    return a.number == b.number && a.text == b.text && a.too_long == b.too_long;
}

void PrintTo(const Line& line, std::ostream* out) {
    *out << line.number << (line.too_long ? " too long" : " '" + line.text + "'");
}

namespace {

using Lines = std::vector<Line>;

void take(LineSplitter& splitter, Lines& lines) {
    while (auto line = splitter.next()) lines.push_back(std::move(*line));
}

Lines split(const std::vector<std::string>& chunks, std::size_t longest) {
    LineSplitter splitter(longest);
    Lines lines;
    for (const auto& chunk : chunks) {
        take(splitter, lines);
        splitter.feed(chunk);
    }
    take(splitter, lines);
    splitter.end();
    take(splitter, lines);
    EXPECT_FALSE(splitter.next()) << "the end stays the end";
    return lines;
}

// The same on the whole text at once, as simple as can be.
Lines model(const std::string& text, std::size_t longest) {
    Lines lines;
    std::uint64_t number = 0;
    for (std::size_t at = 0; at < text.size();) {
        const auto end = std::min(text.find('\n', at), text.size());
        auto line = text.substr(at, end - at);
        at = end + 1;
        ++number;
        if (line.ends_with('\r')) line.pop_back();
        if (line.size() > longest)
            lines.push_back({number, "", true});
        else if (line.find_first_not_of(" \t\r") != std::string::npos)
            lines.push_back({number, line, false});
    }
    return lines;
}

// Bit n of `cuts`: cut after byte n.
std::vector<std::string> cut(const std::string& text, unsigned cuts) {
    std::vector<std::string> chunks(1);
    for (std::size_t at = 0; at < text.size(); ++at) {
        chunks.back() += text[at];
        if ((cuts >> at & 1u) != 0) chunks.emplace_back();
    }
    return chunks;
}

TEST(LineSplitter, CutsAtLfAndCrLf) { EXPECT_EQ(split({"a\nb\r\nc\n"}, 100), (Lines{{1, "a"}, {2, "b"}, {3, "c"}})); }

TEST(LineSplitter, ALoneCarriageReturnIsPartOfTheLine) {
    EXPECT_EQ(split({"a\rb\n"}, 100), (Lines{{1, "a\rb"}}));
    EXPECT_EQ(split({"\ra\n"}, 100), (Lines{{1, "\ra"}}));
    EXPECT_EQ(split({"a\r\r\n"}, 100), (Lines{{1, "a\r"}}));
}

TEST(LineSplitter, TheLastLineNeedsNoEnd) {
    EXPECT_EQ(split({"a\nb"}, 100), (Lines{{1, "a"}, {2, "b"}}));
    EXPECT_EQ(split({"b"}, 100), (Lines{{1, "b"}}));
}

TEST(LineSplitter, NothingIsReturnedOfALineThatMayGoOn) {
    LineSplitter splitter(100);
    splitter.feed("{\"guid\":");
    EXPECT_FALSE(splitter.next());
    splitter.feed("\"g\"}");
    EXPECT_FALSE(splitter.next());
    splitter.feed("\n");
    EXPECT_EQ(splitter.next(), (Line{1, "{\"guid\":\"g\"}", false}));
    EXPECT_FALSE(splitter.next());
}

TEST(LineSplitter, BlankLinesAreSkippedButCounted) {
    EXPECT_EQ(split({"\n\r\n \t\na\n\n\nb\n\n"}, 100), (Lines{{4, "a"}, {7, "b"}}));
    EXPECT_EQ(split({""}, 100), Lines{});
    EXPECT_EQ(split({"\n"}, 100), Lines{});
    EXPECT_EQ(split({"  "}, 100), Lines{});
}

TEST(LineSplitter, WhiteSpaceInALineIsKept) { EXPECT_EQ(split({" a \t\n"}, 100), (Lines{{1, " a \t"}})); }

TEST(LineSplitter, NulIsAByteLikeAnyOther) {
    EXPECT_EQ(split({std::string("a\0b\n\0\n", 6)}, 100),
              (Lines{{1, std::string("a\0b", 3)}, {2, std::string(1, '\0')}}));
}

TEST(LineSplitter, ALineOfExactlyTheLimitPassesWhateverItsEnd) {
    for (const std::string end : {"\n", "\r\n", ""}) {
        EXPECT_EQ(split({"12345" + end}, 5), (Lines{{1, "12345"}})) << end.size();
        EXPECT_EQ(split({"123456" + end}, 5), (Lines{{1, "", true}})) << end.size();
        for (unsigned cuts = 0; cuts < 128; ++cuts) {
            EXPECT_EQ(split(cut("12345" + end, cuts), 5), (Lines{{1, "12345"}}));
            EXPECT_EQ(split(cut("123456" + end, cuts), 5), (Lines{{1, "", true}}));
        }
    }
    EXPECT_EQ(split({"12345\r\r\n"}, 5), (Lines{{1, "", true}}));
    EXPECT_EQ(split({"12345\r6\n"}, 5), (Lines{{1, "", true}}));
}

TEST(LineSplitter, ALineThatIsTooLongEndsWithItsLineEnd) {
    const std::string text = "ab\n" + std::string(50, 'x') + "\r\ncd\n" + std::string(50, ' ') + "\nef";
    const Lines lines{{1, "ab"}, {2, "", true}, {3, "cd"}, {4, "", true}, {5, "ef"}};
    EXPECT_EQ(split({text}, 5), lines);
    for (std::size_t size = 1; size < 20; ++size) {
        std::vector<std::string> chunks;
        for (std::size_t at = 0; at < text.size(); at += size) chunks.push_back(text.substr(at, size));
        EXPECT_EQ(split(chunks, 5), lines) << size;
    }
}

// Every text of up to five of the bytes that matter, cut in every way.
TEST(LineSplitter, AnyChunksGiveTheSameLines) {
    constexpr std::string_view alphabet = "a\r\n ";
    for (std::size_t length = 0; length <= 5; ++length) {
        for (unsigned word = 0; word < 1u << (2 * length); ++word) {
            std::string text;
            for (std::size_t at = 0; at < length; ++at) text += alphabet[word >> (2 * at) & 3u];
            for (const std::size_t longest : {1u, 3u, 100u}) {
                const auto expected = model(text, longest);
                for (unsigned cuts = 0; cuts < 1u << length; ++cuts)
                    ASSERT_EQ(split(cut(text, cuts), longest), expected) << testing::PrintToString(text) << cuts;
            }
        }
    }
}

TEST(LineSplitter, ALineThatNeverEndsCostsNoMemory) {
    const auto peak_kib = [] {
        rusage use{};
        getrusage(RUSAGE_SELF, &use);
        return use.ru_maxrss;
    };
    const std::string chunk(65'536, 'x');
    LineSplitter splitter(1000);
    const auto before = peak_kib();
    for (int fed = 0; fed < 4096; ++fed) {  // 256 MiB
        splitter.feed(chunk);
        ASSERT_FALSE(splitter.next());
    }
    EXPECT_LT(peak_kib() - before, 32 * 1024);
    splitter.end();
    EXPECT_EQ(splitter.next(), (Line{1, "", true}));
}

}  // namespace
}  // namespace claimq
