#include "amqp/amqp_publish_channel.hpp"

#include <amqp_framing.h>
#include <poll.h>

#include <algorithm>
#include <utility>

#include "claimq/failure.hpp"
#include "claimq/topology.hpp"

namespace claimq::amqp {

namespace {

// Small enough for the send buffer a real network card starts with, so that "the kernel takes it" becomes true.
constexpr std::size_t largest_slice = std::size_t{32} * 1024;
constexpr std::size_t slack = 1024;       // method and header: at most 255 bytes each of exchange, key and message_id
constexpr int most_events_a_turn = 4096;  // so that a full pipe does not keep the loop from everything else
constexpr Milliseconds stuck_retry{2};

amqp_bytes_t bytes(std::string_view text) { return {text.size(), const_cast<char*>(text.data())}; }

}  // namespace

AmqpPublishChannel::AmqpPublishChannel(const Endpoint& endpoint, int least_attempts)
    : connection_(connect(endpoint, "claimq publish", least_attempts)),
      slice_(std::min(largest_slice, connection_.frame_max() - 8)) {
    amqp_confirm_select_t without_answer{1};  // one way to the broker less; if it refused, it would close the channel
    connection_.send_method(AMQP_CONFIRM_SELECT_METHOD, &without_answer);
}

void AmqpPublishChannel::publish(const OutgoingClaim& claim) {
    claim_ = &claim;
    begun_ = false;
    written_ = 0;
    cork(Corked::yes);
    write();
}

std::vector<PublishEvent> AmqpPublishChannel::turn(TimePoint) {
    if (!dead_) read();
    if (claim_ != nullptr && !dead_) write();
    cork(Corked::no);
    return std::exchange(events_, {});
}

// The claims of one turn go out together: three small writes each would wake the broker three times.
void AmqpPublishChannel::cork(Corked corked) {
    if (std::exchange(corked_, corked) != corked) connection_.cork(corked);
}

bool AmqpPublishChannel::takes(std::size_t bytes) {
    if (room_ < bytes) room_ = connection_.room(bytes);
    if (room_ < bytes) return false;
    room_ -= bytes;
    return true;
}

void AmqpPublishChannel::write() {
    const auto before = written_;
    try {
        while (claim_ != nullptr) {
            const auto size = std::min(slice_, claim_->body.size() - written_);
            if (!takes(size + slack)) break;
            if (!begun_) write_method_and_header();
            if (size > 0) write_body(size);
            if (written_ == claim_->body.size()) claim_ = nullptr;
        }
    } catch (const Failure& failure) {
        lost(failure.what());
    }
    if (claim_ != nullptr && written_ != before) events_.emplace_back(publish_event::Progress{});
}

void AmqpPublishChannel::write_method_and_header() {
    amqp_basic_publish_t method{};
    method.exchange = bytes(claim_exchange);
    method.routing_key = bytes(claim_key);
    method.mandatory = 1;
    connection_.send_method(AMQP_BASIC_PUBLISH_METHOD, &method);

    amqp_basic_properties_t properties{};
    properties._flags =
        AMQP_BASIC_CONTENT_TYPE_FLAG | AMQP_BASIC_DELIVERY_MODE_FLAG | AMQP_BASIC_MESSAGE_ID_FLAG;  // no flag, not sent
    properties.content_type = bytes("application/json");
    properties.delivery_mode = AMQP_DELIVERY_PERSISTENT;
    properties.message_id = bytes(claim_->guid);
    amqp_frame_t header{};
    header.frame_type = AMQP_FRAME_HEADER;
    header.channel = channel;
    header.payload.properties.class_id = AMQP_BASIC_CLASS;
    header.payload.properties.body_size = claim_->body.size();
    header.payload.properties.decoded = &properties;
    connection_.send_frame(header);
    begun_ = true;
}

void AmqpPublishChannel::write_body(std::size_t size) {
    amqp_frame_t frame{};
    frame.frame_type = AMQP_FRAME_BODY;
    frame.channel = channel;
    frame.payload.body_fragment = bytes(std::string_view(claim_->body).substr(written_, size));
    connection_.send_frame(frame);
    written_ += size;
}

void AmqpPublishChannel::read() {
    try {
        for (int count = 0; count < most_events_a_turn && !dead_; ++count) {
            auto said = connection_.take();
            if (!said) return;
            auto event = event_of(std::move(*said));
            dead_ = std::holds_alternative<publish_event::Lost>(event) ||
                    std::holds_alternative<publish_event::ChannelClosed>(event);
            events_.push_back(std::move(event));
        }
    } catch (const Failure& failure) {
        lost(failure.what());
    }
}

PublishEvent AmqpPublishChannel::event_of(Incoming said) {
    using namespace publish_event;
    if (auto* one = std::get_if<incoming::Confirmed>(&said)) return Confirmed{one->tag, one->multiple, one->how};
    if (auto* one = std::get_if<incoming::Returned>(&said)) return Returned{one->message_id, one->reason};
    if (auto* one = std::get_if<incoming::Blocked>(&said)) return Blocked{one->reason};
    if (std::holds_alternative<incoming::Unblocked>(said)) return Unblocked{};
    if (auto* one = std::get_if<incoming::ChannelClosed>(&said)) return ChannelClosed{one->code, one->text};
    if (auto* one = std::get_if<incoming::ConnectionClosed>(&said))
        return Lost{std::to_string(one->code) + " " + one->text};
    return Lost{"the broker sent what a publisher never asked for"};
}

void AmqpPublishChannel::lost(const std::string& reason) {
    dead_ = true;
    events_.emplace_back(publish_event::Lost{reason});
}

Watch AmqpPublishChannel::watch() const {
    const auto now = Clock::now();
    if (dead_) return {-1, 0, now};
    auto watch = connection_.watch(now);
    // The socket may be writable long before the kernel takes a whole slice, so POLLOUT would not let us sleep.
    if (claim_ != nullptr) watch.due = std::min(watch.due, now + stuck_retry);
    return watch;
}

void AmqpPublishChannel::close() noexcept {
    cork(Corked::no);
    if (!dead_ && claim_ == nullptr) connection_.close();
}

}  // namespace claimq::amqp
