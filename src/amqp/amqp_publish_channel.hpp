// publish's channel on rabbitmq-c.
#pragma once
#include <vector>

#include "amqp/connection.hpp"
#include "claimq/publish_channel.hpp"

namespace claimq::amqp {

// Writes a message frame by frame, each only when the kernel takes it at once: amqp_basic_publish() of 0.11 can block
// for ever (rabbitmq-c #780), and a body larger than the send buffer always blocks it.
class AmqpPublishChannel : public PublishChannel {
public:
    // Connects and puts the channel into confirm mode. Blocks within the endpoint's timeouts; throws Failure.
    AmqpPublishChannel(const Endpoint& endpoint, int least_attempts);

    [[nodiscard]] bool ready() const override { return !dead_ && claim_ == nullptr; }
    void publish(const OutgoingClaim& claim) override;
    [[nodiscard]] std::vector<PublishEvent> turn(TimePoint now) override;
    [[nodiscard]] Watch watch() const override;
    void close() noexcept override;

private:
    void cork(Corked);
    [[nodiscard]] bool takes(std::size_t bytes);
    void write();
    void write_method_and_header();
    void write_body(std::size_t size);
    void read();
    [[nodiscard]] PublishEvent event_of(Incoming said);
    void lost(const std::string& reason);

    Connection connection_;
    std::size_t slice_;                     // bytes of a body in one frame
    const OutgoingClaim* claim_ = nullptr;  // being written; nullptr: none
    bool begun_ = false;                    // its method and header are out
    std::size_t written_ = 0;               // of its body
    std::size_t room_ = 0;                  // bytes that the kernel surely takes, as far as it was asked
    Corked corked_ = Corked::no;
    bool dead_ = false;
    std::vector<PublishEvent> events_;
};

}  // namespace claimq::amqp
