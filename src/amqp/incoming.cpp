#include "amqp/incoming.hpp"

#include <amqp_framing.h>

#include <utility>

#include "claimq/failure.hpp"

namespace claimq::amqp {

namespace {

std::string text(amqp_bytes_t bytes) {
    return bytes.len == 0 ? std::string{} : std::string(static_cast<const char*>(bytes.bytes), bytes.len);
}

[[noreturn]] void broken(const char* how) {
    throw Failure(ExitStatus::unavailable, std::string("the broker broke the protocol: ") + how);
}

template <typename T>
const T& decoded(const amqp_method_t& method) {
    return *static_cast<const T*>(method.decoded);
}

Multiple multiple(amqp_boolean_t set) { return set ? Multiple::yes : Multiple::no; }

}  // namespace

std::optional<Incoming> FrameAssembler::feed(const amqp_frame_t& frame) {
    // The library sets buffers aside for every channel that it sees a frame of, and there are 65535.
    if (frame.channel > channel) broken("a frame of a channel that is not open");
    if (frame.frame_type == AMQP_FRAME_HEARTBEAT) return std::nullopt;
    // A close may come between the frames of a message (channel 0), or instead of the rest of it (our channel).
    if (frame.frame_type == AMQP_FRAME_METHOD) return method(frame.payload.method);
    if (frame.frame_type == AMQP_FRAME_HEADER && state_ == State::header) return header(frame);
    if (frame.frame_type == AMQP_FRAME_BODY && state_ == State::body) return body(frame.payload.body_fragment);
    broken("a frame out of turn");
}

std::optional<Incoming> FrameAssembler::method(const amqp_method_t& method) {
    switch (method.id) {
        case AMQP_CONNECTION_CLOSE_METHOD: {
            const auto& close = decoded<amqp_connection_close_t>(method);
            return incoming::ConnectionClosed{close.reply_code, text(close.reply_text)};
        }
        case AMQP_CONNECTION_BLOCKED_METHOD:
            return incoming::Blocked{text(decoded<amqp_connection_blocked_t>(method).reason)};
        case AMQP_CONNECTION_UNBLOCKED_METHOD: return incoming::Unblocked{};
        case AMQP_CHANNEL_CLOSE_METHOD: {
            const auto& close = decoded<amqp_channel_close_t>(method);
            state_ = State::method;
            return incoming::ChannelClosed{close.reply_code, text(close.reply_text)};
        }
        default: break;
    }
    if (state_ != State::method) broken("a method in the middle of a message");
    switch (method.id) {
        case AMQP_BASIC_DELIVER_METHOD: {
            const auto& deliver = decoded<amqp_basic_deliver_t>(method);
            message_ = incoming::Deliver{
                deliver.delivery_tag, deliver.redelivered ? Redelivered::yes : Redelivered::no, {}, {}};
            state_ = State::header;
            return std::nullopt;
        }
        case AMQP_BASIC_RETURN_METHOD: {
            const auto& returned = decoded<amqp_basic_return_t>(method);
            message_ = incoming::Returned{{}, std::to_string(returned.reply_code) + " " + text(returned.reply_text)};
            state_ = State::header;
            return std::nullopt;
        }
        case AMQP_BASIC_ACK_METHOD: {
            const auto& ack = decoded<amqp_basic_ack_t>(method);
            return incoming::Confirmed{ack.delivery_tag, multiple(ack.multiple), Confirm::ack};
        }
        case AMQP_BASIC_NACK_METHOD: {
            const auto& nack = decoded<amqp_basic_nack_t>(method);
            return incoming::Confirmed{nack.delivery_tag, multiple(nack.multiple), Confirm::nack};
        }
        case AMQP_BASIC_CANCEL_METHOD: return incoming::ConsumerCancelled{};
        case AMQP_BASIC_CANCEL_OK_METHOD: return incoming::CancelOk{};
        case AMQP_QUEUE_DECLARE_OK_METHOD:
            return incoming::Depth{decoded<amqp_queue_declare_ok_t>(method).message_count};
        default: return std::nullopt;  // the answers of calls that nobody waits for any more
    }
}

std::optional<Incoming> FrameAssembler::header(const amqp_frame_t& frame) {
    if (frame.payload.properties.class_id != AMQP_BASIC_CLASS) broken("a header of another class");
    const auto& properties = *static_cast<const amqp_basic_properties_t*>(frame.payload.properties.decoded);
    body_size_ = frame.payload.properties.body_size;
    if (body_size_ > largest_body) broken("a body larger than 512 MiB");
    message_id_ = (properties._flags & AMQP_BASIC_MESSAGE_ID_FLAG) != 0 ? text(properties.message_id) : std::string{};
    body_.clear();
    state_ = State::body;
    if (body_size_ == 0) return finish();  // no body frame follows
    return std::nullopt;
}

std::optional<Incoming> FrameAssembler::body(const amqp_bytes_t& fragment) {
    if (body_.size() + fragment.len > body_size_) broken("more body than announced");
    // Not reserved before bytes of it are here: the announced size is the peer's word.
    if (body_.empty() && body_size_ <= std::uint64_t{8} * 1'048'576) body_.reserve(body_size_);
    body_.append(static_cast<const char*>(fragment.bytes), fragment.len);
    if (body_.size() < body_size_) return std::nullopt;
    return finish();
}

Incoming FrameAssembler::finish() {
    state_ = State::method;
    if (auto* deliver = std::get_if<incoming::Deliver>(&message_)) {
        deliver->message_id = std::move(message_id_);
        deliver->body = std::exchange(body_, {});
        return std::move(*deliver);
    }
    auto& returned = std::get<incoming::Returned>(message_);
    returned.message_id = std::move(message_id_);
    body_.clear();
    return std::move(returned);
}

}  // namespace claimq::amqp
