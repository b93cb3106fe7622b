// What the broker handed over, as owned bytes.
#pragma once
#include <cstdint>
#include <string>

namespace claimq {

enum class Redelivered : bool { no, yes };

// A delivery tag is valid only on the channel that issued it, so it carries the number of that channel.
struct DeliveryTag {
    std::uint64_t channel = 0;  // grows by one with every channel opened in a run
    std::uint64_t value = 0;
    friend bool operator==(const DeliveryTag&, const DeliveryTag&) = default;
};

struct Delivery {
    DeliveryTag tag;
    Redelivered redelivered = Redelivered::no;
    std::string message_id;  // arbitrary bytes of a foreign publisher; empty when the message has none
    std::string body;
};

}  // namespace claimq
