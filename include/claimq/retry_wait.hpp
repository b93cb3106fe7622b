// Deliveries that wait, unacked, before they go back to the queue (--retry-delay). Pure.
#pragma once
#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <vector>

#include "claimq/clock.hpp"
#include "claimq/inbox.hpp"

namespace claimq {

// How long a failed delivery waits: the longer of the option and the answer's Retry-After, at most 30 s. Without the
// option (0) there is no wait, whatever the answer says.
[[nodiscard]] Milliseconds retry_wait(Milliseconds option, std::optional<std::chrono::seconds> retry_after);

class RetryQueue {
public:
    // At most half of the prefetch may wait (with a prefetch of 1: the one), else waiting would stop the consumer.
    explicit RetryQueue(int prefetch) : most_(prefetch > 1 ? static_cast<std::size_t>(prefetch) / 2 : 1) {}

    // Returns the ticket that has to go back early to make room: the one that has waited longest.
    [[nodiscard]] std::optional<Ticket> add(Ticket ticket, TimePoint due);

    [[nodiscard]] std::vector<Ticket> take_due(TimePoint now);
    [[nodiscard]] std::vector<Ticket> take_all() { return take_due(TimePoint::max()); }
    [[nodiscard]] TimePoint next_due() const;  // TimePoint::max() when none waits

private:
    struct Waiting {
        Ticket ticket;
        TimePoint due;
    };
    std::size_t most_;
    std::deque<Waiting> waiting_;  // in the order of arrival
};

}  // namespace claimq
