#include "publish/claim_source.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "descriptors.hpp"
#include "temporary_folder.hpp"

namespace claimq::publish {
namespace {

using test::Pipe;
using test::Redirected;
using Words = std::vector<std::string>;

// "g1 of FILE:3 {…}", "65 FILE: is empty", "not yet"; the folder's name is left out.
class ClaimSourceTest : public testing::Test {
protected:
    std::string file(const std::string& name, const std::string& bytes) { return folder_.file(name, bytes); }

    [[nodiscard]] std::string place(const Origin& origin) const {
        const auto folder = folder_.path();
        const auto name = origin.file.starts_with(folder) ? origin.file.substr(folder.size()) : origin.file;
        return origin.line == 0 ? name : name + ":" + std::to_string(origin.line);
    }
    [[nodiscard]] std::string word(const SourceItem& item) const {
        if (const auto* claim = std::get_if<OutgoingClaim>(&item))
            return claim->guid + " of " + place(claim->origin) + " " + claim->body;
        if (const auto* bad = std::get_if<BadInput>(&item))
            return std::to_string(static_cast<int>(bad->status)) + " " + place(bad->origin) + ": " + bad->reason;
        return std::holds_alternative<NotYet>(item) ? "not yet" : "end";
    }
    std::string next(ClaimSource& source) const { return word(source.next()); }

    // All that comes without waiting.
    Words all(ClaimSource& source) const {
        Words words;
        for (auto one = next(source); one != "end" && one != "not yet"; one = next(source)) words.push_back(one);
        return words;
    }
    Words all(std::vector<std::string> files, Framing framing = Framing::by_name) const {
        ClaimSource source(std::move(files), framing);
        auto words = all(source);
        EXPECT_EQ(next(source), "end");
        EXPECT_EQ(next(source), "end") << "the end stays the end";
        return words;
    }

