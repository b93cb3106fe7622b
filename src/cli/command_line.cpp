#include "cli/command_line.hpp"

#include <csignal>
#include <iostream>
#include <new>

#include "claimq/decimal.hpp"
#include "claimq/failure.hpp"

#ifndef CLAIMQ_VERSION
#error "CLAIMQ_VERSION comes from CMake"
#endif

namespace claimq::cli {

namespace {

constexpr const char* footer =
    R"(Environment:
  EAI_AMQP_URL          the broker, amqp://user:password@host:port/vhost?name=value or amqps://...
                        (default amqp://guest:guest@127.0.0.1:5672/%2F)
  EAI_AMQP_URL_FILE     a file that holds that URL; used where EAI_AMQP_URL is not set
  EAI_MQ_DB             consumer: its SQLite file (default $HOME/eaimw/mq/processed.db)
  EAI_CLAIM_TOKEN, EAI_CLAIM_TOKEN_FILE
                        consumer: bearer token for the claims system
  An empty variable counts as not set. No secret is ever taken from the command line.

Exit status:
    0  done
    1  publish: the broker refused at least one claim (unroutable, nacked, too large)
   64  usage: unknown option, bad value, bad URL, no input
   65  input data: a file is no claim
   66  an input file cannot be read
   69  broker unreachable or gone, or an exchange or queue is missing
   71  a failure on this side: descriptors, memory, CA file, certificate not accepted
   74  the store cannot be opened, read or written
   75  outcome unknown, run it again
   76  an object exists with other properties
   77  login refused, or no permission
  128+n  a second signal n ended it at once)";

std::vector<std::string> arguments(int argc, char** argv) {
    std::vector<std::string> words(argv + 1, argv + argc);
    // CLI11 2.1 takes a positional "[a,b]" for a list and "[]" for nothing; as a path "./[a,b]" is the same file.
    for (auto& word : words)
        if (word.starts_with('[')) word.insert(0, "./");
    return {words.rbegin(), words.rend()};  // App::parse(vector) wants them in reverse
}

}  // namespace

CommandLine::CommandLine(std::string program, const std::string& description, LogFormat text_format)
    : program_(std::move(program)), app_(description, program_), text_format_(text_format) {
    app_.footer(footer);
    app_.set_version_flag("--version", program_ + " (claimq) " CLAIMQ_VERSION);
    auto* verbose = app_.add_flag("-v,--verbose", verbose_, "Say more");
    app_.add_flag("-q,--quiet", quiet_, "Say only what went wrong")->excludes(verbose);
    app_.add_option("--log-format", format_, "How standard error is written: text or json")
        ->check(CLI::IsMember({"text", "json"}))
        ->option_text("text|json")
        ->default_str("text");
}

void CommandLine::whole_number(const std::string& option, int& value, int least, int most, const std::string& help) {
    const auto read = [&value, option, least, most](const std::string& text) {
        const auto number =
            claimq::whole_number(text, static_cast<std::uint64_t>(least), static_cast<std::uint64_t>(most));
        if (!number)
            throw CLI::ValidationError(option, "'" + text + "' is no whole number from " + std::to_string(least) +
                                                   " to " + std::to_string(most));
        value = static_cast<int>(*number);
    };
    app_.add_option_function<std::string>(option, read, help)->option_text("N");
}

void CommandLine::seconds(const std::string& option, Milliseconds& value, Milliseconds least, const std::string& help) {
    const auto read = [&value, option, least](const std::string& text) {
        const auto time = claimq::seconds(text);
        if (!time || *time < least)
            throw CLI::ValidationError(
                option, "'" + text + "' is no number of seconds" + (least.count() > 0 ? " above 0" : ""));
        value = *time;
    };
    app_.add_option_function<std::string>(option, read, help)->option_text("S");
}

void CommandLine::statuses(const std::string& option, std::vector<int>& value, const std::string& help) {
    const auto read = [&value, option](const std::string& text) {
        value.clear();
        std::size_t from = 0;
        while (from <= text.size()) {
            const auto comma = std::min(text.find(',', from), text.size());
            const auto one = claimq::whole_number(text.substr(from, comma - from), 200, 999);
            if (!one) throw CLI::ValidationError(option, "'" + text + "' is no list of HTTP statuses (200-999)");
            value.push_back(static_cast<int>(*one));
            from = comma + 1;
        }
    };
    app_.add_option_function<std::string>(option, read, help)->option_text("LIST");
}

LogLevel CommandLine::level() const noexcept {
    if (quiet_) return LogLevel::warning;
    return verbose_ ? LogLevel::debug : LogLevel::info;
}

int CommandLine::run(int argc, char** argv, const std::function<ExitStatus(Log&)>& program) {
    std::signal(SIGPIPE, SIG_IGN);  // a reader that went away is an error to report, not a reason to die in mid-publish
    try {
        app_.parse(arguments(argc, argv));
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() == 0) return app_.exit(error, std::cout, std::cerr);
        Log(program_, LogLevel::error, LogFormat::plain).error(std::string(error.what()) + " (see --help)");
        return static_cast<int>(ExitStatus::usage);
    }
    Log log(program_, level(), format_ == "json" ? LogFormat::json : text_format_);
    auto status = guarded(log, program);
    if (!std::cout.flush()) {
        log.error("standard output cannot be written");
        if (status == ExitStatus::ok) status = ExitStatus::os_error;
    }
    return static_cast<int>(status);
}

ExitStatus CommandLine::guarded(Log& log, const std::function<ExitStatus(Log&)>& program) const {
    try {
        return program(log);
    } catch (const Failure& failure) {
        log.error(failure.what());
        return failure.status();
    } catch (const std::bad_alloc&) {
        log.error("out of memory");
    } catch (const std::exception& error) {
        log.error(error.what());
    }
    return ExitStatus::os_error;
}

}  // namespace claimq::cli
