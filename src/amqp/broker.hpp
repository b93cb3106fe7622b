// The broker's objects, by blocking calls on a connection's channel 1: for topology and for start-up.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "amqp/connection.hpp"
#include "amqp/reply.hpp"
#include "claimq/topology.hpp"

namespace claimq::amqp {

// Tags are unique within a channel, so ours can be known beforehand: needed to cancel.
inline constexpr std::string_view consumer_tag = "claimq";

// Each call returns the broker's refusal, or nothing when it did as it was told; a refused channel is opened again.
// Throws Failure when the connection is gone or silent for ten seconds.
class Broker {
public:
    explicit Broker(Connection& connection) : connection_(connection) {}

    [[nodiscard]] std::optional<Refusal> look_up_exchange(std::string_view name);  // passive: is it there?
    [[nodiscard]] std::optional<Refusal> look_up_queue(std::string_view name);
    [[nodiscard]] std::optional<Refusal> declare_exchange(std::string_view name);  // direct, durable
    [[nodiscard]] std::optional<Refusal> declare(const Queue& queue);              // durable
    [[nodiscard]] std::optional<Refusal> bind(const Binding& binding);
    [[nodiscard]] std::optional<Refusal> limit_unacked(std::uint16_t prefetch);  // basic.qos
    [[nodiscard]] std::optional<Refusal> consume(std::string_view queue);        // manual ack

private:
    [[nodiscard]] std::optional<Refusal> answer();

    Connection& connection_;
};

}  // namespace claimq::amqp