    test::TemporaryFolder folder_;
};

// ---- files that are one claim

TEST_F(ClaimSourceTest, NoFilesAreTheEnd) { EXPECT_EQ(all(std::vector<std::string>{}), Words{}); }

TEST_F(ClaimSourceTest, AFileIsOneClaimAndItsBytesAreTheBody) {
    const std::string body = " {\"guid\":\"g1\",\r\n\t\"amount\":1.50e3,\"n\":12345678901234567890123}\n\n";
    EXPECT_EQ(all({file("a.json", body)}), Words{"g1 of a.json " + body});
}

TEST_F(ClaimSourceTest, FilesComeInTheirOrder) {
    const auto a = file("a", R"({"guid":"a"})");
    const auto b = file("b", R"({"guid":"b"})");
    EXPECT_EQ(all({b, a, b}), (Words{"b of b {\"guid\":\"b\"}", "a of a {\"guid\":\"a\"}", "b of b {\"guid\":\"b\"}"}));
}

TEST_F(ClaimSourceTest, AFileThatIsNoClaimIsStatus65AndTheOthersFollow) {
    EXPECT_EQ(all({file("empty", ""), file("good", R"({"guid":"g"})"), file("array", "[]"), file("many", "{}\n{}")}),
              (Words{"65 empty: is empty", "g of good {\"guid\":\"g\"}", "65 array: a claim is a JSON object",
                     "65 many: no JSON: syntax error at byte 4"}));
}

TEST_F(ClaimSourceTest, AFileThatCannotBeReadIsStatus66AndTheOthersFollow) {
    const auto good = file("good", R"({"guid":"g"})");
    EXPECT_EQ(all({folder_.path("missing"), folder_.path(), good, good + "/below"}),
              (Words{"66 missing: No such file or directory", "66 : Is a directory", "g of good {\"guid\":\"g\"}",
                     "66 good/below: Not a directory"}));
    EXPECT_EQ(all({""}), Words{"66 : No such file or directory"});
    EXPECT_EQ(all({folder_.path()}, Framing::ndjson), Words{"66 : Is a directory"});
}

TEST_F(ClaimSourceTest, AReadThatFailsIsStatus66) {
    // A regular file that opens, and whose first byte cannot be read: proc(5), /proc/pid/mem.
    for (const auto framing : {Framing::by_name, Framing::ndjson})
        EXPECT_EQ(all({"/proc/self/mem"}, framing), Words{"66 /proc/self/mem: Input/output error"});
}

TEST_F(ClaimSourceTest, AFileWithoutPermissionIsStatus66) {
    const auto closed = file("closed", R"({"guid":"g"})");
    ASSERT_EQ(chmod(closed.c_str(), 0), 0);
    ASSERT_EQ(chmod(folder_.path().c_str(), 0755), 0);
    const bool root = geteuid() == 0;
    constexpr uid_t nobody = 65534;
    if (root && seteuid(nobody) != 0) GTEST_SKIP() << "root reads everything, and cannot be given up here";
    const auto words = all({closed});
    ASSERT_TRUE(!root || seteuid(0) == 0);
    EXPECT_EQ(words, Words{"66 closed: Permission denied"});
}

TEST_F(ClaimSourceTest, ABodyTakesNoMoreMemoryThanItHasBytes) {
    const std::string body = R"({"guid":"g"})";
    ClaimSource files({file("small", body)}, Framing::by_name);
    EXPECT_LE(std::get<OutgoingClaim>(files.next()).body.capacity(), 64u);
    ClaimSource lines({file("small.ndjson", body + "\n" + body)}, Framing::by_name);
    EXPECT_LE(std::get<OutgoingClaim>(lines.next()).body.capacity(), 64u);

    const std::string large = R"({"guid":"g","a":")" + std::string(3'000'000, 'x') + "\"}";
    ClaimSource file_of_3mb({file("large", large)}, Framing::by_name);
    EXPECT_LE(std::get<OutgoingClaim>(file_of_3mb.next()).body.capacity(), 3'000'100u);
}

TEST_F(ClaimSourceTest, AFileAbove512MiBIsNoClaim) {
    const auto large = file("large", "");
    ASSERT_EQ(truncate(large.c_str(), largest_file + 1), 0);  // a hole: takes no disk
    EXPECT_EQ(all({large, file("good", R"({"guid":"g"})")}),
              (Words{"65 large: is larger than 512 MiB", "g of good {\"guid\":\"g\"}"}));
}

// ---- one claim a line

TEST_F(ClaimSourceTest, TheNameTellsThatAFileIsOneClaimALine) {
    const std::string two = "{\"guid\":\"a\"}\n{\"guid\":\"b\"}\n";
    for (const std::string name : {"x.ndjson", "x.jsonl", ".ndjson"})
        EXPECT_EQ(all({file(name, two)}),
                  (Words{"a of " + name + ":1 {\"guid\":\"a\"}", "b of " + name + ":2 {\"guid\":\"b\"}"}));
    for (const std::string name : {"x.json", "x", "ndjson", "x.ndjson.bak", "x.NDJSON"})
        EXPECT_EQ(all({file(name, two)}), Words{"65 " + name + ": no JSON: syntax error at byte 14"});
}

TEST_F(ClaimSourceTest, TheOptionMakesEveryFileOneClaimALine) {
    EXPECT_EQ(
        all({file("x.json", "{\"guid\":\"a\"}\n{\"guid\":\"b\"}\n"), file("y", "{\"guid\":\"c\"}")}, Framing::ndjson),
        (Words{"a of x.json:1 {\"guid\":\"a\"}", "b of x.json:2 {\"guid\":\"b\"}", "c of y:1 {\"guid\":\"c\"}"}));
}

TEST_F(ClaimSourceTest, LineEndsAreNoPartOfABodyAndAllElseIs) {
    EXPECT_EQ(all({file("x.ndjson", "{\"guid\":\"a\"}\r\n\n \r\n  {\"guid\":\"b\"}\t\n{\"guid\":\r\"c\"}")}),
              (Words{"a of x.ndjson:1 {\"guid\":\"a\"}", "b of x.ndjson:4   {\"guid\":\"b\"}\t",
                     "c of x.ndjson:5 {\"guid\":\r\"c\"}"}));
}

TEST_F(ClaimSourceTest, ABadLineIsNamedAndTheOthersFollow) {
    EXPECT_EQ(all({file("x.ndjson", "{\"guid\":\"a\"}\n{\"guid\":1}\n\nnonsense\n{\"guid\":\"b\"}\n")}),
              (Words{"a of x.ndjson:1 {\"guid\":\"a\"}", "65 x.ndjson:2: guid is no string",
                     "65 x.ndjson:4: no JSON: syntax error at byte 2", "b of x.ndjson:5 {\"guid\":\"b\"}"}));
}

TEST_F(ClaimSourceTest, AByteOrderMarkInFrontOfTheFirstLineIsRefused) {
    const auto words = all({file("x.ndjson", "\xEF\xBB\xBF{\"guid\":\"a\"}\n{\"guid\":\"b\"}\n")});
    ASSERT_EQ(words.size(), 2u);
    EXPECT_NE(words[0].find("65 x.ndjson:1: starts with a byte order mark"), std::string::npos);
    EXPECT_EQ(words[1], "b of x.ndjson:2 {\"guid\":\"b\"}");
}

TEST_F(ClaimSourceTest, AnEmptyFileOfLinesHoldsNoClaim) {
    EXPECT_EQ(all({file("x.ndjson", ""), file("y.jsonl", "\n\n")}), Words{});
}

TEST_F(ClaimSourceTest, LineNumbersBeginAnewWithEachFile) {
    const auto x = file("x.ndjson", "\n{\"guid\":\"a\"}");
    EXPECT_EQ(all({x, x}), (Words{"a of x.ndjson:2 {\"guid\":\"a\"}", "a of x.ndjson:2 {\"guid\":\"a\"}"}));
}

TEST_F(ClaimSourceTest, ALineAbove128MiBIsNoClaimAndTheOthersFollow) {
    const auto path = file("x.ndjson", "");
    ASSERT_EQ(truncate(path.c_str(), longest_line + 1), 0);
    {
        std::ofstream more(path, std::ios::app);
        more << "\n{\"guid\":\"b\"}\n";
    }
    EXPECT_EQ(all({path}), (Words{"65 x.ndjson:1: is longer than 128 MiB", "b of x.ndjson:2 {\"guid\":\"b\"}"}));
}

TEST_F(ClaimSourceTest, AHundredThousandEmptyFilesCostNoStack) {
    const auto empty = file("empty.ndjson", "\n");
    EXPECT_EQ(all(std::vector<std::string>(100'000, empty)), Words{});
}

// ---- standard input and other pipes

TEST_F(ClaimSourceTest, DashIsStandardInput) {
    Pipe pipe;
    const Redirected input(STDIN_FILENO, pipe.reader());
    pipe.write(R"({"guid":"g"})");
    pipe.end();
    EXPECT_EQ(all({"-"}), Words{"g of - {\"guid\":\"g\"}"});
}

TEST_F(ClaimSourceTest, StandardInputMayBeARegularFile) {
    const test::Descriptor fd(open(file("x", "{\"guid\":\"a\"}\n{\"guid\":\"b\"}\n").c_str(), O_RDONLY | O_CLOEXEC));
    const Redirected input(STDIN_FILENO, fd.get());
    EXPECT_EQ(all({"-"}, Framing::ndjson), (Words{"a of -:1 {\"guid\":\"a\"}", "b of -:2 {\"guid\":\"b\"}"}));
}

TEST_F(ClaimSourceTest, AClosedStandardInputIsStatus66) {
    const Redirected closed(STDIN_FILENO, -1);
    EXPECT_EQ(all({"-", file("good", R"({"guid":"g"})")}),
              (Words{"66 -: Bad file descriptor", "g of good {\"guid\":\"g\"}"}));
}

TEST_F(ClaimSourceTest, AFileNamedDashIsReachedByItsPath) {
    EXPECT_EQ(all({file("-", R"({"guid":"g"})")}), Words{"g of - {\"guid\":\"g\"}"});
}

TEST_F(ClaimSourceTest, APipeIsNotWaitedFor) {
    Pipe pipe;
    const Redirected input(STDIN_FILENO, pipe.reader());
    ClaimSource source({"-"}, Framing::by_name);
    EXPECT_EQ(next(source), "not yet");
    pipe.write(R"({"guid":)");
    EXPECT_EQ(next(source), "not yet");
    pipe.write("\"g\"}\n");
    EXPECT_EQ(next(source), "not yet") << "more may follow";
    pipe.end();
    EXPECT_EQ(next(source), "g of - {\"guid\":\"g\"}\n");
    EXPECT_EQ(next(source), "end");
}

TEST_F(ClaimSourceTest, LinesOfAPipeComeAsSoonAsTheyAreWhole) {
    Pipe pipe;
    const Redirected input(STDIN_FILENO, pipe.reader());
    ClaimSource source({"-"}, Framing::ndjson);
    EXPECT_EQ(next(source), "not yet");
    pipe.write("{\"guid\":\"a\"}\n{\"guid\":\"b\"}\n{\"gu");
    EXPECT_EQ(next(source), "a of -:1 {\"guid\":\"a\"}");
    EXPECT_EQ(next(source), "b of -:2 {\"guid\":\"b\"}");
    EXPECT_EQ(next(source), "not yet");
    pipe.write("id\":\"c\"}");
    EXPECT_EQ(next(source), "not yet");
    pipe.end();
    EXPECT_EQ(next(source), "c of -:3 {\"guid\":\"c\"}");
    EXPECT_EQ(next(source), "end");
}

TEST_F(ClaimSourceTest, NotYetNamesADescriptorThatTellsWhenToComeBack) {
    Pipe pipe;
    const Redirected input(STDIN_FILENO, pipe.reader());
    ClaimSource source({"-"}, Framing::ndjson);
    const auto item = source.next();
    ASSERT_TRUE(std::holds_alternative<NotYet>(item));
    pollfd entry{std::get<NotYet>(item).fd, POLLIN, 0};
    EXPECT_EQ(poll(&entry, 1, 0), 0);
    pipe.write("\n");
    EXPECT_EQ(poll(&entry, 1, 0), 1);
    EXPECT_EQ(next(source), "not yet");
    pipe.end();
    EXPECT_EQ(poll(&entry, 1, 0), 1) << "its end is told as well";
    EXPECT_EQ(next(source), "end");
}

TEST_F(ClaimSourceTest, ANonBlockingStandardInputIsNotYetReadyEither) {
    Pipe pipe;
    ASSERT_EQ(fcntl(pipe.reader(), F_SETFL, O_NONBLOCK), 0);
    const Redirected input(STDIN_FILENO, pipe.reader());
    ClaimSource source({"-"}, Framing::by_name);
    EXPECT_EQ(next(source), "not yet");
    pipe.write(R"({"guid":"g"})");
    pipe.end();
    EXPECT_EQ(next(source), "g of - {\"guid\":\"g\"}");
}

TEST_F(ClaimSourceTest, ANamedPipeIsReadLikeAFile) {
    const auto name = folder_.path("pipe");
    ASSERT_EQ(mkfifo(name.c_str(), 0600), 0);
    test::Descriptor both(open(name.c_str(), O_RDWR | O_CLOEXEC));
    ClaimSource source({name, file("good", R"({"guid":"g"})")}, Framing::ndjson);
    EXPECT_EQ(next(source), "not yet");
    ASSERT_EQ(write(both.get(), "{\"guid\":\"a\"}\n", 13), 13);
    EXPECT_EQ(next(source), "a of pipe:1 {\"guid\":\"a\"}");
    both.reset();
    EXPECT_EQ(next(source), "g of good:1 {\"guid\":\"g\"}");
}

TEST_F(ClaimSourceTest, NoDescriptorIsLeftOpen) {
    const auto lowest_free = [] {
        const test::Descriptor probe(fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3));
        return probe.get();
    };
    const auto before = lowest_free();
    all({file("a", R"({"guid":"a"})"), folder_.path("missing"), folder_.path(), file("b", ""),
         file("x.ndjson", "1\n")});
    EXPECT_EQ(lowest_free(), before);
    {
        ClaimSource left_early({file("y.ndjson", "{\"guid\":\"a\"}\n{\"guid\":\"b\"}\n")}, Framing::by_name);
        EXPECT_EQ(next(left_early), "a of y.ndjson:1 {\"guid\":\"a\"}");
    }
    EXPECT_EQ(lowest_free(), before);
}

}  // namespace
}  // namespace claimq::publish
