#include "publish/progress_report.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "descriptors.hpp"

namespace claimq::publish {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

constexpr TimePoint start = TimePoint{} + 1h;

ClosedPublish closed(const std::string& guid, PublishResult result, const std::string& reason = {},
                     const Origin& origin = {"dir/claim.json", 0}) {
    return {{guid, "{\"guid\":\"SECRET BODY\"}", origin, start}, result, reason};
}

// A report of the given kind, and what it wrote where.
class Told {
public:
    explicit Told(Receipts receipts = Receipts::none, Progress progress = Progress::hidden,
                  LogLevel level = LogLevel::info)
        : log_("publish", level, LogFormat::plain), report(log_, results_, receipts, progress) {}

    [[nodiscard]] std::string results() const { return results_.str(); }
    [[nodiscard]] std::string errors() {
        log_.flush();
        return captured_.text();
    }

private:
    test::Captured captured_{STDERR_FILENO};
    Log log_;
    std::ostringstream results_;

public:
    ProgressReport report;
};

// ---- receipts

TEST(Receipt, HasGuidFileLineResultAndMilliseconds) {
    auto publish = closed("g1", PublishResult::confirmed, {}, {"claims.ndjson", 7});
    EXPECT_EQ(json::parse(receipt(publish, start + 1234567us)),
              (json{{"guid", "g1"}, {"file", "claims.ndjson"}, {"line", 7}, {"result", "confirmed"}, {"ms", 1234}}));
    publish.claim.origin = {"claim.json", 0};
    publish.claim.first_sent = {};
    publish.result = PublishResult::not_sent;
    EXPECT_EQ(json::parse(receipt(publish, start)),
              (json{{"guid", "g1"}, {"file", "claim.json"}, {"line", nullptr}, {"result", "not-sent"}, {"ms", 0}}));
}

TEST(Receipt, IsOneLineOfJsonWhateverTheNames) {
    const auto line = receipt(closed("g\"\\1", PublishResult::returned, "why", {"a\nb\"\xFF.json", 0}), start);
    EXPECT_EQ(line.find('\n'), std::string::npos);
    EXPECT_EQ(json::parse(line)["guid"], "g\"\\1");
    EXPECT_EQ(json::parse(line)["file"], "a\nb\"\xEF\xBF\xBD.json");
}

TEST(ProgressReport, WritesAReceiptALine) {
    Told told(Receipts::json);
    told.report.closed(closed("a", PublishResult::confirmed), start);
    told.report.closed(closed("b", PublishResult::nacked), start);
    told.report.bad_input({{"bad.json", 0}, ExitStatus::data, "is empty"});
    told.report.turned();
    told.report.summary();
    std::istringstream lines(told.results());
    std::vector<std::string> guids;
    for (std::string line; std::getline(lines, line);) guids.push_back(json::parse(line)["guid"]);
    EXPECT_EQ(guids, (std::vector<std::string>{"a", "b"})) << "no summary among them";
}

// ---- the summary

TEST(ProgressReport, SumsUpInOneLine) {
    const struct {
        int confirmed, nacked, bad;
        const char* line;
    } rows[] = {
        {0, 0, 0, "published 0 of 0 claims\n"}, {1, 0, 0, "published 1 of 1 claim\n"},
        {0, 1, 0, "published 0 of 1 claim\n"},  {0, 0, 1, "published 0 of 1 claim\n"},
        {2, 0, 0, "published 2 of 2 claims\n"}, {3, 2, 1, "published 3 of 6 claims\n"},
    };
    for (const auto& row : rows) {
        Told told;
        for (int at = 0; at < row.confirmed; ++at) told.report.closed(closed("g", PublishResult::confirmed), start);
        for (int at = 0; at < row.nacked; ++at) told.report.closed(closed("g", PublishResult::nacked), start);
        for (int at = 0; at < row.bad; ++at) told.report.bad_input({{"f", 0}, ExitStatus::data, "is empty"});
        told.report.summary();
        EXPECT_EQ(told.results(), row.line);
    }
}

TEST(ProgressReport, QuietSaysNothingOfSuccess) {
    Told told(Receipts::none, Progress::hidden, LogLevel::warning);
    told.report.closed(closed("g", PublishResult::confirmed), start);
    told.report.summary();
    EXPECT_EQ(told.results(), "");
    EXPECT_EQ(told.errors(), "");
}

// ---- failures

TEST(ProgressReport, AFailureNamesPlaceClaimAndReason) {
    const struct {
        PublishResult result;
        std::string reason, text;
    } rows[] = {
        {PublishResult::returned, "312 NO_ROUTE",
         "unroutable: no queue is bound to exchange 'eai.claim' with key 'claim' (312 NO_ROUTE)"},
        {PublishResult::nacked, "", "refused by the broker (nack): the queue is full or failed"},
        {PublishResult::too_large, "PRECONDITION_FAILED - message size 9 larger than max size 8",
         "refused by the broker: PRECONDITION_FAILED - message size 9 larger than max size 8"},
        {PublishResult::unknown, "no confirm within 30 s", "outcome unknown, run it again: no confirm within 30 s"},
    };
    for (const auto& row : rows) {
        Told told;
        told.report.closed(closed("g1", row.result, row.reason), start);
        told.report.closed(closed("g2", row.result, row.reason, {"x.ndjson", 12}), start);
        told.report.closed(closed("g3", row.result, row.reason, {"-", 0}), start);
        told.report.closed(closed("g4", row.result, row.reason, {"-", 3}), start);
        EXPECT_EQ(told.errors(), "publish: dir/claim.json: claim 'g1': " + row.text +
                                     "\npublish: x.ndjson:12: claim 'g2': " + row.text +
                                     "\npublish: standard input: claim 'g3': " + row.text +
                                     "\npublish: standard input:3: claim 'g4': " + row.text + "\n");
    }
}

TEST(ProgressReport, WhyNothingWasSentIsSaidOnceAndNotForEachClaim) {
    Told usual;
    usual.report.trouble("no confirm within 30 s");
    usual.report.closed(closed("g1", PublishResult::not_sent, "no confirm within 30 s"), start);
    usual.report.summary();
    EXPECT_EQ(usual.errors(), "publish: no confirm within 30 s\n");
    EXPECT_EQ(usual.results(), "published 0 of 1 claim\n");
    Told verbose(Receipts::json, Progress::hidden, LogLevel::debug);
    verbose.report.closed(closed("g1", PublishResult::not_sent, "no confirm within 30 s"), start);
    EXPECT_EQ(verbose.errors(), "publish: dir/claim.json: claim 'g1': not sent: no confirm within 30 s\n");
    EXPECT_EQ(json::parse(verbose.results())["result"], "not-sent");
}

TEST(ProgressReport, BadInputNamesFileLineAndReason) {
    Told told;
    told.report.bad_input({{"a.json", 0}, ExitStatus::no_input, "No such file or directory"});
    told.report.bad_input({{"x.ndjson", 4}, ExitStatus::data, "guid is given twice"});
    told.report.bad_input({{"-", 2}, ExitStatus::data, "is empty"});
    EXPECT_EQ(told.errors(),
              "publish: a.json: No such file or directory\n"
              "publish: x.ndjson:4: guid is given twice\n"
              "publish: standard input:2: is empty\n");
}

TEST(ProgressReport, AConfirmIsToldToWhoWantsToKnowMore) {
    Told usual;
    usual.report.closed(closed("g1", PublishResult::confirmed), start);
    EXPECT_EQ(usual.errors(), "");
    Told verbose(Receipts::none, Progress::hidden, LogLevel::debug);
    verbose.report.closed(closed("g1", PublishResult::confirmed), start);
    EXPECT_EQ(verbose.errors(), "publish: dir/claim.json: claim 'g1': confirmed\n");
}

TEST(ProgressReport, NeverShowsABody) {
    Told told(Receipts::json, Progress::shown, LogLevel::debug);
    for (const auto result : {PublishResult::confirmed, PublishResult::returned, PublishResult::nacked,
                              PublishResult::too_large, PublishResult::unknown, PublishResult::not_sent})
        told.report.closed(closed("g", result, "why"), start);
    told.report.turned();
    told.report.summary();
    EXPECT_EQ(told.errors().find("SECRET"), std::string::npos);
    EXPECT_EQ(told.results().find("SECRET"), std::string::npos);
}

TEST(ProgressReport, ANoticeIsWrittenAtOnce) {
    test::Captured captured(STDERR_FILENO);
    Log log("publish", LogLevel::info, LogFormat::plain);
    std::ostringstream results;
    ProgressReport report(log, results, Receipts::none, Progress::hidden);
    report.trouble("gathered");
    EXPECT_EQ(captured.text(), "");
    report.notice("blocked by the broker");
    EXPECT_EQ(captured.text(), "publish: gathered\npublish: warning: blocked by the broker\n");
}

TEST(ProgressReport, WhatOneTurnSaidIsWrittenAtItsEnd) {
    test::Captured captured(STDERR_FILENO);
    Log log("publish", LogLevel::info, LogFormat::plain);
    std::ostringstream results;
    ProgressReport report(log, results, Receipts::none, Progress::hidden);
    report.closed(closed("g", PublishResult::nacked), start);
    report.bad_input({{"f", 0}, ExitStatus::data, "is empty"});
    EXPECT_EQ(captured.text(), "");
    report.turned();
    EXPECT_NE(captured.text(), "");
}

// ---- progress

TEST(ProgressReport, ProgressIsShownWhenThereIsMoreThanOneClaim) {
    Told told(Receipts::none, Progress::shown);
    told.report.closed(closed("a", PublishResult::confirmed), start);
    told.report.turned();
    EXPECT_EQ(told.errors(), "");
    told.report.closed(closed("b", PublishResult::confirmed), start);
    told.report.turned();
    EXPECT_EQ(told.errors(), "\r2 confirmed\x1B[K");
    told.report.turned();
    EXPECT_EQ(told.errors(), "\r2 confirmed\x1B[K") << "ten times a second at most";
    told.report.summary();
    EXPECT_EQ(told.errors(), "\r2 confirmed\x1B[K\r\x1B[K") << "and it is gone in the end";
}

TEST(ProgressReport, AnErrorTakesThePlaceOfTheProgress) {
    for (int what = 0; what < 4; ++what) {
        Told told(Receipts::none, Progress::shown);
        for (int at = 0; at < 2; ++at) told.report.closed(closed("a", PublishResult::confirmed), start);
        told.report.turned();
        if (what == 0) told.report.trouble("something");
        if (what == 1) told.report.notice("something");
        if (what == 2) told.report.bad_input({{"f", 0}, ExitStatus::data, "something"});
        if (what == 3) told.report.closed(closed("a", PublishResult::nacked), start);
        EXPECT_TRUE(told.errors().starts_with("\r2 confirmed\x1B[K\r\x1B[Kpublish: ")) << told.errors();
    }
}

TEST(ProgressReport, HiddenProgressIsHidden) {
    Told told(Receipts::none, Progress::hidden);
    for (int at = 0; at < 10; ++at) told.report.closed(closed("a", PublishResult::confirmed), start);
    told.report.turned();
    told.report.summary();
    EXPECT_EQ(told.errors(), "");
}

}  // namespace
}  // namespace claimq::publish
