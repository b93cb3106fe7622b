// The channel as AmqpDeliveryChannel behaves, on the fake broker.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "claimq/delivery_channel.hpp"
#include "fake_broker.hpp"

namespace claimq::fake {

class FakeDeliveryChannel : public DeliveryChannel {
public:
    FakeDeliveryChannel(FakeClock& clock, FakeBroker& broker, const Witness& witness, Descriptors& descriptors,
                        const Process& process, int prefetch)
        : clock_(clock),
          broker_(broker),
          witness_(witness),
          descriptors_(descriptors),
          process_(process),
          prefetch_(prefetch),
          fd_(descriptors.add([this] { return ready_at(); })) {}
    FakeDeliveryChannel(const FakeDeliveryChannel&) = delete;
    FakeDeliveryChannel& operator=(const FakeDeliveryChannel&) = delete;
    // The process is dead: its kernel closes the connection.
    ~FakeDeliveryChannel() override {
        if (session_) broker_.lose(*session_, loss_at_death);
        descriptors_.remove(fd_);
    }
    void close() {
        if (session_) broker_.lose(*session_, {.reason = "closed", .written_that_arrive = Loss::all});
        session_.reset();
    }

    std::optional<channel_event::Ended> refusal;   // what the first connection ends with
    std::size_t most_written_at_once = Loss::all;  // frames that the socket takes in a millisecond
    Loss loss_at_death;

    [[nodiscard]] std::vector<ChannelEvent> turn(TimePoint now) override {
        process_.step();
        last_lost_ = told_lost_;
        session_ ? read(now) : connect(now);
        if (!session_) told_lost_ = number_;  // goes out with these events at the latest
        return std::exchange(events_, {});
    }

    void settle(DeliveryTag tag, Settlement settlement) override {
        process_.step();
        if (tag.channel <= last_lost_ || tag.channel > number_)
            broker_.error("settled a tag of channel " + std::to_string(tag.channel) + ", which is known to be gone");
        if (!session_ || tag.channel != number_) return;
        const auto at = session_->unacked.find(tag.value);
        const bool known = at != session_->unacked.end();
        noted_.push_back({tag.value, settlement, known ? at->second.message_id : "", known ? at->second.number : 0});
        saw(Effect::settling, noted_.back());
    }

    void flush(TimePoint now) override {
        process_.step();
        if (!session_ || (noted_.empty() && !depth_asked_ && !cancel_to_write_)) return;
        if (session_->client_gone) return lose("write: connection reset", now);
        if (now < writable_at_) return;
        std::size_t room = most_written_at_once;
        for (; room > 0 && !noted_.empty(); --room) {
            const auto noted = std::move(noted_.front());
            noted_.pop_front();
            broker_.write(*session_, to_broker::Settle{noted.tag, noted.settlement});
            saw(Effect::written, noted);
        }
        if (room == 0) writable_at_ = now + Milliseconds{1};
        if (noted_.empty() && std::exchange(depth_asked_, false)) broker_.write(*session_, to_broker::AskDepth{});
        if (std::exchange(cancel_to_write_, false)) {
            broker_.write(*session_, to_broker::Cancel{});
            witness_.saw({Effect::cancelling, process_.number()});
            process_.step();
        }
    }

