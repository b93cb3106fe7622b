// The exchanges, queues and bindings of claimq, as one constant table: SPEC's section "The queue".
#pragma once
#include <array>
#include <span>
#include <string_view>

namespace claimq {

enum class QueueType { classic, quorum };

// A queue argument; all of them are long strings.
struct Argument {
    std::string_view name;
    std::string_view value;
};

struct Queue {
    std::string_view name;
    std::span<const Argument> arguments;
};

struct Binding {
    std::string_view exchange;
    std::string_view queue;
    std::string_view routing_key;
};

inline constexpr std::string_view claim_exchange = "eai.claim";
inline constexpr std::string_view dead_letter_exchange = "eai.dlx";
inline constexpr std::string_view claim_queue = "claim.in";
inline constexpr std::string_view dead_queue = "claim.dead";
inline constexpr std::string_view claim_key = "claim";
inline constexpr std::string_view dead_key = "claim.dead";

inline constexpr std::array exchanges{claim_exchange, dead_letter_exchange};  // both direct and durable

inline constexpr std::array dead_letter_arguments{
    Argument{"x-dead-letter-exchange", dead_letter_exchange},
    Argument{"x-dead-letter-routing-key", dead_key},
};
// at-least-once dead-lettering needs reject-publish: rabbitmq.com/quorum-queues.html, "Activating at-least-once".
inline constexpr std::array quorum_claim_arguments{
    dead_letter_arguments[0],
    dead_letter_arguments[1],
    Argument{"x-queue-type", "quorum"},
    Argument{"x-dead-letter-strategy", "at-least-once"},
    Argument{"x-overflow", "reject-publish"},
};
inline constexpr std::array quorum_dead_arguments{Argument{"x-queue-type", "quorum"}};

// Both queues, durable, claim.dead first: nothing can be rejected into nowhere while the rest is being declared.
[[nodiscard]] constexpr std::array<Queue, 2> queues(QueueType type) {
    switch (type) {
        case QueueType::quorum:
            return {Queue{dead_queue, quorum_dead_arguments}, {claim_queue, quorum_claim_arguments}};
        case QueueType::classic: break;
    }
    return {Queue{dead_queue, {}}, {claim_queue, dead_letter_arguments}};
}

inline constexpr std::array bindings{
    Binding{dead_letter_exchange, dead_queue, dead_key},
    Binding{claim_exchange, claim_queue, claim_key},
};

}  // namespace claimq
