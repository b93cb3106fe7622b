#include "amqp/amqp_delivery_channel.hpp"

#include <amqp_framing.h>
#include <poll.h>

#include <algorithm>
#include <utility>

#include "amqp/backoff.hpp"

namespace claimq::amqp {

namespace {

constexpr int most_events_a_turn = 256;      // so that a full pipe does not keep the loop from everything else
constexpr std::size_t settlement_size = 32;  // a frame of basic.ack has 21 bytes, basic.nack and reject no more than 22
constexpr std::size_t settlements_at_once = 64;

Prepared prepare(const Endpoint& endpoint, const ConsumeOptions& options) {
    auto connection = std::make_unique<Connection>(endpoint, "claimq consumer");
    Broker broker(*connection);
    Prepared prepared;
    prepared.warnings = check_dead_letter_way(broker, options.dead_letter);
    const auto must = [](const char* what, const std::optional<Refusal>& refusal) {
        if (refusal) throw ConnectFailure(status_of(refusal->code), Retry::pointless, what + refusal->text);
    };
    must("basic.qos: ", broker.limit_unacked(options.prefetch));  // before consuming, else it bounds nothing
    must("queue 'claim.in': ", broker.consume(claim_queue));
    prepared.connection = std::move(connection);
    return prepared;
}

}  // namespace

AmqpDeliveryChannel::AmqpDeliveryChannel(Endpoint endpoint, ConsumeOptions options)
    : endpoint_(std::move(endpoint)), options_(options) {}

std::vector<ChannelEvent> AmqpDeliveryChannel::turn(TimePoint now) {
    if (connection_)
        read(now);
    else
        connect(now);
    return std::exchange(events_, {});
}

void AmqpDeliveryChannel::connect(TimePoint now) {
    if (cancelled_) return;
    try {
        if (!connector_ && retry_at_ && now >= *retry_at_)
            connector_ = std::make_unique<Connector>(
                [endpoint = endpoint_, options = options_] { return prepare(endpoint, options); });
        if (!connector_) return;
        if (auto prepared = connector_->take()) consuming(std::move(*prepared));
    } catch (const ConnectFailure& failure) {
        refused(failure, failure.retry(), now);
    } catch (const Failure& failure) {
        refused(failure, Retry::worthwhile, now);
    } catch (const std::exception& error) {
        refused(Failure(ExitStatus::os_error, error.what()), Retry::pointless, now);
    }
}

void AmqpDeliveryChannel::consuming(Prepared prepared) {
    connector_.reset();
    connection_ = std::move(prepared.connection);
    ++channel_number_;
    attempt_ = 0;
    was_consuming_ = true;
    for (auto& warning : prepared.warnings) events_.emplace_back(channel_event::Notice{std::move(warning)});
    events_.emplace_back(channel_event::Consuming{});
}

// What will not mend itself ends the run when it meets the first connection; later all is treated like an outage.
void AmqpDeliveryChannel::refused(const Failure& failure, Retry retry, TimePoint now) {
    connector_.reset();
    if (retry == Retry::pointless && !was_consuming_) {
        retry_at_.reset();
        events_.emplace_back(channel_event::Ended{failure.status(), failure.what()});
        return;
    }
    try_again(now);
    events_.emplace_back(channel_event::Unreachable{failure.what()});
}

void AmqpDeliveryChannel::try_again(TimePoint now) {
    const auto chance = static_cast<double>(random_() - random_.min()) / static_cast<double>(random_.max());
    retry_at_ = now + backoff(attempt_++, endpoint_.retry_delay, chance);
}

void AmqpDeliveryChannel::read(TimePoint now) {
    try {
        for (int count = 0; count < most_events_a_turn && connection_; ++count) {
            auto said = connection_->take();
            if (!said) return;
            on(std::move(*said), now);
        }
    } catch (const Failure& failure) {
        lose(failure.what(), now);
    }
}

void AmqpDeliveryChannel::on(Incoming said, TimePoint now) {
    if (auto* deliver = std::get_if<incoming::Deliver>(&said)) {
        unsettled_.insert(unsettled_.end(), deliver->tag);
        events_.emplace_back(channel_event::Delivered{{{channel_number_, deliver->tag},
                                                       deliver->redelivered,
                                                       std::move(deliver->message_id),
                                                       std::move(deliver->body)}});
    } else if (auto* depth = std::get_if<incoming::Depth>(&said)) {
        events_.emplace_back(channel_event::Depth{depth->ready});
    } else if (std::holds_alternative<incoming::CancelOk>(said)) {
        events_.emplace_back(channel_event::Cancelled{});
    } else if (std::holds_alternative<incoming::ConsumerCancelled>(said)) {
        lose("queue 'claim.in' was deleted, or its consumer cancelled by the broker", now);
    } else if (auto* channel_closed = std::get_if<incoming::ChannelClosed>(&said)) {
        lose(channel_closed->text, now);
    } else if (auto* closed = std::get_if<incoming::ConnectionClosed>(&said)) {
        lose(closed->text, now);
    }
    // Blocked concerns publishers: acks are taken all the same.
}

void AmqpDeliveryChannel::settle(DeliveryTag tag, Settlement settlement) {
    if (connection_ && tag.channel == channel_number_) noted_.push_back({tag.value, settlement});
}

bool AmqpDeliveryChannel::flushed() const { return noted_.empty() && !cancel_to_write_; }

void AmqpDeliveryChannel::flush(TimePoint now) {
    if (!connection_) return;
    try {
        write_settlements();
        if (depth_asked_ && noted_.empty() && connection_->takes(settlement_size * 4)) {
            amqp_queue_declare_t ask{};
            ask.queue = amqp_cstring_bytes("claim.in");
            ask.passive = 1;
            connection_->send_method(AMQP_QUEUE_DECLARE_METHOD, &ask);
            depth_asked_ = false;
        }
        if (cancel_to_write_ && connection_->takes(settlement_size * 4)) {
            amqp_basic_cancel_t cancel{};
            cancel.consumer_tag = amqp_cstring_bytes(consumer_tag.data());
            connection_->send_method(AMQP_BASIC_CANCEL_METHOD, &cancel);
            cancel_to_write_ = false;
        }
    } catch (const Failure& failure) {
        lose(failure.what(), now);
    }
}

void AmqpDeliveryChannel::write_settlements() {
    while (!noted_.empty() && connection_->takes(settlement_size * settlements_at_once)) {
        const auto end = noted_.begin() + static_cast<std::ptrdiff_t>(std::min(noted_.size(), settlements_at_once));
        for (const auto& frame : plan_settlements(unsettled_, {noted_.begin(), end})) write(frame);
        noted_.erase(noted_.begin(), end);
    }
}

void AmqpDeliveryChannel::write(const SettlementFrame& frame) {
    switch (frame.settlement) {
        case Settlement::ack: {
            amqp_basic_ack_t ack{frame.tag, frame.multiple == Multiple::yes};
            return connection_->send_method(AMQP_BASIC_ACK_METHOD, &ack);
        }
        case Settlement::requeue:
        case Settlement::dead_letter: {
            amqp_basic_reject_t reject{frame.tag, frame.settlement == Settlement::requeue};
            return connection_->send_method(AMQP_BASIC_REJECT_METHOD, &reject);
        }
        case Settlement::hand_back: {
            amqp_basic_nack_t nack{frame.tag, 0, 1};
            return connection_->send_method(AMQP_BASIC_NACK_METHOD, &nack);
        }
    }
}

void AmqpDeliveryChannel::cancel() {
    cancelled_ = true;
    cancel_to_write_ = connection_ != nullptr;
    connector_.reset();
}

// The broker takes back what was unacked. Its tags must never be used on another channel.
void AmqpDeliveryChannel::lose(const std::string& reason, TimePoint now) {
    connection_.reset();
    noted_.clear();
    unsettled_.clear();
    depth_asked_ = cancel_to_write_ = false;
    try_again(now);
    events_.emplace_back(channel_event::Lost{reason});
}

Watch AmqpDeliveryChannel::watch() const {
    const auto now = Clock::now();
    if (!events_.empty()) return {-1, 0, now};
    if (connection_) {
        auto watch = connection_->watch(now);
        if (watch.fd >= 0 && (!noted_.empty() || depth_asked_ || cancel_to_write_)) watch.events |= POLLOUT;
        return watch;
    }
    if (connector_) return connector_->watch();
    return {-1, 0, cancelled_ ? TimePoint::max() : retry_at_.value_or(TimePoint::max())};
}

void AmqpDeliveryChannel::close() noexcept {
    if (connection_) connection_->close();
    connection_.reset();
}

}  // namespace claimq::amqp
