// The two decisions of the consumer: what an answer means, and what becomes of the delivery.
#pragma once
#include <vector>

#include "claimq/answer.hpp"
#include "claimq/delivery.hpp"

namespace claimq {

enum class Outcome {
    accepted,      // the claims system has it
    duplicate,     // it was processed before: acked without a call
    rejected,      // the claims system refused the claim itself: no retry helps
    failed,        // anything else; worth one more try
    unidentified,  // neither message_id nor guid: cannot be made safe against a second call, so never called
    stopped,       // --stop-on: our token or path is wrong, no fault of the claim
};

enum class Settlement {
    ack,
    requeue,      // basic.reject, requeue: an attempt that failed (quorum queues of RabbitMQ 4.3 count these)
    dead_letter,  // basic.reject, no requeue: to claim.dead
    hand_back,    // basic.nack, requeue: never attempted (not counted)
};

// Which statuses mean what; the lists are disjoint.
struct Policy {
    std::vector<int> accept{201};
    std::vector<int> reject{422};
    std::vector<int> stop_on{};
};

// Every answer but OwnFault, which the caller has taken out before: it settles nothing.
[[nodiscard]] Outcome classify(const Answered&, const Policy&);
[[nodiscard]] constexpr Outcome classify(const NotAnswered&) { return Outcome::failed; }

[[nodiscard]] constexpr Settlement settle(Outcome outcome, Redelivered redelivered) {
    switch (outcome) {
        case Outcome::accepted:
        case Outcome::duplicate: return Settlement::ack;
        case Outcome::rejected:
        case Outcome::unidentified: return Settlement::dead_letter;
        case Outcome::stopped: return Settlement::requeue;
        case Outcome::failed: break;
    }
    return redelivered == Redelivered::yes ? Settlement::dead_letter : Settlement::requeue;
}

static_assert(settle(Outcome::accepted, Redelivered::no) == Settlement::ack);
static_assert(settle(Outcome::accepted, Redelivered::yes) == Settlement::ack);
static_assert(settle(Outcome::duplicate, Redelivered::no) == Settlement::ack);
static_assert(settle(Outcome::duplicate, Redelivered::yes) == Settlement::ack);
static_assert(settle(Outcome::rejected, Redelivered::no) == Settlement::dead_letter);
static_assert(settle(Outcome::rejected, Redelivered::yes) == Settlement::dead_letter);
static_assert(settle(Outcome::failed, Redelivered::no) == Settlement::requeue);
static_assert(settle(Outcome::failed, Redelivered::yes) == Settlement::dead_letter);
static_assert(settle(Outcome::unidentified, Redelivered::no) == Settlement::dead_letter);
static_assert(settle(Outcome::unidentified, Redelivered::yes) == Settlement::dead_letter);
static_assert(settle(Outcome::stopped, Redelivered::no) == Settlement::requeue);
static_assert(settle(Outcome::stopped, Redelivered::yes) == Settlement::requeue);

[[nodiscard]] std::string_view name(Outcome) noexcept;
[[nodiscard]] std::string_view name(Settlement) noexcept;

}  // namespace claimq
