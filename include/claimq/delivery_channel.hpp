// The broker seam of the consumer: take what the broker sent; settle; stop. Reconnecting happens behind it.
#pragma once
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "claimq/clock.hpp"
#include "claimq/delivery.hpp"
#include "claimq/exit_status.hpp"
#include "claimq/settlement.hpp"

namespace claimq {

namespace channel_event {
struct Consuming {};  // the broker has confirmed the consumer; deliveries follow
struct Delivered {
    Delivery delivery;
};
struct Depth {  // answers ask_depth(): messages of claim.in that are ready, in nobody's hands
    std::uint64_t ready;
};
struct Cancelled {};  // cancel-ok: nothing more is delivered, tags stay valid
struct Notice {       // something to tell the operator; the run goes on
    std::string text;
};
struct Unreachable {  // an attempt to connect failed; another follows
    std::string reason;
};
struct Lost {  // connection, channel or consumer gone; every tag handed out so far is void. Tried again by itself
    std::string reason;
};
struct Ended {  // will not be tried again: the run ends with this
    ExitStatus status;
    std::string reason;
};
}  // namespace channel_event

using ChannelEvent =
    std::variant<channel_event::Consuming, channel_event::Delivered, channel_event::Depth, channel_event::Cancelled,
                 channel_event::Notice, channel_event::Unreachable, channel_event::Lost, channel_event::Ended>;

class DeliveryChannel {
public:
    virtual ~DeliveryChannel() = default;

    // Reads what has come, serves heartbeats, drives reconnecting. Never blocks, never throws.
    [[nodiscard]] virtual std::vector<ChannelEvent> turn(TimePoint now) = 0;

    // Settles a delivery, once. Noted now, written by flush(); a tag of an earlier channel is dropped, since the broker
    // has taken that delivery back.
    virtual void settle(DeliveryTag, Settlement) = 0;

    // Writes what is noted as far as that does not block; the rest goes out in later turns.
    virtual void flush(TimePoint now) = 0;

    // Nothing noted is left to write. True while there is no connection.
    [[nodiscard]] virtual bool flushed() const = 0;

    // Depth answers, counted after all that was noted before. No answer comes when the connection is lost meanwhile.
    virtual void ask_depth() = 0;

    virtual void cancel() = 0;  // asks the broker for no more deliveries; no reconnecting from here on

    [[nodiscard]] virtual bool connected() const = 0;

    [[nodiscard]] virtual Watch watch() const = 0;
};

}  // namespace claimq
