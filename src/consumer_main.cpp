// consumer: hands the queue's claims to the claims system.
#include <iostream>

#include "amqp/amqp_delivery_channel.hpp"
#include "claimq/decimal.hpp"
#include "claimq/failure.hpp"
#include "cli/command_line.hpp"
#include "cli/environment.hpp"
#include "cli/poll_waiter.hpp"
#include "cli/stop_signal.hpp"
#include "consume/consume_loop.hpp"
#include "http/curl_claims_api.hpp"
#include "store/sqlite_inbox.hpp"

using namespace claimq;

namespace {

struct Arguments {
    std::string claim_url;
    Milliseconds max_time{-1};
    int prefetch = 5;
    int concurrency = 0;  // 0: as many as the prefetch
    int retention_days = 0;
    bool assume_dead_letter = false;
    consume::Options loop;
};

void define(cli::CommandLine& line, Arguments& arguments) {
    auto& app = line.app();
    auto& loop = arguments.loop;
    app.add_option("--claim", arguments.claim_url, "The claims system: claims go to URL/v1/claims by POST")
        ->required()
        ->option_text("URL (required)");
    line.seconds("--max-seconds", arguments.max_time, Milliseconds{1}, "End after this time (default: run for ever)");
    line.whole_number("--prefetch", arguments.prefetch, 1, 10000, "Most deliveries unacked at once (default 5)");
    line.whole_number("--concurrency", arguments.concurrency, 1, 10000,
                      "Most calls in flight at once, up to the prefetch (default: the prefetch)");
    line.seconds("--timeout", loop.timeout, Milliseconds{1}, "How long one call may take (default 10)");
    line.seconds(
        "--retry-delay", loop.retry_delay, Milliseconds{0},
        "Wait before a failed claim goes back to the queue, or the answer's Retry-After, at most 30 (default 0)");
    app.add_flag("--until-empty", loop.until_empty, "Also end when claim.in is empty and nothing is in flight");
    line.statuses("--accept", loop.policy.accept, "Statuses that mean accepted (default 201)");
    line.statuses("--reject", loop.policy.reject, "Statuses that mean rejected, to claim.dead (default 422)");
    line.statuses("--stop-on", loop.policy.stop_on,
                  "Statuses that end the run with 69, the claim requeued (default none)");
    line.whole_number("--retention", arguments.retention_days, 1, 36500,
                      "Days to remember processed ids (default: for ever); longer than any replay may take");
    app.add_flag("--assume-dead-letter", arguments.assume_dead_letter,
                 "Do not check claim.in's dead-letter arguments: a policy sets them");
}

void check(Arguments& arguments) {
    const auto refuse = [](const std::string& text) { throw Failure(ExitStatus::usage, text + " (see --help)"); };
    if (arguments.concurrency > arguments.prefetch) refuse("--concurrency: is more than --prefetch allows");
    const auto& policy = arguments.loop.policy;
    for (const auto* list : {&policy.reject, &policy.stop_on})
        for (const int status : *list)
            if (classify(Answered{status, {}, {}},
                         {policy.accept, list == &policy.stop_on ? policy.reject : std::vector<int>{}, {}}) !=
                Outcome::failed)
                refuse("--accept, --reject, --stop-on: " + std::to_string(status) + " stands in two of them");
    auto& loop = arguments.loop;
    loop.prefetch = arguments.prefetch;
    loop.concurrency = arguments.concurrency > 0 ? arguments.concurrency : arguments.prefetch;
    if (arguments.max_time.count() >= 0) loop.max_time = arguments.max_time;
}

ExitStatus consume_claims(Arguments& arguments, Log& log) {
    check(arguments);
    cli::StopSignal stop;
    const auto endpoint = amqp::parse_url(cli::broker_url());
    const auto api =
        http::make_claims_api({http::parse_claim_url(arguments.claim_url), arguments.loop.timeout,
                               cli::secret("EAI_CLAIM_TOKEN").value_or(""), std::nullopt, "claimq/" CLAIMQ_VERSION});
    StoreOptions store{cli::store_path(), std::nullopt};
    if (arguments.retention_days > 0) store.retention = std::chrono::days{arguments.retention_days};
    const auto inbox = open_sqlite_inbox(store);
    amqp::AmqpDeliveryChannel channel(endpoint, {static_cast<std::uint16_t>(arguments.prefetch),
                                                 arguments.assume_dead_letter ? amqp::DeadLetterArguments::assumed
                                                                              : amqp::DeadLetterArguments::required});
    cli::PollWaiter waiter;
    arguments.loop.on_ending = [](Milliseconds time) { cli::end_within(time, static_cast<int>(ExitStatus::os_error)); };
    consume::ConsumeLoop loop(channel, *inbox, *api, waiter, stop, log, arguments.loop);
    const auto status = loop.run();
    channel.close();
    std::cout << loop.totals().json() << std::endl;
    return status;
}

}  // namespace

int main(int argc, char** argv) {
    Arguments arguments;
    cli::CommandLine line(
        "consumer",
        "Hands the claims of claim.in to the claims system, each once: accepted and rejected ones are settled,\n"
        "others are tried once more and then go to claim.dead.",
        LogFormat::text);
    define(line, arguments);
    return line.run(argc, argv, [&](Log& log) { return consume_claims(arguments, log); });
}
