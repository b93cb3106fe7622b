// The broker seam of publish: one channel in confirm mode on one connection; when it is lost, a new one is opened.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "claimq/clock.hpp"
#include "claimq/confirm_window.hpp"

namespace claimq {

namespace publish_event {
struct Confirmed {
    std::uint64_t tag;
    Multiple multiple;
    Confirm how;
};
struct Returned {
    std::string message_id;
    std::string reason;  // "312 NO_ROUTE"
};
struct Progress {};  // bytes of a body that does not fit the send buffer went out
struct Blocked {     // the broker takes nothing because of an alarm
    std::string reason;
};
struct Unblocked {};
struct ChannelClosed {  // this object is of no more use
    int code;
    std::string text;
};
struct Lost {  // connection gone; this object is of no more use
    std::string reason;
};
}  // namespace publish_event

using PublishEvent =
    std::variant<publish_event::Confirmed, publish_event::Returned, publish_event::Progress, publish_event::Blocked,
                 publish_event::Unblocked, publish_event::ChannelClosed, publish_event::Lost>;

class PublishChannel {
public:
    virtual ~PublishChannel() = default;

    // May publish() be called? Not while an earlier body is still being written, or the send buffer is full.
    [[nodiscard]] virtual bool ready() const = 0;

    // Sends the claim: persistent, mandatory. Never blocks and never fails; what goes wrong is an event. `claim` stays
    // valid until it is confirmed or this object dies.
    virtual void publish(const OutgoingClaim& claim) = 0;

    // Reads what has come, writes what is left to write, serves heartbeats. Never blocks, never throws.
    [[nodiscard]] virtual std::vector<PublishEvent> turn(TimePoint now) = 0;

    [[nodiscard]] virtual Watch watch() const = 0;

    // Says goodbye to the broker, briefly.
    virtual void close() noexcept = 0;
};

// Connects and opens the channel: blocking, but bounded. Tries at least `least_attempts` times. Throws Failure.
using OpenPublishChannel = std::function<std::unique_ptr<PublishChannel>(int least_attempts)>;

}  // namespace claimq
