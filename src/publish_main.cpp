// publish: puts claims on the queue.
#include <unistd.h>

#include <iostream>

#include "amqp/amqp_publish_channel.hpp"
#include "cli/command_line.hpp"
#include "cli/environment.hpp"
#include "cli/poll_waiter.hpp"
#include "publish/progress_report.hpp"

using namespace claimq;

int main(int argc, char** argv) {
    std::vector<std::string> files;
    bool ndjson = false;
    bool json = false;
    int window = 256;
    publish::Options options;
    cli::CommandLine line(
        "publish",
        "Publishes claims to exchange eai.claim, confirmed one by one. Each FILE is one JSON claim; '-' is\n"
        "standard input; .ndjson and .jsonl files hold one claim a line.",
        LogFormat::plain);
    line.app().add_option("FILE", files, "Files of claims")->required()->option_text("...");
    line.app().add_flag("--ndjson", ndjson, "Every FILE holds one claim a line");
    line.app().add_flag("--json", json, "A receipt a line per claim: guid, file, line, result, ms");
    line.whole_number("--window", window, 1, 65535, "Most claims unconfirmed at once (default 256)");
    line.seconds("--confirm-timeout", options.confirm_timeout, Milliseconds{1},
                 "How long to wait for a confirm (default 30)");
    return line.run(argc, argv, [&](Log& log) {
        const auto endpoint = amqp::parse_url(cli::broker_url());
        options.window = static_cast<std::size_t>(window);
        options.blocked_timeout = endpoint.blocked_connection_timeout;
        publish::ClaimSource source(files, ndjson ? publish::Framing::ndjson : publish::Framing::by_name);
        const bool terminal = isatty(STDERR_FILENO) != 0 && log.shows(LogLevel::info);
        publish::ProgressReport report(log, std::cout, json ? publish::Receipts::json : publish::Receipts::none,
                                       terminal ? publish::Progress::shown : publish::Progress::hidden);
        cli::PollWaiter waiter;
        const auto open = [&](int least_attempts) {
            return std::make_unique<amqp::AmqpPublishChannel>(endpoint, least_attempts);
        };
        const auto status = publish::PublishRun(source, open, waiter, report, options).run();
        report.summary();
        return status;
    });
}
