// The consumer's channel on rabbitmq-c, with reconnecting.
#pragma once
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "amqp/connect_failure.hpp"
#include "amqp/connection.hpp"
#include "amqp/connector.hpp"
#include "amqp/dead_letter_check.hpp"
#include "amqp/settlement_plan.hpp"
#include "claimq/delivery_channel.hpp"

namespace claimq::amqp {

struct ConsumeOptions {
    std::uint16_t prefetch = 5;
    DeadLetterArguments dead_letter = DeadLetterArguments::required;
};

class AmqpDeliveryChannel : public DeliveryChannel {
public:
    AmqpDeliveryChannel(Endpoint endpoint, ConsumeOptions options);

    [[nodiscard]] std::vector<ChannelEvent> turn(TimePoint now) override;
    void settle(DeliveryTag tag, Settlement settlement) override;
    void flush(TimePoint now) override;
    [[nodiscard]] bool flushed() const override;
    void ask_depth() override { depth_asked_ = true; }
    void cancel() override;
    [[nodiscard]] bool connected() const override { return connection_ != nullptr; }
    [[nodiscard]] Watch watch() const override;

    void close() noexcept;  // says goodbye, briefly; what is unacked goes back to its queue

private:
    void connect(TimePoint now);
    void consuming(Prepared prepared);
    void refused(const Failure& failure, Retry retry, TimePoint now);
    void read(TimePoint now);
    void on(Incoming said, TimePoint now);
    void write_settlements();
    void write(const SettlementFrame& frame);
    void lose(const std::string& reason, TimePoint now);
    void try_again(TimePoint now);

    Endpoint endpoint_;
    ConsumeOptions options_;
    std::unique_ptr<Connection> connection_;
    std::unique_ptr<Connector> connector_;
    std::optional<TimePoint> retry_at_ = TimePoint::min();  // nothing: no further attempt
    std::uint64_t channel_number_ = 0;
    int attempt_ = 0;
    bool was_consuming_ = false;
    bool cancelled_ = false;  // by us
    bool cancel_to_write_ = false;
    bool depth_asked_ = false;
    std::vector<NotedSettlement> noted_;
    std::set<std::uint64_t> unsettled_;  // the tags of this channel that no frame has settled yet
    std::vector<ChannelEvent> events_;
    std::minstd_rand random_{std::random_device{}()};
};

}  // namespace claimq::amqp
