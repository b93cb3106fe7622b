#include "cli/command_line.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "claimq/failure.hpp"
#include "descriptors.hpp"

namespace claimq::cli {
namespace {

using Words = std::vector<std::string>;

// A program with an option of each kind, run on arguments.
class CommandLineTest : public testing::Test {
protected:
    struct Result {
        int status = 0;
        std::string output, errors;
    };

    // No global: a CommandLine may be used once.
    Result run(Words arguments, const std::function<ExitStatus(Log&)>& program) {
        ran_ = false;
        files_.clear();
        number_ = 5;
        time_ = Milliseconds{10'000};
        statuses_ = {201};
        CommandLine line("tool", "What the tool is for.", LogFormat::plain);
        line.app().add_option("FILE", files_, "Files");
        line.app().add_flag("--flag", flag_, "A flag");
        line.whole_number("--number", number_, 1, 10, "A number");
        line.seconds("--time", time_, Milliseconds{1}, "A time");
        line.seconds("--delay", delay_, Milliseconds{0}, "A time that may be 0");
        line.statuses("--accept", statuses_, "HTTP statuses");

        arguments.insert(arguments.begin(), "tool");
        std::vector<char*> argv;
        for (auto& word : arguments) argv.push_back(word.data());
        const test::Captured output(STDOUT_FILENO);
        const test::Captured errors(STDERR_FILENO);
        Result result;
        result.status = line.run(static_cast<int>(argv.size()), argv.data(), program);
        result.output = output.text();
        result.errors = errors.text();
        return result;
    }
    Result run(Words arguments) {
        return run(std::move(arguments), [this](Log&) {
            ran_ = true;
            return ExitStatus::ok;
        });
    }

    void expect_taken(const Words& arguments) {
        const auto result = run(arguments);
        EXPECT_EQ(result.status, 0) << testing::PrintToString(arguments) << result.errors;
        EXPECT_TRUE(ran_);
    }
    // Status 64, one line that names `naming`, and nothing is run.
    void expect_refused(const Words& arguments, const std::string& naming) {
        const auto result = run(arguments);
        EXPECT_EQ(result.status, 64) << testing::PrintToString(arguments);
        EXPECT_FALSE(ran_) << testing::PrintToString(arguments);
        EXPECT_NE(result.errors.find(naming), std::string::npos) << result.errors;
        EXPECT_TRUE(result.errors.starts_with("tool: ")) << result.errors;
        EXPECT_EQ(std::ranges::count(result.errors, '\n'), 1) << result.errors;
        EXPECT_EQ(result.output, "");
    }

    bool ran_ = false;
    bool flag_ = false;
    Words files_;
    int number_ = 0;
    Milliseconds time_{0};
    Milliseconds delay_{0};
    std::vector<int> statuses_;
};

// ---- help and version

TEST_F(CommandLineTest, HelpNamesTheEnvironmentAndTheExitStatuses) {
    for (const char* word : {"--help", "-h"}) {
        const auto help = run({word});
        EXPECT_EQ(help.status, 0);
        EXPECT_FALSE(ran_);
        EXPECT_EQ(help.errors, "");
        for (const char* piece : {"What the tool is for.",
                                  "EAI_AMQP_URL ",
                                  "EAI_AMQP_URL_FILE",
                                  "EAI_MQ_DB",
                                  "EAI_CLAIM_TOKEN,",
                                  "EAI_CLAIM_TOKEN_FILE",
                                  "--number",
                                  "--verbose",
                                  "--quiet",
                                  "--log-format",
                                  "--version",
                                  "\n    0  ",
                                  "\n    1  ",
                                  "\n   64  ",
                                  "\n   65  ",
                                  "\n   66  ",
                                  "\n   69  ",
                                  "\n   71  ",
                                  "\n   74  ",
                                  "\n   75  ",
                                  "\n   76  ",
                                  "\n   77  ",
                                  "128+n"})
            EXPECT_NE(help.output.find(piece), std::string::npos) << piece;
    }
}

TEST_F(CommandLineTest, VersionIsOneLine) {
    const auto version = run({"--version"});
    EXPECT_EQ(version.status, 0);
    EXPECT_FALSE(ran_);
    EXPECT_EQ(version.output, "tool (claimq) " CLAIMQ_VERSION "\n");
    EXPECT_EQ(version.errors, "");
}

// ---- what is no command line

TEST_F(CommandLineTest, WhatItDoesNotKnowIsStatus64) {
    expect_refused({"--unknown"}, "--unknown");
    expect_refused({"-x"}, "-x");
    expect_refused({"file", "--unknown=1"}, "--unknown");
    expect_refused({"--number"}, "--number");
    expect_refused({"--number", "1", "--number", "2"}, "--number");
    expect_refused({"--num", "1"}, "--num");
    expect_refused({"-v", "-q"}, "--quiet");
    expect_refused({"--log-format", "xml"}, "--log-format");
    expect_refused({"--log-format", ""}, "--log-format");
}

TEST_F(CommandLineTest, WhatIsRequiredAndMissingIsStatus64) {
    CommandLine line("tool", "", LogFormat::plain);
    line.app().add_option("FILE", files_, "Files")->required();
    std::string name = "tool";
    char* argv[] = {name.data(), nullptr};
    const test::Captured errors(STDERR_FILENO);
    EXPECT_EQ(line.run(1, argv, [](Log&) { return ExitStatus::ok; }), 64);
    EXPECT_EQ(errors.text(), "tool: FILE is required (see --help)\n");
}

TEST_F(CommandLineTest, NumbersArePlainDecimalsWithinTheirLimits) {
    const struct {
        std::string text;
        int value;
    } rows[] = {{"1", 1}, {"7", 7}, {"10", 10}};
    for (const auto& row : rows) {
        expect_taken({"--number", row.text});
        EXPECT_EQ(number_, row.value);
        expect_taken({"--number=" + row.text});
        EXPECT_EQ(number_, row.value);
    }
    for (const std::string text :
         {"",    "0",   "11", "-1", "+1", "010", "0x10", "1.0", "1e1", " 1", "1 ", "nan", "inf", "99999999999999999999",
          "abc", "[1]", "[]", "{}", "%%", "1,2"})
        expect_refused({"--number", text}, "--number");
    expect_taken({});
    EXPECT_EQ(number_, 5) << "the default";
}

TEST_F(CommandLineTest, TimesArePlainDecimalSeconds) {
    expect_taken({"--time", "3.5"});
    EXPECT_EQ(time_, Milliseconds{3500});
    expect_taken({"--time", "0.0001"});
    EXPECT_EQ(time_, Milliseconds{1});
    for (const std::string text :
         {"", "0", "0.0", "-1", "nan", "inf", "infinity", "0x10", "010", "1e3", ".5", "1.", " 1", "1s", "[1]", "[]"})
        expect_refused({"--time", text}, "--time");
    expect_refused({"--time="}, "--time");
    expect_taken({"--delay", "0"});
    EXPECT_EQ(delay_, Milliseconds{0});
    expect_refused({"--delay", "-1"}, "--delay");
}

TEST_F(CommandLineTest, StatusesAreAListOfHttpStatuses) {
    expect_taken({"--accept", "200,201,409"});
    EXPECT_EQ(statuses_, (std::vector<int>{200, 201, 409}));
    expect_taken({"--accept", "999"});
    EXPECT_EQ(statuses_, std::vector<int>{999});
    for (const std::string text : {"", ",", "201,", ",201", "201,,202", "201 202", "201, 202", "199", "1000", "0201",
                                   "2xx", "201;202", "[201,202]", "[]", "200-299"})
        expect_refused({"--accept", text}, "--accept");
}

// ---- positionals are paths, whatever they look like

TEST_F(CommandLineTest, EveryPositionalArrivesAsOneFile) {
    // "./[a,b]" is the same file as "[a,b]".
    expect_taken({"a", "-", "", "[a,b]", "[]", "[", "{}", "{a,b}", "%%", "a b", "a,b", "x=y", "é", "./--flag", "a"});
    EXPECT_EQ(files_, (Words{"a", "-", "", "./[a,b]", "./[]", "./[", "{}", "{a,b}", "%%", "a b", "a,b", "x=y", "é",
                             "./--flag", "a"}));
    for (const std::string name : {"-", "", "{}", "%%", "''", "\"\"", "true", "1"}) {
        expect_taken({name});
        EXPECT_EQ(files_, Words{name});
    }
}

TEST_F(CommandLineTest, AfterTwoDashesAllIsAFile) {
    expect_taken({"a", "--", "--flag", "-v", "--help", "[a]"});
    EXPECT_EQ(files_, (Words{"a", "--flag", "-v", "--help", "./[a]"}));
}

TEST_F(CommandLineTest, OptionsMayFollowFiles) {
    expect_taken({"a", "--number", "3", "b", "--flag", "c"});
    EXPECT_EQ(files_, (Words{"a", "b", "c"}));
    EXPECT_EQ(number_, 3);
    EXPECT_TRUE(flag_);
}

// ---- running

TEST_F(CommandLineTest, TheStatusIsTheProgramsOwn) {
    for (const auto status : {ExitStatus::ok, ExitStatus::refused, ExitStatus::unknown, ExitStatus::denied})
        EXPECT_EQ(run({}, [status](Log&) { return status; }).status, static_cast<int>(status));
}

TEST_F(CommandLineTest, AFailureBecomesOneLineAndItsStatus) {
    const auto result = run({}, [](Log&) -> ExitStatus { throw Failure(ExitStatus::store, "no store"); });
    EXPECT_EQ(result.status, 74);
    EXPECT_EQ(result.errors, "tool: no store\n");
}

TEST_F(CommandLineTest, AnyOtherExceptionIsStatus71) {
    const auto error = run({}, [](Log&) -> ExitStatus { throw std::runtime_error("unforeseen"); });
    EXPECT_EQ(error.status, 71);
    EXPECT_EQ(error.errors, "tool: unforeseen\n");
    const auto memory = run({}, [](Log&) -> ExitStatus { throw std::bad_alloc(); });
    EXPECT_EQ(memory.status, 71);
    EXPECT_EQ(memory.errors, "tool: out of memory\n");
}

TEST_F(CommandLineTest, TheLevelFollowsTheOptions) {
    const auto say_all = [](Log& log) {
        for (const auto level : {LogLevel::error, LogLevel::warning, LogLevel::info, LogLevel::debug})
            log.say(level, std::to_string(static_cast<int>(level)));
        return ExitStatus::ok;
    };
    EXPECT_EQ(run({}, say_all).errors, "tool: 0\ntool: warning: 1\ntool: 2\n");
    EXPECT_EQ(run({"-q"}, say_all).errors, "tool: 0\ntool: warning: 1\n");
    EXPECT_EQ(run({"-v"}, say_all).errors, "tool: 0\ntool: warning: 1\ntool: 2\ntool: 3\n");
}

TEST_F(CommandLineTest, JsonIsWrittenWhereItIsAskedFor) {
    const auto say = [](Log& log) {
        log.info("hello");
        return ExitStatus::ok;
    };
    EXPECT_EQ(nlohmann::json::parse(run({"--log-format", "json"}, say).errors)["message"], "hello");
    EXPECT_EQ(run({"--log-format", "text"}, say).errors, "tool: hello\n");
}

TEST_F(CommandLineTest, OutputThatCannotBeWrittenIsNoSuccess) {
    const auto print = [](ExitStatus status) {
        return [status](Log&) {
            const test::Descriptor full(open("/dev/full", O_WRONLY | O_CLOEXEC));
            dup2(full.get(), STDOUT_FILENO);
            std::cout << "published 1 of 1 claim\n";
            return status;
        };
    };
    const auto result = run({}, print(ExitStatus::ok));
    std::cout.clear();
    EXPECT_EQ(result.status, 71);
    EXPECT_EQ(result.errors, "tool: standard output cannot be written\n");
    EXPECT_EQ(run({}, print(ExitStatus::unknown)).status, 75) << "what is graver stays";
    std::cout.clear();
}

TEST_F(CommandLineTest, AReaderThatWentAwayIsAnErrorAndNoSignal) {
    std::signal(SIGPIPE, SIG_DFL);
    const auto result = run({}, [](Log&) {
        test::Pipe pipe;
        pipe.end_reading();
        EXPECT_THROW(pipe.write("x"), std::runtime_error);
        return ExitStatus::ok;
    });
    EXPECT_EQ(result.status, 0);
}

}  // namespace
}  // namespace claimq::cli
