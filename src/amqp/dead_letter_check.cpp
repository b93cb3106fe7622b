#include "amqp/dead_letter_check.hpp"

#include <algorithm>

#include "amqp/connect_failure.hpp"

namespace claimq::amqp {

namespace {

constexpr int access_refused = 403;
constexpr int not_found = 404;

bool names(const Refusal& refusal, std::string_view argument) {
    return refusal.text.find("'" + std::string(argument) + "'") != std::string::npos;
}

bool names_dead_letter_argument(const Refusal& refusal) {
    return std::ranges::any_of(dead_letter_arguments, [&](const Argument& one) { return names(refusal, one.name); });
}

class Check {
public:
    explicit Check(Broker& broker) : broker_(broker) {}

    void objects_are_there() {
        std::string missing;
        const auto look = [&](const std::string& object, const std::optional<Refusal>& refusal) {
            if (!refusal) return;
            if (refusal->code == not_found)
                missing += (missing.empty() ? "no " : ", no ") + object;
            else
                unverified(object, *refusal);
        };
        look("queue 'claim.in'", broker_.look_up_queue(claim_queue));
        look("queue 'claim.dead'", broker_.look_up_queue(dead_queue));
        look("exchange 'eai.dlx'", broker_.look_up_exchange(dead_letter_exchange));
        if (!missing.empty())
            throw ConnectFailure(ExitStatus::unavailable, Retry::pointless, missing + " (declare with: topology)");
    }

    // The broker names the first argument that differs; one of another kind of queue hides the rest, so ask again with
    // that kind's.
    void arguments_are_there() {
        for (const auto type : {QueueType::classic, QueueType::quorum}) {
            const auto refusal = broker_.declare(queues(type)[1]);
            if (!refusal) return;
            if (refusal->code == access_refused) return unverified("queue 'claim.in'", *refusal);
            if (names_dead_letter_argument(*refusal))
                throw ConnectFailure(ExitStatus::conflict, Retry::pointless,
                                     "queue 'claim.in' has other dead-letter arguments: " + refusal->text +
                                         " (where a policy sets them: --assume-dead-letter)");
            if (!names(*refusal, "x-queue-type")) return;
        }
    }

    void dead_queue_is_bound() {
        const auto refusal = broker_.bind(bindings[0]);
        if (refusal) unverified("binding 'eai.dlx' -> 'claim.dead'", *refusal);
    }

    [[nodiscard]] std::vector<std::string> warnings() && { return std::move(warnings_); }

private:
    void unverified(const std::string& object, const Refusal& refusal) {
        warnings_.push_back("dead-lettering is unverified: " + object + ": " + refusal.text);
    }

    Broker& broker_;
    std::vector<std::string> warnings_;
};

}  // namespace

std::vector<std::string> check_dead_letter_way(Broker& broker, DeadLetterArguments arguments) {
    Check check(broker);
    check.objects_are_there();
    if (arguments == DeadLetterArguments::required) check.arguments_are_there();
    check.dead_queue_is_bound();
    return std::move(check).warnings();
}

}  // namespace claimq::amqp
