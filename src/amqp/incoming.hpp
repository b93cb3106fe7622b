// What the broker said, as one value; and the assembly of such values from frames.
#pragma once
#include <amqp.h>

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "claimq/confirm_window.hpp"
#include "claimq/delivery.hpp"

namespace claimq::amqp {

inline constexpr amqp_channel_t channel = 1;  // a channel closed by the broker is opened again under its number

namespace incoming {
struct Deliver {
    std::uint64_t tag = 0;
    Redelivered redelivered = Redelivered::no;
    std::string message_id;
    std::string body;
};
struct Returned {
    std::string message_id;
    std::string reason;  // "312 NO_ROUTE"
};
struct Confirmed {
    std::uint64_t tag = 0;
    Multiple multiple = Multiple::no;
    Confirm how = Confirm::ack;
};
struct ConsumerCancelled {};  // by the broker: its queue is gone
struct CancelOk {};
struct Depth {
    std::uint64_t ready = 0;
};
struct ChannelClosed {
    int code = 0;
    std::string text;
};
struct ConnectionClosed {
    int code = 0;
    std::string text;
};
struct Blocked {
    std::string reason;
};
struct Unblocked {};
}  // namespace incoming

using Incoming = std::variant<incoming::Deliver, incoming::Returned, incoming::Confirmed, incoming::ConsumerCancelled,
                              incoming::CancelOk, incoming::Depth, incoming::ChannelClosed, incoming::ConnectionClosed,
                              incoming::Blocked, incoming::Unblocked>;

// RabbitMQ's own upper limit for max_message_size (rabbit.schema: 536870912).
inline constexpr std::uint64_t largest_body = 536'870'912;

// Puts method, header and body frames of our channel, and the methods of channel 0, together again. Everything is
// copied out of the frame, so the library's buffers may be released after each.
class FrameAssembler {
public:
    // A value when the frame completes one. Throws Failure{unavailable} when the peer breaks the protocol, which ends
    // the connection: reading on after that is not safe with rabbitmq-c 0.11.
    [[nodiscard]] std::optional<Incoming> feed(const amqp_frame_t& frame);

    // No message is half assembled.
    [[nodiscard]] bool complete() const noexcept { return state_ == State::method; }

private:
    enum class State { method, header, body };
    [[nodiscard]] std::optional<Incoming> method(const amqp_method_t& method);
    [[nodiscard]] std::optional<Incoming> header(const amqp_frame_t& frame);
    [[nodiscard]] std::optional<Incoming> body(const amqp_bytes_t& fragment);
    [[nodiscard]] Incoming finish();

    State state_ = State::method;
    std::variant<incoming::Deliver, incoming::Returned> message_;
    std::string message_id_;
    std::string body_;
    std::uint64_t body_size_ = 0;
};

}  // namespace claimq::amqp
