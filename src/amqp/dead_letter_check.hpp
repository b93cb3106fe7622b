// Is there a way from claim.in to claim.dead? Without one a rejected claim vanishes without a word.
#pragma once
#include <string>
#include <vector>

#include "amqp/broker.hpp"

namespace claimq::amqp {

enum class DeadLetterArguments {
    required,  // claim.in has them as its own arguments
    assumed,   // a policy sets them, which a client cannot see
};

// Looks up what must be there, declares claim.in again and binds claim.dead again, which changes nothing where all is
// well. Returns warnings (what could not be verified for lack of permission). Throws ConnectFailure: unavailable, with
// every object that is missing; conflict, when claim.in has other dead-letter arguments.
[[nodiscard]] std::vector<std::string> check_dead_letter_way(Broker& broker, DeadLetterArguments arguments);

}  // namespace claimq::amqp
