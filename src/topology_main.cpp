// topology: declares the exchanges, queues and bindings, or checks them.
#include <iostream>

#include "amqp/declare.hpp"
#include "cli/command_line.hpp"
#include "cli/environment.hpp"

using namespace claimq;

namespace {

ExitStatus report(const std::vector<amqp::ObjectReport>& reports, Log& log) {
    auto status = ExitStatus::ok;
    for (const auto& one : reports) {
        std::cout << one.object << ": " << name(one.state);
        if (one.state == amqp::ObjectState::unchecked || (one.state == amqp::ObjectState::ok && !one.reason.empty()))
            std::cout << " (" << one.reason << ")";
        std::cout << '\n';
        const auto its = amqp::status_of(one.state);
        if (its != ExitStatus::ok) log.error(one.object + ": " + std::string(name(one.state)) + ": " + one.reason);
        status = gravest(status, its);
    }
    return status;
}

}  // namespace

int main(int argc, char** argv) {
    bool check = false;
    auto type = QueueType::classic;
    cli::CommandLine line("topology", "Declares claimq's exchanges, queues and bindings; safe to run again and again.",
                          LogFormat::plain);
    line.app().add_flag("--check", check, "Change nothing: say per object whether it is ok, missing or different");
    line.app()
        .add_option_function<std::string>(
            "--queue-type",
            [&](const std::string& text) { type = text == "quorum" ? QueueType::quorum : QueueType::classic; },
            "Kind of the queues to declare or check: classic (default) or quorum")
        ->check(CLI::IsMember({"classic", "quorum"}))
        ->option_text("classic|quorum");
    return line.run(argc, argv, [&](Log& log) {
        auto connection = amqp::connect(amqp::parse_url(cli::broker_url()), "claimq topology");
        amqp::Broker broker(connection);
        const auto reports = check ? amqp::check_topology(broker, type) : amqp::declare_topology(broker, type);
        connection.close();
        return report(reports, log);
    });
}
