#include "claimq/log.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <string>

#include "descriptors.hpp"

namespace claimq {
namespace {

using nlohmann::json;

constexpr auto time_text = "2026-01-02T03:04:05.678Z";
const std::string replacement = "\xEF\xBF\xBD";  // U+FFFD

std::string every_byte() {
    std::string all;
    for (int byte = 0; byte < 256; ++byte) all.push_back(static_cast<char>(byte));
    return all;
}

bool is_one_harmless_line(const std::string& line) {
    for (std::size_t at = 0; at < line.size(); ++at) {
        const auto byte = static_cast<unsigned char>(line[at]);
        if (byte < 0x20 || byte == 0x7F) return false;
        if (byte == 0xC2 && at + 1 < line.size() && static_cast<unsigned char>(line[at + 1]) < 0xA0) return false;
    }
    return json(line).dump(-1, ' ', false, json::error_handler_t::strict).size() > 1;  // throws: no UTF-8
}

// ---- printable

TEST(Printable, ShowsWhatATerminalCanShowAndEscapesTheRest) {
    const struct {
        std::string text, shown;
    } rows[] = {
        {"", ""},
        {"plain text", "plain text"},
        {"café €😀", "café €😀"},
        {"a\nb\r\t", "a\\x0Ab\\x0D\\x09"},
        {std::string("\0", 1), "\\x00"},
        {"\x1B[31mred", "\\x1B[31mred"},
        {"\x7F", "\\x7F"},
        {"\xC2\x9B", "\\xC2\\x9B"},  // U+009B is ESC [ to some terminals
        {"\xC2\xA0", "\xC2\xA0"},
        {"\xFF\xFE", "\\xFF\\xFE"},
        {"a\xC3", "a\\xC3"},
        {"\xC3(", "\\xC3("},
        {"\xED\xA0\x80", "\\xED\\xA0\\x80"},
        {"\xF0\x9F\x98", "\\xF0\\x9F\\x98"},
    };
    for (const auto& row : rows) EXPECT_EQ(printable(row.text), row.shown);
    EXPECT_TRUE(is_one_harmless_line(printable(every_byte())));
}

// ---- JSON strings

TEST(JsonString, IsReadBackAsItWas) {
    for (const std::string text :
         {"", "plain", "\"quoted\" \\back\\slash", "a\nb\tc\r", "\x1B\x7F", "café €😀", "</script>", "\xE2\x80\xA8"})
        EXPECT_EQ(json::parse(json_string(text)).get<std::string>(), text) << text;
    EXPECT_EQ(json::parse(json_string(std::string("a\0b", 3))).get<std::string>(), std::string("a\0b", 3));
}

TEST(JsonString, BytesThatAreNoUtf8AreReplaced) {
    EXPECT_EQ(json::parse(json_string("a\xFFz")).get<std::string>(), "a" + replacement + "z");
    EXPECT_EQ(json::parse(json_string("a\xC3")).get<std::string>(), "a" + replacement);
    EXPECT_TRUE(json::parse(json_string(every_byte())).is_string());
    EXPECT_EQ(json_string(every_byte()).find('\n'), std::string::npos);
}

// ---- lines

TEST(LogLine, PlainHasNoTime) {
    const auto line = [](LogLevel level) {
        return log_line(LogFormat::plain, time_text, level, "publish", "it happened",
                        {{"id", "g1"}, {"ms", std::int64_t{12}}});
    };
    EXPECT_EQ(line(LogLevel::error), "publish: it happened id=g1 ms=12");
    EXPECT_EQ(line(LogLevel::warning), "publish: warning: it happened id=g1 ms=12");
    EXPECT_EQ(line(LogLevel::info), "publish: it happened id=g1 ms=12");
    EXPECT_EQ(line(LogLevel::debug), "publish: it happened id=g1 ms=12");
}

TEST(LogLine, TextStartsWithTheTime) {
    EXPECT_EQ(log_line(LogFormat::text, time_text, LogLevel::warning, "consumer", "blocked", {}),
              "2026-01-02T03:04:05.678Z consumer: warning: blocked");
}

TEST(LogLine, JsonHasTheFieldsAsMembers) {
    const auto line = log_line(LogFormat::json, time_text, LogLevel::info, "consumer", "settled",
                               {{"id", "g1"}, {"status", std::int64_t{201}}, {"redelivered", false}});
    EXPECT_EQ(json::parse(line), (json{{"time", time_text},
                                       {"level", "info"},
                                       {"program", "consumer"},
                                       {"message", "settled"},
                                       {"id", "g1"},
                                       {"status", 201},
                                       {"redelivered", false}}));
    const char* names[] = {"error", "warning", "info", "debug"};
    for (const auto level : {LogLevel::error, LogLevel::warning, LogLevel::info, LogLevel::debug})
        EXPECT_EQ(json::parse(log_line(LogFormat::json, time_text, level, "p", "m", {}))["level"],
                  names[static_cast<int>(level)]);
}

TEST(LogLine, ValuesThatAreNoWordAreQuoted) {
    const auto value = [](std::string_view text) {
        return log_line(LogFormat::plain, "", LogLevel::info, "p", "m", {{"k", text}}).substr(5);
    };
    EXPECT_EQ(value("word"), "k=word");
    EXPECT_EQ(value("caf\xC3\xA9"), "k=caf\xC3\xA9");
    EXPECT_EQ(value("two words"), "k=\"two words\"");
    EXPECT_EQ(value("a=b"), "k=\"a=b\"");
}

TEST(LogLine, ABoolIsYesOrNoInText) {
    EXPECT_EQ(log_line(LogFormat::plain, "", LogLevel::info, "p", "m", {{"a", true}, {"b", false}}), "p: m a=yes b=no");
    const auto line = log_line(LogFormat::json, time_text, LogLevel::info, "p", "m", {{"a", true}, {"b", false}});
    EXPECT_EQ(json::parse(line)["a"], true);
    EXPECT_EQ(json::parse(line)["b"], false);
}

TEST(LogLine, AnEmptyTextIsLeftOut) {
    for (const auto format : {LogFormat::plain, LogFormat::text, LogFormat::json}) {
        const auto without = log_line(format, time_text, LogLevel::info, "p", "m", {{"id", "g"}});
        EXPECT_EQ(log_line(format, time_text, LogLevel::info, "p", "m", {{"reason", ""}, {"id", "g"}, {"x", ""}}),
                  without);
    }
    EXPECT_EQ(log_line(LogFormat::plain, "", LogLevel::info, "p", "m", {{"n", std::int64_t{0}}}), "p: m n=0");
}

// A foreign message_id is arbitrary bytes: it must not look like fields of ours.
TEST(LogLine, AValueCannotEndItsQuotes) {
    const auto line = [](std::string_view text) {
        return log_line(LogFormat::text, time_text, LogLevel::info, "consumer", "settled",
                        {{"id", text}, {"status", std::int64_t{503}}});
    };
    for (const std::string hostile : {"x\" status=201 y=\"", "x\" outcome=\"accepted", "\"", "a\\", "\\\"", "a b\\"}) {
        const auto shown = line(hostile);
        auto at = shown.find("id=\"") + 4;
        while (at < shown.size() && shown[at] != '"') at += shown[at] == '\\' ? 2 : 1;
        EXPECT_EQ(shown.substr(at), "\" status=503") << shown;
    }
    EXPECT_TRUE(line("a\\\"").ends_with("id=\"a\\\\\\\"\" status=503"));
}

TEST(LogLine, HostileBytesStayOnOneHarmlessLine) {
    const auto bytes = every_byte();
    for (const auto format : {LogFormat::plain, LogFormat::text, LogFormat::json}) {
        const auto line = log_line(format, time_text, LogLevel::info, "consumer", bytes, {{"id", bytes}});
        EXPECT_EQ(line.find_first_of("\n\r\x1B"), std::string::npos);
        if (format == LogFormat::json)
            EXPECT_TRUE(json::parse(line)["id"].is_string());
        else
            EXPECT_TRUE(is_one_harmless_line(line));
    }
}

// ---- the log

TEST(Log, ShowsWhatItsLevelSays) {
    const LogLevel all[] = {LogLevel::error, LogLevel::warning, LogLevel::info, LogLevel::debug};
    for (const auto most : all)
        for (const auto level : all) EXPECT_EQ(Log("p", most, LogFormat::plain).shows(level), level <= most);
}

TEST(Log, LinesGatherUntilFlush) {
    const test::Captured captured(STDERR_FILENO);
    Log log("p", LogLevel::info, LogFormat::plain);
    log.error("one");
    log.warning("two");
    log.say(LogLevel::debug, "not this one");
    log.info("three");
    EXPECT_EQ(captured.text(), "");
    log.flush();
    EXPECT_EQ(captured.text(), "p: one\np: warning: two\np: three\n");
    log.flush();
    EXPECT_EQ(captured.text(), "p: one\np: warning: two\np: three\n") << "nothing is written twice";
}

TEST(Log, WhatIsGatheredIsWrittenAtTheEnd) {
    const test::Captured captured(STDERR_FILENO);
    { Log("p", LogLevel::info, LogFormat::plain).error("last words"); }
    EXPECT_EQ(captured.text(), "p: last words\n");
}

TEST(Log, ProgressComesAfterWhatWasSaidAndAsItIs) {
    const test::Captured captured(STDERR_FILENO);
    Log log("p", LogLevel::info, LogFormat::plain);
    log.error("one");
    log.progress("\r5 confirmed\x1B[K");
    EXPECT_EQ(captured.text(), "p: one\n\r5 confirmed\x1B[K");
}

TEST(Log, TheTimeIsUtcWithMilliseconds) {
    const test::Captured captured(STDERR_FILENO);
    Log log("p", LogLevel::info, LogFormat::text);
    log.info("now");
    log.flush();
    EXPECT_TRUE(std::regex_match(captured.text(), std::regex(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z p: now\n)")))
        << captured.text();
}

TEST(Log, AStandardErrorThatIsGoneHarmsNobody) {
    const test::Redirected closed(STDERR_FILENO, -1);
    Log log("p", LogLevel::info, LogFormat::plain);
    log.error("to nobody");
    log.flush();
}

}  // namespace
}  // namespace claimq