    [[nodiscard]] bool flushed() const override { return noted_.empty() && !cancel_to_write_; }
    void ask_depth() override { depth_asked_ = true; }
    void cancel() override {
        process_.step();
        cancelled_ = true;
        cancel_to_write_ = session_ != nullptr;
        connected_at_.reset();
    }
    [[nodiscard]] bool connected() const override { return session_ != nullptr; }
    [[nodiscard]] Watch watch() const override {
        if (!events_.empty()) return {-1, 0, clock_.now()};
        if (session_) return {fd_, 1, never};
        if (connected_at_) return {-1, 0, *connected_at_};
        return {-1, 0, cancelled_ ? never : retry_at_.value_or(never)};
    }

private:
    struct Noted {
        std::uint64_t tag;
        Settlement settlement;
        std::string id;
        int message;
    };
    static constexpr Milliseconds connect_time{3};
    static constexpr Milliseconds first_pause{100};
    static constexpr Milliseconds longest_pause{2'000};
    static constexpr int most_events_a_turn = 256;

    void saw(Effect effect, const Noted& noted) {
        witness_.saw({effect, process_.number(), noted.id, noted.message, noted.settlement});
        process_.step();
    }

    [[nodiscard]] TimePoint ready_at() const {
        if (!session_ || broker_.frozen) return never;
        const bool writes = !noted_.empty() || depth_asked_ || cancel_to_write_;
        return std::min(session_->to_client.next(), writes ? writable_at_ : never);
    }

    void connect(TimePoint now) {
        if (cancelled_) return;
        if (!connected_at_ && retry_at_ && now >= *retry_at_) connected_at_ = now + connect_time;
        if (!connected_at_ || now < *connected_at_) return;
        connected_at_.reset();
        if (refusal && number_ == 0) {
            retry_at_.reset();
            events_.emplace_back(*refusal);
        } else if (!broker_.accepts_connections || broker_.frozen) {
            try_again(now);
            events_.emplace_back(channel_event::Unreachable{"connection refused"});
        } else {
            session_ = broker_.open(process_.number(), prefetch_);
            ++number_;
            pause_ = first_pause;
            events_.emplace_back(channel_event::Consuming{});
            witness_.saw({Effect::connected, process_.number()});
            process_.step();
        }
    }

    void try_again(TimePoint now) {
        retry_at_ = now + pause_;
        pause_ = std::min(2 * pause_, longest_pause);
    }

    void read(TimePoint now) {
        for (int count = 0; count < most_events_a_turn && session_ && !broker_.frozen; ++count) {
            auto frame = session_->to_client.take(now);
            if (!frame) return;
            std::visit([&](auto& one) { on(one, now); }, *frame);
        }
    }
    void on(from_broker::Deliver& deliver, TimePoint) {
        auto& message = deliver.message;
        const Happened happened{Effect::delivered, process_.number(), message.message_id,
                                message.number,    Settlement::ack,   message.redelivered};
        events_.emplace_back(
            channel_event::Delivered{{{number_, deliver.tag}, message.redelivered, message.message_id, message.body}});
        witness_.saw(happened);
        process_.step();
    }
    void on(const from_broker::Depth& depth, TimePoint) { events_.emplace_back(channel_event::Depth{depth.ready}); }
    void on(const from_broker::CancelOk&, TimePoint) { events_.emplace_back(channel_event::Cancelled{}); }
    void on(const from_broker::Closed& closed, TimePoint now) { lose(closed.reason, now); }

    void lose(const std::string& reason, TimePoint now) {
        session_.reset();
        noted_.clear();
        depth_asked_ = cancel_to_write_ = false;
        try_again(now);
        events_.emplace_back(channel_event::Lost{reason});
        witness_.saw({Effect::lost, process_.number()});
        process_.step();
    }

    FakeClock& clock_;
    FakeBroker& broker_;
    const Witness& witness_;
    Descriptors& descriptors_;
    const Process& process_;
    int prefetch_;
    int fd_;
    std::shared_ptr<Session> session_;
    std::uint64_t number_ = 0;     // of the channel
    std::uint64_t told_lost_ = 0;  // channels up to this one are told to be gone
    std::uint64_t last_lost_ = 0;  // and these were so before the last turn
    std::optional<TimePoint> retry_at_ = TimePoint::min();
    std::optional<TimePoint> connected_at_;
    Milliseconds pause_ = first_pause;
    bool cancelled_ = false;
    bool cancel_to_write_ = false;
    bool depth_asked_ = false;
    TimePoint writable_at_{};
    std::deque<Noted> noted_;
    std::vector<ChannelEvent> events_;
};

}  // namespace claimq::fake
