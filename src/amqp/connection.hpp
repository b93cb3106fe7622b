// One connection, logged in, with channel 1 open: owned by one object, used by one thread, for one role.
#pragma once
#include <amqp.h>

#include <memory>
#include <optional>
#include <string>

#include "amqp/endpoint.hpp"
#include "amqp/incoming.hpp"
#include "amqp/tcp.hpp"
#include "claimq/clock.hpp"

namespace claimq::amqp {

class Connection {
public:
    // Blocks within the endpoint's timeouts. `program` is the connection's name on the broker. Throws ConnectFailure.
    Connection(const Endpoint& endpoint, const std::string& program);
    Connection(Connection&&) noexcept = default;
    Connection& operator=(Connection&&) noexcept = default;
    ~Connection() = default;  // closes without a word; what was unacked goes back to its queue

    // The next thing the broker said, without waiting for it. Serves and checks heartbeats, so call it every
    // heartbeat/4 at least, until it returns nothing (also after many frames that complete nothing). Answers the
    // broker's closes. Throws Failure when the connection is gone; no other call is allowed after that.
    [[nodiscard]] std::optional<Incoming> take();

    // Bytes of these are handed to the kernel when they return, no more. The caller has seen takes() before.
    void send_method(amqp_method_number_t id, void* decoded);
    void send_frame(const amqp_frame_t& frame);

    // Would writing this many bytes block? How many would not? See send_buffer_room().
    [[nodiscard]] bool takes(std::size_t bytes) const noexcept;
    [[nodiscard]] std::size_t room(std::size_t wanted) const noexcept;
    void cork(Corked) const noexcept;

    [[nodiscard]] Watch watch(TimePoint now) const noexcept;

    // For the blocking calls at start-up.
    [[nodiscard]] amqp_connection_state_t state() const noexcept { return state_.get(); }
    [[nodiscard]] std::string host() const { return host_; }
    [[nodiscard]] std::size_t frame_max() const noexcept;
    void open_channel();  // after the broker closed it

    // Says goodbye within two seconds.
    void close() noexcept;

private:
    struct Destroy {
        void operator()(amqp_connection_state_t state) const noexcept { amqp_destroy_connection(state); }
    };
    void log_in(const Endpoint& endpoint, const std::string& program, TimePoint until);
    void answer_close(const Incoming& said);

    std::unique_ptr<amqp_connection_state_t_, Destroy> state_;
    std::string host_;
    FrameAssembler assembler_;
};

// Tries as often as the endpoint says (connection_attempts, or `least_attempts` if that is more), retry_delay apart.
// Throws the last attempt's ConnectFailure.
[[nodiscard]] Connection connect(const Endpoint& endpoint, const std::string& program, int least_attempts = 1);

// "host:port" for messages.
[[nodiscard]] std::string host_and_port(const Endpoint&);

}  // namespace claimq::amqp
