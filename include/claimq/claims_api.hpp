// The claims system seam: start a call; take the finished ones.
#pragma once
#include <string_view>
#include <vector>

#include "claimq/answer.hpp"
#include "claimq/clock.hpp"
#include "claimq/delivery.hpp"
#include "claimq/inbox.hpp"

namespace claimq {

struct Call {
    Ticket ticket = 0;
    std::string_view message_id;  // becomes the Idempotency-Key, the same on every attempt; arbitrary bytes
    std::string_view body;        // sent unchanged
    Redelivered redelivered =
        Redelivered::no;  // yes: on a fresh connection, since a stale one would burn the last attempt
};

struct FinishedCall {
    Ticket ticket = 0;
    Answer answer;
    Milliseconds took{0};
};

class ClaimsApi {
public:
    virtual ~ClaimsApi() = default;

    // Starts a call; never blocks, never fails (what goes wrong is its answer). Nothing goes out before the next
    // turn(), and at most one request in all. `message_id` and `body` stay valid until the call is returned as
    // finished, or this object dies.
    virtual void start(const Call&) = 0;

    // Reads and writes what can be without blocking; then ends the calls whose time is up. In this order: an answer
    // that was already there when the loop looked counts, however late it looked. Each call is returned exactly once.
    [[nodiscard]] virtual std::vector<FinishedCall> turn(TimePoint now) = 0;

    // For so long the caller did not call turn(), whatever was ready. A call whose request has not gone out is not
    // charged for it: nobody but us had kept it from the claims system.
    virtual void stalled(Milliseconds time) = 0;

    [[nodiscard]] virtual Watch watch() const = 0;
};

}  // namespace claimq
